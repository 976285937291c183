/* SparseAttention: an output row is the weighted mean of the rows of `data` that its edges name, with the softmax of the edges'
 * scores as weights. The edges are in compressed rows. The softmax needs only one pass over them, because it is computed relative
 * to the largest score so far (Milakov, Gimelshein 2018). Edges are processed in small groups. The scores of a group are
 * exponentiated together, and the earlier sums are scaled down at most once per group. */
#include <math.h>

#include "backends/common/kernels/sparse.h"
#include "operators/common/threads.h"

enum {
  GROUP = 16, /* edges processed together; later edges are prefetched meanwhile */
  /* Floats of scratch per column and thread: 1 for the column's sum, and GROUP + 3 for the arrays of a head, because every head
   * has at least one column. */
  SCRATCH = 1 + GROUP + 3
};

typedef struct attention {
  clv__sparse s;
  const clv_tensor *source_score, *target_score;
  int64_t heads, width; /* `width`: columns per head */
  float slope;
  clv_tensor *out;
  float *scratch;
} attention;

/* exp(x) for x <= 0 within 2 units in the last place: e^x = 2^n * e^r with |r| <= ln 2 / 2, where a polynomial approximates
 * e^r. The polynomial's coefficients are close to Taylor's, and its error is below f32's precision. For x below -87, the result
 * is e^-87, which is almost 0. */
