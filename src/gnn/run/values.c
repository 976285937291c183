/* Prepares the inputs and outputs of a task. Values are used in place if their layout fits the block. Rows that are not
 * contiguous are gathered. For devices that need fixed shapes, everything is laid out with padding (block.h defines what the
 * padding contains). */
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/threads.h"
#include "gnn/run/own.h"

enum { LARGE_BYTES = 8 << 20 }; /* larger copies use several threads */

typedef struct work {
  const clv__gnn_run *run;
  const clv__run_layer *layer;
  const clv__run_turn *turn;
  const clv__gnn_task *said;
  const clv__portion *portion;
  const clv__block *block;
  const clv__sweep *sweep;
  const clv__run_rows *in, *out;
  bool is_static;
  char *room, *scratch;
  size_t used;
  clv__layer_values values;
} work;

typedef struct value_size {
  clv__value_shape shape;
  size_t row_bytes;
  uint64_t real, padded; /* number of rows */
} value_size;

static value_size size_of(const work *w, clv__layer_value value) {
  value_size size = {.shape = clv__layer_value_shape(&w->layer->stages, value)};
  size.row_bytes = (size.shape.columns == 0 ? 1 : size.shape.columns) * clv_dtype_size_bytes(size.shape.dtype);
  size.real = clv__layer_dimension_size(size.shape.dimension, w->said->sizes);
  size.padded = clv__layer_dimension_size(size.shape.dimension, w->said->padded);
  return size;
}

static clv_tensor tensor_of(const value_size *size, uint64_t rows, const void *data) {
  const int64_t dims[] = {(int64_t)rows, size->shape.columns};
  return clv__tensor_make(size->shape.dtype, size->shape.columns == 0 ? 1 : 2, dims, (void *)(uintptr_t)data);
}

static void *take_scratch(work *w, size_t size_bytes) {
  void *data = w->scratch + w->used;
  w->used += clv__align_up(size_bytes, CLV__ALIGNMENT);
  return data;
}

/* ---- Rows ---- */

static inline size_t row_at(const uint32_t *ids, const uint32_t *order, uint64_t i) {
  return order == NULL ? ids[i] : order[ids[i]];
}

/* Returns the first of `count` rows if they are contiguous, otherwise SIZE_MAX. */
static size_t find_run(const uint32_t *ids, const uint32_t *order, uint64_t count) {
  size_t first = count > 0 ? row_at(ids, order, 0) : 0;
  for (uint64_t i = 1; i < count; ++i) {
    if (row_at(ids, order, i) != first + i) return SIZE_MAX;
  }
  return first;
}

static void gather_rows(char *to, const char *from, size_t row_bytes, const uint32_t *ids, const uint32_t *order,
                        uint64_t count) {
#pragma omp parallel for num_threads(clv__threads_available()) if (count * row_bytes > LARGE_BYTES) schedule(static)
  for (uint64_t i = 0; i < count; ++i) memcpy(to + i * row_bytes, from + row_at(ids, order, i) * row_bytes, row_bytes);
}

static void scatter_rows(char *to, const char *from, size_t row_bytes, const uint32_t *ids, const uint32_t *order,
                         uint64_t count) {
#pragma omp parallel for num_threads(clv__threads_available()) if (count * row_bytes > LARGE_BYTES) schedule(static)
  for (uint64_t i = 0; i < count; ++i) memcpy(to + row_at(ids, order, i) * row_bytes, from + i * row_bytes, row_bytes);
}

/* ---- Inputs ---- */

/* Returns the rows of `from` in place, or copies them with zero padding. */
static const void *use_or_pad(work *w, const value_size *size, const void *from) {
  if (size->padded == size->real) return from;
  char *to = take_scratch(w, size->padded * size->row_bytes);
  memcpy(to, from, size->real * size->row_bytes);
  memset(to + size->real * size->row_bytes, 0, (size->padded - size->real) * size->row_bytes);
  return to;
}

/* Returns the portion's part of `from`, which has a row for every vertex of the graph: the first size->real of the portion's
 * rows. These are all its rows, or its targets, which come first. */
static const void *read_rows(work *w, const value_size *size, const void *from, const uint32_t *order) {
  const uint32_t *ids = w->portion->vertices;
  size_t first = find_run(ids, order, size->real);
  if (first != SIZE_MAX) return use_or_pad(w, size, (const char *)from + first * size->row_bytes);
  char *to = take_scratch(w, size->padded * size->row_bytes);
  gather_rows(to, from, size->row_bytes, ids, order, size->real);
  memset(to + size->real * size->row_bytes, 0, (size->padded - size->real) * size->row_bytes);
  return to;
}

/* Padding rows get degree 1, so that no division by zero occurs. */
static const void *read_degrees(work *w, const value_size *size) {
  float *to = take_scratch(w, size->padded * size->row_bytes);
  gather_rows((char *)to, (const char *)w->run->degrees, sizeof *to, w->portion->vertices, NULL, size->real);
  for (uint64_t i = size->real; i < size->padded; ++i) to[i] = 1;
  return to;
}

