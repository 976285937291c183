/* See broadcast.h. */
#include "operators/common/broadcast.h"

#include "operators/common/rows.h"
#include "operators/common/threads.h"

enum { HALF_BLOCK = 256, TASK = 4096, PIECE = 16 * TASK };

/* The stride in `input` for every axis of `out`: 0 if the input's dim is 1 or missing. */
static void broadcast_strides(const clv_tensor *out, const clv_tensor *input, int64_t *strides) {
  int64_t stride = 1;
  for (int32_t axis = out->rank - 1; axis >= 0; --axis) {
    int32_t own = axis - (out->rank - input->rank);
    int64_t dim = own >= 0 ? input->dims[own] : 1;
    strides[axis] = dim == 1 ? 0 : stride;
    stride *= dim;
  }
}

void clv__walk_plan(clv__walk *plan, const clv_tensor *out, const clv_tensor *const *inputs, uint32_t input_count) {
  int64_t strides[CLV__ROW_INPUTS][CLV_MAX_RANK], merged_dims[CLV_MAX_RANK], merged[CLV__ROW_INPUTS][CLV_MAX_RANK];
  for (uint32_t k = 0; k < input_count; ++k) broadcast_strides(out, inputs[k], strides[k]);
  int32_t count = 0; /* number of merged axes; the arrays list the innermost one first */
  for (int32_t axis = out->rank - 1; axis >= 0; --axis) {
    if (out->dims[axis] == 1) continue;
    bool merges = count > 0;
    for (uint32_t k = 0; merges && k < input_count; ++k) {
      merges = strides[k][axis] == merged[k][count - 1] * merged_dims[count - 1];
    }
    if (merges) {
      merged_dims[count - 1] *= out->dims[axis];
      continue;
    }
    merged_dims[count] = out->dims[axis];
    for (uint32_t k = 0; k < input_count; ++k) merged[k][count] = strides[k][axis];
    ++count;
  }
  plan->input_count = input_count;
  plan->rank = count > 0 ? count - 1 : 0;
  plan->length = count > 0 ? merged_dims[0] : 1;
  plan->rows = 1;
  for (uint32_t k = 0; k < input_count; ++k) plan->step[k] = count > 0 ? merged[k][0] : 0;
  for (int32_t axis = 0; axis < plan->rank; ++axis) { /* back to outermost first */
    plan->dims[axis] = merged_dims[count - 1 - axis];
    plan->rows *= plan->dims[axis];
    for (uint32_t k = 0; k < input_count; ++k) plan->strides[k][axis] = merged[k][count - 1 - axis];
  }
}

static bool is_half(clv_dtype dtype) {
  return dtype == CLV_F16 || dtype == CLV_BF16;
}

/* Runs a row that has f16 or bf16 tensors: converts them to and from f32, block by block. */
static void run_half(const clv__elementwise *what, const clv__row *row, clv_dtype out_dtype, const clv_dtype *dtypes,
                     uint32_t input_count) {
  float in[CLV__ROW_INPUTS][HALF_BLOCK], out[HALF_BLOCK];
  clv__row block = *row;
  for (uint32_t k = 0; k < input_count; ++k) {
    if (!is_half(dtypes[k])) continue;
    block.in[k] = in[k];
    if (row->step[k] == 0) clv__row_to_f32(dtypes[k], row->in[k], 0, 1, in[k]);
  }
  for (int64_t from = 0; from < row->count; from += HALF_BLOCK) {
    block.count = row->count - from < HALF_BLOCK ? row->count - from : HALF_BLOCK;
    for (uint32_t k = 0; k < input_count; ++k) {
      if (row->step[k] == 0) continue;
      if (is_half(dtypes[k]))
        clv__row_to_f32(dtypes[k], row->in[k], from, block.count, in[k]);
      else
        block.in[k] = (const char *)row->in[k] + (size_t)from * clv_dtype_size_bytes(dtypes[k]);
    }
    block.out = is_half(out_dtype) ? (void *)out : (char *)row->out + (size_t)from * clv_dtype_size_bytes(out_dtype);
    what->run(&block);
    if (is_half(out_dtype)) clv__row_from_f32(out_dtype, row->out, from, block.count, out);
  }
}

