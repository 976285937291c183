/* Measures devices and graphs for callers: see cleave/profile.h. Each device is measured on a thread of its own: the worker
 * threads of its parallel loops end with that thread and do not compete with the next device for cores. Meanwhile, the caller's
 * thread reports progress and asks whether to go on. */
#include "cost/measuring.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/options.h"
#include "cost/measure.h"

enum { DEFAULT_RUNS = 15, POLL_MS = 100 };

/* The item that is being measured. The measuring thread writes it, the caller's thread reads it. */
typedef struct news {
  const char *model;
  char device[96], what[96];
  uint32_t done, total;
} news;

typedef struct measuring {
  clv_devices *devices;
  clv__profile *profile;
  const clv_profile_graph *graphs;
  uint32_t graph_count;
  const clv_profile_options *options;
  clv__measure_options measure;
  char day[16];
  uint64_t end_ns; /* the end of the budget; 0: there is no budget */
  bool is_short;   /* the budget ended before everything was measured */
  clv__stop stop;
  clv__expectation *expected; /* not NULL: nothing is measured; what is needed is added here */
  const char *model;          /* the current model, or "" */
  uint32_t device;            /* the current device */
  clv_status status;
  clv_error *error;
  pthread_mutex_t lock;
  pthread_cond_t ended;
  bool is_ended, has_news; /* these and `latest` are guarded by `lock` */
  news latest;
} measuring;

/* ---- What the measuring thread does ---- */

static void keep_news(void *user_data, const char *device, const char *what, uint32_t done, uint32_t total) {
  measuring *m = user_data;
  pthread_mutex_lock(&m->lock);
  m->latest = (news){.model = m->model, .done = done, .total = total};
  snprintf(m->latest.device, sizeof m->latest.device, "%s", device);
  snprintf(m->latest.what, sizeof m->latest.what, "%s", what);
  m->has_news = true;
  pthread_mutex_unlock(&m->lock);
}

static clv_status measure_graph(measuring *m, const clv_graph *graph, const clv__shapes *shapes) {
  uint32_t measured;
  for (uint32_t d = 0; m->expected != NULL && d < m->devices->count; ++d)
    CLV__TRY(clv__measure_expect(m->devices, d, graph, shapes, &m->measure, m->profile, m->expected, m->error));
  if (m->expected != NULL) return CLV_OK;
  CLV__TRY(clv__measure_graph(m->devices, m->device, graph, shapes, &m->measure, m->profile, &measured, m->error));
  const uint32_t found = clv__profile_find_device(m->profile, m->devices->items[m->device].info.fingerprint);
  if (found != CLV__NO_ID) m->profile->devices[found]->nodes_measured += measured;
  return CLV_OK;
}

static clv_status measure_given(measuring *m, const clv_profile_graph *from) {
  clv__shapes *shapes = NULL;
  const clv_allocator *allocator = m->profile->arena.allocator;
  clv__shape_given *given = clv__allocate_zero(allocator, ((size_t)from->size_count + 1) * sizeof *given);
  if (given == NULL) return clv__error_memory(m->error, ((size_t)from->size_count + 1) * sizeof *given);
  for (uint32_t i = 0; i < from->size_count; ++i) {
    const clv_size *size = &from->sizes[i];
    given[i] = (clv__shape_given){.name = size->name, .is_symbol = size->is_symbol, .rank = size->rank};
    memcpy(given[i].dims, size->dims, sizeof given[i].dims);
  }
  clv_status status = clv__shapes_infer(from->graph, given, from->size_count, SIZE_MAX, &shapes, m->error);
  if (status != CLV_OK && m->model[0] != '\0') clv__error_prefix(m->error, status, "%s", m->model);
  if (status == CLV_OK) status = measure_graph(m, from->graph, shapes);
  clv__shapes_destroy(shapes);
  clv__release(allocator, given);
  return status;
}

static clv_status measure_common(measuring *m) {
  m->model = "common operators";
  for (uint32_t i = 0;; ++i) {
    clv_graph *graph;
    CLV__TRY(clv__measure_common(clv__context_allocator(m->devices->context), i, &graph, m->error));
    if (graph == NULL) return CLV_OK;
    clv_status status = measure_given(m, &(clv_profile_graph){graph, 0, NULL});
    clv_graph_destroy(graph);
    CLV__TRY(status);
  }
}

