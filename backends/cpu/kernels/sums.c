/* Runs the steps of sums/sums.h, in integers modulo 2^32, like the portable kernels. A real number is rounded after each node
 * that the pass replaces, so that the result has the same bits as running those nodes one by one. */
#include <math.h>

#include "backends/cpu/sums/sums.h"
#include "operators/common/exponential.h"
#include "operators/common/threads.h"
#include "piece.h"

/* ---- The pass: turns integer sums into real results. ---- */

enum { CHUNK = 2048 /* channels per task: they fit in the first-level cache */ };

static uint32_t sum_unsigned(const uint8_t *bytes, int64_t count) {
  uint32_t sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += bytes[i];
  return sum;
}

static uint32_t sum_signed(const int8_t *bytes, int64_t count) {
  uint32_t sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += (uint32_t)bytes[i];
  return sum;
}

static void apply_gelu(float *real, int64_t count) {
  for (int64_t j = 0; j < count; ++j) real[j] = clv__gelu_f32(real[j]);
}

static int32_t byte_at(const clv_tensor *tensor, int64_t index) {
  return tensor->dtype == CLV_I8 ? ((const int8_t *)tensor->data)[index] : ((const uint8_t *)tensor->data)[index];
}

/* For channels [first, first + count) of a row, reads the sums of source elements by which the weights' zero points are
 * multiplied. */
static void read_windows(const clv__cpu_sums_pass *p, const clv_tensor *operands, int64_t row, int64_t first, int64_t count,
                         uint32_t *room, clv__cpu_sums_piece *made) {
  made->zeros = p->zeros + first;
  if (p->windows_operand == 0) {
    const clv_tensor *source = &operands[p->source_operand];
    const uint8_t *bytes = (const uint8_t *)source->data + row * p->depth;
    made->window = source->dtype == CLV_I8 ? sum_signed((const int8_t *)bytes, p->depth) : sum_unsigned(bytes, p->depth);
    return;
  }
  const uint32_t *windows = (const uint32_t *)operands[p->windows_operand].data + row * p->groups;
  const int64_t each = p->channels / p->groups;
  made->window = windows[0];
  if (p->groups == 1) return;
  for (int64_t j = 0; j < count; ++j) room[j] = windows[(first + j) / each];
  made->windows = room;
}

static void read_posts(const clv__cpu_sums_pass *p, const clv_tensor *operands, int64_t row, int64_t first,
                       clv__cpu_sums_piece *made) {
  made->post_count = p->post_count;
  for (uint32_t i = 0; i < p->post_count; ++i) {
    const clv__cpu_post *post = &p->posts[i].what;
    made->posts[i].low = post->alpha;
    made->posts[i].high = post->beta;
    if (post->kind == CLV__CPU_POST_ADD) {
      const int64_t at = p->posts[i].is_whole ? row * p->channels + first : p->posts[i].is_line ? first : 0;
      made->posts[i].kind = p->posts[i].is_whole || p->posts[i].is_line ? CLV__CPU_SUMS_ADD_EACH : CLV__CPU_SUMS_ADD_ONE;
      made->posts[i].other = (const float *)operands[p->posts[i].operand].data + at;
    } else if (post->algorithm == CLV__DNN_RELU && post->alpha != 0.0f) {
      made->posts[i].kind = CLV__CPU_SUMS_SLOPE;
    } else {
      made->posts[i].kind = CLV__CPU_SUMS_CLIP;
      if (post->algorithm == CLV__DNN_RELU) made->posts[i].high = INFINITY;
    }
  }
}

static void run_chunk(const clv__cpu_sums_pass *p, const clv_tensor *operands, int64_t row, int64_t first, int64_t count) {
  uint32_t windows[CHUNK];
  clv__cpu_sums_piece made;
  uint8_t *place = (uint8_t *)operands[0].data + (size_t)(row * p->channels + first) * sizeof(uint32_t);
  made.place = place;
  made.zero = p->shifts != NULL ? (uint32_t)byte_at(&operands[p->zero_operand], 0) : 0;
  made.shifts = made.zero != 0 ? p->shifts + first : NULL;
  made.zeros = NULL;
  made.windows = NULL;
  if (p->zeros != NULL) read_windows(p, operands, row, first, count, windows, &made);
  made.scale = NULL;
  made.scale_is_line = p->scale_is_line;
  if (p->scale_operand != 0) {
    made.scale = (const float *)operands[p->scale_operand].data + (p->scale_is_line ? first : 0);
    read_posts(p, operands, row, first, &made);
  }
  clv__cpu_sums_piece_run(&made, count);
  if (p->has_gelu) apply_gelu((float *)(void *)place, count);
}

