/* Small graphs for the sections: built by hand, node by node, or at random from the operators that the device supports. */
#ifndef CLEAVE_CHECK_SKETCH_H
#define CLEAVE_CHECK_SKETCH_H

#include "check/run.h"

/* A graph under construction. The first error is kept; later calls do nothing. */
typedef struct clv__sketch {
  clv__builder *builder;
  uint64_t seed;
  clv_dtype dtype; /* dtype of inputs and weights */
  clv_status status;
  clv_error *error;
} clv__sketch;

void clv__sketch_begin(clv__sketch *sketch, clv__check *check, clv_dtype dtype, uint64_t seed, clv_error *error);
/* Adds an input. A dim below -1 is a symbol (CLV_DIM_SYMBOL of clv__sketch_symbol()). */
void clv__sketch_input(clv__sketch *sketch, const char *name, int32_t rank, const int64_t *dims);
int64_t clv__sketch_symbol(clv__sketch *sketch, const char *name);
/* Adds a constant of seeded numbers in [-scale, scale). If `positive`, they are replaced by their absolute value plus 0.5. */
void clv__sketch_weight(clv__sketch *sketch, const char *name, int32_t rank, const int64_t *dims, double scale, bool positive);
void clv__sketch_ints(clv__sketch *sketch, const char *name, int32_t count, const int64_t *values); /* adds an i64 vector */
/* Adds a node. `inputs` and `outputs` are names separated by commas. */
void clv__sketch_node(clv__sketch *sketch, const char *op, const char *inputs, const char *outputs);
/* Like clv__sketch_node(), with one integer attribute: a list, or a scalar if `count` is 1 and `is_list` is false. */
void clv__sketch_node_ints(clv__sketch *sketch, const char *op, const char *inputs, const char *outputs, const char *attribute,
                           bool is_list, size_t count, const int64_t *values);
/* Adds a node whose operator is in a domain other than ONNX's. */
void clv__sketch_foreign(clv__sketch *sketch, const char *domain, const char *op, const char *inputs, const char *outputs);
/* Adds a pool with a 3x3 window that keeps the size. */
void clv__sketch_pool(clv__sketch *sketch, const char *op, const char *inputs, const char *outputs);
/* Returns the graph, or the first error. `outputs` are names separated by commas. */
clv_status clv__sketch_end(clv__sketch *sketch, const char *outputs, clv_graph **graph);

/* Allocates seeded data in `arena` for the inputs of a graph: floats in [-1, 1), integers 0 to 9. `sizes` has the size of each
 * symbolic dimension, indexed by its symbol; NULL: the graph has none. */
clv_status clv__sketch_data(const clv_graph *graph, const int64_t *sizes, uint64_t seed, clv__arena *arena, clv_tensor **inputs,
                            clv_error *error);

/* ---- Operators that a device supports (menu.c) ---- */

typedef struct clv__menu_item clv__menu_item;

enum { CLV__MENU_MOST = 48 };

/* Operators that keep their operands' shape and that the device supports in one dtype. */
typedef struct clv__menu {
  clv_dtype dtype;
  uint32_t count;
  const clv__menu_item *items[CLV__MENU_MOST];
  bool is_image;  /* values are [n,c,h,w], else [rows,columns] */
  bool is_binary; /* at least one of the items has two computed operands */
} clv__menu;

/* Finds the first dtype in which the device supports an operator other than Identity for values of rank 2, or of rank 4 if
 * `is_image`. If `binary`, it must also support an operator with two operands. Returns false if there is no such dtype. */
bool clv__menu_find(clv__check *check, bool is_image, bool binary, clv__menu *menu);
/* Finds the operators that the device supports in one dtype. Returns false if there are none except Identity. */
bool clv__menu_read(clv__check *check, clv_dtype dtype, bool is_image, clv__menu *menu);
/* Creates a random graph of `node_count` nodes with two inputs "a" and "b" of `dims` (2 or 4 dims, possibly symbols). Each
 * intermediate value is also an output with a probability of `share` percent. */
clv_status clv__menu_graph(clv__check *check, const clv__menu *menu, uint32_t node_count, const int64_t *dims, uint32_t share,
                           uint64_t seed, clv_graph **graph, clv_error *error);
/* Creates a chain of `length` nodes that takes some time to run. Each node reads the output of the previous node; the last node's
 * output is the only output. */
clv_status clv__menu_chain(clv__check *check, const clv__menu *menu, uint32_t length, const int64_t *dims, uint64_t seed,
                           clv_graph **graph, clv_error *error);
/* Writes the operators of a graph, such as "Conv, Relu, Add". */
void clv__menu_text(const clv_graph *graph, char *text, size_t text_bytes);

#endif
