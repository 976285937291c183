/* Builds a graph: maps names to ids and values to producers. See graph.h. builder_finish.c creates the final graph. */
#include <string.h>

#include "base/text.h"
#include "graph/builder_own.h"
#include "graph/own.h"
#include "graph/view.h"

#define PUSH(builder, list, item)                                                                                 \
  (clv__array_reserve((builder)->graph->allocator, (void **)&(list)->items, &(list)->capacity, (list)->count + 1, \
                      sizeof *(list)->items, (list)->count) &&                                                    \
   ((list)->items[(list)->count++] = (item), true))

clv_status clv__builder_create(const clv_allocator *allocator, clv__builder **out, clv_error *error) {
  *out = NULL;
  clv__builder *builder = clv__allocate_zero(allocator, sizeof *builder);
  clv_graph *graph = clv__allocate_zero(allocator, sizeof *graph);
  if (builder == NULL || graph == NULL) {
    clv__release(allocator, builder);
    clv__release(allocator, graph);
    return clv__error_memory(error, sizeof *builder + sizeof *graph);
  }
  builder->graph = graph;
  graph->allocator = allocator;
  graph->name = graph->path = "";
  builder->source_name = builder->source_op = "";
  clv__arena_init(&graph->arena, allocator);
  clv__map_init(&builder->names, allocator);
  clv__map_init(&builder->symbols, allocator);
  *out = builder;
  return CLV_OK;
}

void clv__builder_free(clv__builder *builder) {
  const clv_allocator *allocator = builder->names.allocator;
  clv__map_finish(&builder->names);
  clv__map_finish(&builder->symbols);
  clv__release(allocator, builder->nodes.items);
  clv__release(allocator, builder->inputs.items);
  clv__release(allocator, builder->outputs.items);
  clv__release(allocator, (void *)builder->symbol_names.items);
  clv__release(allocator, (void *)builder->metadata.items);
  clv__release(allocator, builder->values);
  clv__release(allocator, builder->imports);
  clv__release(allocator, builder);
}

void clv__builder_destroy(clv__builder *builder) {
  if (builder == NULL) return;
  builder->graph->nodes = builder->nodes.items; /* so that destroying the graph also destroys the bodies */
  builder->graph->node_count = (uint32_t)builder->nodes.count;
  clv__graph_destroy(builder->graph);
  clv__builder_free(builder);
}

clv__arena *clv__builder_arena(clv__builder *builder) {
  return &builder->graph->arena;
}

clv_status clv__builder_value(clv__builder *builder, const char *name, clv_value_id *value, clv_error *error) {
  uint32_t found = clv__map_find(&builder->names, name);
  if (found != CLV__MAP_NONE) {
    *value = found;
    return CLV_OK;
  }
  clv_graph *graph = builder->graph;
  if (builder->value_count >= CLV__NO_ID - 1) return clv__error_set(error, CLV_TOO_LARGE, "more than 2^32 values");
  char *copy = clv__arena_string(&graph->arena, name, strlen(name));
  if (copy == NULL ||
      !clv__array_reserve(graph->allocator, (void **)&builder->values, &builder->value_capacity, builder->value_count + 1,
                          sizeof *builder->values, builder->value_count) ||
      !clv__map_set(&builder->names, copy, (uint32_t)builder->value_count)) {
    return clv__error_memory(error, sizeof(clv__value));
  }
  builder->values[builder->value_count] =
      (clv__value){.name = copy, .type = {.rank = CLV_RANK_UNKNOWN}, .producer = CLV__NO_ID, .capture = CLV__NO_ID};
  *value = (clv_value_id)builder->value_count++;
  return CLV_OK;
}

clv_status clv__builder_symbol(clv__builder *builder, const char *name, uint32_t *symbol, clv_error *error) {
  *symbol = clv__map_find(&builder->symbols, name);
  if (*symbol != CLV__MAP_NONE) return CLV_OK;
  *symbol = (uint32_t)builder->symbol_names.count;
  char *copy = clv__arena_string(&builder->graph->arena, name, strlen(name));
  if (copy == NULL || !PUSH(builder, &builder->symbol_names, copy) || !clv__map_set(&builder->symbols, copy, *symbol)) {
    return clv__error_memory(error, strlen(name));
  }
  return CLV_OK;
}

