/* Element-wise loops over an output and up to three inputs that broadcast to it. They are split into rows of contiguous elements,
 * in which each input either advances with the output or stays at one element. No element needs a division to find its index. A
 * row function is a plain loop that vectorises.
 *
 * A row function may receive out == in[i] (in place), so its loops use CLV__ROW_LOOP instead of `restrict`. */
#ifndef CLEAVE_OPERATORS_COMMON_BROADCAST_H
#define CLEAVE_OPERATORS_COMMON_BROADCAST_H

#include "base/stop.h"
#include "base/tensor/tensor.h"

enum { CLV__ROW_INPUTS = 3 };

typedef struct clv__row {
  int64_t count;
  void *out;
  const void *in[CLV__ROW_INPUTS];
  int64_t step[CLV__ROW_INPUTS]; /* 1; or 0 if one element is used for the whole row */
  const void *params;            /* owned by the caller */
} clv__row;

typedef void (*clv__row_fn)(const clv__row *row);

/* A loop over i that vectorises: no iteration may read memory that another iteration writes. */
#define CLV__ROW_LOOP(count) _Pragma("omp simd") for (int64_t i = 0; i < (count); ++i)

typedef struct clv__elementwise {
  clv__row_fn run;
  const void *params;
  double cost;           /* elementary operations per element, for deciding the number of threads */
  bool half_f32;         /* f16 and bf16 tensors reach `run` as f32 rows */
  const clv__stop *stop; /* of the call; may be NULL */
} clv__elementwise;

/* The plan of the loop. Adjacent axes are merged wherever the strides of all tensors allow it; the last axis is the row. Strides
 * are in elements. */
typedef struct clv__walk {
  uint32_t input_count;
  int32_t rank; /* not counting the row's axis */
  int64_t dims[CLV_MAX_RANK];
  int64_t strides[CLV__ROW_INPUTS][CLV_MAX_RANK];
  int64_t length; /* elements in a row */
  int64_t step[CLV__ROW_INPUTS];
  int64_t rows;
} clv__walk;

/* Plans the loop over shapes that broadcast and are not empty. Does not read data. */
void clv__walk_plan(clv__walk *walk, const clv_tensor *out, const clv_tensor *const *inputs, uint32_t input_count);

/* Runs `what` over all rows, on several threads if worthwhile. Every input must broadcast to the shape of `out`. */
void clv__broadcast_run(const clv__elementwise *what, const clv_tensor *out, const clv_tensor *const *inputs,
                        uint32_t input_count);

/* Repeats `input` to the shape of `out`, which has the same dtype. */
void clv__broadcast_copy(const clv_tensor *out, const clv_tensor *input, const clv__stop *stop);

#endif
