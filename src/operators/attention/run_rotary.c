/* RotaryEmbedding: rotates pairs of a head's elements by the angle of their token's position. Elements beyond
 * rotary_embedding_dim are copied. */
#include "operators/attention/run.h"

#include "operators/common/element.h"
#include "operators/run.h"

/* Checks that each position has a row in cos_cache and sin_cache. A negative position counts from the last row backwards. */
static clv_status check_positions(const clv__kernel_call *call, const clv_tensor *positions, int64_t tokens, int64_t length) {
  const int64_t rows = call->inputs[1].dims[0];
  for (int64_t t = 0; positions != NULL && t < tokens; ++t) {
    const int64_t position = clv__element_load_int(positions, t);
    if (position >= -rows && position < rows) continue;
    return clv__error_set(call->error, CLV_INVALID_ARGUMENT,
                          "position_ids[%lld,%lld] is %lld, but cos_cache and sin_cache have only %lld rows",
                          (long long)(t / length), (long long)(t % length), (long long)position, (long long)rows);
  }
  return CLV_OK;
}

clv_status clv__kernel_rotary(const clv__kernel_call *call) {
  const clv_tensor *x = &call->inputs[0], *cosines = &call->inputs[1], *sines = &call->inputs[2], *y = &call->outputs[0];
  const clv_tensor *positions = clv__call_input(call, 3);
  const bool interleaved = clv__attribute_int(call->attributes, "interleaved", 0) != 0, inside = x->rank == 3;
  if (clv__tensor_is_empty(y)) return CLV_OK;
  const int64_t heads = inside ? clv__attribute_int(call->attributes, "num_heads", 1) : x->dims[1];
  const int64_t length = x->dims[inside ? 1 : 2], size = inside ? x->dims[2] / heads : x->dims[3];
  const int64_t half = cosines->dims[cosines->rank - 1], tokens = x->dims[0] * length;
  CLV__TRY(check_positions(call, positions, tokens, length));
  for (int64_t t = 0; t < tokens; ++t) {
    int64_t angle = positions != NULL ? clv__element_load_int(positions, t) : t; /* without positions: the token's own row */
    if (angle < 0) angle += cosines->dims[0];
    for (int64_t h = 0; h < heads; ++h) {
      const int64_t first = (inside ? t * heads + h : (t / length * heads + h) * length + t % length) * size;
      for (int64_t i = 0; i < half; ++i) {
        const int64_t a = first + (interleaved ? 2 * i : i), b = interleaved ? a + 1 : a + half;
        const double c = clv__element_load(cosines, angle * half + i), s = clv__element_load(sines, angle * half + i);
        clv__element_store(y, a, c * clv__element_load(x, a) - s * clv__element_load(x, b));
        clv__element_store(y, b, s * clv__element_load(x, a) + c * clv__element_load(x, b));
      }
      for (int64_t i = 2 * half; i < size; ++i) clv__element_copy(y, first + i, x, first + i);
    }
  }
  return CLV_OK;
}
