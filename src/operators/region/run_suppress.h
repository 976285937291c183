/* NonMaxSuppression: the selection of boxes, and the kernel. Inference also runs the selection, to count the boxes. run.c has the
 * table. */
#ifndef CLEAVE_OPERATORS_REGION_RUN_SUPPRESS_H
#define CLEAVE_OPERATORS_REGION_RUN_SUPPRESS_H

#include "operators/run.h"

typedef struct clv__suppression {
  const float *boxes, *scores; /* [batches, count, 4], [batches, classes, count] */
  int64_t batches, classes, count, most;
  float overlap, least; /* if `bounded`, only boxes with scores above `least` are candidates */
  bool bounded, centered;
  const clv__stop *stop; /* may be NULL; once it is set, boxes are missing */
} clv__suppression;

/* Reads a node whose shapes and dtypes are valid and whose inputs have data. */
void clv__suppression_read(clv__attributes attributes, const clv_tensor *inputs, uint32_t input_count,
                           clv__suppression *suppression);

/* The number of elements of `room` that a run needs. SIZE_MAX: too large for any memory. */
size_t clv__suppression_room(const clv__suppression *suppression);

/* Selects boxes, best first within a class. If `out` is not NULL, writes up to `limit` rows of batch, class, box. Returns the
 * number of selected boxes. */
int64_t clv__suppression_run(const clv__suppression *suppression, int64_t *room, int64_t limit, int64_t *out);

clv_status clv__kernel_suppression(const clv__kernel_call *call);
size_t clv__kernel_suppression_scratch_bytes(const clv__kernel_call *call);
bool clv__kernel_suppression_accepts(const clv__kernel_call *call, char reason[160]);

#endif
