/* Sizes that the user gives, against what the graph declares. */
#ifndef CLEAVE_ANALYSIS_SHAPES_GIVEN_H
#define CLEAVE_ANALYSIS_SHAPES_GIVEN_H

#include "graph/graph.h"

/* A size given by the user: for a graph input (by name, whole shape), or for a symbolic dimension (by name). */
typedef struct clv__shape_given {
  const char *name;
  bool is_symbol;
  int32_t rank;
  int64_t dims[CLV_MAX_RANK]; /* dims[0] for a symbol */
} clv__shape_given;

/* Fills `bindings`, by symbol of the graph: the given number, or the symbol itself. Checks every given size: the input or symbol
 * exists, agrees with its declaration, and with all others. */
clv_status clv__given_bind(const clv_graph *graph, const clv__shape_given *given, uint32_t given_count, int64_t *bindings,
                           clv_error *error);
/* Lays what is given for input `name` over its type. */
void clv__given_apply(const char *name, const clv__shape_given *given, uint32_t given_count, clv_tensor *type);

#endif
