/* Builds small graphs: see models.h. */
#include "models.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "support.h"

void test_graph_begin(test_graph *graph, const clv_allocator *allocator, uint64_t seed) {
  clv_error error = {0};
  graph->seed = seed;
  assert_ok(clv__builder_create(allocator, &graph->builder, &error), error);
  clv__builder_info(graph->builder, "test", "", 10);
  assert_ok(clv__builder_import(graph->builder, "", 21, &error), error);
}

clv_value_id test_graph_value(test_graph *graph, const char *name) {
  clv_error error = {0};
  clv_value_id id;
  assert_ok(clv__builder_value(graph->builder, name, &id, &error), error);
  return id;
}

void test_graph_input(test_graph *graph, const char *name, clv_dtype dtype, int32_t rank, const int64_t *dims) {
  clv_error error = {0};
  clv_tensor type = clv__tensor_make(dtype, rank, dims, NULL);
  clv__builder_type(graph->builder, test_graph_value(graph, name), &type);
  assert_ok(clv__builder_input(graph->builder, test_graph_value(graph, name), &error), error);
}

int64_t test_graph_symbol(test_graph *graph, const char *name) {
  clv_error error = {0};
  uint32_t index;
  assert_ok(clv__builder_symbol(graph->builder, name, &index, &error), error);
  return CLV_DIM_SYMBOL(index);
}

void test_graph_weight(test_graph *graph, const char *name, int32_t rank, const int64_t *dims) {
  clv_tensor type = clv__tensor_make(CLV_F32, rank, dims, NULL);
  size_t count;
  assert_true(clv__tensor_count(&type, &count));
  float *data = clv__arena_allocate_data(clv__builder_arena(graph->builder), count * sizeof *data);
  assert_non_null(data);
  float scale = 1.0f / sqrtf((float)clv__dims_product(&type, rank > 1 ? 1 : 0, rank));
  for (size_t i = 0; i < count; ++i) data[i] = test_random_float(&graph->seed) * scale;
  type.data = data;
  clv__builder_type(graph->builder, test_graph_value(graph, name), &type);
}

void test_graph_ints(test_graph *graph, const char *name, int32_t count, const int64_t *values) {
  int64_t dims[] = {count};
  int64_t *data = clv__arena_copy(clv__builder_arena(graph->builder), values, (size_t)count * sizeof *values);
  assert_non_null(data);
  clv_tensor type = clv__tensor_make(CLV_I64, 1, dims, data);
  clv__builder_type(graph->builder, test_graph_value(graph, name), &type);
}

void test_graph_constant(test_graph *graph, const char *name, const clv_tensor *tensor) {
  clv_tensor type = *tensor;
  size_t size_bytes;
  assert_true(clv__tensor_size_bytes(tensor, &size_bytes));
  type.data = clv__arena_allocate_data(clv__builder_arena(graph->builder), size_bytes);
  assert_non_null(type.data);
  memcpy(type.data, tensor->data, size_bytes);
  clv__builder_type(graph->builder, test_graph_value(graph, name), &type);
}

static uint32_t split_names(test_graph *graph, const char *list, clv_value_id ids[16]) {
  uint32_t count = 0;
  for (const char *at = list; *list != '\0';) {
    size_t length = strcspn(at, ",");
    char name[128];
    assert_true(length < sizeof name && count < 16);
    memcpy(name, at, length);
    name[length] = '\0';
    ids[count++] = length == 0 ? CLV__NO_ID : test_graph_value(graph, name);
    if (at[length] == '\0') break;
    at += length + 1;
  }
  return count;
}

void test_graph_node_ints(test_graph *graph, const char *name, const char *op, const char *inputs, const char *outputs,
                          const char *attribute, bool is_list, size_t count, const int64_t *values) {
  clv_error error = {0};
  clv_value_id in[16], out[16];
  uint32_t in_count = split_names(graph, inputs, in), out_count = split_names(graph, outputs, out);
  clv__arena *arena = clv__builder_arena(graph->builder);
  clv_attribute given = {0};
  if (attribute != NULL) {
    given = (clv_attribute){.name = clv__arena_string(arena, attribute, strlen(attribute)),
                            .kind = CLV_ATTRIBUTE_INTS,
                            .is_list = is_list,
                            .count = count,
                            .ints = clv__arena_copy(arena, values, count * sizeof *values)};
  }
  assert_ok(clv__builder_node(graph->builder, name, "", op, in, in_count, out, out_count, &given, attribute != NULL, &error),
            error);
}

void test_graph_node(test_graph *graph, const char *name, const char *op, const char *inputs, const char *outputs) {
  test_graph_node_ints(graph, name, op, inputs, outputs, NULL, false, 0, NULL);
}

