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

/* Combines two elements. Returns the exact result, or CLV__ELEMENT_UNKNOWN. A symbol is the size of a dimension, so it is never
 * negative. */
int64_t clv__element_combine(clv__arithmetic what, int64_t a, int64_t b);

/* Fills the content of output 0, whose type must already be set, from inputs `first` and `second`. An input with one element is
 * combined with every element of the other. Does nothing if either input is unknown or the output is not a small vector. */
void clv__content_combine(clv__infer *infer, clv__arithmetic what, uint32_t first, uint32_t second);

/* Whether output 0 is a scalar or a small vector, so that its content may be set. *count is its number of elements. */
bool clv__content_room(const clv__infer *infer, uint32_t *count);

#endif
