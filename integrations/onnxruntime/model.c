/* Makes a graph of Cleave's from nodes of ONNX Runtime's graph, with the bodies of If, Loop and Scan. */
#include <string.h>

#include "provider.h"

typedef struct making {
  const clv__ep *provider;
  const clv__ep_part *part;
  clv__ep_arena *arena;
  clv__ep_names known; /* values of the graph that are defined: 1: by a node, 2: as an input or a constant */
} making;

enum { BY_NODE = 1, GIVEN = 2 };

static clv_status names_of(const making *m, const clv__ep_values *values, const char ***names, clv_error *error) {
  *names = clv__ep_take(m->arena, values->count + 1, sizeof **names);
  if (*names == NULL) return clv__ep_no_memory(error);
  for (size_t i = 0; i < values->count; ++i) TRY(clv__ep_value_name(m->provider, values->items[i], &(*names)[i], error));
  return CLV_OK;
}

static clv_status add_constant(const making *m, clv_graph_builder *builder, const char *name, const OrtValueInfo *info,
                               const OrtValue *value, clv_error *error) {
  clv_tensor tensor;
  clv_ownership ownership = m->part->ownership;
  const void *mapped = NULL;
  TRY(clv__ep_read_tensor(m->provider, value, m->arena, &tensor, error));
  if (m->part->maps != NULL && tensor.dtype != CLV_STRING) {
    size_t count = 1;
    for (int32_t i = 0; i < tensor.rank; ++i) count *= (size_t)tensor.dims[i];
    size_t size_bytes = (count * clv_dtype_size_bits(tensor.dtype) + 7) / 8;
    TRY(clv__ep_find_mapped(m->provider, m->part->graph, info, size_bytes, m->part->maps, &mapped, error));
  }
  if (mapped != NULL) {
    tensor.data = (void *)mapped;
    ownership = CLV_BORROW;
  }
  return clv_graph_builder_weight(builder, name, &tensor, ownership, error);
}

/* Declares the type of a value that a node computes, as far as ONNX Runtime knows it. */
static clv_status declare(const making *m, clv_graph_builder *builder, const OrtValueInfo *value, const char *name,
                          clv_error *error) {
  clv_tensor type;
  const char *symbols[CLV_MAX_RANK];
  TRY(clv__ep_value_type(m->provider, value, &type, symbols, error));
  if (type.dtype == CLV_DTYPE_NONE) return CLV_OK;
  return clv_graph_builder_value(builder, name, &type, symbols, error);
}

static clv_status add_input(const making *m, clv_graph_builder *builder, const OrtValueInfo *value, const char *name,
                            clv_error *error) {
  clv_tensor type;
  const char *symbols[CLV_MAX_RANK];
  TRY(clv__ep_value_type(m->provider, value, &type, symbols, error));
  if (type.dtype == CLV_DTYPE_NONE) {
    return clv__ep_error(error, CLV_NOT_SUPPORTED, "input '%s' is not a tensor of a dtype that Cleave knows", name);
  }
  return clv_graph_builder_input(builder, name, &type, symbols, error);
}

static clv_status add_nodes(making *m, clv_graph_builder *builder, const clv__ep_nodes *nodes, clv_error *error);

static clv_status add_body(making *m, clv_graph_builder *builder, const OrtGraph *graph, const clv_graph_view **view,
                           clv_error *error) {
  clv__ep_values inputs, outputs, constants;
  clv__ep_nodes nodes;
  clv_graph_builder *body = NULL;
  const char **names;
  TRY(clv__ep_read_values(m->provider, graph, CLV__EP_GRAPH_INPUTS, m->arena, &inputs, error));
  TRY(clv__ep_read_values(m->provider, graph, CLV__EP_GRAPH_OUTPUTS, m->arena, &outputs, error));
  TRY(clv__ep_read_values(m->provider, graph, CLV__EP_GRAPH_INITIALIZERS, m->arena, &constants, error));
  TRY(clv__ep_read_nodes(m->provider, graph, m->arena, &nodes, error));
  TRY(clv_graph_builder_body(builder, &body, error));
  clv_status status = names_of(m, &inputs, &names, error);
  for (size_t i = 0; status == CLV_OK && i < inputs.count; ++i) {
    clv_tensor type;
    const char *symbols[CLV_MAX_RANK];
    status = clv__ep_value_type(m->provider, inputs.items[i], &type, symbols, error);
    if (status == CLV_OK && type.dtype == CLV_DTYPE_NONE) {
      status = clv__ep_error(error, CLV_NOT_SUPPORTED, "input '%s' of a body is not a tensor", names[i]);
    }
    if (status == CLV_OK) status = clv_graph_builder_input(body, names[i], &type, symbols, error);
  }
  if (status == CLV_OK) status = names_of(m, &constants, &names, error);
  for (size_t i = 0; status == CLV_OK && i < constants.count; ++i) {
    const OrtValue *value = NULL;
    status = clv__ep_constant(m->provider, constants.items[i], &value, error);
    if (status == CLV_OK && value != NULL) status = add_constant(m, body, names[i], constants.items[i], value, error);
  }
  if (status == CLV_OK) status = add_nodes(m, body, &nodes, error);
  if (status == CLV_OK) status = names_of(m, &outputs, &names, error);
  for (size_t i = 0; status == CLV_OK && i < outputs.count; ++i) {
    status = clv_graph_builder_output(body, names[i], NULL, error);
  }
  if (status != CLV_OK) {
    clv_graph_builder_destroy(body);
    return status;
  }
  return clv_graph_builder_finish_body(body, view, error);
}

