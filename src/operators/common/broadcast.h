/* Elementwise walks: an output and up to three inputs that broadcast to it, cut into rows of contiguous elements in which each
 * input either advances with the output or stands still. Nobody divides indices by element; a row function is a plain loop that
 * vectorises.
 *
 * A row function may get out == in[i] (in place), so its loops carry CLV__ROW_LOOP instead of `restrict`. */
#ifndef CLEAVE_OPERATORS_COMMON_BROADCAST_H
#define CLEAVE_OPERATORS_COMMON_BROADCAST_H

#include "base/tensor/tensor.h"

enum { CLV__ROW_INPUTS = 3 };

typedef struct clv__row {
  int64_t count;
  void *out;
  const void *in[CLV__ROW_INPUTS];
  int64_t step[CLV__ROW_INPUTS]; /* 1, or 0: one element for the whole row */
  const void *params;            /* the caller's */
} clv__row;

typedef void (*clv__row_fn)(const clv__row *row);

/* No iteration reads what another one writes. */
#define CLV__ROW_LOOP(count) _Pragma("omp simd") for (int64_t i = 0; i < (count); ++i)

typedef struct clv__elementwise {
  clv__row_fn run;
  const void *params;
  double cost;   /* elementary operations an element, to decide on threads */
  bool half_f32; /* f16 and bf16 tensors reach `run` as f32 rows */
} clv__elementwise;

/* The walk itself: axes merged as far as all tensors allow, the last one being the row. Strides are in elements. */
typedef struct clv__walk {
  uint32_t input_count;
  int32_t rank; /* without the row's axis */
  int64_t dims[CLV_MAX_RANK];
  int64_t strides[CLV__ROW_INPUTS][CLV_MAX_RANK];
  int64_t length; /* of a row */
  int64_t step[CLV__ROW_INPUTS];
  int64_t rows;
} clv__walk;

/* The walk over shapes that broadcast and are not empty; data is not looked at. */
void clv__walk_plan(clv__walk *walk, const clv_tensor *out, const clv_tensor *const *inputs, uint32_t input_count);

/* Every input must broadcast to the shape of `out`. */
void clv__broadcast_run(const clv__elementwise *what, const clv_tensor *out, const clv_tensor *const *inputs,
                        uint32_t input_count);

/* Repeats `input` to the shape of `out`, which has the same dtype. */
void clv__broadcast_copy(const clv_tensor *out, const clv_tensor *input);

#endif
