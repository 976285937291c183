/* Det: the product of each matrix's pivots, with the sign of the row exchanges. The pivots come from Gaussian elimination in
 * f64 with partial pivoting: the pivot is the element of the column with the largest absolute value. */
#include <math.h>

#include "base/memory.h"
#include "operators/common/rows.h"
#include "operators/common/threads.h"
#include "operators/run.h"

static double determinant(double *m, int64_t size, const clv__stop *stop) {
  double product = 1;
  for (int64_t k = 0; k < size && !clv__is_stopped(stop); ++k) {
    int64_t pivot = k;
    for (int64_t i = k + 1; i < size; ++i) {
      if (fabs(m[i * size + k]) > fabs(m[pivot * size + k])) pivot = i;
    }
    for (int64_t j = k; pivot != k && j < size; ++j) {
      double swapped = m[k * size + j];
      m[k * size + j] = m[pivot * size + j];
      m[pivot * size + j] = swapped;
    }
    const double head = m[k * size + k];
    product *= pivot != k ? -head : head;
    if (head == 0) return 0;
    for (int64_t i = k + 1; i < size; ++i) {
      const double factor = m[i * size + k] / head;
      for (int64_t j = k + 1; j < size; ++j) m[i * size + j] -= factor * m[k * size + j];
    }
  }
  return product;
}

static size_t scratch_det(const clv__kernel_call *call) {
  const clv_tensor *x = &call->inputs[0];
  size_t total;
  if (!clv__tensor_is_static(x) || x->rank < 2) return 0;
  const size_t size = (size_t)x->dims[x->rank - 1],
               threads = (size_t)clv__kernel_thread_limit(clv__dims_count(x, 0, x->rank - 2));
  bool fits = clv__multiply(size, size, &total) && clv__multiply(total, threads * sizeof(double), &total);
  return fits ? total : SIZE_MAX;
}

static clv_status run_det(const clv__kernel_call *call) {
  const clv_tensor *x = &call->inputs[0], *y = &call->outputs[0];
  const int64_t size = x->dims[x->rank - 1], count = clv__dims_count(x, 0, x->rank - 2);
  const int threads = clv__kernel_threads(count, (double)count * (double)size * (double)size * (double)size);
  (void)threads; /* used only by OpenMP */
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
  for (int64_t i = 0; i < count; ++i) {
    if (clv__is_stopped(call->stop)) continue;
    double *matrix = (double *)call->scratch + clv__kernel_thread_index() * size * size;
    clv__row_to_f64(x->dtype, x->data, i * size * size, size * size, matrix);
    const double value = determinant(matrix, size, call->stop);
    clv__row_from_f64(y->dtype, y->data, i, 1, &value);
  }
  return CLV_OK;
}

const clv__kernel clv__kernels_linalg[] = {
    {"", "Det", CLV__DTYPES_FLOAT, run_det, scratch_det, NULL},
    {.op = NULL},
};
