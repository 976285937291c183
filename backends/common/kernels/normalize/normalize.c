/* Normalizations with one scale per channel: BatchNormalization (inference), InstanceNormalization, GroupNormalization; and the
 * table of the whole family. All compute in f64 and round once. */
#include "operators/normalize/run.h"

#include <math.h>
#include <stdio.h>

#include "operators/common/rows.h"
#include "operators/common/threads.h"

static clv_status batch_run(const clv__kernel_call *call) {
  const clv_tensor *x = &call->inputs[0];
  if (clv__tensor_is_empty(x)) return CLV_OK;
  int64_t channels = x->rank > 1 ? x->dims[1] : 1, images = x->rank > 0 ? x->dims[0] : 1;
  int64_t plane = clv__dims_product(x, 2, x->rank), planes = images * channels;
  double epsilon = (double)clv__attribute_float(call->attributes, "epsilon", 1e-5f);
  int threads = clv__kernel_threads(planes, (double)planes * (double)(plane + 8));
  (void)threads; /* used only by OpenMP */
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
  for (int64_t p = 0; p < planes; ++p) {
    size_t c = (size_t)(p % channels);
    double scale = clv__tensor_get(&call->inputs[1], c), bias = clv__tensor_get(&call->inputs[2], c);
    double mean = clv__tensor_get(&call->inputs[3], c), variance = clv__tensor_get(&call->inputs[4], c);
    clv__row_affine(x, &call->outputs[0], p * plane, plane, mean, scale / sqrt(variance + epsilon), bias);
  }
  return CLV_OK;
}

static bool batch_accepts(const clv__kernel_call *call, char reason[160]) {
  if (clv__attribute_int(call->attributes, "training_mode", 0) != 0) {
    snprintf(reason, 160, "training_mode is not supported");
    return false;
  }
  if (clv__attribute_int(call->attributes, "spatial", 1) == 0) {
    snprintf(reason, 160, "spatial 0 (statistics for every activation) is not supported");
    return false;
  }
  for (uint32_t i = 1; i < call->output_count; ++i) {
    if (call->outputs[i].dtype == CLV_DTYPE_NONE) continue;
    snprintf(reason, 160, "output %u exists only in training", (unsigned)i);
    return false;
  }
  return true;
}

/* Computes statistics over `groups` equal parts of the channels of each image. Scale and bias have one element per channel, or
 * one per group. */
static clv_status groups_run(const clv__kernel_call *call, int64_t groups, bool scale_by_group) {
  const clv_tensor *x = &call->inputs[0];
  if (clv__tensor_is_empty(x)) return CLV_OK;
  int64_t channels = x->dims[1], plane = clv__dims_product(x, 2, x->rank);
  int64_t members = channels / groups, parts = x->dims[0] * groups;
  double epsilon = (double)clv__attribute_float(call->attributes, "epsilon", 1e-5f), count = (double)(members * plane);
  int threads = clv__kernel_threads(parts, 3.0 * (double)parts * count);
  (void)threads; /* used only by OpenMP */
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
  for (int64_t part = 0; part < parts; ++part) {
    int64_t first = part * members * plane;
    double mean = clv__row_deviation(x, first, members * plane, 0, 1) / count;
    double variance = clv__row_deviation(x, first, members * plane, mean, 2) / count;
    for (int64_t m = 0; m < members; ++m) {
      int64_t group = part % groups;
      size_t c = (size_t)(scale_by_group ? group : group * members + m);
      double scale = clv__tensor_get(&call->inputs[1], c), bias = clv__tensor_get(&call->inputs[2], c);
      clv__row_affine(x, &call->outputs[0], first + m * plane, plane, mean, scale / sqrt(variance + epsilon), bias);
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

const clv__kernel clv__kernels_normalize[] = {
    {"", "BatchNormalization", CLV__DTYPES_FLOAT, batch_run, NULL, batch_accepts},
    {"", "InstanceNormalization", CLV__DTYPES_FLOAT, instance_run, NULL, NULL},
    {"", "GroupNormalization", CLV__DTYPES_FLOAT, group_run, NULL, NULL},
    {"", "LayerNormalization", CLV__DTYPES_FLOAT, clv__kernel_layer_normalization, NULL, NULL},
    {"", "RMSNormalization", CLV__DTYPES_FLOAT, clv__kernel_layer_normalization, NULL, NULL},
    {"", "MeanVarianceNormalization", CLV__DTYPES_FLOAT, clv__kernel_mean_variance_normalization,
     clv__kernel_mean_variance_scratch_bytes, NULL},
    {"", "LpNormalization", CLV__DTYPES_FLOAT, clv__kernel_lp_normalization, NULL, NULL},
    {"", "LRN", CLV__DTYPES_FLOAT, clv__kernel_lrn, NULL, NULL},
    {0},
};
