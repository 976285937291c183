/* See sweep.h. */
#include "gnn/run/sweep.h"

#include <string.h>

enum { PIECE_BYTES = 2 << 20, LARGE_PIECE_BYTES = 8 << 20, LEAST_PIECE = 512, FEW_PIECES = 4, MANY_PIECES = 64 };

uint32_t clv__stages_sweep_from(const clv__stages *stages) {
  if (stages->type == CLV__GNN_GCN) return stages->count;
  return stages->transform_first ? 1 : 0;
}

/* Chooses the piece so that the widest value between stages fits a cache. If that gives many pieces, uses larger pieces
 * despite slower access, because all threads synchronise after each piece. */
static uint32_t piece_of(const clv__stages *stages, uint32_t vertex_count) {
  uint32_t in = stages->layer->in, out = clv__gnn_layer_width(stages->layer);
  uint64_t row_bytes = sizeof(float) * (uint64_t)(in > out ? in : out);
  uint64_t fits = PIECE_BYTES / row_bytes, most = LARGE_PIECE_BYTES / row_bytes, wanted = vertex_count / MANY_PIECES;
  uint64_t piece = wanted < fits ? fits : wanted < most ? wanted : most;
  return piece < LEAST_PIECE ? LEAST_PIECE : (uint32_t)piece;
}

static uint64_t begin_of(uint64_t vertex_count, uint32_t piece, uint64_t number) {
  uint64_t begin = number * piece;
  return begin + piece > vertex_count ? vertex_count - piece : begin;
}

static uint64_t most_edges(const clv__csr *csr, uint32_t piece) {
  uint64_t most = 0, n = csr->vertex_count;
  for (uint64_t p = 0; p * piece < n; ++p) {
    uint64_t begin = begin_of(n, piece, p), edges = csr->offsets[begin + piece] - csr->offsets[begin];
    if (edges > most) most = edges;
  }
  return most;
}

static bool is_swept(const clv__stages *stages, clv__value_set set, bool is_made) {
  for (uint32_t v = 0; v < CLV__LAYER_VALUES; ++v) {
    clv__layer_dimension dimension = clv__layer_value_shape(stages, (clv__layer_value)v).dimension;
    if ((set & CLV__VALUE_BIT(v)) == 0 || dimension == CLV__DIMENSION_TARGETS) continue;
    if (is_made || (dimension == CLV__DIMENSION_EDGES && v != CLV__VALUE_SOURCES)) return false;
  }
  return true;
}

clv__sweep clv__sweep_find(const clv__stages *stages, uint32_t first, uint32_t last, const clv__csr *csr) {
  clv__value_set reads = clv__block_reads(stages, first, last, false);
  clv__sweep sweep = {.piece = piece_of(stages, csr->vertex_count)};
  bool is_fit = first >= clv__stages_sweep_from(stages) && (reads & CLV__VALUE_BIT(CLV__VALUE_SOURCES)) != 0 &&
                is_swept(stages, reads, false) && is_swept(stages, clv__block_makes(stages, first, last), true);
  if (!is_fit || csr->vertex_count / sweep.piece < FEW_PIECES) return (clv__sweep){0, 0};
  sweep.piece_edges = most_edges(csr, sweep.piece);
  return sweep.piece_edges <= csr->edge_count / 2 ? sweep : (clv__sweep){0, 0};
}

/* ---- A piece ---- */

/* The size of a piece's offsets, which start at 0. A copy of the sources follows them; it is used if fewer edges remain in the
 * graph than a piece has room for. */
static size_t offset_bytes(const clv__sweep *sweep) {
  return clv__align_up(((size_t)sweep->piece + 1) * sizeof(int64_t), CLV__ALIGNMENT);
}

size_t clv__sweep_bytes(const clv__sweep *sweep) {
  return offset_bytes(sweep) + sweep->piece_edges * sizeof(int32_t);
}

/* The piece's rows, from `begin` on, of a value with one row per target. */
static clv_tensor slice(const clv__sweep *sweep, const clv_tensor *whole, uint64_t begin) {
  clv_tensor part = *whole;
  size_t row_bytes = clv_dtype_size_bytes(whole->dtype) * (size_t)clv__dims_product(whole, 1, whole->rank);
  part.dims[0] = sweep->piece;
  if (part.data != NULL) part.data = (uint8_t *)part.data + begin * row_bytes;
  return part;
}

