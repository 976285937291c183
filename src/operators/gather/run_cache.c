/* TensorScatter: copies a cache and overwrites some of its entries with those of an update, which start at one index per
 * sequence. */
#include "operators/gather/run.h"

#include "operators/common/element.h"
#include "operators/run.h"

clv_status clv__kernel_tensor_scatter(const clv__kernel_call *call) {
  const clv_tensor *cache = &call->inputs[0], *update = &call->inputs[1], *places = clv__call_input(call, 2);
  const clv_tensor *y = &call->outputs[0];
  const bool circular = clv__attribute_is(call->attributes, "mode", "circular", false);
  const int64_t given = clv__attribute_int(call->attributes, "axis", -2);
  const int32_t axis = (int32_t)(given < 0 ? given + cache->rank : given);
  if (clv__tensor_is_empty(cache)) return CLV_OK;
  const int64_t room = cache->dims[axis], length = update->dims[axis], inner = clv__dims_count(cache, axis + 1, cache->rank);
  const int64_t outer = clv__dims_count(cache, 0, axis), each = outer / cache->dims[0]; /* blocks per sequence */
  for (int64_t b = 0; places != NULL && !circular && b < cache->dims[0]; ++b) {
    const int64_t place = clv__element_load_int(places, b);
    if (place >= 0 && place <= room - length) continue;
    return clv__error_set(
        call->error, CLV_INVALID_ARGUMENT,
        "write_indices[%lld] is %lld, but %lld entries from that index do not fit in the cache's length of %lld", (long long)b,
        (long long)place, (long long)length, (long long)room);
  }
  for (int64_t i = 0; i < outer * room * inner; ++i) clv__element_copy(y, i, cache, i);
  for (int64_t o = 0; o < outer; ++o) {
    const int64_t place = places != NULL ? clv__element_load_int(places, o / each) % room : 0;
    for (int64_t k = 0; k < length; ++k) {
      const int64_t at = (place + room + k) % room; /* circular: entries beyond the end wrap around to the start */
      for (int64_t j = 0; j < inner; ++j) {
        clv__element_copy(y, (o * room + at) * inner + j, update, (o * length + k) * inner + j);
      }
    }
  }
  return CLV_OK;
}
