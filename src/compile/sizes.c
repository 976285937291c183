/* What programs ask about sizes and names before a run: see cleave/graph_contents.h and cleave/plan_contents.h. */
#include <string.h>

#include "analysis/shapes_given.h"
#include "cleave/graph_contents.h"
#include "cleave/plan_contents.h"
#include "compile/bucket.h"

clv_status clv_graph_check_sizes(const clv_graph *graph, const clv_size *sizes, uint32_t count, clv_error *error) {
  if (graph == NULL || (sizes == NULL && count > 0))
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "graph and sizes must not be NULL");
  clv__arena arena;
  clv__arena_init(&arena, graph->allocator);
  int64_t *bindings = clv__arena_allocate_zero(&arena, graph->symbol_count, sizeof *bindings);
  clv__shape_given *given = clv__arena_allocate_zero(&arena, count, sizeof *given);
  clv_status status = bindings == NULL || given == NULL ? clv__error_memory(error, count * sizeof *given) : CLV_OK;
  for (uint32_t i = 0; status == CLV_OK && i < count; ++i) {
    const clv_size *size = &sizes[i];
    if (size->name == NULL || size->rank < 0 || size->rank > CLV_MAX_RANK)
      status =
          clv__error_set(error, CLV_INVALID_ARGUMENT, "size %u: the name is NULL, or the rank is not 0 to %d", i, CLV_MAX_RANK);
    else
      given[i] = (clv__shape_given){.name = size->name, .is_symbol = size->is_symbol, .rank = size->rank};
    memcpy(given[i].dims, size->dims, sizeof given[i].dims);
  }
  if (status == CLV_OK) status = clv__given_bind(graph, given, count, bindings, error);
  clv__arena_finish(&arena);
  return status;
}

uint32_t clv_graph_count_matches(const clv_graph *graph, const char *pattern, bool of_operators) {
  uint32_t count = 0;
  for (clv_node_id n = 0; n < graph->node_count; ++n) {
    const clv__node *node = &graph->nodes[n];
    count += of_operators ? clv__node_matches_op(node, pattern) : clv__node_matches_name(node, pattern);
  }
  return count;
}

/* ---- Plans ---- */

const clv_tensor *clv_plan_input_type(const clv_plan *plan, uint32_t index) {
  return index < plan->graph->input_count ? &plan->shapes->types[plan->graph->inputs[index]] : NULL;
}

uint32_t clv_plan_output_count(const clv_plan *plan) {
  return plan->graph->output_count + plan->kept_count;
}

static clv_value_id output_of(const clv_plan *plan, uint32_t index) {
  const clv_graph *graph = plan->graph;
  return index < graph->output_count ? graph->outputs[index] : plan->kept[index - graph->output_count];
}

const char *clv_plan_output_name(const clv_plan *plan, uint32_t index) {
  return index < clv_plan_output_count(plan) ? plan->graph->values[output_of(plan, index)].name : NULL;
}

const clv_tensor *clv_plan_output_type(const clv_plan *plan, uint32_t index) {
  return index < clv_plan_output_count(plan) ? &plan->shapes->types[output_of(plan, index)] : NULL;
}

clv_status clv_plan_pad_sizes(const clv_plan *plan, uint32_t multiple, int64_t *sizes, uint32_t symbol_count, bool *pads,
                              clv_error *error) {
  if (plan == NULL || pads == NULL || (sizes == NULL && symbol_count > 0))
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "plan, sizes and pads must not be NULL");
  *pads = false;
  if (symbol_count != plan->graph->symbol_count)
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "%u sizes, but the graph has %u symbol%s", symbol_count,
                          plan->graph->symbol_count, CLV__S(plan->graph->symbol_count));
  clv__bucket_rule *rule;
  CLV__TRY(clv__bucket_rule_create(plan, multiple, &rule, error));
  *pads = rule != NULL;
  for (uint32_t s = 0; rule != NULL && s < symbol_count; ++s) {
    if (sizes[s] >= 0) sizes[s] = clv__bucket_size(rule, s, sizes[s]);
  }
  clv__bucket_rule_destroy(rule);
  return CLV_OK;
}