void clv__builder_type(clv__builder *builder, clv_value_id value, const clv_tensor *type) {
  void *data = builder->values[value].type.data;
  builder->values[value].type = *type;
  if (type->data == NULL)
    builder->values[value].type.data = data;
  else
    builder->values[value].is_unbound = false;
}

void clv__builder_unbound(clv__builder *builder, clv_value_id value) {
  builder->values[value].is_unbound = builder->values[value].type.data == NULL;
}

const clv_tensor *clv__builder_type_of(const clv__builder *builder, clv_value_id value) {
  return &builder->values[value].type;
}

clv_status clv__builder_input(clv__builder *builder, clv_value_id value, clv_error *error) {
  if (builder->values[value].is_input) {
    return clv__error_set(error, CLV_INVALID_MODEL, "input '%s' is listed twice", builder->values[value].name);
  }
  builder->values[value].is_input = true;
  return PUSH(builder, &builder->inputs, value) ? CLV_OK : clv__error_memory(error, sizeof value);
}

clv_status clv__builder_output(clv__builder *builder, clv_value_id value, clv_error *error) {
  builder->values[value].is_output = true;
  return PUSH(builder, &builder->outputs, value) ? CLV_OK : clv__error_memory(error, sizeof value);
}

clv_status clv__builder_import(clv__builder *builder, const char *domain, int32_t version, clv_error *error) {
  for (size_t i = 0; i < builder->import_count; ++i) {
    if (strcmp(builder->imports[i].domain, domain) == 0) {
      builder->imports[i].version = version;
      return CLV_OK;
    }
  }
  const clv_allocator *allocator = builder->graph->allocator;
  char *copy = clv__arena_string(&builder->graph->arena, domain, strlen(domain));
  if (copy == NULL || !clv__array_reserve(allocator, (void **)&builder->imports, &builder->import_capacity,
                                          builder->import_count + 1, sizeof *builder->imports, builder->import_count)) {
    return clv__error_memory(error, strlen(domain));
  }
  builder->imports[builder->import_count++] = (clv__opset_import){copy, version};
  return CLV_OK;
}

clv_status clv__builder_metadata(clv__builder *builder, const char *key, const char *value, clv_error *error) {
  clv__arena *arena = &builder->graph->arena;
  char *key_copy = clv__arena_string(arena, key, strlen(key)), *value_copy = clv__arena_string(arena, value, strlen(value));
  if (key_copy == NULL || value_copy == NULL || !PUSH(builder, &builder->metadata, key_copy)) {
    return clv__error_memory(error, strlen(key) + strlen(value));
  }
  if (!PUSH(builder, &builder->metadata, value_copy)) {
    --builder->metadata.count;
    return clv__error_memory(error, strlen(value));
  }
  return CLV_OK;
}

void clv__builder_info(clv__builder *builder, const char *name, const char *path, int64_t ir_version) {
  clv_graph *graph = builder->graph;
  const char *name_copy = name == NULL ? NULL : clv__arena_string(&graph->arena, name, strlen(name));
  const char *path_copy = path == NULL ? NULL : clv__arena_string(&graph->arena, path, strlen(path));
  if (name_copy != NULL) graph->name = name_copy;
  if (path_copy != NULL) graph->path = path_copy;
  graph->ir_version = ir_version;
}

clv_status clv__builder_own_map(clv__builder *builder, const clv__file_map *map, const char *path, clv_error *error) {
  return clv__graph_own_map(builder->graph, map, path, error);
}

/* Adds the outer names that a body reads to the inputs of its node, once each, after the explicit inputs. */
static clv_status bind_captures(clv__builder *builder, clv_graph *body, clv__builder_ids *operands, size_t explicit_count,
                                clv_error *error) {
  for (uint32_t i = 0; i < body->capture_count; ++i) {
    clv_value_id outer;
    CLV__TRY(clv__builder_value(builder, body->values[body->captures[i]].name, &outer, error));
    size_t at = explicit_count;
    while (at < operands->count && operands->items[at] != outer) ++at;
    if (at == operands->count && !PUSH(builder, operands, outer)) return clv__error_memory(error, sizeof outer);
    ((uint32_t *)body->capture_index)[i] = (uint32_t)(at - explicit_count);
  }
  return CLV_OK;
}

