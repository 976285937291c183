/* The graph of the replay benchmarks: a chain of tiny nodes on [4, 8] values. Every other node also reads a second input. */
#ifndef CLEAVE_BENCH_CHAIN_H
#define CLEAVE_BENCH_CHAIN_H

#include "bench.h"

enum { ROWS = 4, COLUMNS = 8, ELEMENTS = ROWS * COLUMNS, VALUE_BYTES = ELEMENTS * 4 };

/* If `is_open`, a third input contains the shape of the first, so that no size is known before a run. */
static inline clv_graph *make_graph(uint32_t nodes, bool is_open) {
  static const char *const ops[] = {"Add", "Relu", "Sub", "Neg", "Max", "Abs"};
  const int64_t dims[2] = {ROWS, COLUMNS};
  const clv_tensor type = clv__tensor_make(CLV_F32, 2, dims, NULL);
  clv_error error = {0};
  clv__builder *builder;
  clv_graph *graph;
  check(clv__builder_create(clv__allocator_default(), &builder, &error), &error, "builder");
  check(clv__builder_import(builder, "", 17, &error), &error, "builder");
  static const char *const names[] = {"v0", "side", "shape"};
  const int64_t rank = 2;
  const clv_tensor shape = clv__tensor_make(CLV_I64, 1, &rank, NULL);
  for (int i = 0; i < (is_open ? 3 : 2); ++i) {
    clv_value_id input = value(builder, is_open && i == 0 ? "given" : names[i]);
    clv__builder_type(builder, input, i < 2 ? &type : &shape);
    check(clv__builder_input(builder, input, &error), &error, "input");
  }
  if (is_open) {
    clv_value_id in[2] = {value(builder, "given"), value(builder, "shape")}, out = value(builder, "v0");
    check(clv__builder_node(builder, "", "", "Reshape", in, 2, &out, 1, NULL, 0, &error), &error, "node");
  }
  for (uint32_t n = 0; n < nodes; ++n) {
    char name[24];
    snprintf(name, sizeof name, "v%u", n);
    clv_value_id in[2] = {value(builder, name), value(builder, "side")};
    snprintf(name, sizeof name, "v%u", n + 1);
    clv_value_id out = value(builder, name);
    const char *op = ops[n % 6];
    check(clv__builder_node(builder, "", "", op, in, n % 2 == 0 ? 2 : 1, &out, 1, NULL, 0, &error), &error, "node");
    if (n + 1 == nodes) check(clv__builder_output(builder, out, &error), &error, "output");
  }
  check(clv__builder_finish(builder, &graph, &error), &error, "graph");
  return graph;
}

#endif
