/* Prepares a plan without some of its devices, up to its problem: like the original, except that these devices reject
 * everything. */
#include <stdio.h>
#include <string.h>

#include "plan/without_device.h"

clv_status clv__leaving_text(clv__arena *arena, const char *text, const char **copy, clv_error *error) {
  *copy = text == NULL ? NULL : clv__arena_string(arena, text, strlen(text));
  return text == NULL || *copy != NULL ? CLV_OK : clv__error_memory(error, strlen(text));
}

/* Builds the reason text of each lost device, and the plan's note about all of them. */
static clv_status explain_gone(clv__leaving *l, const char *reason, clv_error *error) {
  clv_plan *plan = l->plan;
  char note[512], text[160];
  size_t used = 0;
  for (uint32_t d = 0; d < plan->devices->count; ++d) {
    if (!clv__is_bit(plan->gone, d)) continue;
    snprintf(text, sizeof text, "removed: %s", reason);
    CLV__TRY(clv__leaving_text(&plan->arena, clv__is_bit(l->lost, d) ? text : l->old->gone_why[d], &plan->gone_why[d], error));
    if (used >= sizeof note) continue;
    int written = snprintf(note + used, sizeof note - used, "%s%s: %s", used > 0 ? "; " : "", plan->devices->items[d].name,
                           plan->gone_why[d]);
    used += written < 0 ? 0 : (size_t)written;
  }
  return clv__leaving_text(&plan->arena, used > 0 ? note : l->old->note, &plan->note, error);
}

static clv_status answer_no(clv_plan *plan, clv_error *error) {
  const clv__capability *first = &plan->origin->capability;
  clv__capability *capability = &plan->capability;
  size_t cells = (size_t)plan->graph->node_count * first->device_count;
  capability->device_count = first->device_count;
  capability->reasons = clv__arena_copy(&capability->arena, first->reasons, cells * sizeof *capability->reasons);
  capability->hosted = clv__arena_copy(&capability->arena, first->hosted, plan->graph->node_count * sizeof *capability->hosted);
  if (capability->reasons == NULL || capability->hosted == NULL)
    return clv__error_memory(error, cells * sizeof *capability->reasons);
  for (clv_node_id n = 0; n < plan->graph->node_count; ++n) capability->hosted[n] &= (uint16_t)~plan->gone;
  for (size_t i = 0; i < cells; ++i) {
    uint32_t d = (uint32_t)(i % first->device_count);
    if (clv__is_bit(plan->gone, d) && !plan->shapes->node_folded[i / first->device_count])
      capability->reasons[i] = plan->gone_why[d];
  }
  return CLV_OK;
}

/* Copies `bits` without those of lost devices. */
static clv_status without_bits(clv_plan *plan, const uint16_t *bits, size_t count, const uint16_t **out, clv_error *error) {
  uint16_t *left = clv__arena_copy(&plan->arena, bits, count * sizeof *left);
  if (left == NULL) return clv__error_memory(error, count * sizeof *left);
  for (size_t i = 0; i < count; ++i) left[i] &= (uint16_t)~plan->gone;
  *out = left;
  return CLV_OK;
}

/* Copies the user's homes of values and weights. Homes on lost devices become host memory. */
static clv_status bring_home(clv_plan *plan, const uint32_t *homes, size_t count, const uint32_t **out, clv_error *error) {
  uint32_t *left = clv__arena_copy(&plan->arena, homes, count * sizeof *left);
  if (left == NULL) return clv__error_memory(error, count * sizeof *left);
  for (size_t i = 0; i < count; ++i) {
    if (left[i] != CLV__NONE && clv__is_bit(plan->gone, left[i])) left[i] = CLV__NONE;
  }
  *out = left;
  return CLV_OK;
}

static clv_status set_problem(clv_plan *plan, clv_error *error) {
  const clv__problem *first = plan->origin->problem;
  clv__problem *problem = clv__arena_copy(&plan->arena, first, sizeof *problem);
  uint32_t devices = first->device_count, nodes = first->node_count;
  size_t reads = first->read_offsets[nodes];
  uint64_t *node_ns = clv__arena_copy(&plan->arena, first->node_ns, (size_t)nodes * devices * sizeof *node_ns);
  uint64_t *saving_ns = clv__arena_copy(&plan->arena, first->saving_ns, reads * devices * sizeof *saving_ns);
  if (problem == NULL || node_ns == NULL || saving_ns == NULL) return clv__error_memory(error, (size_t)nodes * devices * 8);
  for (size_t i = 0; i < (size_t)nodes * devices; ++i) {
    if (clv__is_bit(plan->gone, (uint32_t)(i % devices))) node_ns[i] = CLV__NO_TIME;
  }
  for (size_t i = 0; i < reads * devices; ++i) {
    if (clv__is_bit(plan->gone, (uint32_t)(i % devices))) saving_ns[i] = 0;
  }
  problem->gone = plan->gone;
  problem->node_ns = node_ns;
  problem->saving_ns = saving_ns;
  CLV__TRY(without_bits(plan, first->supports, nodes, &problem->supports, error));
  CLV__TRY(without_bits(plan, first->prefers, nodes, &problem->prefers, error));
  CLV__TRY(without_bits(plan, first->streams, first->weight_count, &problem->streams, error));
  CLV__TRY(bring_home(plan, first->value_homes, first->value_count, &problem->value_homes, error));
  CLV__TRY(bring_home(plan, first->weight_homes, first->weight_count, &problem->weight_homes, error));
  plan->problem = problem;
  plan->problem_nodes = plan->origin->problem_nodes;
  return CLV_OK;
}

