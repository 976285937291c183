/* Definitions shared by the C++ files of this folder: the structs behind the types of onednn.h, the conversion of statuses and
 * exceptions, and descriptors. */
#ifndef CLEAVE_BACKENDS_CPU_ONEDNN_OWN_H
#define CLEAVE_BACKENDS_CPU_ONEDNN_OWN_H

#include "onednn.h"

#include <oneapi/dnnl/dnnl.h>

#include <new>

extern "C" {
#include "base/error.h"
#include "base/isa.h"
}

struct clv__dnn {
  const clv_allocator *allocator;
  dnnl_engine_t engine;
  dnnl_stream_t stream;
};

struct clv__dnn_layout {
  dnnl_memory_desc_t desc;
};

clv_status clv__dnn_failed(clv_error *error, dnnl_status_t status, const char *call);

/* Checks that 16 MiB can be mapped, and returns CLV_OUT_OF_MEMORY if not: oneDNN crashes if it cannot map memory for the code
 * of a kernel. The check reserves nothing, so another thread may still take the memory. Call this before a primitive is
 * created, and before its first execution, which may generate code. */
clv_status clv__dnn_check_headroom(clv_error *error);

// Runs `body`, which returns a clv_status, and converts any exception into a status.
template <typename Body>
clv_status clv__dnn_guarded(clv_error *error, const char *call, Body body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc &) {
    return clv__error_set(error, CLV_OUT_OF_MEMORY, "oneDNN: %s: out of memory", call);
  } catch (...) {
    return clv__error_set(error, CLV_DEVICE_ERROR, "oneDNN: %s threw an exception", call);
  }
}

/* Copies `desc` into the arena as a layout. Returns NULL if memory runs out. */
const clv__dnn_layout *clv__dnn_layout_keep(clv__arena *arena, const dnnl_memory_desc_t &desc);

/* oneDNN's data type for `dtype`; dnnl_data_type_undef if layouts do not support it. */
dnnl_data_type_t clv__dnn_data_type(clv_dtype dtype);

/* Descriptors of a layout that oneDNN chooses, and of the row-major layout. Return false if oneDNN rejects them. */
bool clv__dnn_any_desc(dnnl_memory_desc_t *desc, clv_dtype dtype, int32_t rank, const int64_t *dims);
bool clv__dnn_dense_desc(dnnl_memory_desc_t *desc, clv_dtype dtype, int32_t rank, const int64_t *dims);

/* Chooses the implementation of a convolution: the first that oneDNN offers, or another one if that is faster or the first is
 * known to compute wrong results. */
dnnl_status_t clv__dnn_convolution_choose(clv__dnn *dnn, const dnnl_convolution_desc_t &operation,
                                          const_dnnl_primitive_attr_t attributes, dnnl_primitive_desc_t *desc);

#endif
