/* Uses synthetic values: the edges are distributed evenly over the targets, with random sources among the rows. See point.h. */
#include "gnn/measure/point.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "cost/measure.h"
#include "gnn/data/edges.h"
#include "gnn/model/block_memory.h"
#include "gnn/run/sweep.h"
#include "graph/view.h"
#include "plan/plan.h"

enum { MOST_RUNS = 64, FRESH = 4099 };
#define LONG_NS UINT64_C(300000000) /* stop repeating once the runs have taken this long in total */

static const clv__machine_device *device_of(const clv__measured_block *b) {
  return &b->planning->machine.devices[b->device];
}

static bool runs_fixed(const clv__measured_block *b) {
  return clv__device_runs_fixed(&b->planning->devices->items[b->device]);
}

static uint64_t edges_before(clv__layer_sizes sizes, uint64_t target) {
  return sizes.targets == 0 ? 0 : (uint64_t)((__uint128_t)sizes.edges * target / sizes.targets);
}

/* ---- Values ---- */

/* Fills features and intermediate values. The numbers do not affect the time, so a few are repeated. */
static void fill_numbers(float *numbers, uint64_t count, uint64_t *seed) {
  uint64_t fresh = count < FRESH ? count : FRESH;
  for (uint64_t i = 0; i < fresh; ++i) {
    uint64_t chance = *seed = clv__mix64(*seed);
    numbers[i] = (float)(chance >> 40) / (float)(1 << 24) - 0.5f;
  }
  for (uint64_t i = fresh; i < count; i += FRESH)
    memcpy(numbers + i, numbers, sizeof *numbers * (count - i < FRESH ? count - i : FRESH));
}

static clv_status fill(const clv_allocator *allocator, const clv__stages *stages, clv__layer_value value, clv__layer_sizes sizes,
                       uint64_t *seed, clv_tensor *tensor, clv_error *error) {
  clv__value_shape shape = clv__layer_value_shape(stages, value);
  uint64_t rows = clv__layer_dimension_size(shape.dimension, sizes), columns = shape.columns == 0 ? 1 : shape.columns;
  uint64_t bytes = clv__layer_value_bytes(stages, value, sizes);
  void *data = clv__allocate(allocator, bytes);
  if (data == NULL) return clv__error_memory(error, bytes);
  *tensor = clv__tensor_make(shape.dtype, shape.columns == 0 ? 1 : 2, (const int64_t[]){(int64_t)rows, shape.columns}, data);
  bool has_meaning = value != CLV__VALUE_ROWS && value != CLV__VALUE_OWN && value < CLV__VALUE_SCALE;
  if (!has_meaning) fill_numbers(data, rows * columns, seed);
  for (uint64_t i = 0; i < rows * columns && has_meaning; ++i) {
    uint64_t chance = *seed = clv__mix64(*seed);
    switch (value) {
      case CLV__VALUE_OFFSETS: /* distributes the edges evenly */
        ((int64_t *)data)[i] = (int64_t)edges_before(sizes, i);
        break;
      case CLV__VALUE_SOURCES:
        ((int32_t *)data)[i] = (int32_t)(chance % (sizes.rows == 0 ? 1 : sizes.rows));
        break;
      case CLV__VALUE_DESTINATIONS:
        ((int32_t *)data)[i] = (int32_t)((__uint128_t)sizes.targets * i / (sizes.edges == 0 ? 1 : sizes.edges));
        break;
      case CLV__VALUE_POSITIONS:
        ((int32_t *)data)[i] = (int32_t)i;
        break;
      case CLV__VALUE_DEGREES:
      case CLV__VALUE_OWN_DEGREES:
        ((float *)data)[i] = 1.0f + (float)(chance % 30);
        break;
      default:
        break;
    }
  }
  return CLV_OK;
}

/* ---- A block at work ---- */

typedef struct working {
  const clv__measured_block *block;
  const clv_allocator *allocator;
  clv__layer_sizes sizes;
  clv__block_run run;
  clv__layer_values values;
  clv__csr csr;
  clv__sweep sweep;   /* sweep.piece is 0 if the block does not run in pieces */
  void *sweep_memory; /* NULL if the block does not run in pieces */
} working;

/* Finds the pieces in which a run of a plan executes the block (sweep.h). Only blocks of devices that work in host memory have
 * pieces. */
static clv__sweep find_sweep(const clv__measured_block *b, const clv__csr *csr) {
  if (runs_fixed(b) || device_of(b)->space != 0) return (clv__sweep){0, 0};
  return clv__sweep_find(&b->planning->stages[b->layer], b->first, b->last, csr);
}

