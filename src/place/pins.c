/* What the user fixed: --pin by node name, --force by operator. */
#include <string.h>

#include "base/text.h"
#include "place/place.h"

static bool matches(const clv_assignment *assignment, bool by_operator, const clv__node *node) {
  if (by_operator) return clv__pattern_match(assignment->pattern, node->op);
  return clv__pattern_match(assignment->pattern, node->name) || clv__pattern_match(assignment->pattern, node->source_name);
}

static bool is_plain(const char *pattern) {
  return strpbrk(pattern, "*?") == NULL;
}

/* Plain node names are looked up in a map: random placements pin every node of a graph by name. */
static clv_status fix_by_name(const clv_plan *plan, const clv__map *names, const clv_assignment *pin, uint32_t device,
                              uint32_t *pinned, uint32_t *hits, clv_error *error) {
  const clv_graph *graph = plan->graph;
  *hits = 0;
  uint32_t found = names != NULL && is_plain(pin->pattern) ? clv__map_find(names, pin->pattern) : CLV__MAP_NONE;
  clv_node_id first = found != CLV__MAP_NONE ? found : 0, end = found != CLV__MAP_NONE ? found + 1 : graph->node_count;
  for (clv_node_id n = first; n < end; ++n) {
    const clv__node *node = &graph->nodes[n];
    if (!matches(pin, names == NULL, node)) continue;
    ++*hits;
    if (plan->shapes->node_folded[n]) continue;
    const char *reason = clv__capability_reason(&plan->capability, n, device);
    if (reason != NULL) {
      return clv__error_set(error, CLV_NOT_SUPPORTED, "node '%s' (%s) is pinned to %s, which cannot run it: %s", node->name,
                            node->op, pin->device, reason);
    }
    pinned[n] = device;
  }
  return CLV_OK;
}

static clv_status fix_all(const clv_plan *plan, const clv__map *names, const clv_assignment *items, uint32_t count,
                          uint32_t *pinned, clv_error *error) {
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t device = clv__devices_find(plan->devices, items[i].device);
    if (device == CLV__NO_ID) {
      return clv__error_set(error, CLV_INVALID_ARGUMENT, "'%s=%s': device '%s' is not in the list of devices", items[i].pattern,
                            items[i].device, items[i].device);
    }
    uint32_t hits;
    CLV__TRY(fix_by_name(plan, names, &items[i], device, pinned, &hits, error));
    if (hits == 0) {
      return clv__error_set(error, CLV_INVALID_ARGUMENT, "'%s=%s' matches no %s of the model", items[i].pattern, items[i].device,
                            names != NULL ? "node" : "operator");
    }
  }
  return CLV_OK;
}

clv_status clv__pins_resolve(const clv_plan *plan, const clv_plan_options *options, uint32_t **out, clv_error *error) {
  *out = NULL;
  const clv_graph *graph = plan->graph;
  uint32_t *pinned = clv__allocate(graph->allocator, (size_t)graph->node_count * sizeof *pinned);
  if (pinned == NULL) return clv__error_memory(error, graph->node_count * sizeof *pinned);
  memset(pinned, 0xff, (size_t)graph->node_count * sizeof *pinned); /* CLV__NO_ID */
  clv__map names;
  clv__map_init(&names, graph->allocator);
  clv_status status = CLV_OK;
  for (clv_node_id n = 0; options->pin_count > 0 && n < graph->node_count; ++n) {
    if (!clv__map_set(&names, graph->nodes[n].name, n)) {
      status = clv__error_memory(error, sizeof(clv__map_slot));
      goto cleanup;
    }
  }
  CLV__TRY_GOTO(fix_all(plan, NULL, options->forces, options->force_count, pinned, error));
  CLV__TRY_GOTO(fix_all(plan, &names, options->pins, options->pin_count, pinned, error)); /* a pin is narrower: it wins */
cleanup:
  clv__map_finish(&names);
  if (status != CLV_OK)
    clv__release(graph->allocator, pinned);
  else
    *out = pinned;
  return status;
}
