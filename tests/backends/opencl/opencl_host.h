/* Helpers for the tests of the OpenCL backend: a fake host (shared with the tests of the virtual NPU), opened devices, and graphs
 * that are compiled as a whole. If there is no OpenCL device, a test prints the reason and is skipped. */
#ifndef CLEAVE_TESTS_BACKENDS_OPENCL_HOST_H
#define CLEAVE_TESTS_BACKENDS_OPENCL_HOST_H

#include <math.h>

#include "../vnpu/fake_graphs.h"
#include "backends/opencl/opencl.h"

typedef struct ocl {
  fake_host fake;
  test_allocator counting;
  const clv_backend *backend;
  clv_device *device;
  clv_error error;
} ocl;

/* Opens a device. `options` has the form "key=value,key=value". */
static inline clv_status ocl_try_open(ocl *o, const char *name, uint32_t ordinal, const char *options) {
  char text[256];
  clv_option list[8];
  uint32_t count = 0;
  memset(o, 0, sizeof *o);
  test_allocator_init(&o->counting);
  fake_host_init(&o->fake, &o->counting.allocator);
  assert_ok(clv__opencl_backend_query(&o->fake.host, NULL, &o->backend, &o->error), o->error);
  snprintf(text, sizeof text, "%s", options);
  char *rest = NULL;
  for (char *at = strtok_r(text, ",", &rest); at != NULL; at = strtok_r(NULL, ",", &rest)) {
    char *equals = strchr(at, '=');
    assert_true(equals != NULL && count < 8);
    *equals = '\0';
    list[count++] = (clv_option){at, equals + 1};
  }
  const clv_device_config config = {
      .struct_size = sizeof config, .ordinal = ordinal, .name = name, .option_count = count, .options = list};
  return o->backend->open(o->backend->self, &o->fake.host, &config, &o->device, &o->error);
}

/* Skips the test if there is no device. */
static inline void ocl_open(ocl *o, const char *options) {
  clv_status status = ocl_try_open(o, "opencl", 0, options);
  if (status == CLV_NOT_SUPPORTED) {
    print_message("skipped: %s\n", o->error.message);
    skip();
  }
  assert_ok(status, o->error);
}

/* Closes the device, and checks that no allocation is left. */
static inline void ocl_close(ocl *o) {
  o->backend->close(o->device);
  assert_int_equal(o->counting.live, 0);
}

static inline clv_status ocl_compile(ocl *o, const clv_graph *graph, const clv_tensor *types, clv_executable **executable) {
  clv__arena arena;
  clv__arena_init(&arena, heap());
  clv_graph_view *view = NULL;
  assert_ok(clv__view_create_whole(graph, types, &arena, &view, &o->error), o->error);
  clv_status status = o->backend->compile(o->device, view, NULL, executable, &o->error);
  clv__arena_finish(&arena);
  return status;
}

/* A compiled graph with random inputs, and the outputs that the reference computes from them. */
typedef struct ocl_run {
  clv_graph *graph;
  clv__shapes *shapes;
  fake_session session;
  clv_tensor inputs[FAKE_MAX_IO], outputs[FAKE_MAX_IO], expected[FAKE_MAX_IO];
} ocl_run;

static inline void ocl_run_open_graph(ocl *o, ocl_run *r, clv_graph *graph, uint64_t *seed) {
  clv_executable *executable = NULL;
  memset(r, 0, sizeof *r);
  r->graph = graph;
  r->shapes = shapes_of(graph);
  assert_ok(ocl_compile(o, graph, r->shapes->types, &executable), o->error);
  random_inputs(graph, r->inputs, seed);
  assert_ok(fake_session_open(&r->session, o->backend, o->device, executable, graph, r->inputs, graph->input_count, &o->error),
            o->error);
  evaluate(graph, r->inputs, r->expected);
}

static inline void ocl_run_open(ocl *o, ocl_run *r, clv_dtype dtype, int nodes, uint64_t *seed) {
  ocl_run_open_graph(o, r, random_graph(&o->counting.allocator, dtype, nodes, seed), seed); /* uses the counting allocator */
}

static inline void ocl_run_close(ocl_run *r) {
  fake_session_close(&r->session);
  release_tensors(heap(), r->inputs, r->graph->input_count);
  release_tensors(heap(), r->expected, r->graph->output_count);
  clv__shapes_destroy(r->shapes);
  clv__graph_destroy(r->graph);
}

/* Compares with a tolerance for the dtype, because the device may add the terms of sums in another order. */
static inline void assert_close(const clv_tensor *made, const clv_tensor *expected, const char *what) {
  const double allowed = made->dtype == CLV_F32 ? 2e-5 : 4e-3;
  size_t count;
  assert_true(clv__tensor_same_type(made, expected));
  assert_true(clv__tensor_count(expected, &count));
  double largest = 1;
  for (size_t i = 0; i < count; ++i) largest = fmax(largest, fabs(clv__tensor_get(expected, i)));
  for (size_t i = 0; i < count; ++i) {
    const double a = clv__tensor_get(made, i), b = clv__tensor_get(expected, i);
    if (!(fabs(a - b) <= allowed * largest)) fail_msg("%s: element %zu of %zu is %g, expected %g", what, i, count, a, b);
  }
}