static clv_status measure_graphs(measuring *m) {
  if (m->graph_count == 0) return measure_common(m);
  for (uint32_t i = 0; i < m->graph_count; ++i) {
    m->model = m->graphs[i].graph->path != NULL ? m->graphs[i].graph->path : "";
    CLV__TRY(measure_given(m, &m->graphs[i]));
  }
  return CLV_OK;
}

static void end(measuring *m, clv_status status) {
  pthread_mutex_lock(&m->lock);
  m->status = status;
  m->is_ended = true;
  pthread_cond_signal(&m->ended);
  pthread_mutex_unlock(&m->lock);
}

static void *measure_device(void *argument) {
  measuring *m = argument;
  m->model = "";
  end(m, clv__measure_device(m->devices, m->device, &m->measure, m->profile, m->error));
  return NULL;
}

static void *measure_nodes(void *argument) {
  measuring *m = argument;
  end(m, measure_graphs(m));
  return NULL;
}

/* ---- What the caller's thread does ---- */

/* Reports the latest item, and asks whether to go on. The lock is held by the caller, but not while the program's functions run.
 */
static void ask(measuring *m) {
  const clv_profile_options *options = m->options;
  const news latest = m->latest;
  const bool has_news = m->has_news;
  m->has_news = false;
  pthread_mutex_unlock(&m->lock);
  if (has_news && options->progress != NULL)
    options->progress(options->user_data, latest.model, latest.device, latest.what, latest.done, latest.total);
  if (!clv__is_stopped(&m->stop) && options->go_on != NULL && !options->go_on(options->user_data)) atomic_store(&m->stop, true);
  pthread_mutex_lock(&m->lock);
}

/* Waits until the measuring thread has ended. */
static void wait_for_end(measuring *m) {
  pthread_mutex_lock(&m->lock);
  while (!m->is_ended) {
    struct timespec until;
    if (m->options->progress == NULL && m->options->go_on == NULL) {
      pthread_cond_wait(&m->ended, &m->lock);
      continue;
    }
    ask(m);
    const uint64_t until_ns = clv__clock_ns() + POLL_MS * UINT64_C(1000000);
    until = (struct timespec){.tv_sec = (time_t)(until_ns / 1000000000u), .tv_nsec = (long)(until_ns % 1000000000u)};
    int code = 0;
    while (!m->is_ended && code != ETIMEDOUT) code = pthread_cond_timedwait(&m->ended, &m->lock, &until);
  }
  pthread_mutex_unlock(&m->lock);
}

/* Gives the current device its share of what is left of the budget. */
static void share_budget(measuring *m, uint32_t devices_left) {
  const uint64_t now_ns = clv__clock_ns();
  if (m->end_ns > 0) m->measure.end_ns = m->end_ns <= now_ns ? now_ns : now_ns + (m->end_ns - now_ns) / devices_left;
}

static clv_status measure_one(measuring *m, void *(*measure)(void *)) {
  pthread_t thread;
  m->is_ended = false;
  const int code = pthread_create(&thread, NULL, measure, m);
  if (code != 0) return clv__error_set(m->error, CLV_OUT_OF_MEMORY, "pthread_create: %s", strerror(code));
  wait_for_end(m);
  pthread_join(thread, NULL);
  if (m->status != CLV_CANCELLED || clv__is_stopped(&m->stop)) return m->status;
  m->is_short = true; /* the device's share of the budget is spent */
  clv__error_clear(m->error);
  return CLV_OK;
}

/* Calls `measure` for each device on a thread. Host devices come first, because the drivers of other devices keep threads until
 * the devices are closed. */
static clv_status for_each_device(measuring *m, void *(*measure)(void *)) {
  uint32_t left = m->devices->count;
  for (uint32_t pass = 0; pass < 2; ++pass) {
    for (m->device = 0; m->device < m->devices->count; ++m->device) {
      if ((m->devices->items[m->device].space == CLV__SPACE_HOST) != (pass == 0)) continue;
      share_budget(m, left--);
      CLV__TRY(measure_one(m, measure));
    }
  }
  return CLV_OK;
}

/* ---- The calls ---- */

static clv_status check_graphs(const clv_profile_graph *graphs, uint32_t count, clv_error *error) {
  CLV__TRY(clv__options_list(graphs, count, "graphs", error));
  for (uint32_t i = 0; i < count; ++i) {
    if (graphs[i].graph == NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "graph %u of %u is NULL", i, count);
    CLV__TRY(clv__options_list(graphs[i].sizes, graphs[i].size_count, "sizes", error));
    for (uint32_t k = 0; k < graphs[i].size_count; ++k) {
      const clv_size *size = &graphs[i].sizes[k];
      if (size->name == NULL || size->rank < 0 || size->rank > CLV_MAX_RANK)
        return clv__error_set(error, CLV_INVALID_ARGUMENT, "graph %u: size %u needs a name and a rank of 0 to %d", i, k,
                              CLV_MAX_RANK);
    }
  }
  return CLV_OK;
}

