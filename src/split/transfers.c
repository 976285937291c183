/* Transfers and steps. The partitions' order is given; a value is copied to a memory space at most once, just before the first
 * partition there that reads it, and stays resident in both. Between two devices' memories it passes through the host's. */
#include <stdlib.h>
#include <string.h>

#include "split/plan.h"

typedef struct work {
  clv_plan *plan;
  uint32_t *resident; /* by value: bit per memory space */
  uint32_t *maker;    /* [value * space_count + space]: the step that puts it there, or CLV__NO_ID */
  clv__transfer *transfers;
  size_t transfer_count, transfer_capacity;
  clv__step *steps;
  size_t step_count, step_capacity;
  uint32_t *dependencies; /* of the step that is being made */
  size_t dependency_count, dependency_capacity;
} work;

static clv_status depend(work *w, uint32_t step, clv_error *error) {
  if (step == CLV__NO_ID) return CLV_OK;
  if (!clv__array_reserve(w->plan->graph->allocator, (void **)&w->dependencies, &w->dependency_capacity, w->dependency_count + 1,
                          sizeof *w->dependencies, w->dependency_count)) {
    return clv__error_memory(error, sizeof *w->dependencies);
  }
  w->dependencies[w->dependency_count++] = step;
  return CLV_OK;
}