/* Allocates the memory for the pieces' results. */
static clv_status prepare_sweep(working *w, clv_error *error) {
  const clv__stages *stages = &w->block->planning->stages[w->block->layer];
  w->sweep_memory = clv__allocate(w->allocator, clv__sweep_bytes(&w->sweep));
  if (w->sweep_memory == NULL) return clv__error_memory(error, clv__sweep_bytes(&w->sweep));
  for (uint32_t i = 0; i < w->run.block.output_count; ++i) {
    clv__layer_value value = w->run.block.outputs[i];
    clv__value_shape shape = clv__layer_value_shape(stages, value);
    const int64_t dims[] = {(int64_t)clv__layer_dimension_size(shape.dimension, w->sizes), shape.columns};
    uint64_t bytes = clv__layer_value_bytes(stages, value, w->sizes);
    void *data = clv__allocate(w->allocator, bytes);
    if (data == NULL) return clv__error_memory(error, bytes);
    w->values.items[value] = clv__tensor_make(shape.dtype, shape.columns == 0 ? 1 : 2, dims, data);
  }
  return clv__block_prepare(&w->run, clv__sweep_sizes(&w->sweep, w->sizes.rows), error);
}

/* Compiles the block and prepares its inputs. `compile_ns` is 0 if an earlier run had compiled it. */
static clv_status begin(working *w, uint64_t *compile_ns, clv_error *error) {
  const clv__measured_block *b = w->block;
  const clv__gnn_planning *p = b->planning;
  const clv__stages *stages = &p->stages[b->layer];
  clv_session_options options = CLV_SESSION_OPTIONS_INIT;
  clv__block_form form = runs_fixed(b) ? clv__block_form_fixed(w->sizes) : clv__block_form_open(false);
  clv__block block;
  uint64_t seed = b->options->seed, begin_ns = clv__clock_ns();
  options.no_fallback = true;
  CLV__TRY(clv__block_make(w->allocator, stages, b->first, b->last, &form, &block, error));
  CLV__TRY(clv__block_open(p->devices, b->device, &block, &options, &w->run, error));
  *compile_ns = clv__block_was_compiled(&w->run) ? clv__clock_ns() - begin_ns : 0;
  for (uint32_t i = 0; i < w->run.block.input_count; ++i) {
    clv__layer_value value = w->run.block.inputs[i];
    CLV__TRY(fill(w->allocator, stages, value, w->sizes, &seed, &w->values.items[value], error));
  }
  const clv_tensor *offsets = &w->values.items[CLV__VALUE_OFFSETS], *sources = &w->values.items[CLV__VALUE_SOURCES];
  if (offsets->dtype != CLV_DTYPE_NONE && sources->dtype != CLV_DTYPE_NONE) {
    w->csr = (clv__csr){(uint32_t)w->sizes.targets, w->sizes.edges, offsets->data, sources->data};
    w->sweep = find_sweep(b, &w->csr);
  }
  return w->sweep.piece > 0 ? prepare_sweep(w, error) : clv__block_prepare(&w->run, w->sizes, error);
}

static clv_status run_once(working *w, clv_error *error) {
  if (w->sweep.piece > 0) return clv__sweep_execute(&w->sweep, &w->csr, &w->run, w->sweep_memory, &w->values, error);
  for (uint32_t o = 0; o < w->run.block.output_count; ++o)
    w->values.items[w->run.block.outputs[o]] = (clv_tensor){.dtype = CLV_DTYPE_NONE};
  return clv__block_execute(&w->run, &w->values, error);
}

static clv_status time_runs(working *w, clv__measure *measure, clv_error *error) {
  uint64_t samples[MOST_RUNS], sum_ns = 0;
  uint32_t runs = w->block->options->runs < MOST_RUNS ? w->block->options->runs : MOST_RUNS;
  for (uint32_t i = 0; i <= runs; ++i) { /* the first run warms up */
    uint64_t begin_ns = clv__clock_ns();
    CLV__TRY(run_once(w, error));
    uint64_t took_ns = clv__clock_ns() - begin_ns;
    if (i == 0) continue;
    samples[i - 1] = took_ns;
    sum_ns += took_ns;
    if (sum_ns > LONG_NS) runs = i;
  }
  *measure = clv__measure_of(samples, runs);
  return CLV_OK;
}

static void end(working *w) {
  for (uint32_t i = 0; i < w->run.block.input_count; ++i)
    clv__release(w->allocator, w->values.items[w->run.block.inputs[i]].data);
  for (uint32_t o = 0; w->sweep.piece > 0 && o < w->run.block.output_count; ++o)
    clv__release(w->allocator, w->values.items[w->run.block.outputs[o]].data);
  clv__release(w->allocator, w->sweep_memory);
  if (w->run.block.form.is_fixed) clv__block_forget(&w->run);
  clv__block_close(&w->run);
}

