/* Elementwise operators as expressions in OpenCL C. An expression either gets its own kernel, or is fused as a "post": the kernel
 * of the preceding node applies the expression to each result before it stores the result. */
#ifndef CLEAVE_BACKENDS_OPENCL_LOWER_EXPRESSIONS_H
#define CLEAVE_BACKENDS_OPENCL_LOWER_EXPRESSIONS_H

#include "operator.h"

typedef struct clv__opencl_expression {
  const char *op;
  uint32_t operands; /* 1: x, 2: x and y, 3: x, y and z */
  uint32_t dtypes;   /* mask of the dtypes that x may have */
  const char *text;
  const char *p_name, *q_name; /* names of the node's attributes that set the parameters P and Q; NULL if there is none */
  float p, q;                  /* values of P and Q if the node omits the attributes */
} clv__opencl_expression;

typedef struct clv__opencl_function {
  const clv__opencl_expression *expression;
  double p, q;
} clv__opencl_function;

/* x limited to two bounds. The upper bound is applied last, so it wins if it is below the lower one. */
#define CLV__OPENCL_LIMITED(low, high) "(x < " low " ? " low " : x) > " high " ? " high " : (x < " low " ? " low " : x)"

/* Finds the expression of an operator whose x has this dtype. Returns NULL if there is none. */
const clv__opencl_expression *clv__opencl_expression_find(const char *op, clv_dtype dtype);
static inline bool clv__opencl_dtype_in(clv_dtype dtype, uint32_t mask) {
  return (mask & CLV__DTYPE_BIT(dtype)) != 0;
}
/* Finds the expression and the parameters of a node. Returns false if there is no expression for the node's operator and dtype,
 * or if a parameter is an input whose value is not known. */
bool clv__opencl_function_of(const clv__opencl_node *node, clv__opencl_function *function);
/* The widest bounds of a float dtype: its lowest and highest finite number. The specification of Clip defines them as the
 * defaults. */
void clv__opencl_widest_bounds(clv_dtype dtype, double *low, double *high);
/* Formats `value` as a constant in OpenCL C, of the type in which `dtype` is computed. */
void clv__opencl_number_text(clv_dtype dtype, double value, char text[64]);

#endif
