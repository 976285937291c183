/* Building a graph: names become ids, values get producers, nodes an order. See graph.h. */
#include <string.h>

#include "base/text.h"
#include "graph/graph.h"
#include "graph/own.h"
#include "graph/view.h"

typedef struct node_list {
  clv__node *items;
  size_t count, capacity;
} node_list;

typedef struct id_list {
  clv_value_id *items;
  size_t count, capacity;
} id_list;

typedef struct name_list {
  const char **items;
  size_t count, capacity;
} name_list;

struct clv__builder {
  clv_graph *graph; /* its arena is in use from the start; its arrays are filled by finish */
  clv__map names;
  clv__map symbols;
  node_list nodes;
  id_list inputs, outputs;
  name_list symbol_names, metadata;
  clv__value *values;
  size_t value_count, value_capacity;
  clv__opset_import *imports;
  size_t import_count, import_capacity;
  const char *source_name, *source_op; /* of the nodes to come; "" */
};

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

/* Frees the lists; the graph lives on where it is not NULL any more. */
static void builder_free(clv__builder *builder) {
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
  builder->graph->nodes = builder->nodes.items; /* so that bodies die with it */
  builder->graph->node_count = (uint32_t)builder->nodes.count;
  clv__graph_destroy(builder->graph);
  builder_free(builder);
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

clv_status clv__builder_own_map(clv__builder *builder, const clv__file_map *map, clv_error *error) {
  return clv__graph_own_map(builder->graph, map, error);
}

/* The names a body reads from around it become inputs of its node, after the explicit ones, each once. */
static clv_status bind_captures(clv__builder *builder, clv_graph *body, id_list *operands, size_t explicit_count,
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

/* Makes the node that is about to be added the producer of its outputs. */
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
  if (name_copy == NULL || op_copy == NULL) return clv__error_memory(error, strlen(name) + strlen(op));
  builder->source_name = name_copy;
  builder->source_op = op_copy;
  return CLV_OK;
}

clv_status clv__builder_node(clv__builder *builder, const char *name, const char *domain, const char *op,
                             const clv_value_id *inputs, uint32_t input_count, const clv_value_id *outputs, uint32_t output_count,
                             const clv_attribute *attributes, uint32_t attribute_count, clv_error *error) {
  clv__arena *arena = &builder->graph->arena;
  CLV__TRY(take_outputs(builder, name[0] != '\0' ? name : op, op, outputs, output_count, error));
  id_list operands = {0};
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
      .name = clv__arena_string(arena, name, strlen(name)), /* as given: clv__builder_finish() makes it unique */
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

/* ---- Finishing ---- */

/* Depth-first over producers, in the model's order: keeps that order where it is topological. `order[i]` is the old index of the
 * i-th node. Iterative: a model may be a chain of a million nodes. */
static clv_status sort_nodes(const clv__builder *builder, uint32_t *order, uint32_t *stack, uint32_t *cursor, clv_error *error) {
  const uint32_t DONE = UINT32_MAX;
  const clv__node *nodes = builder->nodes.items;
  uint32_t sorted = 0;
  for (uint32_t root = 0; root < builder->nodes.count; ++root) {
    if (cursor[root] == DONE) continue;
    uint32_t depth = 0;
    stack[depth++] = root;
    while (depth > 0) {
      uint32_t at = stack[depth - 1];
      uint32_t next = UINT32_MAX;
      while (cursor[at] < nodes[at].input_count) {
        clv_value_id input = nodes[at].inputs[cursor[at]++];
        if (input == CLV__NO_ID) continue;
        uint32_t producer = builder->values[input].producer;
        if (producer == CLV__NO_ID || cursor[producer] == DONE) continue;
        next = producer;
        break;
      }
      if (next == UINT32_MAX) {
        cursor[at] = DONE;
        order[sorted++] = at;
        --depth;
        continue;
      }
      if (cursor[next] != 0) { /* begun and not done: it is on the stack */
        const clv__node *node = &nodes[next];
        return clv__error_set(error, CLV_INVALID_MODEL, "node '%s' (%s) reads, through others, what it makes itself: a cycle",
                              node->source_name[0] != '\0' ? node->source_name : node->op, node->op);
      }
      stack[depth++] = next;
    }
  }
  return CLV_OK;
}

/* Unique names: the model's where it gives one and gives it once, `Op#index` otherwise. */
static clv_status name_nodes(clv__builder *builder, clv__node *nodes, uint32_t count, clv_error *error) {
  clv__map seen;
  clv__map_init(&seen, builder->graph->allocator);
  clv_status status = CLV_OK;
  for (uint32_t i = 0; i < count && status == CLV_OK; ++i) {
    const char *name = nodes[i].name;
    if (name[0] == '\0') continue;
    uint32_t times = clv__map_find(&seen, name);
    if (!clv__map_set(&seen, name, times == CLV__MAP_NONE ? 1 : 2)) status = clv__error_memory(error, sizeof(clv__map_slot));
  }
  for (uint32_t i = 0; i < count && status == CLV_OK; ++i) {
    const char *name = nodes[i].name;
    if (name[0] != '\0' && clv__map_find(&seen, name) == 1) continue;
    clv__text made;
    clv__text_init(&made, builder->graph->allocator);
    clv__text_append(&made, "%s#%u", nodes[i].op, i);
    while (!made.failed && clv__map_find(&seen, made.data) != CLV__MAP_NONE) clv__text_append(&made, "'");
    nodes[i].name = made.failed ? NULL : clv__arena_string(&builder->graph->arena, made.data, made.size_bytes);
    clv__text_finish(&made);
    if (nodes[i].name == NULL) status = clv__error_memory(error, strlen(name) + 16);
  }
  clv__map_finish(&seen);
  return status;
}

static clv_status take_nodes(clv__builder *builder, clv_error *error) {
  clv_graph *graph = builder->graph;
  uint32_t count = (uint32_t)builder->nodes.count;
  uint32_t *scratch = clv__allocate_zero(graph->allocator, (size_t)count * 4 * sizeof *scratch);
  clv__node *nodes = clv__arena_allocate_zero(&graph->arena, count, sizeof *nodes);
  if (scratch == NULL || nodes == NULL) {
    clv__release(graph->allocator, scratch);
    return clv__error_memory(error, (size_t)count * sizeof *nodes);
  }
  uint32_t *order = scratch, *stack = scratch + count, *cursor = scratch + 2 * (size_t)count,
           *place = scratch + 3 * (size_t)count;
  clv_status status = sort_nodes(builder, order, stack, cursor, error);
  if (status == CLV_OK) {
    for (uint32_t i = 0; i < count; ++i) {
      nodes[i] = builder->nodes.items[order[i]];
      place[order[i]] = i;
    }
    for (size_t v = 0; v < builder->value_count; ++v) {
      if (builder->values[v].producer != CLV__NO_ID) builder->values[v].producer = place[builder->values[v].producer];
    }
    if (count > 0) memcpy(builder->nodes.items, nodes, (size_t)count * sizeof *nodes);
    status = name_nodes(builder, nodes, count, error);
  }
  if (status == CLV_OK) {
    graph->nodes = nodes;
    graph->node_count = count;
  }
  clv__release(graph->allocator, scratch);
  return status;
}

static clv_status make_uses(clv_graph *graph, clv_error *error) {
  uint32_t *offsets = clv__arena_allocate_zero(&graph->arena, (size_t)graph->value_count + 2, sizeof *offsets);
  if (offsets == NULL) return clv__error_memory(error, graph->value_count * sizeof *offsets);
  uint64_t total = 0;
  for (uint32_t n = 0; n < graph->node_count; ++n) {
    for (uint32_t i = 0; i < graph->nodes[n].input_count; ++i) {
      if (graph->nodes[n].inputs[i] == CLV__NO_ID) continue;
      ++offsets[graph->nodes[n].inputs[i] + 2];
      ++total;
    }
  }
  clv_node_id *uses = clv__arena_allocate_zero(&graph->arena, total, sizeof *uses);
  if (uses == NULL || total > UINT32_MAX) return clv__error_memory(error, total * sizeof *uses);
  for (uint32_t v = 2; v < graph->value_count + 2; ++v) offsets[v] += offsets[v - 1];
  for (uint32_t n = 0; n < graph->node_count; ++n) {
    for (uint32_t i = 0; i < graph->nodes[n].input_count; ++i) {
      clv_value_id input = graph->nodes[n].inputs[i];
      if (input != CLV__NO_ID) uses[offsets[input + 1]++] = n;
    }
  }
  graph->use_offsets = offsets; /* filling shifted every start one place down */
  graph->use_nodes = uses;
  return CLV_OK;
}

static bool is_orphan(const clv__value *value) {
  return value->producer == CLV__NO_ID && !value->is_input && !value->is_unbound && value->type.data == NULL;
}

static clv_status check_orphans(const clv_graph *graph, clv_error *error) {
  for (uint32_t v = 0; v < graph->value_count; ++v) {
    const clv__value *value = &graph->values[v];
    if (!is_orphan(value)) continue;
    if (graph->use_offsets[v] != graph->use_offsets[v + 1]) {
      const clv__node *node = &graph->nodes[graph->use_nodes[graph->use_offsets[v]]];
      return clv__error_set(error, CLV_INVALID_MODEL,
                            "node '%s' (%s) reads '%s', which is no input, no initializer and no node's output", node->name,
                            node->op, value->name);
    }
    if (value->is_output) {
      return clv__error_set(error, CLV_INVALID_MODEL, "output '%s' is made by no node, and is no input or initializer",
                            value->name);
    }
  }
  return CLV_OK;
}

static clv_status take_captures(clv_graph *graph, clv_error *error) {
  uint32_t count = 0;
  for (uint32_t pass = 0; pass < 2; ++pass) {
    if (pass == 1) {
      graph->captures = clv__arena_allocate_zero(&graph->arena, count, sizeof *graph->captures);
      graph->capture_index = clv__arena_allocate_zero(&graph->arena, count, sizeof *graph->capture_index);
      if (graph->captures == NULL || graph->capture_index == NULL) return clv__error_memory(error, count * sizeof count);
      graph->capture_count = count;
      count = 0;
    }
    for (uint32_t v = 0; v < graph->value_count; ++v) {
      const clv__value *value = &graph->values[v];
      bool read = value->is_output || graph->use_offsets[v] != graph->use_offsets[v + 1];
      if (!is_orphan(value) || !read) continue;
      if (pass == 1) {
        ((clv_value_id *)graph->captures)[count] = v;
        ((clv__value *)graph->values)[v].capture = count;
      }
      ++count;
    }
  }
  return CLV_OK;
}

static clv_status take_imports(clv__builder *builder, const clv__builder *parent, clv_error *error) {
  clv_graph *graph = builder->graph;
  const clv__builder *from = parent != NULL ? parent : builder;
  clv__opset_import *imports = clv__arena_copy(&graph->arena, from->imports, from->import_count * sizeof *imports);
  if (imports == NULL) return clv__error_memory(error, from->import_count * sizeof *imports);
  graph->import_count = (uint32_t)from->import_count;
  graph->imports = imports;
  for (uint32_t i = 0; i < graph->import_count; ++i) {
    imports[i].domain = clv__arena_string(&graph->arena, imports[i].domain, strlen(imports[i].domain));
    if (imports[i].domain == NULL) return clv__error_memory(error, 1);
  }
  for (uint32_t n = 0; n < graph->node_count; ++n) {
    clv__node *node = (clv__node *)&graph->nodes[n];
    node->opset = 0;
    for (uint32_t i = 0; i < graph->import_count; ++i) {
      if (strcmp(imports[i].domain, node->domain) == 0) node->opset = imports[i].version;
    }
    if (node->opset == 0) {
      return clv__error_set(error, CLV_INVALID_MODEL, "node '%s' (%s) is of domain '%s', whose opset the model does not import",
                            node->name, node->op, node->domain[0] != '\0' ? node->domain : "ai.onnx");
    }
  }
  return CLV_OK;
}

/* Before IR version 4 every initializer had to be listed as an input: such inputs are not inputs. */
static void drop_old_inputs(clv__builder *builder) {
  if (builder->graph->ir_version >= 4 || builder->graph->ir_version == 0) return;
  size_t kept = 0;
  for (size_t i = 0; i < builder->inputs.count; ++i) {
    clv__value *value = &builder->values[builder->inputs.items[i]];
    if (value->type.data != NULL)
      value->is_input = false;
    else
      builder->inputs.items[kept++] = builder->inputs.items[i];
  }
  builder->inputs.count = kept;
}

static clv_status finish(clv__builder *builder, const clv__builder *parent, bool is_body, clv_error *error) {
  clv_graph *graph = builder->graph;
  drop_old_inputs(builder);
  for (size_t v = 0; v < builder->value_count; ++v) {
    const clv__value *value = &builder->values[v];
    if (value->is_unbound && value->is_input) {
      return clv__error_set(error, CLV_INVALID_MODEL, "'%s' is an input and a weight too", value->name);
    }
    if (value->producer != CLV__NO_ID && (value->is_input || value->is_unbound || value->type.data != NULL)) {
      return clv__error_set(error, CLV_INVALID_MODEL, "'%s' is %s and the output of node '%s' too", value->name,
                            value->is_input     ? "an input"
                            : value->is_unbound ? "a weight"
                                                : "an initializer",
                            builder->nodes.items[value->producer].source_name);
    }
  }
  CLV__TRY(take_nodes(builder, error));
  CLV__TRY(take_imports(builder, parent, error));
  clv__arena *arena = &graph->arena;
  graph->value_count = (uint32_t)builder->value_count;
  graph->values = clv__arena_copy(arena, builder->values, builder->value_count * sizeof *builder->values);
  graph->input_count = (uint32_t)builder->inputs.count;
  graph->inputs = clv__arena_copy(arena, builder->inputs.items, builder->inputs.count * sizeof *graph->inputs);
  graph->output_count = (uint32_t)builder->outputs.count;
  graph->outputs = clv__arena_copy(arena, builder->outputs.items, builder->outputs.count * sizeof *graph->outputs);
  graph->symbol_count = (uint32_t)builder->symbol_names.count;
  graph->symbols =
      clv__arena_copy(arena, (const void *)builder->symbol_names.items, builder->symbol_names.count * sizeof(char *));
  graph->metadata_count = (uint32_t)(builder->metadata.count / 2);
  graph->metadata = clv__arena_copy(arena, (const void *)builder->metadata.items, builder->metadata.count * sizeof(char *));
  if (graph->values == NULL || graph->inputs == NULL || graph->outputs == NULL || graph->symbols == NULL ||
      graph->metadata == NULL) {
    return clv__error_memory(error, builder->value_count * sizeof *builder->values);
  }
  CLV__TRY(make_uses(graph, error));
  CLV__TRY(is_body ? take_captures(graph, error) : check_orphans(graph, error));
  clv_graph_view *whole = NULL;
  CLV__TRY(clv__view_create_whole(graph, NULL, arena, &whole, error));
  graph->whole = whole;
  return CLV_OK;
}

clv_status clv__builder_finish(clv__builder *builder, clv_graph **graph, clv_error *error) {
  *graph = NULL;
  clv_status status = finish(builder, NULL, false, error);
  if (status != CLV_OK) {
    clv__builder_destroy(builder);
    return status;
  }
  *graph = builder->graph;
  builder_free(builder);
  return CLV_OK;
}

clv_status clv__builder_finish_body(clv__builder *builder, const clv__builder *parent, const clv_graph_view **body,
                                    clv_error *error) {
  *body = NULL;
  clv_status status = finish(builder, parent, true, error);
  if (status != CLV_OK) {
    clv__builder_destroy(builder);
    return status;
  }
  *body = builder->graph->whole;
  builder_free(builder);
  return CLV_OK;
}
