/* See sweep.h. */
#include "gnn/sweep.h"

#include <string.h>

enum { PIECE_BYTES = 2 << 20, LEAST_PIECE = 512, FEW_PIECES = 4 };

uint32_t clv__stages_sweep_from(const clv__stages *stages) {
  if (stages->type == CLV__GNN_GCN) return stages->count;
  return stages->transform_first ? 1 : 0;
}

/* So many that the widest value between stages fits a cache. */
static uint32_t piece_of(const clv__stages *stages) {
  uint32_t in = stages->layer->in, out = clv__gnn_layer_width(stages->layer);
  uint64_t fits = PIECE_BYTES / (sizeof(float) * (uint64_t)(in > out ? in : out));
  return fits < LEAST_PIECE ? LEAST_PIECE : (uint32_t)fits;
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

bool clv__block_sweep_pays(const clv__stages *stages, const clv__csr *csr) {
  uint32_t piece = piece_of(stages);
  return clv__stages_sweep_from(stages) < stages->count && csr->vertex_count / piece >= FEW_PIECES &&
         most_edges(csr, piece) <= csr->edge_count / 2;
}

static clv_status open_piece(clv_devices *devices, uint32_t device, const clv__stages *stages, uint32_t first, uint32_t last,
                             const clv_session_options *options, clv__block_sweep *sweep, clv_error *error) {
  const clv__layer_sizes sizes = {sweep->csr->vertex_count, sweep->piece, sweep->piece_edges};
  const clv__block_form form = clv__block_form_fixed(sizes);
  clv__block block;
  clv_status status = clv__block_make(sweep->allocator, stages, first, last, &form, &block, error);
  if (status != CLV_OK) {
    clv__block_finish(&block);
    return status;
  }
  return clv__block_open(devices, device, &block, options, &sweep->run, error);
}

clv_status clv__block_sweep_open(clv_devices *devices, uint32_t device, const clv__stages *stages, uint32_t first, uint32_t last,
                                 const clv__csr *csr, const clv_session_options *options, clv__block_sweep *sweep,
                                 clv_error *error) {
  uint32_t piece = piece_of(stages);
  if (piece > csr->vertex_count) piece = csr->vertex_count;
  *sweep = (clv__block_sweep){.allocator = clv__context_allocator(devices->context), .csr = csr, .piece = piece};
  if (piece == 0) return clv__error_set(error, CLV_INVALID_ARGUMENT, "a graph without vertices is not swept");
  sweep->piece_edges = most_edges(csr, piece);
  sweep->offsets = clv__allocate(sweep->allocator, ((size_t)piece + 1) * sizeof *sweep->offsets);
  sweep->sources = clv__allocate_zero(sweep->allocator, sweep->piece_edges * sizeof *sweep->sources);
  clv_status status = CLV_OK;
  if (sweep->offsets == NULL || sweep->sources == NULL)
    status = clv__error_memory(error, sweep->piece_edges * sizeof *sweep->sources);
  if (status == CLV_OK) status = open_piece(devices, device, stages, first, last, options, sweep, error);
  if (status != CLV_OK) clv__block_sweep_close(sweep);
  return status;
}

void clv__block_sweep_close(clv__block_sweep *sweep) {
  clv__block_close(&sweep->run);
  if (sweep->allocator == NULL) return;
  clv__release(sweep->allocator, sweep->sources);
  clv__release(sweep->allocator, sweep->offsets);
  sweep->sources = NULL;
  sweep->offsets = NULL;
}

/* Rows from `begin` on of a value of the targets. */
static clv_tensor slice(const clv__block_sweep *sweep, const clv_tensor *whole, uint64_t begin) {
  clv_tensor part = *whole;
  size_t row_bytes = clv_dtype_size_bytes(whole->dtype) * (size_t)clv__dims_product(whole, 1, whole->rank);
  part.dims[0] = sweep->piece;
  if (part.data != NULL) part.data = (uint8_t *)part.data + begin * row_bytes;
  return part;
}

/* The edges of a piece. Behind the graph's last one there may be less than room is for. */
static void set_edges(clv__block_sweep *sweep, uint64_t begin, clv__layer_values *values) {
  const uint64_t *offsets = sweep->csr->offsets + begin;
  uint64_t first = offsets[0], left = sweep->csr->edge_count - first;
  const int64_t room = (int64_t)sweep->piece_edges, ends = (int64_t)sweep->piece + 1;
  void *sources = (void *)(uintptr_t)(sweep->csr->sources + first);
  for (uint32_t v = 0; v <= sweep->piece; ++v) sweep->offsets[v] = (int64_t)(offsets[v] - first);
  if (left < sweep->piece_edges) {
    if (left > 0) memcpy(sweep->sources, sources, left * sizeof *sweep->sources);
    sources = sweep->sources;
  }
  values->items[CLV__VALUE_OFFSETS] = clv__tensor_make(CLV_I64, 1, &ends, sweep->offsets);
  values->items[CLV__VALUE_SOURCES] = clv__tensor_make(CLV_I32, 1, &room, sources);
}

clv_status clv__block_sweep_execute(clv__block_sweep *sweep, clv__layer_values *values, clv_error *error) {
  const clv__block *block = &sweep->run.block;
  clv__value_set used = block->reads | block->makes;
  uint64_t n = sweep->csr->vertex_count;
  for (uint64_t p = 0; p * sweep->piece < n; ++p) {
    uint64_t begin = begin_of(n, sweep->piece, p);
    clv__layer_values part = *values;
    for (uint32_t v = 0; v < CLV__LAYER_VALUES; ++v) {
      bool is_sliced = (used & CLV__VALUE_BIT(v)) != 0 &&
                       clv__layer_value_shape(&block->stages, (clv__layer_value)v).dimension == CLV__DIMENSION_TARGETS;
      if (is_sliced) part.items[v] = slice(sweep, &values->items[v], begin);
    }
    set_edges(sweep, begin, &part);
    CLV__TRY(clv__block_execute(&sweep->run, &part, error));
  }
  return CLV_OK;
}
