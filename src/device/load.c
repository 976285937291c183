/* The public functions for loading a graph in a context. */
#include "cleave/graph.h"

#include "device/device.h"
#include "formats/irjson/irjson.h"
#include "formats/onnx/onnx.h"

static clv_status load_json(clv_context *context, const char *path, const clv__file_map *map, const char *const *params,
                            uint32_t param_count, clv_graph **graph, clv_error *error) {
  const clv_allocator *allocator = clv__context_allocator(context);
  clv__params *opened = NULL;
  if (param_count > 0) CLV__TRY(clv__params_open(allocator, params, param_count, &opened, error));
  clv_status status = clv__irjson_load(allocator, path, map->data, map->size_bytes, opened, graph, error);
  clv__params_close(opened);
  return status;
}

clv_status clv_graph_load_params(clv_context *context, const char *path, const char *const *params, uint32_t param_count,
                                 clv_graph **graph, clv_error *error) {
  if (context == NULL || path == NULL || graph == NULL || (params == NULL && param_count > 0)) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "context, path, params and graph must not be NULL");
  }
  *graph = NULL;
  for (uint32_t i = 0; i < param_count; ++i) {
    if (params[i] == NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "params[%u] must not be NULL", i);
  }
  clv__file_map map;
  CLV__TRY(clv__file_map_open(path, &map, error));
  bool is_json = clv__irjson_recognise(map.data, map.size_bytes);
  clv_status status = CLV_OK;
  if (is_json) {
    status = load_json(context, path, &map, params, param_count, graph, error);
  } else if (param_count > 0) {
    status = clv__error_set(error, CLV_INVALID_ARGUMENT,
                            "%s: an ONNX model contains its weights, so no weight files can be given", path);
  }
  clv__file_map_close(&map);
  if (status == CLV_OK && !is_json) status = clv__onnx_load_file(clv__context_allocator(context), path, graph, error);
  if (status == CLV_OK) status = clv__graph_check_files(*graph, error);
  if (status == CLV_OK) (*graph)->fold_bytes = clv__context_settings(context)->fold_bytes;
  if (status != CLV_OK) {
    clv__graph_destroy(*graph);
    *graph = NULL;
  }
  return status;
}

clv_status clv_graph_load(clv_context *context, const char *path, clv_graph **graph, clv_error *error) {
  return clv_graph_load_params(context, path, NULL, 0, graph, error);
}

clv_status clv_graph_load_memory(clv_context *context, const void *data, size_t size_bytes, clv_ownership ownership,
                                 clv_graph **graph, clv_error *error) {
  if (context == NULL || data == NULL || graph == NULL) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "context, data and graph must not be NULL");
  }
  *graph = NULL;
  if (clv__irjson_recognise(data, size_bytes))
    CLV__TRY(clv__irjson_load(clv__context_allocator(context), NULL, data, size_bytes, NULL, graph, error));
  else
    CLV__TRY(clv__onnx_load_memory(clv__context_allocator(context), data, size_bytes, ownership == CLV_COPY, graph, error));
  (*graph)->fold_bytes = clv__context_settings(context)->fold_bytes;
  return CLV_OK;
}

clv_status clv_graph_load_memory_params(clv_context *context, const void *data, size_t size_bytes, const char *const *names,
                                        const clv_tensor *tensors, uint32_t tensor_count, clv_ownership ownership,
                                        clv_graph **graph, clv_error *error) {
  if (context == NULL || data == NULL || graph == NULL || (tensor_count > 0 && (names == NULL || tensors == NULL))) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "context, data, names, tensors and graph must not be NULL");
  }
  *graph = NULL;
  for (uint32_t i = 0; i < tensor_count; ++i) {
    if (names[i] == NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "names[%u] must not be NULL", i);
  }
  if (!clv__irjson_recognise(data, size_bytes)) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT,
                          "the model in memory is not IR JSON: other models contain their weights (clv_graph_load_memory())");
  }
  if (tensor_count == 0) return clv_graph_load_memory(context, data, size_bytes, CLV_COPY, graph, error);
  const clv_allocator *allocator = clv__context_allocator(context);
  clv__params *params;
  CLV__TRY(clv__params_wrap(allocator, names, tensors, tensor_count, ownership, &params, error));
  clv_status status = clv__irjson_load(allocator, NULL, data, size_bytes, params, graph, error);
  clv__params_close(params);
  if (status == CLV_OK) (*graph)->fold_bytes = clv__context_settings(context)->fold_bytes;
  return status;
}

void clv_graph_destroy(clv_graph *graph) {
  clv__graph_destroy(graph);
}

uint32_t clv_graph_input_count(const clv_graph *graph) {
  return graph == NULL ? 0 : graph->input_count;
}
uint32_t clv_graph_output_count(const clv_graph *graph) {
  return graph == NULL ? 0 : graph->output_count;
}
const char *clv_graph_input_name(const clv_graph *graph, uint32_t index) {
  return index < clv_graph_input_count(graph) ? graph->values[graph->inputs[index]].name : NULL;
}
const char *clv_graph_output_name(const clv_graph *graph, uint32_t index) {
  return index < clv_graph_output_count(graph) ? graph->values[graph->outputs[index]].name : NULL;
}
const clv_tensor *clv_graph_input_type(const clv_graph *graph, uint32_t index) {
  return index < clv_graph_input_count(graph) ? &graph->values[graph->inputs[index]].type : NULL;
}
const clv_tensor *clv_graph_output_type(const clv_graph *graph, uint32_t index) {
  return index < clv_graph_output_count(graph) ? &graph->values[graph->outputs[index]].type : NULL;
}
const char *clv_graph_symbol_name(const clv_graph *graph, uint32_t symbol) {
  return graph == NULL ? NULL : clv__graph_symbol_name(graph, symbol);
}
