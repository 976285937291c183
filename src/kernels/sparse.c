/* Sums, means, maxima and attention over the rows that a graph in compressed rows names (src/ops/sparse.c says what is what). No
 * array of edges times columns is made: a row is gathered and reduced at once. Threads take stretches of rows with equally many
 * edges; a row is always summed in the order of its edges, so results do not depend on how many there are. */
#include <math.h>

#include "kernels/families.h"
#include "kernels/multiversion.h"
#include "kernels/rows.h"
#include "kernels/threads.h"

enum { BLOCK = 128, AHEAD = 4 }; /* columns at a time; rows fetched early */

typedef enum reduction { SUM, MEAN, MAX } reduction;

typedef struct sparse {
  const clv_tensor *data;
  const int64_t *offsets;
  const clv_tensor *sources;
  int64_t rows, columns, data_rows, edge_count;
} sparse;

static inline int64_t source_at(const sparse *s, int64_t edge) {
  return s->sources->dtype == CLV_I32 ? ((const int32_t *)s->sources->data)[edge] : ((const int64_t *)s->sources->data)[edge];
}

static clv_status check(const clv__kernel_call *call, const sparse *s) {
  if (s->rows >= 0 && s->offsets[0] != 0) {
    return clv__error_set(call->error, CLV_INVALID_ARGUMENT, "offsets begin with %lld, not 0", (long long)s->offsets[0]);
  }
  for (int64_t v = 0; v < s->rows; ++v) {
    if (s->offsets[v] <= s->offsets[v + 1] && s->offsets[v + 1] <= s->edge_count) continue;
    return clv__error_set(call->error, CLV_INVALID_ARGUMENT, "offsets[%lld] is %lld: they must ascend to at most %lld edges",
                          (long long)v + 1, (long long)s->offsets[v + 1], (long long)s->edge_count);
  }
  int64_t used = s->offsets[s->rows], bad = -1;
  int threads = clv__kernel_threads(used, (double)used);
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static) reduction(max : bad)
  for (int64_t e = 0; e < used; ++e) {
    int64_t source = source_at(s, e);
    if (source < 0 || source >= s->data_rows) bad = e;
  }
  if (bad < 0) return CLV_OK;
  return clv__error_set(call->error, CLV_INVALID_ARGUMENT, "sources[%lld] is %lld: data has %lld rows", (long long)bad,
                        (long long)source_at(s, bad), (long long)s->data_rows);
}

