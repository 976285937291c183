/* Which operators are independent along an axis: where inputs are longer along it than they need be, filled up at its end with
 * whatever numbers there are, the outputs hold at their beginning what they would hold anyway. It is what lets a device of fixed
 * shapes run tensors of other sizes. One table (independence.c) beside the operator table; what neither it names nor is
 * element-wise is not independent.
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

/* Whether the operator makes zeros where its inputs are padded with zeros. */
bool clv__op_keeps_zero(const clv__op *op);

#endif
