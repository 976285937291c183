/* Helpers for the tests of the OpenCL kernels. They run a model with a single node on the device, and compare the outputs with
 * those of the kernel for host memory. */
#ifndef CLEAVE_TESTS_BACKENDS_OPENCL_NODE_H
#define CLEAVE_TESTS_BACKENDS_OPENCL_NODE_H

#include "../../operators/node_case.h"
#include "device.h"
#include "graph/graph.h"

#include <stdio.h>

/* ---- A case on the device ---- */

#define AS_CONSTANT(input) (1u << (input))

/* Returns a model with only this node. Input i is an initializer if `constants` contains AS_CONSTANT(i). */
static inline clv_graph *graph_of(const node_case *c, uint32_t constants) {
  clv_error error = {0};
  clv__builder *builder;
  clv_value_id in[CASE_MAX], out[4];
  assert_ok(clv__builder_create(clv__allocator_default(), &builder, &error), error);
  clv__builder_info(builder, "case", "", 10);
  assert_ok(clv__builder_import(builder, "", c->opset, &error), error);
  for (uint32_t i = 0; i < c->input_count; ++i) {
    char name[16];
    in[i] = CLV__NO_ID;
    if (c->inputs[i].dtype == CLV_DTYPE_NONE) continue;
    snprintf(name, sizeof name, "x%u", (unsigned)i);
    assert_ok(clv__builder_value(builder, name, &in[i], &error), error);
    clv_tensor type = c->inputs[i];
    const bool is_constant = (constants & AS_CONSTANT(i)) != 0;
    if (!is_constant) type.data = NULL;
    clv__builder_type(builder, in[i], &type);
    if (!is_constant) assert_ok(clv__builder_input(builder, in[i], &error), error);
  }
  for (uint32_t i = 0; i < c->output_count; ++i) {
    char name[16];
    snprintf(name, sizeof name, "y%u", (unsigned)i);
    assert_ok(clv__builder_value(builder, name, &out[i], &error), error);
  }
  assert_ok(clv__builder_node(builder, "node", "", c->op, in, c->input_count, out, c->output_count, c->attributes,
                              (uint32_t)c->attribute_count, &error),
            error);
  for (uint32_t i = 0; i < c->output_count; ++i) assert_ok(clv__builder_output(builder, out[i], &error), error);
  clv_graph *graph;
  assert_ok(clv__builder_finish(builder, &graph, &error), error);
  return graph;
}

static inline double allowed(clv_dtype dtype) {
  return dtype == CLV_F32 ? 2e-5 : dtype == CLV_F64 ? 1e-10 : dtype == CLV_F16 ? 2e-3 : dtype == CLV_BF16 ? 1.6e-2 : 0;
}

static inline void compare(const node_case *c, uint32_t index, const clv_tensor *made) {
  const clv_tensor *wanted = &c->outputs[index];
  size_t worst = 0, count = count_of(wanted);
  double largest = 1, difference = -1;
  char text[128];
  clv__tensor_text(wanted, text, sizeof text);
  assert_true(clv__tensor_same_type(made, wanted));
  for (size_t i = 0; i < count; ++i) {
    const double a = clv__tensor_get(made, i), b = clv__tensor_get(wanted, i);
    double error = a == b || (isnan(a) && isnan(b)) ? 0 : fabs(a - b);
    if (isnan(error)) error = INFINITY;
    if (error > difference) difference = error, worst = i;
    if (isfinite(b) && fabs(b) > largest) largest = fabs(b);
  }
  if (difference <= allowed(wanted->dtype) * largest) return;
  fail_msg("%s (opset %d, %zu attributes): output %u %s: element %zu is %.9g, %.9g expected", c->op, (int)c->opset,
           c->attribute_count, (unsigned)index, text, worst, clv__tensor_get(made, worst), clv__tensor_get(wanted, worst));
}

/* Runs the case with the kernel for host memory and on the device, compares the outputs, and frees the case. */
static inline void check(node_case *c, uint32_t constants) {
  clv_error error = {0};
  case_run(c);
  clv_graph *graph = graph_of(c, constants);
  clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
  options.strategy = "contiguous";
  clv_plan *plan;
  clv_session *session;
  clv_tensor inputs[CASE_MAX], outputs[4] = {{0}};
  uint32_t input_count = 0;
  for (uint32_t i = 0; i < c->input_count; ++i) {
    if (c->inputs[i].dtype != CLV_DTYPE_NONE && (constants & AS_CONSTANT(i)) == 0) inputs[input_count++] = c->inputs[i];
  }
  clv_status status = clv_plan_make(graph, devices, &options, &plan, &error);
  if (status != CLV_OK) fail_msg("%s: %s", c->op, error.message);
  status = clv_session_create(plan, NULL, &session, &error);
  if (status != CLV_OK) fail_msg("%s: %s", c->op, error.message);
  status = clv_session_run(session, inputs, input_count, outputs, c->output_count, &error);
  if (status != CLV_OK) fail_msg("%s: %s", c->op, error.message);
  for (uint32_t i = 0; i < c->output_count; ++i) compare(c, i, &outputs[i]);
  clv_session_destroy(session);
  clv_plan_destroy(plan);
  clv__graph_destroy(graph);
  case_end(c);
}

/* ---- Inputs ---- */

#define SHAPE(...)                                                             \
  (int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]) { \
    __VA_ARGS__                                                                \
  }

static inline void input_ints(node_case *c, clv_dtype dtype, int64_t count, const int64_t *values) {
  uint64_t seed = 1;
  clv_tensor *t = case_input(c, &seed, dtype, 1, &count);
  for (int64_t i = 0; i < count; ++i) element_set(t, (size_t)i, (double)values[i]);
}
#define INTS(...)                                                              \
  (int64_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]) { \
    __VA_ARGS__                                                                \
  }

static inline void input_scalar(node_case *c, clv_dtype dtype, double value) {
  uint64_t seed = 1;
  element_set(case_input(c, &seed, dtype, 0, NULL), 0, value);
}

/* Random indices in [-size, size). */
static inline void input_indices(node_case *c, uint64_t *seed, clv_dtype dtype, int32_t rank, const int64_t *dims, int64_t size) {
  clv_tensor *t = case_input(c, seed, dtype, rank, dims);
  for (size_t i = 0; i < count_of(t); ++i) element_set(t, i, (double)random_in(seed, -size, size - 1));
}

static inline void absent(node_case *c) {
  uint64_t seed = 1;
  case_input(c, &seed, CLV_DTYPE_NONE, 0, NULL);
}

static inline void random_dims(uint64_t *seed, int32_t rank, int64_t most, int64_t *dims) {
  for (int32_t i = 0; i < rank; ++i) dims[i] = random_in(seed, 1, most);
}

static inline clv_dtype some_float(uint64_t *seed) {
  return random_in(seed, 0, 3) == 0 ? CLV_F16 : CLV_F32;
}

#endif
