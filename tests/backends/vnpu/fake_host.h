/* Shared by the tests of the virtual NPU: a host whose services work on the library's graphs, and functions that run an
 * executable as the library does: upload weights, copy in, launch, copy out. */
#ifndef CLEAVE_TESTS_BACKENDS_VNPU_FAKE_HOST_H
#define CLEAVE_TESTS_BACKENDS_VNPU_FAKE_HOST_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/evaluate.h"
#include "analysis/shapes.h"
#include "backends/vnpu/vnpu.h"
#include "formats/onnx/onnx.h"
#include "graph/view.h"
#include "support.h"

typedef struct fake_host {
  clv_host host;
  const clv_allocator *allocator;
  char log[400]; /* the last log message */
  int logged;
} fake_host;

static inline void fake_log(void *self, int level, const char *text) {
  fake_host *fake = self;
  (void)level;
  ++fake->logged;
  snprintf(fake->log, sizeof fake->log, "%s", text);
}

static inline clv_status fake_infer(const clv_graph_view *graph, uint32_t node, const clv_tensor *inputs, clv_tensor *outputs,
                                    clv_error *error) {
  return clv__node_infer(graph->graph, graph->nodes[node], inputs, outputs, error);
}

static inline clv_status fake_evaluate(const clv_graph_view *graph, uint32_t node, const clv_tensor *inputs, clv_tensor *outputs,
                                       clv_error *error) {
  return clv__node_evaluate(graph->graph, graph->nodes[node], inputs, outputs, graph->graph->allocator, error);
}

static inline clv_status fake_evaluate_with(const clv_graph_view *graph, uint32_t node, const clv_tensor *inputs,
                                            clv_tensor *outputs, const clv_evaluation *how, clv_error *error) {
  return clv__node_evaluate_with(graph->graph, graph->nodes[node], inputs, outputs, how, graph->graph->allocator, error);
}

static inline clv_status fake_to_onnx(const clv_graph_view *graph, size_t inline_limit_bytes, void **data, size_t *size_bytes,
                                      clv_error *error) {
  return clv__onnx_write(graph, inline_limit_bytes, graph->graph->allocator, data, size_bytes, error);
}

static inline clv_status fake_open(void *self, const void *data, size_t size_bytes, clv_graph_view **graph, clv_error *error) {
  const fake_host *fake = self;
  clv_graph *loaded = NULL;
  *graph = NULL;
  CLV__TRY(clv__onnx_load_memory(fake->allocator, data, size_bytes, true, &loaded, error));
  *graph = (clv_graph_view *)loaded->whole;
  return CLV_OK;
}

static inline void fake_close(void *self, clv_graph_view *graph) {
  (void)self;
  if (graph != NULL) clv__graph_destroy((clv_graph *)graph->graph);
}

static inline void fake_host_init(fake_host *fake, const clv_allocator *allocator) {
  *fake = (fake_host){.allocator = allocator};
  fake->host = (clv_host){.abi_version = CLV_ABI_VERSION,
                          .struct_size = sizeof fake->host,
                          .self = fake,
                          .allocator = allocator,
                          .log = fake_log,
                          .infer_node = fake_infer,
                          .evaluate_node = fake_evaluate,
                          .evaluate_node_with = fake_evaluate_with,
                          .graph_to_onnx = fake_to_onnx,
                          .graph_open = fake_open,
                          .graph_close = fake_close};
  clv__view_fill_host(&fake->host);
}

static inline const clv_backend *fake_backend(const fake_host *fake) {
  const clv_backend *backend = NULL;
  clv_error error = {0};
  assert_ok(clv__vnpu_backend_query(&fake->host, NULL, &backend, &error), error);
  return backend;
}

static inline clv_status fake_device_open(const fake_host *fake, const char *name, const char *spec, clv_device **device,
                                          clv_error *error) {
  const clv_option option = {"spec", spec};
  clv_device_config config = {.struct_size = sizeof config, .name = name, .option_count = spec != NULL, .options = &option};
  return fake_backend(fake)->open(NULL, &fake->host, &config, device, error);
}

static inline clv_device *fake_device(const fake_host *fake, const char *spec) {
  clv_device *device = NULL;
  clv_error error = {0};
  assert_ok(fake_device_open(fake, "npu", spec, &device, &error), error);
  return device;
}

/* An executable with its uploaded weights, an instance and a stream. */
typedef struct fake_session {
  const clv_backend *backend;
  clv_device *device;
  clv_executable *executable;
  clv_weight *weights[256];
  uint32_t weight_count;
  clv_instance *instance;
  clv_stream *stream;
} fake_session;

static inline void fake_session_close(fake_session *s) {
  s->backend->stream_destroy(s->device, s->stream);
  s->backend->instance_destroy(s->device, s->instance);
  s->backend->executable_destroy(s->device, s->executable);
  for (uint32_t i = 0; i < s->weight_count; ++i) s->backend->weight_release(s->device, s->weights[i]);
  *s = (fake_session){0};
}