/* Computes elements [from, to) of the output. */
static void run_range(const clv__elementwise *what, const clv__walk *plan, const clv_tensor *out, const clv_tensor *const *inputs,
                      int64_t from, int64_t to) {
  int64_t position[CLV_MAX_RANK] = {0}, offset[CLV__ROW_INPUTS] = {0}; /* position and offsets of the current row */
  int64_t rest = from / plan->length, column = from % plan->length;
  for (int32_t axis = plan->rank - 1; axis >= 0; --axis) {
    position[axis] = rest % plan->dims[axis];
    rest /= plan->dims[axis];
    for (uint32_t k = 0; k < plan->input_count; ++k) offset[k] += position[axis] * plan->strides[k][axis];
  }
  clv_dtype dtypes[CLV__ROW_INPUTS] = {CLV_DTYPE_NONE};
  size_t size_bytes[CLV__ROW_INPUTS] = {0}, out_bytes = clv_dtype_size_bytes(out->dtype);
  bool half = false;
  clv__row row = {.params = what->params};
  for (uint32_t k = 0; k < plan->input_count; ++k) {
    dtypes[k] = inputs[k]->dtype;
    size_bytes[k] = clv_dtype_size_bytes(dtypes[k]);
    row.step[k] = plan->step[k];
    if (what->half_f32 && is_half(dtypes[k])) half = true;
  }
  while (from < to) {
    row.count = plan->length - column < to - from ? plan->length - column : to - from;
    row.out = (char *)out->data + (size_t)from * out_bytes;
    for (uint32_t k = 0; k < plan->input_count; ++k) {
      row.in[k] = (const char *)inputs[k]->data + (size_t)(offset[k] + column * plan->step[k]) * size_bytes[k];
    }
    if (half)
      run_half(what, &row, out->dtype, dtypes, plan->input_count);
    else
      what->run(&row);
    from += row.count;
    column = 0;
    for (int32_t axis = plan->rank - 1; axis >= 0; --axis) {
      for (uint32_t k = 0; k < plan->input_count; ++k) offset[k] += plan->strides[k][axis];
      if (++position[axis] < plan->dims[axis]) break;
      position[axis] = 0;
      for (uint32_t k = 0; k < plan->input_count; ++k) offset[k] -= plan->dims[axis] * plan->strides[k][axis];
    }
  }
}

/* Computes elements [from, to) of the output piece by piece, until the call is stopped. */
static void run_pieces(const clv__elementwise *what, const clv__walk *plan, const clv_tensor *out,
                       const clv_tensor *const *inputs, int64_t from, int64_t to) {
  for (; from < to && !clv__is_stopped(what->stop); from += PIECE) {
    run_range(what, plan, out, inputs, from, to - from < PIECE ? to : from + PIECE);
  }
}

void clv__broadcast_run(const clv__elementwise *what, const clv_tensor *out, const clv_tensor *const *inputs,
                        uint32_t input_count) {
  int64_t total = clv__dims_product(out, 0, out->rank);
  if (total == 0) return;
  clv__walk plan;
  clv__walk_plan(&plan, out, inputs, input_count);
  int64_t tasks = (total + TASK - 1) / TASK;
  int threads = clv__kernel_threads(tasks, (double)total * what->cost);
  if (threads <= 1) {
    run_pieces(what, &plan, out, inputs, 0, total);
    return;
  }
  int64_t share = (tasks + threads - 1) / threads * TASK;
#pragma omp parallel for num_threads(threads) schedule(static, 1)
  for (int thread = 0; thread < threads; ++thread) {
    int64_t from = thread * share, to = from + share < total ? from + share : total;
    run_pieces(what, &plan, out, inputs, from, to);
  }
}

#define COPY_ROW(name, type)                             \
  static void name(const clv__row *row) {                \
    type *to = row->out;                                 \
    const type *from = row->in[0];                       \
    if (row->step[0] != 0) {                             \
      memcpy(to, from, (size_t)row->count * sizeof *to); \
    } else {                                             \
      const type value = *from;                          \
      CLV__ROW_LOOP(row->count) to[i] = value;           \
    }                                                    \
  }
COPY_ROW(copy_1, uint8_t)
COPY_ROW(copy_2, uint16_t)
COPY_ROW(copy_4, uint32_t)
COPY_ROW(copy_8, uint64_t)

void clv__broadcast_copy(const clv_tensor *out, const clv_tensor *input, const clv__stop *stop) {
  size_t size_bytes = clv_dtype_size_bytes(out->dtype);
  clv__elementwise what = {size_bytes == 1   ? copy_1
                           : size_bytes == 2 ? copy_2
                           : size_bytes == 4 ? copy_4
                                             : copy_8,
                           NULL, 1, false, stop};
  clv__broadcast_run(&what, out, &input, 1);
}
