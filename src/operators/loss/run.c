/* NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss. Scores are [N, C, D], targets [N, D]. Everything is computed in f64. A
 * loss and a weight for each target are computed first, so that their sum is the same on any number of threads. */
#include <math.h>

#include "base/memory.h"
#include "operators/common/rows.h"
#include "operators/common/threads.h"
#include "operators/run.h"

enum { BLOCK = 64, LINE = 512 };

typedef struct loss {
  const clv_tensor *x, *target, *weight; /* weight may be NULL */
  clv_tensor *logarithms;                /* output log_prob; NULL if it is not wanted */
  int64_t batch, classes, inner, targets;
  bool normalizes; /* SoftmaxCrossEntropyLoss: converts the scores to logarithms of probabilities first */
  bool has_ignored;
  int64_t ignored;
  double *losses, *weights; /* one per target */
} loss;

static loss loss_of(const clv__kernel_call *call) {
  const clv_tensor *x = &call->inputs[0];
  loss l = {.x = x, .target = &call->inputs[1], .batch = x->dims[0], .classes = x->dims[1]};
  if (call->input_count > 2 && call->inputs[2].dtype != CLV_DTYPE_NONE) l.weight = &call->inputs[2];
  if (call->output_count > 1 && call->outputs[1].dtype != CLV_DTYPE_NONE) l.logarithms = &call->outputs[1];
  l.inner = clv__dims_count(x, 2, x->rank);
  l.targets = clv__dims_count(l.target, 0, l.target->rank);
  l.normalizes = strcmp(call->op, "SoftmaxCrossEntropyLoss") == 0;
  l.has_ignored = clv__attribute_find(call->attributes, "ignore_index") != NULL;
  l.ignored = clv__attribute_int(call->attributes, "ignore_index", 0);
  return l;
}

static int64_t target_at(const loss *l, int64_t index) {
  return l->target->dtype == CLV_I64 ? ((const int64_t *)l->target->data)[index] : ((const int32_t *)l->target->data)[index];
}

static clv_status check_targets(const loss *l, clv_error *error) {
  for (int64_t i = 0; i < l->targets; ++i) {
    const int64_t target = target_at(l, i);
    if ((l->has_ignored && target == l->ignored) || (target >= 0 && target < l->classes)) continue;
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "targets[%lld] is %lld, which is not one of the %lld classes",
                          (long long)i, (long long)target, (long long)l->classes);
  }
  return CLV_OK;
}

/* Returns the logarithm of the sum of the exponentials of one line's elements, which are contiguous. */
static double line_logarithm(const loss *l, int64_t first) {
  double row[LINE], largest = -INFINITY, sum = 0;
  for (int64_t c = 0; c < l->classes; c += LINE) {
    const int64_t count = l->classes - c < LINE ? l->classes - c : LINE;
    clv__row_to_f64(l->x->dtype, l->x->data, first + c, count, row);
    for (int64_t i = 0; i < count; ++i) largest = row[i] > largest ? row[i] : largest;
  }
  for (int64_t c = 0; c < l->classes; c += LINE) {
    const int64_t count = l->classes - c < LINE ? l->classes - c : LINE;
    clv__row_to_f64(l->x->dtype, l->x->data, first + c, count, row);
    for (int64_t i = 0; i < count; ++i) sum += exp(row[i] - largest);
  }
  return largest + log(sum);
}

/* Like line_logarithm(), for `width` neighbouring lines, whose elements are strided in memory. */
static void block_logarithms(const loss *l, int64_t first, int64_t width, double *logarithms) {
  double row[BLOCK], largest[BLOCK], sum[BLOCK] = {0};
  for (int64_t i = 0; i < width; ++i) largest[i] = -INFINITY;
  for (int64_t c = 0; c < l->classes; ++c) {
    clv__row_to_f64(l->x->dtype, l->x->data, first + c * l->inner, width, row);
    for (int64_t i = 0; i < width; ++i) largest[i] = row[i] > largest[i] ? row[i] : largest[i];
  }
  for (int64_t c = 0; c < l->classes; ++c) {
    clv__row_to_f64(l->x->dtype, l->x->data, first + c * l->inner, width, row);
    for (int64_t i = 0; i < width; ++i) sum[i] += exp(row[i] - largest[i]);
  }
  for (int64_t i = 0; i < width; ++i) logarithms[i] = largest[i] + log(sum[i]);
}

