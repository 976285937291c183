/* Finishes a graph: orders and names its nodes, indexes the readers of its values, and rejects invalid graphs. See graph.h. */
#include <string.h>

#include "base/text.h"
#include "graph/builder_own.h"
#include "graph/own.h"
#include "graph/view.h"

/* Depth-first search over producers, in the model's order; keeps that order if it is topological. `order[i]` is the old index
 * of the i-th node. Iterative, because a model may be a chain of a million nodes. */
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
      if (cursor[next] != 0) { /* started but not done: it is on the stack */
        const clv__node *node = &nodes[next];
        return clv__error_set(error, CLV_INVALID_MODEL, "node '%s' (%s) depends on its own output: the graph has a cycle",
                              node->source_name[0] != '\0' ? node->source_name : node->op, node->op);
      }
      stack[depth++] = next;
    }
  }
  return CLV_OK;
}

/* Gives unique names: the model's name if it exists and is unique, otherwise `Op#index`. */
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
  graph->use_offsets = offsets; /* the loop above advanced offsets[v + 1] from the start of v's uses to their end */
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
                            "node '%s' (%s) reads '%s', which is not an input, an initializer or a node's output", node->name,
                            node->op, value->name);
    }
    if (value->is_output) {
      return clv__error_set(error, CLV_INVALID_MODEL, "output '%s' is not produced by a node, and is not an input or initializer",
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
      return clv__error_set(error, CLV_INVALID_MODEL, "node '%s' (%s) is from domain '%s', whose opset the model does not import",
                            node->name, node->op, node->domain[0] != '\0' ? node->domain : "ai.onnx");
    }
  }
  return CLV_OK;
}

/* Before IR version 4 every initializer had to be listed as an input. Removes these from the inputs. */
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
      return clv__error_set(error, CLV_INVALID_MODEL, "'%s' is both an input and a weight", value->name);
    }
    if (value->producer != CLV__NO_ID && (value->is_input || value->is_unbound || value->type.data != NULL)) {
      return clv__error_set(error, CLV_INVALID_MODEL, "'%s' is both %s and the output of node '%s'", value->name,
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
  clv__builder_free(builder);
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
  clv__builder_free(builder);
  return CLV_OK;
}
