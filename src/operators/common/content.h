/* Arithmetic on partly known contents: the elements of shape tensors, some of which are symbols (see clv__content). */
#ifndef CLEAVE_OPERATORS_COMMON_CONTENT_H
#define CLEAVE_OPERATORS_COMMON_CONTENT_H

#include "operators/infer.h"

typedef enum clv__arithmetic {
  CLV__ADD,
  CLV__SUB,
  CLV__MUL,
  CLV__DIV,
  CLV__MOD, /* the result has the divisor's sign */
  CLV__MIN,
  CLV__MAX,
  CLV__EQUAL, /* comparisons give 0 or 1 */
  CLV__LESS,
  CLV__LESS_EQUAL,
  CLV__AND,
  CLV__OR,
  CLV__XOR
} clv__arithmetic;

/* Combines two elements: exact, or CLV__ELEMENT_UNKNOWN. A symbol stands for a dimension, so it is a number that is not
 * negative. */
int64_t clv__element_combine(clv__arithmetic what, int64_t a, int64_t b);

/* Fills the content of output 0, which is already typed, from inputs `first` and `second`. One of them may repeat. Does nothing
 * if either is not known or if the output is not a small vector. */
void clv__content_combine(clv__infer *infer, clv__arithmetic what, uint32_t first, uint32_t second);

/* The number of elements of output 0, if its content may be kept: rank 0 or 1, and small. False otherwise. */
bool clv__content_room(const clv__infer *infer, uint32_t *count);

#endif
