/* SparseAggregate: an output row is the sum, mean or maximum of the rows of `data` that its edges name. The edges are in
 * compressed rows. Each output row is gathered and reduced in one pass, with its columns in registers, so no [edges, columns]
 * array is needed. sparse_attention.c contains SparseAttention. */
#include "backends/common/kernels/sparse.h"
#include "backends/common/kernels/families.h"

#include <math.h>

#include "operators/common/threads.h"
#include "operators/run.h"

/* ---- Rows on several threads ---- */

enum {
  PIECE = 1 << 14,     /* edges, or rows without edges, that are processed before the next look at the stop flag */
  STRETCHES = 32,      /* stretches of rows per thread, many so that slower threads can process fewer */
  HUB_SHARE = 8,       /* a row is a hub, whose columns threads share, if it has more than 1 / HUB_SHARE of a thread's edges */
  LEAST_HUB = 1 << 12, /* a row with at most this many edges is never a hub */
  MOST_HUBS = CLV__KERNEL_MAX_THREADS * HUB_SHARE
};

typedef struct hub_list {
  int64_t least; /* a row with more edges than this is a hub */
  int64_t rows[MOST_HUBS];
  int count;
} hub_list;

clv__sparse clv__sparse_of(const clv_tensor *data, const clv_tensor *offsets, const clv_tensor *sources) {
  return (clv__sparse){.data = data,
                       .offsets = offsets->data,
                       .sources = sources,
                       .rows = offsets->dims[0] - 1,
                       .columns = data->dims[1],
                       .data_rows = data->dims[0],
                       .edge_count = sources->dims[0]};
}

static clv_status check_offsets(const clv__kernel_call *call, const clv__sparse *s) {
  if (s->rows >= 0 && s->offsets[0] != 0) {
    return clv__error_set(call->error, CLV_INVALID_ARGUMENT, "offsets begin with %lld, not 0", (long long)s->offsets[0]);
  }
  for (int64_t v = 0; v < s->rows; ++v) {
    if (s->offsets[v] <= s->offsets[v + 1] && s->offsets[v + 1] <= s->edge_count) continue;
    return clv__error_set(call->error, CLV_INVALID_ARGUMENT,
                          "offsets[%lld] is %lld: offsets must not decrease and must be at most %lld, the number of edges",
                          (long long)v + 1, (long long)s->offsets[v + 1], (long long)s->edge_count);
  }
  return CLV_OK;
}

/* The first edge in [begin, end) with an invalid source, or -1. */
static int64_t find_bad(const clv__sparse *s, int64_t begin, int64_t end) {
  uint64_t limit = (uint64_t)s->data_rows;
  bool bad = false;
  if (s->sources->dtype == CLV_I32) {
    const int32_t *sources = s->sources->data;
    uint32_t narrow = limit > UINT32_MAX ? UINT32_MAX : (uint32_t)limit;
    for (int64_t e = begin; e < end; ++e) bad |= (uint32_t)sources[e] >= narrow || sources[e] < 0;
  } else {
    const int64_t *sources = s->sources->data;
    for (int64_t e = begin; e < end; ++e) bad |= (uint64_t)sources[e] >= limit;
  }
  for (int64_t e = begin; bad && e < end; ++e) {
    if ((uint64_t)clv__sparse_source(s, e) >= limit) return e;
  }
  return -1;
}