static const void *read_offsets(work *w, const value_size *size) {
  if (size->padded == size->real) return w->portion->offsets;
  uint64_t *to = take_scratch(w, size->padded * sizeof *to);
  memcpy(to, w->portion->offsets, size->real * sizeof *to);
  for (uint64_t i = size->real; i < size->padded; ++i) to[i] = w->portion->sizes.edges;
  return to;
}

static const void *read_sources(work *w, const value_size *size) {
  if (size->padded == size->real) return w->portion->sources;
  uint32_t *to = take_scratch(w, size->padded * sizeof *to);
  memcpy(to, w->portion->sources, size->real * sizeof *to);
  for (uint64_t i = size->real; i < size->padded; ++i) to[i] = (uint32_t)(w->said->padded.rows - 1);
  return to;
}

static const void *read_destinations(work *w, const value_size *size) {
  uint32_t *to = take_scratch(w, size->padded * sizeof *to);
  const uint64_t *offsets = w->portion->offsets;
  for (uint64_t v = 0; v < w->portion->sizes.targets; ++v) {
    for (uint64_t e = offsets[v]; e < offsets[v + 1]; ++e) to[e] = (uint32_t)v;
  }
  for (uint64_t i = size->real; i < size->padded; ++i) to[i] = (uint32_t)(w->said->padded.targets - 1);
  return to;
}

static const void *read_positions(work *w, const value_size *size) {
  uint32_t *to = take_scratch(w, size->padded * sizeof *to);
  for (uint64_t i = 0; i < size->padded; ++i) to[i] = (uint32_t)i;
  return to;
}

/* Returns where the portion's part of a value that crosses between blocks begins. If the value has one row per row read, returns
 * the start of the whole value, in which the rows of a portion are contiguous only if the portion is the whole subgraph. */
static char *crossing_at(const work *w, clv__layer_value value, const value_size *size) {
  char *begin = w->room + w->turn->offsets[value];
  if (size->shape.dimension == CLV__DIMENSION_TARGETS) return begin + (size_t)w->portion->from * size->row_bytes;
  if (size->shape.dimension == CLV__DIMENSION_EDGES) return begin + (size_t)w->portion->first_edge * size->row_bytes;
  return begin;
}

static const void *read_crossing(work *w, clv__layer_value value, const value_size *size) {
  const char *from = crossing_at(w, value, size);
  if (size->shape.dimension != CLV__DIMENSION_ROWS || w->portion->is_whole) return use_or_pad(w, size, from);
  char *to = take_scratch(w, size->padded * size->row_bytes);
  gather_rows(to, from, size->row_bytes, w->portion->rows, NULL, size->real);
  memset(to + size->real * size->row_bytes, 0, (size->padded - size->real) * size->row_bytes);
  return to;
}

static void read_value(work *w, clv__layer_value value) {
  const value_size size = size_of(w, value);
  const void *data;
  switch (value) {
    case CLV__VALUE_ROWS:
      data = read_rows(w, &size, w->in->data, w->in->order);
      break;
    case CLV__VALUE_OWN: /* read after ROWS, whose first rows it equals */
      data = w->values.items[CLV__VALUE_ROWS].dtype != CLV_DTYPE_NONE ? w->values.items[CLV__VALUE_ROWS].data
                                                                      : read_rows(w, &size, w->in->data, w->in->order);
      break;
    case CLV__VALUE_DEGREES:
    case CLV__VALUE_OWN_DEGREES:
      data = read_degrees(w, &size);
      break;
    case CLV__VALUE_OFFSETS:
      data = read_offsets(w, &size);
      break;
    case CLV__VALUE_SOURCES:
      data = read_sources(w, &size);
      break;
    case CLV__VALUE_DESTINATIONS:
      data = read_destinations(w, &size);
      break;
    case CLV__VALUE_POSITIONS:
      data = read_positions(w, &size);
      break;
    default:
      data = read_crossing(w, value, &size);
      break;
  }
  w->values.items[value] = tensor_of(&size, size.padded, data != NULL ? data : w->scratch);
}

/* Reserves enough scratch memory for everything that is laid out. */
static clv_status reserve_scratch(clv__gnn_run *run, work *w, clv_error *error) {
  clv__run_memory *memory = &run->scratch[w->said->device];
  size_t needed = (CLV__LAYER_VALUES + 1) * CLV__ALIGNMENT;
  for (uint32_t i = 0; i < w->block->input_count; ++i) {
    value_size size = size_of(w, w->block->inputs[i]);
    size_t bytes;
    if (!clv__multiply(size.padded, size.row_bytes, &bytes) || !clv__add(needed, bytes, &needed))
      return clv__error_memory(error, SIZE_MAX);
  }
  if (w->sweep->piece > 0) { /* room for the sweep, and for a result that is not computed in its final place */
    value_size size = size_of(w, CLV__VALUE_RESULT);
    size_t bytes;
    if (!clv__multiply(size.real, size.row_bytes, &bytes) || !clv__add(needed, bytes, &needed) ||
        !clv__add(needed, clv__sweep_bytes(w->sweep), &needed))
      return clv__error_memory(error, SIZE_MAX);
  }
  if (needed > memory->size_bytes) {
    clv__release(run->allocator, memory->data);
    memory->size_bytes = 0;
    memory->data = clv__allocate(run->allocator, needed);
    if (memory->data == NULL) return clv__error_memory(error, needed);
    memory->size_bytes = needed;
  }
  w->scratch = memory->data;
  return CLV_OK;
}

