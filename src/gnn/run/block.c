/* The executables of a run: one for each block of a layer and device, and, on devices that need fixed shapes, one for each
 * padded size. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "gnn/run/own.h"

enum { MOST_SHAPES = 64 }; /* limit on the shapes that a session keeps prepared */

static bool is_it(const clv__run_block *compiled, const clv__gnn_task *task, bool is_static) {
  return compiled->layer == task->layer && compiled->first == task->first && compiled->last == task->last &&
         compiled->device == task->device && compiled->is_static == is_static &&
         (!is_static || (compiled->sizes.rows == task->padded.rows && compiled->sizes.edges == task->padded.edges));
}

clv_status clv__run_block_find(clv__gnn_run *run, const clv__gnn_task *task, bool is_static, size_t *index, clv_error *error) {
  for (*index = 0; *index < run->block_count; ++*index) {
    if (!is_it(&run->blocks[*index], task, is_static)) continue;
    ++run->blocks[*index].uses;
    return CLV_OK;
  }
  if (!clv__array_reserve(run->allocator, (void **)&run->blocks, &run->block_capacity, run->block_count + 1, sizeof *run->blocks,
                          run->block_count))
    return clv__error_memory(error, sizeof *run->blocks);
  run->blocks[run->block_count++] = (clv__run_block){.layer = task->layer,
                                                     .first = task->first,
                                                     .last = task->last,
                                                     .device = task->device,
                                                     .is_static = is_static,
                                                     .sizes = task->padded,
                                                     .uses = 1};
  return CLV_OK;
}

static clv_status open_block(clv__gnn_run *run, clv__run_block *compiled, clv_error *error) {
  clv_session_options options = CLV_SESSION_OPTIONS_INIT;
  clv__block_form form = compiled->is_static ? clv__block_form_fixed(compiled->sizes) : clv__block_form_open(false);
  clv__block block;
  options.no_fallback = true; /* the plan decides where blocks run */
  options.prepared_shapes = compiled->uses < MOST_SHAPES ? compiled->uses : MOST_SHAPES;
  clv_status status = clv__block_make(run->allocator, &run->layers[compiled->layer].stages, compiled->first, compiled->last,
                                      &form, &block, error);
  if (status == CLV_OK)
    status = clv__block_open(run->devices, run->device_of[compiled->device], &block, &options, &compiled->run, error);
  if (status == CLV_OK) return CLV_OK;
  return clv__error_prefix(error, status, "layer %u on %s", compiled->layer,
                           run->schedule->machine->devices[compiled->device].name);
}

/* Does everything besides computing that a task's first run would do, before the clock starts. */
static clv_status prepare_task(clv__gnn_run *run, const clv__run_layer *layer, const clv__run_task *task, clv_error *error) {
  clv__run_block *compiled = &run->blocks[task->block];
  if (task->portion->sizes.targets == 0) return CLV_OK;
  CLV__TRY(clv__run_task_reserve(run, layer, task, error));
  if (compiled->is_static) return CLV_OK;
  clv__layer_sizes sizes = task->said.padded;
  if (task->sweep.piece > 0) sizes = clv__sweep_sizes(&task->sweep, sizes.rows);
  return clv__block_prepare(&compiled->run, sizes, error);
}

clv_status clv__run_blocks_open(clv__gnn_run *run, clv_error *error) {
  for (size_t i = 0; i < run->block_count; ++i) CLV__TRY(open_block(run, &run->blocks[i], error));
  for (uint32_t l = 0; l < run->schedule->layer_count; ++l) {
    const clv__run_layer *layer = &run->layers[l];
    for (uint32_t t = 0; t < layer->task_count; ++t) {
      clv_status status = prepare_task(run, layer, &layer->tasks[t], error);
      if (status != CLV_OK) return clv__error_prefix(error, status, "layer %u, subgraph %u", l, layer->tasks[t].said.subgraph);
    }
  }
  return CLV_OK;
}

void clv__run_blocks_close(clv__gnn_run *run) {
  for (size_t i = 0; i < run->block_count; ++i) clv__block_close(&run->blocks[i].run);
  clv__release(run->allocator, run->blocks);
  run->blocks = NULL;
  run->block_count = 0;
}
