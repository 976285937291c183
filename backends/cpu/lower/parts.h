/* Runs a Winograd convolution over parts of its input channels. Each part adds to the result of the previous part. This shrinks
 * the scratch for the transformed image (parts.c). */
#ifndef CLEAVE_BACKENDS_CPU_LOWER_PARTS_H
#define CLEAVE_BACKENDS_CPU_LOWER_PARTS_H

#include "forms.h"

#define CLV__CPU_MOST_PARTS 4

typedef struct clv__cpu_parts {
  uint32_t count;   /* number of parts; 0: the convolution is not divided */
  int64_t channels; /* number of input channels of each part */
  clv__dnn_primitive *primitives[CLV__CPU_MOST_PARTS];
} clv__cpu_parts;

/* Decides whether to divide `whole`, the primitive created from `spec`, into parts. If so, creates the primitives of the parts,
 * which the caller owns; otherwise sets parts->count to 0. The first part adds the bias; the last part applies the posts. */
clv_status clv__cpu_parts_choose(clv__cpu_variant *variant, const clv__dnn_convolution *spec, const clv__dnn_primitive *whole,
                                 clv__cpu_parts *parts, clv_error *error);
void clv__cpu_parts_release(clv__cpu_parts *parts);

#endif
