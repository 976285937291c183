/* The normalisations: y = (x - mean) / deviation * scale + bias. The operators differ in the elements that share a mean and a
 * deviation. Computed in f64 and rounded once, which every stash_type permits. */
#include <math.h>
#include <stdio.h>

#include "operators/common/element.h"
#include "operators/run.h"

static double epsilon_of(const clv__kernel_call *call) {
  return (double)clv__attribute_float(call->attributes, "epsilon", 1e-5f);
}

/* ---- BatchNormalization and others with one scale per channel or group: x is [images, channels, plane] ---- */

static clv_status run_batch(const clv__kernel_call *call) {
  const clv_tensor *x = &call->inputs[0];
  const int64_t images = clv__dims_count(x, 0, x->rank > 0), channels = x->rank > 1 ? x->dims[1] : 1;
  const int64_t plane = clv__dims_count(x, 2, x->rank);
  for (int64_t i = 0; i < images * channels * plane; ++i) {
    const int64_t c = i / plane % channels;
    const double scale = clv__element_load(&call->inputs[1], c), bias = clv__element_load(&call->inputs[2], c);
    const double mean = clv__element_load(&call->inputs[3], c), variance = clv__element_load(&call->inputs[4], c);
    const double centred = clv__element_load(x, i) - mean;
    clv__element_store(&call->outputs[0], i, centred / sqrt(variance + epsilon_of(call)) * scale + bias);
  }
  return CLV_OK;
}

static bool accepts_batch(const clv__kernel_call *call, char reason[160]) {
  if (clv__attribute_int(call->attributes, "training_mode", 0) != 0) {
    snprintf(reason, 160, "training mode is not supported");
    return false;
  }
  if (clv__attribute_int(call->attributes, "spatial", 1) == 0) {
    snprintf(reason, 160, "spatial 0 (statistics per activation) is not supported");
    return false;
  }
  for (uint32_t i = 1; i < call->output_count; ++i) {
    if (call->outputs[i].dtype == CLV_DTYPE_NONE) continue;
    snprintf(reason, 160, "output %u is only for training, which is not supported", (unsigned)i);
    return false;
  }
  return true;
}

/* The mean and the variance of elements [first, first + count). */
static void statistics_of(const clv_tensor *x, int64_t first, int64_t count, double *mean, double *variance) {
  *mean = *variance = 0;
  for (int64_t i = first; i < first + count; ++i) *mean += clv__element_load(x, i);
  *mean /= (double)count;
  for (int64_t i = first; i < first + count; ++i) {
    const double centred = clv__element_load(x, i) - *mean;
    *variance += centred * centred;
  }
  *variance /= (double)count;
}

/* Divides the channels of each image into `groups` equal parts and normalises each part with its own statistics. */
static void run_groups(const clv__kernel_call *call, int64_t groups, bool scale_by_group) {
  const clv_tensor *x = &call->inputs[0];
  if (clv__tensor_is_empty(x)) return;
  const int64_t channels = x->dims[1], plane = clv__dims_count(x, 2, x->rank), each = channels / groups * plane;
  for (int64_t part = 0; part < x->dims[0] * groups; ++part) {
    double mean, variance;
    statistics_of(x, part * each, each, &mean, &variance);
    for (int64_t i = part * each; i < (part + 1) * each; ++i) {
      const int64_t c = scale_by_group ? part % groups : i / plane % channels;
      const double scale = clv__element_load(&call->inputs[1], c), bias = clv__element_load(&call->inputs[2], c);
      const double centred = clv__element_load(x, i) - mean;
      clv__element_store(&call->outputs[0], i, centred / sqrt(variance + epsilon_of(call)) * scale + bias);
    }
  }
}

static clv_status run_instance(const clv__kernel_call *call) {
  run_groups(call, call->inputs[0].dims[1], false);
  return CLV_OK;
}

static clv_status run_group(const clv__kernel_call *call) {
  run_groups(call, clv__attribute_int(call->attributes, "num_groups", 1), call->opset < 21);
  return CLV_OK;
}

/* ---- Over the trailing axes ---- */

