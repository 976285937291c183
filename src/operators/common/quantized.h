/* Products of 8-bit integers: MatMulInteger and ConvInteger return i32 sums, QLinearMatMul and QLinearConv quantize the sums to 8
 * bits. Shapes are inferred as for MatMul and Conv. */
#ifndef CLEAVE_OPERATORS_COMMON_QUANTIZED_H
#define CLEAVE_OPERATORS_COMMON_QUANTIZED_H

#include "operators/infer.h"

/* The input indices of the operands of one of the four operators named at the top of this file, and of their zero points. */
typedef struct clv__quantized {
  uint32_t left, left_zero, right, right_zero;
  bool requantizes; /* QLinearMatMul, QLinearConv: each operand is followed by its scale; the result is u8 or i8 */
} clv__quantized;

/* The input indices for the node's operator, which must be one of these four. */
const clv__quantized *clv__quantized_places(const clv__infer *infer);

/* Checks the dtypes of operands, zero points and scales. */
clv_status clv__quantized_check(clv__infer *infer, const clv__quantized *at);

/* Gives output 0 the shape that `infer_floats` infers from the two operands alone. */
clv_status clv__quantized_infer(clv__infer *infer, const clv__quantized *at, clv_status (*infer_floats)(clv__infer *infer));

#endif
