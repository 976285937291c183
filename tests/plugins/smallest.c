#include "cleave/plugin/host_device.h"

struct clv_executable {
  char unused; /* there is only one program: negate a tensor */
};

static void supports(clv_device *device, const clv_graph_view *graph, uint32_t node, clv_verdict *verdict) {
  const clv_host *host = clv_host_base(device)->host;
  clv_node_info info = {.struct_size = sizeof info};
  clv_value_info input = {.struct_size = sizeof input};
  host->graph_node(graph, node, &info);
  if (strcmp(info.op, "Neg") == 0 && info.domain[0] == '\0') host->graph_value(graph, info.inputs[0], &input);
  verdict->supported = input.type.dtype == CLV_F32 && !input.is_constant;
  if (!verdict->supported) snprintf(verdict->reason, sizeof verdict->reason, "only Neg of f32 is supported");
}

static clv_status compile(clv_device *device, const clv_graph_view *graph, const clv_compile_options *options,
                          clv_executable **executable, clv_error *error) {
  const clv_host *host = clv_host_base(device)->host;
  clv_verdict verdict = {0};
  (void)options;
  *executable = NULL;
  if (host->graph_node_count(graph) > 1) return clv_host_fail(error, CLV_TOO_LARGE, "a partition has at most one node");
  supports(device, graph, 0, &verdict);
  if (!verdict.supported) return clv_host_fail(error, CLV_NOT_SUPPORTED, "%s", verdict.reason);
  *executable = (clv_executable *)clv_host_allocate(host, sizeof **executable);
  return *executable != NULL ? CLV_OK : clv_host_fail(error, CLV_OUT_OF_MEMORY, "no memory for the executable");
}

static void destroy(clv_device *device, clv_executable *executable) {
  if (executable != NULL) clv_host_release(clv_host_base(device)->host, executable);
}

static clv_status execute(clv_device *device, clv_instance *instance, clv_stream *stream, clv_execute_args *args,
                          clv_error *error) {
  (void)device;
  (void)instance;
  (void)stream;
  if (args->input_count != 1 || args->output_count != 1)
    return clv_host_fail(error, CLV_INVALID_ARGUMENT, "expected one input and one output");
  const float *from = (const float *)clv_host_address(&args->inputs[0]);
  float *to = (float *)clv_host_address(&args->outputs[0]);
  for (int64_t i = 0; i < clv_host_count(&args->outputs[0].type); ++i) to[i] = -from[i];
  return CLV_OK;
}

static clv_device_info about = {.kind = "npu", .description = "negates", .fingerprint = "smallest 1", .max_partition_nodes = 1};

static const clv_backend table = {
    .abi_version = CLV_ABI_VERSION,
    .struct_size = sizeof table,
    .name = "smallest",
    .version = "1",
    .self = &about,
    .supports = supports,
    .compile = compile,
    .executable_destroy = destroy,
    .execute = execute,
    CLV_HOST_OPEN_SLOTS,
    CLV_HOST_DEVICE_SLOTS,
    CLV_HOST_WEIGHT_SLOTS,
    CLV_HOST_INSTANCE_SLOTS,
};

CLV_API clv_status clv_backend_query(const clv_host *host, void *user_data, const clv_backend **backend, clv_error *error);

clv_status clv_backend_query(const clv_host *host, void *user_data, const clv_backend **backend, clv_error *error) {
  (void)host;
  (void)user_data;
  (void)error;
  *backend = &table;
  return CLV_OK;
}
