/* Shared by the tests that run random graphs on the CPU backend: the values of a graph under construction, and functions that add
 * nodes. */
#ifndef CLEAVE_TESTS_BACKENDS_CPU_GENERATOR_H
#define CLEAVE_TESTS_BACKENDS_CPU_GENERATOR_H

#include "cpu_host.h"

enum { GENERATOR_VALUES = 64 };

typedef struct made_value {
  char name[16];
  int64_t dims[4];
  bool read;
} made_value;

typedef struct generator {
  test_graph t;
  uint64_t seed;
  clv_dtype dtype, rounds; /* for tests of several dtypes: the graph's dtype, and the dtype that its numbers are rounded to */
  made_value values[GENERATOR_VALUES];
  int count, weights;
} generator;

static inline int64_t pick(generator *g, int64_t limit) {
  return (int64_t)(test_random(&g->seed) % (uint64_t)limit);
}

static inline made_value *add(generator *g, const int64_t *dims) {
  assert_true(g->count < GENERATOR_VALUES);
  made_value *made = &g->values[g->count];
  snprintf(made->name, sizeof made->name, "v%d", g->count++);
  memcpy(made->dims, dims, sizeof made->dims);
  return made;
}

/* Adds a node that has the name of its output. `inputs` is a list such as "a,b". */
static inline void node(generator *g, const char *op, const char *inputs, const char *output, const clv_attribute *attributes,
                        uint32_t attribute_count) {
  clv_error error = {0};
  clv_value_id in[4], out;
  char list[128], *rest = NULL;
  uint32_t count = 0;
  snprintf(list, sizeof list, "%s", inputs);
  for (char *name = strtok_r(list, ",", &rest); name != NULL; name = strtok_r(NULL, ",", &rest)) {
    assert_true(count < 4);
    assert_ok(clv__builder_value(g->t.builder, name, &in[count++], &error), error);
  }
  assert_ok(clv__builder_value(g->t.builder, output, &out, &error), error);
  assert_ok(clv__builder_node(g->t.builder, output, "", op, in, count, &out, 1, attributes, attribute_count, &error), error);
}

/* Makes an attribute with a copy of the values that lives as long as the graph. */
static inline clv_attribute ints(generator *g, const char *name, bool is_list, size_t count, const int64_t *values) {
  const int64_t *kept = clv__arena_copy(clv__builder_arena(g->t.builder), values, count * sizeof *values);
  return (clv_attribute){.name = name, .kind = CLV_ATTRIBUTE_INTS, .is_list = is_list, .count = count, .ints = kept};
}

/* Adds a convolution whose result has the height and width of x. `kernel` must be odd. */
static inline made_value *convolve_same(generator *g, const made_value *x, int64_t channels, int64_t kernel) {
  const int64_t dims[4] = {channels, x->dims[1], kernel, kernel}, pads[4] = {kernel / 2, kernel / 2, kernel / 2, kernel / 2};
  const int64_t out[4] = {x->dims[0], channels, x->dims[2], x->dims[3]};
  char w[16], list[64];
  sprintf(w, "w%d", g->weights++);
  test_graph_weight(&g->t, w, 4, dims);
  snprintf(list, sizeof list, "%s,%s", x->name, w);
  const clv_attribute attribute = ints(g, "pads", true, 4, pads);
  made_value *made = add(g, out);
  node(g, "Conv", list, made->name, &attribute, 1);
  return made;
}

#endif