double clv__measured_copies_ns(const clv__measured_block *b, clv__layer_sizes sizes) {
  const clv__machine_device *about = device_of(b);
  const clv__stages *stages = &b->planning->stages[b->layer];
  clv__value_set reads = clv__block_reads(stages, b->first, b->last, about->is_static && sizes.rows == sizes.targets);
  double in_ns = 0, out_ns = 0;
  if (about->space == 0) return 0;
  const clv__copy_table *in = clv__tables_find_copy(b->tables, CLV__TABLE_HOST, about->name);
  const clv__copy_table *out = clv__tables_find_copy(b->tables, about->name, CLV__TABLE_HOST);
  if (in == NULL || !clv__copy_table_time(in, clv__layer_set_bytes(stages, reads, sizes), &in_ns)) in_ns = 0;
  uint64_t made_bytes = clv__layer_set_bytes(stages, clv__block_makes(stages, b->first, b->last), sizes);
  if (out == NULL || !clv__copy_table_time(out, made_bytes, &out_ns)) out_ns = 0;
  return in_ns + out_ns;
}

clv_status clv__measure_block(const clv__measured_block *b, clv__layer_sizes sizes, clv__table_point *point, clv_error *error) {
  const clv__machine_device *about = device_of(b);
  working w = {.block = b, .allocator = b->planning->arena.allocator, .sizes = sizes};
  clv__measure measure = {0};
  uint64_t compile_ns = 0;
  clv_status status = begin(&w, &compile_ns, error);
  if (status == CLV_OK) status = time_runs(&w, &measure, error);
  if (status == CLV_OK) {
    double time_ns = (double)measure.time_ns - clv__measured_copies_ns(b, sizes);
    point->time_ns = fmax(time_ns, 0.01 * (double)measure.time_ns);
    point->spread_ns = 2.0 * (double)measure.spread_ns;
    point->peak_bytes = clv__block_peak_bytes(&w.run, about->space, b->planning->devices);
    if (w.sweep.piece > 0) point->peak_bytes += clv__sweep_bytes(&w.sweep);
    if (about->is_static) point->compile_ns = (double)compile_ns;
  } else if (status == CLV_OUT_OF_MEMORY || status == CLV_TOO_LARGE || (status == CLV_NOT_SUPPORTED && runs_fixed(b))) {
    clv__error_clear(error); /* a device that compiles for one size may reject some sizes, for lack of memory */
    point->infeasible = true;
    status = CLV_OK;
  }
  end(&w);
  return status;
}

/* ---- Two executables in turns ---- */

/* Two copies of the inputs: the two runs of a pair read different memory, like the runs of two subgraphs. */
typedef struct pair {
  working w;
  clv_tensor inputs[2][CLV__LAYER_VALUES];
} pair;

static clv_status begin_pair(pair *p, clv_error *error) {
  working *w = &p->w;
  uint64_t compile_ns, seed = w->block->options->seed + 1;
  CLV__TRY(begin(w, &compile_ns, error));
  for (uint32_t i = 0; i < w->run.block.input_count; ++i) {
    clv__layer_value value = w->run.block.inputs[i];
    p->inputs[0][value] = w->values.items[value];
    CLV__TRY(
        fill(w->allocator, &w->block->planning->stages[w->block->layer], value, w->sizes, &seed, &p->inputs[1][value], error));
  }
  return CLV_OK;
}

static void end_pair(pair *p) {
  for (uint32_t i = 0; i < p->w.run.block.input_count; ++i) {
    clv__layer_value value = p->w.run.block.inputs[i];
    if (p->inputs[0][value].data != NULL) p->w.values.items[value] = p->inputs[0][value];
    clv__release(p->w.allocator, p->inputs[1][value].data);
  }
  end(&p->w);
}

/* Runs the executable once with each copy of the inputs. The first run follows a run of the other executable, the second run a
 * run of the same executable. */
static clv_status run_pair(pair *p, uint64_t took_ns[2], clv_error *error) {
  for (uint32_t which = 0; which < 2; ++which) {
    for (uint32_t i = 0; i < p->w.run.block.input_count; ++i)
      p->w.values.items[p->w.run.block.inputs[i]] = p->inputs[which][p->w.run.block.inputs[i]];
    uint64_t begin_ns = clv__clock_ns();
    CLV__TRY(run_once(&p->w, error));
    took_ns[which] = clv__clock_ns() - begin_ns;
  }
  return CLV_OK;
}

