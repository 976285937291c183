/* LayerNormalization and RMSNormalization, which normalise over the trailing axes. Scale and bias are broadcast to the input.
 * Both compute in f64 and round once, which every stash_type permits. */
#include <math.h>

#include "backends/common/kernels/normalize/normalize.h"
#include "operators/common/rows.h"
#include "operators/common/threads.h"

/* Whether `t`, apart from leading dims of 1, has the shape of the trailing dims of `x`. */
static bool is_trailing(const clv_tensor *t, const clv_tensor *x) {
  int32_t first = 0;
  while (first < t->rank && t->dims[first] == 1) ++first;
  for (int32_t i = first; i < t->rank; ++i) {
    if (t->dims[i] != x->dims[x->rank - t->rank + i]) return false;
  }
  return true;
}

/* Fills `row` with elements [first, first + count) of `t`, broadcast to the shape of `x`. */
static void broadcast_row(const clv_tensor *t, bool trailing, const clv_tensor *x, int64_t first, int64_t count, double *row) {
  if (trailing) {
    int64_t size = clv__dims_product(t, 0, t->rank);
    while (count > 0) {
      int64_t at = first % size, n = size - at < count ? size - at : count;
      clv__row_to_f64(t->dtype, t->data, at, n, row);
      row += n;
      first += n;
      count -= n;
    }
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = first + i, at = 0, step = 1;
    for (int32_t d = 1; d <= t->rank; ++d) {
      int64_t size = x->dims[x->rank - d], own = t->dims[t->rank - d];
      if (own != 1) at += rest % size * step;
      step *= own;
      rest /= size;
    }
    row[i] = clv__tensor_get(t, (size_t)at);
  }
}

typedef struct layer {
  const clv_tensor *x, *scale, *bias; /* bias may be NULL */
  bool scale_trailing, bias_trailing;
  clv_tensor *y;
} layer;

static void row_apply(const layer *l, const clv__stop *stop, int64_t first, int64_t count, double mean, double inverse) {
  double values[CLV__NORMALIZE_CHUNK], factors[CLV__NORMALIZE_CHUNK];
  for (int64_t done = 0; done < count && !clv__is_stopped(stop); done += CLV__NORMALIZE_CHUNK) {
    int64_t n = count - done < CLV__NORMALIZE_CHUNK ? count - done : CLV__NORMALIZE_CHUNK;
    clv__row_to_f64(l->x->dtype, l->x->data, first + done, n, values);
    broadcast_row(l->scale, l->scale_trailing, l->x, first + done, n, factors);
    for (int64_t i = 0; i < n; ++i) values[i] = (values[i] - mean) * inverse * factors[i];
    if (l->bias != NULL) {
      broadcast_row(l->bias, l->bias_trailing, l->x, first + done, n, factors);
      for (int64_t i = 0; i < n; ++i) values[i] += factors[i];
    }
    clv__row_from_f64(l->y->dtype, l->y->data, first + done, n, values);
  }
}

clv_status clv__layer_normalization(const clv__kernel_call *call) {
  const clv_tensor *x = &call->inputs[0];
  bool centred = call->op[0] == 'L';
  layer l = {.x = x, .scale = &call->inputs[1], .y = &call->outputs[0]};
  if (call->input_count > 2 && call->inputs[2].dtype != CLV_DTYPE_NONE) l.bias = &call->inputs[2];
  l.scale_trailing = is_trailing(l.scale, x);
  l.bias_trailing = l.bias != NULL && is_trailing(l.bias, x);
  int64_t axis = clv__attribute_int(call->attributes, "axis", -1);
  if (axis < 0) axis += x->rank;
  double epsilon = (double)clv__attribute_float(call->attributes, "epsilon", 1e-5f);
  bool has_statistics = false;
  for (uint32_t i = 1; i < call->output_count; ++i) has_statistics = has_statistics || call->outputs[i].dtype != CLV_DTYPE_NONE;
  /* Do not loop over the rows of an empty tensor: there may be very many. */
  if (clv__tensor_is_empty(x) && !has_statistics) return CLV_OK;
  int64_t rows = clv__dims_count(x, 0, (int32_t)axis), count = clv__dims_count(x, (int32_t)axis, x->rank);
  int threads = clv__kernel_threads(rows, 4.0 * (double)rows * (double)count);
  (void)threads; /* unused without OpenMP */
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
  for (int64_t row = 0; row < rows; ++row) {
    if (clv__is_stopped(call->stop)) continue;
    double mean = centred ? clv__row_deviation(x, row * count, count, 0, 1, call->stop) / (double)count : 0;
    double inverse = 1 / sqrt(clv__row_deviation(x, row * count, count, mean, 2, call->stop) / (double)count + epsilon);
    row_apply(&l, call->stop, row * count, count, mean, inverse);
    const double statistics[2] = {mean, inverse};
    for (uint32_t i = 1; i < call->output_count && i < 3; ++i) {
      clv_tensor *out = &call->outputs[i];
      if (out->dtype != CLV_DTYPE_NONE) clv__row_from_f64(out->dtype, out->data, row, 1, &statistics[i - 1]);
    }
  }
  return CLV_OK;
}
