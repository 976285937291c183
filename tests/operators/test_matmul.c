/* Tests MatMul and Gemm against loops in f64 or, for integers, 64-bit integers, with broadcasting, vectors, transposition and
 * all dtypes. */
#include "node_case.h"

#ifdef _OPENMP
#include <omp.h>
#endif

static clv_dtype random_dtype(uint64_t *seed) {
  static const clv_dtype integers[] = {CLV_I32, CLV_I64, CLV_U32, CLV_U64};
  return random_in(seed, 0, 3) == 0 ? integers[random_in(seed, 0, 3)] : random_float_dtype(seed);
}

static int64_t random_side(uint64_t *seed) {
  static const int64_t sides[] = {1, 2, 4, 5, 13, 33, 97, 260, 300, 530};
  return sides[random_in(seed, 0, 9)];
}

/* Returns the number of the matrix in `t` from which the result for batch `index` is computed. `index` has `rank` numbers. The
 * tensor has `own` batch dims; those of size 1 are broadcast. */
static int64_t batch_offset(const clv_tensor *t, int32_t own, int32_t rank, const int64_t *index) {
  int64_t at = 0;
  for (int32_t i = 0; i < own; ++i) at = at * t->dims[i] + (t->dims[i] == 1 ? 0 : index[rank - own + i]);
  return at;
}

static void one_matmul(uint64_t *seed) {
  int64_t batch[3], m = random_side(seed), k = random_side(seed), n = random_side(seed), a_dims[5], b_dims[5];
  int32_t rank = (int32_t)random_in(seed, 0, m * k * n > 1000000 ? 0 : 3), a_lead = (int32_t)random_in(seed, 0, rank), a_rank = 0;
  int32_t b_lead = a_lead == rank ? (int32_t)random_in(seed, 0, rank) : rank, b_rank = 0;
  for (int32_t i = 0; i < rank; ++i) batch[i] = random_in(seed, 1, 3);
  for (int32_t i = rank - a_lead; i < rank; ++i)
    a_dims[a_rank++] = i >= rank - b_lead && random_in(seed, 0, 3) == 0 ? 1 : batch[i];
  for (int32_t i = rank - b_lead; i < rank; ++i) {
    bool must = i < rank - a_lead || a_dims[i - (rank - a_lead)] != batch[i];
    b_dims[b_rank++] = !must && random_in(seed, 0, 3) == 0 ? 1 : batch[i];
  }
  if (a_lead == 0 && random_in(seed, 0, 3) == 0) m = -1; /* A is a vector */
  if (b_lead == 0 && random_in(seed, 0, 3) == 0) n = -1;
  if (m >= 0) a_dims[a_rank++] = m;
  a_dims[a_rank++] = k;
  b_dims[b_rank++] = k;
  if (n >= 0) b_dims[b_rank++] = n;
  clv_dtype dtype = random_dtype(seed);
  node_case *c = case_begin("MatMul", 13);
  clv_tensor *a = case_input(c, seed, dtype, a_rank, a_dims), *b = case_input(c, seed, dtype, b_rank, b_dims);
  case_run(c);
  m = m < 0 ? 1 : m;
  n = n < 0 ? 1 : n;
  double *y = calloc(count_of(&c->outputs[0]) + 1, sizeof *y), *out = y, *left = values_of(a), *right = values_of(b);
  int64_t index[3] = {0};
  for (bool more = true; more; out += m * n) {
    int64_t a_at = batch_offset(a, a_lead, rank, index) * m * k, b_at = batch_offset(b, b_lead, rank, index) * k * n;
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t d = 0; d < k; ++d) {
        for (int64_t j = 0; j < n; ++j) out[i * n + j] += left[a_at + i * k + d] * right[b_at + d * n + j];
      }
    }
    more = false;
    for (int32_t i = rank - 1; i >= 0 && !more; --i) {
      more = ++index[i] < batch[i];
      if (!more) index[i] = 0;
    }
  }
  assert_int_equal(out - y, count_of(&c->outputs[0]));
  case_expect(c, 0, y);
  free(y);
  free(left);
  free(right);
  case_end(c);
}

static void test_matmul(void **state) {
  (void)state;
  uint64_t seed = 21;
  for (int i = 0; i < 120; ++i) one_matmul(&seed);
}

