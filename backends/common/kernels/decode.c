/* Operators of transformer decoders other than attention: RotaryEmbedding, CausalConvWithState, TensorScatter, SwiGLU.
 * TensorScatter copies bytes. The others compute in f32 (SwiGLU of f64 in f64). */
#include <math.h>

#include "backends/common/kernels/families.h"
#include "operators/common/rows.h"
#include "operators/common/threads.h"
#include "operators/run.h"

enum { CHUNK = 256 };

static bool has_input(const clv__kernel_call *call, uint32_t input) {
  return input < call->input_count && call->inputs[input].dtype != CLV_DTYPE_NONE;
}

/* slice_bytes() is the scratch that one thread needs for `count` floats, rounded up to a multiple of 64 bytes. slices_bytes()
 * is the scratch of all threads together, for the most threads that can work on `tasks` tasks. Both return SIZE_MAX if the size
 * overflows. */
static size_t slice_bytes(int64_t count) {
  size_t bytes;
  if (count < 0 || __builtin_mul_overflow((size_t)count, sizeof(float), &bytes) || bytes > SIZE_MAX / 64) return SIZE_MAX;
  return (bytes + 63) / 64 * 64;
}
static size_t slices_bytes(int64_t count, int64_t tasks) {
  const size_t bytes = slice_bytes(count);
  return bytes == SIZE_MAX ? SIZE_MAX : bytes * (size_t)clv__kernel_thread_limit(tasks);
}

/* ---- RotaryEmbedding ---- */

typedef struct rotary {
  const clv_tensor *x, *y, *cosines, *sines;
  const int64_t *positions; /* NULL: angles are given per token */
  int64_t batch, heads, length, size, half;
  bool heads_inside; /* [batch, length, heads * size] instead of [batch, heads, length, size] */
  bool interleaved;
} rotary;

static rotary rotary_of(const clv__kernel_call *call) {
  const clv_tensor *x = &call->inputs[0];
  rotary r = {.x = x, .y = &call->outputs[0], .cosines = &call->inputs[1], .sines = &call->inputs[2], .batch = x->dims[0]};
  r.heads_inside = x->rank == 3;
  r.heads = r.heads_inside ? clv__attribute_int(call->attributes, "num_heads", 1) : x->dims[1];
  r.length = x->dims[r.heads_inside ? 1 : 2];
  r.size = r.heads_inside ? x->dims[2] / r.heads : x->dims[3];
  r.half = r.cosines->dims[r.cosines->rank - 1];
  r.positions = has_input(call, 3) ? call->inputs[3].data : NULL;
  r.interleaved = clv__attribute_int(call->attributes, "interleaved", 0) != 0;
  return r;
}

/* Returns the index in `cosines` and `sines` of a token's first angle. A negative position counts from the end of these tables,
 * like an index of Gather. */
static int64_t rotary_angles_at(const rotary *r, int64_t token) {
  if (r->positions == NULL) return token * r->half;
  const int64_t position = r->positions[token];
  return (position < 0 ? position + r->cosines->dims[0] : position) * r->half;
}

/* Rotates one head. `line` is scratch for 2 * size floats: the head before and after the rotation. */
static void rotate(const rotary *r, int64_t first, const float *cosines, const float *sines, float *line) {
  const int64_t half = r->half, pair = r->interleaved ? 2 : 1, other = r->interleaved ? 1 : half;
  float *out = line + r->size;
  clv__row_to_f32(r->x->dtype, r->x->data, first, r->size, line);
  for (int64_t i = 0; i < half; ++i) {
    const float a = line[i * pair], b = line[i * pair + other];
    out[i * pair] = cosines[i] * a - sines[i] * b;
    out[i * pair + other] = sines[i] * a + cosines[i] * b;
  }
  for (int64_t i = 2 * half; i < r->size; ++i) out[i] = line[i];
  clv__row_from_f32(r->y->dtype, r->y->data, first, r->size, out);
}

