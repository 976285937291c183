/* The sort behind Unique. Inference also runs it, to count the distinct elements. */
#ifndef CLEAVE_OPERATORS_SELECT_UNIQUE_H
#define CLEAVE_OPERATORS_SELECT_UNIQUE_H

#include "base/stop.h"
#include "base/tensor/tensor.h"

/* Stably sorts the items of `data`: its elements if `axis` is -1, otherwise its slices along `axis`. `order` receives the items'
 * indices in ascending order. `order` and the scratch `room` have one entry per item. Returns the number of distinct items. */
int64_t clv__unique_sort(const clv_tensor *data, int32_t axis, int64_t *order, int64_t *room, const clv__stop *stop);

/* Whether items a and b are equal. */
bool clv__unique_same(const clv_tensor *data, int32_t axis, int64_t a, int64_t b);

#endif
