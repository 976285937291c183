/* The selection behind NonMaxSuppression; inference needs it too, to say how many boxes there are. */
#ifndef CLEAVE_OPERATORS_REGION_RUN_SUPPRESS_H
#define CLEAVE_OPERATORS_REGION_RUN_SUPPRESS_H

#include "base/tensor/attribute.h"
#include "base/tensor/tensor.h"

typedef struct clv__suppression {
  const float *boxes, *scores; /* [batches, count, 4], [batches, classes, count] */
  int64_t batches, classes, count, most;
  float overlap, least; /* `least` where `bounded`: only scores above it */
  bool bounded, centered;
} clv__suppression;

/* Reads a node whose shapes and dtypes fit and whose data is known. */
void clv__suppression_read(clv__attributes attributes, const clv_tensor *inputs, uint32_t input_count,
                           clv__suppression *suppression);

/* Elements of `room` that a run needs; SIZE_MAX: beyond any memory. */
size_t clv__suppression_room(const clv__suppression *suppression);

/* Selects, best first within a class. `out`, where not NULL, takes up to `limit` rows of batch, class, box. Returns how many
 * boxes are selected. */
int64_t clv__suppression_run(const clv__suppression *suppression, int64_t *room, int64_t limit, int64_t *out);

#endif
