/* Which operators are independent along an axis: where inputs are longer along it than they need be, filled up at its end with
 * whatever numbers there are, the outputs hold at their beginning what they would hold anyway. It is what lets a device of fixed
 * shapes run tensors of other sizes. An operator says so with a rule in its table (clv__op.independent), which stands with its
 * family: in rules.c, or in infer.c where it is short. One without a rule is independent where it is element-wise, and only
 * there.
 *
 * Several axes may be padded at once: what holds for each alone, whatever the contents, holds for all together. */
#ifndef CLEAVE_OPERATORS_COMMON_PADDING_H
#define CLEAVE_OPERATORS_COMMON_PADDING_H

#include "operators/infer.h"

#define CLV__REASON_BYTES 120

/* What is asked, and the answer. Axes are bits. */
typedef struct clv__padding {
  const clv__op *op;
  const clv__infer *node; /* types of inputs and outputs, dims may be symbols; `data` is there for what is known before a run */
  const uint32_t *inputs; /* by input: its padded axes */
  const bool *zero;       /* by input: it is padded with zeros for certain */
  uint32_t *outputs;      /* filled, by output: its padded axes */
  /* Filled for the padded axes of output 0: its size is that of the input's axis times `times`, divided by `over`. */
  int64_t times[CLV_MAX_RANK], over[CLV_MAX_RANK];
  char reason[CLV__REASON_BYTES]; /* filled where the answer is no */
} clv__padding;

/* Whether the node is independent along all padded axes. The caller sets the fields down to `outputs`, with room in it. */
bool clv__padding_ask(clv__padding *padding);

/* ---- For rules ---- */

/* Says why not; returns false. */
bool clv__padding_no(clv__padding *padding, const char *format, ...) CLV_PRINTF(2, 3);
/* False, with the reason, where one of these axes of an input is padded: the operator looks along it. */
bool clv__padding_avoids(clv__padding *padding, uint32_t input, uint32_t axes);
/* False where any axis of the inputs from `first` on is padded. */
bool clv__padding_whole_from(clv__padding *padding, uint32_t first);
/* An axis counted from either end of a tensor of `rank`; false where it is outside. */
bool clv__padding_axis(clv__padding *padding, int64_t given, int32_t rank, int32_t *axis);
/* The same of attribute `axis`, `fallback` where it is not said. */
bool clv__padding_attribute_axis(clv__padding *padding, int64_t fallback, int32_t rank, int32_t *axis);
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

/* ---- Rules of several families: false, with the reason, where the node is not independent ---- */

/* Numpy's broadcasting into output 0. */
bool clv__independent_elementwise(clv__padding *padding);
/* Each place of the outputs by the same place of input 0; of the others only their dtype or a number counts. */
bool clv__independent_first(clv__padding *padding);
/* Each image of the batch by itself. */
bool clv__independent_batch(clv__padding *padding);
/* Each line along attribute `axis` by itself, -1 where it is not said. */
bool clv__independent_lines(clv__padding *padding);

#endif
