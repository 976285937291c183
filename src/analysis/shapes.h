/* The shapes of a whole graph, and the values known at plan time. They are stored in a table of their own; the graph itself does
 * not change. */
#ifndef CLEAVE_ANALYSIS_SHAPES_H
#define CLEAVE_ANALYSIS_SHAPES_H

#include "analysis/shapes_given.h"
#include "operators/infer.h"

/* Special values of `fold_limit_bytes`: fold everything; or everything except the DequantizeLinear nodes of integer weights of
 * products and convolutions, because integer kernels need the integers. */
#define CLV__FOLD_ALL SIZE_MAX
#define CLV__FOLD_BUT_QUANTISED (SIZE_MAX - 1)

typedef struct clv__shapes {
  clv__arena arena;          /* holds folded data */
  clv_tensor *types;         /* by value id; `data` is not NULL if the value is known at plan time: an initializer (perhaps
                              * unaligned) or folded. Use clv__value_is_constant() to test for a constant, because a weight's
                              * bytes may be missing. */
  bool *node_folded;         /* by node id: every used output is known at plan time, so the node does not run */
  clv__file_map_list *fills; /* large constants that repeat one element, as mappings */
  uint32_t symbol_count;     /* the graph's symbols, and one for each dimension that could not be inferred */
} clv__shapes;

/* Infers every value's type. Given sizes replace symbols everywhere they occur; a contradiction with the declared type is an
 * error. Values that follow from constants are computed, up to `fold_limit_bytes` each (or one of the special values above).
 *
 * If inference cannot determine a type, the model's own declaration is used. If the two contradict each other, inference wins. A
 * value of an unknown operator may have dtype none and unknown rank.
 *
 * Folded data is aligned to CLV__ALIGNMENT in `arena`. If the bytes already exist (a Constant's tensor, a view of a known value),
 * `data` points to them instead; they may be unaligned and shared by several values. Shape tensors that inference itself computes
 * (Shape of a static value, and values computed from it) are known regardless of the limit. */
clv_status clv__shapes_infer(const clv_graph *graph, const clv__shape_given *given, uint32_t given_count, size_t fold_limit_bytes,
                             clv__shapes **shapes, clv_error *error);
void clv__shapes_destroy(clv__shapes *shapes); /* accepts NULL */

/* Infers one node, for devices at run time (see clv_host.infer_node). Captures are the last inputs. */
clv_status clv__node_infer(const clv_graph *graph, clv_node_id node, const clv_tensor *inputs, clv_tensor *outputs,
                           clv_error *error);

#endif
