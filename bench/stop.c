/* Measures how soon runs end that are stopped at a random moment: by clv_run_cancel(), by a time limit, and, for the command,
 * by Ctrl-C. After each run that was stopped in this process, the session runs again, and its outputs must be the same as those
 * of a run that was not stopped.
 *
 *   bench_stop [--count N] [--seed N] [--devices LIST]... [--command CLEAVE] [--check] [MODEL]...
 *
 * MODEL: with f32 inputs of known sizes; default: a chain of tiny nodes. --devices: may be given several times; each run draws
 * one of the lists; default: cpu, and npu,cpu. --command: the built `cleave`; without it, or without a model, Ctrl-C is left
 * out. --check: few runs. Prints the time from the request to the end; runs that ended by themselves are counted apart. */
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BENCH "stop"
#include "base/clock.h"
#include "chain.h"
#include "cleave/cleave.h"

enum { MOST_LISTS = 8, MOST_MODELS = 16, MOST_VALUES = 8, MOST_TRIES = 10000, CHAIN_NODES = 20000 };

typedef enum way { CANCEL, LIMIT, INTERRUPT, WAYS } way;
static const char *const way_names[WAYS] = {"cancel", "time limit", "Ctrl-C"};

typedef struct wanted {
  uint32_t count, list_count, model_count;
  const char *lists[MOST_LISTS], *models[MOST_MODELS], *command;
} wanted;

static uint64_t random_state = 1;

static double draw(void) { /* a random number from 0 to 1 */
  random_state = random_state * 6364136223846793005u + 1442695040888963407u;
  return (double)(random_state >> 40) / (double)(1 << 24);
}

static double now_ms(void) {
  return (double)clv__clock_ns() / 1e6;
}

static void sleep_ms(double ms) {
  const struct timespec time = {(time_t)(ms / 1e3), (long)(fmod(ms, 1e3) * 1e6)};
  nanosleep(&time, NULL);
}

/* ---- A model on a list of devices ---- */

typedef struct subject {
  const char *model; /* NULL: the chain */
  const char *list;
  clv_context *context;
  clv_devices *devices;
  clv_graph *graph;
  clv_plan *plan;
  clv_session *session;
  uint32_t input_count, output_count;
  clv_tensor inputs[MOST_VALUES], outputs[MOST_VALUES];
  void *expected[MOST_VALUES];
  size_t sizes[MOST_VALUES];
  double run_ms;
} subject;

static void *room(size_t size_bytes) {
  void *data = malloc(size_bytes + 1);
  if (data != NULL) return data;
  fprintf(stderr, BENCH ": out of memory\n");
  exit(1);
}

static size_t bytes_of(const clv_tensor *type) {
  size_t bytes;
  if (type->dtype == CLV_F32 && clv__tensor_size_bytes(type, &bytes)) return bytes;
  fprintf(stderr, BENCH ": inputs and outputs must be f32 and of known sizes\n");
  exit(1);
}

static void fill_inputs(subject *s) {
  for (uint32_t i = 0; i < s->input_count; ++i) {
    s->inputs[i] = *clv_graph_input_type(s->graph, i);
    const size_t bytes = bytes_of(&s->inputs[i]);
    float *data = s->inputs[i].data = room(bytes);
    for (size_t k = 0; k < bytes / sizeof *data; ++k) data[k] = (float)(draw() - 0.5);
  }
}

static void run(subject *s) {
  clv_error error = {0};
  memset(s->outputs, 0, sizeof s->outputs);
  check(clv_session_run(s->session, s->inputs, s->input_count, s->outputs, s->output_count, &error), &error, s->list);
}

