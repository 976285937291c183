/* Compiles a partition, which is passed to OpenVINO as an ONNX model in memory. Then matches its inputs and outputs to the ports
 * of the compiled model. OpenVINO may have dropped inputs that no node reads. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/tensor/tensor.h"
#include "device.h"

/* ---- Ports ---- */

static bool is_open(ov_partial_shape shape) {
  if (shape.rank.min != shape.rank.max) return true;
  for (int64_t i = 0; i < shape.rank.max; ++i) {
    if (shape.dims[i].min != shape.dims[i].max) return true;
  }
  return false;
}

/* Whether a shape is compatible with the host's: every dim that the host knows must lie within OpenVINO's bounds. */
static bool agrees(ov_partial_shape shape, const clv_tensor *type) {
  if (type->rank == CLV_RANK_UNKNOWN || shape.rank.min != shape.rank.max) return true;
  if (shape.rank.max != type->rank) return false;
  for (int32_t i = 0; i < type->rank; ++i) {
    if (type->dims[i] < 0) continue;
    if (type->dims[i] < shape.dims[i].min || (shape.dims[i].max >= 0 && type->dims[i] > shape.dims[i].max)) return false;
  }
  return true;
}

static void shape_text(ov_partial_shape shape, char *text, size_t text_bytes) {
  if (shape.rank.min != shape.rank.max) {
    snprintf(text, text_bytes, "[...]");
    return;
  }
  size_t used = (size_t)snprintf(text, text_bytes, "[");
  for (int64_t i = 0; i < shape.rank.max && used + 24 < text_bytes; ++i) {
    bool known = shape.dims[i].min == shape.dims[i].max;
    used += (size_t)(known ? snprintf(text + used, text_bytes - used, "%s%" PRId64, i > 0 ? "," : "", shape.dims[i].min)
                           : snprintf(text + used, text_bytes - used, "%s?", i > 0 ? "," : ""));
  }
  snprintf(text + used, text_bytes - used, "]");
}

/* Checks dtype and shape, because the host decides the types that cross a partition boundary. */
static clv_status check_port(const clv__openvino *ov, clv__openvino_port *port, const char *what, clv_error *error) {
  int type = 0;
  ov_partial_shape shape = {{0, 0}, NULL};
  CLV__OPENVINO_TRY(ov, error, port_get_element_type, port->port, &type);
  CLV__OPENVINO_TRY(ov, error, port_get_partial_shape, port->port, &shape);
  port->is_open = is_open(shape);
  clv_status status = CLV_OK;
  if (type != clv__openvino_type(port->type.dtype) || type == 0) {
    char text[24];
    clv__openvino_type_text(type, text);
    status = clv__error_set(error, CLV_NOT_SUPPORTED, "OpenVINO has %s '%s' as %s; expected %s", what, port->name, text,
                            clv_dtype_name(port->type.dtype));
  } else if (!agrees(shape, &port->type)) {
    char text[160], expected[160];
    shape_text(shape, text, sizeof text);
    clv__tensor_text(&port->type, expected, sizeof expected);
    status =
        clv__error_set(error, CLV_NOT_SUPPORTED, "OpenVINO has %s '%s' as %s; expected %s", what, port->name, text, expected);
  }
  ov->partial_shape_free(&shape);
  return status;
}

/* Finds a port by position: ports are in the order of the partition's inputs and outputs, without the dropped inputs. Names do
 * not help here, because compiling removes some. */
static clv_status find_port(clv__openvino_model *model, bool is_output, uint32_t index, uint32_t at, clv_error *error) {
  const clv__openvino *ov = model->device->ov;
  clv__openvino_port *port = &model->ports[index];
  if (is_output) {
    CLV__OPENVINO_TRY(ov, error, compiled_model_output_by_index, model->compiled, at, &port->port);
  } else {
    CLV__OPENVINO_TRY(ov, error, compiled_model_input_by_index, model->compiled, at, &port->port);
  }
  return check_port(ov, port, is_output ? "output" : "input", error);
}

/* Whether two ports are the same tensor. A tensor may have several names, but no name belongs to two tensors. OpenVINO returns
 * the same name for a tensor each time. So the ports are the same tensor exactly if the returned names are equal. */