clv_graph *test_graph_end(test_graph *graph, const char *outputs) {
  clv_error error = {0};
  clv_value_id ids[16];
  uint32_t count = split_names(graph, outputs, ids);
  for (uint32_t i = 0; i < count; ++i) assert_ok(clv__builder_output(graph->builder, ids[i], &error), error);
  clv_graph *built;
  assert_ok(clv__builder_finish(graph->builder, &built, &error), error);
  return built;
}

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})

clv_graph *test_seven_nodes(const clv_allocator *allocator) {
  test_graph g;
  test_graph_begin(&g, allocator, 7);
  test_graph_input(&g, "x", CLV_F32, 4, DIMS(1, 3, 8, 8));
  test_graph_weight(&g, "w", 4, DIMS(4, 3, 3, 3));
  test_graph_weight(&g, "m", 2, DIMS(8, 8));
  test_graph_weight(&g, "b", 1, DIMS(8));
  test_graph_node_ints(&g, "conv", "Conv", "x,w", "c", "pads", true, 4, DIMS(1, 1, 1, 1));
  test_graph_node(&g, "relu", "Relu", "c", "r");
  test_graph_node(&g, "matmul", "MatMul", "r,m", "mm");
  test_graph_node(&g, "add", "Add", "mm,b", "a");
  test_graph_node(&g, "relu2", "Relu", "a", "r2");
  test_graph_node_ints(&g, "concat", "Concat", "r2,r2", "cc", "axis", false, 1, DIMS(1));
  test_graph_node_ints(&g, "softmax", "Softmax", "cc", "y", "axis", false, 1, DIMS(-1));
  return test_graph_end(&g, "y");
}

clv_graph *test_random_graph(const clv_allocator *allocator, uint64_t seed, uint32_t node_count) {
  return test_random_rows(allocator, seed, node_count, false);
}

clv_graph *test_random_rows(const clv_allocator *allocator, uint64_t seed, uint32_t node_count, bool is_open) {
  static const char *const unary[] = {"Relu", "Tanh", "Sigmoid", "Identity", "Abs"};
  static const char *const binary[] = {"Add", "Mul", "Sub", "Max"};
  test_graph g;
  uint64_t state = seed * 2654435761u + 1;
  test_graph_begin(&g, allocator, seed);
  int64_t rows = is_open ? test_graph_symbol(&g, "N") : 4;
  test_graph_input(&g, "v0", CLV_F32, 2, DIMS(rows, 8));
  test_graph_input(&g, "v1", CLV_F32, 2, DIMS(rows, 8));
  test_graph_weight(&g, "w", 2, DIMS(8, 8));
  char outputs[128] = "";
  for (uint32_t n = 0; n < node_count; ++n) {
    char name[32], out[32], in[64];
    uint32_t a = (uint32_t)(test_random(&state) % (n + 2)), b = (uint32_t)(test_random(&state) % (n + 2));
    if (test_random(&state) % 3 == 0) a = n + 1; /* read the previous value, so that chains are common */
    snprintf(name, sizeof name, test_random(&state) % 8 == 0 ? "" : "n/%u", n);
    snprintf(out, sizeof out, "v%u", n + 2);
    switch (test_random(&state) % 4) {
      case 0:
        snprintf(in, sizeof in, "v%u", a);
        test_graph_node(&g, name, unary[test_random(&state) % 5], in, out);
        break;
      case 1:
        snprintf(in, sizeof in, "v%u,w", a);
        test_graph_node(&g, name, "MatMul", in, out);
        break;
      default:
        snprintf(in, sizeof in, "v%u,v%u", a, b);
        test_graph_node(&g, name, binary[test_random(&state) % 4], in, out);
    }
    bool is_output = n + 1 == node_count || (test_random(&state) % 6 == 0 && strlen(outputs) < 40);
    if (is_output) snprintf(outputs + strlen(outputs), sizeof outputs - strlen(outputs), "%s%s", outputs[0] ? "," : "", out);
  }
  return test_graph_end(&g, outputs);
}

/* ---- Dynamic shapes ---- */

/* The values of one shape that exist so far. */
typedef struct pool {
  char names[64][16];
  uint32_t count;
} pool;

static const char *draw(const pool *p, uint64_t *state) {
  return p->names[test_random(state) % p->count];
}

static const char *fresh(pool *p, uint32_t node) {
  assert_true(p->count < 64);
  snprintf(p->names[p->count], sizeof p->names[0], "v%u", node);
  return p->names[p->count++];
}

/* Adds a random operator. `flat` has the values of shape [N,8], `deep` those of [N,T,8]. Some cases add two nodes, with an
 * intermediate value. */
