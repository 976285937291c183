/* See compare.h. Computes how much faster a plan would be if a device supported more operators. */
#include <stdlib.h>
#include <string.h>

#include "plan/compare.h"

static const char *op_of(const clv__node *node) {
  return node->source_op[0] != '\0' ? node->source_op : node->op;
}

static clv_status price(const clv_plan *plan, const clv_plan_options *options, const clv_assignment *supposes, uint32_t count,
                        clv__arena *arena, clv__what_if *row, clv_error *error) {
  clv_plan_options with = *options;
  clv_plan *other;
  clv_error why = {0};
  with.supposes = supposes;
  with.suppose_count = count;
  with.record_passes = false;
  with.name_others = false;
  clv_status status = clv_plan_make(plan->graph, plan->devices, &with, &other, &why);
  if (status == CLV_NOT_SUPPORTED) { /* with more supported operators, a strategy may overfill a device */
    row->refusal = clv__arena_string(arena, why.message, strlen(why.message));
    return row->refusal == NULL ? clv__error_memory(error, strlen(why.message)) : CLV_OK;
  }
  if (status != CLV_OK) return clv__error_set(error, status, "%s", why.message);
  row->partitions = other->partition_count - other->hosted_count;
  row->predicted_ns = other->predicted_ns;
  row->saved_ns = (int64_t)plan->predicted_ns - (int64_t)other->predicted_ns;
  clv_plan_destroy(other);
  return CLV_OK;
}

static uint32_t count_refused(const clv_plan *plan, const char *pattern, uint32_t device) {
  uint32_t refused = 0;
  for (clv_node_id n = 0; n < plan->graph->node_count; ++n) {
    if (plan->shapes->node_folded[n] || !clv__node_matches_op(&plan->graph->nodes[n], pattern)) continue;
    refused += clv__capability_answer(&plan->capability, n, device) != NULL;
  }
  return refused;
}

clv_status clv__plan_what_if(const clv_plan *plan, const clv_plan_options *options, const clv_assignment *supposes,
                             uint32_t count, clv__arena *arena, clv__what_if *row, clv_error *error) {
  *row = (clv__what_if){.op = count > 0 ? supposes[0].pattern : "", .device = CLV__NO_ID};
  CLV__TRY(price(plan, options, supposes, count, arena, row, error));
  if (count > 0) row->device = clv__devices_find(plan->devices, supposes[0].device);
  for (uint32_t i = 0; i < count; ++i) {
    row->nodes += count_refused(plan, supposes[i].pattern, clv__devices_find(plan->devices, supposes[i].device));
  }
  return CLV_OK;
}

/* Compares rows: those that save the most time come first; ties are ordered by name and device, so that the order is
 * deterministic. */
static int compare_rows(const void *a, const void *b) {
  const clv__what_if *x = a, *y = b;
  if (x->saved_ns != y->saved_ns) return x->saved_ns < y->saved_ns ? 1 : -1;
  int names = strcmp(x->op, y->op);
  return names != 0 ? names : (x->device > y->device) - (x->device < y->device);
}

clv_status clv__plan_what_if_all(const clv_plan *plan, const clv_plan_options *options, clv__arena *arena, clv__what_if **out,
                                 uint32_t *out_count, clv_error *error) {
  const clv_graph *graph = plan->graph;
  clv__what_if *rows = NULL;
  size_t count = 0, capacity = 0;
  clv__map known;
  clv_status status = CLV_OK;
  clv__map_init(&known, graph->allocator);
  for (uint32_t d = 0; d < plan->devices->count; ++d) {
    clv__map_finish(&known);
    clv__map_init(&known, graph->allocator);
    for (clv_node_id n = 0; n < graph->node_count; ++n) {
      const char *op = op_of(&graph->nodes[n]);
      if (plan->shapes->node_folded[n] || clv__capability_answer(&plan->capability, n, d) == NULL) continue;
      if (clv__map_find(&known, op) != CLV__MAP_NONE) continue;
      if (!clv__map_set(&known, op, n) ||
          !clv__array_reserve(graph->allocator, (void **)&rows, &capacity, count + 1, sizeof *rows, count)) {
        CLV__TRY_GOTO(clv__error_memory(error, sizeof *rows));
      }
      rows[count] = (clv__what_if){.op = op, .device = d, .nodes = count_refused(plan, op, d)};
      clv_assignment suppose = {op, plan->devices->items[d].name};
      CLV__TRY_GOTO(price(plan, options, &suppose, 1, arena, &rows[count++], error));
    }
  }
  if (count > 1) qsort(rows, count, sizeof *rows, compare_rows);
  *out = clv__arena_copy(arena, rows, count * sizeof *rows);
  *out_count = (uint32_t)count;
  if (*out == NULL) status = clv__error_memory(error, count * sizeof *rows);
cleanup:
  clv__map_finish(&known);
  clv__release(graph->allocator, rows);
  return status;
}
