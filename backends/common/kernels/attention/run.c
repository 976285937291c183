/* Runs attention (attention.h). Computes in f32, or in f64 if the dtype is f64. Only the scores of a few query rows are stored at
 * a time, so no array has the size of all queries times all keys. Keys and values after the valid ones do not affect the output,
 * so the unused end of a cache may contain anything. */
#include <math.h>

#include "backends/common/kernels/attention/attention.h"
#include "backends/common/kernels/attention/product.h"
#include "backends/common/kernels/vector.h"
#include "base/memory.h"
#include "operators/common/exponential.h"
#include "operators/common/rows.h"
#include "operators/common/threads.h"
#include "operators/common/turn.h"

enum {
  FEW = 4,                      /* first method (see body.h): query rows per pass over the keys */
  MANY = 8,                     /* the second method is used from this number of query rows on */
  KEYS = 192,                   /* second method: keys per block; their scores for a panel fit in the first-level cache */
  LANES = CLV__ATTENTION_LANES, /* number of queries of the narrow panel */
  PANEL = 2 * LANES,            /* number of queries of the widest panel */
  TASK_ROWS = 512,              /* maximum rows per task; a task copies keys and values once for all its rows */
  TASKS = 16,                   /* target number of tasks, so that every thread gets one */
  MASK_CHUNK = 256,
  MASK_LINE = 32
};

/* Replaces each number by e to (number - origin). Returns the sum. */
static double exponentials_f32(float *numbers, int64_t count, float origin) {
  double sums[LANES] = {0}, sum = 0;
  int64_t j = 0;
  for (; j < count; ++j) numbers[j] = clv__exp_f32(numbers[j] - origin);
  for (j = 0; j + LANES <= count; j += LANES) {
    for (int l = 0; l < LANES; ++l) sums[l] += (double)numbers[j + l];
  }
  for (; j < count; ++j) sum += (double)numbers[j];
  for (int l = 0; l < LANES; ++l) sum += sums[l];
  return sum;
}
static double exponentials_f64(double *numbers, int64_t count, double origin) {
  double sum = 0;
  for (int64_t j = 0; j < count; ++j) sum += numbers[j] = exp(numbers[j] - origin);
  return sum;
}

/* Vector types for the loops below and in tiles.h. Without them, the compiler uses a separate register for each number. */
typedef float lanes_f32 __attribute__((vector_size(CLV__VECTOR_BYTES), aligned(sizeof(float)), may_alias));
typedef int32_t lane_bits_f32 __attribute__((vector_size(CLV__VECTOR_BYTES), aligned(sizeof(float)), may_alias));
typedef double lanes_f64 __attribute__((vector_size(CLV__VECTOR_BYTES), aligned(sizeof(double)), may_alias));
typedef int64_t lane_bits_f64 __attribute__((vector_size(CLV__VECTOR_BYTES), aligned(sizeof(double)), may_alias));

/* Replaces each lane by its exponential, as clv__exp_f32() computes it. */
static inline __attribute__((always_inline)) void exponential_lanes_f32(lanes_f32 *x) {
  const lane_bits_f32 tiny = *x < -87.0f;
  const lanes_f32 low = (lanes_f32)(~tiny & (lane_bits_f32)*x);
  const lanes_f32 shifted = low * 1.44269504f + 0x1.8p23f, n = shifted - 0x1.8p23f;
  const lanes_f32 r = low - n * 0x1.62e4p-1f - n * 1.42860677e-6f;
  lanes_f32 sum = r * (1.0f / 5040) + 1.0f / 720;
  sum = sum * r + 1.0f / 120;
  sum = sum * r + 1.0f / 24;
  sum = sum * r + 1.0f / 6;
  sum = sum * r + 0.5f;
  sum = sum * r + 1.0f;
  sum = sum * r + 1.0f;
  const lanes_f32 power = (lanes_f32)(((lane_bits_f32)shifted << 23) + 0x3f800000);
  *x = (lanes_f32)(~tiny & (lane_bits_f32)(sum * power));
}
static inline __attribute__((always_inline)) void exponential_lanes_f64(lanes_f64 *x) {
  for (size_t l = 0; l < CLV__VECTOR_BYTES / sizeof(double); ++l) (*x)[l] = exp((*x)[l]);
}

