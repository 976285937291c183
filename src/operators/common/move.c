/* See move.h. Axes are merged first, so that most cases of rank 6 become a copy of rows or a transpose of matrices. */
#include "operators/common/move.h"

#include "operators/common/threads.h"
#include "operators/common/turn.h"

enum {
  TILE = 32,
  CHUNK_BYTES = 1 << 18,
  BYTES_A_STEP = 64 /* bytes of a plain copy or fill that count as one operation, because memory limits its speed */
};

void clv__dense_strides(const clv_tensor *tensor, int64_t strides[CLV_MAX_RANK]) {
  int64_t stride = 1;
  for (int32_t d = tensor->rank - 1; d >= 0; --d) {
    strides[d] = stride;
    stride *= tensor->dims[d];
  }
}

void clv__copy_bytes(void *target, const void *source, size_t size_bytes, const clv__stop *stop) {
  int64_t chunks = (int64_t)((size_bytes + CHUNK_BYTES - 1) / CHUNK_BYTES);
  int threads = clv__kernel_threads(chunks, (double)size_bytes / BYTES_A_STEP);
  if (chunks <= 1) {
    if (size_bytes > 0) memcpy(target, source, size_bytes);
    return;
  }
  (void)threads; /* unused without OpenMP */
#pragma omp parallel for num_threads(threads) schedule(dynamic) if (threads > 1)
  for (int64_t c = 0; c < chunks; ++c) {
    if (clv__is_stopped(stop)) continue;
    size_t from = (size_t)c * CHUNK_BYTES, left = size_bytes - from;
    memcpy((char *)target + from, (const char *)source + from, left < CHUNK_BYTES ? left : CHUNK_BYTES);
  }
}

static void fill_some(char *target, const void *element, size_t element_bytes, size_t count) {
  const uint8_t *bytes = element;
  bool same = true;
  for (size_t i = 1; i < element_bytes; ++i) same = same && bytes[i] == bytes[0];
  if (same) {
    memset(target, bytes[0], count * element_bytes);
    return;
  }
#define FILL(type)                                                          \
  {                                                                         \
    type value;                                                             \
    memcpy(&value, element, sizeof value);                                  \
    for (size_t i = 0; i < count; ++i) ((type *)(void *)target)[i] = value; \
    return;                                                                 \
  }
  switch (element_bytes) {
    case 2:
      FILL(uint16_t)
    case 4:
      FILL(uint32_t)
    default:
      FILL(uint64_t)
  }
#undef FILL
}

void clv__fill(void *target, const void *element, size_t element_bytes, size_t count, const clv__stop *stop) {
  size_t chunk = CHUNK_BYTES / element_bytes;
  int64_t chunks = (int64_t)((count + chunk - 1) / chunk);
  int threads = clv__kernel_threads(chunks, (double)(count * element_bytes) / BYTES_A_STEP);
  if (chunks <= 1) {
    if (count > 0) fill_some(target, element, element_bytes, count);
    return;
  }
  (void)threads; /* unused without OpenMP */
#pragma omp parallel for num_threads(threads) schedule(dynamic) if (threads > 1)
  for (int64_t c = 0; c < chunks; ++c) {
    if (clv__is_stopped(stop)) continue;
    size_t from = (size_t)c * chunk, left = count - from;
    fill_some((char *)target + from * element_bytes, element, element_bytes, left < chunk ? left : chunk);
  }
}

/* ---- Strided reads ------------------------------------------------------------------------------------------------------- */

/* Drops axes of size 1 and merges neighbouring axes that can be walked as one. */
static clv__strided merge_axes(const clv__strided *shape) {
  clv__strided out = {.rank = 0};
  for (int32_t d = 0; d < shape->rank; ++d) {
    if (shape->dims[d] == 1) continue;
    if (out.rank > 0 && out.strides[out.rank - 1] == shape->strides[d] * shape->dims[d]) {
      out.dims[out.rank - 1] *= shape->dims[d];
      out.strides[out.rank - 1] = shape->strides[d];
    } else {
      out.dims[out.rank] = shape->dims[d];
      out.strides[out.rank++] = shape->strides[d];
    }
  }
  return out;
}