CLV__INLINE float exp_of(float x) {
  const float origin = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer, which is then in the low bits */
  float least = x < -87.0f ? -87.0f : x, shifted = least * 1.44269504f + origin, n = shifted - origin;
  float r = (least - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.0f + r * (1.0f + r * (0.5f + r * (0.166666672f + r * (0.0416666642f + r * (0.00833345205f + r * 0.00139304355f)))));
  uint32_t bits, scale;
  float power;
  memcpy(&bits, &shifted, sizeof bits);
  scale = (bits - 0x4b400000u + 127u) << 23;
  memcpy(&power, &scale, sizeof power);
  return p * power;
}

/* Computes the weights of a group's edges for one head, relative to the largest score so far, in `shares`. Updates *largest and
 * the sum of weights in *weight. Returns the factor by which the sums so far must be multiplied. */
CLV__INLINE float share_out(const attention *a, clv_dtype dtype, const int64_t *sources, int count, int64_t head, float target,
                            float *largest, float *weight, float *shares) {
  float before = *largest, most = before, sum = 0;
  for (int i = 0; i < GROUP; ++i) shares[i] = 0;
  for (int i = 0; i < count; ++i) {
    int64_t at = sources[i] * a->heads + head;
    if (dtype == CLV_F32)
      shares[i] = ((const float *)a->source_score->data)[at];
    else
      clv__row_to_f32(dtype, a->source_score->data, at, 1, &shares[i]);
  }
  for (int i = 0; i < GROUP; ++i) {
    float score = shares[i] + target;
    shares[i] = score >= 0 ? score : score * a->slope;
  }
  for (int i = 0; i < count; ++i) most = shares[i] > most ? shares[i] : most;
  for (int i = 0; i < GROUP; ++i) shares[i] = exp_of(shares[i] - most);
  for (int i = 0; i < count; ++i) sum += shares[i];
  float shrink = before == -INFINITY ? 0 : before == most ? 1 : exp_of(before - most);
  *largest = most;
  *weight = *weight * shrink + sum;
  return shrink;
}

/* The state of one row while its edges are read, for all heads of a thread. */
typedef struct row_state {
  float *sums;                      /* [columns] */
  float *largest, *weight, *shrink; /* [heads] */
  float *shares;                    /* [heads][GROUP] */
} row_state;

/* A group of edges. While the group's edge i is added, the row of edge `ahead` + i is prefetched if that is below `limit`. */
typedef struct edge_group {
  int64_t sources[GROUP];
  int count;
  int64_t ahead, limit;
} edge_group;

/* Adds a group's weighted rows to sums [at, at + count * CLV__LANES). The width of a head must be a multiple of CLV__LANES. */
CLV__INLINE void add_lanes(const attention *a, clv_dtype dtype, const int count, const edge_group *group, int64_t at,
                           const row_state *state) {
  clv__lanes total[CLV__LANE_BLOCKS], *sums = (clv__lanes *)(state->sums + at);
  const float *shares[CLV__LANE_BLOCKS];
#pragma GCC unroll 8
  for (int i = 0; i < count; ++i) {
    int64_t head = (at + i * CLV__LANES) / a->width;
    shares[i] = state->shares + head * GROUP;
    total[i] = sums[i] * state->shrink[head];
  }
  for (int e = 0; e < group->count; ++e) {
    if (group->ahead + e < group->limit)
      clv__lanes_fetch(a->s.data->data, dtype, clv__sparse_source(&a->s, group->ahead + e) * a->s.columns + at, count);
#pragma GCC unroll 8
    for (int i = 0; i < count; ++i) {
      clv__lanes x;
      clv__lanes_load(&x, a->s.data->data, dtype, group->sources[e] * a->s.columns + at + i * CLV__LANES);
      total[i] += x * shares[i][e];
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < count; ++i) sums[i] = total[i];
}

/* Like add_lanes(), but adds to all sums of one head, of any width. */
CLV__INLINE void add_head(const attention *a, clv_dtype dtype, const edge_group *group, int64_t head, const row_state *state) {
  float row[CLV__LANES], *sums = state->sums + head * a->width;
  const float *shares = state->shares + head * GROUP;
  for (int64_t i = 0; i < a->width; ++i) sums[i] *= state->shrink[head];
  for (int e = 0; e < group->count; ++e) {
    int64_t at = group->sources[e] * a->s.columns + head * a->width;
    for (int64_t c = 0; c < a->width; c += CLV__LANES) {
      int64_t width = a->width - c < CLV__LANES ? a->width - c : CLV__LANES;
      const float *from = row;
      if (dtype == CLV_F32)
        from = (const float *)a->s.data->data + at + c;
      else
        clv__row_to_f32(dtype, a->s.data->data, at + c, width, row);
      for (int64_t i = 0; i < width; ++i) sums[c + i] += shares[e] * from[i];
    }
  }
}

/* Adds a group's weighted rows to the sums of heads [from, to). */
CLV__INLINE void add_group(const attention *a, clv_dtype dtype, const edge_group *group, int64_t from, int64_t to,
                           const row_state *state) {
  enum { WIDE = CLV__LANE_BLOCKS * CLV__LANES };
  int64_t at = from * a->width, end = to * a->width;
  if (a->width % CLV__LANES != 0) {
    for (int64_t h = from; h < to; ++h) add_head(a, dtype, group, h, state);
    return;
  }
  for (; end - at >= WIDE; at += WIDE) add_lanes(a, dtype, CLV__LANE_BLOCKS, group, at, state);
  if (end - at >= WIDE / 2) {
    add_lanes(a, dtype, CLV__LANE_BLOCKS / 2, group, at, state);
    at += WIDE / 2;
  }
  for (; at < end; at += CLV__LANES) add_lanes(a, dtype, 1, group, at, state);
}

/* Fills `group` with the edges from `edge` on and prefetches the scores of the next group. add_lanes() prefetches the rows. */
CLV__INLINE void take_group(const attention *a, clv_dtype dtype, int64_t edge, int64_t end, int64_t limit, edge_group *group) {
  group->count = end - edge < GROUP ? (int)(end - edge) : GROUP;
  group->ahead = edge + CLV__LANE_AHEAD;
  group->limit = limit;
  for (int i = 0; i < group->count; ++i) {
    group->sources[i] = clv__sparse_source(&a->s, edge + i);
    if (edge + GROUP + i >= limit) continue;
    int64_t next = clv__sparse_source(&a->s, edge + GROUP + i) * a->heads;
    __builtin_prefetch((const char *)a->source_score->data + next * (dtype == CLV_F32 ? 4 : 2));
  }
}

/* Computes heads [from, to) of rows [first, last). */
CLV__INLINE void attend(const attention *a, clv_dtype dtype, int64_t first, int64_t last, int64_t from, int64_t to,
                        const row_state *state) {
  const int64_t *offsets = a->s.offsets, limit = offsets[last], begin = from * a->width, end = to * a->width;
  float *sums = state->sums;
  for (int64_t v = first; v < last; ++v) {
    for (int64_t c = begin; c < end; ++c) sums[c] = 0;
    for (int64_t h = from; h < to; ++h) state->largest[h] = -INFINITY, state->weight[h] = 0;
    for (int64_t e = offsets[v]; e < offsets[v + 1]; e += GROUP) {
      edge_group group;
      take_group(a, dtype, e, offsets[v + 1], limit, &group);
      for (int64_t h = from; h < to; ++h) {
        float target;
        clv__row_to_f32(dtype, a->target_score->data, v * a->heads + h, 1, &target);
        state->shrink[h] = share_out(a, dtype, group.sources, group.count, h, target, &state->largest[h], &state->weight[h],
                                     state->shares + h * GROUP);
      }
      add_group(a, dtype, &group, from, to, state);
    }
    for (int64_t h = from; h < to; ++h) {
      float scale = offsets[v + 1] > offsets[v] ? 1 / state->weight[h] : 0;
      for (int64_t c = h * a->width; c < (h + 1) * a->width; ++c) sums[c] *= scale;
    }
    clv__row_from_f32(dtype, a->out->data, v * a->s.columns + begin, end - begin, sums + begin);
  }
}

static void attend_f32(const attention *a, int64_t first, int64_t last, int64_t from, int64_t to, const row_state *state) {
  attend(a, CLV_F32, first, last, from, to, state);
}

static void attend_bf16(const attention *a, int64_t first, int64_t last, int64_t from, int64_t to, const row_state *state) {
  attend(a, CLV_BF16, first, last, from, to, state);
}

static void attend_f16(const attention *a, int64_t first, int64_t last, int64_t from, int64_t to, const row_state *state) {
  attend(a, CLV_F16, first, last, from, to, state);
}

static void attend_rows(const void *cookie, int64_t first, int64_t last, int64_t from, int64_t to) {
  const attention *a = cookie;
  int64_t columns = a->s.columns, heads = a->heads;
  row_state state = {.sums = a->scratch + clv__kernel_thread_index() * SCRATCH * columns};
  state.shares = state.sums + columns;
  state.largest = state.shares + heads * GROUP;
  state.weight = state.largest + heads;
  state.shrink = state.weight + heads;
  from /= a->width;
  to /= a->width;
  if (a->s.data->dtype == CLV_F32)
    attend_f32(a, first, last, from, to, &state);
  else if (a->s.data->dtype == CLV_BF16)
    attend_bf16(a, first, last, from, to, &state);
  else
    attend_f16(a, first, last, from, to, &state);
}

size_t clv__sparse_attention_scratch(const clv__kernel_call *call) {
  int64_t columns = call->inputs[0].rank == 2 ? call->inputs[0].dims[1] : -1;
  if (columns < 0 || (size_t)columns > SIZE_MAX / (SCRATCH * sizeof(float) * CLV__KERNEL_MAX_THREADS)) return SIZE_MAX;
  return (size_t)columns * SCRATCH * sizeof(float) * CLV__KERNEL_MAX_THREADS;
}

clv_status clv__sparse_attention(const clv__kernel_call *call) {
  attention a = {.s = clv__sparse_of(&call->inputs[0], &call->inputs[3], &call->inputs[4]),
                 .source_score = &call->inputs[1],
                 .target_score = &call->inputs[2],
                 .heads = call->inputs[1].dims[1],
                 .slope = clv__attribute_float(call->attributes, "negative_slope", 0.2f),
                 .out = &call->outputs[0],
                 .scratch = call->scratch};
  a.width = a.heads > 0 ? a.s.columns / a.heads : 1;
  return clv__sparse_for_rows(call, &a.s, a.width > 0 ? a.width : 1, (double)a.s.columns, attend_rows, &a);
}