void clv__cpu_sums_pass_run(const clv__cpu_own *own, const clv_tensor *operands, const clv__stop *stop) {
  (void)stop;
  const clv__cpu_sums_pass *p = (const clv__cpu_sums_pass *)(const void *)own;
  const int64_t chunks = (p->channels + CHUNK - 1) / CHUNK, tasks = p->rows * chunks;
  const int threads = clv__kernel_threads(tasks, (p->has_gelu ? 8.0 : 2.0) * (double)p->rows * (double)p->channels);
  (void)threads; /* unused without OpenMP */
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
  for (int64_t task = 0; task < tasks; ++task) {
    const int64_t first = task % chunks * CHUNK, left = p->channels - first;
    run_chunk(p, operands, task / chunks, first, left < CHUNK ? left : CHUNK);
  }
}

/* ---- The frame: copies the source with padding and with channels last. ---- */

enum { SIDE = 16 };

typedef uint8_t line __attribute__((vector_size(SIDE), aligned(1), may_alias));

/* Transposes sixteen runs of sixteen bytes in four rounds. Each round interleaves the bytes of run i and run i + 8. */
static void transpose(const uint8_t *from, int64_t from_step, uint8_t *to, int64_t to_step) {
  line a[SIDE], b[SIDE];
  for (int i = 0; i < SIDE; ++i) a[i] = *(const line *)(from + i * from_step);
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < SIDE / 2; ++i) {
      b[2 * i] = __builtin_shufflevector(a[i], a[i + SIDE / 2], 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
      b[2 * i + 1] = __builtin_shufflevector(a[i], a[i + SIDE / 2], 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    }
    memcpy(a, b, sizeof a);
  }
  for (int i = 0; i < SIDE; ++i) *(line *)(to + i * to_step) = a[i];
}

/* Copies a row of pixels to channels last. In `from`, the channels are `plane` bytes apart. */
static void turn_row(const uint8_t *from, int64_t plane, int64_t pixels, int64_t channels, uint8_t *to) {
  const int64_t whole_pixels = pixels / SIDE * SIDE, whole_channels = channels / SIDE * SIDE;
  for (int64_t c = 0; c < whole_channels; c += SIDE) {
    for (int64_t x = 0; x < whole_pixels; x += SIDE) transpose(from + c * plane + x, plane, to + x * channels + c, channels);
    for (int64_t x = whole_pixels; x < pixels; ++x) {
      for (int64_t i = c; i < c + SIDE; ++i) to[x * channels + i] = from[i * plane + x];
    }
  }
  for (int64_t x = 0; x < pixels; ++x) {
    for (int64_t c = whole_channels; c < channels; ++c) to[x * channels + c] = from[c * plane + x];
  }
}

void clv__cpu_sums_frame_run(const clv__cpu_own *own, const clv_tensor *operands, const clv__stop *stop) {
  (void)stop;
  const clv__cpu_sums_frame *f = (const clv__cpu_sums_frame *)(const void *)own;
  const int zero = f->zero_operand > 0 ? (uint8_t)byte_at(&operands[f->zero_operand], 0) : 0;
  const uint8_t *from = operands[0].data;
  uint8_t *to = operands[f->target_operand].data;
  const int64_t depth = f->extents[0] + f->begin[0] + f->end[0], height = f->extents[1] + f->begin[1] + f->end[1];
  const int64_t width = f->extents[2] + f->begin[2] + f->end[2], plane = f->extents[0] * f->extents[1] * f->extents[2];
  const int64_t rows = f->images * depth * height, row_bytes = width * f->channels;
  const int threads = clv__kernel_threads(rows, (double)rows * (double)row_bytes);
  (void)threads; /* unused without OpenMP */
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t y = row % height - f->begin[1], z = row / height % depth - f->begin[0], image = row / height / depth;
    uint8_t *made = to + row * row_bytes, *inner = made + f->begin[2] * f->channels;
    if (y < 0 || y >= f->extents[1] || z < 0 || z >= f->extents[0]) {
      memset(made, zero, (size_t)row_bytes);
      continue;
    }
    memset(made, zero, (size_t)(f->begin[2] * f->channels));
    const int64_t pixel = (z * f->extents[1] + y) * f->extents[2];
    const uint8_t *first = from + image * f->channels * plane + pixel * (f->is_last ? f->channels : 1);
    if (f->is_last) {
      memcpy(inner, first, (size_t)(f->extents[2] * f->channels));
    } else {
      turn_row(first, plane, f->extents[2], f->channels, inner);
    }
    memset(inner + f->extents[2] * f->channels, zero, (size_t)(f->end[2] * f->channels));
  }
}
