/* MeanVarianceNormalization over any axes, LpNormalization along one axis, and LRN across channels. All compute in f64 and round
 * once. */
#include <math.h>

#include "backends/common/kernels/normalize/normalize.h"
#include "operators/common/rows.h"
#include "operators/common/threads.h"

/* ---- MeanVarianceNormalization ---- */

/* The axes that are averaged over, as flags; the default is [0, 2, 3]. */
static void averaged_axes(const clv__kernel_call *call, bool *averaged) {
  static const int64_t usual[] = {0, 2, 3};
  const clv_tensor *x = &call->inputs[0];
  size_t count;
  const int64_t *axes = clv__attribute_ints(call->attributes, "axes", &count);
  if (axes == NULL || count == 0) axes = usual, count = 3;
  memset(averaged, 0, CLV_MAX_RANK * sizeof *averaged);
  for (size_t i = 0; i < count; ++i) {
    int64_t axis = axes[i] < 0 ? axes[i] + x->rank : axes[i];
    if (axis >= 0 && axis < x->rank) averaged[axis] = true;
  }
}

static int64_t kept_count(const clv_tensor *x, const bool *averaged) {
  int64_t count = 1;
  for (int32_t i = 0; i < x->rank; ++i) count *= averaged[i] ? 1 : x->dims[i];
  return count;
}

size_t clv__mean_variance_scratch_bytes(const clv__kernel_call *call) {
  bool averaged[CLV_MAX_RANK];
  averaged_axes(call, averaged);
  return clv__tensor_is_empty(&call->inputs[0]) ? 0 : (size_t)kept_count(&call->inputs[0], averaged) * 2 * sizeof(double);
}

/* The position in a loop over all elements in order. `group` numbers the average to which the element belongs: its index over the
 * axes that are not averaged. */
typedef struct walk {
  int64_t index[CLV_MAX_RANK], steps[CLV_MAX_RANK], group;
} walk;

static walk walk_begin(const clv_tensor *x, const bool *averaged) {
  walk w = {0};
  int64_t step = 1;
  for (int32_t i = x->rank - 1; i >= 0; --i) {
    w.steps[i] = averaged[i] ? 0 : step;
    if (!averaged[i]) step *= x->dims[i];
  }
  return w;
}

static void walk_next(walk *w, const clv_tensor *x) {
  for (int32_t i = x->rank - 1; i >= 0; --i) {
    w->group += w->steps[i];
    if (++w->index[i] < x->dims[i]) return;
    w->group -= w->steps[i] * x->dims[i];
    w->index[i] = 0;
  }
}

clv_status clv__mean_variance_normalization(const clv__kernel_call *call) {
  const clv_tensor *x = &call->inputs[0];
  bool averaged[CLV_MAX_RANK];
  if (clv__tensor_is_empty(x)) return CLV_OK;
  averaged_axes(call, averaged);
  int64_t total = clv__dims_product(x, 0, x->rank), groups = kept_count(x, averaged);
  double *means = call->scratch, *deviations = means + groups, count = (double)(total / groups);
  memset(means, 0, (size_t)groups * 2 * sizeof *means);
  walk w = walk_begin(x, averaged);
  for (int64_t i = 0; i < total && !clv__is_stopped(call->stop); ++i, walk_next(&w, x))
    means[w.group] += clv__tensor_get(x, (size_t)i);
  for (int64_t g = 0; g < groups; ++g) means[g] /= count;
  w = walk_begin(x, averaged);
  for (int64_t i = 0; i < total && !clv__is_stopped(call->stop); ++i, walk_next(&w, x)) {
    double difference = clv__tensor_get(x, (size_t)i) - means[w.group];
    deviations[w.group] += difference * difference;
  }
  for (int64_t g = 0; g < groups; ++g) deviations[g] = sqrt(deviations[g] / count) + 1e-9;
  w = walk_begin(x, averaged);
  for (int64_t i = 0; i < total && !clv__is_stopped(call->stop); ++i, walk_next(&w, x)) {
    double value = (clv__tensor_get(x, (size_t)i) - means[w.group]) / deviations[w.group];
    clv__row_from_f64(x->dtype, call->outputs[0].data, i, 1, &value);
  }
  return CLV_OK;
}

/* ---- LpNormalization ---- */