/* The first row of stretch `part` of `parts` stretches with equal work. The work of a row is its number of edges plus 1. */
static int64_t first_row(const clv__sparse *s, int part, int parts) {
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

static void find_hubs(const clv__sparse *s, int threads, hub_list *found) {
  int64_t share = s->offsets[s->rows] / ((int64_t)threads * HUB_SHARE);
  found->least = share > LEAST_HUB ? share : LEAST_HUB;
  found->count = 0;
  for (int64_t v = 0; v < s->rows; ++v) {
    if (s->offsets[v + 1] - s->offsets[v] > found->least && found->count < MOST_HUBS) found->rows[found->count++] = v;
  }
}

/* Runs `body` on rows [first, last), piece by piece. Ends early if the call is stopped. */
static void do_rows(const clv__kernel_call *call, const clv__sparse *s, int64_t first, int64_t last, clv__sparse_body *body,
                    const void *cookie) {
  for (int64_t end; first < last && !clv__is_stopped(call->stop); first = end) {
    for (end = first + 1; end < last && end - first < PIECE && s->offsets[end] - s->offsets[first] < PIECE;) ++end;
    body(cookie, first, end, 0, s->columns);
  }
}

/* Runs `body` on rows [first, last) except for hubs. Returns the first edge with an invalid source, or -1. */
static int64_t do_stretch(const clv__kernel_call *call, const clv__sparse *s, const hub_list *hubs, int64_t first, int64_t last,
                          clv__sparse_body *body, const void *cookie) {
  int64_t bad = find_bad(s, s->offsets[first], s->offsets[last]), begin = first;
  if (bad >= 0) return bad;
  for (int h = 0; h < hubs->count; ++h) {
    int64_t hub = hubs->rows[h];
    if (hub < first || hub >= last) continue;
    if (begin < hub) do_rows(call, s, begin, hub, body, cookie);
    begin = hub + 1;
  }
  if (begin < last) do_rows(call, s, begin, last, body, cookie);
  return -1;
}

/* The first column of part `part` if the columns are divided into `parts` parts at multiples of `unit`. */
static int64_t first_column(const clv__sparse *s, int64_t unit, int part, int parts) {
  int64_t units = (s->columns + unit - 1) / unit, column = units * part / parts * unit;
  return column < s->columns ? column : s->columns;
}

clv_status clv__sparse_for_rows(const clv__kernel_call *call, const clv__sparse *s, int64_t unit, double work,
                                clv__sparse_body *body, const void *cookie) {
  CLV__TRY(check_offsets(call, s));
  if (s->rows == 0 || s->columns == 0) return CLV_OK;
  int threads = clv__kernel_threads(s->rows * s->columns, (double)(s->offsets[s->rows] + s->rows) * work);
  int stretches = threads > 1 ? threads * STRETCHES : 1;
  int64_t bad = INT64_MAX;
  hub_list hubs = {.count = 0};
  if (threads > 1) find_hubs(s, threads, &hubs);
#pragma omp parallel num_threads(threads) if (threads > 1)
  {
#pragma omp for schedule(dynamic, 1) reduction(min : bad)
    for (int t = 0; t < stretches; ++t) {
      int64_t first = first_row(s, t, stretches), last = first_row(s, t + 1, stretches);
      int64_t found = first < last ? do_stretch(call, s, &hubs, first, last, body, cookie) : -1;
      if (found >= 0 && found < bad) bad = found;
    }
    /* All threads have finished the loop above, so all edges are checked. */
    int shares = bad == INT64_MAX ? hubs.count * threads : 0;
#pragma omp for schedule(dynamic, 1) nowait
    for (int t = 0; t < shares; ++t) {
      int64_t hub = hubs.rows[t / threads], from = first_column(s, unit, t % threads, threads);
      int64_t to = first_column(s, unit, t % threads + 1, threads);
      if (from < to && !clv__is_stopped(call->stop)) body(cookie, hub, hub + 1, from, to);
    }
  }
  if (bad == INT64_MAX) return CLV_OK;
  return clv__error_set(call->error, CLV_INVALID_ARGUMENT, "sources[%lld] is %lld: data has %lld rows", (long long)bad,
                        (long long)clv__sparse_source(s, bad), (long long)s->data_rows);
}

/* ---- Sums and means ---- */

typedef enum reduction { SUM, MEAN, MAX } reduction;

typedef struct aggregate {
  clv__sparse s;
  reduction how;
  clv_tensor *out;
} aggregate;

/* Sums columns [at, at + count * CLV__LANES) of output row `v`. The caller must pass `count` as a compile-time constant of at
 * most CLV__LANE_BLOCKS. Meanwhile prefetches the rows that later edges, up to edge `limit`, will read. */
CLV__INLINE void sum_lanes(const aggregate *a, clv_dtype dtype, const int count, int64_t v, int64_t at, int64_t limit,
                           float scale) {
  const clv__sparse *s = &a->s;
  const int32_t *narrow = s->sources->dtype == CLV_I32 ? s->sources->data : NULL;
  const int64_t *wide = s->sources->data;
  int64_t end = s->offsets[v + 1];
  clv__lanes sums[CLV__LANE_BLOCKS] = {{0}};
  for (int64_t e = s->offsets[v]; e < end; ++e) {
    int64_t source = narrow != NULL ? narrow[e] : wide[e], next = e + CLV__LANE_AHEAD < limit ? e + CLV__LANE_AHEAD : e;
    clv__lanes_fetch(s->data->data, dtype, (narrow != NULL ? narrow[next] : wide[next]) * s->columns + at, count);
#pragma GCC unroll 8
    for (int i = 0; i < count; ++i) {
      clv__lanes x;
      clv__lanes_load(&x, s->data->data, dtype, source * s->columns + at + i * CLV__LANES);
      sums[i] += x;
    }
  }
  float row[CLV__LANE_BLOCKS * CLV__LANES], *to = dtype == CLV_F32 ? (float *)a->out->data + v * s->columns + at : row;
#pragma GCC unroll 8
  for (int i = 0; i < count; ++i) *(clv__lanes *)(to + i * CLV__LANES) = sums[i] * scale;
  if (dtype != CLV_F32) clv__row_from_f32(dtype, a->out->data, v * s->columns + at, count * CLV__LANES, row);
}

/* Sums columns [at, at + count) of output row `v`, which do not fill a vector. */
static void sum_rest(const aggregate *a, int64_t v, int64_t at, int64_t count, float scale) {
  const clv__sparse *s = &a->s;
  float sums[CLV__LANES] = {0}, row[CLV__LANES];
  for (int64_t e = s->offsets[v]; e < s->offsets[v + 1]; ++e) {
    clv__row_to_f32(s->data->dtype, s->data->data, clv__sparse_source(s, e) * s->columns + at, count, row);
    for (int64_t i = 0; i < count; ++i) sums[i] += row[i];
  }
  for (int64_t i = 0; i < count; ++i) sums[i] *= scale;
  clv__row_from_f32(a->out->dtype, a->out->data, v * s->columns + at, count, sums);
}

CLV__INLINE void sum_rows(const aggregate *a, clv_dtype dtype, int64_t first, int64_t last, int64_t from, int64_t to) {
  enum { WIDE = CLV__LANE_BLOCKS * CLV__LANES };
  const int64_t *offsets = a->s.offsets, limit = offsets[last];
  for (int64_t v = first; v < last; ++v) {
    float scale = a->how == MEAN && offsets[v + 1] > offsets[v] ? 1.0f / (float)(offsets[v + 1] - offsets[v]) : 1.0f;
    int64_t at = from;
    for (; to - at >= WIDE; at += WIDE) sum_lanes(a, dtype, CLV__LANE_BLOCKS, v, at, limit, scale);
    if (to - at >= WIDE / 2) {
      sum_lanes(a, dtype, CLV__LANE_BLOCKS / 2, v, at, limit, scale);
      at += WIDE / 2;
    }
    for (; to - at >= CLV__LANES; at += CLV__LANES) sum_lanes(a, dtype, 1, v, at, limit, scale);
    if (at < to) sum_rest(a, v, at, to - at, scale);
  }
}

static void sum_rows_f32(const aggregate *a, int64_t first, int64_t last, int64_t from, int64_t to) {
  sum_rows(a, CLV_F32, first, last, from, to);
}

static void sum_rows_bf16(const aggregate *a, int64_t first, int64_t last, int64_t from, int64_t to) {
  sum_rows(a, CLV_BF16, first, last, from, to);
}

static void sum_rows_f16(const aggregate *a, int64_t first, int64_t last, int64_t from, int64_t to) {
  sum_rows(a, CLV_F16, first, last, from, to);
}

/* ---- Maxima ---- */
static void max_rows(const aggregate *a, int64_t first, int64_t last, int64_t from, int64_t to) {
  enum { BLOCK = 128 };
  const clv__sparse *s = &a->s;
  clv_dtype dtype = s->data->dtype;
  for (int64_t v = first; v < last; ++v) {
    int64_t begin = s->offsets[v], end = s->offsets[v + 1];
    for (int64_t c = from; c < to; c += BLOCK) {
      int64_t width = to - c < BLOCK ? to - c : BLOCK;
      float total[BLOCK] = {0}, row[BLOCK];
      for (int64_t e = begin; e < end; ++e) {
        clv__row_to_f32(dtype, s->data->data, clv__sparse_source(s, e) * s->columns + c, width, row);
        if (e == begin)
          memcpy(total, row, (size_t)width * sizeof *row);
        else
          for (int64_t i = 0; i < width; ++i) total[i] = row[i] > total[i] || isnan(row[i]) ? row[i] : total[i];
      }
      clv__row_from_f32(dtype, a->out->data, v * s->columns + c, width, total);
    }
  }
}

static void aggregate_rows(const void *cookie, int64_t first, int64_t last, int64_t from, int64_t to) {
  const aggregate *a = cookie;
  if (a->how == MAX)
    max_rows(a, first, last, from, to);
  else if (a->s.data->dtype == CLV_F32)
    sum_rows_f32(a, first, last, from, to);
  else if (a->s.data->dtype == CLV_BF16)
    sum_rows_bf16(a, first, last, from, to);
  else
    sum_rows_f16(a, first, last, from, to);
}

static clv_status run_aggregate(const clv__kernel_call *call) {
  aggregate a = {.s = clv__sparse_of(&call->inputs[0], &call->inputs[1], &call->inputs[2]), .out = &call->outputs[0]};
  a.how = clv__attribute_is(call->attributes, "reduce", "mean", false)  ? MEAN
          : clv__attribute_is(call->attributes, "reduce", "max", false) ? MAX
                                                                        : SUM;
  return clv__sparse_for_rows(call, &a.s, CLV__LANES, (double)a.s.columns / 8, aggregate_rows, &a);
}

const clv__fast_kernel clv__fast_sparse[] = {
    {"ai.cleave", "SparseAggregate", run_aggregate, NULL},
    {"ai.cleave", "SparseAttention", clv__sparse_attention, clv__sparse_attention_scratch},
    {.op = NULL},
};