static inline void ocl_run_check(ocl *o, ocl_run *r, const char *what) {
  for (uint32_t i = 0; i < r->graph->output_count; ++i) r->outputs[i] = output_type(r->graph, r->shapes, i);
  assert_ok(
      fake_session_run(&r->session, heap(), r->inputs, r->graph->input_count, r->outputs, r->graph->output_count, &o->error),
      o->error);
  for (uint32_t i = 0; i < r->graph->output_count; ++i) {
    char text[100];
    snprintf(text, sizeof text, "%s: output %u", what, i);
    assert_close(&r->outputs[i], &r->expected[i], text);
  }
  release_tensors(heap(), r->outputs, r->graph->output_count);
}

/* ---- Executions on buffers of the test ---- */

typedef struct ocl_memory {
  clv_binding inputs[FAKE_MAX_IO], outputs[FAKE_MAX_IO];
  clv_execute_args args;
} ocl_memory;

static inline size_t bytes_of(const clv_tensor *type) {
  size_t size_bytes = 0;
  assert_true(clv__tensor_size_bytes(type, &size_bytes));
  return size_bytes;
}

/* Allocates a buffer for every input and output. The value begins `offset` bytes after the start of the buffer. Copies the
 * inputs in. */
static inline void ocl_memory_open(ocl *o, ocl_run *r, uint64_t offset, ocl_memory *m) {
  const clv_backend *b = o->backend;
  memset(m, 0, sizeof *m);
  for (uint32_t i = 0; i < r->graph->input_count + r->graph->output_count; ++i) {
    const bool in = i < r->graph->input_count;
    clv_binding *binding = in ? &m->inputs[i] : &m->outputs[i - r->graph->input_count];
    binding->type = in ? r->inputs[i] : output_type(r->graph, r->shapes, i - r->graph->input_count);
    binding->type.data = NULL;
    binding->offset_bytes = offset;
    const size_t size_bytes = bytes_of(&binding->type);
    assert_ok(b->buffer_alloc(o->device, size_bytes + offset, &binding->buffer, &o->error), o->error);
    if (in) {
      assert_ok(b->copy_in(o->device, r->session.stream, binding->buffer, offset, r->inputs[i].data, size_bytes, &o->error),
                o->error);
    }
  }
  m->args = (clv_execute_args){.struct_size = sizeof m->args,
                               .input_count = r->graph->input_count,
                               .output_count = r->graph->output_count,
                               .inputs = m->inputs,
                               .outputs = m->outputs};
}

static inline void ocl_memory_close(ocl *o, ocl_run *r, ocl_memory *m) {
  for (uint32_t i = 0; i < r->graph->input_count; ++i) o->backend->buffer_free(o->device, m->inputs[i].buffer);
  for (uint32_t i = 0; i < r->graph->output_count; ++i) o->backend->buffer_free(o->device, m->outputs[i].buffer);
}

static inline void ocl_memory_clear(ocl *o, ocl_run *r, ocl_memory *m) {
  static const uint8_t zeros[1 << 16];
  for (uint32_t i = 0; i < r->graph->output_count; ++i) {
    const clv_binding *binding = &m->outputs[i];
    const size_t size_bytes = bytes_of(&binding->type);
    assert_true(size_bytes <= sizeof zeros);
    assert_ok(
        o->backend->copy_in(o->device, r->session.stream, binding->buffer, binding->offset_bytes, zeros, size_bytes, &o->error),
        o->error);
  }
}

/* Reads the outputs back. They must be as expected if `run`, otherwise they must still be zero. */
static inline void ocl_memory_check(ocl *o, ocl_run *r, ocl_memory *m, bool run, const char *what) {
  for (uint32_t i = 0; i < r->graph->output_count; ++i) {
    clv_tensor made = m->outputs[i].type;
    const size_t size_bytes = bytes_of(&made);
    made.data = clv__allocate(heap(), size_bytes);
    assert_ok(o->backend->copy_out(o->device, r->session.stream, made.data, m->outputs[i].buffer, m->outputs[i].offset_bytes,
                                   size_bytes, &o->error),
              o->error);
    assert_ok(o->backend->stream_synchronize(o->device, r->session.stream, &o->error), o->error);
    for (size_t k = 0; k < size_bytes && !run; ++k) assert_int_equal(((uint8_t *)made.data)[k], 0);
    if (run) assert_close(&made, &r->expected[i], what);
    clv__release(heap(), made.data);
  }
}

#endif