static int compare_steps(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

/* Each step once, ascending. */
static void settle_dependencies(work *w) {
  size_t unique = 0;
  if (w->dependency_count > 1) qsort(w->dependencies, w->dependency_count, sizeof *w->dependencies, compare_steps);
  for (size_t i = 0; i < w->dependency_count; ++i) {
    if (i == 0 || w->dependencies[i] != w->dependencies[i - 1]) w->dependencies[unique++] = w->dependencies[i];
  }
  w->dependency_count = unique;
}

static clv_status add_step(work *w, bool is_transfer, uint32_t index, clv_error *error) {
  const clv_allocator *allocator = w->plan->graph->allocator;
  settle_dependencies(w);
  uint32_t *dependencies = clv__arena_copy(&w->plan->arena, w->dependencies, w->dependency_count * sizeof *dependencies);
  if (dependencies == NULL ||
      !clv__array_reserve(allocator, (void **)&w->steps, &w->step_capacity, w->step_count + 1, sizeof *w->steps, w->step_count)) {
    return clv__error_memory(error, sizeof *w->steps);
  }
  w->steps[w->step_count++] = (clv__step){is_transfer, index, (uint32_t)w->dependency_count, dependencies};
  w->dependency_count = 0;
  return CLV_OK;
}

static uint32_t *maker_of(work *w, clv_value_id value, uint32_t space) {
  return &w->maker[(size_t)value * w->plan->devices->space_count + space];
}

/* The first device that works in a space. */
static uint32_t device_of(const clv_devices *devices, uint32_t space) {
  for (uint32_t d = 0; d < devices->count; ++d) {
    if (devices->items[d].space == space) return d;
  }
  return CLV__NO_ID;
}

static clv_status copy(work *w, clv_value_id value, uint32_t from, uint32_t to, uint32_t device, clv__boundary boundary,
                       clv_error *error) {
  const clv_allocator *allocator = w->plan->graph->allocator;
  if (!clv__array_reserve(allocator, (void **)&w->transfers, &w->transfer_capacity, w->transfer_count + 1, sizeof *w->transfers,
                          w->transfer_count)) {
    return clv__error_memory(error, sizeof *w->transfers);
  }
  size_t size_bytes = 0;
  bool known = clv__tensor_size_bytes(&w->plan->shapes->types[value], &size_bytes);
  w->transfers[w->transfer_count] = (clv__transfer){.value = value,
                                                    .from = from,
                                                    .to = to,
                                                    .device = device,
                                                    .size_bytes = known ? size_bytes : 0,
                                                    .size_known = known,
                                                    .boundary = boundary};
  CLV__TRY(depend(w, *maker_of(w, value, from), error));
  CLV__TRY(add_step(w, true, (uint32_t)w->transfer_count, error));
  ++w->transfer_count;
  w->resident[value] |= 1u << to;
  *maker_of(w, value, to) = (uint32_t)w->step_count - 1;
  return CLV_OK;
}

static clv_status bring(work *w, clv_value_id value, uint32_t space, uint32_t device, clv__boundary boundary, clv_error *error) {
  if ((w->resident[value] & (1u << space)) != 0) return CLV_OK;
  if ((w->resident[value] & (1u << CLV__SPACE_HOST)) == 0) {
    uint32_t from = (uint32_t)__builtin_ctz(w->resident[value]);
    uint32_t source = device_of(w->plan->devices, from);
    CLV__TRY(copy(w, value, from, CLV__SPACE_HOST, source, boundary, error));
  }
  if (space == CLV__SPACE_HOST) return CLV_OK;
  bool from_outside = w->plan->graph->values[value].producer == CLV__NO_ID;
  return copy(w, value, CLV__SPACE_HOST, space, device, from_outside ? CLV__BOUNDARY_INPUT : boundary, error);
}

static clv_status add_partition(work *w, uint32_t index, clv_error *error) {
  const clv__partition *partition = &w->plan->partitions[index];
  const clv_graph_view *view = partition->view;
  uint32_t space = w->plan->devices->items[partition->device].space;
  for (uint32_t i = 0; i < view->input_count; ++i) {
    clv_value_id value = view->values[view->inputs[i]];
    if (w->resident[value] == 0) {
      return clv__error_set(error, CLV_INVALID_MODEL, "partition %u reads '%s' before any partition has made it", index,
                            w->plan->graph->values[value].name);
    }
    CLV__TRY(bring(w, value, space, partition->device, CLV__BOUNDARY_INNER, error));
  }
  for (uint32_t i = 0; i < view->input_count; ++i) {
    CLV__TRY(depend(w, *maker_of(w, view->values[view->inputs[i]], space), error));
  }
  CLV__TRY(add_step(w, false, index, error));
  for (uint32_t i = 0; i < view->output_count; ++i) {
    clv_value_id value = view->values[view->outputs[i]];
    w->resident[value] |= 1u << space;
    *maker_of(w, value, space) = (uint32_t)w->step_count - 1;
  }
  return CLV_OK;
}

static clv_status bring_home(work *w, clv_value_id value, clv_error *error) {
  if (w->plan->shapes->types[value].data != NULL || w->resident[value] == 0) return CLV_OK; /* known when planning */
  return bring(w, value, CLV__SPACE_HOST, CLV__NO_ID, CLV__BOUNDARY_OUTPUT, error);
}

clv_status clv__split_transfers(clv_plan *plan, clv_error *error) {
  const clv_graph *graph = plan->graph;
  work w = {.plan = plan};
  size_t cells = (size_t)graph->value_count * plan->devices->space_count;
  clv_status status = CLV_OK;
  w.resident = clv__allocate_zero(graph->allocator, (size_t)graph->value_count * sizeof *w.resident);
  w.maker = clv__allocate(graph->allocator, cells * sizeof *w.maker);
  if (w.resident == NULL || w.maker == NULL) {
    status = clv__error_memory(error, cells * sizeof *w.maker);
    goto cleanup;
  }
  memset(w.maker, 0xff, cells * sizeof *w.maker); /* CLV__NO_ID */
  for (uint32_t i = 0; i < graph->input_count; ++i) w.resident[graph->inputs[i]] |= 1u << CLV__SPACE_HOST;
  for (uint32_t p = 0; p < plan->partition_count; ++p) CLV__TRY_GOTO(add_partition(&w, p, error));
  for (uint32_t i = 0; i < graph->output_count; ++i) CLV__TRY_GOTO(bring_home(&w, graph->outputs[i], error));
  for (uint32_t i = 0; i < plan->kept_count; ++i) CLV__TRY_GOTO(bring_home(&w, plan->kept[i], error));
  plan->transfers = clv__arena_copy(&plan->arena, w.transfers, w.transfer_count * sizeof *w.transfers);
  plan->steps = clv__arena_copy(&plan->arena, w.steps, w.step_count * sizeof *w.steps);
  if (plan->transfers == NULL || plan->steps == NULL) {
    status = clv__error_memory(error, w.step_count * sizeof *w.steps);
    goto cleanup;
  }
  plan->transfer_count = (uint32_t)w.transfer_count;
  plan->step_count = (uint32_t)w.step_count;
cleanup:
  clv__release(graph->allocator, w.dependencies);
  clv__release(graph->allocator, w.steps);
  clv__release(graph->allocator, w.transfers);
  clv__release(graph->allocator, w.maker);
  clv__release(graph->allocator, w.resident);
  return status;
}
