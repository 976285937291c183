/* See stack.h. */
#include "analysis/stack.h"

clv_status clv__slices_allowed(const clv_tensor *tensor, const char *what, clv_error *error) {
  if (!clv__dtype_is_in(tensor->dtype, CLV__DTYPES_PACKED)) return CLV_OK;
  return clv__error_set(error, CLV_NOT_SUPPORTED, "%s of dtype %s: elements smaller than a byte are not supported here", what,
                        clv_dtype_name(tensor->dtype));
}

clv_status clv__stack_push(clv__stack *s, const clv_tensor *slice, const clv_allocator *allocator, clv_error *error) {
  if (s->slice.dtype == CLV_DTYPE_NONE) {
    CLV__TRY(clv__slices_allowed(slice, "a scan output", error));
    s->slice = *slice;
    if (!clv__tensor_size_bytes(slice, &s->slice_bytes)) return clv__error_memory(error, SIZE_MAX);
  } else if (!clv__tensor_same_type(&s->slice, slice)) {
    char first[96], now[96];
    clv__tensor_text(&s->slice, first, sizeof first);
    clv__tensor_text(slice, now, sizeof now);
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "a scan output is %s in this iteration, but was %s in earlier ones", now,
                          first);
  }
  size_t used = (size_t)s->count * s->slice_bytes, needed;
  if (!clv__add(used, s->slice_bytes, &needed)) return clv__error_memory(error, SIZE_MAX);
  if (!clv__array_reserve(allocator, &s->data, &s->capacity_bytes, needed, 1, used)) return clv__error_memory(error, needed);
  if (s->slice_bytes > 0) memcpy((char *)s->data + used, slice->data, s->slice_bytes);
  s->count++;
  return CLV_OK;
}

static void reverse_slices(clv__stack *s) {
  char *data = s->data;
  for (int64_t low = 0, high = s->count - 1; low < high; ++low, --high) {
    char *a = data + (size_t)low * s->slice_bytes, *b = data + (size_t)high * s->slice_bytes;
    for (size_t i = 0; i < s->slice_bytes; ++i) {
      char swapped = a[i];
      a[i] = b[i];
      b[i] = swapped;
    }
  }
}

clv_status clv__stack_finish(clv__stack *s, int32_t axis, bool reverse, clv_tensor *output, const clv_allocator *allocator,
                             clv_error *error) {
  clv_tensor type = s->slice;
  if (type.rank + 1 > CLV_MAX_RANK) {
    return clv__error_set(error, CLV_NOT_SUPPORTED, "a scan output has rank %d, above the maximum of %d", type.rank + 1,
                          CLV_MAX_RANK);
  }
  if (axis < 0) axis += type.rank + 1;
  if (axis < 0 || axis > type.rank) {
    return clv__error_set(error, CLV_INVALID_MODEL, "scan output axis %d is out of range for rank %d", axis, type.rank + 1);
  }
  if (reverse) reverse_slices(s);
  type.rank++;
  for (int32_t i = type.rank - 1; i > axis; --i) type.dims[i] = type.dims[i - 1];
  type.dims[axis] = s->count;
  if (axis == 0) {
    type.data = s->data != NULL ? s->data : clv__allocate(allocator, 0);
    s->data = NULL;
    if (type.data == NULL) return clv__error_memory(error, 0);
    *output = type;
    return CLV_OK;
  }
  size_t total = (size_t)s->count * s->slice_bytes;
  char *data = clv__allocate(allocator, total);
  if (data == NULL) return clv__error_memory(error, total);
  size_t inner = (size_t)clv__dims_product(&type, axis + 1, type.rank) * clv_dtype_size_bytes(type.dtype);
  size_t outer = (size_t)clv__dims_product(&type, 0, axis), count = (size_t)s->count;
  for (size_t o = 0; inner > 0 && o < outer; ++o) {
    for (size_t i = 0; i < count; ++i) {
      memcpy(data + (o * count + i) * inner, (const char *)s->data + i * s->slice_bytes + o * inner, inner);
    }
  }
  type.data = data;
  *output = type;
  return CLV_OK;
}