static bool is_same_tensor(const clv__openvino *ov, const ov_port *a, const ov_port *b) {
  char *name_a = NULL, *name_b = NULL;
  bool same = a != NULL && b != NULL && ov->port_get_any_name(a, &name_a) == 0 && ov->port_get_any_name(b, &name_b) == 0 &&
              strcmp(name_a, name_b) == 0;
  if (name_a != NULL) ov->free(name_a);
  if (name_b != NULL) ov->free(name_b);
  return same;
}

/* An output may be the same tensor as an input (passed through by a Dropout, for example) or as another output. OpenVINO has
 * memory for such a tensor only once. If each port of the tensor gets its own memory, OpenVINO confuses them and overwrites
 * inputs. So only the first of these ports is bound, and its data is copied to the others. */
static void find_copy(clv__openvino_model *model, uint32_t output) {
  clv__openvino_port *port = &model->ports[output];
  for (uint32_t i = 0; i < output && !port->is_copy; ++i) {
    port->is_copy = is_same_tensor(model->device->ov, model->ports[i].port, port->port);
    port->of = i;
  }
}

clv_status clv__openvino_model_find_ports(clv__openvino_model *model, clv_error *error) {
  const clv__openvino *ov = model->device->ov;
  size_t inputs = 0, outputs = 0;
  uint32_t kept = 0;
  CLV__OPENVINO_TRY(ov, error, compiled_model_inputs_size, model->compiled, &inputs);
  CLV__OPENVINO_TRY(ov, error, compiled_model_outputs_size, model->compiled, &outputs);
  for (uint32_t i = 0; i < model->input_count; ++i) kept += !model->ports[i].is_dropped;
  if (inputs != kept || outputs != model->output_count) {
    return clv__error_set(error, CLV_NOT_SUPPORTED,
                          "expected a model with %u inputs and %u outputs, but the one that OpenVINO compiled has %zu and %zu",
                          kept, model->output_count, inputs, outputs);
  }
  for (uint32_t i = 0, at = 0; i < model->input_count; ++i) {
    if (!model->ports[i].is_dropped) CLV__TRY(find_port(model, false, i, at++, error));
  }
  for (uint32_t i = 0; i < model->output_count; ++i) CLV__TRY(find_port(model, true, model->input_count + i, i, error));
  for (uint32_t i = 0; i < model->output_count; ++i) find_copy(model, model->input_count + i);
  return CLV_OK;
}

/* ---- Models ---- */

clv__openvino_model *clv__openvino_model_new(clv__openvino_device *device, uint32_t input_count, uint32_t output_count) {
  clv__openvino_model *model = clv__allocate_zero(device->allocator, sizeof *model);
  if (model == NULL) return NULL;
  clv__arena_init(&model->arena, device->allocator);
  model->device = device;
  model->input_count = input_count;
  model->output_count = output_count;
  model->ports = clv__arena_allocate_zero(&model->arena, (size_t)input_count + output_count, sizeof *model->ports);
  if (model->ports != NULL) return model;
  clv__openvino_model_destroy(model);
  return NULL;
}

void clv__openvino_model_destroy(void *self) {
  clv__openvino_model *model = self;
  if (model == NULL) return;
  const clv__openvino *ov = model->device->ov;
  for (uint32_t i = 0; model->ports != NULL && i < model->input_count + model->output_count; ++i) {
    if (model->ports[i].port != NULL) ov->output_const_port_free(model->ports[i].port);
  }
  if (model->compiled != NULL) ov->compiled_model_free(model->compiled);
  clv__arena_finish(&model->arena);
  clv__release(model->device->allocator, model);
}

/* Sets the names and types of inputs and outputs. */
static clv_status describe_ports(clv__openvino_model *model, const clv_graph_view *graph, clv_error *error) {
  const clv_host *host = model->device->host;
  for (uint32_t i = 0; i < model->input_count + model->output_count; ++i) {
    bool is_output = i >= model->input_count;
    uint32_t value = is_output ? host->graph_output(graph, i - model->input_count) : host->graph_input(graph, i);
    clv_value_info info = {.struct_size = sizeof info};
    host->graph_value(graph, value, &info);
    model->ports[i].type = info.type;
    model->ports[i].type.data = NULL;
    model->ports[i].name = clv__arena_string(&model->arena, info.name, strlen(info.name));
    if (model->ports[i].name == NULL) return clv__error_memory(error, strlen(info.name));
  }
  return CLV_OK;
}

