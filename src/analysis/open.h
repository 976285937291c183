/* Sizes that a graph leaves open, and what devices of fixed shapes can make of them: along which axes values may be padded, so
 * that one program serves many sizes. Worked out once over the whole graph, so that it does not depend on how it is cut: a set of
 * nodes that are each independent along their open axes is paddable as a whole.
 *
 * A size is a symbol. Most are their own; one that follows from another by a Reshape ([N,64] to [64 N]) is so many times that
 * one, and is padded to as many times what that one is padded to. */
#ifndef CLEAVE_ANALYSIS_OPEN_H
#define CLEAVE_ANALYSIS_OPEN_H

#include "analysis/shapes.h"

typedef struct clv__open {
  uint32_t symbol_count;
  const uint32_t *base;  /* by symbol: the one it is a multiple of: itself, most often */
  const int64_t *factor; /* by symbol: how many times */
  const bool *is_open;   /* by node: some operand's size is open, or unknown */
  const char **reasons;  /* by node: why it is not independent along its open axes; NULL: it is */
  /* By value: its type with a typical size for every open one, `data` as the shapes have it: for verdicts and prices. Sizes that
   * depend on data stay open. NULL where the model takes none of the sizes that were tried. */
  const clv_tensor *typical;
} clv__open;

/* NULL in `open` where every size is known. `given` are those that `shapes` was inferred with. In `arena`. */
clv_status clv__open_find(const clv_graph *graph, const clv__shapes *shapes, const clv__shape_given *given, uint32_t given_count,
                          clv__arena *arena, const clv__open **open, clv_error *error);

/* The size of `dim` where each symbol has the size that `sizes` (by symbol) gives its base; negative where that is not known. */
int64_t clv__open_size(const clv__open *open, int64_t dim, const int64_t *sizes);

#endif
