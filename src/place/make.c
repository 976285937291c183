/* clv_plan_make(): verdicts, placement, split, transfers. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/options.h"
#include "place/place.h"

static double now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* A node that no device supports refuses the plan, with every device's reason. */
static clv_status check_supported(const clv_plan *plan, clv_error *error) {
  for (clv_node_id n = 0; n < plan->graph->node_count; ++n) {
    if (plan->shapes->node_folded[n]) continue;
    char reasons[768];
    size_t used = 0;
    bool supported = false;
    for (uint32_t d = 0; d < plan->devices->count && !supported; ++d) {
      const char *reason = clv__capability_reason(&plan->capability, n, d);
      supported = reason == NULL;
      if (supported || used >= sizeof reasons) continue;
      int written =
          snprintf(reasons + used, sizeof reasons - used, "%s%s: %s", used > 0 ? "; " : "", plan->devices->items[d].name, reason);
      used += written < 0 ? 0 : (size_t)written;
    }
    if (supported) continue;
    const clv__node *node = &plan->graph->nodes[n];
    return clv__error_set(error, CLV_NOT_SUPPORTED, "node '%s' (%s): no device can run it: %s", node->name, node->op, reasons);
  }
  return CLV_OK;
}

static clv_status check_assignments(const clv_assignment *items, uint32_t count, const char *what, clv_error *error) {
  CLV__TRY(clv__options_list(items, count, what, error));
  for (uint32_t i = 0; i < count; ++i) {
    if (items[i].pattern != NULL && items[i].device != NULL) continue;
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "options: number %u of the %s lacks its pattern or device", i, what);
  }
  return CLV_OK;
}

static clv_status check_options(const clv_graph *graph, const clv_devices *devices, const clv_plan_options *options,
                                const clv__strategy **strategy, clv_error *error) {
  if (graph == NULL || devices == NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "graph and devices must not be NULL");
  CLV__TRY(clv__options_texts(options->keeps, options->keep_count, "values to keep", error));
  CLV__TRY(check_assignments(options->pins, options->pin_count, "pins", error));
  CLV__TRY(check_assignments(options->forces, options->force_count, "forces", error));
  CLV__TRY(clv__options_list(options->sizes, options->size_count, "sizes", error));
  for (uint32_t i = 0; i < options->size_count; ++i) {
    if (options->sizes[i].name == NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "size %u has no name", i);
  }
  const char *name = options->strategy == NULL ? "contiguous" : options->strategy;
  *strategy = clv__strategy_find(name);
  if (*strategy != NULL) return CLV_OK;
  char known[256] = "";
  size_t used = 0;
  for (const clv__strategy *s = clv__strategies; s->name != NULL && used < sizeof known; ++s) {
    int written = snprintf(known + used, sizeof known - used, "%s%s", used > 0 ? ", " : "", s->name);
    used += written < 0 ? 0 : (size_t)written;
  }
  return clv__error_set(error, CLV_INVALID_ARGUMENT, "strategy '%s' is unknown; there are: %s", name, known);
}

static clv_status place_and_split(clv_plan *plan, const clv__strategy *strategy, const uint32_t *pinned, clv_error *error) {
  for (clv_node_id n = 0; n < plan->graph->node_count; ++n) {
    plan->placement.devices[n] = CLV__NO_ID;
    plan->placement.causes[n] = plan->shapes->node_folded[n] ? "const" : "";
  }
  plan->placement.strategy = strategy->name;
  double start = now_ms();
  clv__place_input input = {plan, pinned};
  CLV__TRY(strategy->place(&input, error));
  plan->time_place_ms = now_ms() - start;
  start = now_ms();
  CLV__TRY(clv__split_linear(plan, error));
  bool moved = true;
  for (uint32_t d = 0; moved && d < plan->devices->count; ++d) { /* each round moves partitions to later devices only */
    CLV__TRY(clv__place_within_memory(plan, pinned, &moved, error));
    if (moved) CLV__TRY(clv__split_linear(plan, error));
  }
  CLV__TRY(clv__split_transfers(plan, error));
  plan->time_split_ms = now_ms() - start;
  return CLV_OK;
}

clv_status clv_plan_make(const clv_graph *graph, clv_devices *devices, const clv_plan_options *given, clv_plan **out,
                         clv_error *error) {
  if (out == NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "the output for the plan must not be NULL");
  *out = NULL;
  clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
  CLV__TRY(clv__options_read(&options, sizeof options, given, "CLV_PLAN_OPTIONS_INIT", error));
  const clv__strategy *strategy;
  CLV__TRY(check_options(graph, devices, &options, &strategy, error));
  clv_plan *plan = NULL;
  uint32_t *pinned = NULL;
  double start = now_ms();
  CLV__TRY(clv__plan_create(graph, devices, options.sizes, options.size_count, options.keeps, options.keep_count, &plan, error));
  plan->time_load_ms = now_ms() - start;
  clv_status status;
  clv_graph_view *whole;
  start = now_ms();
  clv__devices_lock(devices);
  CLV__TRY_GOTO(clv__view_create_whole(graph, plan->shapes->types, &plan->arena, &whole, error));
  CLV__TRY_GOTO(clv__capability_ask(devices, whole, plan->shapes->node_folded, options.support, options.support_user_data,
                                    &plan->capability, error));
  plan->time_capability_ms = now_ms() - start;
  CLV__TRY_GOTO(check_supported(plan, error));
  CLV__TRY_GOTO(clv__pins_resolve(plan, &options, &pinned, error));
  CLV__TRY_GOTO(place_and_split(plan, strategy, pinned, error));
cleanup:
  clv__devices_unlock(devices);
  clv__release(graph->allocator, pinned);
  if (status != CLV_OK)
    clv_plan_destroy(plan);
  else
    *out = plan;
  return status;
}
