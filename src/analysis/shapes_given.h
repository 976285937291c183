/* Checks the sizes that the user gives against the graph's declarations. */
#ifndef CLEAVE_ANALYSIS_SHAPES_GIVEN_H
#define CLEAVE_ANALYSIS_SHAPES_GIVEN_H

#include "graph/graph.h"

/* A size given by the user: the whole shape of a graph input (by name), or one symbolic dimension (by name). */
typedef struct clv__shape_given {
  const char *name;
  bool is_symbol;
  int32_t rank;
  int64_t dims[CLV_MAX_RANK]; /* only dims[0] for a symbol */
} clv__shape_given;

/* Fills `bindings`, indexed by the graph's symbols, with the given number or the symbol itself. Checks that every given size
 * names an existing input or symbol, and that it agrees with the declaration and with all other given sizes. */
clv_status clv__given_bind(const clv_graph *graph, const clv__shape_given *given, uint32_t given_count, int64_t *bindings,
                           clv_error *error);
/* Overwrites the dims of `type`, the type of input `name`, with the shape that the user gave for this input, if any. */
void clv__given_apply(const char *name, const clv__shape_given *given, uint32_t given_count, clv_tensor *type);

#endif
