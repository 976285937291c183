/* The program whose instructions tests/python/test_overhead.py counts: a session that runs a chain of tiny nodes repeatedly,
 * after warming up.
 *
 *   bench_overhead DEVICES SPEC GRAPH FORCED NODES RUNS
 *
 * SPEC describes the virtual NPU. GRAPH turns captures on or off. FORCED is an operator whose nodes run on the last device, or
 * ''. The test counts only the instructions executed inside measured_run(). */
#include <string.h>

#define BENCH "overhead"
#include "chain.h"
#include "cleave/cleave.h"
#include "plan/plan.h"

enum { WARM = 8 };

void measured_run(clv_session *session, const clv_tensor *inputs, clv_tensor *output);

__attribute__((noinline)) void measured_run(clv_session *session, const clv_tensor *inputs, clv_tensor *output) {
  clv_error error = {0};
  check(clv_session_run(session, inputs, 2, output, 1, &error), &error, "run");
}

int main(int argc, char **argv) {
  if (argc != 7) {
    fprintf(stderr, "usage: bench_overhead DEVICES SPEC GRAPH FORCED NODES RUNS\n");
    return 2;
  }
  clv_error error = {0};
  clv_context *context;
  clv_devices *devices;
  clv_plan *plan;
  clv_session *session;
  clv_graph *graph = make_graph((uint32_t)atoi(argv[5]), false);
  clv_context_options options = CLV_CONTEXT_OPTIONS_INIT;
  options.capture = strcmp(argv[3], "on") == 0 ? CLV_CAPTURE_ON : CLV_CAPTURE_OFF;
  options.cache_directory = "";
  check(clv_context_create(&options, &context, &error), &error, "context");
  clv_devices_options wanted = CLV_DEVICES_OPTIONS_INIT;
  const char *specs[] = {argv[2]};
  wanted.list = argv[1];
  wanted.thread_count = 1;
  wanted.npu_specs = specs;
  wanted.npu_spec_count = 1;
  check(clv_devices_open(context, &wanted, &devices, &error), &error, argv[1]);
  clv_plan_options planned = CLV_PLAN_OPTIONS_INIT;
  planned.strategy = "contiguous";
  const char *last = strrchr(argv[1], ',') != NULL ? strrchr(argv[1], ',') + 1 : argv[1];
  const clv_assignment force = {argv[4], last};
  planned.forces = &force;
  planned.force_count = argv[4][0] != '\0';
  check(clv_plan_make(graph, devices, &planned, &plan, &error), &error, "plan");
  check(clv_session_create(plan, NULL, &session, &error), &error, "session");
  static float in[2][ELEMENTS], out[ELEMENTS];
  const int64_t dims[2] = {ROWS, COLUMNS};
  for (int i = 0; i < ELEMENTS; ++i) {
    in[0][i] = (float)(i * 7 % 13) - 5.5f;
    in[1][i] = (float)(i * 3 % 11) * 0.25f - 1;
  }
  clv_tensor inputs[2] = {clv__tensor_make(CLV_F32, 2, dims, in[0]), clv__tensor_make(CLV_F32, 2, dims, in[1])};
  clv_tensor output = clv__tensor_make(CLV_F32, 2, dims, out);
  for (int i = 0; i < WARM; ++i) check(clv_session_run(session, inputs, 2, &output, 1, &error), &error, "run");
  for (int i = 0; i < atoi(argv[6]); ++i) measured_run(session, inputs, &output);
  printf("%u partitions\n", plan->partition_count);
  clv_session_destroy(session);
  clv_plan_destroy(plan);
  clv_devices_close(devices);
  clv_context_destroy(context);
  clv_graph_destroy(graph);
  return 0;
}
