/* Explains the placement of nodes. See explain.h. */
#include "report/explain.h"

#include <stdlib.h>
#include <string.h>

#include "place/place.h"
#include "report/label.h"

static void append_types(const clv_plan *plan, const char *word, const clv_value_id *values, uint32_t count, clv__text *text) {
  clv__text_append(text, "    %s", word);
  for (uint32_t i = 0; i < count; ++i) {
    clv__text_append(text, i > 0 ? ", " : " ");
    if (values[i] == CLV__NO_ID) {
      clv__text_append(text, "(absent)");
      continue;
    }
    clv__label_name(text, plan->graph->values[values[i]].name);
    clv__text_append(text, " ");
    clv__label_type(text, plan->graph, &plan->shapes->types[values[i]]);
    if (clv__value_is_constant(plan->graph, plan->shapes->types, values[i])) clv__text_append(text, " constant");
  }
  clv__text_append(text, "\n");
}

/* Appends the time of the node on the device, and whether it is measured or estimated. Appends nothing if the node takes no time.
 */
static void append_price(const clv_plan *plan, clv_node_id id, uint32_t device, clv__text *text) {
  char label[CLV__LABEL_BYTES];
  uint32_t node = plan->problem_nodes[id];
  if (node == CLV__NONE || (plan->problem->flags[node] & CLV__NODE_VIEW) != 0) return;
  clv__cost cost = clv__cost_node(plan->costs, id, device);
  clv__text_append(text, "%s (%s)", clv__label_time(cost.time_ns, label), clv__cost_source_name(cost.source));
}

static void explain_node(const clv_plan *plan, const uint32_t *partition_of, clv_node_id id, clv__text *text) {
  const clv__node *node = &plan->graph->nodes[id];
  uint32_t device = plan->placement.devices[id];
  const char *cause = plan->placement.causes[id] != NULL ? plan->placement.causes[id] : "";
  const char *meaning = clv__cause_meaning(cause), *note = plan->placement.notes[id];
  clv__label_name(text, node->name);
  clv__text_append(text, " (");
  clv__label_name(text, clv__label_op(node));
  clv__text_append(text, ")");
  if (device == CLV__NO_ID) {
    clv__text_append(text, " does not run on a device: %s%s%s\n", cause, meaning != NULL ? ": " : "",
                     meaning != NULL ? meaning : "");
    return;
  }
  clv__text_append(text, " on %s", plan->devices->items[device].name);
  if (partition_of[id] != CLV__NO_ID) {
    const clv__partition *partition = &plan->partitions[partition_of[id]];
    clv__text_append(text, ", partition %u%s", partition_of[id],
                     partition->is_bucketed ? " (open sizes padded to buckets)"
                     : partition->is_hosted ? " (renamed by the host)"
                                            : "");
  }
  clv__text_append(text, ": %s%s%s", cause, meaning != NULL ? ": " : "", meaning != NULL ? meaning : "");
  if (note != NULL) {
    clv__text_append(text, ": ");
    clv__label_name(text, note);
  }
  clv__text_append(text, "\n");
  append_types(plan, "reads ", node->inputs, node->input_count, text);
  append_types(plan, "writes", node->outputs, node->output_count, text);
  if (plan->open != NULL && plan->open->is_open[id] && plan->open->typical != NULL)
    clv__text_append(text, "    some of its sizes are known only at run time: prices are for typical sizes\n");
  for (uint32_t d = 0; d < plan->devices->count; ++d) {
    const char *reason = clv__capability_reason(&plan->capability, id, d);
    int64_t delta_ns;
    clv__text line;
    clv__text_init(&line, text->allocator);
    const char *refusal = clv__capability_answer(&plan->capability, id, d);
    if (d == device && refusal != NULL) {
      clv__text_append(&line, "does not run it: ");
      clv__label_name(&line, refusal);
    } else if (d == device) {
      append_price(plan, id, d, &line);
    } else if (reason != NULL) {
      clv__text_append(&line, "cannot run it: ");
      clv__label_name(&line, reason);
    } else if (clv__plan_move_price(plan, id, d, &delta_ns)) {
      char label[CLV__LABEL_BYTES];
      append_price(plan, id, d, &line);
      clv__text_append(&line, "%s", line.size_bytes > 0 ? ": " : "");
      clv__label_time((uint64_t)llabs(delta_ns), label);
      clv__text_append(&line, "if it ran here, the plan would take %s%s, not counting launches",
                       delta_ns == 0 ? "the same time" : label,
                       delta_ns < 0   ? " less"
                       : delta_ns > 0 ? " more"
                                      : "");
    }
    if (line.size_bytes > 0) clv__text_append(text, "    %s: %s\n", plan->devices->items[d].name, line.data);
    text->failed = text->failed || line.failed;
    clv__text_finish(&line);
  }
}

bool clv__explain_matches(const clv__node *node, const char *pattern) {
  return pattern == NULL || strcmp(pattern, node->name) == 0 || clv__node_matches_name(node, pattern) ||
         clv__node_matches_op(node, pattern);
}

uint32_t *clv__explain_partitions(const clv_plan *plan, const clv_allocator *allocator) {
  uint32_t *partition_of = clv__allocate(allocator, (size_t)plan->graph->node_count * sizeof *partition_of);
  if (partition_of == NULL) return NULL;
  for (clv_node_id n = 0; n < plan->graph->node_count; ++n) partition_of[n] = CLV__NO_ID;
  for (uint32_t p = 0; p < plan->partition_count; ++p) {
    for (uint32_t i = 0; i < plan->partitions[p].node_count; ++i) partition_of[plan->partitions[p].nodes[i]] = p;
  }
  return partition_of;
}

uint32_t clv__report_explain(const clv_plan *plan, const char *pattern, clv__text *text) {
  uint32_t matched = 0, *partition_of = clv__explain_partitions(plan, text->allocator);
  if (partition_of == NULL) {
    text->failed = true;
    return 0;
  }
  for (clv_node_id n = 0; n < plan->graph->node_count; ++n) {
    if (!clv__explain_matches(&plan->graph->nodes[n], pattern)) continue;
    ++matched;
    explain_node(plan, partition_of, n, text);
  }
  clv__release(text->allocator, partition_of);
  return matched;
}
