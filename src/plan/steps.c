/* Builds the steps: each partition after its transfers, with their dependencies. Also computes the plan's price and bounds. */
#include <stdlib.h>
#include <string.h>

#include "plan/plan.h"

typedef struct work {
  clv_plan *plan;
  uint32_t *maker;        /* [value * space_count + space]: the step that puts the value there, or CLV__NONE */
  uint32_t *dependencies; /* of the current step */
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

/* Sorts the dependencies and removes duplicates. */
static void sort_dependencies(work *w) {
  size_t unique = 0;
  if (w->dependency_count > 1) qsort(w->dependencies, w->dependency_count, sizeof *w->dependencies, compare_steps);
  for (size_t i = 0; i < w->dependency_count; ++i) {
    if (i == 0 || w->dependencies[i] != w->dependencies[i - 1]) w->dependencies[unique++] = w->dependencies[i];
  }
  w->dependency_count = unique;
}

static clv_status add_step(work *w, bool is_transfer, uint32_t index, clv_error *error) {
  sort_dependencies(w);
  uint32_t *dependencies = clv__arena_copy(&w->plan->arena, w->dependencies, w->dependency_count * sizeof *dependencies);
  if (dependencies == NULL) return clv__error_memory(error, w->dependency_count * sizeof *dependencies);
  w->plan->steps[w->plan->step_count++] = (clv__step){is_transfer, index, (uint32_t)w->dependency_count, dependencies};
  w->dependency_count = 0;
  return CLV_OK;
}

static uint32_t *maker_of(work *w, uint32_t value, uint32_t space) {
  return &w->maker[(size_t)value * w->plan->problem->space_count + space];
}

static clv_status add_transfer(work *w, uint32_t index, clv_error *error) {
  clv_plan *plan = w->plan;
  const clv__problem *problem = plan->problem;
  const clv__copy *copy = &plan->copies.items[index];
  clv_value_id value = copy->is_weight ? problem->weight_ids[copy->value] : problem->value_ids[copy->value];
  size_t size_bytes = 0;
  bool known = clv__tensor_size_bytes(&plan->shapes->types[value], &size_bytes);
  bool from_outside = !copy->is_weight && problem->producers[copy->value] == CLV__NONE;
  plan->transfers[index] = (clv__transfer){.value = value,
                                           .from = copy->from,
                                           .to = copy->to,
                                           .device = clv__space_device(problem, copy->from == 0 ? copy->to : copy->from),
                                           .size_bytes = known ? size_bytes : 0,
                                           .size_known = known,
                                           .boundary = copy->is_weight                   ? CLV__BOUNDARY_WEIGHT
                                                       : copy->before == plan->cut.count ? CLV__BOUNDARY_OUTPUT
                                                       : from_outside                    ? CLV__BOUNDARY_INPUT
                                                                                         : CLV__BOUNDARY_INNER};
  if (!copy->is_weight) CLV__TRY(depend(w, *maker_of(w, copy->value, copy->from), error));
  CLV__TRY(add_step(w, true, index, error));
  if (!copy->is_weight) *maker_of(w, copy->value, copy->to) = plan->step_count - 1;
  return CLV_OK;
}

/* For each view of a partition of hosted views, records that the step that makes its source available also makes the view
 * available, because they have the same bytes. */
static void rename_views(work *w, uint32_t index) {
  const clv__problem *problem = w->plan->problem;
  const clv__cut *cut = &w->plan->cut;
  uint32_t space = problem->spaces[cut->devices[index]];
  for (uint32_t i = cut->offsets[index]; i < cut->offsets[index + 1]; ++i) {
    uint32_t node = cut->nodes[i];
    *maker_of(w, problem->writes[problem->write_offsets[node]], space) =
        *maker_of(w, problem->reads[problem->read_offsets[node]], space);
  }
}

static clv_status add_partition(work *w, uint32_t index, uint32_t first_copy, uint32_t end_copy, clv_error *error) {
  clv_plan *plan = w->plan;
  const clv__problem *problem = plan->problem;
  const clv__cut *cut = &plan->cut;
  uint32_t space = problem->spaces[cut->devices[index]], first_step = plan->step_count;
  for (uint32_t i = first_copy; i < end_copy; ++i) CLV__TRY(add_transfer(w, i, error));
  for (uint32_t i = first_copy; i < end_copy; ++i) { /* the partition depends on its streamed weights, which have no `maker` */
    if (plan->copies.items[i].is_weight) CLV__TRY(depend(w, first_step + i - first_copy, error));
  }
  if (plan->partitions[index].is_hosted) {
    rename_views(w, index);
    return CLV_OK;
  }
  for (uint32_t i = cut->offsets[index]; i < cut->offsets[index + 1]; ++i) {
    uint32_t node = cut->nodes[i];
    for (uint32_t r = problem->read_offsets[node]; r < problem->read_offsets[node + 1]; ++r) {
      uint32_t producer = problem->producers[problem->reads[r]];
      if (producer != CLV__NONE && cut->partition_of[producer] == index) continue;
      CLV__TRY(depend(w, *maker_of(w, problem->reads[r], space), error));
    }
  }
  CLV__TRY(add_step(w, false, index, error));
  for (uint32_t i = cut->offsets[index]; i < cut->offsets[index + 1]; ++i) {
    uint32_t node = cut->nodes[i];
    for (uint32_t k = problem->write_offsets[node]; k < problem->write_offsets[node + 1]; ++k) {
      *maker_of(w, problem->writes[k], space) = plan->step_count - 1;
    }
  }
  return CLV_OK;
}

static clv_status add_steps(work *w, clv_error *error) {
  clv_plan *plan = w->plan;
  uint32_t copy = 0;
  for (uint32_t p = 0; p < plan->cut.count; ++p) {
    uint32_t end = copy;
    while (end < plan->copies.count && plan->copies.items[end].before == p) ++end;
    CLV__TRY(add_partition(w, p, copy, end, error));
    copy = end;
  }
  for (; copy < plan->copies.count; ++copy) CLV__TRY(add_transfer(w, copy, error));
  return CLV_OK;
}

clv_status clv__plan_set_steps(clv_plan *plan, clv_error *error) {
  const clv__problem *problem = plan->problem;
  const clv_allocator *allocator = plan->graph->allocator;
  CLV__TRY(clv__split_copies(problem, &plan->cut, plan->streamed, &plan->arena, &plan->copies, error));
  work w = {.plan = plan};
  size_t cells = (size_t)problem->value_count * problem->space_count;
  plan->transfer_count = plan->copies.count;
  plan->transfers = clv__arena_allocate_zero(&plan->arena, plan->copies.count, sizeof *plan->transfers);
  plan->steps = clv__arena_allocate_zero(&plan->arena, (size_t)plan->copies.count + plan->cut.count, sizeof *plan->steps);
  plan->step_count = 0;
  w.maker = clv__allocate(allocator, cells * sizeof *w.maker);
  clv_status status = CLV_OK;
  if (plan->transfers == NULL || plan->steps == NULL || w.maker == NULL) {
    status = clv__error_memory(error, cells * sizeof *w.maker);
  } else {
    memset(w.maker, 0xff, cells * sizeof *w.maker); /* CLV__NONE */
    status = add_steps(&w, error);
  }
  clv__release(allocator, w.dependencies);
  clv__release(allocator, w.maker);
  if (status != CLV_OK) return status;
  CLV__TRY(clv__price_cut(problem, &plan->cut, &plan->copies, &plan->arena, &plan->price, error));
  if (plan->origin != NULL && plan->gone == plan->origin->gone)
    plan->bounds = plan->origin->bounds; /* the same problem has the same bounds */
  else
    CLV__TRY(clv__bound(problem, allocator, &plan->bounds, error));
  CLV__TRY(clv__plan_memory_need(plan, error));
  plan->predicted_ns = clv__price_of(&plan->price, plan->objective);
  plan->lower_bound_ns = clv__bound_of(&plan->bounds, plan->objective);
  return CLV_OK;
}
