/* Small graphs for tests, made with the builder. */
#ifndef CLEAVE_TESTS_MODELS_H
#define CLEAVE_TESTS_MODELS_H

#include "graph/graph.h"

/* A compact way to write graphs in tests. Values are referred to by name: "a,b" is a list of two, and an empty name an omitted
 * value. All functions fail the test on error. */
typedef struct test_graph {
  clv__builder *builder;
  uint64_t seed;
} test_graph;

void test_graph_begin(test_graph *graph, const clv_allocator *allocator, uint64_t seed);
void test_graph_input(test_graph *graph, const char *name, clv_dtype dtype, int32_t rank, const int64_t *dims);
/* Returns a symbolic dimension for use in the dims of inputs. */
int64_t test_graph_symbol(test_graph *graph, const char *name);
/* Adds an initializer: seeded random numbers in [-1, 1) / sqrt(fan), where fan is the product of all dims but the first. */
void test_graph_weight(test_graph *graph, const char *name, int32_t rank, const int64_t *dims);
/* Adds an i64 vector as an initializer. */
void test_graph_ints(test_graph *graph, const char *name, int32_t count, const int64_t *values);
/* Adds an initializer. Copies its data. */
void test_graph_constant(test_graph *graph, const char *name, const clv_tensor *tensor);
void test_graph_node(test_graph *graph, const char *name, const char *op, const char *inputs, const char *outputs);
/* Adds a node with one attribute of ints (a scalar unless `is_list`). */
void test_graph_node_ints(test_graph *graph, const char *name, const char *op, const char *inputs, const char *outputs,
                          const char *attribute, bool is_list, size_t count, const int64_t *values);
clv_value_id test_graph_value(test_graph *graph, const char *name); /* creates the value if no value has this name */
clv_graph *test_graph_end(test_graph *graph, const char *outputs);

/* A graph of seven nodes: conv, relu, matmul, add, relu2, concat and softmax. */
clv_graph *test_seven_nodes(const clv_allocator *allocator);

/* A random graph of `node_count` f32 elementwise, matmul and view nodes on [4, 8] values, with several components, outputs that
 * are read inside the graph, and early values that are read late. */
clv_graph *test_random_graph(const clv_allocator *allocator, uint64_t seed, uint32_t node_count);

/* Like test_random_graph(), but if `is_open`, the values are [N, 8] with a symbolic N. */
clv_graph *test_random_rows(const clv_allocator *allocator, uint64_t seed, uint32_t node_count, bool is_open);

/* A random graph over inputs "a" and "b" [N,8], "c" [N,T,8] and "i" [N], indices below 16, with symbolic N and T. Most of its
 * nodes compute each element of N and T independently (matrix products only if `products`); some do not. */
clv_graph *test_random_open_graph(const clv_allocator *allocator, uint64_t seed, uint32_t node_count, bool products);

#endif
