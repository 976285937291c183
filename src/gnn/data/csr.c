/* Builds rows from edges. The first pass counts the edges per row; the second places each edge. Each thread handles the edges
 * of its own range of rows, so that the order within a row matches the edge order for any number of threads. */
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "gnn/data/csr.h"

enum { PIECE_EDGES = 1 << 20, MOST_THREADS = 16 };

typedef struct builder {
  const clv_allocator *allocator;
  clv__edge_source *source;
  uint32_t *sources, *destinations; /* one chunk of edges */
  uint64_t *offsets; /* [capacity + 1]: the rows' starts; during the first pass, offsets[v + 1] counts the edges of row v */
  uint64_t capacity;
  uint64_t vertex_count, edge_count; /* seen so far */
  uint64_t mark;                     /* checksum over all edges: the second pass must arrive at the same value */
} builder;

uint32_t clv__edge_threads(void) {
  int threads = clv__threads_available();
  return threads < 1 ? 1 : threads > MOST_THREADS ? MOST_THREADS : (uint32_t)threads;
}

static clv_status grow(builder *b, uint64_t vertex_count, clv_error *error) {
  if (vertex_count <= b->capacity && b->offsets != NULL) return CLV_OK;
  uint64_t limit = clv__vertices_limit(b->edge_count > b->source->least_edges ? b->edge_count : b->source->least_edges);
  bool is_known = b->source->vertex_count != CLV__VERTICES_UNKNOWN;
  if (!is_known && vertex_count > limit) {
    return clv__error_set(error, CLV_INVALID_MODEL,
                          "vertex id %llu is too large for %llu edges: ids must be dense, here below %llu; renumber the vertices",
                          (unsigned long long)vertex_count - 1, (unsigned long long)b->edge_count, (unsigned long long)limit);
  }
  uint64_t capacity = is_known ? vertex_count : vertex_count + vertex_count / 4;
  size_t size_bytes;
  if (!clv__multiply((size_t)capacity + 1, sizeof *b->offsets, &size_bytes)) return clv__error_memory(error, SIZE_MAX);
  uint64_t *offsets = clv__allocate_zero(b->allocator, size_bytes);
  if (offsets == NULL) return clv__error_memory(error, size_bytes);
  if (b->offsets != NULL) memcpy(offsets, b->offsets, (size_t)(b->capacity + 1) * sizeof *offsets);
  clv__release(b->allocator, b->offsets);
  b->offsets = offsets;
  b->capacity = capacity;
  return CLV_OK;
}

/* Computes the largest id in a chunk and the chunk's share of the checksum. */
static void survey(const builder *b, size_t count, uint32_t *largest, uint64_t *mark) {
  uint32_t most = 0;
  uint64_t sum = 0;
#pragma omp parallel for num_threads(clv__threads_available()) reduction(max : most) reduction(+ : sum) if (count > 1 << 14) schedule(static)
  for (size_t e = 0; e < count; ++e) {
    uint32_t u = b->sources[e], v = b->destinations[e];
    most = u > most ? u : most;
    most = v > most ? v : most;
    sum += clv__mix64((uint64_t)v << 32 | u);
  }
  *largest = most;
  *mark = sum;
}

static void count_piece(builder *b, size_t count) {
  uint32_t threads = count < 1 << 14 ? 1 : clv__edge_threads();
  uint64_t *counts = b->offsets + 1;
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static, 1)
  for (uint32_t t = 0; t < threads; ++t) {
    uint64_t from = b->vertex_count * t / threads, span = b->vertex_count * (t + 1) / threads - from;
    for (size_t e = 0; e < count; ++e) {
      if (b->destinations[e] - from < span) ++counts[b->destinations[e]]; /* ids below `from` wrap around and exceed the span */
    }
  }
}

static clv_status count_edges(builder *b, clv_error *error) {
  CLV__TRY(b->source->rewind(b->source, error));
  if (b->source->vertex_count != CLV__VERTICES_UNKNOWN) {
    b->vertex_count = b->source->vertex_count;
    CLV__TRY(grow(b, b->vertex_count, error));
  }
  for (;;) {
    size_t count = 0;
    uint32_t largest;
    uint64_t mark;
    CLV__TRY(b->source->next(b->source, b->sources, b->destinations, PIECE_EDGES, &count, error));
    if (count == 0) break;
    survey(b, count, &largest, &mark);
    b->edge_count += count;
    b->mark += mark;
    if (b->source->vertex_count != CLV__VERTICES_UNKNOWN)
      b->vertex_count = b->source->vertex_count; /* reading this chunk may have set source->vertex_count */
    else if (largest >= b->vertex_count)
      b->vertex_count = (uint64_t)largest + 1;
    CLV__TRY(grow(b, b->vertex_count, error));
    count_piece(b, count);
  }
  if (b->source->vertex_count == CLV__VERTICES_UNKNOWN) {
    b->source->least_edges = b->edge_count; /* the exact number replaces the estimate */
    uint64_t limit = clv__vertices_limit(b->edge_count);
    if (b->vertex_count > limit) {
      return clv__error_set(
          error, CLV_INVALID_MODEL,
          "there are %llu edges, but vertex ids up to %llu: ids must be dense, here below %llu; renumber the vertices",
          (unsigned long long)b->edge_count, (unsigned long long)b->vertex_count - 1, (unsigned long long)limit);
    }
  } else {
    b->vertex_count = b->source->vertex_count;
  }
  return grow(b, b->vertex_count, error);
}

