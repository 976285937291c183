/* The context: allocator, log, and the services for backends. */
#include "cleave/context.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "analysis/evaluate.h"
#include "analysis/shapes.h"
#include "base/options.h"
#include "device/backends.h"
#include "device/device.h"
#include "device/remembered.h"
#include "formats/onnx/onnx.h"
#include "graph/own.h"

struct clv_context {
  const clv_allocator *allocator;
  void (*log)(void *user_data, int level, const char *text);
  void *log_user_data;
  clv_host host;
  clv__settings settings;
  clv__remembered remembered;
  clv__backends backends;
};

const char *clv_version(void) {
  return CLEAVE_VERSION;
}

const clv_allocator *clv__context_allocator(const clv_context *context) {
  return context->allocator;
}
const clv__settings *clv__context_settings(const clv_context *context) {
  return &context->settings;
}
const clv_host *clv__context_host(const clv_context *context) {
  return &context->host;
}
clv__cache *clv__context_cache(clv_context *context, const char **reason) {
  bool is_new;
  clv__cache *cache = clv__remembered_cache(&context->remembered, &context->settings, context->allocator, reason, &is_new);
  if (is_new) clv__context_log(context, 1, "executables are not kept: %s", *reason);
  return cache;
}
clv__backends *clv__context_backends(clv_context *context) {
  return &context->backends;
}
uint32_t clv__context_backend_count(const clv_context *context) {
  return context->backends.count;
}
const clv_backend *clv__context_backend(const clv_context *context, uint32_t index) {
  return &context->backends.items[index].table;
}
const clv_backend *clv__context_find(const clv_context *context, const char *device_name) {
  return clv__backends_find(&context->backends, device_name, NULL);
}

void clv__context_log(const clv_context *context, int level, const char *format, ...) {
  if (context->log == NULL) return;
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  context->log(context->log_user_data, level, text);
}

/* ---- Host services ---- */

bool clv__context_is_logged(const clv_context *context) {
  return context->log != NULL;
}

static void host_log(void *self, int level, const char *text) {
  const clv_context *context = self;
  if (context->log != NULL) context->log(context->log_user_data, level, text);
}

static clv_status host_infer_node(const clv_graph_view *graph, uint32_t node, const clv_tensor *inputs, clv_tensor *outputs,
                                  clv_error *error) {
  return clv__node_infer(graph->graph, graph->nodes[node], inputs, outputs, error);
}

static clv_status host_evaluate_node(const clv_graph_view *graph, uint32_t node, const clv_tensor *inputs, clv_tensor *outputs,
                                     clv_error *error) {
  return clv__node_evaluate(graph->graph, graph->nodes[node], inputs, outputs, graph->graph->allocator, error);
}

static clv_status host_evaluate_node_with(const clv_graph_view *graph, uint32_t node, const clv_tensor *inputs,
                                          clv_tensor *outputs, const clv_evaluation *how, clv_error *error) {
  return clv__node_evaluate_with(graph->graph, graph->nodes[node], inputs, outputs, how, graph->graph->allocator, error);
}

static clv_status host_graph_to_onnx(const clv_graph_view *graph, size_t inline_limit_bytes, void **data, size_t *size_bytes,
                                     clv_error *error) {
  return clv__onnx_write(graph, inline_limit_bytes, graph->graph->allocator, data, size_bytes, error);
}

static clv_status host_graph_to_standard_onnx(const clv_graph_view *graph, size_t inline_limit_bytes, void **data,
                                              size_t *size_bytes, clv_error *error) {
  return clv__onnx_write_standard(graph, inline_limit_bytes, graph->graph->allocator, data, size_bytes, error);
}

static clv_status host_graph_open(void *self, const void *data, size_t size_bytes, clv_graph_view **graph, clv_error *error) {
  const clv_context *context = self;
  *graph = NULL;
  clv_graph *loaded = NULL;
  CLV__TRY(clv__onnx_load_memory(context->allocator, data, size_bytes, true, &loaded, error));
  *graph = (clv_graph_view *)loaded->whole;
  return CLV_OK;
}

static void host_graph_close(void *self, clv_graph_view *graph) {
  (void)self;
  if (graph != NULL) clv__graph_destroy((clv_graph *)graph->graph);
}

static void host_constant_copied(const clv_graph_view *graph, uint32_t value) {
  const clv_tensor *type = clv__view_type(graph, value);
  size_t size_bytes;
  if (type->data == NULL || !clv__tensor_size_bytes(type, &size_bytes)) return;
  clv__graph_drop_pages(graph->graph, type->data, size_bytes);
  for (const clv__file_map_list *fill = graph->fills; fill != NULL; fill = fill->next) {
    clv__file_map_drop(&fill->map, type->data, size_bytes);
  }
}

/* A part of a view, with its arena. */
typedef struct part_of_view {
  clv__arena arena;
  clv_graph_view view;
} part_of_view;

static void host_graph_part_close(void *self, clv_graph_view *part) {
  const clv_context *context = self;
  if (part == NULL) return;
  part_of_view *made = (part_of_view *)((char *)part - offsetof(part_of_view, view));
  clv__arena_finish(&made->arena);
  clv__release(context->allocator, made);
}