static void one_gemm(uint64_t *seed) {
  int64_t m = random_side(seed), k = random_side(seed), n = random_side(seed);
  bool ta = random_in(seed, 0, 1) != 0, tb = random_in(seed, 0, 1) != 0;
  clv_dtype dtype = random_dtype(seed);
  bool is_integer = (CLV__DTYPE_BIT(dtype) & CLV__DTYPES_FLOAT) == 0;
  float alpha = is_integer || random_in(seed, 0, 1) != 0 ? 1.0f : 0.5f, beta = random_in(seed, 0, 1) != 0 ? 1.0f : 2.0f;
  node_case *c = case_begin("Gemm", 13);
  case_int(c, "transA", ta);
  case_int(c, "transB", tb);
  case_float(c, "alpha", alpha);
  case_float(c, "beta", beta);
  clv_tensor *a = case_input(c, seed, dtype, 2, ta ? (int64_t[]){k, m} : (int64_t[]){m, k});
  clv_tensor *b = case_input(c, seed, dtype, 2, tb ? (int64_t[]){n, k} : (int64_t[]){k, n});
  const int64_t shapes[][2] = {{m, n}, {1, n}, {m, 1}, {1, 1}, {1, n}, {1, 1}};
  const int32_t ranks[] = {2, 2, 2, 2, 1, 0};
  int64_t form = random_in(seed, 0, 6);
  clv_tensor *add = form < 6 ? case_input(c, seed, dtype, ranks[form], shapes[form] + 2 - ranks[form]) : NULL;
  case_run(c);
  double *y = calloc((size_t)(m * n), sizeof *y), *left = values_of(a), *right = values_of(b);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t d = 0; d < k; ++d) {
        sum += left[ta ? d * m + i : i * k + d] * right[tb ? j * k + d : d * n + j];
      }
      y[i * n + j] = (double)alpha * sum;
      if (add == NULL) continue;
      int64_t row = shapes[form][0] == 1 ? 0 : i, column = shapes[form][1] == 1 ? 0 : j;
      y[i * n + j] += (double)beta * clv__tensor_get(add, (size_t)(row * shapes[form][1] + column));
    }
  }
  case_expect(c, 0, y);
  free(y);
  free(left);
  free(right);
  case_end(c);
}

static void test_gemm(void **state) {
  (void)state;
  uint64_t seed = 22;
  for (int i = 0; i < 50; ++i) one_gemm(&seed);
}

/* Equal columns of B must give equal bits, at any position, for few rows and many, on any number of threads. */
static void test_same_columns_same_bits(void **state) {
  (void)state;
  uint64_t seed = 23;
  const int64_t depth = 700, columns = 1001;
  for (int64_t rows = 1; rows <= 64; rows *= 8) {
    node_case *c = case_begin("MatMul", 13);
    case_input(c, &seed, CLV_F32, 2, (int64_t[]){rows, depth});
    clv_tensor *b = case_input(c, &seed, CLV_F32, 2, (int64_t[]){depth, columns});
    float *right = b->data;
    for (int64_t k = 0; k < depth; ++k) {
      for (int64_t j = 1; j < columns; ++j) right[k * columns + j] = right[k * columns];
    }
    float *first = malloc((size_t)rows * sizeof *first);
    for (int threads = 1; threads <= 3; ++threads) {
#ifdef _OPENMP
      omp_set_num_threads(threads);
#endif
      case_run(c);
      const float *y = c->outputs[0].data;
      for (int64_t i = 0; i < rows; ++i) {
        if (threads == 1) first[i] = y[i * columns];
        for (int64_t j = 0; j < columns; ++j) assert_memory_equal(&y[i * columns + j], &first[i], sizeof(float));
      }
    }
    free(first);
    case_end(c);
  }
}

/* Tests results without elements, and sums without summands. */
static void test_empty(void **state) {
  (void)state;
  uint64_t seed = 24;
  const int64_t shapes[][3] = {{0, 4, 5}, {4, 0, 5}, {4, 5, 0}, {1, 0, 3}, {40, 0, 50}};
  for (int i = 0; i < 5; ++i) {
    node_case *c = case_begin("MatMul", 13);
    case_input(c, &seed, CLV_F32, 2, (int64_t[]){shapes[i][0], shapes[i][1]});
    case_input(c, &seed, CLV_F32, 2, (int64_t[]){shapes[i][1], shapes[i][2]});
    case_run(c);
    double *y = calloc((size_t)(shapes[i][0] * shapes[i][2]) + 1, sizeof *y);
    case_expect(c, 0, y);
    free(y);
    case_end(c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_matmul),
      cmocka_unit_test(test_gemm),
      cmocka_unit_test(test_same_columns_same_bits),
      cmocka_unit_test(test_empty),
  };
  return RUN_BOTH_KERNELS(tests);
}
