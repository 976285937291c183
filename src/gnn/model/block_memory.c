/* Computes a block's memory on its device, before and after it is compiled, and whether it was compiled. These functions have a
 * file of their own because the headers of sessions and those of prices each define a type clv__share. */
#include <string.h>

#include "device/memory_pool.h"
#include "execute/session.h"
#include "gnn/model/block_memory.h"
#include "plan/plan.h"

/* A generous guess of the memory that the kernels of a block need besides its values and weights. It replaces a question to the
 * compiler if the whole block, with this guess, needs at most 1 / SMALL_PART of the budget. */
#define SCRATCH_GUESS_BYTES ((uint64_t)16 << 20)
#define SMALL_PART 8

/* Adds the bytes of a value, aligned as in the device's memory. */
static void add_value(const clv_graph_view *view, uint32_t value, uint64_t alignment, uint64_t *total) {
  size_t size_bytes;
  if (!clv__tensor_size_bytes(clv__view_type(view, value), &size_bytes)) size_bytes = SIZE_MAX / 4;
  uint64_t bytes = clv__align_up((uint64_t)size_bytes + (size_bytes == 0), alignment);
  if (__builtin_add_overflow(*total, bytes, total)) *total = UINT64_MAX / 4;
}

/* Counts weights and boundary values. `inner` receives the bytes of all values inside the block. */
static void count_values(const clv_graph_view *view, uint64_t alignment, clv__block_need *need, uint64_t *inner) {
  uint64_t all = 0;
  for (uint32_t v = 0; v < view->value_count; ++v) {
    bool is_constant = clv__value_is_constant(view->graph, view->types, view->values[v]);
    add_value(view, v, alignment, is_constant ? &need->weight_bytes : &all);
  }
  for (uint32_t i = 0; i < view->input_count; ++i) add_value(view, view->inputs[i], alignment, &need->value_bytes);
  for (uint32_t i = 0; i < view->output_count; ++i) add_value(view, view->outputs[i], alignment, &need->value_bytes);
  *inner = all > need->value_bytes ? all - need->value_bytes : 0;
}

static clv_status ask_compiler(const clv__device *device, const clv_graph_view *view, clv__block_need *need, clv_error *error) {
  clv_compile_options options = {.struct_size = sizeof options};
  clv_executable_info info = {.struct_size = sizeof info};
  clv_executable *executable = NULL;
  clv_status status = device->backend->compile(device->handle, view, &options, &executable, error);
  need->fits = status == CLV_OK;
  /* The device supports the block, so these errors reject only this size: smaller ones may run. */
  if (status == CLV_TOO_LARGE || status == CLV_NOT_SUPPORTED) {
    clv__error_clear(error);
    return CLV_OK;
  }
  if (status != CLV_OK) return clv__error_prefix(error, status, "%s", device->name);
  device->backend->executable_info(device->handle, executable, &info);
  need->scratch_bytes = clv__align_up(info.scratch_bytes, CLV__ALIGNMENT) + clv__align_up(info.resident_bytes, CLV__ALIGNMENT);
  device->backend->executable_destroy(device->handle, executable);
  return CLV_OK;
}

/* Asks the compiler about each node by itself and adds up the answers, because the compiler rejects a block that does not fit
 * into one partition. Apart from its inner values, a partition needs no more memory than its nodes together. */
static clv_status ask_by_node(const clv__device *device, const clv_graph_view *view, clv__block_need *need, clv_error *error) {
  clv__arena arena;
  clv_status status = CLV_OK;
  clv__arena_init(&arena, view->graph->allocator);
  for (uint32_t n = 0; status == CLV_OK && need->fits && n < view->node_count; ++n) {
    clv__block_need one = {0};
    clv_graph_view *node;
    status = clv__view_create(view->graph, view->types, &view->nodes[n], 1, NULL, &arena, &node, error);
    if (status == CLV_OK) status = ask_compiler(device, node, &one, error);
    need->fits = one.fits;
    need->scratch_bytes += one.scratch_bytes;
  }
  clv__arena_finish(&arena);
  return status;
}