#define NAME(x) x##_f32
#define REAL float
#define REAL_DTYPE CLV_F32
#define TO_REAL clv__row_to_f32
#define FROM_REAL clv__row_from_f32
#include "backends/common/kernels/attention/body.h"
#include "backends/common/kernels/attention/tiles.h"
#undef NAME
#undef REAL
#undef REAL_DTYPE
#undef TO_REAL
#undef FROM_REAL
#define NAME(x) x##_f64
#define REAL double
#define REAL_DTYPE CLV_F64
#define TO_REAL clv__row_to_f64
#define FROM_REAL clv__row_from_f64
#include "backends/common/kernels/attention/body.h"
#include "backends/common/kernels/attention/tiles.h"

/* How the query rows that share one head of K and V are divided into tasks. The division depends only on shapes. */
typedef struct cut {
  bool tiled;
  int64_t rows, task_rows, chunks;
} cut;

/* Called only if the output or the scores have elements (has_output()). Each product computed here is a divisor of the number
 * of these elements, so it does not overflow. */
static cut cut_of(const clv__attention *a) {
  const int64_t pairs = a->batches * a->heads;
  cut c = {.rows = a->group * a->queries, .task_rows = FEW};
  c.tiled = c.rows >= MANY && a->scores == NULL && a->rounding == CLV_DTYPE_NONE;
  if (c.tiled) {
    int64_t chunks = (c.rows + TASK_ROWS - 1) / TASK_ROWS;
    if (pairs > 0 && chunks < TASKS / pairs) chunks = TASKS / pairs;
    c.task_rows = ((c.rows + chunks - 1) / chunks + PANEL - 1) / PANEL * PANEL;
  }
  c.chunks = (c.rows + c.task_rows - 1) / c.task_rows;
  return c;
}

static size_t slice_bytes(const clv__attention *a, const cut *c) {
  const bool wide = a->is_wide;
  if (c->tiled) return wide ? tiles_layout_f64(a, c->task_rows, NULL, NULL) : tiles_layout_f32(a, c->task_rows, NULL, NULL);
  return wide ? rows_scratch_f64(a) : rows_scratch_f32(a);
}

/* Whether there is anything to compute here: an output or scores with elements. */
static bool has_output(const clv__attention *a) {
  return (a->output.tensor != NULL && !clv__tensor_is_empty(a->output.tensor)) ||
         (a->scores != NULL && !clv__tensor_is_empty(a->scores));
}

size_t clv__attention_scratch_bytes(const clv__attention *a) {
  if (!has_output(a)) return 0;
  const cut c = cut_of(a);
  const size_t slice = slice_bytes(a, &c);
  const size_t threads = (size_t)clv__kernel_thread_limit(a->batches * a->heads * c.chunks);
  return slice > SIZE_MAX / CLV__KERNEL_MAX_THREADS ? SIZE_MAX : slice * threads;
}

static void run_task(const clv__attention *a, const cut *c, int64_t task, char *slice) {
  const bool wide = a->is_wide;
  const int64_t pair = task / c->chunks, row = task % c->chunks * c->task_rows;
  const int64_t batch = pair / a->heads, head = pair % a->heads;
  const int64_t count = c->rows - row < c->task_rows ? c->rows - row : c->task_rows;
  if (c->tiled && wide)
    run_tiles_f64(a, batch, head, row, count, c->task_rows, slice);
  else if (c->tiled)
    run_tiles_f32(a, batch, head, row, count, c->task_rows, slice);
  else if (wide)
    rows_f64(a, batch, head, row, count, slice);
  else
    rows_f32(a, batch, head, row, count, slice);
}

void clv__attention_run(const clv__attention *a, void *scratch, const clv__stop *stop) {
  if (!has_output(a)) return;
  const cut c = cut_of(a);
  const size_t slice = slice_bytes(a, &c);
  const int64_t tasks = a->batches * a->heads * c.chunks;
  const double scores = (double)a->batches * (double)a->heads * (double)c.rows * (double)a->total;
  const int threads = clv__kernel_threads(tasks, scores * (double)(a->query.size + a->value.size + 8) / 8);
  (void)threads; /* unused without OpenMP */
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(dynamic, 1)
  for (int64_t task = 0; task < tasks; ++task) {
    if (!clv__is_stopped(stop)) run_task(a, &c, task, (char *)scratch + (size_t)clv__kernel_thread_index() * slice);
  }
}
