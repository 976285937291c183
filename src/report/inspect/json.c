/* Writes an inspection as JSON. See inspect.h. */
#include "report/json.h"
#include "report/inspect/inspect.h"

static json_t *values_json(const clv_inspection *in, const clv_value_id *values, uint32_t count) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < count; ++i) {
    if (values[i] == CLV__NO_ID) {
      json_array_append_new(list, json_null());
      continue;
    }
    json_t *object = clv__json_type(in->graph, &in->shapes->types[values[i]]);
    json_object_set_new(object, "name", clv__json_text(in->graph->values[values[i]].name));
    json_array_append_new(list, object);
  }
  return list;
}

static json_t *node_json(const clv_inspection *in, clv_node_id id) {
  const clv__node *node = &in->graph->nodes[id];
  json_t *object = json_object(), *refused = json_object();
  const double flops = in->node_flops[id];
  json_object_set_new(object, "name", clv__json_text(node->name));
  json_object_set_new(object, "op", clv__json_text(node->op));
  json_object_set_new(object, "domain", clv__json_text(node->domain));
  if (node->source_op[0] != '\0') {
    json_object_set_new(object, "source_name", clv__json_text(node->source_name));
    json_object_set_new(object, "source_op", clv__json_text(node->source_op));
  }
  json_object_set_new(object, "opset", json_integer(node->opset));
  json_object_set_new(object, "folded", json_boolean(in->shapes->node_folded[id]));
  json_object_set_new(object, "inputs", values_json(in, node->inputs, node->input_count));
  json_object_set_new(object, "outputs", values_json(in, node->outputs, node->output_count));
  json_object_set_new(object, "flops", flops >= 0 ? clv__json_real(flops) : json_null());
  for (uint32_t d = 0; d < in->devices->count; ++d) {
    const char *reason = clv__capability_reason(&in->capability, id, d);
    if (reason != NULL) json_object_set_new(refused, in->devices->items[d].name, clv__json_text(reason));
  }
  json_object_set_new(object, "refused_by", refused);
  return object;
}

static json_t *operator_json(const clv_inspection *in, const clv__inspected_operator *row) {
  json_t *object = json_object(), *supported = json_object();
  json_object_set_new(object, "op", clv__json_text(row->op));
  json_object_set_new(object, "domain", clv__json_text(row->domain));
  json_object_set_new(object, "nodes", json_integer(row->count));
  json_object_set_new(object, "folded", json_integer(row->folded));
  json_object_set_new(object, "flops", clv__json_real(row->flops));
  json_object_set_new(object, "flops_complete", json_boolean(row->flops_complete));
  for (uint32_t d = 0; d < in->devices->count; ++d) {
    json_object_set_new(supported, in->devices->items[d].name, json_integer(row->supported[d]));
  }
  json_object_set_new(object, "supported", supported);
  return object;
}

clv_status clv__inspect_json(const clv_inspection *in, const char *name, bool nodes, char **out, clv_error *error) {
  const clv_graph *graph = in->graph;
  json_t *root = json_object(), *operators = json_array(), *opsets = json_object();
  for (uint32_t i = 0; i < graph->import_count; ++i) {
    json_object_set_new(opsets, graph->imports[i].domain[0] == '\0' ? "ai.onnx" : graph->imports[i].domain,
                        json_integer(graph->imports[i].version));
  }
  for (uint32_t i = 0; i < in->row_count; ++i) json_array_append_new(operators, operator_json(in, &in->rows[i]));
  json_object_set_new(root, "model", clv__json_text(name));
  json_object_set_new(root, "ir_version", json_integer((json_int_t)graph->ir_version));
  json_object_set_new(root, "opsets", opsets);
  json_object_set_new(root, "node_count", json_integer(graph->node_count));
  json_object_set_new(root, "folded_nodes", json_integer((json_int_t)in->folded_nodes));
  json_object_set_new(root, "parameters", json_integer((json_int_t)in->parameter_count));
  json_object_set_new(root, "parameter_bytes", json_integer((json_int_t)in->parameter_bytes));
  json_object_set_new(root, "unbound_bytes", json_integer((json_int_t)in->unbound_bytes));
  json_object_set_new(root, "folded_numbers", json_integer((json_int_t)in->folded_count));
  json_object_set_new(root, "folded_bytes", json_integer((json_int_t)in->folded_bytes));
  json_object_set_new(root, "flops", clv__json_real(in->flops));
  json_object_set_new(root, "flops_complete", json_boolean(in->flops_complete));
  json_object_set_new(root, "inputs", values_json(in, graph->inputs, graph->input_count));
  json_object_set_new(root, "outputs", values_json(in, graph->outputs, graph->output_count));
  json_object_set_new(root, "operators", operators);
  if (nodes) {
    json_t *list = json_array();
    for (clv_node_id n = 0; n < graph->node_count; ++n) json_array_append_new(list, node_json(in, n));
    json_object_set_new(root, "nodes", list);
  }
  return clv__json_give(root, in->arena.allocator, out, error);
}