static clv_status count(clv_devices *devices, uint32_t device, const clv_graph_view *view, uint64_t budget_bytes,
                        clv__block_need *need, clv_error *error) {
  const clv__device *about = &devices->items[device];
  const clv_device_info *info = &about->info;
  uint64_t alignment = clv__devices_alignment(devices, about->space), inner, peak, held, guess;
  count_values(view, alignment, need, &inner);
  peak = clv__view_peak_bytes(view->graph->allocator, view);
  /* The block needs at least this much memory, even if its kernels need no scratch beyond its values. */
  held = need->weight_bytes + (peak > need->value_bytes ? peak : need->value_bytes);
  guess = need->weight_bytes + need->value_bytes + inner + SCRATCH_GUESS_BYTES;
  bool is_split = (info->max_partition_nodes > 0 && view->node_count > info->max_partition_nodes) ||
                  (info->max_partition_inputs > 0 && clv__view_limited_inputs(view) > info->max_partition_inputs);
  need->fits = held <= budget_bytes;
  if (need->fits && guess <= budget_bytes / SMALL_PART) {
    need->scratch_bytes = inner + SCRATCH_GUESS_BYTES;
  } else if (need->fits && is_split) {
    CLV__TRY(ask_by_node(about, view, need, error));
  } else if (need->fits) {
    CLV__TRY(ask_compiler(about, view, need, error));
  }
  /* If the block is split into partitions, an inner value may cross between two of them, and may be in the scratch of each. */
  if (is_split) {
    need->value_bytes += inner;
    need->scratch_bytes += inner;
  }
  /* An estimate, because a compiler that rejects the size does not say how much memory is missing. */
  if (!need->fits) need->scratch_bytes = inner;
  need->total_bytes = need->weight_bytes + need->value_bytes + need->scratch_bytes;
  if (!need->fits && need->total_bytes <= budget_bytes) need->total_bytes = budget_bytes + 1;
  need->fits = need->fits && need->total_bytes <= budget_bytes;
  return CLV_OK;
}

clv_status clv__block_need_of(clv_devices *devices, uint32_t device, const clv__block *block, uint64_t budget_bytes,
                              clv__block_need *need, clv_error *error) {
  clv__block_view whole;
  *need = (clv__block_need){.fits = false};
  CLV__TRY(clv__block_view_make(block, &whole, error));
  /* The compiler puts the executable into the device's memory, where the pool may keep what earlier runs have freed. */
  clv__memory_pool_trim(devices);
  clv__devices_lock(devices);
  clv_status status = count(devices, device, whole.view, budget_bytes, need, error);
  clv__devices_unlock(devices);
  clv__block_view_finish(&whole);
  return status;
}

uint64_t clv__block_peak_bytes(const clv__block_run *run, uint32_t space, clv_devices *devices) {
  clv__session_stats stats;
  clv__session_stats_get(run->session, &stats);
  uint64_t peak_bytes = stats.weight_bytes + stats.resident_bytes;
  for (uint32_t s = 0; s < stats.space_count; ++s) {
    if (strcmp(stats.spaces[s].name, devices->spaces[space]) == 0)
      peak_bytes += stats.spaces[s].planned_bytes + stats.spaces[s].scratch_bytes;
  }
  return peak_bytes;
}

void clv__block_forget(clv__block_run *run) {
  if (run->session != NULL) clv__session_forget(run->session);
}

bool clv__block_was_compiled(const clv__block_run *run) {
  for (uint32_t p = 0; p < run->plan->partition_count; ++p) {
    clv__source source = clv__session_origin(run->session, p)->source;
    if (source != CLV__SOURCE_COMPILED && source != CLV__SOURCE_NOT_KEPT && source != CLV__SOURCE_HOSTED) return false;
  }
  return true;
}