static clv_status host_graph_part(void *self, const clv_graph_view *graph, const uint32_t *nodes, uint32_t count,
                                  clv_graph_view **part, clv_error *error) {
  const clv_context *context = self;
  *part = NULL;
  part_of_view *made = clv__allocate_zero(context->allocator, sizeof *made);
  if (made == NULL) return clv__error_memory(error, sizeof *made);
  clv__arena_init(&made->arena, context->allocator);
  clv_node_id *ids = clv__arena_allocate_zero(&made->arena, count, sizeof *ids);
  clv_status status = ids == NULL ? clv__error_memory(error, count * sizeof *ids) : CLV_OK;
  for (uint32_t i = 0; status == CLV_OK && i < count; ++i) {
    if (nodes[i] >= graph->node_count || (i > 0 && nodes[i] <= nodes[i - 1])) {
      status = clv__error_set(error, CLV_INVALID_ARGUMENT,
                              "part of a view: node indices must ascend and be below %u, but entry %u is %u", graph->node_count,
                              i, nodes[i]);
    } else {
      ids[i] = graph->nodes[nodes[i]];
    }
  }
  clv_graph_view *view = NULL;
  if (status == CLV_OK) status = clv__view_create(graph->graph, graph->types, ids, count, NULL, &made->arena, &view, error);
  if (status != CLV_OK) {
    host_graph_part_close(self, &made->view);
    return status;
  }
  made->view = *view;
  made->view.fills = graph->fills;
  made->view.unstreamed = graph->unstreamed;
  *part = &made->view;
  return CLV_OK;
}

/* Returns the cache; NULL, with an error, if there is none. */
static clv__cache *open_cache(void *self, clv_error *error) {
  const char *reason;
  clv__cache *cache = clv__context_cache(self, &reason);
  if (cache == NULL) clv__error_set(error, CLV_NOT_FOUND, "%s", reason);
  return cache;
}

static clv_status host_recall(void *self, const char *backend, const char *key, void **data, size_t *size_bytes,
                              clv_error *error) {
  const clv_context *context = self;
  clv__cache *cache = open_cache(self, error);
  *data = NULL;
  *size_bytes = 0;
  return cache == NULL ? CLV_NOT_FOUND : clv__remembered_get(cache, context->allocator, backend, key, data, size_bytes, error);
}

static clv_status host_remember(void *self, const char *backend, const char *key, const void *data, size_t size_bytes,
                                clv_error *error) {
  clv__cache *cache = open_cache(self, error);
  return cache == NULL ? CLV_NOT_FOUND : clv__remembered_put(cache, backend, key, data, size_bytes, error);
}

static void fill_host(clv_context *context) {
  context->host = (clv_host){
      .abi_version = CLV_ABI_VERSION,
      .struct_size = sizeof context->host,
      .self = context,
      .allocator = context->allocator,
      .log = host_log,
      .infer_node = host_infer_node,
      .evaluate_node = host_evaluate_node,
      .graph_to_onnx = host_graph_to_onnx,
      .graph_open = host_graph_open,
      .graph_close = host_graph_close,
      .constant_copied = host_constant_copied,
      .graph_part = host_graph_part,
      .graph_part_close = host_graph_part_close,
      .recall = host_recall,
      .remember = host_remember,
      .evaluate_node_with = host_evaluate_node_with,
      .graph_to_standard_onnx = host_graph_to_standard_onnx,
  };
  clv__view_fill_host(&context->host);
}

clv_status clv_context_create(const clv_context_options *given, clv_context **out, clv_error *error) {
  if (out == NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "the output for the context must not be NULL");
  *out = NULL;
  clv_context_options options = CLV_CONTEXT_OPTIONS_INIT;
  CLV__TRY(clv__options_read(&options, sizeof options, given, "CLV_CONTEXT_OPTIONS_INIT", error));
  const clv_allocator *allocator = options.allocator != NULL ? options.allocator : clv__allocator_default();
  if (allocator->allocate == NULL || allocator->release == NULL) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "the allocator lacks allocate() or release()");
  }
  clv_context *context = clv__allocate_zero(allocator, sizeof *context);
  if (context == NULL) return clv__error_memory(error, sizeof *context);
  context->allocator = allocator;
  context->log = options.log;
  context->log_user_data = options.log_user_data;
  fill_host(context);
  clv__remembered_init(&context->remembered);
  clv__backends_init(&context->backends);
  clv_status status = clv__settings_read(&options, allocator, &context->settings, error);
  if (status == CLV_OK) status = clv__backends_add_built_in(context, error);
  if (status != CLV_OK) {
    clv_context_destroy(context);
    return status;
  }
  *out = context;
  return CLV_OK;
}

void clv_context_destroy(clv_context *context) {
  if (context == NULL) return;
  clv__backends_finish(&context->backends, context->allocator);
  clv__remembered_finish(&context->remembered);
  clv__settings_finish(&context->settings, context->allocator);
  clv__release(context->allocator, context);
}
