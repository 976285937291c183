/* Graphs and programs shared by the tests of the virtual NPU. */
#ifndef CLEAVE_TESTS_BACKENDS_VNPU_FAKE_GRAPHS_H
#define CLEAVE_TESTS_BACKENDS_VNPU_FAKE_GRAPHS_H

#include "fake_host.h"
#include "fast_evaluate.h"

static inline const clv_allocator *heap(void) {
  return clv__allocator_default();
}

/* ---- Random graphs over f32, f16 or bf16 matrices [4, 40]; weights [40, 40] are too large for constants in a program ---- */

enum { ROWS = 4, COLUMNS = 40 };

static inline void store(clv_dtype dtype, void *data, size_t index, float value) {
  if (dtype == CLV_F32) ((float *)data)[index] = value;
  if (dtype == CLV_F16) ((uint16_t *)data)[index] = clv__f32_to_f16(value);
  if (dtype == CLV_BF16) ((uint16_t *)data)[index] = clv__f32_to_bf16(value);
}

static inline void random_constant(fake_graph *g, const char *name, clv_dtype dtype, int32_t rank, const int64_t *dims,
                                   uint64_t *seed) {
  float buffer[COLUMNS * COLUMNS];
  size_t count = 1;
  for (int32_t i = 0; i < rank; ++i) count *= (size_t)dims[i];
  for (size_t i = 0; i < count; ++i) store(dtype, buffer, i, test_random_float(seed) * 0.3f);
  fake_constant(g, name, dtype, rank, dims, buffer);
}

static inline void binary(fake_graph *g, const char *op, int a, int b, int made) {
  char in[64], out[32];
  snprintf(in, sizeof in, "v%d v%d", a, b);
  snprintf(out, sizeof out, "v%d", made);
  fake_node(g, op, in, out, NULL, 0);
}

/* Appends nodes that compute the value v<made>, and possibly values with other names. */
static inline void random_step(fake_graph *g, clv_dtype dtype, int made, uint64_t *seed) {
  int x = (int)(test_random(seed) % (uint64_t)made), y = (int)(test_random(seed) % (uint64_t)made);
  char in[64], out[64], w[32];
  snprintf(in, sizeof in, "v%d", x);
  snprintf(out, sizeof out, "v%d", made);
  snprintf(w, sizeof w, "w%d", made);
  switch (test_random(seed) % 8) {
    case 0:
      fake_node(g, "Relu", in, out, NULL, 0);
      break;
    case 1:
      binary(g, "Add", x, y, made);
      break;
    case 2:
      random_constant(g, w, dtype, 1, (int64_t[]){COLUMNS}, seed); /* so small that it is a constant inside the program */
      snprintf(in, sizeof in, "v%d %s", x, w);
      fake_node(g, "Mul", in, out, NULL, 0);
      break;
    case 3:
    case 4:
      random_constant(g, w, dtype, 2, (int64_t[]){COLUMNS, COLUMNS}, seed); /* so large that it is a weight */
      snprintf(in, sizeof in, "v%d %s", x, w);
      fake_node(g, "MatMul", in, out, NULL, 0);
      break;
    case 5: {
      snprintf(in, sizeof in, "v%d shape", x);
      fake_node(g, "Reshape", in, w, NULL, 0);
      snprintf(in, sizeof in, "%s shape_back", w);
      fake_node(g, "Reshape", in, out, NULL, 0);
      break;
    }
    case 6: { /* a Concat and a Split; one half of the result is never read */
      clv_attribute axis = fake_ints(g, "axis", false, 1, (int64_t[]){0});
      snprintf(in, sizeof in, "v%d v%d", x, y);
      fake_node(g, "Concat", in, w, &axis, 1);
      snprintf(out, sizeof out, "v%d %s_rest", made, w);
      fake_node(g, "Split", w, out, &axis, 1);
      break;
    }
    default: {
      clv_attribute perm = fake_ints(g, "perm", true, 2, (int64_t[]){1, 0});
      fake_node(g, "Transpose", in, w, &perm, 1);
      fake_node(g, "Transpose", w, out, &perm, 1);
    }
  }
}