static void write_logarithms(const loss *l, int64_t first, int64_t width, const double *shift) {
  double row[LINE];
  if (l->inner == 1) {
    for (int64_t c = 0; c < l->classes; c += LINE) {
      const int64_t count = l->classes - c < LINE ? l->classes - c : LINE;
      clv__row_to_f64(l->x->dtype, l->x->data, first + c, count, row);
      for (int64_t i = 0; i < count; ++i) row[i] -= shift[0];
      clv__row_from_f64(l->logarithms->dtype, l->logarithms->data, first + c, count, row);
    }
    return;
  }
  for (int64_t c = 0; c < l->classes; ++c) {
    clv__row_to_f64(l->x->dtype, l->x->data, first + c * l->inner, width, row);
    for (int64_t i = 0; i < width; ++i) row[i] -= shift[i];
    clv__row_from_f64(l->logarithms->dtype, l->logarithms->data, first + c * l->inner, width, row);
  }
}

/* Computes the losses and weights of targets [d, d + width) of batch n, and writes their log_prob if it is wanted. */
static void run_block(const loss *l, int64_t n, int64_t d, int64_t width) {
  double shift[BLOCK] = {0};
  const int64_t first = n * l->classes * l->inner + d;
  if (l->normalizes && l->inner == 1) {
    shift[0] = line_logarithm(l, first);
  } else if (l->normalizes) {
    block_logarithms(l, first, width, shift);
  }
  if (l->logarithms != NULL) write_logarithms(l, first, width, shift);
  for (int64_t i = 0; i < width; ++i) {
    const int64_t at = n * l->inner + d + i, target = target_at(l, at);
    double score, weight = 1;
    l->losses[at] = l->weights[at] = 0;
    if (l->has_ignored && target == l->ignored) continue;
    clv__row_to_f64(l->x->dtype, l->x->data, first + target * l->inner + i, 1, &score);
    if (l->weight != NULL) clv__row_to_f64(l->weight->dtype, l->weight->data, target, 1, &weight);
    l->losses[at] = weight * (shift[i] - score);
    l->weights[at] = weight;
  }
}

static clv_status run_loss(const clv__kernel_call *call) {
  loss l = loss_of(call);
  CLV__TRY(check_targets(&l, call->error));
  l.losses = call->scratch;
  l.weights = l.losses + l.targets;
  const int64_t blocks = (l.inner + BLOCK - 1) / BLOCK, tasks = l.targets > 0 ? l.batch * blocks : 0;
  const double each = l.normalizes ? 15.0 * (double)l.classes : 3.0;
  const int threads = clv__kernel_threads(tasks, each * (double)l.targets);
  (void)threads; /* unused without OpenMP */
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t task = 0; task < tasks; ++task) {
    if (clv__is_stopped(call->stop)) continue;
    const int64_t d = task % blocks * BLOCK;
    run_block(&l, task / blocks, d, l.inner - d < BLOCK ? l.inner - d : BLOCK);
  }
  clv_tensor *y = &call->outputs[0];
  if (y->dtype == CLV_DTYPE_NONE) return CLV_OK;
  if (clv__attribute_is(call->attributes, "reduction", "none", false)) {
    clv__row_from_f64(y->dtype, y->data, 0, l.targets, l.losses);
    return CLV_OK;
  }
  double sum = 0, weights = 0;
  for (int64_t i = 0; i < l.targets; ++i) {
    sum += l.losses[i];
    weights += l.weights[i];
  }
  if (!clv__attribute_is(call->attributes, "reduction", "sum", false)) sum /= weights; /* mean; NaN if there are no targets */
  clv__row_from_f64(y->dtype, y->data, 0, 1, &sum);
  return CLV_OK;
}

static size_t scratch_bytes(const clv__kernel_call *call) {
  size_t count, bytes;
  if (!clv__tensor_count(&call->inputs[1], &count)) return SIZE_MAX;
  return clv__multiply(count, 2 * sizeof(double), &bytes) ? bytes : SIZE_MAX;
}

const clv__kernel clv__kernels_loss[] = {
    {"", "NegativeLogLikelihoodLoss", CLV__DTYPES_FLOAT, run_loss, scratch_bytes, NULL},
    {"", "SoftmaxCrossEntropyLoss", CLV__DTYPES_FLOAT, run_loss, scratch_bytes, NULL},
    {.op = NULL},
};
