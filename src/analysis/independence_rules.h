/* The rules behind independence.h, by family: operators over elements and lines (independence_math.c), and those that move
 * elements (independence_move.c). Each returns false with a reason where the node is not independent. */
#ifndef CLEAVE_ANALYSIS_INDEPENDENCE_RULES_H
#define CLEAVE_ANALYSIS_INDEPENDENCE_RULES_H

#include "operators/common/padding.h"

/* ---- Shared (independence.c) ---- */

/* Says why not; returns false. */
bool clv__padding_no(clv__padding *padding, const char *format, ...) CLV_PRINTF(2, 3);
/* False, with the reason, where one of these axes of an input is padded: the operator looks along it. */
bool clv__padding_avoids(clv__padding *padding, uint32_t input, uint32_t axes);
/* False where any axis of the inputs from `first` on is padded. */
bool clv__padding_whole_from(clv__padding *padding, uint32_t first);
/* An axis counted from either end of a tensor of `rank`; false where it is outside. */
bool clv__padding_axis(clv__padding *padding, int64_t given, int32_t rank, int32_t *axis);
/* A short list of integers, from an attribute where `name` is not NULL and it is there, else from an input; *given is false where
 * neither is. False, with the reason, where only a run can tell. */
bool clv__padding_list(clv__padding *padding, const char *name, uint32_t input, bool *given, clv__content *list);
/* All outputs are padded as input 0. */
bool clv__padding_pass(clv__padding *padding);

static inline uint32_t clv__axis_bit(int32_t axis) {
  return 1u << axis;
}
/* The axes [from, to). */
static inline uint32_t clv__axes_between(int32_t from, int32_t to) {
  return from < to ? ((1u << to) - 1) & ~((1u << from) - 1) : 0;
}

/* ---- Rules: false, with the reason, where the node is not independent ---- */

bool clv__independent_elementwise(clv__padding *padding); /* numpy's broadcasting into output 0 */
bool clv__independent_divide(clv__padding *padding);
bool clv__independent_first(clv__padding *padding);
bool clv__independent_reduce(clv__padding *padding);
bool clv__independent_arg(clv__padding *padding);
bool clv__independent_cumulate(clv__padding *padding);
bool clv__independent_softmax(clv__padding *padding);
bool clv__independent_quantize(clv__padding *padding);
bool clv__independent_matmul(clv__padding *padding);
bool clv__independent_gemm(clv__padding *padding);
bool clv__independent_einsum(clv__padding *padding);
bool clv__independent_batch(clv__padding *padding);
bool clv__independent_planes(clv__padding *padding);
bool clv__independent_batch_norm(clv__padding *padding);
bool clv__independent_layer_norm(clv__padding *padding);
bool clv__independent_mean_variance(clv__padding *padding);
bool clv__independent_lp(clv__padding *padding);
bool clv__independent_lrn(clv__padding *padding);

bool clv__independent_reshape(clv__padding *padding);
bool clv__independent_transpose(clv__padding *padding);
bool clv__independent_concat(clv__padding *padding);
bool clv__independent_split(clv__padding *padding);
bool clv__independent_slice(clv__padding *padding);
bool clv__independent_pad(clv__padding *padding);
bool clv__independent_expand(clv__padding *padding);
bool clv__independent_tile(clv__padding *padding);
bool clv__independent_gather(clv__padding *padding);
bool clv__independent_gather_elements(clv__padding *padding);
bool clv__independent_gather_nd(clv__padding *padding);
bool clv__independent_scatter_elements(clv__padding *padding);
bool clv__independent_scatter_nd(clv__padding *padding);
bool clv__independent_one_hot(clv__padding *padding);
bool clv__independent_topk(clv__padding *padding);

#endif
