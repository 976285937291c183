/* Describes the axes of a value as strides over another value's memory, if it results from that value by moving elements only:
 * views, transposes, pieces. */
#ifndef CLEAVE_BACKENDS_CPU_PASSES_STRIDED_H
#define CLEAVE_BACKENDS_CPU_PASSES_STRIDED_H

#include "variant.h"

#define CLV__CPU_STRIDED_PARTS (2 * CLV_MAX_RANK)

/* The extent and stride of an axis, or of one of several parts of an axis. */
typedef struct clv__cpu_part {
  int32_t axis;
  int64_t extent, stride;
} clv__cpu_part;

/* Describes where the elements of a tensor are in the row-major `value`: at `first` plus the sum of position * stride over the
 * parts, in elements. The positions in the parts of an axis make up the index on that axis. Parts are ordered from the outermost
 * to the innermost. */
typedef struct clv__cpu_strided {
  uint32_t value;
  int64_t first;
  uint32_t part_count;
  clv__cpu_part parts[CLV__CPU_STRIDED_PARTS];
} clv__cpu_strided;

/* Describes `value` by its own axes. Axes of one element have no part. */
clv__cpu_strided clv__cpu_strided_of(const clv__cpu_variant *variant, uint32_t value);
/* Steps back from strided->value to the value from which its elements are moved, and describes the axes in the memory of that
 * value. If `scale` is not NULL, also steps back over a Mul or Div by one number and multiplies *scale by that factor. Returns
 * false if the value is computed in another way. */
bool clv__cpu_strided_back(clv__cpu_variant *variant, clv__cpu_strided *strided, double *scale);
/* Steps forward from strided->value to the result of its only reader, if that is a view or a transpose. Otherwise returns
 * false. */
bool clv__cpu_strided_forward(clv__cpu_variant *variant, clv__cpu_strided *strided);
/* The live node that produces `value`; NULL if there is none. */
clv__cpu_variant_node *clv__cpu_maker(clv__cpu_variant *variant, uint32_t value);
/* The factor of a Mul or Div by one known number. Returns false for other nodes. Sets *input to the other operand. */
bool clv__cpu_factor(clv__cpu_variant *variant, const clv__cpu_variant_node *node, uint32_t *input, double *factor);

#endif
