/* Small matrix products. */
#include "small.h"
#include "backends/common/kernels/vector.h"

#define LANES (CLV__VECTOR_BYTES < 32 ? 4 : 8) /* products are small: wider vectors would often be partly empty */

typedef float lanes __attribute__((vector_size(LANES * sizeof(float)), aligned(sizeof(float)), may_alias));

/* Multiplies two matrices. Each element is summed in order along the depth, whether it is computed in a vector or alone. */
static void multiply(const clv__cpu_small *s, const float *a, const float *b, const float *bias, float *c) {
  const int64_t wide = s->b_column == 1 ? s->columns / LANES * LANES : 0;
  for (int64_t i = 0; i < s->rows; ++i, a += s->a_row, c += s->columns) {
    for (int64_t j = 0; j < wide; j += LANES) {
      lanes sum = {0};
      const float *x = a, *y = b + j;
      for (int64_t k = 0; k < s->depth; ++k, x += s->a_depth, y += s->b_depth) sum += *x * *(const lanes *)y;
      if (bias != NULL) sum += *(const lanes *)(bias + j);
      *(lanes *)(c + j) = sum;
    }
    for (int64_t j = wide; j < s->columns; ++j) {
      float sum = 0.0f;
      const float *x = a, *y = b + j * s->b_column;
      for (int64_t k = 0; k < s->depth; ++k, x += s->a_depth, y += s->b_depth) sum += *x * *y;
      c[j] = bias != NULL ? sum + bias[j] : sum;
    }
  }
}

void clv__cpu_small_run(const clv__cpu_small *small, const float *a, const float *b, const float *bias, float *c) {
  for (int64_t n = 0; n < small->batches; ++n) {
    multiply(small, a + n * small->a_batch, b + n * small->b_batch, bias, c + n * small->rows * small->columns);
  }
}