/* LayerNormalization, and RMSNormalization, whose mean is 0. Scale and bias broadcast to the input. */
static clv_status run_layer(const clv__kernel_call *call) {
  const clv_tensor *x = &call->inputs[0], *scale = &call->inputs[1], *bias = clv__call_input(call, 2);
  const clv_tensor *means = clv__call_output(call, 1), *inverses = clv__call_output(call, 2);
  int64_t axis = clv__attribute_int(call->attributes, "axis", -1), at[CLV_MAX_RANK] = {0};
  if (axis < 0) axis += x->rank;
  if (clv__tensor_is_empty(x) && means == NULL && inverses == NULL) return CLV_OK; /* nothing to do, for any number of rows */
  const int64_t rows = clv__dims_count(x, 0, (int32_t)axis), count = clv__dims_count(x, (int32_t)axis, x->rank);
  for (int64_t row = 0; row < rows; ++row) {
    double mean, variance;
    statistics_of(x, row * count, count, &mean, &variance);
    if (strcmp(call->op, "RMSNormalization") == 0) {
      variance += mean * mean;
      mean = 0;
    }
    const double inverse = 1 / sqrt(variance + epsilon_of(call));
    if (means != NULL) clv__element_store(means, row, mean);
    if (inverses != NULL) clv__element_store(inverses, row, inverse);
    for (int64_t i = row * count; i < (row + 1) * count; ++i, clv__index_next(x->rank, x->dims, at)) {
      double value = (clv__element_load(x, i) - mean) * inverse;
      value *= clv__element_load(scale, clv__index_broadcast(scale, x->rank, at));
      if (bias != NULL) value += clv__element_load(bias, clv__index_broadcast(bias, x->rank, at));
      clv__element_store(&call->outputs[0], i, value);
    }
  }
  return CLV_OK;
}

/* ---- Over any axes ---- */

/* The axes that MeanVarianceNormalization averages over, as flags; the default is [0, 2, 3]. */
static void averaged_axes(const clv__kernel_call *call, bool averaged[CLV_MAX_RANK]) {
  static const int64_t usual[] = {0, 2, 3};
  const int32_t rank = call->inputs[0].rank;
  size_t count;
  const int64_t *axes = clv__attribute_ints(call->attributes, "axes", &count);
  if (axes == NULL || count == 0) axes = usual, count = 3;
  memset(averaged, 0, CLV_MAX_RANK * sizeof *averaged);
  for (size_t i = 0; i < count; ++i) {
    const int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
    if (axis >= 0 && axis < rank) averaged[axis] = true;
  }
}

/* The number of groups of elements that share statistics. */
static int64_t group_count(const clv_tensor *x, const bool averaged[CLV_MAX_RANK]) {
  int64_t count = 1;
  for (int32_t i = 0; i < x->rank; ++i) count *= averaged[i] ? 1 : x->dims[i];
  return count;
}

static int64_t group_at(const clv_tensor *x, const bool averaged[CLV_MAX_RANK], const int64_t *at) {
  int64_t group = 0;
  for (int32_t i = 0; i < x->rank; ++i) group = averaged[i] ? group : group * x->dims[i] + at[i];
  return group;
}

static size_t mean_variance_scratch_bytes(const clv__kernel_call *call) {
  bool averaged[CLV_MAX_RANK];
  averaged_axes(call, averaged);
  return clv__tensor_is_empty(&call->inputs[0]) ? 0 : (size_t)group_count(&call->inputs[0], averaged) * 2 * sizeof(double);
}

static clv_status run_mean_variance(const clv__kernel_call *call) {
  const clv_tensor *x = &call->inputs[0];
  if (clv__tensor_is_empty(x)) return CLV_OK;
  bool averaged[CLV_MAX_RANK];
  averaged_axes(call, averaged);
  const int64_t total = clv__dims_count(x, 0, x->rank), groups = group_count(x, averaged);
  const double count = (double)(total / groups);
  double *means = call->scratch, *variances = means + groups;
  int64_t at[CLV_MAX_RANK] = {0}; /* after the last element, clv__index_next() resets it to 0 for the next loop */
  memset(means, 0, (size_t)groups * 2 * sizeof *means);
  for (int64_t i = 0; i < total; ++i, clv__index_next(x->rank, x->dims, at)) {
    means[group_at(x, averaged, at)] += clv__element_load(x, i) / count;
  }
  for (int64_t i = 0; i < total; ++i, clv__index_next(x->rank, x->dims, at)) {
    const int64_t group = group_at(x, averaged, at);
    const double centred = clv__element_load(x, i) - means[group];
    variances[group] += centred * centred / count;
  }
  for (int64_t i = 0; i < total; ++i, clv__index_next(x->rank, x->dims, at)) {
    const int64_t group = group_at(x, averaged, at);
    clv__element_store(&call->outputs[0], i, (clv__element_load(x, i) - means[group]) / (sqrt(variances[group]) + 1e-9));
  }
  return CLV_OK;
}

