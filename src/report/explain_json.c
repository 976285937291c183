/* Explains the placement of nodes as JSON. See explain.h. */
#include "report/explain.h"

#include "place/place.h"
#include "report/json.h"
#include "report/label.h"

static json_t *milliseconds(double time_ns) {
  return clv__json_real(time_ns / 1e6);
}

static json_t *values_json(const clv_plan *plan, const clv_value_id *values, uint32_t count) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < count; ++i) {
    if (values[i] == CLV__NO_ID) {
      json_array_append_new(list, json_null());
      continue;
    }
    json_t *object = clv__json_type(plan->graph, &plan->shapes->types[values[i]]);
    json_object_set_new(object, "name", clv__json_text(plan->graph->values[values[i]].name));
    json_object_set_new(object, "constant", json_boolean(clv__value_is_constant(plan->graph, plan->shapes->types, values[i])));
    json_array_append_new(list, object);
  }
  return list;
}

/* What one device says about a node that runs on `device`. */
static json_t *answer_json(const clv_plan *plan, clv_node_id id, uint32_t device, uint32_t d) {
  json_t *object = json_object();
  const char *refusal =
      d == device ? clv__capability_answer(&plan->capability, id, d) : clv__capability_reason(&plan->capability, id, d);
  const uint32_t node = plan->problem_nodes[id];
  int64_t delta_ns;
  json_object_set_new(object, "device", clv__json_text(plan->devices->items[d].name));
  if (refusal != NULL) json_object_set_new(object, "refused", clv__json_text(refusal));
  if (refusal == NULL && node != CLV__NONE && (plan->problem->flags[node] & CLV__NODE_VIEW) == 0) {
    const clv__cost cost = clv__cost_node(plan->costs, id, d);
    json_object_set_new(object, "predicted_ms", milliseconds((double)cost.time_ns));
    json_object_set_new(object, "price", clv__json_text(clv__cost_source_name(cost.source)));
  }
  if (refusal == NULL && d != device && clv__plan_move_price(plan, id, d, &delta_ns))
    json_object_set_new(object, "move_ms", milliseconds((double)delta_ns));
  return object;
}

static json_t *node_json(const clv_plan *plan, uint32_t partition, clv_node_id id) {
  const clv__node *node = &plan->graph->nodes[id];
  const uint32_t device = plan->placement.devices[id];
  const char *cause = plan->placement.causes[id] != NULL ? plan->placement.causes[id] : "";
  json_t *object = json_object();
  json_object_set_new(object, "name", clv__json_text(node->name));
  json_object_set_new(object, "op", clv__json_text(clv__label_op(node)));
  json_object_set_new(object, "device", device == CLV__NO_ID ? json_null() : clv__json_text(plan->devices->items[device].name));
  json_object_set_new(object, "partition", partition == CLV__NO_ID ? json_null() : json_integer(partition));
  json_object_set_new(object, "cause", clv__json_text(cause));
  json_object_set_new(object, "meaning", clv__json_text(clv__cause_meaning(cause)));
  json_object_set_new(object, "note", clv__json_text(plan->placement.notes[id]));
  json_object_set_new(object, "inputs", values_json(plan, node->inputs, node->input_count));
  json_object_set_new(object, "outputs", values_json(plan, node->outputs, node->output_count));
  json_t *answers = json_array();
  for (uint32_t d = 0; device != CLV__NO_ID && d < plan->devices->count; ++d)
    json_array_append_new(answers, answer_json(plan, id, device, d));
  json_object_set_new(object, "devices", answers);
  return object;
}

bool clv__report_explain_json(const clv_plan *plan, const char *pattern, json_t *list) {
  uint32_t *partition_of = clv__explain_partitions(plan, plan->graph->allocator);
  if (partition_of == NULL) return false;
  for (clv_node_id n = 0; n < plan->graph->node_count; ++n) {
    if (clv__explain_matches(&plan->graph->nodes[n], pattern)) json_array_append_new(list, node_json(plan, partition_of[n], n));
  }
  clv__release(plan->graph->allocator, partition_of);
  return list != NULL;
}