/* A position in the outer axes, and its offset in the source. */
typedef struct walk {
  int32_t rank;
  const int64_t *dims;
  const int64_t *strides;
  int64_t at[CLV__STRIDED_RANK];
  int64_t offset;
} walk;

static walk walk_begin(const clv__strided *shape, int32_t rank, int64_t index) {
  walk w = {.rank = rank, .dims = shape->dims, .strides = shape->strides};
  for (int32_t d = rank - 1; d >= 0; --d) {
    w.at[d] = index % shape->dims[d];
    index /= shape->dims[d];
    w.offset += w.at[d] * shape->strides[d];
  }
  return w;
}

static void walk_next(walk *w) {
  for (int32_t d = w->rank - 1; d >= 0; --d) {
    w->offset += w->strides[d];
    if (++w->at[d] < w->dims[d]) return;
    w->offset -= w->dims[d] * w->strides[d];
    w->at[d] = 0;
  }
}

#define DEFINE_LINE(type)                                                                    \
  static void line_##type(void *target, const void *source, int64_t count, int64_t stride) { \
    type *to = target;                                                                       \
    const type *from = source;                                                               \
    for (int64_t i = 0; i < count; ++i) to[i] = from[i * stride];                            \
  }
#define DEFINE_TILE(type)                                                                                         \
  static void tile_##type(void *target, const void *source, int64_t rows, int64_t columns, int64_t target_stride, \
                          int64_t source_stride) {                                                                \
    type *to = target;                                                                                            \
    const type *from = source;                                                                                    \
    for (int64_t c = 0; c < columns; c += TILE) {                                                                 \
      int64_t end = c + TILE < columns ? c + TILE : columns;                                                      \
      for (int64_t r = 0; r < rows; ++r) {                                                                        \
        for (int64_t i = c; i < end; ++i) to[r * target_stride + i] = from[r + i * source_stride];                \
      }                                                                                                           \
    }                                                                                                             \
  }
DEFINE_LINE(uint8_t)
DEFINE_LINE(uint16_t)
DEFINE_LINE(uint32_t)
DEFINE_LINE(uint64_t)
DEFINE_TILE(uint8_t)
DEFINE_TILE(uint16_t)
DEFINE_TILE(uint64_t)
#undef DEFINE_LINE
#undef DEFINE_TILE

typedef void (*line_fn)(void *target, const void *source, int64_t count, int64_t stride);
typedef void (*tile_fn)(void *target, const void *source, int64_t rows, int64_t columns, int64_t target_stride,
                        int64_t source_stride);

static line_fn find_line(size_t bytes) {
  return bytes == 1 ? line_uint8_t : bytes == 2 ? line_uint16_t : bytes == 4 ? line_uint32_t : line_uint64_t;
}

/* A faster path for elements of four bytes. */
static void tile_words(void *target, const void *source, int64_t rows, int64_t columns, int64_t target_stride,
                       int64_t source_stride) {
  clv__turn_f32(source, source_stride, target, target_stride, columns, rows);
}

static tile_fn find_tile(size_t bytes) {
  return bytes == 1 ? tile_uint8_t : bytes == 2 ? tile_uint16_t : bytes == 4 ? tile_words : tile_uint64_t;
}

