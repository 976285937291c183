/* Elementwise operators as expressions. An expression is either launched as a kernel or fused as a "post": the kernel of the node
 * before it applies it to its results before it stores them. */
#ifndef CLEAVE_BACKENDS_OPENCL_LOWER_EXPRESSIONS_H
#define CLEAVE_BACKENDS_OPENCL_LOWER_EXPRESSIONS_H

#include "operator.h"

typedef struct clv__opencl_expression {
  const char *op;
  uint32_t operands; /* 1: x, 2: x and y, 3: x, y and z */
  uint32_t dtypes;   /* dtypes of x */
  const char *text;
  const char *p_name, *q_name; /* names of the attributes */
  float p, q;                  /* the attributes' defaults */
} clv__opencl_expression;

typedef struct clv__opencl_function {
  const clv__opencl_expression *expression;
  double p, q;
} clv__opencl_function;

/* x limited to two bounds. The upper bound is applied last, so it wins if it is below the lower one. */
#define CLV__OPENCL_LIMITED(low, high) "(x < " low " ? " low " : x) > " high " ? " high " : (x < " low " ? " low " : x)"

/* Finds the expression of an operator for a dtype, or NULL. */
const clv__opencl_expression *clv__opencl_expression_find(const char *op, clv_dtype dtype);
static inline bool clv__opencl_dtype_in(clv_dtype dtype, uint32_t mask) {
  return (mask & CLV__DTYPE_BIT(dtype)) != 0;
}
/* Finds the expression and the parameters of a node. Returns false if the node is not an elementwise operator, or if its
 * parameters are unknown. */
bool clv__opencl_function_of(const clv__opencl_node *node, clv__opencl_function *function);
/* The widest bounds of a float dtype. The specification of Clip defines them as the defaults. */
void clv__opencl_widest_bounds(clv_dtype dtype, double *low, double *high);
/* Formats `value` as a constant in OpenCL C, of the type in which `dtype` is computed. */
void clv__opencl_number_text(clv_dtype dtype, double value, char text[64]);

#endif
