/* Access to single elements of any dtype, for the reference loops. Elements are loaded as a double or a 64-bit integer and stored
 * with the rounding of the dtype. Also computes the index of an element. Nothing here is fast, and nothing needs to be. */
#ifndef CLEAVE_OPERATORS_COMMON_ELEMENT_H
#define CLEAVE_OPERATORS_COMMON_ELEMENT_H

#include "operators/common/rows.h"
#include "operators/run.h"

/* Input or output `index` of a call; NULL if it is absent. */
static inline const clv_tensor *clv__call_input(const clv__kernel_call *call, uint32_t index) {
  return call->input_count > index && call->inputs[index].dtype != CLV_DTYPE_NONE ? &call->inputs[index] : NULL;
}
static inline const clv_tensor *clv__call_output(const clv__kernel_call *call, uint32_t index) {
  return call->output_count > index && call->outputs[index].dtype != CLV_DTYPE_NONE ? &call->outputs[index] : NULL;
}

static inline bool clv__element_is_float(const clv_tensor *tensor) {
  return clv__dtype_is_in(tensor->dtype, CLV__DTYPES_FLOAT);
}

/* Loads an element as a double. Exact, except for integers above 2^53. */
static inline double clv__element_load(const clv_tensor *tensor, int64_t index) {
  if (tensor->dtype == CLV_F32) return (double)((const float *)tensor->data)[index];
  return clv__tensor_get(tensor, (size_t)index);
}

/* Loads an element of an integer dtype or bool. Exact; the bits of a u64 are reinterpreted. */
static inline int64_t clv__element_load_int(const clv_tensor *tensor, int64_t index) {
  return clv__tensor_get_int(tensor, (size_t)index);
}

/* Stores a double, rounded once to nearest even. For an integer dtype the value is truncated and saturates; a NaN becomes 0.
 */
static inline void clv__element_store(const clv_tensor *tensor, int64_t index, double value) {
  if (tensor->dtype == CLV_F32)
    ((float *)tensor->data)[index] = (float)value;
  else
    clv__row_from_f64(tensor->dtype, tensor->data, index, 1, &value);
}

/* Stores the low bits of an integer: values wrap. */
static inline void clv__element_store_int(const clv_tensor *tensor, int64_t index, int64_t value) {
  clv__row_from_i64(tensor->dtype, tensor->data, index, 1, &value);
}

/* Copies an element bit for bit. */
static inline void clv__element_copy(const clv_tensor *to, int64_t to_index, const clv_tensor *from, int64_t from_index) {
  const size_t bytes = clv_dtype_size_bytes(to->dtype);
  memcpy((char *)to->data + (size_t)to_index * bytes, (const char *)from->data + (size_t)from_index * bytes, bytes);
}

/* Advances `at` to the next coordinates of `dims` in row-major order. After the last coordinates, all are 0 again. */
static inline void clv__index_next(int32_t rank, const int64_t *dims, int64_t *at) {
  for (int32_t i = rank - 1; i >= 0; --i) {
    if (++at[i] < dims[i]) return;
    at[i] = 0;
  }
}

/* Returns the index of the element of `tensor` at coordinates `at` of the `rank` axes to which the tensor broadcasts. Axes are
 * aligned at the end. Along an axis of size 1, the coordinate is ignored. */
static inline int64_t clv__index_broadcast(const clv_tensor *tensor, int32_t rank, const int64_t *at) {
  int64_t index = 0;
  for (int32_t i = 0; i < tensor->rank; ++i) {
    index = index * tensor->dims[i] + (tensor->dims[i] == 1 ? 0 : at[rank - tensor->rank + i]);
  }
  return index;
}

/* A tensor as [outer, length, inner]: lines along one axis. Element i of line (o, j) is (o * length + i) * inner + j. */
typedef struct clv__lines {
  int64_t outer, length, inner;
} clv__lines;

#endif