/* Reads rows of the innermost axis, one after another. */
static void read_lines(const char *source, char *target, const clv__strided *shape, size_t bytes, const clv__stop *stop) {
  int32_t outer_rank = shape->rank - 1;
  int64_t rows = 1, length = shape->dims[outer_rank], stride = shape->strides[outer_rank];
  for (int32_t d = 0; d < outer_rank; ++d) rows *= shape->dims[d];
  line_fn line = find_line(bytes);
  size_t row_bytes = (size_t)length * bytes;
  int threads = clv__kernel_threads(rows, (double)rows * (stride == 1 ? (double)row_bytes / 8 + 4 : (double)length));
#pragma omp parallel num_threads(threads) if (threads > 1)
  {
    int64_t share = (rows + threads - 1) / threads, begin = clv__kernel_thread_index() * share;
    int64_t end = begin + share < rows ? begin + share : rows;
    walk w = walk_begin(shape, outer_rank, begin < rows ? begin : 0);
    for (int64_t r = begin; r < end && !clv__is_stopped(stop); ++r, walk_next(&w)) {
      const char *from = source + w.offset * (int64_t)bytes;
      char *to = target + (size_t)r * row_bytes;
      if (stride == 1)
        memcpy(to, from, row_bytes);
      else if (stride == 0)
        fill_some(to, from, bytes, (size_t)length);
      else
        line(to, from, length, stride);
    }
  }
}

/* Reads a source that is contiguous along axis `along` into a target that is contiguous along the last axis, in strips of TILE
 * elements of axis `along` by the whole last axis. */
static void read_tiles(const char *source, char *target, const clv__strided *shape, int32_t along, size_t bytes,
                       const clv__stop *stop) {
  int32_t last = shape->rank - 1;
  clv__strided outer = {.rank = 0};
  int64_t target_strides[CLV__STRIDED_RANK], outer_target[CLV__STRIDED_RANK], dense = 1, count = 1;
  for (int32_t d = last; d >= 0; --d) {
    target_strides[d] = dense;
    dense *= shape->dims[d];
  }
  for (int32_t d = 0; d < last; ++d) {
    if (d == along) continue;
    outer_target[outer.rank] = target_strides[d];
    outer.dims[outer.rank] = shape->dims[d];
    outer.strides[outer.rank++] = shape->strides[d];
    count *= shape->dims[d];
  }
  int64_t strips = (shape->dims[along] + TILE - 1) / TILE;
  tile_fn tile = find_tile(bytes);
  int threads = clv__kernel_threads(count * strips, (double)dense);
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
  for (int64_t task = 0; task < count * strips; ++task) {
    if (clv__is_stopped(stop)) continue;
    walk w = walk_begin(&outer, outer.rank, task / strips);
    int64_t begin = task % strips * TILE, rows = shape->dims[along] - begin;
    int64_t to = begin * target_strides[along];
    for (int32_t d = 0; d < outer.rank; ++d) to += w.at[d] * outer_target[d];
    tile(target + to * (int64_t)bytes, source + (w.offset + begin) * (int64_t)bytes, rows < TILE ? rows : TILE, shape->dims[last],
         target_strides[along], shape->strides[last]);
  }
}

void clv__strided_read(const void *source, void *target, const clv__strided *shape, size_t element_bytes, const clv__stop *stop) {
  for (int32_t d = 0; d < shape->rank; ++d) {
    if (shape->dims[d] == 0) return;
  }
  clv__strided merged = merge_axes(shape);
  if (merged.rank == 0) {
    memcpy(target, source, element_bytes);
    return;
  }
  int32_t last = merged.rank - 1, along = -1;
  if (merged.rank == 1 && merged.strides[0] == 1) {
    clv__copy_bytes(target, source, (size_t)merged.dims[0] * element_bytes, stop);
    return;
  }
  if (merged.rank == 1 && merged.strides[0] == 0) {
    clv__fill(target, source, element_bytes, (size_t)merged.dims[0], stop);
    return;
  }
  for (int32_t d = 0; d < last; ++d) {
    if (merged.strides[d] == 1) along = d;
  }
  bool runs = merged.strides[last] == 1 || merged.strides[last] == 0;
  if (!runs && along >= 0)
    read_tiles(source, target, &merged, along, element_bytes, stop);
  else
    read_lines(source, target, &merged, element_bytes, stop);
}
