/* Determines which operators are independent along an axis. Suppose the inputs are longer than necessary along the axis, with
 * arbitrary numbers at its end. If the operator is independent, the outputs begin with the same values as without these numbers.
 * A device of fixed shapes can therefore run tensors that are smaller. An operator declares its independence with a rule in its
 * table (clv__op.independent). The rule is in its family's folder: in rules.c, or in infer.c if it is short. An operator without
 * a rule is independent only if it is element-wise.
 *
 * Several axes may be padded at once: if each is independent by itself, for any contents, all are independent together. */
#ifndef CLEAVE_OPERATORS_COMMON_PADDING_H
#define CLEAVE_OPERATORS_COMMON_PADDING_H

#include "operators/infer.h"

#define CLV__REASON_BYTES 120

/* The arguments and results of clv__padding_ask(). A set of axes is a bit mask: bit i is axis i. */
typedef struct clv__padding {
  const clv__op *op;
  const clv__infer *node; /* types of inputs and outputs, dims may be symbols; `data` is set if it is known before a run */
  const uint32_t *inputs; /* per input: its padded axes */
  const bool *zero;       /* per input: whether it is certainly padded with zeros */
  uint32_t *outputs;      /* result, per output: its padded axes */
  /* Result, for each padded axis of an output: its size is the size of the input axis that it comes from, times `times`,
   * divided by `over`. */
  int64_t times[CLV_MAX_RANK], over[CLV_MAX_RANK];
  char reason[CLV__REASON_BYTES]; /* result: why the node is not independent */
} clv__padding;

/* Whether the node is independent along all padded axes. The caller sets the fields up to `outputs`, which must point to
 * allocated memory. */
bool clv__padding_ask(clv__padding *padding);

/* ---- For rules ---- */

/* Formats `reason` and returns false. */
bool clv__padding_no(clv__padding *padding, const char *format, ...) CLV_PRINTF(2, 3);
/* False, with the reason, if one of the axes `axes` of input `input` is padded. Rules use it for axes along which the operator
 * combines elements. */
bool clv__padding_avoids(clv__padding *padding, uint32_t input, uint32_t axes);
/* False if any axis of the inputs from `first` on is padded. */
bool clv__padding_whole_from(clv__padding *padding, uint32_t first);
/* Sets *axis to the axis `given` of a tensor of `rank`, which may be counted from either end. Returns false, with the reason,
 * if there is no such axis. */
bool clv__padding_axis(clv__padding *padding, int64_t given, int32_t rank, int32_t *axis);
/* Like clv__padding_axis(), for the axis in the attribute `axis`, which defaults to `fallback`. */
bool clv__padding_attribute_axis(clv__padding *padding, int64_t fallback, int32_t rank, int32_t *axis);
/* A short list of integers: from the attribute, if `name` is not NULL and the node has it, otherwise from an input. *given is
 * false if there is neither. Returns false, with the reason, if the list is known only at run time. */
bool clv__padding_list(clv__padding *padding, const char *name, uint32_t input, bool *given, clv__content *list);
/* Marks all outputs as padded like input 0, and returns true. */
bool clv__padding_pass(clv__padding *padding);

static inline uint32_t clv__axis_bit(int32_t axis) {
  return 1u << axis;
}
/* The axes [from, to). */
static inline uint32_t clv__axes_between(int32_t from, int32_t to) {
  return from < to ? ((1u << to) - 1) & ~((1u << from) - 1) : 0;
}

/* ---- Rules of several families: false, with the reason, where the node is not independent ---- */

/* The rule of element-wise operators, whose inputs broadcast to output 0 by numpy's rules. */
bool clv__independent_elementwise(clv__padding *padding);
/* The rule of operators whose output elements depend only on the element of input 0 at the same position. The other inputs must
 * not be padded. */
bool clv__independent_first(clv__padding *padding);
/* The rule of operators that compute each image of the batch (axis 0) separately. */
bool clv__independent_batch(clv__padding *padding);
/* The rule of operators that compute each line along attribute `axis` (by default -1) separately. That axis must not be
 * padded. */
bool clv__independent_lines(clv__padding *padding);

#endif