static clv_status read_options(const clv_profile_options *given, clv_profile_options *options, clv_error *error) {
  *options = (clv_profile_options)CLV_PROFILE_OPTIONS_INIT;
  CLV__TRY(clv__options_read(options, sizeof *options, given, "CLV_PROFILE_OPTIONS_INIT", error));
  if (options->parts != CLV_PROFILE_ALL && options->parts != CLV_PROFILE_DEVICES && options->parts != CLV_PROFILE_NODES)
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "parts is %d, but must be one of the values of clv_profile_parts",
                          (int)options->parts);
  if (!(options->budget_seconds >= 0))
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "budget_seconds is %g, but must not be negative", options->budget_seconds);
  if (options->runs == 0) options->runs = DEFAULT_RUNS;
  return CLV_OK;
}

static clv_status begin(measuring *m, clv_profile *profile, clv_devices *devices, const clv_profile_graph *graphs,
                        uint32_t graph_count, const clv_profile_options *options, clv_error *error) {
  struct tm day;
  const time_t now = time(NULL);
  *m = (measuring){.devices = devices,
                   .profile = profile->tables,
                   .graphs = graphs,
                   .graph_count = graph_count,
                   .options = options,
                   .error = error,
                   .model = ""};
  m->measure = (clv__measure_options){.runs = options->runs,
                                      .day = m->day,
                                      .progress = keep_news,
                                      .user_data = m,
                                      .stop = &m->stop,
                                      .goes_on = options->continues};
  if (options->budget_seconds > 0 && options->budget_seconds < 1e9)
    m->end_ns = clv__clock_ns() + (uint64_t)(1e9 * options->budget_seconds);
  if (gmtime_r(&now, &day) == NULL || strftime(m->day, sizeof m->day, "%Y-%m-%d", &day) == 0) m->day[0] = '\0';
  pthread_condattr_t clock;
  pthread_condattr_init(&clock);
  pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
  pthread_mutex_init(&m->lock, NULL);
  pthread_cond_init(&m->ended, &clock);
  pthread_condattr_destroy(&clock);
  return clv__measure_host(m->profile, error);
}

static void finish(measuring *m) {
  pthread_cond_destroy(&m->ended);
  pthread_mutex_destroy(&m->lock);
}

clv_status clv_profile_measure(clv_profile *profile, clv_devices *devices, const clv_profile_graph *graphs, uint32_t graph_count,
                               const clv_profile_options *given, clv_error *error) {
  if (profile == NULL || devices == NULL)
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "profile and devices must not be NULL");
  clv_profile_options options;
  measuring m;
  CLV__TRY(read_options(given, &options, error));
  CLV__TRY(check_graphs(graphs, graph_count, error));
  clv_status status = begin(&m, profile, devices, graphs, graph_count, &options, error);
  if (status == CLV_OK && options.parts != CLV_PROFILE_NODES) {
    m.profile->is_partial = false;
    status = for_each_device(&m, measure_device);
  }
  if (status == CLV_OK && options.parts != CLV_PROFILE_DEVICES) status = for_each_device(&m, measure_nodes);
  m.profile->is_partial = m.profile->is_partial || m.is_short || status == CLV_CANCELLED;
  finish(&m);
  return status;
}

clv_status clv_profile_expect(clv_profile *profile, clv_devices *devices, const clv_profile_graph *graphs, uint32_t graph_count,
                              const clv_profile_options *given, clv_profile_expectation *expectation, clv_error *error) {
  if (profile == NULL || devices == NULL || expectation == NULL)
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "profile, devices and expectation must not be NULL");
  clv_profile_options options;
  measuring m;
  clv__expectation expected = {0};
  CLV__TRY(read_options(given, &options, error));
  CLV__TRY(check_graphs(graphs, graph_count, error));
  clv_status status = begin(&m, profile, devices, graphs, graph_count, &options, error);
  m.expected = &expected;
  if (status == CLV_OK) status = measure_graphs(&m);
  finish(&m);
  const clv_profile_expectation filled = {
      .node_count = expected.nodes, .block_count = expected.blocks, .seconds = expected.seconds};
  if (status == CLV_OK) clv__info_fill(expectation, &filled, sizeof filled);
  return status;
}