static void lp_chunk(const clv__kernel_call *call, int64_t first, int64_t size, int64_t inner, int64_t n, bool absolute) {
  const clv_tensor *x = &call->inputs[0];
  double norms[CLV__NORMALIZE_CHUNK] = {0}, values[CLV__NORMALIZE_CHUNK];
  for (int64_t a = 0; a < size && !clv__is_stopped(call->stop); ++a) {
    clv__row_to_f64(x->dtype, x->data, first + a * inner, n, values);
    for (int64_t i = 0; i < n; ++i) norms[i] += absolute ? fabs(values[i]) : values[i] * values[i];
  }
  if (!absolute) {
    for (int64_t i = 0; i < n; ++i) norms[i] = sqrt(norms[i]);
  }
  for (int64_t a = 0; a < size && !clv__is_stopped(call->stop); ++a) {
    clv__row_to_f64(x->dtype, x->data, first + a * inner, n, values);
    for (int64_t i = 0; i < n; ++i) values[i] = norms[i] == 0 ? 0 : values[i] / norms[i];
    clv__row_from_f64(x->dtype, call->outputs[0].data, first + a * inner, n, values);
  }
}

clv_status clv__lp_normalization(const clv__kernel_call *call) {
  const clv_tensor *x = &call->inputs[0];
  int64_t axis = clv__attribute_int(call->attributes, "axis", -1);
  bool absolute = clv__attribute_int(call->attributes, "p", 2) == 1;
  if (clv__tensor_is_empty(x)) return CLV_OK;
  if (axis < 0) axis += x->rank;
  int64_t size = x->dims[axis], inner = clv__dims_product(x, (int32_t)axis + 1, x->rank);
  int64_t chunks = (inner + CLV__NORMALIZE_CHUNK - 1) / CLV__NORMALIZE_CHUNK,
          tasks = clv__dims_product(x, 0, (int32_t)axis) * chunks;
  int threads = clv__kernel_threads(tasks, 2.0 * (double)clv__dims_product(x, 0, x->rank));
  (void)threads; /* unused without OpenMP */
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
  for (int64_t task = 0; task < tasks; ++task) {
    if (clv__is_stopped(call->stop)) continue;
    int64_t start = task % chunks * CLV__NORMALIZE_CHUNK,
            n = inner - start < CLV__NORMALIZE_CHUNK ? inner - start : CLV__NORMALIZE_CHUNK;
    lp_chunk(call, task / chunks * size * inner + start, size, inner, n, absolute);
  }
  return CLV_OK;
}

/* ---- LRN ---- */

static void lrn_chunk(const clv__kernel_call *call, int64_t first, int64_t channels, int64_t plane, int64_t n) {
  const clv_tensor *x = &call->inputs[0];
  double alpha = (double)clv__attribute_float(call->attributes, "alpha", 1e-4f);
  double beta = (double)clv__attribute_float(call->attributes, "beta", 0.75f);
  double bias = (double)clv__attribute_float(call->attributes, "bias", 1.0f);
  int64_t size = clv__attribute_int(call->attributes, "size", 1);
  double sums[CLV__NORMALIZE_CHUNK], values[CLV__NORMALIZE_CHUNK];
  for (int64_t c = 0; c < channels; ++c) {
    int64_t low = c - (size - 1) / 2, high = c + size / 2; /* floor and ceil of (size - 1) / 2 */
    if (low < 0) low = 0;
    if (high > channels - 1) high = channels - 1;
    for (int64_t i = 0; i < n; ++i) sums[i] = 0;
    for (int64_t j = low; j <= high; ++j) {
      clv__row_to_f64(x->dtype, x->data, first + j * plane, n, values);
      for (int64_t i = 0; i < n; ++i) sums[i] += values[i] * values[i];
    }
    clv__row_to_f64(x->dtype, x->data, first + c * plane, n, values);
    for (int64_t i = 0; i < n; ++i) sums[i] = bias + alpha / (double)size * sums[i];
    if (beta == 0.75) {
      for (int64_t i = 0; i < n; ++i) values[i] /= sqrt(sums[i]) * sqrt(sqrt(sums[i]));
    } else {
      for (int64_t i = 0; i < n; ++i) values[i] /= pow(sums[i], beta);
    }
    clv__row_from_f64(x->dtype, call->outputs[0].data, first + c * plane, n, values);
  }
}

clv_status clv__lrn(const clv__kernel_call *call) {
  const clv_tensor *x = &call->inputs[0];
  if (clv__tensor_is_empty(x)) return CLV_OK;
  int64_t channels = x->dims[1], plane = clv__dims_product(x, 2, x->rank);
  int64_t chunks = (plane + CLV__NORMALIZE_CHUNK - 1) / CLV__NORMALIZE_CHUNK, tasks = x->dims[0] * chunks;
  int threads = clv__kernel_threads(tasks, 8.0 * (double)clv__dims_product(x, 0, x->rank));
  (void)threads; /* unused without OpenMP */
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
  for (int64_t task = 0; task < tasks; ++task) {
    if (clv__is_stopped(call->stop)) continue;
    int64_t start = task % chunks * CLV__NORMALIZE_CHUNK,
            n = plane - start < CLV__NORMALIZE_CHUNK ? plane - start : CLV__NORMALIZE_CHUNK;
    lrn_chunk(call, task / chunks * channels * plane + start, channels, plane, n);
  }
  return CLV_OK;
}