/* Opens a session of `executable`, and takes ownership of the executable. Uploads its weights from the graph `source`. */
static inline clv_status fake_session_open(fake_session *s, const clv_backend *backend, clv_device *device,
                                           clv_executable *executable, const clv_graph *source, const clv_tensor *inputs,
                                           uint32_t input_count, clv_error *error) {
  *s = (fake_session){.backend = backend, .device = device, .executable = executable};
  clv_executable_info info = {.struct_size = sizeof info};
  backend->executable_info(device, executable, &info);
  assert_true(info.weight_count <= 256);
  clv_status status = CLV_OK;
  for (uint32_t i = 0; i < info.weight_count && status == CLV_OK; ++i) {
    clv_value_id value = clv__graph_find_value(source, info.weights[i]);
    assert_true(value != CLV__NO_ID);
    status = backend->weight_upload(device, info.weights[i], &source->values[value].type, &s->weights[i], error);
    if (status == CLV_OK) ++s->weight_count;
  }
  if (status == CLV_OK) {
    status = backend->instance_create(device, executable, inputs, input_count, s->weights, s->weight_count, &s->instance, error);
  }
  if (status == CLV_OK) status = backend->stream_create(device, &s->stream, error);
  if (status != CLV_OK) fake_session_close(s);
  return status;
}

/* The cookie of fake_allocate_output(), which allocates outputs whose size depends on data. */
typedef struct fake_outputs {
  const clv_backend *backend;
  clv_device *device;
} fake_outputs;

static inline clv_status fake_allocate_output(void *cookie, uint32_t index, const clv_tensor *type, clv_binding *binding,
                                              clv_error *error) {
  fake_outputs *outputs = cookie;
  size_t size_bytes;
  (void)index;
  if (!clv__tensor_size_bytes(type, &size_bytes)) return clv__error_set(error, CLV_INTERNAL_ERROR, "output without a size");
  binding->type = *type;
  binding->offset_bytes = 0;
  return outputs->backend->buffer_alloc(outputs->device, size_bytes, &binding->buffer, error);
}

enum { FAKE_MAX_IO = 64 };

/* Runs once. `outputs` contain the types (rank unknown if the size depends on data), and receive data from `allocator`. Even
 * after a failure, some outputs may have data, so the caller must release them all. */
static inline clv_status fake_session_run(fake_session *s, const clv_allocator *allocator, const clv_tensor *inputs,
                                          uint32_t input_count, clv_tensor *outputs, uint32_t output_count, clv_error *error) {
  const clv_backend *b = s->backend;
  assert_true(input_count <= FAKE_MAX_IO && output_count <= FAKE_MAX_IO);
  clv_binding in[FAKE_MAX_IO] = {{0}}, out[FAKE_MAX_IO] = {{0}};
  fake_outputs cookie = {b, s->device};
  clv_status status = CLV_OK;
  size_t size_bytes;
  for (uint32_t i = 0; i < input_count && status == CLV_OK; ++i) {
    in[i].type = inputs[i];
    in[i].type.data = NULL;
    assert_true(clv__tensor_size_bytes(&inputs[i], &size_bytes));
    status = b->buffer_alloc(s->device, size_bytes, &in[i].buffer, error);
    if (status == CLV_OK) status = b->copy_in(s->device, s->stream, in[i].buffer, 0, inputs[i].data, size_bytes, error);
  }
  for (uint32_t i = 0; i < output_count && status == CLV_OK; ++i) {
    out[i].type = outputs[i];
    out[i].type.data = NULL;
    if (outputs[i].rank < 0) continue;
    assert_true(clv__tensor_size_bytes(&outputs[i], &size_bytes));
    status = b->buffer_alloc(s->device, size_bytes, &out[i].buffer, error);
  }
  clv_execute_args args = {.struct_size = sizeof args,
                           .input_count = input_count,
                           .output_count = output_count,
                           .inputs = in,
                           .outputs = out,
                           .cookie = &cookie,
                           .allocate_output = fake_allocate_output};
  if (status == CLV_OK) status = b->execute(s->device, s->instance, s->stream, &args, error);
  clv_status finished = b->stream_synchronize(s->device, s->stream, status == CLV_OK ? error : NULL);
  if (status == CLV_OK) status = finished;
  for (uint32_t i = 0; i < output_count && status == CLV_OK; ++i) {
    outputs[i] = out[i].type;
    assert_true(clv__tensor_size_bytes(&outputs[i], &size_bytes));
    outputs[i].data = clv__allocate(allocator, size_bytes);
    if (outputs[i].data == NULL) status = clv__error_memory(error, size_bytes);
    if (status == CLV_OK) status = b->copy_out(s->device, s->stream, outputs[i].data, out[i].buffer, 0, size_bytes, error);
  }
  finished = b->stream_synchronize(s->device, s->stream, status == CLV_OK ? error : NULL);
  if (status == CLV_OK) status = finished;
  for (uint32_t i = 0; i < input_count; ++i) b->buffer_free(s->device, in[i].buffer);
  for (uint32_t i = 0; i < output_count; ++i) b->buffer_free(s->device, out[i].buffer);
  return status;
}

