/* Sizes that a graph leaves open, and how devices of fixed shapes can handle them: the axes along which values may be padded, so
 * that one program serves many sizes. This is computed once for the whole graph, so the result does not depend on how the graph
 * is split. A node is independent along an axis if its outputs begin with the same values when its inputs are made longer along
 * that axis (operators/common/padding.h). A set of nodes that are each independent along their open axes can be padded as a
 * whole.
 *
 * An open size is a symbol. Most symbols are their own base. A symbol that follows from another through a Reshape
 * ([N,64] to [64 N]) is a multiple of the other symbol. Its padded size is the same multiple of the other's padded size. */
#ifndef CLEAVE_ANALYSIS_OPEN_H
#define CLEAVE_ANALYSIS_OPEN_H

#include "analysis/shapes.h"

typedef struct clv__open {
  uint32_t symbol_count;
  const uint32_t *base;  /* by symbol: the symbol that it is a multiple of; usually itself */
  const int64_t *factor; /* by symbol: its multiple of `base` */
  const bool *is_open;   /* by node: the size of some operand is open or unknown */
  const char **reasons;  /* by node: why the node is not independent along its open axes; NULL if it is */
  /* By value: its type with a typical size for every open size, for verdicts and prices; `data` as in the shapes. Sizes that
   * depend on data stay open. NULL if the model accepts none of the sizes tried. */
  const clv_tensor *typical;
} clv__open;

/* Sets `*open`; NULL if every size is known. `given` are the sizes that `shapes` was inferred with. The result is allocated in
 * `arena`. */
clv_status clv__open_find(const clv_graph *graph, const clv__shapes *shapes, const clv__shape_given *given, uint32_t given_count,
                          clv__arena *arena, const clv__open **open, clv_error *error);

/* The size of `dim` if each base symbol has the size in `sizes` (by symbol). Negative if it is not known. */
int64_t clv__open_size(const clv__open *open, int64_t dim, const int64_t *sizes);

#endif
