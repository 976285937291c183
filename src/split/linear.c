/* The linear cut: the node order is walked once, and a partition ends where the device changes or a limit of the device is met.
 */
#include <string.h>

#include "split/plan.h"

/* How many values from outside `nodes` would read (constants apart). Exact: each value once. `seen` marks values by `stamp`. */
static uint32_t count_new_inputs(const clv_plan *plan, clv_node_id node, clv_node_id first, uint32_t *seen, uint32_t stamp) {
  const clv__node *at = &plan->graph->nodes[node];
  uint32_t fresh = 0;
  for (uint32_t i = 0; i < at->input_count; ++i) {
    clv_value_id value = at->inputs[i];
    if (value == CLV__NO_ID || seen[value] == stamp || plan->shapes->types[value].data != NULL) continue;
    clv_node_id producer = plan->graph->values[value].producer;
    /* A producer at or after `first` is in this partition: the walk is linear, and other devices' nodes ended the run. */
    if (producer != CLV__NO_ID && producer >= first) continue;
    seen[value] = stamp;
    ++fresh;
  }
  return fresh;
}

clv_status clv__split_linear(clv_plan *plan, clv_error *error) {
  const clv_graph *graph = plan->graph;
  const clv_allocator *allocator = graph->allocator;
  clv_status status = CLV_OK;
  clv__partition *partitions = NULL;
  size_t count = 0, capacity = 0;
  clv_node_id *run = clv__allocate(allocator, (size_t)graph->node_count * sizeof *run);
  uint32_t *seen = clv__allocate_zero(allocator, (size_t)graph->value_count * sizeof *seen);
  uint32_t run_count = 0, run_inputs = 0;
  if (run == NULL || seen == NULL) {
    status = clv__error_memory(error, graph->value_count * sizeof *seen);
    goto cleanup;
  }
  for (clv_node_id n = 0; n <= graph->node_count; ++n) {
    bool end = n == graph->node_count;
    if (!end && plan->placement.devices[n] == CLV__NO_ID) continue; /* folded */
    uint32_t device = run_count > 0 ? plan->placement.devices[run[0]] : CLV__NO_ID;
    bool cut = run_count > 0 && (end || plan->placement.devices[n] != device);
    if (run_count > 0 && !cut) {
      const clv_device_info *info = &plan->devices->items[device].info;
      uint32_t stamp = (uint32_t)count + 1;
      uint32_t inputs = run_inputs + count_new_inputs(plan, n, run[0], seen, stamp);
      cut = (info->max_partition_nodes > 0 && run_count >= info->max_partition_nodes) ||
            (info->max_partition_inputs > 0 && inputs > info->max_partition_inputs);
      if (!cut) run_inputs = inputs;
    }
    if (cut) {
      if (!clv__array_reserve(allocator, (void **)&partitions, &capacity, count + 1, sizeof *partitions, count)) {
        status = clv__error_memory(error, sizeof *partitions);
        goto cleanup;
      }
      CLV__TRY_GOTO(clv__partition_init(plan, &partitions[count], device, run, run_count, error));
      ++count;
      run_count = 0;
    }
    if (end) break;
    if (run_count == 0) run_inputs = count_new_inputs(plan, n, n, seen, (uint32_t)count + 1);
    run[run_count++] = n;
  }
  plan->partitions = clv__arena_copy(&plan->arena, partitions, count * sizeof *partitions);
  if (plan->partitions == NULL)
    status = clv__error_memory(error, count * sizeof *partitions);
  else
    plan->partition_count = (uint32_t)count;
cleanup:
  clv__release(allocator, partitions);
  clv__release(allocator, seen);
  clv__release(allocator, run);
  return status;
}
