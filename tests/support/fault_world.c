/* See faults.h: the devices, the graph and the plan of a schedule. */
#include "faults.h"

#include "backends/cpu/cpu.h"
#include "backends/vnpu/vnpu.h"

/* The last device of the list supports every node. The others support nodes that the seed chooses. */
static bool supports(void *user_data, const char *device, const clv_node_info *node, char reason[160]) {
  const schedule *s = user_data;
  uint64_t hash = s->seed + (uint8_t)device[0];
  for (const char *at = node->name; *at != '\0'; ++at) hash = hash * 31 + (uint8_t)*at;
  (void)reason;
  return strcmp(device, strrchr(s->list, ',') + 1) == 0 || test_random(&hash) % 3 != 0;
}

/* ---- Devices ---- */

/* Draws the optional slots that a device lacks, so that the library must do without them. The slot that is to fail is never one
 * of them. */
static uint64_t draw_left_out(schedule *s) {
  static const uint64_t left_out[] = {0,
                                      INTERPOSER_CAPTURE,
                                      INTERPOSER_BIT(event_notify),
                                      INTERPOSER_SCRATCH,
                                      INTERPOSER_BIT(instance_resize),
                                      INTERPOSER_BLOBS | INTERPOSER_BIT(event_notify)};
  uint64_t drawn = left_out[test_random(&s->random) % (sizeof left_out / sizeof *left_out)];
  return (drawn >> s->slot & 1u) != 0 ? 0 : drawn;
}

static interposer *make_device(schedule *s, uint32_t device) {
  /* A device with its own memory space needs copies. */
  static const char *const spaces[FAULTY_DEVICES] = {"far", "farther", "farthest"};
  /* Only the virtual NPU can save executables. */
  bool is_saved = s->slot == INTERPOSER_executable_load || s->slot == INTERPOSER_executable_save;
  bool is_npu = device != FAULTY_DEVICES - 1 && (is_saved || test_random(&s->random) % 2 == 0);
  s->strikers[device] = (striker){s, device};
  return interposer_create(
      &(interposer_options){.name = fault_devices[device],
                            .query = is_npu ? clv__vnpu_backend_query : clv__cpu_backend_query,
                            .spec = is_npu ? "all" : NULL,
                            .memory_space = s->is_asynchronous && !is_npu ? spaces[device] : NULL,
                            .order = s->is_asynchronous ? INTERPOSER_ASYNCHRONOUS : INTERPOSER_SYNCHRONOUS,
                            .without = draw_left_out(s),
                            .with = (s->claims ? INTERPOSER_BIT(claim) : 0) | (s->finishes ? INTERPOSER_BIT(finish) : 0),
                            .finish_on_close = test_random(&s->random) % 2 == 0,
                            .hook = schedule_strike,
                            .user_data = &s->strikers[device]});
}

/* Checks a message of the log if it mentions a fault: like any other report, it must then name the device, the partition and
 * the call of each fault that it mentions. */
static void hear(void *user_data, int level, const char *text) {
  world *w = user_data;
  (void)level;
  if (strstr(text, "made to fail #") != NULL) world_check_report(w, text, "the log");
}

static void make_context(world *w) {
  clv_error error = {0};
  clv_context_options options = CLV_CONTEXT_OPTIONS_INIT;
  schedule *s = w->schedule;
  test_allocator_init(&w->counting);
  if (s->is_cached) folder_make(&w->cache);
  bool is_captured = test_random(&s->random) % 2 == 0 || (INTERPOSER_CAPTURE >> s->slot & 1u) != 0;
  options.allocator = &w->counting.allocator;
  options.cache_directory = s->is_cached ? w->cache.path : "";
  options.capture = is_captured ? CLV_CAPTURE_ON : CLV_CAPTURE_OFF;
  options.log = hear;
  options.log_user_data = w;
  assert_ok(clv_context_create(&options, &w->context, &error), error);
  for (uint32_t k = 0; k < FAULTY_DEVICES; ++k) {
    if (strstr(s->list, fault_devices[k]) == NULL) continue;
    w->interposers[k] = make_device(s, k);
    assert_ok(clv_context_add_backend(w->context, interposer_query, w->interposers[k], &error), error);
  }
}

uint32_t world_device(const world *w, uint32_t device) {
  return clv__devices_find(w->devices, fault_devices[device]);
}

/* ---- Graph and plan ---- */

