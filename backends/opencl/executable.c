/* Executables. An executable contains a copy of its partition as an ONNX model, which outlives the host's graph view and can be
 * saved. Its nodes and values are read into arrays. The model may come from an untrusted file, so all code here must be safe for
 * any model. */
#include "backends/common/host.h"
#include "variant.h"

#include <stdio.h>

/* ---- Reading the model ---- */

static clv_status allocate_tables(clv_executable *e, clv_error *error) {
  clv__arena *arena = &e->arena;
  e->nodes = clv__arena_allocate_zero(arena, e->node_count, sizeof *e->nodes);
  e->values = clv__arena_allocate_zero(arena, e->value_count, sizeof *e->values);
  e->inputs = clv__arena_allocate_zero(arena, e->input_count, sizeof *e->inputs);
  e->outputs = clv__arena_allocate_zero(arena, e->output_count, sizeof *e->outputs);
  e->weights = clv__arena_allocate_zero(arena, e->weight_count, sizeof *e->weights);
  e->weight_names = clv__arena_allocate_zero(arena, e->weight_count, sizeof *e->weight_names);
  e->input_types = clv__arena_allocate_zero(arena, e->input_count, sizeof *e->input_types);
  if (e->nodes == NULL || e->values == NULL || e->inputs == NULL || e->outputs == NULL || e->weights == NULL ||
      e->weight_names == NULL || e->input_types == NULL) {
    return clv__error_memory(error, (size_t)e->value_count * sizeof *e->values);
  }
  return CLV_OK;
}

static clv_status refuse(const clv_executable *e, uint32_t value, const char *what, clv_error *error) {
  return clv__error_set(error, CLV_INVALID_MODEL, "value '%s' %s", e->values[value].name, what);
}

/* Copies a constant's bytes to aligned memory, because the view's bytes may be unaligned. */
static clv_status copy_constant(clv_executable *e, uint32_t value, clv_error *error) {
  clv_tensor *type = &e->values[value].declared;
  size_t size_bytes;
  if (type->dtype == CLV_STRING) return refuse(e, value, "contains strings, which device memory cannot hold", error);
  if (!clv__tensor_size_bytes(type, &size_bytes)) return refuse(e, value, "has an unknown size, or is too large", error);
  void *copy = clv__arena_allocate_data(&e->arena, size_bytes);
  if (copy == NULL) return clv__error_memory(error, size_bytes);
  if (size_bytes > 0) memcpy(copy, type->data, size_bytes);
  type->data = copy;
  return CLV_OK;
}

static clv_status read_values(clv_executable *e, const clv_tensor *input_types, clv_error *error) {
  const clv_host *host = e->device->host;
  for (uint32_t v = 0; v < e->value_count; ++v) {
    clv_value_info info = {.struct_size = sizeof info};
    host->graph_value(e->view, v, &info);
    e->values[v] = (clv__opencl_value){.name = info.name != NULL ? info.name : "",
                                       .declared = info.type,
                                       .weight = CLV__OPENCL_NONE,
                                       .input = CLV__OPENCL_NONE,
                                       .output = CLV__OPENCL_NONE};
    if (info.type.data != NULL) CLV__TRY(copy_constant(e, v, error));
  }
  for (uint32_t i = 0; i < e->input_count + e->weight_count; ++i) {
    uint32_t v = host->graph_input(e->view, i);
    clv__opencl_value *value = &e->values[v];
    if (value->input != CLV__OPENCL_NONE || value->weight != CLV__OPENCL_NONE)
      return refuse(e, v, "appears twice as an input", error);
    value->declared.data = NULL;
    if (i < e->input_count) {
      e->inputs[i] = v;
      e->input_types[i] = value->declared = input_types[i];
      e->input_types[i].data = value->declared.data = NULL;
      value->input = i;
    } else {
      size_t size_bytes;
      if (value->declared.dtype == CLV_STRING || !clv__tensor_size_bytes(&value->declared, &size_bytes)) {
        return refuse(e, v, "is a weight that contains strings, has an unknown size, or is too large", error);
      }
      e->weights[i - e->input_count] = v;
      e->weight_names[i - e->input_count] = value->name;
      value->weight = i - e->input_count;
    }
  }
  for (uint32_t o = 0; o < e->output_count; ++o) {
    e->outputs[o] = host->graph_output(e->view, o);
    if (e->values[e->outputs[o]].output == CLV__OPENCL_NONE) e->values[e->outputs[o]].output = o;
  }
  return CLV_OK;
}

