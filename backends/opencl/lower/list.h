/* Helpers for lowering: integer lists that are an attribute in early opsets and an input in later ones, axes, dtypes for copying
 * bits, and the division of work among work items. */
#ifndef CLEAVE_BACKENDS_OPENCL_LOWER_LIST_H
#define CLEAVE_BACKENDS_OPENCL_LOWER_LIST_H

#include "lower.h"

typedef struct clv__opencl_list {
  const int64_t *ints;      /* set if the list is an attribute */
  const clv_tensor *tensor; /* set if the list is an input */
  size_t count;
} clv__opencl_list;

/* Reads the attribute `name` if the opset is below `since` and the node has the attribute. Otherwise reads input `index`, if its
 * value is known. */
static inline clv__opencl_list clv__opencl_list_read(const clv__opencl_node *node, int32_t since, const char *name,
                                                     uint32_t index) {
  clv__opencl_list list = {0};
  if (node->opset < since && clv__attribute_find(node->attributes, name) != NULL) {
    list.ints = clv__attribute_ints(node->attributes, name, &list.count);
  } else if (clv__opencl_has_input(node, index) && node->inputs[index].data != NULL) {
    list.tensor = &node->inputs[index];
    if (!clv__tensor_count(list.tensor, &list.count)) list.count = 0;
  }
  return list;
}

static inline int64_t clv__opencl_list_get(const clv__opencl_list *list, size_t i, int64_t fallback) {
  if (i >= list->count) return fallback;
  return list->ints != NULL ? list->ints[i] : clv__tensor_get_int(list->tensor, i);
}

static inline int32_t clv__opencl_axis(int64_t axis, int32_t rank) {
  return (int32_t)(axis < 0 ? axis + rank : axis);
}

/* The unsigned dtype u8, u16, u32 or u64 that copies elements of `dtype` bit for bit. */
static inline clv_dtype clv__opencl_bits(clv_dtype dtype) {
  const size_t bytes = clv_dtype_size_bytes(dtype);
  return bytes == 1 ? CLV_U8 : bytes == 2 ? CLV_U16 : bytes == 4 ? CLV_U32 : CLV_U64;
}

/* The bits of the tensor's first element, zero-extended to 64 bits, to be passed to a kernel as a LONG. */
static inline int64_t clv__opencl_element_bits(const clv_tensor *tensor) {
  int64_t bits = 0;
  memcpy(&bits, tensor->data, clv_dtype_size_bytes(tensor->dtype));
  return bits;
}

static inline int64_t clv__opencl_divide_up(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

/* Work items per group, for kernels in which each group computes one result. On a CPU there are enough to fill the vector
 * registers, on a GPU enough to hide latency. */
static inline uint32_t clv__opencl_group(const clv__opencl_lowering *l) {
  const clv__opencl_traits *traits = clv__opencl_lowering_traits(l);
  uint32_t group = traits->is_cpu ? 64 : 128;
  while (group > traits->max_group && group > 1) group /= 2;
  return group;
}

/* Elements of a row per work item. On a CPU there are many, so that each work item runs a vectorized loop. */
static inline int64_t clv__opencl_each(const clv__opencl_lowering *l) {
  return clv__opencl_lowering_traits(l)->is_cpu ? 1024 : 1;
}

/* Whether the vector kernels apply: on a CPU, for f32 and f16. */
static inline bool clv__opencl_is_wide(const clv__opencl_lowering *l, clv_dtype dtype) {
  return clv__opencl_lowering_traits(l)->is_cpu && (dtype == CLV_F32 || dtype == CLV_F16);
}

#endif
