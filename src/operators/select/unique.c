/* See unique.h. A merge sort: stable, and without the recursion or the global state of qsort. */
#include "operators/select/unique.h"

#include "operators/common/order.h"

static int compare(const clv_tensor *data, int32_t axis, int64_t a, int64_t b) {
  int64_t outer = axis < 0 ? 1 : clv__dims_product(data, 0, axis);
  int64_t inner = axis < 0 ? 1 : clv__dims_product(data, axis + 1, data->rank), dim = axis < 0 ? 0 : data->dims[axis];
  for (int64_t o = 0; inner > 0 && o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      uint64_t x = clv__order_key(data, (size_t)((o * dim + a) * inner + i));
      uint64_t y = clv__order_key(data, (size_t)((o * dim + b) * inner + i));
      if (x != y) return x < y ? -1 : 1;
    }
  }
  return 0;
}

bool clv__unique_same(const clv_tensor *data, int32_t axis, int64_t a, int64_t b) {
  return compare(data, axis, a, b) == 0;
}

int64_t clv__unique_sort(const clv_tensor *data, int32_t axis, int64_t *order, int64_t *room, const clv__stop *stop) {
  int64_t count = axis < 0 ? clv__dims_product(data, 0, data->rank) : data->dims[axis];
  int64_t *from = order, *to = room;
  for (int64_t i = 0; i < count; ++i) order[i] = i;
  for (int64_t width = 1; width < count; width *= 2) {
    for (int64_t begin = 0; begin < count; begin += 2 * width) {
      int64_t middle = begin + width < count ? begin + width : count;
      int64_t end = begin + 2 * width < count ? begin + 2 * width : count, a = begin, b = middle;
      for (int64_t i = begin; i < end && !clv__is_stopped(stop); ++i) {
        bool left = b >= end || (a < middle && compare(data, axis, from[a], from[b]) <= 0);
        to[i] = left ? from[a++] : from[b++];
      }
    }
    int64_t *swapped = from;
    from = to;
    to = swapped;
  }
  if (from != order && count > 0) memcpy(order, from, (size_t)count * sizeof *order);
  int64_t distinct = count > 0;
  for (int64_t i = 1; i < count; ++i) distinct += compare(data, axis, order[i - 1], order[i]) != 0;
  return distinct;
}
