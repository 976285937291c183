/* The sorting behind Unique; inference needs it too, to say how many there are. */
#ifndef CLEAVE_OPERATORS_SELECT_UNIQUE_H
#define CLEAVE_OPERATORS_SELECT_UNIQUE_H

#include "base/tensor/tensor.h"

/* Sorts the elements of `data` (axis -1) or its slices along `axis`, stably: `order` becomes their indices, ascending. Both
 * arrays have an entry an item; `room` is scratch. Returns how many are distinct. */
int64_t clv__unique_sort(const clv_tensor *data, int32_t axis, int64_t *order, int64_t *room);

/* Whether items a and b are equal. */
bool clv__unique_same(const clv_tensor *data, int32_t axis, int64_t a, int64_t b);

#endif
