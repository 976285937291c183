/* Arithmetic on partly known contents: the elements of shape tensors, of which some are symbols (see clv__content). */
#ifndef CLEAVE_OPERATORS_COMMON_CONTENT_H
#define CLEAVE_OPERATORS_COMMON_CONTENT_H

#include "operators/infer.h"

typedef enum clv__arithmetic {
  CLV__ADD,
  CLV__SUB,
  CLV__MUL,
  CLV__DIV,
  CLV__MOD, /* of the divisor's sign */
  CLV__MIN,
  CLV__MAX,
  CLV__EQUAL, /* comparisons give 0 or 1 */
  CLV__LESS,
  CLV__LESS_EQUAL,
  CLV__AND,
  CLV__OR,
  CLV__XOR
} clv__arithmetic;

/* One element from two: exact, or CLV__ELEMENT_UNKNOWN. A symbol stands for a dimension, so for a number that is not negative. */
int64_t clv__element_combine(clv__arithmetic what, int64_t a, int64_t b);

/* Fills the content of output 0, which is typed already, from inputs `first` and `second`, of which one may repeat. Does nothing
 * where either is not known or the output is no small vector. */
void clv__content_combine(clv__infer *infer, clv__arithmetic what, uint32_t first, uint32_t second);

/* Elements of output 0 where contents may be kept for it: rank 0 or 1, small. False elsewhere. */
bool clv__content_room(const clv__infer *infer, uint32_t *count);

#endif
