/* Normalizations with one scale per channel: BatchNormalization (inference), InstanceNormalization, GroupNormalization. The table
 * at the end lists all fast normalisations. */
#include "backends/common/kernels/normalize/normalize.h"

#include <math.h>

#include "backends/common/kernels/families.h"
#include "operators/common/rows.h"
#include "operators/common/threads.h"

/* The number of partial sums of a row, so that the compiler can vectorise the loops. The order of the additions depends only on
 * the number of elements. */
enum { LANES = 8 };

double clv__row_deviation(const clv_tensor *x, int64_t first, int64_t count, double mean, int power, const clv__stop *stop) {
  double lanes[LANES] = {0}, chunk[CLV__NORMALIZE_CHUNK], sum = 0;
  while (count > 0 && !clv__is_stopped(stop)) {
    int64_t n = count < CLV__NORMALIZE_CHUNK ? count : CLV__NORMALIZE_CHUNK, i = 0;
    clv__row_to_f64(x->dtype, x->data, first, n, chunk);
    if (power == 1) {
      for (; i + LANES <= n; i += LANES) {
        for (int l = 0; l < LANES; ++l) lanes[l] += chunk[i + l] - mean;
      }
      for (; i < n; ++i) sum += chunk[i] - mean;
    } else {
      for (; i + LANES <= n; i += LANES) {
        for (int l = 0; l < LANES; ++l) lanes[l] += (chunk[i + l] - mean) * (chunk[i + l] - mean);
      }
      for (; i < n; ++i) sum += (chunk[i] - mean) * (chunk[i] - mean);
    }
    first += n;
    count -= n;
  }
  for (int l = 0; l < LANES; ++l) sum += lanes[l];
  return sum;
}

void clv__row_affine(const clv_tensor *x, clv_tensor *y, int64_t first, int64_t count, double mean, double factor, double shift,
                     const clv__stop *stop) {
  double chunk[CLV__NORMALIZE_CHUNK];
  while (count > 0 && !clv__is_stopped(stop)) {
    int64_t n = count < CLV__NORMALIZE_CHUNK ? count : CLV__NORMALIZE_CHUNK;
    clv__row_to_f64(x->dtype, x->data, first, n, chunk);
    for (int64_t i = 0; i < n; ++i) chunk[i] = (chunk[i] - mean) * factor + shift;
    clv__row_from_f64(y->dtype, y->data, first, n, chunk);
    first += n;
    count -= n;
  }
}

static clv_status batch_run(const clv__kernel_call *call) {
  const clv_tensor *x = &call->inputs[0];
  if (clv__tensor_is_empty(x)) return CLV_OK;
  int64_t channels = x->rank > 1 ? x->dims[1] : 1, images = x->rank > 0 ? x->dims[0] : 1;
  int64_t plane = clv__dims_product(x, 2, x->rank), planes = images * channels;
  double epsilon = (double)clv__attribute_float(call->attributes, "epsilon", 1e-5f);
  int threads = clv__kernel_threads(planes, (double)planes * (double)(plane + 8));
  (void)threads; /* unused without OpenMP */
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
  for (int64_t p = 0; p < planes; ++p) {
    if (clv__is_stopped(call->stop)) continue;
    size_t c = (size_t)(p % channels);
    double scale = clv__tensor_get(&call->inputs[1], c), bias = clv__tensor_get(&call->inputs[2], c);
    double mean = clv__tensor_get(&call->inputs[3], c), variance = clv__tensor_get(&call->inputs[4], c);
    clv__row_affine(x, &call->outputs[0], p * plane, plane, mean, scale / sqrt(variance + epsilon), bias, call->stop);
  }
  return CLV_OK;
}

/* Divides the channels of each image into `groups` equal parts and normalises each part. Scale and bias have one element per
 * channel or, if `scale_by_group` is set, one per group. */
static clv_status groups_run(const clv__kernel_call *call, int64_t groups, bool scale_by_group) {
  const clv_tensor *x = &call->inputs[0];
  if (clv__tensor_is_empty(x)) return CLV_OK;
  int64_t channels = x->dims[1], plane = clv__dims_product(x, 2, x->rank);
  int64_t members = channels / groups, parts = x->dims[0] * groups;
  double epsilon = (double)clv__attribute_float(call->attributes, "epsilon", 1e-5f), count = (double)(members * plane);
  int threads = clv__kernel_threads(parts, 3.0 * (double)parts * count);
  (void)threads; /* unused without OpenMP */
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
  for (int64_t part = 0; part < parts; ++part) {
    if (clv__is_stopped(call->stop)) continue;
    int64_t first = part * members * plane;
    double mean = clv__row_deviation(x, first, members * plane, 0, 1, call->stop) / count;
    double variance = clv__row_deviation(x, first, members * plane, mean, 2, call->stop) / count;
    for (int64_t m = 0; m < members; ++m) {
      int64_t group = part % groups;
      size_t c = (size_t)(scale_by_group ? group : group * members + m);
      double scale = clv__tensor_get(&call->inputs[1], c), bias = clv__tensor_get(&call->inputs[2], c);
      clv__row_affine(x, &call->outputs[0], first + m * plane, plane, mean, scale / sqrt(variance + epsilon), bias, call->stop);
    }
  }
  return CLV_OK;
}

static clv_status instance_run(const clv__kernel_call *call) {
  return groups_run(call, call->inputs[0].dims[1], false);
}

static clv_status group_run(const clv__kernel_call *call) {
  return groups_run(call, clv__attribute_int(call->attributes, "num_groups", 1), call->opset < 21);
}

const clv__fast_kernel clv__fast_normalize[] = {
    {"", "BatchNormalization", batch_run, NULL},
    {"", "InstanceNormalization", instance_run, NULL},
    {"", "GroupNormalization", group_run, NULL},
    {"", "LayerNormalization", clv__layer_normalization, NULL},
    {"", "RMSNormalization", clv__layer_normalization, NULL},
    {"", "MeanVarianceNormalization", clv__mean_variance_normalization, clv__mean_variance_scratch_bytes},
    {"", "LpNormalization", clv__lp_normalization, NULL},
    {"", "LRN", clv__lrn, NULL},
    {.op = NULL},
};