static inline clv_graph *random_graph(const clv_allocator *allocator, clv_dtype dtype, int nodes, uint64_t *seed) {
  fake_graph g = fake_graph_begin(allocator);
  fake_input(&g, "v0", dtype, 2, (int64_t[]){ROWS, COLUMNS});
  fake_input(&g, "v1", dtype, 2, (int64_t[]){ROWS, COLUMNS});
  fake_constant(&g, "shape", CLV_I64, 1, (int64_t[]){3}, (int64_t[]){2, ROWS, COLUMNS / 2});
  fake_constant(&g, "shape_back", CLV_I64, 1, (int64_t[]){2}, (int64_t[]){ROWS, COLUMNS});
  for (int i = 2; i < nodes + 2; ++i) random_step(&g, dtype, i, seed);
  char name[16];
  for (int i = 2; i < nodes + 2; ++i) { /* the last value, and some values that other nodes also read */
    if (i < nodes + 1 && test_random(seed) % 5 != 0) continue;
    snprintf(name, sizeof name, "v%d", i);
    fake_output(&g, name);
  }
  if (test_random(seed) % 4 == 0) fake_output(&g, "v0"); /* an input that is an output */
  return fake_graph_end(&g);
}

static inline void random_inputs(const clv_graph *graph, clv_tensor *inputs, uint64_t *seed) {
  for (uint32_t i = 0; i < graph->input_count; ++i) {
    inputs[i] = graph->values[graph->inputs[i]].type;
    size_t count;
    assert_true(clv__tensor_count(&inputs[i], &count));
    inputs[i].data = clv__allocate(heap(), count * 4);
    for (size_t k = 0; k < count; ++k) store(inputs[i].dtype, inputs[i].data, k, test_random_float(seed));
  }
}

static inline clv_tensor output_type(const clv_graph *graph, const clv__shapes *shapes, uint32_t index) {
  clv_tensor type = shapes->types[graph->outputs[index]];
  type.data = NULL;
  return type;
}

static inline clv__shapes *shapes_of(const clv_graph *graph) {
  clv__shapes *shapes = NULL;
  clv_error error = {0};
  assert_ok(clv__shapes_infer(graph, NULL, 0, 0, &shapes, &error), error);
  return shapes;
}

static inline void evaluate(const clv_graph *graph, const clv_tensor *inputs, clv_tensor *outputs) {
  clv_error error = {0};
  assert_ok(evaluate_fast(graph, inputs, outputs, NULL, NULL, heap(), &error), error);
}

/* A saved program in memory; blob_write() appends to it. */
typedef struct blob {
  uint8_t data[1 << 17];
  size_t size_bytes;
} blob;

static inline clv_status blob_write(void *cookie, const void *data, size_t size_bytes) {
  blob *b = cookie;
  if (size_bytes > sizeof b->data - b->size_bytes) return CLV_IO_ERROR;
  memcpy(b->data + b->size_bytes, data, size_bytes);
  b->size_bytes += size_bytes;
  return CLV_OK;
}

static inline void compile_whole(const fake_host *fake, clv_device *device, const clv_graph *graph, const clv_tensor *types,
                                 clv_executable **executable) {
  clv__arena arena;
  clv__arena_init(&arena, heap());
  clv_graph_view *view = NULL;
  clv_error error = {0};
  assert_ok(clv__view_create_whole(graph, types, &arena, &view, &error), error);
  assert_ok(fake_backend(fake)->compile(device, view, NULL, executable, &error), error);
  clv__arena_finish(&arena);
}

/* ---- A small graph, for tests that need no random graph: y = Relu(x W + b) ---- */

static inline clv_graph *small_graph(const clv_allocator *allocator, clv_dtype dtype) {
  uint64_t seed = 3;
  fake_graph g = fake_graph_begin(allocator);
  fake_input(&g, "x", dtype, 2, (int64_t[]){ROWS, COLUMNS});
  random_constant(&g, "w", dtype, 2, (int64_t[]){COLUMNS, COLUMNS}, &seed);
  random_constant(&g, "b", dtype, 1, (int64_t[]){COLUMNS}, &seed);
  fake_node(&g, "MatMul", "x w", "xw", NULL, 0);
  fake_node(&g, "Add", "xw b", "xwb", NULL, 0);
  fake_node(&g, "Relu", "xwb", "y", NULL, 0);
  fake_output(&g, "y");
  return fake_graph_end(&g);
}

#endif
