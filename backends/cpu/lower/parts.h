/* A convolution by Winograd's algorithm over parts of its input channels, each added to the result of the one before: what it
 * keeps of the image, transformed, is so much less (parts.c). */
#ifndef CLEAVE_BACKENDS_CPU_LOWER_PARTS_H
#define CLEAVE_BACKENDS_CPU_LOWER_PARTS_H

#include "forms.h"

#define CLV__CPU_MOST_PARTS 4

typedef struct clv__cpu_parts {
  uint32_t count;   /* 0: it stays whole */
  int64_t channels; /* of each */
  clv__dnn_primitive *primitives[CLV__CPU_MOST_PARTS];
} clv__cpu_parts;

/* Whether `whole`, made as `spec` says, is better made in parts, and their primitives, which are the caller's. The bias belongs
 * to the first one, functions to the last. */
clv_status clv__cpu_parts_choose(clv__cpu_plan *plan, const clv__dnn_convolution *spec, const clv__dnn_primitive *whole,
                                 clv__cpu_parts *parts, clv_error *error);
void clv__cpu_parts_release(clv__cpu_parts *parts);

#endif
