/* Verdicts. First, nodes with values that no framework accepts are rejected. Then the framework's may_support() is asked. If it
 * accepts the node but is not sure, a trial follows: the node alone is compiled, once per signature (verdicts.h). */
#include <stdio.h>
#include <string.h>

#include "base/tensor/tensor.h"
#include "device.h"

static bool refuse(clv_verdict *verdict, const char *format, const char *what) {
  verdict->supported = false;
  snprintf(verdict->reason, sizeof verdict->reason, format, what);
  return false;
}

static bool check_value(const clv_device *device, const clv_graph_view *graph, uint32_t v, clv_verdict *verdict) {
  if (v == CLV_NO_VALUE) return true;
  clv_value_info value = {.struct_size = sizeof value};
  device->host->graph_value(graph, v, &value);
  if (value.type.dtype == CLV_STRING || clv__dtype_is_in(value.type.dtype, CLV__DTYPES_SMALL)) {
    return refuse(verdict, "dtype %s", clv_dtype_name(value.type.dtype));
  }
  if (value.type.dtype == CLV_DTYPE_NONE) return refuse(verdict, "the type of '%.120s' is unknown", value.name);
  if (!device->info.static_shapes_only || clv__tensor_is_static(&value.type)) return true;
  return refuse(verdict, "'%.120s' has a dynamic shape", value.name);
}

/* Rejects values that cannot be passed to a framework. */
static bool check_values(const clv_device *device, const clv_graph_view *graph, uint32_t node, clv_verdict *verdict) {
  clv_node_info info = {.struct_size = sizeof info};
  device->host->graph_node(graph, node, &info);
  for (uint32_t i = 0; i < info.input_count; ++i) {
    if (!check_value(device, graph, info.inputs[i], verdict)) return false;
  }
  for (uint32_t i = 0; i < info.output_count; ++i) {
    if (!check_value(device, graph, info.outputs[i], verdict)) return false;
  }
  return true;
}

static clv_status try_part(clv_device *device, const clv_graph_view *part, clv_error *error) {
  const clv__framework *framework = device->framework;
  if (framework->node_try != NULL) return framework->node_try(device->handle, device->host, part, error);
  const clv_compile_options options = {.struct_size = sizeof options};
  void *model = NULL;
  clv_status status = framework->model_compile(device->handle, device->host, part, &options, &model, error);
  if (status == CLV_OK) framework->model_destroy(model);
  return status;
}

/* Copies the error message as one line. */
static void take_reason(clv_verdict *verdict, const clv_error *error, clv_status status) {
  const char *text = error->message[0] != '\0' ? error->message : clv_status_name(status);
  snprintf(verdict->reason, sizeof verdict->reason, "%.*s", (int)sizeof verdict->reason - 1, text);
  for (char *at = verdict->reason; *at != '\0'; ++at) {
    if ((unsigned char)*at < ' ') *at = ' ';
  }
}

void clv__framework_supports(clv_device *device, const clv_graph_view *graph, uint32_t node, clv_verdict *verdict) {
  const clv__framework *framework = device->framework;
  const clv_host *host = device->host;
  bool is_sure = false;
  clv__hash signature;
  *verdict = (clv_verdict){.supported = true};
  if (!check_values(device, graph, node, verdict)) return;
  if (!framework->may_support(device->handle, graph, node, &is_sure, verdict)) {
    verdict->supported = false;
    return;
  }
  *verdict = (clv_verdict){.supported = true};
  if (is_sure) return;
  clv__verdict_signature(host, graph, node, device->info.static_shapes_only, &signature);
  if (clv__verdicts_find(&device->verdicts, &signature, verdict)) return;
  clv_graph_view *part = NULL;
  clv_error error = {0};
  clv_status status = host->graph_part(host->self, graph, &node, 1, &part, &error);
  /* A part without outputs is accepted without a trial, because compiling it would prove nothing. */
  bool is_read = status == CLV_OK && host->graph_output_count(part) > 0;
  if (is_read) status = try_part(device, part, &error);
  host->graph_part_close(host->self, part);
  verdict->supported = status == CLV_OK;
  if (status != CLV_OK) take_reason(verdict, &error, status);
  if (is_read && status != CLV_OUT_OF_MEMORY) clv__verdicts_add(&device->verdicts, &signature, verdict);
}