/* Sets the edges of a piece. Near the end of the graph, fewer edges may remain than a piece has room for. */
static void set_edges(const clv__sweep *sweep, const clv__csr *csr, uint64_t begin, char *memory, clv__layer_values *values) {
  const uint64_t *offsets = csr->offsets + begin;
  uint64_t first = offsets[0], left = csr->edge_count - first;
  const int64_t room = (int64_t)sweep->piece_edges, ends = (int64_t)sweep->piece + 1;
  void *sources = (void *)(uintptr_t)(csr->sources + first);
  int64_t *own_offsets = (int64_t *)memory;
  for (uint32_t v = 0; v <= sweep->piece; ++v) own_offsets[v] = (int64_t)(offsets[v] - first);
  if (left < sweep->piece_edges) {
    char *own = memory + offset_bytes(sweep);
    memset(own, 0, sweep->piece_edges * sizeof(int32_t));
    if (left > 0) memcpy(own, sources, left * sizeof(int32_t));
    sources = own;
  }
  values->items[CLV__VALUE_OFFSETS] = clv__tensor_make(CLV_I64, 1, &ends, own_offsets);
  values->items[CLV__VALUE_SOURCES] = clv__tensor_make(CLV_I32, 1, &room, sources);
}

clv_status clv__sweep_execute(const clv__sweep *sweep, const clv__csr *csr, clv__block_run *run, void *memory,
                              clv__layer_values *values, clv_error *error) {
  const clv__block *block = &run->block;
  clv__value_set used = block->reads | block->makes;
  uint64_t n = csr->vertex_count;
  for (uint64_t p = 0; p * sweep->piece < n; ++p) {
    uint64_t begin = begin_of(n, sweep->piece, p);
    clv__layer_values part = *values;
    for (uint32_t v = 0; v < CLV__LAYER_VALUES; ++v) {
      bool is_sliced = (used & CLV__VALUE_BIT(v)) != 0 &&
                       clv__layer_value_shape(&block->stages, (clv__layer_value)v).dimension == CLV__DIMENSION_TARGETS;
      if (is_sliced) part.items[v] = slice(sweep, &values->items[v], begin);
    }
    set_edges(sweep, csr, begin, memory, &part);
    CLV__TRY(clv__block_execute(run, &part, error));
  }
  return CLV_OK;
}

/* ---- A sweep with its own compiled block ---- */

clv_status clv__block_sweep_open(clv_devices *devices, uint32_t device, const clv__stages *stages, uint32_t first, uint32_t last,
                                 const clv__csr *csr, const clv__sweep *sweep, clv__block_sweep *opened, clv_error *error) {
  const clv__block_form form = clv__block_form_fixed(clv__sweep_sizes(sweep, csr->vertex_count));
  clv__block block;
  *opened = (clv__block_sweep){.allocator = clv__context_allocator(devices->context), .csr = csr, .sweep = *sweep};
  opened->memory = clv__allocate(opened->allocator, clv__sweep_bytes(sweep));
  if (opened->memory == NULL) return clv__error_memory(error, clv__sweep_bytes(sweep));
  clv_status status = clv__block_make(opened->allocator, stages, first, last, &form, &block, error);
  if (status == CLV_OK)
    status = clv__block_open(devices, device, &block, NULL, &opened->run, error);
  else
    clv__block_finish(&block);
  if (status != CLV_OK) clv__block_sweep_close(opened);
  return status;
}

void clv__block_sweep_close(clv__block_sweep *sweep) {
  clv__block_close(&sweep->run);
  if (sweep->allocator != NULL) clv__release(sweep->allocator, sweep->memory);
  sweep->memory = NULL;
}

clv_status clv__block_sweep_execute(clv__block_sweep *sweep, clv__layer_values *values, clv_error *error) {
  return clv__sweep_execute(&sweep->sweep, sweep->csr, &sweep->run, sweep->memory, values, error);
}