static clv_status run_rotary(const clv__kernel_call *call) {
  if (clv__tensor_is_empty(&call->outputs[0])) return CLV_OK;
  const rotary r = rotary_of(call);
  const int64_t tokens = r.batch * r.length, rows = r.cosines->dims[0];
  for (int64_t t = 0; r.positions != NULL && t < tokens; ++t) {
    if (r.positions[t] >= -rows && r.positions[t] < rows) continue;
    return clv__error_set(call->error, CLV_INVALID_ARGUMENT,
                          "position_ids[%lld,%lld] is %lld, but cos_cache and sin_cache have only %lld rows",
                          (long long)(t / r.length), (long long)(t % r.length), (long long)r.positions[t], (long long)rows);
  }
  const size_t slice = slice_bytes(2 * r.size + 2 * r.half);
  const int threads = clv__kernel_threads(tokens, (double)tokens * (double)r.heads * (double)r.size);
  (void)threads; /* unused without OpenMP */
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
  for (int64_t t = 0; t < tokens; ++t) {
    if (clv__is_stopped(call->stop)) continue;
    float *line = (float *)((char *)call->scratch + (size_t)clv__kernel_thread_index() * slice);
    float *cosines = line + 2 * r.size, *sines = cosines + r.half;
    const int64_t angles = rotary_angles_at(&r, t), batch = t / r.length, at = t % r.length;
    clv__row_to_f32(r.cosines->dtype, r.cosines->data, angles, r.half, cosines);
    clv__row_to_f32(r.sines->dtype, r.sines->data, angles, r.half, sines);
    for (int64_t h = 0; h < r.heads; ++h) {
      const int64_t row = r.heads_inside ? t * r.heads + h : (batch * r.heads + h) * r.length + at;
      rotate(&r, row * r.size, cosines, sines, line);
    }
  }
  return CLV_OK;
}

static size_t rotary_scratch(const clv__kernel_call *call) {
  if (clv__tensor_is_empty(&call->outputs[0])) return 0;
  const rotary r = rotary_of(call);
  if (r.size > INT64_MAX / 8) return SIZE_MAX;
  return slices_bytes(2 * r.size + 2 * r.half, r.batch * r.length);
}

/* ---- CausalConvWithState ---- */

/* Fills `line` with the state of a channel followed by its input, as f32. */
static void convolution_line(const clv__kernel_call *call, int64_t row, int64_t kept, int64_t length, float *line) {
  const clv_tensor *x = &call->inputs[0];
  if (has_input(call, 3)) {
    clv__row_to_f32(call->inputs[3].dtype, call->inputs[3].data, row * kept, kept, line);
  } else {
    for (int64_t i = 0; i < kept; ++i) line[i] = 0;
  }
  clv__row_to_f32(x->dtype, x->data, row * length, length, line + kept);
}

static void convolve(const float *line, const float *taps, int64_t tap_count, float bias, bool silu, int64_t length,
                     float *sums) {
  for (int64_t i = 0; i < length; ++i) sums[i] = bias;
  for (int64_t k = 0; k < tap_count; ++k) {
    const float tap = taps[k], *from = line + k;
    for (int64_t i = 0; i < length; ++i) sums[i] += tap * from[i];
  }
  for (int64_t i = 0; silu && i < length; ++i) sums[i] = sums[i] / (1.0f + expf(-sums[i]));
}

static clv_status run_convolution(const clv__kernel_call *call) {
  const clv_tensor *x = &call->inputs[0], *w = &call->inputs[1], *y = &call->outputs[0];
  /* Without rows, the other dims may be so large that the sums below would overflow. */
  if (x->dims[0] == 0 || x->dims[1] == 0) return CLV_OK;
  const clv_tensor *present = call->output_count > 1 && call->outputs[1].dtype != CLV_DTYPE_NONE ? &call->outputs[1] : NULL;
  const int64_t channels = x->dims[1], length = x->dims[2], taps = w->dims[2], kept = taps - 1, rows = x->dims[0] * channels;
  const bool silu = !clv__attribute_is(call->attributes, "activation", "none", true);
  const size_t slice = slice_bytes(2 * length + 2 * taps);
  const int threads = clv__kernel_threads(rows, (double)rows * (double)(length + 1) * (double)(taps + (silu ? 10 : 1)));
  (void)threads; /* unused without OpenMP */
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
  for (int64_t row = 0; row < rows; ++row) {
    if (clv__is_stopped(call->stop)) continue;
    float *line = (float *)((char *)call->scratch + (size_t)clv__kernel_thread_index() * slice);
    float *sums = line + length + kept, *weights = sums + length, bias = 0;
    const int64_t channel = row % channels;
    convolution_line(call, row, kept, length, line);
    clv__row_to_f32(w->dtype, w->data, channel * taps, taps, weights);
    if (has_input(call, 2)) clv__row_to_f32(call->inputs[2].dtype, call->inputs[2].data, channel, 1, &bias);
    if (y->dtype != CLV_DTYPE_NONE) {
      convolve(line, weights, taps, bias, silu, length, sums);
      clv__row_from_f32(y->dtype, y->data, row * length, length, sums);
    }
    if (present != NULL) clv__row_from_f32(present->dtype, present->data, row * kept, kept, line + length);
  }
  return CLV_OK;
}

static size_t convolution_scratch(const clv__kernel_call *call) {
  const clv_tensor *x = &call->inputs[0], *w = &call->inputs[1];
  if (x->dims[0] == 0 || x->dims[1] == 0) return 0;
  if (x->dims[2] > INT64_MAX / 8 || w->dims[2] > INT64_MAX / 8) return SIZE_MAX;
  return slices_bytes(2 * x->dims[2] + 2 * w->dims[2], x->dims[0] * x->dims[1]);
}