/* ---- Along one axis ---- */

/* LpNormalization: divides each element by the norm of its line along the axis: the sum of absolute values (p 1), or the root of
 * the sum of squares (p 2). */
static clv_status run_lp(const clv__kernel_call *call) {
  const clv_tensor *x = &call->inputs[0];
  if (clv__tensor_is_empty(x)) return CLV_OK;
  const bool absolute = clv__attribute_int(call->attributes, "p", 2) == 1;
  int64_t axis = clv__attribute_int(call->attributes, "axis", -1);
  if (axis < 0) axis += x->rank;
  const int64_t size = x->dims[axis], inner = clv__dims_count(x, (int32_t)axis + 1, x->rank);
  for (int64_t line = 0; line < clv__dims_count(x, 0, (int32_t)axis) * inner; ++line) {
    const int64_t first = line / inner * size * inner + line % inner;
    double norm = 0;
    for (int64_t i = 0; i < size; ++i) {
      const double value = clv__element_load(x, first + i * inner);
      norm += absolute ? fabs(value) : value * value;
    }
    if (!absolute) norm = sqrt(norm);
    for (int64_t i = 0; i < size; ++i) {
      const double value = clv__element_load(x, first + i * inner);
      clv__element_store(&call->outputs[0], first + i * inner, norm == 0 ? 0 : value / norm);
    }
  }
  return CLV_OK;
}

/* LRN: divides each element by a power of the sum of squares over the channels from floor((size - 1) / 2) before its own to
 * ceil((size - 1) / 2) after it. */
static clv_status run_lrn(const clv__kernel_call *call) {
  const clv_tensor *x = &call->inputs[0];
  if (clv__tensor_is_empty(x)) return CLV_OK;
  const double alpha = (double)clv__attribute_float(call->attributes, "alpha", 1e-4f);
  const double beta = (double)clv__attribute_float(call->attributes, "beta", 0.75f);
  const double bias = (double)clv__attribute_float(call->attributes, "bias", 1.0f);
  const int64_t size = clv__attribute_int(call->attributes, "size", 1);
  const int64_t channels = x->dims[1], plane = clv__dims_count(x, 2, x->rank);
  for (int64_t i = 0; i < clv__dims_count(x, 0, x->rank); ++i) {
    const int64_t c = i / plane % channels;
    double sum = 0;
    for (int64_t j = c - (size - 1) / 2; j <= c + size / 2; ++j) {
      if (j < 0 || j >= channels) continue;
      const double neighbour = clv__element_load(x, i + (j - c) * plane);
      sum += neighbour * neighbour;
    }
    clv__element_store(&call->outputs[0], i, clv__element_load(x, i) / pow(bias + alpha / (double)size * sum, beta));
  }
  return CLV_OK;
}

const clv__kernel clv__kernels_normalize[] = {
    {"", "BatchNormalization", CLV__DTYPES_FLOAT, run_batch, NULL, accepts_batch},
    {"", "InstanceNormalization", CLV__DTYPES_FLOAT, run_instance, NULL, NULL},
    {"", "GroupNormalization", CLV__DTYPES_FLOAT, run_group, NULL, NULL},
    {"", "LayerNormalization", CLV__DTYPES_FLOAT, run_layer, NULL, NULL},
    {"", "RMSNormalization", CLV__DTYPES_FLOAT, run_layer, NULL, NULL},
    {"", "MeanVarianceNormalization", CLV__DTYPES_FLOAT, run_mean_variance, mean_variance_scratch_bytes, NULL},
    {"", "LpNormalization", CLV__DTYPES_FLOAT, run_lp, NULL, NULL},
    {"", "LRN", CLV__DTYPES_FLOAT, run_lrn, NULL, NULL},
    {0},
};
