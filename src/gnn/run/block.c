/* The executables of a run: one for each block of a layer and device, and, on devices that need fixed shapes or have a memory
 * limit, one for each size. If a device's memory is too small for all of its blocks at once, they take turns (plan/memory.h). */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "device/memory_pool.h"
#include "gnn/run/own.h"

enum { MOST_SHAPES = 64 }; /* limit on the shapes that a session keeps prepared */

static bool is_it(const clv__run_block *compiled, const clv__gnn_task *task) {
  return compiled->layer == task->layer && compiled->first == task->first && compiled->last == task->last &&
         compiled->device == task->device &&
         (!compiled->is_fixed || (compiled->sizes.rows == task->padded.rows && compiled->sizes.targets == task->padded.targets &&
                                  compiled->sizes.edges == task->padded.edges));
}

clv_status clv__run_block_find(clv__gnn_run *run, const clv__gnn_task *task, bool is_static, size_t *index, clv_error *error) {
  for (*index = 0; *index < run->block_count; ++*index) {
    if (!is_it(&run->blocks[*index], task)) continue;
    ++run->blocks[*index].uses;
    return CLV_OK;
  }
  const clv__device *device = &run->devices->items[run->device_of[task->device]];
  if (!clv__array_reserve(run->allocator, (void **)&run->blocks, &run->block_capacity, run->block_count + 1, sizeof *run->blocks,
                          run->block_count))
    return clv__error_memory(error, sizeof *run->blocks);
  run->blocks[run->block_count++] = (clv__run_block){.layer = task->layer,
                                                     .first = task->first,
                                                     .last = task->last,
                                                     .device = task->device,
                                                     .is_static = is_static,
                                                     .is_fixed = clv__device_runs_fixed(device),
                                                     .sizes = task->padded,
                                                     .uses = 1};
  return CLV_OK;
}

static clv_status open_block(clv__gnn_run *run, clv__run_block *compiled, clv_error *error) {
  clv_session_options options = CLV_SESSION_OPTIONS_INIT;
  clv__block_form form = compiled->is_fixed ? clv__block_form_fixed(compiled->sizes) : clv__block_form_open(false);
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

/* Before the run's clock starts, does everything besides computing that the first run of a task would do. */
static clv_status prepare_task(clv__gnn_run *run, const clv__run_layer *layer, const clv__run_task *task, clv_error *error) {
  clv__run_block *compiled = &run->blocks[task->block];
  if (task->portion->sizes.targets == 0) return CLV_OK;
  CLV__TRY(clv__run_task_reserve(run, layer, task, error));
  if (compiled->is_fixed) return CLV_OK; /* a block of fixed sizes was prepared when it was opened */
  clv__layer_sizes sizes = task->said.padded;
  if (task->sweep.piece > 0) sizes = clv__sweep_sizes(&task->sweep, sizes.rows);
  return clv__block_prepare(&compiled->run, sizes, error);
}

/* ---- Devices with a memory limit ---- */

static bool is_limited(const clv__gnn_run *run, const clv__run_block *compiled) {
  return run->memory.budget_bytes[compiled->device] > 0;
}

static bool has_room(const clv__gnn_run *run, const clv__run_block *compiled) {
  return compiled->need_bytes <= run->memory.budget_bytes[compiled->device] - run->spaces[compiled->device].open_bytes;
}

/* Closes the least recently used of the device's open blocks. */
static void close_oldest(clv__gnn_run *run, uint32_t device) {
  clv__run_block *oldest = NULL;
  for (size_t i = 0; i < run->block_count; ++i) {
    clv__run_block *block = &run->blocks[i];
    if (block->device == device && block->is_open && (oldest == NULL || block->used_at < oldest->used_at)) oldest = block;
  }
  if (oldest == NULL) return;
  clv__block_close(&oldest->run);
  oldest->is_open = false;
  run->spaces[device].open_bytes -= oldest->need_bytes;
}

/* Updates the most memory that the device's open blocks have taken at one time, as their sessions report it. */
static void count_taken(clv__gnn_run *run, uint32_t device) {
  uint64_t taken = 0;
  uint32_t space = run->devices->items[run->device_of[device]].space;
  for (size_t i = 0; i < run->block_count; ++i) {
    const clv__run_block *block = &run->blocks[i];
    if (block->device == device && block->is_open) taken += clv__block_peak_bytes(&block->run, space, run->devices);
  }
  if (taken > run->spaces[device].taken_bytes) run->spaces[device].taken_bytes = taken;
}

/* Opens a block: closes other blocks of its device until there is room, and frees their memory. The caller holds memory_lock, so
 * no other device of the run opens a block in between and takes a part of the memory that was given back. */
static clv_status take_turn(clv__gnn_run *run, clv__run_block *compiled, clv_error *error) {
  clv__run_space *space = &run->spaces[compiled->device];
  while (!has_room(run, compiled)) close_oldest(run, compiled->device);
  clv__memory_pool_trim(run->devices);
  CLV__TRY(open_block(run, compiled, error));
  compiled->is_open = true;
  space->open_bytes += compiled->need_bytes;
  count_taken(run, compiled->device);
  return CLV_OK;
}

clv_status clv__run_block_hold(clv__gnn_run *run, clv__run_block *compiled, clv_error *error) {
  clv_status status = CLV_OK;
  if (!is_limited(run, compiled)) return status;
  pthread_mutex_lock(&run->memory_lock);
  compiled->used_at = ++run->spaces[compiled->device].uses;
  if (!compiled->is_open) status = take_turn(run, compiled, error);
  pthread_mutex_unlock(&run->memory_lock);
  return status;
}

/* Determines the memory that each block needs, before any block is opened. */
static clv_status count_needs(clv__gnn_run *run, clv_error *error) {
  clv__memory_count_none(&run->memory);
  for (size_t i = 0; i < run->block_count; ++i) {
    clv__run_block *block = &run->blocks[i];
    const clv__memory_key key = {block->layer, block->device, block->first, block->last, block->sizes};
    clv__memory_entry *entry;
    if (!is_limited(run, block)) continue;
    CLV__TRY(clv__gnn_memory_count(&run->memory, &key, error));
    CLV__TRY(clv__gnn_memory_need(&run->memory, &key, &entry, error));
    block->need_bytes = entry->need.total_bytes;
  }
  return CLV_OK;
}

/* Opens all blocks; on a device with a memory limit, as many as there is room for. */
static clv_status open_all(clv__gnn_run *run, clv_error *error) {
  CLV__TRY(count_needs(run, error));
  for (size_t i = 0; i < run->block_count; ++i) {
    clv__run_block *block = &run->blocks[i];
    if (!is_limited(run, block))
      CLV__TRY(open_block(run, block, error));
    else if (has_room(run, block))
      CLV__TRY(clv__run_block_hold(run, block, error));
  }
  return CLV_OK;
}

clv_status clv__run_blocks_open(clv__gnn_run *run, clv_error *error) {
  CLV__TRY(open_all(run, error));
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