static clv_status add_bodies(making *m, clv_graph_builder *builder, const OrtNode *node, size_t count, clv_attribute *attributes,
                             clv_error *error) {
  const OrtGraph **graphs = clv__ep_take(m->arena, count + 1, sizeof *graphs);
  const char **names = clv__ep_take(m->arena, count + 1, sizeof *names);
  if (graphs == NULL || names == NULL) return clv__ep_no_memory(error);
  if (count > 0) ORT(m->provider, Node_GetSubgraphs, node, graphs, count, names);
  for (size_t i = 0; i < count; ++i) {
    attributes[i] = (clv_attribute){.name = names[i], .kind = CLV_ATTRIBUTE_GRAPH, .count = 1};
    TRY(add_body(m, builder, graphs[i], &attributes[i].graph, error));
  }
  return CLV_OK;
}

static clv_status add_node(making *m, clv_graph_builder *builder, const OrtNode *node, clv_error *error) {
  clv_builder_node made = {.struct_size = sizeof made};
  clv__ep_values inputs, outputs;
  const char **input_names, **output_names;
  clv_attribute *attributes;
  size_t body_count = 0;
  ORT(m->provider, Node_GetOperatorType, node, &made.op);
  ORT(m->provider, Node_GetDomain, node, &made.domain);
  ORT(m->provider, Node_GetName, node, &made.name);
  ORT(m->provider, Node_GetNumSubgraphs, node, &body_count);
  TRY(clv__ep_read_values(m->provider, node, CLV__EP_NODE_INPUTS, m->arena, &inputs, error));
  TRY(clv__ep_read_values(m->provider, node, CLV__EP_NODE_OUTPUTS, m->arena, &outputs, error));
  TRY(names_of(m, &inputs, &input_names, error));
  TRY(names_of(m, &outputs, &output_names, error));
  TRY(clv__ep_read_attributes(m->provider, node, m->arena, &attributes, &made.attribute_count, (uint32_t)body_count, error));
  TRY(add_bodies(m, builder, node, body_count, attributes + made.attribute_count, error));
  made.attribute_count += (uint32_t)body_count;
  made.inputs = input_names;
  made.input_count = (uint32_t)inputs.count;
  made.outputs = output_names;
  made.output_count = (uint32_t)outputs.count;
  made.attributes = attributes;
  TRY(clv_graph_builder_node(builder, &made, error));
  for (size_t i = 0; i < outputs.count && m->part->is_declared; ++i) {
    if (output_names[i][0] != '\0') TRY(declare(m, builder, outputs.items[i], output_names[i], error));
  }
  return CLV_OK;
}

static clv_status add_nodes(making *m, clv_graph_builder *builder, const clv__ep_nodes *nodes, clv_error *error) {
  for (size_t i = 0; i < nodes->count; ++i) TRY(add_node(m, builder, nodes->items[i], error));
  return CLV_OK;
}

/* ---- The values at the border of the part ---- */

/* Notes the values that the part's nodes compute. */
static clv_status note_outputs(making *m, clv_error *error) {
  for (size_t n = 0; n < m->part->nodes.count; ++n) {
    clv__ep_values outputs;
    const char **names;
    TRY(clv__ep_read_values(m->provider, m->part->nodes.items[n], CLV__EP_NODE_OUTPUTS, m->arena, &outputs, error));
    TRY(names_of(m, &outputs, &names, error));
    for (size_t i = 0; i < outputs.count; ++i) {
      if (names[i][0] != '\0' && !clv__ep_put(m->arena, &m->known, names[i], BY_NODE)) return clv__ep_no_memory(error);
    }
  }
  return CLV_OK;
}

