/* The operators of the attention family that have their own infer files. infer.c has the table. */
#ifndef CLEAVE_OPERATORS_ATTENTION_INFER_H
#define CLEAVE_OPERATORS_ATTENTION_INFER_H

#include "operators/infer.h"

/* infer_rotary.c: RotaryEmbedding */
clv_status clv__infer_rotary(clv__infer *infer);
void clv__work_rotary(const clv__infer *infer, clv__work *work);
/* infer_linear.c: LinearAttention */
clv_status clv__infer_linear_attention(clv__infer *infer);
void clv__work_linear_attention(const clv__infer *infer, clv__work *work);

/* Sets *size to the columns per head: `dim`, the number of columns of input `input`, divided by `count` heads. Returns an error
 * if the division has a remainder. */
clv_status clv__attention_head_size(clv__infer *infer, uint32_t input, int64_t dim, int64_t count, int64_t *size);

#endif
