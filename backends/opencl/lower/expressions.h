/* Elementwise operators as expressions: for launches of their own, and for what is computed where another kernel stores. */
#ifndef CLEAVE_BACKENDS_OPENCL_LOWER_EXPRESSIONS_H
#define CLEAVE_BACKENDS_OPENCL_LOWER_EXPRESSIONS_H

#include "operator.h"

typedef struct clv__opencl_expression {
  const char *op;
  uint32_t operands; /* x, y, z */
  uint32_t dtypes;   /* of x */
  const char *text;
  const char *p_name, *q_name; /* attributes */
  float p, q;                  /* their defaults */
} clv__opencl_expression;

typedef struct clv__opencl_function {
  const clv__opencl_expression *expression;
  double p, q;
} clv__opencl_function;

/* x between two bounds. The upper one comes last, and wins where it is below the other. */
#define CLV__OPENCL_LIMITED(low, high) "(x < " low " ? " low " : x) > " high " ? " high " : (x < " low " ? " low " : x)"

/* The expression of an operator for a dtype; NULL: there is none. */
const clv__opencl_expression *clv__opencl_expression_find(const char *op, clv_dtype dtype);
static inline bool clv__opencl_dtype_in(clv_dtype dtype, uint32_t mask) {
  return (mask & CLV__DTYPE_BIT(dtype)) != 0;
}
/* False when the node is no such operator, or its parameters are not known. */
bool clv__opencl_function_of(const clv__opencl_node *node, clv__opencl_function *function);
/* The widest bounds of a float dtype, which the specification of Clip gives as defaults. */
void clv__opencl_widest_bounds(clv_dtype dtype, double *low, double *high);
/* A constant of the type that `dtype` is computed in, exact. */
void clv__opencl_number_text(clv_dtype dtype, double value, char text[64]);

#endif
