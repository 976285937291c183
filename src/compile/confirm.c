/* See confirm.h. The partition is written and opened as the backend did when it compiled the executable. So both graphs have
 * the same form: if they compute the same, they differ only in their names. */
#include "compile/confirm.h"

#include <string.h>

#include "compile/key.h"
#include "device/backends.h"
#include "formats/onnx/onnx.h"

static clv_status refuse(const char *what, clv_error *error) {
  return clv__error_set(error, CLV_INVALID_MODEL, "the stored executable computes another graph: other %s", what);
}

static clv_status compare_graphs(const clv_graph_view *asked, const clv_graph_view *stored, clv_error *error) {
  static const char *const words[CLV__KEY_PARTS] = {"nodes", "shapes or dtypes", "constants"};
  clv__key keys[2];
  clv__key_make_graph(asked, &keys[0]);
  clv__key_make_graph(stored, &keys[1]);
  CLV__TRY(clv__key_add_constants(asked, &keys[0], error));
  CLV__TRY(clv__key_add_constants(stored, &keys[1], error));
  const uint32_t parts = clv__key_differences(&keys[0], &keys[1]);
  return parts == 0 ? CLV_OK : refuse(words[__builtin_ctz(parts)], error);
}

static const char *name_of_input(const clv_graph_view *whole, uint32_t input) {
  return whole->graph->values[whole->values[whole->inputs[input]]].name;
}

/* Weights are inputs of both graphs, at the same positions. Executables ask for them by the names in their own graph. */
static clv_status compare_weights(const clv_graph_view *asked, const clv_graph_view *stored, const clv_graph_view *view,
                                  const clv_executable_info *info, const uint32_t *weights, clv_error *error) {
  for (uint32_t w = 0, at = view->input_count; w < info->weight_count; ++w, ++at) {
    uint32_t tried = 0; /* usually 0 at the end, because the weights are in order */
    for (; tried < stored->input_count; ++tried, ++at) {
      if (at >= stored->input_count) at = 0;
      if (strcmp(name_of_input(stored, at), info->weights[w]) == 0) break;
    }
    if (tried == stored->input_count) return refuse("weights", error);
    const char *name = view->graph->values[view->values[weights[w]]].name;
    if (strcmp(name_of_input(asked, at), name) != 0) return refuse("weights", error);
  }
  return CLV_OK;
}

clv_status clv__executable_confirm(const clv__device *device, const clv_executable *executable, const clv_graph_view *view,
                                   const clv_executable_info *info, const uint32_t *weights, clv_error *error) {
  const clv_save_slots *save = device->backend->save;
  if (!CLV__GROUP_HAS(save, graph) || save->graph == NULL) return CLV_OK;
  size_t inline_limit_bytes = 0, size_bytes;
  const clv_graph_view *stored = save->graph(device->handle, executable, &inline_limit_bytes);
  if (stored == NULL) return CLV_OK;
  const clv_allocator *allocator = view->graph->allocator;
  void *onnx = NULL;
  clv_graph *graph = NULL;
  clv_status status = clv__onnx_write(view, inline_limit_bytes, allocator, &onnx, &size_bytes, error);
  if (status == CLV_OK) status = clv__onnx_load_memory(allocator, onnx, size_bytes, false, &graph, error);
  if (status == CLV_OK) status = compare_graphs(graph->whole, stored, error);
  if (status == CLV_OK) status = compare_weights(graph->whole, stored, view, info, weights, error);
  clv__graph_destroy(graph);
  clv__release(allocator, onnx);
  return status;
}