static clv_status check_pins(const clv_plan *plan, clv_error *error) {
  const clv__problem *problem = plan->problem;
  for (uint32_t n = 0; n < problem->node_count; ++n) {
    uint32_t pin = problem->pins[n];
    if (pin == CLV__NONE || !clv__is_bit(plan->gone, pin)) continue;
    const clv__node *node = &plan->graph->nodes[problem->node_ids[n]];
    return clv__error_set(error, CLV_NOT_SUPPORTED,
                          "node '%s' (%s) is pinned to %s, which was %s; remove the pin to continue without this device",
                          node->name, node->op, plan->devices->items[pin].name, plan->gone_why[pin]);
  }
  return CLV_OK;
}

/* Copies causes and notes. Notes belong to the old plan, so their texts are copied too; a text that consecutive nodes share is
 * copied once. */
static clv_status copy_placement(clv__leaving *l, clv_error *error) {
  const clv__placement *from = &l->old->placement;
  clv__placement *to = &l->plan->placement;
  uint32_t count = l->plan->graph->node_count;
  clv__arena *arena = &l->plan->arena;
  *to = (clv__placement){.strategy = from->strategy,
                         .devices = clv__arena_copy(arena, from->devices, count * sizeof *to->devices),
                         .causes = clv__arena_copy(arena, from->causes, count * sizeof *to->causes),
                         .notes = clv__arena_copy(arena, from->notes, count * sizeof *to->notes)};
  if (to->devices == NULL || to->causes == NULL || to->notes == NULL) return clv__error_memory(error, count * sizeof *to->notes);
  for (uint32_t n = 0; n < count; ++n) {
    if (n > 0 && from->notes[n] == from->notes[n - 1])
      to->notes[n] = to->notes[n - 1];
    else
      CLV__TRY(clv__leaving_text(arena, from->notes[n], &to->notes[n], error));
  }
  return CLV_OK;
}

clv_status clv__leaving_create(const clv_plan *old, uint32_t lost, clv__leaving *l, clv_error *error) {
  const clv_allocator *allocator = old->arena.allocator;
  clv_plan *plan = clv__allocate_zero(allocator, sizeof *plan);
  if (plan == NULL) return clv__error_memory(error, sizeof *plan);
  *l = (clv__leaving){.plan = plan, .old = old, .lost = lost & ~old->gone & ((1u << old->devices->count) - 1)};
  clv__arena_init(&plan->arena, allocator);
  clv__arena_init(&plan->capability.arena, allocator);
  plan->origin = old->origin != NULL ? old->origin : old;
  plan->gone = old->gone | l->lost;
  l->strategy = clv__strategy_find(old->placement.strategy);
  if (l->strategy == NULL) l->strategy = clv__strategies[0]; /* the plan file names an unknown strategy */
  return CLV_OK;
}

clv_status clv__leaving_begin(clv__leaving *l, const char *reason, clv_error *error) {
  clv_plan *plan = l->plan;
  const clv_plan *first = plan->origin;
  plan->graph = first->graph;
  plan->devices = first->devices;
  plan->shapes = first->shapes;
  plan->open = first->open;
  plan->costs = first->costs;
  plan->is_supposed = first->is_supposed;
  plan->size_count = first->size_count, plan->sizes = first->sizes;
  plan->kept_count = first->kept_count, plan->kept = first->kept, plan->is_kept = first->is_kept;
  plan->claims = first->claims; /* claims of lost devices have no effect: they no longer support those nodes */
  plan->profile = first->profile, plan->profile_path = first->profile_path;
  plan->split = l->old->split, plan->split_is_given = first->split_is_given, plan->objective = first->objective;
  CLV__TRY(explain_gone(l, reason, error));
  CLV__TRY(answer_no(plan, error));
  CLV__TRY(set_problem(plan, error));
  CLV__TRY(check_pins(plan, error));
  CLV__TRY(copy_placement(l, error));
  return clv__plan_check_supported(plan, NULL, error);
}
