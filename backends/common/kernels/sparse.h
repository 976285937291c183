/* Definitions shared by the kernels over compressed rows (src/operators/sparse/infer.c explains the format): the view of a call,
 * and the parallel loop over rows. Threads process stretches of rows with about equal numbers of edges. If a single row has very
 * many edges, several threads share its columns. One thread computes each output element, in the order of the edges, so the
 * results do not depend on the number of threads. */
#ifndef CLEAVE_BACKENDS_COMMON_KERNELS_SPARSE_H
#define CLEAVE_BACKENDS_COMMON_KERNELS_SPARSE_H

#include "backends/common/kernels/vector.h"
#include "operators/common/rows.h"
#include "operators/run.h"

typedef struct clv__sparse {
  const clv_tensor *data;
  const int64_t *offsets;
  const clv_tensor *sources;
  int64_t rows, columns, data_rows, edge_count;
} clv__sparse;

static inline int64_t clv__sparse_source(const clv__sparse *s, int64_t edge) {
  return s->sources->dtype == CLV_I32 ? ((const int32_t *)s->sources->data)[edge] : ((const int64_t *)s->sources->data)[edge];
}

/* Returns the view of a call that has these inputs. */
clv__sparse clv__sparse_of(const clv_tensor *data, const clv_tensor *offsets, const clv_tensor *sources);

/* Computes columns [from, to) of rows [first, last). Their offsets and sources have been checked. */
typedef void clv__sparse_body(const void *cookie, int64_t first, int64_t last, int64_t from, int64_t to);

/* Calls `body` for all rows and columns. Columns are divided only at multiples of `unit`. `work` is the cost of an edge, in
 * elementary operations. Returns CLV_INVALID_ARGUMENT if offsets do not begin with 0, decrease or exceed the number of edges,
 * or if a source is not a row of the data. */
clv_status clv__sparse_for_rows(const clv__kernel_call *call, const clv__sparse *s, int64_t unit, double work,
                                clv__sparse_body *body, const void *cookie);

/* Defined in sparse_attention.c. */
clv_status clv__sparse_attention(const clv__kernel_call *call);
size_t clv__sparse_attention_scratch(const clv__kernel_call *call);

/* ---- Vectors ---- */

/* CLV__LANES: columns per vector register. CLV__LANE_BLOCKS: vectors of sums that fit in registers. CLV__LANE_AHEAD: the row of
 * the edge this far ahead is prefetched. */
enum { CLV__LANES = CLV__VECTOR_BYTES / 4, CLV__LANE_BLOCKS = 8, CLV__LANE_AHEAD = 8 };
typedef float clv__lanes __attribute__((vector_size(CLV__VECTOR_BYTES), aligned(4), may_alias));
typedef uint32_t clv__lane_bits __attribute__((vector_size(CLV__VECTOR_BYTES), aligned(4), may_alias));
typedef uint16_t clv__lane_halves __attribute__((vector_size(CLV__VECTOR_BYTES / 2), aligned(2), may_alias));

#define CLV__INLINE static inline __attribute__((always_inline))

/* Loads elements [at, at + CLV__LANES). `dtype` must be a compile-time constant in the caller: each dtype gets code of its
 * own. */
CLV__INLINE void clv__lanes_load(clv__lanes *to, const void *data, clv_dtype dtype, int64_t at) {
  if (dtype == CLV_F32) {
    *to = *(const clv__lanes *)((const float *)data + at);
  } else if (dtype == CLV_BF16) {
    const clv__lane_halves *from = (const clv__lane_halves *)((const uint16_t *)data + at);
    const clv__lane_bits bits = __builtin_convertvector(*from, clv__lane_bits) << 16;
    *to = (clv__lanes)bits;
  } else {
    float wide[CLV__LANES];
    for (int i = 0; i < CLV__LANES; ++i) wide[i] = clv__f16_widen(((const uint16_t *)data)[at + i]);
    memcpy(to, wide, sizeof wide);
  }
}

/* Prefetches `count` vectors of a row, from element `at` of `data` on. */
CLV__INLINE void clv__lanes_fetch(const void *data, clv_dtype dtype, int64_t at, int count) {
  const char *from = (const char *)data + at * (dtype == CLV_F32 ? 4 : 2);
  for (int i = 0; i < count * CLV__LANES * (dtype == CLV_F32 ? 4 : 2); i += 64) __builtin_prefetch(from + i);
}

#endif