/* Makes the node that is about to be added the producer of `outputs`. Fails if a value has a producer already. */
static clv_status take_outputs(clv__builder *builder, const char *where, const char *op, const clv_value_id *outputs,
                               uint32_t output_count, clv_error *error) {
  const clv_node_id self = (clv_node_id)builder->nodes.count;
  for (uint32_t i = 0; i < output_count; ++i) {
    if (outputs[i] == CLV__NO_ID) continue;
    clv__value *value = &builder->values[outputs[i]];
    if (value->producer == CLV__NO_ID) {
      value->producer = self;
      continue;
    }
    return clv__error_set(error, CLV_INVALID_MODEL, "node '%s' (%s): output '%s' is %s", where, op, value->name,
                          value->producer == self ? "listed twice" : "already an output of another node");
  }
  return CLV_OK;
}

clv_status clv__builder_source(clv__builder *builder, const char *name, const char *op, clv_error *error) {
  clv__arena *arena = &builder->graph->arena;
  const char *name_copy = name == NULL ? "" : clv__arena_string(arena, name, strlen(name));
  const char *op_copy = op == NULL ? "" : clv__arena_string(arena, op, strlen(op));
  if (name_copy == NULL) return clv__error_memory(error, strlen(name));
  if (op_copy == NULL) return clv__error_memory(error, strlen(op));
  builder->source_name = name_copy;
  builder->source_op = op_copy;
  return CLV_OK;
}

clv_status clv__builder_node(clv__builder *builder, const char *name, const char *domain, const char *op,
                             const clv_value_id *inputs, uint32_t input_count, const clv_value_id *outputs, uint32_t output_count,
                             const clv_attribute *attributes, uint32_t attribute_count, clv_error *error) {
  clv__arena *arena = &builder->graph->arena;
  CLV__TRY(take_outputs(builder, name[0] != '\0' ? name : op, op, outputs, output_count, error));
  clv__builder_ids operands = {0};
  clv_status status = CLV_OK;
  if (input_count > 0) {
    if (!clv__array_reserve(builder->graph->allocator, (void **)&operands.items, &operands.capacity, input_count, sizeof *inputs,
                            0)) {
      return clv__error_memory(error, input_count * sizeof *inputs);
    }
    memcpy(operands.items, inputs, input_count * sizeof *inputs);
    operands.count = input_count;
  }
  for (uint32_t i = 0; i < attribute_count; ++i) {
    if (attributes[i].kind != CLV_ATTRIBUTE_GRAPH) continue;
    CLV__TRY_GOTO(bind_captures(builder, (clv_graph *)attributes[i].graph->graph, &operands, input_count, error));
  }
  clv__node node = {
      .name = clv__arena_string(arena, name, strlen(name)), /* as given; clv__builder_finish() makes it unique */
      .source_op = builder->source_op,
      .op = clv__arena_string(arena, op, strlen(op)),
      .domain = clv__arena_string(arena, domain, strlen(domain)),
      .input_count = (uint32_t)operands.count,
      .capture_count = (uint32_t)(operands.count - input_count),
      .output_count = output_count,
      .inputs = clv__arena_copy(arena, operands.items, operands.count * sizeof *inputs),
      .outputs = clv__arena_copy(arena, outputs, output_count * sizeof *outputs),
      .attributes = {clv__arena_copy(arena, attributes, attribute_count * sizeof *attributes), attribute_count},
  };
  node.source_name = node.source_op[0] != '\0' ? builder->source_name : node.name;
  if (node.name == NULL || node.op == NULL || node.domain == NULL || node.inputs == NULL || node.outputs == NULL ||
      node.attributes.items == NULL || !PUSH(builder, &builder->nodes, node)) {
    status = clv__error_memory(error, sizeof node);
    goto cleanup;
  }
cleanup:
  clv__release(builder->graph->allocator, operands.items);
  return status;
}