/* ---- Graphs ---- */

/* A graph under construction. Every error fails the test. */
typedef struct fake_graph {
  clv__builder *builder;
  clv_error error;
} fake_graph;

static inline fake_graph fake_graph_begin(const clv_allocator *allocator) {
  fake_graph g = {0};
  assert_ok(clv__builder_create(allocator, &g.builder, &g.error), g.error);
  assert_ok(clv__builder_import(g.builder, "", 17, &g.error), g.error);
  return g;
}

static inline clv_value_id fake_value(fake_graph *g, const char *name) {
  clv_value_id value = CLV__NO_ID;
  if (name[0] == '\0') return CLV__NO_ID;
  assert_ok(clv__builder_value(g->builder, name, &value, &g->error), g->error);
  return value;
}

static inline void fake_type(fake_graph *g, const char *name, clv_dtype dtype, int32_t rank, const int64_t *dims) {
  clv_tensor type = clv__tensor_make(dtype, rank, dims, NULL);
  clv__builder_type(g->builder, fake_value(g, name), &type);
}

static inline void fake_input(fake_graph *g, const char *name, clv_dtype dtype, int32_t rank, const int64_t *dims) {
  fake_type(g, name, dtype, rank, dims);
  assert_ok(clv__builder_input(g->builder, fake_value(g, name), &g->error), g->error);
}

static inline void fake_output(fake_graph *g, const char *name) {
  assert_ok(clv__builder_output(g->builder, fake_value(g, name), &g->error), g->error);
}

/* An initializer; `data` is copied into the graph. */
static inline void fake_constant(fake_graph *g, const char *name, clv_dtype dtype, int32_t rank, const int64_t *dims,
                                 const void *data) {
  clv_tensor type = clv__tensor_make(dtype, rank, dims, NULL);
  size_t size_bytes;
  assert_true(clv__tensor_size_bytes(&type, &size_bytes));
  type.data = clv__arena_allocate_data(clv__builder_arena(g->builder), size_bytes);
  assert_non_null(type.data);
  if (size_bytes > 0) memcpy(type.data, data, size_bytes);
  clv__builder_type(g->builder, fake_value(g, name), &type);
}

/* Converts names, separated by spaces, to value ids. "-" is an absent value. */
static inline uint32_t fake_names(fake_graph *g, const char *names, clv_value_id *ids) {
  uint32_t count = 0;
  while (*names != '\0') {
    size_t length = strcspn(names, " ");
    char name[64];
    assert_true(length < sizeof name && count < 16);
    snprintf(name, sizeof name, "%.*s", (int)length, names);
    ids[count++] = strcmp(name, "-") == 0 ? CLV__NO_ID : fake_value(g, name);
    names += length;
    while (*names == ' ') ++names;
  }
  return count;
}

static inline void fake_node(fake_graph *g, const char *op, const char *inputs, const char *outputs,
                             const clv_attribute *attributes, uint32_t attribute_count) {
  clv_value_id in[16], out[16];
  uint32_t input_count = fake_names(g, inputs, in), output_count = fake_names(g, outputs, out);
  assert_ok(clv__builder_node(g->builder, "", "", op, in, input_count, out, output_count, attributes, attribute_count, &g->error),
            g->error);
}

static inline clv_attribute fake_ints(fake_graph *g, const char *name, bool is_list, size_t count, const int64_t *values) {
  clv__arena *arena = clv__builder_arena(g->builder);
  const int64_t *copy = clv__arena_copy(arena, values, count * sizeof *values);
  assert_non_null(copy);
  return (clv_attribute){.name = name, .kind = CLV_ATTRIBUTE_INTS, .is_list = is_list, .count = count, .ints = copy};
}

static inline clv_graph *fake_graph_end(fake_graph *g) {
  clv_graph *graph = NULL;
  assert_ok(clv__builder_finish(g->builder, &graph, &g->error), g->error);
  return graph;
}

static inline void release_tensors(const clv_allocator *allocator, clv_tensor *tensors, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    clv__release(allocator, tensors[i].data);
    tensors[i].data = NULL;
  }
}

/* Checks that types and all bytes are equal. */
static inline void assert_same(const clv_tensor *a, const clv_tensor *b, const char *name) {
  size_t size_bytes = 0;
  if (!clv__tensor_same_type(a, b)) {
    char x[100], y[100];
    clv__tensor_text(a, x, sizeof x);
    clv__tensor_text(b, y, sizeof y);
    fail_msg("%s: the types %s and %s differ", name, x, y);
  }
  assert_true(clv__tensor_size_bytes(a, &size_bytes));
  for (size_t i = 0; i < size_bytes; ++i) {
    if (((const uint8_t *)a->data)[i] != ((const uint8_t *)b->data)[i]) {
      fail_msg("%s: element %zu differs", name, i / clv_dtype_size_bytes(a->dtype));
    }
  }
}

#endif
