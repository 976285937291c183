/* A program with its own backend: "mine" runs Relu, and the cpu runs all other nodes. The model must have one input, of fixed
 * shape and at most 4 MiB, and an f32 output.
 *   cc own_backend.c $(pkg-config --cflags --libs cleave) -o own_backend && ./own_backend model.onnx */
#include <cleave/cleave.h>
#include <cleave/plugin/host_device.h>

static int runs;

static void supports(clv_device *device, const clv_graph_view *graph, uint32_t node, clv_verdict *verdict) {
  const clv_host *host = clv_host_base(device)->host;
  clv_node_info info = {.struct_size = sizeof info};
  clv_value_info x = {.struct_size = sizeof x};
  host->graph_node(graph, node, &info);
  verdict->supported = strcmp(info.op, "Relu") == 0 && info.domain[0] == '\0';
  if (verdict->supported) host->graph_value(graph, info.inputs[0], &x), verdict->supported = x.type.dtype == CLV_F32;
  if (!verdict->supported) snprintf(verdict->reason, sizeof verdict->reason, "%s is not a Relu of f32", info.op);
}

/* A partition is a single Relu (max_partition_nodes is 1), so there is nothing to compile. The host only needs an executable
 * that is not NULL: the device itself is returned as one. */
static clv_status compile(clv_device *device, const clv_graph_view *graph, const clv_compile_options *options,
                          clv_executable **executable, clv_error *error) {
  *executable = (clv_executable *)(void *)device;
  return (void)graph, (void)options, (void)error, CLV_OK;
}
static void executable_destroy(clv_device *device, clv_executable *executable) {
  (void)device, (void)executable;
}

static clv_status execute(clv_device *device, clv_instance *instance, clv_stream *stream, clv_execute_args *args,
                          clv_error *error) {
  const float *x = clv_host_address(&args->inputs[0]);
  float *y = clv_host_address(&args->outputs[0]);
  for (int64_t i = 0, count = clv_host_count(&args->inputs[0].type); i < count; ++i) y[i] = x[i] > 0 ? x[i] : 0;
  return ++runs, (void)device, (void)instance, (void)stream, (void)error, CLV_OK;
}

static clv_status query(const clv_host *host, void *user_data, const clv_backend **backend, clv_error *error) {
  static clv_device_info info = {.kind = "cpu", .description = "Relu", .fingerprint = "mine 1", .max_partition_nodes = 1};
  static const clv_backend table = {.abi_version = CLV_ABI_VERSION,
                                    .struct_size = sizeof table,
                                    .name = "mine",
                                    .version = "1",
                                    .self = &info,
                                    CLV_HOST_OPEN_SLOTS,
                                    CLV_HOST_DEVICE_SLOTS,
                                    CLV_HOST_WEIGHT_SLOTS,
                                    CLV_HOST_INSTANCE_SLOTS,
                                    .supports = supports,
                                    .compile = compile,
                                    .executable_destroy = executable_destroy,
                                    .execute = execute};
  return *backend = &table, (void)host, (void)user_data, (void)error, CLV_OK;
}

int main(int argc, char **argv) {
  static float zeros[1 << 20];
  clv_context *context = NULL;
  clv_devices *devices = NULL;
  clv_graph *graph = NULL;
  clv_plan *plan = NULL;
  clv_session *session = NULL;
  clv_error error = {0};
  clv_tensor input, output = {0};
  clv_devices_options which = CLV_DEVICES_OPTIONS_INIT;
  clv_plan_options how = CLV_PLAN_OPTIONS_INIT;
  which.list = "mine,cpu";
  how.strategy = "contiguous"; /* gives "mine" every node that it can run; "optimal" would do so only where it saves time */
  int failed = clv_context_create(NULL, &context, &error) || clv_context_add_backend(context, query, NULL, &error) ||
               clv_devices_open(context, &which, &devices, &error) || clv_graph_load(context, argv[argc - 1], &graph, &error) ||
               clv_plan_make(graph, devices, &how, &plan, &error) || clv_session_create(plan, NULL, &session, &error);
  if (!failed) input = *clv_graph_input_type(graph, 0), input.data = zeros;
  if (!failed) failed = clv_session_run(session, &input, 1, &output, 1, &error) != CLV_OK;
  if (failed) fprintf(stderr, "%s\n", error.message);
  if (!failed) printf("%s: %g; 'mine' ran %d times\n", clv_graph_output_name(graph, 0), (double)*(float *)output.data, runs);
  clv_session_destroy(session), clv_plan_destroy(plan), clv_graph_destroy(graph);
  clv_devices_close(devices), clv_context_destroy(context);
  return failed;
}