static void open_subject(subject *s) {
  clv_error error = {0};
  clv_context_options context = CLV_CONTEXT_OPTIONS_INIT;
  clv_devices_options devices = CLV_DEVICES_OPTIONS_INIT;
  context.cache_directory = "";
  devices.list = s->list;
  check(clv_context_create(&context, &s->context, &error), &error, "context");
  check(clv_devices_open(s->context, &devices, &s->devices, &error), &error, s->list);
  if (s->model == NULL)
    s->graph = make_graph(CHAIN_NODES, false);
  else
    check(clv_graph_load(s->context, s->model, &s->graph, &error), &error, s->model);
  check(clv_plan_make(s->graph, s->devices, NULL, &s->plan, &error), &error, "plan");
  check(clv_session_create(s->plan, NULL, &s->session, &error), &error, "session");
  s->input_count = clv_graph_input_count(s->graph);
  s->output_count = clv_graph_output_count(s->graph);
  if (s->input_count > MOST_VALUES || s->output_count > MOST_VALUES) {
    fprintf(stderr, BENCH ": the model has more than %d inputs or outputs\n", MOST_VALUES);
    exit(1);
  }
  fill_inputs(s);
  run(s);
  for (uint32_t i = 0; i < s->output_count; ++i) {
    s->sizes[i] = bytes_of(&s->outputs[i]);
    s->expected[i] = memcpy(room(s->sizes[i]), s->outputs[i].data, s->sizes[i]);
  }
  const double start = now_ms();
  run(s);
  s->run_ms = now_ms() - start;
}

static void expect_same(subject *s, const char *after) {
  run(s);
  for (uint32_t i = 0; i < s->output_count; ++i) {
    if (memcmp(s->outputs[i].data, s->expected[i], s->sizes[i]) == 0) continue;
    fprintf(stderr, BENCH ": %s on %s: outputs changed after a %s\n", s->model == NULL ? "chain" : s->model, s->list, after);
    exit(1);
  }
}

static void close_subject(subject *s) {
  for (uint32_t i = 0; i < s->input_count; ++i) free(s->inputs[i].data);
  for (uint32_t i = 0; i < s->output_count; ++i) free(s->expected[i]);
  clv_session_destroy(s->session);
  clv_plan_destroy(s->plan);
  clv_graph_destroy(s->graph);
  clv_devices_close(s->devices);
  clv_context_destroy(s->context);
}

/* ---- Stopping: cancel(), limit() and interrupt() return the milliseconds from the request to the end of the run; negative if
 * the run ended by itself ---- */

static void expect_status(clv_status status, clv_status expected, const clv_error *error) {
  if (status == CLV_OK || status == expected) return;
  check(status, error, "a run that was stopped");
}

static double cancel(subject *s) {
  clv_error error = {0};
  clv_run *started;
  clv_tensor outputs[MOST_VALUES] = {{0}};
  check(clv_session_start(s->session, s->inputs, s->input_count, outputs, s->output_count, NULL, &started, &error), &error,
        "start");
  sleep_ms(draw() * s->run_ms);
  const double asked = now_ms();
  clv_run_cancel(started);
  const clv_status status = clv_run_wait(started, &error);
  expect_status(status, CLV_CANCELLED, &error);
  return status == CLV_OK ? -1 : now_ms() - asked;
}

static double limit(subject *s) {
  clv_error error = {0};
  clv_tensor outputs[MOST_VALUES] = {{0}};
  clv_run_options options = CLV_RUN_OPTIONS_INIT;
  options.time_limit_s = 1e-6 + draw() * s->run_ms / 1e3;
  const double asked = now_ms() + options.time_limit_s * 1e3;
  const clv_status status =
      clv_session_run_with(s->session, s->inputs, s->input_count, outputs, s->output_count, &options, &error);
  expect_status(status, CLV_TIMED_OUT, &error);
  return status == CLV_OK ? -1 : now_ms() - asked;
}

static double interrupt(subject *s, const char *command) {
  const pid_t child = fork();
  int how;
  if (child == 0) {
    const int nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
    execl(command, command, "run", s->model, "--devices", s->list, "--runs", "1000000", "--cache-dir", "", (char *)NULL);
    _exit(127);
  }
  sleep_ms(50 + draw() * (50 + 10 * s->run_ms)); /* the command may be starting, loading, compiling or running */
  const double asked = now_ms();
  if (child < 0 || kill(child, SIGINT) != 0 || waitpid(child, &how, 0) != child) {
    fprintf(stderr, BENCH ": cannot run %s\n", command);
    exit(1);
  }
  const bool is_early =
      WIFSIGNALED(how) && WTERMSIG(how) == SIGINT; /* the signal came before main() had begun, as it may on a busy machine */
  if (!is_early && (!WIFEXITED(how) || WEXITSTATUS(how) != 130)) {
    fprintf(stderr, BENCH ": %s ended with status %d after SIGINT\n", command, how);
    exit(1);
  }
  return now_ms() - asked;
}