clv_status clv__measure_turns(const clv__measured_block *b, clv__layer_sizes one, clv__layer_sizes other, uint32_t rounds,
                              uint64_t *samples_ns, clv_error *error) {
  const clv_allocator *allocator = b->planning->arena.allocator;
  const clv__layer_sizes sizes[2] = {one, other};
  pair *pairs = clv__allocate_zero(allocator, 2 * sizeof *pairs);
  if (pairs == NULL) return clv__error_memory(error, 2 * sizeof *pairs);
  clv_status status = CLV_OK;
  for (uint32_t i = 0; i < 2 && status == CLV_OK; ++i) {
    pairs[i].w = (working){.block = b, .allocator = allocator, .sizes = sizes[i]};
    status = begin_pair(&pairs[i], error);
  }
  for (uint32_t r = 0; r <= rounds && status == CLV_OK; ++r) { /* the first round warms up */
    for (uint32_t i = 0; i < 2 && status == CLV_OK; ++i) {
      uint64_t took_ns[2];
      status = run_pair(&pairs[i], took_ns, error);
      if (status == CLV_OK && r > 0) samples_ns[2 * (r - 1) + i] = took_ns[0] > took_ns[1] ? took_ns[0] - took_ns[1] : 0;
    }
  }
  for (uint32_t i = 0; i < 2; ++i) {
    if (pairs[i].w.allocator != NULL) end_pair(&pairs[i]);
  }
  clv__release(allocator, pairs);
  return status;
}

/* ---- Estimates of the device's speed model ---- */

/* Sums the times that the device's speed model gives for the block's plan: for each partition, one launch and its nodes. */
static clv_status add_up(const clv_plan *plan, const clv__device *device, double *seconds, clv_error *error) {
  const clv_backend *backend = device->backend;
  bool states = backend->node_seconds != NULL && backend->launch_seconds != NULL;
  *seconds = 0;
  for (uint32_t p = 0; p < plan->partition_count && states; ++p) {
    const clv_graph_view *view = plan->partitions[p].view;
    if (plan->partitions[p].is_hosted) continue;
    double said = backend->launch_seconds(device->handle);
    for (uint32_t n = 0; n < view->node_count && said >= 0; ++n) {
      double node = backend->node_seconds(device->handle, view, n);
      said = node >= 0 ? said + node : -1;
    }
    states = said >= 0;
    *seconds += said;
  }
  if (states) return CLV_OK;
  return clv__error_set(error, CLV_NOT_SUPPORTED, "'%s' has no speed model for this block: measure the device instead",
                        device->name);
}

/* Like find_sweep(), but from the sizes alone: assumes that the edges are distributed evenly over the targets. */
static clv_status model_sweep(const clv__measured_block *b, clv__layer_sizes sizes, clv__sweep *sweep, clv_error *error) {
  const clv_allocator *allocator = b->planning->arena.allocator;
  size_t size_bytes = ((size_t)sizes.targets + 1) * sizeof(uint64_t);
  uint64_t *offsets = clv__allocate(allocator, size_bytes);
  if (offsets == NULL) return clv__error_memory(error, size_bytes);
  for (uint64_t v = 0; v <= sizes.targets; ++v) offsets[v] = edges_before(sizes, v);
  const clv__csr csr = {(uint32_t)sizes.targets, sizes.edges, offsets, NULL};
  *sweep = find_sweep(b, &csr);
  clv__release(allocator, offsets);
  return CLV_OK;
}

clv_status clv__model_block(const clv__measured_block *b, clv__layer_sizes sizes, clv__table_point *point, clv_error *error) {
  const clv__gnn_planning *p = b->planning;
  clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
  clv_assignment pin = {.pattern = "*", .device = p->devices->items[b->device].name};
  clv__block block;
  clv__sweep sweep;
  clv_plan *plan = NULL;
  double seconds = 0;
  options.pins = &pin;
  options.pin_count = 1;
  CLV__TRY(model_sweep(b, sizes, &sweep, error));
  clv__block_form form = clv__block_form_fixed(sweep.piece > 0 ? clv__sweep_sizes(&sweep, sizes.rows) : sizes);
  CLV__TRY(clv__block_make(p->arena.allocator, &p->stages[b->layer], b->first, b->last, &form, &block, error));
  clv_status status = clv_plan_make(block.graph, p->devices, &options, &plan, error);
  if (status == CLV_OK) status = add_up(plan, &p->devices->items[b->device], &seconds, error);
  point->origin = CLV__SYNTHETIC;
  point->time_ns = 1e9 * seconds * (double)clv__sweep_pieces(&sweep, sizes.targets);
  clv_plan_destroy(plan);
  clv__block_finish(&block);
  return status;
}