/* Checks that every value is written before it is read, and only once. */
static clv_status check_order(clv_executable *e, clv_error *error) {
  bool *there = clv__arena_allocate_zero(&e->arena, e->value_count, sizeof *there);
  if (there == NULL) return clv__error_memory(error, e->value_count);
  for (uint32_t v = 0; v < e->value_count; ++v) {
    const clv__opencl_value *value = &e->values[v];
    there[v] = value->declared.data != NULL || value->input != CLV__OPENCL_NONE || value->weight != CLV__OPENCL_NONE;
  }
  for (uint32_t n = 0; n < e->node_count; ++n) {
    const clv_node_info *node = &e->nodes[n];
    for (uint32_t i = 0; i < node->input_count; ++i) {
      if (node->inputs[i] != CLV_NO_VALUE && !there[node->inputs[i]])
        return refuse(e, node->inputs[i], "is read, but no earlier node computes it", error);
    }
    for (uint32_t i = 0; i < node->output_count; ++i) {
      if (node->outputs[i] == CLV_NO_VALUE) continue;
      /* A folded value already has data, although its node is still in the graph. */
      if (there[node->outputs[i]] && e->values[node->outputs[i]].declared.data == NULL) {
        return refuse(e, node->outputs[i], "is computed twice, or is both computed and an input", error);
      }
      there[node->outputs[i]] = true;
    }
  }
  for (uint32_t o = 0; o < e->output_count; ++o) {
    if (!there[e->outputs[o]]) return refuse(e, e->outputs[o], "is an output that no node computes", error);
  }
  return CLV_OK;
}

static clv_status read_model(clv_executable *e, const clv_tensor *input_types, uint32_t input_count, clv_error *error) {
  const clv_host *host = e->device->host;
  CLV__TRY(host->graph_open(host->self, e->onnx, e->onnx_bytes, &e->view, error));
  uint32_t inputs = host->graph_input_count(e->view);
  if (inputs < input_count)
    return clv__error_set(error, CLV_INVALID_MODEL, "the graph has %u inputs; expected at least %u", inputs, input_count);
  e->node_count = host->graph_node_count(e->view);
  e->value_count = host->graph_value_count(e->view);
  e->output_count = host->graph_output_count(e->view);
  e->input_count = input_count;
  e->weight_count = inputs - input_count;
  CLV__TRY(allocate_tables(e, error));
  CLV__TRY(read_values(e, input_types, error));
  for (uint32_t n = 0; n < e->node_count; ++n) {
    e->nodes[n].struct_size = sizeof e->nodes[n];
    host->graph_node(e->view, n, &e->nodes[n]);
  }
  return check_order(e, error);
}

/* ---- Creation and destruction ---- */

static void destroy(clv_device *device, void *self) {
  clv_executable *e = self;
  clv__opencl_variant_destroy(e->variant);
  if (e->view != NULL) device->host->graph_close(device->host->self, e->view);
  clv__arena_finish(&e->arena);
  clv__release(device->allocator, e->onnx);
  clv__object_free(&device->objects, e);
}

void clv__opencl_executable_destroy(clv_device *device, clv_executable *executable) {
  if (executable != NULL) destroy(device, executable);
}

static bool all_static(const clv_tensor *types, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    if (!clv__tensor_is_static(&types[i])) return false;
  }
  return true;
}

clv_status clv__opencl_executable_open(clv_device *device, void *onnx, size_t onnx_bytes, const clv_tensor *input_types,
                                       uint32_t input_count, clv_executable **out, clv_error *error) {
  *out = NULL;
  clv_executable *e = clv__object_new(&device->objects, sizeof *e, destroy);
  if (e == NULL) {
    clv__release(device->allocator, onnx);
    return clv__error_memory(error, sizeof *e);
  }
  e->device = device;
  e->onnx = onnx;
  e->onnx_bytes = onnx_bytes;
  clv__arena_init(&e->arena, device->allocator);
  clv_status status = read_model(e, input_types, input_count, error);
  if (status == CLV_OK && all_static(e->input_types, e->input_count)) {
    status = clv__opencl_variant_make(e, e->input_types, &e->variant, error);
  }
  if (status != CLV_OK) {
    destroy(device, e);
    return status;
  }
  *out = e;
  return CLV_OK;
}

clv_status clv__opencl_compile(clv_device *device, const clv_graph_view *graph, clv_executable **out, clv_error *error) {
  *out = NULL;
  clv__arena arena;
  clv__arena_init(&arena, device->allocator);
  clv_executable *e = NULL;
  clv_tensor *types = NULL;
  uint32_t count = 0;
  void *onnx = NULL;
  size_t onnx_bytes = 0;
  clv_status status = clv__host_input_types(device->host, graph, &arena, &types, &count, error);
  if (status == CLV_OK) {
    status = device->host->graph_to_onnx(graph, CLV__OPENCL_INLINE_BYTES, &onnx, &onnx_bytes, error);
  }
  if (status == CLV_OK) status = clv__opencl_executable_open(device, onnx, onnx_bytes, types, count, &e, error);
  if (status == CLV_OK && e->variant != NULL) status = clv__opencl_variant_finish(e->variant, error);
  clv__arena_finish(&arena);
  if (status == CLV_OK)
    *out = e;
  else
    clv__opencl_executable_destroy(device, e);
  return status;
}

void clv__opencl_executable_info(clv_device *device, clv_executable *e, clv_executable_info *info) {
  (void)device;
  clv_executable_info filled = {
      .struct_size = info->struct_size,
      .weight_count = e->weight_count,
      .weights = e->weight_names,
      .resident_bytes = e->variant != NULL ? e->variant->constant_bytes : 0,
      .scratch_bytes = e->variant != NULL ? e->variant->scratch_bytes : 0,
  };
  memcpy(info, &filled, info->struct_size < sizeof filled ? info->struct_size : sizeof filled);
}