/* ---- The whole ---- */

typedef struct tally {
  uint32_t stopped, by_itself;
  double samples_ms[MOST_TRIES], worst_ms;
  const char *worst; /* the model of the run that took worst_ms */
} tally;

static void try_once(subject *s, way how, const char *command, tally *t) {
  const double ms = how == CANCEL ? cancel(s) : how == LIMIT ? limit(s) : interrupt(s, command);
  if (how != INTERRUPT) expect_same(s, way_names[how]);
  if (ms < 0)
    ++t->by_itself;
  else
    t->samples_ms[t->stopped++] = ms;
  if (ms <= t->worst_ms) return;
  t->worst_ms = ms;
  t->worst = s->model == NULL ? "chain" : strrchr(s->model, '/') != NULL ? strrchr(s->model, '/') + 1 : s->model;
}

static wanted read_arguments(int argc, char **argv) {
  wanted w = {.count = 500};
  for (int i = 1; i < argc; ++i) {
    const bool more = i + 1 < argc;
    if (strcmp(argv[i], "--count") == 0 && more)
      w.count = (uint32_t)atoi(argv[++i]);
    else if (strcmp(argv[i], "--seed") == 0 && more)
      random_state = strtoull(argv[++i], NULL, 10);
    else if (strcmp(argv[i], "--command") == 0 && more)
      w.command = argv[++i];
    else if (strcmp(argv[i], "--devices") == 0 && more && w.list_count < MOST_LISTS)
      w.lists[w.list_count++] = argv[++i];
    else if (strcmp(argv[i], "--check") == 0)
      w.count = 20;
    else if (argv[i][0] != '-' && w.model_count < MOST_MODELS)
      w.models[w.model_count++] = argv[i];
    else
      w.count = 0;
  }
  if (w.list_count == 0) w.lists[w.list_count++] = "cpu", w.lists[w.list_count++] = "npu,cpu";
  if (w.count > 0 && w.count <= MOST_TRIES) return w;
  fprintf(stderr, "usage: bench_stop [--count N] [--seed N] [--devices LIST]... [--command CLEAVE] [--check] [MODEL]...\n");
  exit(2);
}

int main(int argc, char **argv) {
  static subject subjects[MOST_LISTS * (MOST_MODELS + 1)];
  static tally tallies[MOST_LISTS][WAYS];
  const wanted w = read_arguments(argc, argv);
  const uint32_t models = w.model_count > 0 ? w.model_count : 1;
  const uint32_t ways = w.command != NULL && w.model_count > 0 ? WAYS : INTERRUPT;
  for (uint32_t i = 0; i < w.list_count * models; ++i) {
    subjects[i] = (subject){.model = w.model_count > 0 ? w.models[i / w.list_count] : NULL, .list = w.lists[i % w.list_count]};
    open_subject(&subjects[i]);
  }
  for (uint32_t i = 0; i < w.count; ++i) {
    const uint32_t which = (uint32_t)(draw() * w.list_count * models);
    const way how = (way)(i % ways);
    try_once(&subjects[which], how, w.command, &tallies[which % w.list_count][how]);
  }
  printf("%-24s %-10s %8s %10s %10s %10s  %s\n", "devices", "", "stopped", "by itself", "median ms", "worst ms", "of");
  for (uint32_t i = 0; i < w.list_count * ways; ++i) {
    tally *t = &tallies[i / ways][i % ways];
    qsort(t->samples_ms, t->stopped, sizeof *t->samples_ms, compare);
    printf("%-24s %-10s %8u %10u %10.2f %10.2f  %s\n", w.lists[i / ways], way_names[i % ways], t->stopped, t->by_itself,
           t->stopped > 0 ? t->samples_ms[t->stopped / 2] : 0, t->worst_ms, t->worst != NULL ? t->worst : "");
  }
  for (uint32_t i = 0; i < w.list_count * models; ++i) close_subject(&subjects[i]);
  return 0;
}
