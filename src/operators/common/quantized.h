/* Products of 8-bit integers: MatMulInteger and ConvInteger give their i32 sums, QLinearMatMul and QLinearConv quantize them
 * again. Shapes are those of MatMul and Conv. */
#ifndef CLEAVE_OPERATORS_COMMON_QUANTIZED_H
#define CLEAVE_OPERATORS_COMMON_QUANTIZED_H

#include "operators/infer.h"

/* Where such an operator has its operands. */
typedef struct clv__quantized {
  uint32_t left, left_zero, right, right_zero;
  bool requantizes; /* QLinear: scales behind the operands, and bytes as the result */
} clv__quantized;

/* The places of the node's operator, which is one of the four. */
const clv__quantized *clv__quantized_places(const clv__infer *infer);

/* Dtypes of operands, zero points and scales. */
clv_status clv__quantized_check(clv__infer *infer, const clv__quantized *at);

/* Output 0 has the shape that `infer_floats` gives the two operands alone. */
clv_status clv__quantized_infer(clv__infer *infer, const clv__quantized *at, clv_status (*infer_floats)(clv__infer *infer));

#endif