/* The first row of the `part`th of `parts` stretches with equally much work: an edge, or a row. */
static int64_t first_row(const sparse *s, int part, int parts) {
  double target = (double)(s->offsets[s->rows] + s->rows) * part / parts;
  int64_t low = 0, high = s->rows;
  if (part >= parts) return s->rows;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if ((double)(s->offsets[middle] + middle) < target)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* ---- f32: the columns of a block in registers ---- */

CLV__MULTIVERSION static void sum_rows_f32(const sparse *s, int64_t first, int64_t last, reduction how, float *out) {
  const float *data = s->data->data;
  const int32_t *narrow = s->sources->dtype == CLV_I32 ? s->sources->data : NULL;
  const int64_t *wide = s->sources->data;
  for (int64_t v = first; v < last; ++v) {
    int64_t begin = s->offsets[v], end = s->offsets[v + 1];
    float *row = out + v * s->columns;
    for (int64_t c = 0; c < s->columns; c += BLOCK) {
      int64_t width = s->columns - c < BLOCK ? s->columns - c : BLOCK;
      float sum[BLOCK] = {0};
      for (int64_t e = begin; e < end; ++e) {
        const float *from = data + (narrow != NULL ? narrow[e] : wide[e]) * s->columns + c;
        if (e + AHEAD < s->offsets[s->rows]) {
          const float *next = data + (narrow != NULL ? narrow[e + AHEAD] : wide[e + AHEAD]) * s->columns + c;
          for (int64_t i = 0; i < width; i += 16) __builtin_prefetch(next + i);
        }
        if (width == BLOCK) {
          for (int i = 0; i < BLOCK; ++i) sum[i] += from[i];
        } else {
          for (int64_t i = 0; i < width; ++i) sum[i] += from[i];
        }
      }
      float scale = how == MEAN && end > begin ? 1.0f / (float)(end - begin) : 1.0f;
      for (int64_t i = 0; i < width; ++i) row[c + i] = sum[i] * scale;
    }
  }
}

/* ---- Any float, and maxima ---- */

static void reduce_rows(const sparse *s, int64_t first, int64_t last, reduction how, clv_tensor *out) {
  clv_dtype dtype = s->data->dtype;
  for (int64_t v = first; v < last; ++v) {
    int64_t begin = s->offsets[v], end = s->offsets[v + 1];
    for (int64_t c = 0; c < s->columns; c += BLOCK) {
      int64_t width = s->columns - c < BLOCK ? s->columns - c : BLOCK;
      float total[BLOCK] = {0}, row[BLOCK];
      for (int64_t e = begin; e < end; ++e) {
        clv__row_to_f32(dtype, s->data->data, source_at(s, e) * s->columns + c, width, row);
        if (how == MAX && e == begin)
          memcpy(total, row, (size_t)width * sizeof *row);
        else if (how == MAX)
          for (int64_t i = 0; i < width; ++i) total[i] = row[i] > total[i] || isnan(row[i]) ? row[i] : total[i];
        else
          for (int64_t i = 0; i < width; ++i) total[i] += row[i];
      }
      float scale = how == MEAN && end > begin ? 1.0f / (float)(end - begin) : 1.0f;
      for (int64_t i = 0; how != MAX && i < width; ++i) total[i] *= scale;
      clv__row_from_f32(dtype, out->data, v * s->columns + c, width, total);
    }
  }
}

static clv_status run_aggregate(const clv__kernel_call *call) {
  const clv_tensor *data = &call->inputs[0], *offsets = &call->inputs[1];
  sparse s = {.data = data, .offsets = offsets->data, .sources = &call->inputs[2]};
  s.rows = offsets->dims[0] - 1;
  s.columns = data->dims[1];
  s.data_rows = data->dims[0];
  s.edge_count = call->inputs[2].dims[0];
  reduction how = clv__attribute_is(call->attributes, "reduce", "mean", false)  ? MEAN
                  : clv__attribute_is(call->attributes, "reduce", "max", false) ? MAX
                                                                                : SUM;
  CLV__TRY(check(call, &s));
  if (s.rows == 0 || s.columns == 0) return CLV_OK;
  bool plain = data->dtype == CLV_F32 && how != MAX;
  int threads = clv__kernel_threads(s.rows, (double)(s.offsets[s.rows] + s.rows) * (double)s.columns / 8);
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
  for (int t = 0; t < threads; ++t) {
    int64_t first = first_row(&s, t, threads), last = first_row(&s, t + 1, threads);
    if (plain)
      sum_rows_f32(&s, first, last, how, call->outputs[0].data);
    else
      reduce_rows(&s, first, last, how, &call->outputs[0]);
  }
  return CLV_OK;
}

/* ---- Attention: one pass over a row, the largest score so far kept as the exponent's origin (Milakov, Gimelshein 2018) ---- */

typedef struct attention {
  sparse s;
  const clv_tensor *source_score, *target_score;
  int64_t heads, width; /* columns a head */
  float slope;
} attention;

static float score_of(const attention *a, int64_t source, int64_t target, int64_t head) {
  float from, to;
  clv__row_to_f32(a->source_score->dtype, a->source_score->data, source * a->heads + head, 1, &from);
  clv__row_to_f32(a->target_score->dtype, a->target_score->data, target * a->heads + head, 1, &to);
  float score = from + to;
  return score >= 0 ? score : score * a->slope;
}

/* `sum` has room for the columns of a head. */
static void attend_row(const attention *a, int64_t v, int64_t head, float *sum, float *row, clv_tensor *out) {
  int64_t begin = a->s.offsets[v], end = a->s.offsets[v + 1];
  float largest = -INFINITY, weight = 0;
  for (int64_t i = 0; i < a->width; ++i) sum[i] = 0;
  for (int64_t e = begin; e < end; ++e) {
    int64_t source = source_at(&a->s, e);
    float score = score_of(a, source, v, head);
    if (score > largest) { /* what was summed so far shrinks to the new origin */
      float shrink = largest == -INFINITY ? 0 : expf(largest - score);
      weight *= shrink;
      for (int64_t i = 0; i < a->width; ++i) sum[i] *= shrink;
      largest = score;
    }
    float share = expf(score - largest);
    weight += share;
    clv__row_to_f32(a->s.data->dtype, a->s.data->data, source * a->s.columns + head * a->width, a->width, row);
    for (int64_t i = 0; i < a->width; ++i) sum[i] += share * row[i];
  }
  float scale = end > begin ? 1 / weight : 0;
  for (int64_t i = 0; i < a->width; ++i) sum[i] *= scale;
  clv__row_from_f32(out->dtype, out->data, v * a->s.columns + head * a->width, a->width, sum);
}

static size_t attention_scratch(const clv__kernel_call *call) {
  int64_t columns = call->inputs[0].rank == 2 ? call->inputs[0].dims[1] : -1;
  if (columns < 0 || (size_t)columns > SIZE_MAX / (2 * sizeof(float) * CLV__KERNEL_MAX_THREADS)) return SIZE_MAX;
  return (size_t)columns * 2 * sizeof(float) * CLV__KERNEL_MAX_THREADS;
}

static clv_status run_attention(const clv__kernel_call *call) {
  const clv_tensor *data = &call->inputs[0], *offsets = &call->inputs[3];
  attention a = {.s = {.data = data, .offsets = offsets->data, .sources = &call->inputs[4]},
                 .source_score = &call->inputs[1],
                 .target_score = &call->inputs[2],
                 .heads = call->inputs[1].dims[1],
                 .slope = clv__attribute_float(call->attributes, "negative_slope", 0.2f)};
  a.s.rows = offsets->dims[0] - 1;
  a.s.columns = data->dims[1];
  a.s.data_rows = data->dims[0];
  a.s.edge_count = call->inputs[4].dims[0];
  CLV__TRY(check(call, &a.s));
  if (a.s.rows == 0 || a.s.columns == 0) return CLV_OK;
  a.width = a.s.columns / a.heads;
  int threads = clv__kernel_threads(a.s.rows, (double)(a.s.offsets[a.s.rows] + a.s.rows) * (double)a.s.columns);
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
  for (int t = 0; t < threads; ++t) {
    float *sum = (float *)call->scratch + 2 * t * a.s.columns, *row = sum + a.s.columns;
    int64_t last = first_row(&a.s, t + 1, threads);
    for (int64_t v = first_row(&a.s, t, threads); v < last; ++v) {
      for (int64_t h = 0; h < a.heads; ++h) attend_row(&a, v, h, sum, row, &call->outputs[0]);
    }
  }
  return CLV_OK;
}

#define SPARSE_DTYPES (CLV__DTYPE_BIT(CLV_F32) | CLV__DTYPE_BIT(CLV_F16) | CLV__DTYPE_BIT(CLV_BF16))

const clv__kernel clv__kernels_sparse[] = {
    {"ai.cleave", "SparseAggregate", SPARSE_DTYPES, run_aggregate, NULL, NULL},
    {"ai.cleave", "SparseAttention", SPARSE_DTYPES, run_attention, attention_scratch, NULL},
    {.op = NULL},
};
