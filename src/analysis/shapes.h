/* Shapes of a whole graph, and the values known at plan time. The graph is not touched: this is a table beside it. */
#ifndef CLEAVE_ANALYSIS_SHAPES_H
#define CLEAVE_ANALYSIS_SHAPES_H

#include "analysis/shapes_given.h"
#include "operators/infer.h"

/* Fold limits: everything; everything but DequantizeLinear of the integer weights of a product, which integer kernels want. */
#define CLV__FOLD_ALL SIZE_MAX
#define CLV__FOLD_BUT_QUANTISED (SIZE_MAX - 1)

typedef struct clv__shapes {
  clv__arena arena;          /* holds folded data */
  clv_tensor *types;         /* by value id; `data` not NULL: known at plan time, an initializer (perhaps unaligned) or folded.
                              * What is a constant clv__value_is_constant() tells: a weight's bytes may be missing. */
  bool *node_folded;         /* by node id: every output that is used is known at plan time: cause `const`, nothing to run */
  clv__file_map_list *fills; /* large constants of one value, mapped */
  uint32_t symbol_count;     /* the graph's, and one for each dimension that nobody could tell */
} clv__shapes;

/* Folded data is aligned to CLV__ALIGNMENT in `arena`, but where the bytes exist already (a Constant's tensor, a view of a known
 * value) `data` points at those, which may be unaligned and shared by several values. Shape tensors that inference itself found
 * out (Shape of a static value, and what is computed from it) are known whatever the limit.
 *
 * Where inference cannot tell, the model's own declaration is believed; where the two contradict each other, inference. A value
 * of an unknown operator may have dtype none and unknown rank.
 *
 * Infers every value's type. Given sizes replace symbols everywhere they occur; a contradiction with the declared type is an
 * error. Values computable from constants are computed (up to `fold_limit_bytes` each, or one of the limits above). */
clv_status clv__shapes_infer(const clv_graph *graph, const clv__shape_given *given, uint32_t given_count, size_t fold_limit_bytes,
                             clv__shapes **shapes, clv_error *error);
void clv__shapes_destroy(clv__shapes *shapes); /* accepts NULL */

/* One node, for devices at run time (see clv_host.infer_node): captures are the last inputs. */
clv_status clv__node_infer(const clv_graph *graph, clv_node_id node, const clv_tensor *inputs, clv_tensor *outputs,
                           clv_error *error);

#endif