/* Finds the inputs that OpenVINO dropped when it read the model. Called before compilation, which may remove their names. */
static clv_status find_dropped(clv__openvino_model *model, const ov_model *read, clv_error *error) {
  const clv__openvino *ov = model->device->ov;
  size_t inputs = 0, kept = 0;
  CLV__OPENVINO_TRY(ov, error, model_inputs_size, read, &inputs);
  if (inputs == model->input_count) return CLV_OK;
  for (uint32_t i = 0; i < model->input_count; ++i) {
    ov_port *port = NULL;
    model->ports[i].is_dropped = ov->model_const_input_by_name(read, model->ports[i].name, &port) != 0;
    if (model->ports[i].is_dropped) continue;
    ov->output_const_port_free(port);
    ++kept;
  }
  if (kept == inputs) return CLV_OK;
  return clv__error_set(error, CLV_NOT_SUPPORTED, "OpenVINO kept %zu of %u inputs, but only %zu have the expected names", inputs,
                        model->input_count, kept);
}

/* Compiles in bf16 if that was requested and the device supports it. Otherwise compiles with the device's settings. */
static int compile_read(const clv__openvino_model *model, ov_model *read, bool in_bf16, ov_compiled_model **compiled) {
  const clv__openvino_device *device = model->device;
  if (in_bf16 &&
      device->ov->core_compile_model(device->core, read, device->name, 2, compiled, "INFERENCE_PRECISION_HINT", "bf16") == 0) {
    return 0;
  }
  return device->ov->core_compile_model(device->core, read, device->name, 0, compiled);
}

/* Compiles ONNX bytes. Afterwards OpenVINO has its own copy of the bytes. */
static clv_status compile_onnx(clv__openvino_model *model, const void *data, size_t size_bytes, bool in_bf16, clv_error *error) {
  const clv__openvino_device *device = model->device;
  ov_model *read = NULL;
  CLV__OPENVINO_TRY(device->ov, error, core_read_model_from_memory_buffer, device->core, data, size_bytes, NULL, &read);
  clv_status status = find_dropped(model, read, error);
  if (status == CLV_OK) {
    int code = compile_read(model, read, in_bf16, &model->compiled);
    if (code != 0) status = clv__openvino_failed(device->ov, error, "ov_core_compile_model", code);
  }
  device->ov->model_free(read);
  return status;
}

typedef clv_status (*write_onnx_fn)(const clv_host *host, const clv_graph_view *graph, void **data, size_t *size_bytes,
                                    clv_error *error);

static clv_status compile(clv__openvino_device *device, const clv_graph_view *graph, write_onnx_fn write_onnx, bool in_bf16,
                          void **out, clv_error *error) {
  const clv_host *host = device->host;
  void *data = NULL;
  size_t size_bytes = 0;
  *out = NULL;
  clv__openvino_model *model = clv__openvino_model_new(device, host->graph_input_count(graph), host->graph_output_count(graph));
  if (model == NULL) return clv__error_memory(error, sizeof *model);
  clv_status status;
  CLV__TRY_GOTO(describe_ports(model, graph, error));
  CLV__TRY_GOTO(write_onnx(host, graph, &data, &size_bytes, error));
  CLV__TRY_GOTO(compile_onnx(model, data, size_bytes, in_bf16, error));
  CLV__TRY_GOTO(clv__openvino_model_find_ports(model, error));
  *out = model;
cleanup:
  clv__release(host->allocator, data);
  if (status != CLV_OK) clv__openvino_model_destroy(model);
  return status;
}

clv_status clv__openvino_model_compile(void *device, const clv_host *host, const clv_graph_view *graph,
                                       const clv_compile_options *options, void **model, clv_error *error) {
  (void)host;
  /* the other compile options have no effect: results are always deterministic, and there is nothing to tune */
  return compile(device, graph, clv__framework_onnx, options->precision == CLV_BF16, model, error);
}

/* First compiles the node with its large constants as inputs, which is quick. If that fails, perhaps because OpenVINO needs
 * them as constants, compiles the node again with all constants inside. */
clv_status clv__openvino_node_try(void *device, const clv_host *host, const clv_graph_view *part, clv_error *error) {
  (void)host;
  void *model = NULL;
  clv_status status = compile(device, part, clv__framework_onnx_trial, false, &model, NULL);
  if (status != CLV_OK) status = compile(device, part, clv__framework_onnx, false, &model, error);
  if (status == CLV_OK) clv__openvino_model_destroy(model);
  return status;
}