clv_status clv__run_task_reserve(clv__gnn_run *run, const clv__run_layer *layer, const clv__run_task *task, clv_error *error) {
  work w = {.run = run, .layer = layer, .said = &task->said, .block = &run->blocks[task->block].run.block, .sweep = &task->sweep};
  return reserve_scratch(run, &w, error);
}

/* ---- Outputs ---- */

/* Runs the pieces. They write to the outputs' final places, or to scratch. */
static clv_status sweep_task(work *w, clv__run_block *compiled, clv_error *error) {
  const clv__csr csr = clv__run_portion_csr(w->portion);
  for (uint32_t i = 0; i < w->block->output_count; ++i) {
    clv_tensor *made = &w->values.items[w->block->outputs[i]];
    const value_size size = size_of(w, w->block->outputs[i]);
    if (made->dtype == CLV_DTYPE_NONE) *made = tensor_of(&size, size.real, take_scratch(w, size.real * size.row_bytes));
  }
  return clv__sweep_execute(w->sweep, &csr, &compiled->run, take_scratch(w, clv__sweep_bytes(w->sweep)), &w->values, error);
}

/* Returns the first row of `out` if the targets' rows are contiguous in it, otherwise SIZE_MAX. */
static size_t result_at(const work *w) {
  return find_run(w->portion->vertices, w->out->order, w->portion->sizes.targets);
}

/* Directs an output to its final place if the device can write it there directly. */
static void place_output(work *w, clv__layer_value value) {
  const value_size size = size_of(w, value);
  char *data = NULL;
  if (w->is_static) {
    w->values.items[value] = (clv_tensor){.dtype = CLV_DTYPE_NONE};
    return;
  }
  if (value != CLV__VALUE_RESULT) {
    data = crossing_at(w, value, &size);
  } else if (result_at(w) != SIZE_MAX) {
    data = (char *)w->out->data + result_at(w) * size.row_bytes;
  }
  w->values.items[value] = data != NULL ? tensor_of(&size, size.real, data) : (clv_tensor){.dtype = CLV_DTYPE_NONE};
}

static void move_output(const work *w, clv__layer_value value, const clv_tensor *asked) {
  const value_size size = size_of(w, value);
  const clv_tensor *made = &w->values.items[value];
  if (asked->dtype != CLV_DTYPE_NONE || size.real == 0) return; /* already in place */
  if (value == CLV__VALUE_RESULT)
    scatter_rows((char *)w->out->data, made->data, size.row_bytes, w->portion->vertices, w->out->order, size.real);
  else
    memcpy(crossing_at(w, value, &size), made->data, size.real * size.row_bytes);
}

clv_status clv__run_task_execute(clv__gnn_run *run, clv__run_layer *layer, clv__run_task *task, const clv__run_rows *in,
                                 const clv__run_rows *out, char *room, uint64_t start_ns, clv_error *error) {
  clv__run_block *compiled = &run->blocks[task->block];
  clv__gnn_task *said = &task->said;
  clv_tensor asked[CLV__LAYER_VALUES];
  work w = {.run = run,
            .layer = layer,
            .turn = &layer->turns[said->turn],
            .said = said,
            .portion = task->portion,
            .block = &compiled->run.block,
            .sweep = &task->sweep,
            .in = in,
            .out = out,
            .is_static = compiled->is_static,
            .room = room};
  said->begin_ns = clv__clock_ns() - start_ns;
  CLV__TRY(clv__run_block_hold(run, compiled, error));
  CLV__TRY(reserve_scratch(run, &w, error));
  for (uint32_t i = 0; i < w.block->input_count; ++i) read_value(&w, w.block->inputs[i]);
  for (uint32_t i = 0; i < w.block->output_count; ++i) {
    place_output(&w, w.block->outputs[i]);
    asked[i] = w.values.items[w.block->outputs[i]];
  }
  said->packed_ns = clv__clock_ns() - start_ns;
  clv_status status =
      task->sweep.piece > 0 ? sweep_task(&w, compiled, error) : clv__block_execute(&compiled->run, &w.values, error);
  said->computed_ns = clv__clock_ns() - start_ns;
  for (uint32_t i = 0; i < w.block->output_count && status == CLV_OK; ++i) move_output(&w, w.block->outputs[i], &asked[i]);
  said->end_ns = clv__clock_ns() - start_ns;
  return status;
}