static void add_open_node(test_graph *g, pool *flat, pool *deep, uint32_t n, bool products, uint64_t *state) {
  static const char *const unary[] = {"Relu", "Tanh", "Sigmoid", "Exp", "Neg", "Reciprocal", "Log"};
  static const char *const binary[] = {"Add", "Mul", "Sub", "Max", "Div"};
  char in[64], middle[24], name[24];
  snprintf(middle, sizeof middle, "m%u", n);
  snprintf(name, sizeof name, "n%u", n);
  bool is_deep = test_random(state) % 2 == 0;
  pool *p = is_deep ? deep : flat;
  const char *a = draw(p, state), *b = draw(p, state);
  uint64_t what = test_random(state) % 11;
  if (what == 10 && !products) what = 0;
  switch (what) {
    case 0:
    case 1:
      test_graph_node(g, name, unary[test_random(state) % 7], a, fresh(p, n));
      break;
    case 2:
    case 3:
      snprintf(in, sizeof in, "%s,%s", a, b);
      test_graph_node(g, name, binary[test_random(state) % 5], in, fresh(p, n));
      break;
    case 4:
      test_graph_node_ints(g, name, "Softmax", a, fresh(p, n), "axis", false, 1, (const int64_t[]){-1});
      break;
    case 5:
      snprintf(in, sizeof in, "%s,scale", a);
      test_graph_node(g, name, "LayerNormalization", in, fresh(p, n));
      break;
    case 6: /* [N,8] -> [8 N] -> [N,8]; [N,T,8] -> [N,8 T] -> [N,T,8] */
      snprintf(in, sizeof in, "%s,%s", a, is_deep ? "joined" : "line");
      test_graph_node(g, name, "Reshape", in, middle);
      snprintf(in, sizeof in, "%s,%s", middle, is_deep ? "parted" : "rows");
      test_graph_node(g, "", "Reshape", in, fresh(p, n));
      break;
    case 7: /* transposed, and transposed back */
      test_graph_node_ints(g, name, "Transpose", a, middle, "perm", true, is_deep ? 3 : 2,
                           is_deep ? (const int64_t[]){2, 0, 1} : (const int64_t[]){1, 0});
      test_graph_node_ints(g, "", "Transpose", middle, fresh(p, n), "perm", true, is_deep ? 3 : 2,
                           is_deep ? (const int64_t[]){1, 2, 0} : (const int64_t[]){1, 0});
      break;
    case 8: /* rows of a table, one per index */
      test_graph_node(g, name, "Gather", "table,i", fresh(flat, n));
      break;
    case 9: /* Softmax along T, which mixes the elements of T, or a sum along the last axis, which does not mix those of N */
      if (is_deep) {
        test_graph_node_ints(g, name, "Softmax", a, fresh(p, n), "axis", false, 1, (const int64_t[]){1});
      } else {
        snprintf(in, sizeof in, "%s,last", a);
        test_graph_node(g, name, "ReduceSum", in, middle);
        snprintf(in, sizeof in, "%s,%s", middle, b);
        test_graph_node(g, "", "Add", in, fresh(p, n));
      }
      break;
    default:
      snprintf(in, sizeof in, "%s,w", a);
      test_graph_node(g, name, "MatMul", in, fresh(p, n));
  }
}

clv_graph *test_random_open_graph(const clv_allocator *allocator, uint64_t seed, uint32_t node_count, bool products) {
  test_graph g;
  uint64_t state = seed * 0x9e3779b97f4a7c15u + 3;
  test_graph_begin(&g, allocator, seed);
  int64_t rows = test_graph_symbol(&g, "N"), depth = test_graph_symbol(&g, "T");
  pool flat = {{"a", "b"}, 2}, deep = {{"c"}, 1};
  test_graph_input(&g, "a", CLV_F32, 2, DIMS(rows, 8));
  test_graph_input(&g, "b", CLV_F32, 2, DIMS(rows, 8));
  test_graph_input(&g, "c", CLV_F32, 3, DIMS(rows, depth, 8));
  test_graph_input(&g, "i", CLV_I64, 1, DIMS(rows));
  test_graph_weight(&g, "w", 2, DIMS(8, 8));
  test_graph_weight(&g, "scale", 1, DIMS(8));
  test_graph_weight(&g, "table", 2, DIMS(16, 8));
  test_graph_ints(&g, "line", 1, DIMS(-1));
  test_graph_ints(&g, "rows", 2, DIMS(-1, 8));
  test_graph_ints(&g, "joined", 2, DIMS(0, -1));
  test_graph_ints(&g, "parted", 3, DIMS(0, -1, 8));
  test_graph_ints(&g, "last", 1, DIMS(-1));
  for (uint32_t n = 0; n < node_count && flat.count < 60 && deep.count < 60; ++n) {
    add_open_node(&g, &flat, &deep, n, products, &state);
  }
  char outputs[64];
  snprintf(outputs, sizeof outputs, "%s%s%s", flat.names[flat.count - 1], deep.count > 1 ? "," : "",
           deep.count > 1 ? deep.names[deep.count - 1] : "");
  return test_graph_end(&g, outputs);
}