/* Defines a value that no node of the part computes: as a constant if it is one, otherwise as an input. */
static clv_status define(making *m, clv_graph_builder *builder, const OrtValueInfo *value, bool may_be_constant,
                         clv_error *error) {
  const char *name;
  const OrtValue *constant = NULL;
  TRY(clv__ep_value_name(m->provider, value, &name, error));
  if (name[0] == '\0' || clv__ep_find(&m->known, name) != CLV__EP_ABSENT) return CLV_OK;
  if (!clv__ep_put(m->arena, &m->known, name, GIVEN)) return clv__ep_no_memory(error);
  if (may_be_constant) TRY(clv__ep_constant(m->provider, value, &constant, error));
  return constant != NULL ? add_constant(m, builder, name, value, constant, error) : add_input(m, builder, value, name, error);
}

static clv_status define_list(making *m, clv_graph_builder *builder, const clv__ep_values *values, bool may_be_constant,
                              clv_error *error) {
  for (size_t i = 0; i < values->count; ++i) TRY(define(m, builder, values->items[i], may_be_constant, error));
  return CLV_OK;
}

static clv_status define_inputs(making *m, clv_graph_builder *builder, clv_error *error) {
  if (m->part->inputs != NULL) TRY(define_list(m, builder, m->part->inputs, false, error));
  for (size_t n = 0; n < m->part->nodes.count; ++n) {
    clv__ep_values values;
    TRY(clv__ep_read_values(m->provider, m->part->nodes.items[n], CLV__EP_NODE_INPUTS, m->arena, &values, error));
    TRY(define_list(m, builder, &values, true, error));
    TRY(clv__ep_read_values(m->provider, m->part->nodes.items[n], CLV__EP_NODE_CAPTURES, m->arena, &values, error));
    TRY(define_list(m, builder, &values, true, error));
  }
  return CLV_OK;
}

/* If no outputs are given, all values that nodes compute are outputs: what devices answer must not depend on who reads them. */
static clv_status define_outputs(making *m, clv_graph_builder *builder, clv_error *error) {
  const char **names;
  if (m->part->outputs != NULL) {
    TRY(names_of(m, m->part->outputs, &names, error));
    for (size_t i = 0; i < m->part->outputs->count; ++i) TRY(clv_graph_builder_output(builder, names[i], NULL, error));
    return CLV_OK;
  }
  for (size_t n = 0; n < m->part->nodes.count; ++n) {
    clv__ep_values outputs;
    TRY(clv__ep_read_values(m->provider, m->part->nodes.items[n], CLV__EP_NODE_OUTPUTS, m->arena, &outputs, error));
    TRY(names_of(m, &outputs, &names, error));
    for (size_t i = 0; i < outputs.count; ++i) {
      if (names[i][0] != '\0') TRY(clv_graph_builder_output(builder, names[i], NULL, error));
    }
  }
  return CLV_OK;
}

/* Creates the builder with the operator sets of ONNX Runtime's graph. */
static clv_status begin(const making *m, clv_graph_builder **builder, clv_error *error) {
  size_t count = 0;
  ORT(m->provider, Graph_GetNumOperatorSets, m->part->graph, &count);
  const char **domains = clv__ep_take(m->arena, count + 1, sizeof *domains);
  int64_t *versions = clv__ep_take(m->arena, count + 1, sizeof *versions), opset = 1;
  if (domains == NULL || versions == NULL) return clv__ep_no_memory(error);
  if (count > 0) ORT(m->provider, Graph_GetOperatorSets, m->part->graph, domains, versions, count);
  for (size_t i = 0; i < count; ++i) {
    if (domains[i][0] == '\0' || strcmp(domains[i], "ai.onnx") == 0) opset = versions[i];
  }
  TRY(clv_graph_builder_create(m->provider->context, (int32_t)opset, builder, error));
  clv_status status = CLV_OK;
  for (size_t i = 0; status == CLV_OK && i < count; ++i) {
    if (domains[i][0] == '\0' || strcmp(domains[i], "ai.onnx") == 0) continue;
    status = clv_graph_builder_import(*builder, domains[i], (int32_t)versions[i], error);
  }
  if (status == CLV_OK) return CLV_OK;
  clv_graph_builder_destroy(*builder);
  return status;
}

clv_status clv__ep_make_graph(const clv__ep *provider, const clv__ep_part *part, clv_graph **graph, clv_error *error) {
  clv__ep_arena arena = {0};
  making m = {.provider = provider, .part = part, .arena = &arena};
  clv_graph_builder *builder = NULL;
  *graph = NULL;
  clv_status status = begin(&m, &builder, error);
  if (status == CLV_OK) {
    status = note_outputs(&m, error);
    if (status == CLV_OK) status = define_inputs(&m, builder, error);
    if (status == CLV_OK) status = add_nodes(&m, builder, &part->nodes, error);
    if (status == CLV_OK) status = define_outputs(&m, builder, error);
    if (status == CLV_OK) {
      status = clv_graph_builder_finish(builder, graph, error); /* destroys the builder */
    } else {
      clv_graph_builder_destroy(builder);
    }
  }
  clv__ep_arena_finish(&arena);
  return status;
}