static void make_inputs(world *w) {
  clv_error error = {0};
  uint64_t random = w->schedule->seed;
  uint32_t node_count = 2 + (uint32_t)(test_random(&random) % 8);
  w->graph = test_random_rows(&w->counting.allocator, w->schedule->seed, node_count, w->schedule->is_open);
  w->input_count = w->graph->input_count;
  w->output_count = w->graph->output_count;
  assert_true(w->input_count <= 2 && w->output_count <= MOST_OUTPUTS);
  for (uint32_t shape = 0; shape < (w->schedule->is_open ? SHAPES : 1); ++shape) {
    static const int64_t rows[SHAPES] = {4, 2, 3};
    for (uint32_t i = 0; i < w->input_count; ++i) {
      clv_tensor *input = &w->inputs[shape][i];
      for (uint32_t k = 0; k < 32; ++k) w->data[shape][i][k] = test_random_float(&random);
      *input = *clv_graph_input_type(w->graph, i);
      if (input->rank > 0) input->dims[0] = rows[shape];
      input->data = w->data[shape][i];
    }
    const clv_allocator *allocator = &w->counting.allocator;
    assert_ok(clv__graph_evaluate(w->graph, w->inputs[shape], NULL, w->expected[shape], NULL, NULL, allocator, &error), error);
  }
}

static bool make_plan(world *w) {
  /* mostly strategies that do not compare predicted times */
  static const char *const strategies[] = {"contiguous", "contiguous", "ready", "delegate"};
  schedule *s = w->schedule;
  clv_error error = {0};
  clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
  uint64_t random = s->seed + 1;
  options.strategy = s->claims ? "delegate" : strategies[test_random(&random) % 4];
  options.objective = test_random(&random) % 2 == 0 ? "overlap" : "latency";
  options.support = supports;
  options.support_user_data = s;
  schedule_reach(s, STAGE_PLAN);
  clv_status status = clv_plan_make(w->graph, w->devices, &options, &w->plan, &error);
  if (status != CLV_OK) world_check_report(w, error.message, "making the plan");
  return status == CLV_OK;
}

/* ---- The world ---- */

bool world_open(world *w, schedule *s) {
  clv_error error = {0};
  *w = (world){.schedule = s};
  pthread_mutex_init(&s->lock, NULL);
  make_context(w);
  schedule_reach(s, STAGE_OPEN);
  clv_devices_options options = CLV_DEVICES_OPTIONS_INIT;
  options.list = s->list;
  options.thread_count = 1;
  options.no_fallback = s->no_fallback;
  if (clv_devices_open(w->context, &options, &w->devices, &error) != CLV_OK) {
    world_check_report(w, error.message, "opening the devices");
    return false;
  }
  make_inputs(w);
  return make_plan(w);
}

static void close_device(const world *w, uint32_t device, bool was_lost) {
  char misuse[200];
  interposer *closed = w->interposers[device];
  if (closed == NULL) return;
  if (!was_lost && interposer_left(closed) > 0)
    fail_msg("%llu objects of %s were not destroyed", (unsigned long long)interposer_left(closed), fault_devices[device]);
  if (interposer_misused(closed, misuse, sizeof misuse)) fail_msg("%s: %s", fault_devices[device], misuse);
  interposer_destroy(closed);
}

void world_close(world *w) {
  bool was_lost[FAULTY_DEVICES] = {false};
  schedule_arm(w->schedule, false);
  clv_plan_destroy(w->plan);
  for (uint32_t i = 0; i < SHAPES * MOST_OUTPUTS; ++i)
    clv__release(&w->counting.allocator, w->expected[i / MOST_OUTPUTS][i % MOST_OUTPUTS].data);
  clv_graph_destroy(w->graph);
  for (uint32_t k = 0; k < FAULTY_DEVICES && w->devices != NULL; ++k) {
    uint32_t d = world_device(w, k);
    was_lost[k] = d != CLV__NO_ID && clv__device_is_lost(&w->devices->items[d]);
  }
  clv_devices_close(w->devices);
  clv_context_destroy(w->context);
  if (w->schedule->is_cached) folder_remove(w->cache.path);
  for (uint32_t k = 0; k < FAULTY_DEVICES; ++k) close_device(w, k, was_lost[k]);
  if (w->counting.live != 0) fail_msg("%zu allocations were not released", w->counting.live);
  pthread_mutex_destroy(&w->schedule->lock);
}

clv_status world_run(world *w, clv_session *session, uint32_t shape, clv_error *error) {
  static float room[MOST_OUTPUTS][32];
  clv_tensor outputs[MOST_OUTPUTS];
  for (uint32_t i = 0; i < w->output_count; ++i) {
    outputs[i] = w->expected[shape][i];
    outputs[i].data = memset(room[i], 0xee, sizeof room[i]);
  }
  CLV__TRY(clv_session_run(session, w->inputs[shape], w->input_count, outputs, w->output_count, error));
  for (uint32_t i = 0; i < w->output_count; ++i) assert_same_values(&outputs[i], &w->expected[shape][i], "outputs of a run");
  return CLV_OK;
}
