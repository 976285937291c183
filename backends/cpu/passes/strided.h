/* A value's axes as they lie in the memory of another value that it is made of by moving elements: views, transposes, pieces. */
#ifndef CLEAVE_BACKENDS_CPU_PASSES_STRIDED_H
#define CLEAVE_BACKENDS_CPU_PASSES_STRIDED_H

#include "plan.h"

#define CLV__CPU_STRIDED_PARTS (2 * CLV_MAX_RANK)

/* What an axis of a tensor runs over, or one of several such. */
typedef struct clv__cpu_part {
  int32_t axis;
  int64_t extent, stride;
} clv__cpu_part;

/* Element [i0, i1, …] of a tensor is element first + the sum over parts of position * stride of `value`, row-major. Parts come
 * from the outermost on. */
typedef struct clv__cpu_strided {
  uint32_t value;
  int64_t first;
  uint32_t part_count;
  clv__cpu_part parts[CLV__CPU_STRIDED_PARTS];
} clv__cpu_strided;

/* A value's own axes; those of one element have no part. */
clv__cpu_strided clv__cpu_strided_of(const clv__cpu_plan *plan, uint32_t value);
/* One step back: what the value is made of. A factor that it is multiplied by goes into *scale, where that is not NULL. False: it
 * is computed, and stays. */
bool clv__cpu_strided_back(clv__cpu_plan *plan, clv__cpu_strided *strided, double *scale);
/* One step forward, from a value to what its only reader makes by a view or a transpose. */
bool clv__cpu_strided_forward(clv__cpu_plan *plan, clv__cpu_strided *strided);
/* The node that is alive and makes `value`; NULL where there is none. */
clv__cpu_plan_node *clv__cpu_maker(clv__cpu_plan *plan, uint32_t value);
/* What a Mul or Div by one known number multiplies by; false where the node is none. *input: the other operand. */
bool clv__cpu_factor(clv__cpu_plan *plan, const clv__cpu_plan_node *node, uint32_t *input, double *factor);

#endif