/* ---- TensorScatter ---- */
static clv_status run_scatter(const clv__kernel_call *call) {
  const clv_tensor *cache = &call->inputs[0], *update = &call->inputs[1];
  if (clv__tensor_is_empty(cache)) return CLV_OK;
  const bool circular = clv__attribute_is(call->attributes, "mode", "circular", false);
  const int64_t *places = has_input(call, 2) ? call->inputs[2].data : NULL;
  int64_t given = clv__attribute_int(call->attributes, "axis", -2);
  const int32_t axis = (int32_t)(given < 0 ? given + cache->rank : given);
  const int64_t room = cache->dims[axis], length = update->dims[axis], outer = clv__dims_product(cache, 0, axis);
  const size_t entry = (size_t)clv__dims_product(cache, axis + 1, cache->rank) * clv_dtype_size_bytes(cache->dtype);
  for (int64_t b = 0; places != NULL && !circular && b < cache->dims[0]; ++b) {
    if (places[b] >= 0 && places[b] <= room - length) continue;
    return clv__error_set(
        call->error, CLV_INVALID_ARGUMENT,
        "write_indices[%lld] is %lld, but %lld entries from that index do not fit in the cache's length of %lld", (long long)b,
        (long long)places[b], (long long)length, (long long)room);
  }
  const int threads = clv__kernel_threads(outer, (double)outer * (double)room * (double)entry / 16);
  (void)threads; /* unused without OpenMP */
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
  for (int64_t o = 0; o < outer; ++o) {
    if (clv__is_stopped(call->stop)) continue;
    char *to = (char *)call->outputs[0].data + (size_t)(o * room) * entry;
    const char *from = (const char *)update->data + (size_t)(o * length) * entry;
    int64_t at = places != NULL ? places[o / (outer / cache->dims[0])] % room : 0;
    if (at < 0) at += room;
    const int64_t straight = length < room - at ? length : room - at; /* the other entries wrap around to index 0 */
    memcpy(to, (const char *)cache->data + (size_t)(o * room) * entry, (size_t)room * entry);
    if (straight > 0) memcpy(to + (size_t)at * entry, from, (size_t)straight * entry);
    if (straight < length) memcpy(to, from + (size_t)straight * entry, (size_t)(length - straight) * entry);
  }
  return CLV_OK;
}

/* ---- SwiGLU ---- */
static void swiglu_f64(const clv__kernel_call *call, int64_t first, int64_t count, float alpha) {
  const double *a = (const double *)call->inputs[0].data + first, *b = (const double *)call->inputs[1].data + first;
  double *y = (double *)call->outputs[0].data + first;
  for (int64_t i = 0; i < count; ++i) y[i] = a[i] * (1 / (1 + exp((double)-alpha * a[i]))) * b[i];
}

static void swiglu_f32(const clv__kernel_call *call, int64_t first, int64_t count, float alpha) {
  float a[CHUNK], b[CHUNK];
  clv__row_to_f32(call->inputs[0].dtype, call->inputs[0].data, first, count, a);
  clv__row_to_f32(call->inputs[1].dtype, call->inputs[1].data, first, count, b);
  for (int64_t i = 0; i < count; ++i) a[i] = a[i] * (1 / (1 + expf(-alpha * a[i]))) * b[i];
  clv__row_from_f32(call->outputs[0].dtype, call->outputs[0].data, first, count, a);
}

static clv_status run_swiglu(const clv__kernel_call *call) {
  const clv_tensor *y = &call->outputs[0];
  const float alpha = clv__attribute_float(call->attributes, "alpha", 1.0f);
  const int64_t total = clv__dims_count(y, 0, y->rank), chunks = (total + CHUNK - 1) / CHUNK;
  const int threads = clv__kernel_threads(chunks, 15.0 * (double)total);
  (void)threads; /* unused without OpenMP */
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    if (clv__is_stopped(call->stop)) continue;
    const int64_t first = chunk * CHUNK, count = total - first < CHUNK ? total - first : CHUNK;
    if (y->dtype == CLV_F64)
      swiglu_f64(call, first, count, alpha);
    else
      swiglu_f32(call, first, count, alpha);
  }
  return CLV_OK;
}

const clv__fast_kernel clv__fast_decode[] = {
    {"", "RotaryEmbedding", run_rotary, rotary_scratch},
    {"", "CausalConvWithState", run_convolution, convolution_scratch},
    {"", "TensorScatter", run_scatter, NULL},
    {"", "SwiGLU", run_swiglu, NULL},
    {.op = NULL},
};