/* Sets offsets[v + 1] to the start of row v. Placing edges then advances it to the start of row v + 1. */
static void begin_rows(builder *b) {
  uint64_t start = 0;
  for (uint64_t v = 0; v < b->vertex_count; ++v) {
    uint64_t count = b->offsets[v + 1];
    b->offsets[v + 1] = start;
    start += count;
  }
}

/* Returns the first row that starts at or after edge number `edge`. */
static uint64_t row_at(const builder *b, uint64_t edge) {
  uint64_t low = 0, high = b->vertex_count;
  while (low < high) {
    uint64_t middle = low + (high - low) / 2;
    if (b->offsets[middle + 1] < edge)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static void place_piece(builder *b, size_t count, const uint64_t *bounds, uint32_t threads, uint32_t *placed) {
  uint64_t *cursors = b->offsets + 1, edge_count = b->edge_count;
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static, 1)
  for (uint32_t t = 0; t < threads; ++t) {
    uint64_t from = bounds[t], span = bounds[t + 1] - from;
    for (size_t e = 0; e < count; ++e) {
      uint32_t v = b->destinations[e];
      if (v - from >= span) continue;
      uint64_t at = cursors[v]++;
      if (at < edge_count) placed[at] = b->sources[e]; /* out of range if the file changed between passes; detected at the end */
    }
  }
}

static clv_status place_edges(builder *b, uint32_t *placed, clv_error *error) {
  uint64_t bounds[MOST_THREADS + 1], edge_count = 0, mark = 0;
  uint32_t threads = b->edge_count < 1 << 14 ? 1 : clv__edge_threads();
  begin_rows(b);
  for (uint32_t t = 0; t < threads; ++t) bounds[t] = t == 0 ? 0 : row_at(b, b->edge_count / threads * t);
  bounds[threads] = b->vertex_count;
  CLV__TRY(b->source->rewind(b->source, error));
  for (;;) {
    size_t count = 0;
    uint32_t largest;
    uint64_t piece_mark;
    CLV__TRY(b->source->next(b->source, b->sources, b->destinations, PIECE_EDGES, &count, error));
    if (count == 0) break;
    survey(b, count, &largest, &piece_mark);
    mark += piece_mark;
    edge_count += count;
    place_piece(b, count, bounds, threads, placed);
  }
  if (edge_count == b->edge_count && mark == b->mark) return CLV_OK;
  return clv__error_set(error, CLV_IO_ERROR, "the file changed while being read: it first had %llu edges, then %llu other ones",
                        (unsigned long long)b->edge_count, (unsigned long long)edge_count);
}

clv_status clv__csr_build(const clv_allocator *allocator, clv__edge_source *source, clv__csr *csr, clv_error *error) {
  builder b = {.allocator = allocator, .source = source};
  uint32_t *placed = NULL;
  size_t size_bytes;
  clv_status status = CLV_OK;
  *csr = (clv__csr){0};
  b.sources = clv__allocate(allocator, PIECE_EDGES * sizeof *b.sources);
  b.destinations = clv__allocate(allocator, PIECE_EDGES * sizeof *b.destinations);
  if (b.sources == NULL || b.destinations == NULL) {
    status = clv__error_memory(error, PIECE_EDGES * sizeof *b.sources);
    goto cleanup;
  }
  CLV__TRY_GOTO(count_edges(&b, error));
  if (!clv__multiply((size_t)b.edge_count, sizeof *placed, &size_bytes)) size_bytes = SIZE_MAX;
  placed = clv__allocate(allocator, size_bytes);
  if (placed == NULL) {
    status = clv__error_memory(error, size_bytes);
    goto cleanup;
  }
  CLV__TRY_GOTO(place_edges(&b, placed, error));
  *csr = (clv__csr){(uint32_t)b.vertex_count, b.edge_count, b.offsets, placed};
  b.offsets = NULL;
  placed = NULL;
cleanup:
  clv__release(allocator, placed);
  clv__release(allocator, b.offsets);
  clv__release(allocator, b.destinations);
  clv__release(allocator, b.sources);
  return status;
}

void clv__csr_finish(const clv_allocator *allocator, clv__csr *csr) {
  clv__release(allocator, (void *)csr->offsets);
  clv__release(allocator, (void *)csr->sources);
  *csr = (clv__csr){0};
}
