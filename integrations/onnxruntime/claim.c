/* Which nodes the provider takes from ONNX Runtime: those that some device of Cleave can run, in groups. */
#include <string.h>

#include "claim.h"

/* ---- What Cleave can run ---- */

/* Sets `is_plain` to whether all values of a list are tensors that Cleave can take from ONNX Runtime, and give to it. */
static clv_status check_values(const claims *c, const clv__ep_values *values, bool *is_plain, clv_error *error) {
  for (size_t i = 0; i < values->count && *is_plain; ++i) {
    clv_tensor type;
    const char *symbols[CLV_MAX_RANK], *name;
    TRY(clv__ep_value_name(c->provider, values->items[i], &name, error));
    if (name[0] == '\0') continue;
    TRY(clv__ep_value_type(c->provider, values->items[i], &type, symbols, error));
    *is_plain = type.dtype != CLV_DTYPE_NONE && type.dtype != CLV_STRING;
  }
  return CLV_OK;
}

static clv_status check_plain(const claims *c, const OrtNode *node, bool *is_plain, clv_error *error) {
  static const clv__ep_list lists[] = {CLV__EP_NODE_INPUTS, CLV__EP_NODE_OUTPUTS, CLV__EP_NODE_CAPTURES};
  *is_plain = true;
  for (size_t i = 0; i < sizeof lists / sizeof *lists && *is_plain; ++i) {
    clv__ep_values values;
    TRY(clv__ep_read_values(c->provider, node, lists[i], c->arena, &values, error));
    TRY(check_values(c, &values, is_plain, error));
  }
  return CLV_OK;
}

/* Keeps the reasons of all devices: "npu: no kernel for Erf; cpu: …". */
static clv_status keep_reasons(const claims *c, const clv_support *support, uint32_t node, const char **reason,
                               clv_error *error) {
  char text[600];
  size_t used = 0;
  for (uint32_t d = 0; d < clv_devices_count(c->provider->devices) && used < sizeof text; ++d) {
    const char *refusal = clv_support_refusal(support, node, d);
    if (refusal == NULL) continue;
    int written = snprintf(text + used, sizeof text - used, "%s%s: %s", used > 0 ? "; " : "",
                           clv_devices_name(c->provider->devices, d), refusal);
    used += written < 0 ? 0 : (size_t)written;
  }
  *reason = clv__ep_copy_text(c->arena, text, strnlen(text, sizeof text - 1));
  return *reason == NULL ? clv__ep_no_memory(error) : CLV_OK;
}

/* Asks about some nodes, as one graph. `numbers`: their places in c->nodes. Marks those that no device can run, and counts them.
 * Fails if the nodes cannot be made a graph. `is_declared`: believe what ONNX Runtime says of the types of values. It knows those
 * of operators that Cleave does not know; but a model may declare sizes that are wrong, so groups are compiled without. */
static clv_status ask(claims *c, const uint32_t *numbers, size_t count, bool is_declared, size_t *refused, clv_error *error) {
  clv__ep_part part = {.graph = c->graph, .nodes = {NULL, count}, .is_declared = is_declared, .ownership = CLV_BORROW};
  clv_graph *graph = NULL;
  clv_support *support = NULL;
  *refused = 0;
  part.nodes.items = clv__ep_take(c->arena, count + 1, sizeof *part.nodes.items);
  if (part.nodes.items == NULL) return clv__ep_no_memory(error);
  for (size_t i = 0; i < count; ++i) part.nodes.items[i] = c->nodes.items[numbers[i]];
  TRY(clv__ep_make_graph(c->provider, &part, &graph, error));
  clv_status status = clv_support_ask(graph, c->provider->devices, &c->provider->options.plan, &support, error);
  if (status == CLV_OK && clv_support_node_count(support) != count) {
    status = clv__ep_error(error, CLV_INTERNAL_ERROR, "%zu nodes became %u", count, clv_support_node_count(support));
  }
  for (size_t i = 0; status == CLV_OK && i < count; ++i) {
    clv_node_support verdict = {.struct_size = sizeof verdict};
    clv_support_node(support, (uint32_t)i, &verdict);
    if (verdict.can_run) continue;
    c->state[numbers[i]] = REFUSED;
    ++*refused;
    status = keep_reasons(c, support, (uint32_t)i, &c->reasons[numbers[i]], error);
  }
  clv_support_destroy(support);
  clv_graph_destroy(graph);
  return status;
}

/* Lists the nodes that are not refused so far and, unless `level` is ANY, have this level. */
static size_t select_nodes(const claims *c, uint32_t level, uint32_t *numbers) {
  size_t count = 0;
  for (uint32_t n = 0; n < c->nodes.count; ++n) {
    if (c->state[n] == POSSIBLE && (level == ANY || c->level[n] == level)) numbers[count++] = n;
  }
  return count;
}

/* Asks about each node alone, because all together cannot be made a graph. */
static clv_status ask_each(claims *c, clv_error *error) {
  for (uint32_t n = 0; n < c->nodes.count; ++n) {
    clv_error why = {0};
    size_t refused;
    if (c->state[n] != POSSIBLE) continue;
    clv_status status = ask(c, &n, 1, true, &refused, &why);
    if (status == CLV_OUT_OF_MEMORY) return clv__ep_no_memory(error);
    if (status == CLV_OK) continue;
    c->state[n] = REFUSED;
    c->reasons[n] = clv__ep_copy_text(c->arena, why.message, strlen(why.message));
    if (c->reasons[n] == NULL) return clv__ep_no_memory(error);
  }
  return CLV_OK;
}

clv_status clv__ep_ask_all(claims *c, clv_error *error) {
  clv_error why = {0};
  size_t refused, count;
  for (uint32_t n = 0; n < c->nodes.count; ++n) {
    bool is_plain;
    TRY(check_plain(c, c->nodes.items[n], &is_plain, error));
    c->state[n] = is_plain ? POSSIBLE : REFUSED;
    if (!is_plain) c->reasons[n] = "it reads or computes a value that is not a tensor, or one of strings";
  }
  count = select_nodes(c, ANY, c->numbers);
  if (count == 0) return CLV_OK;
  clv_status status = ask(c, c->numbers, count, true, &refused, &why);
  if (status == CLV_OK) return CLV_OK;
  if (status == CLV_OUT_OF_MEMORY) return clv__ep_no_memory(error);
  clv__ep_log(c->provider, ORT_LOG_INFO, "cleave: asking about each node alone: %s", why.message);
  return ask_each(c, error);
}

/* ---- Groups ---- */

/* A level begins where a refused node is between two nodes. Levels of nodes never fall along an edge. Nodes that are not refused
 * have even levels, refused ones have odd levels. So a path between two nodes of one even level has only nodes of that level:
 * all of them are one convex group, and the graph of groups and refused nodes has no cycle. */
clv_status clv__ep_set_levels(claims *c, clv_error *error) {
  c->top = 0;
  for (uint32_t n = 0; n < c->nodes.count; ++n) {
    static const clv__ep_list lists[] = {CLV__EP_NODE_INPUTS, CLV__EP_NODE_CAPTURES};
    uint32_t level = 0;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; ++i) {
      clv__ep_values values;
      TRY(clv__ep_read_values(c->provider, c->nodes.items[n], lists[i], c->arena, &values, error));
      for (size_t k = 0; k < values.count; ++k) {
        const char *name;
        TRY(clv__ep_value_name(c->provider, values.items[k], &name, error));
        uint32_t producer = clv__ep_find(&c->producers, name);
        if (producer != CLV__EP_ABSENT && c->level[producer] > level) level = c->level[producer];
      }
    }
    c->level[n] = level + (level % 2 != (c->state[n] == REFUSED));
    if (c->level[n] > c->top) c->top = c->level[n];
  }
  return CLV_OK;
}

/* Asks about each group alone. A device may refuse a node there that it accepted in the whole graph, where more is known: the
 * value of a constant that another group computes, for example. Sets `is_final` to whether none was refused. */
static clv_status ask_groups(claims *c, bool *is_final, clv_error *error) {
  *is_final = true;
  for (uint32_t level = 0; level <= c->top; level += 2) {
    clv_error why = {0};
    size_t refused = 0, count = select_nodes(c, level, c->numbers);
    if (count == 0) continue;
    clv_status status = ask(c, c->numbers, count, false, &refused, &why);
    if (status == CLV_OUT_OF_MEMORY) return clv__ep_no_memory(error);
    for (size_t i = 0; status != CLV_OK && i < count; ++i) {
      c->state[c->numbers[i]] = REFUSED;
      c->reasons[c->numbers[i]] = clv__ep_copy_text(c->arena, why.message, strlen(why.message));
      if (c->reasons[c->numbers[i]] == NULL) return clv__ep_no_memory(error);
    }
    if (status != CLV_OK || refused > 0) *is_final = false;
  }
  return CLV_OK;
}

static clv_status claim(claims *c, OrtEpGraphSupportInfo *info, clv_error *error) {
  static const OrtNodeFusionOptions options = {CLV__ORT_API_VERSION, true};
  const OrtNode **group = clv__ep_take(c->arena, c->nodes.count + 1, sizeof *group);
  if (group == NULL) return clv__ep_no_memory(error);
  for (uint32_t level = 0; level <= c->top; level += 2) {
    size_t count = select_nodes(c, level, c->numbers);
    if (count == 0) continue;
    for (size_t i = 0; i < count; ++i) group[i] = c->nodes.items[c->numbers[i]];
    TRY(clv__ep_check(c->provider->api, c->provider->ep_api->EpGraphSupportInfo_AddNodesToFuse(info, group, count, &options),
                      "EpGraphSupportInfo_AddNodesToFuse", error));
  }
  return CLV_OK;
}

/* ---- A graph ---- */

static clv_status begin(claims *c, clv_error *error) {
  TRY(clv__ep_read_nodes(c->provider, c->graph, c->arena, &c->nodes, error));
  c->state = clv__ep_take(c->arena, c->nodes.count + 1, sizeof *c->state);
  c->level = clv__ep_take(c->arena, c->nodes.count + 1, sizeof *c->level);
  c->reasons = clv__ep_take(c->arena, c->nodes.count + 1, sizeof *c->reasons);
  c->numbers = clv__ep_take(c->arena, c->nodes.count + 1, sizeof *c->numbers);
  if (c->state == NULL || c->level == NULL || c->reasons == NULL || c->numbers == NULL) return clv__ep_no_memory(error);
  for (uint32_t n = 0; n < c->nodes.count; ++n) {
    clv__ep_values outputs;
    TRY(clv__ep_read_values(c->provider, c->nodes.items[n], CLV__EP_NODE_OUTPUTS, c->arena, &outputs, error));
    for (size_t i = 0; i < outputs.count; ++i) {
      const char *name;
      TRY(clv__ep_value_name(c->provider, outputs.items[i], &name, error));
      if (name[0] != '\0' && !clv__ep_put(c->arena, &c->producers, name, n)) return clv__ep_no_memory(error);
    }
  }
  return CLV_OK;
}

/* Sets `is_left` to whether no node of this graph may be taken. That is so for the body of a node that Cleave can run as a whole:
 * ONNX Runtime asks about bodies first, and to take a node of the body would leave the whole node to ONNX Runtime. It is also so
 * for the body of an operator that ONNX Runtime later replaces by simpler ones, which it cannot do with a fused node inside. */
static clv_status is_left_alone(const clv__ep *provider, const OrtGraph *graph, clv__ep_arena *arena, bool *is_left,
                                clv_error *error) {
  const OrtNode *parent = NULL;
  const char *op;
  *is_left = false;
  ORT(provider, Graph_GetParentNode, graph, &parent);
  if (parent == NULL) return CLV_OK;
  ORT(provider, Node_GetOperatorType, parent, &op);
  *is_left = true;
  if (strcmp(op, "If") != 0 && strcmp(op, "Loop") != 0 && strcmp(op, "Scan") != 0) return CLV_OK;
  enum node_state state = POSSIBLE;
  const char *reason = NULL;
  uint32_t number = 0;
  claims c = {.provider = provider, .graph = graph, .arena = arena, .nodes = {&parent, 1}, .state = &state, .reasons = &reason};
  c.level = c.numbers = &number;
  TRY(clv__ep_ask_all(&c, error));
  *is_left = state == POSSIBLE;
  return CLV_OK;
}

static clv_status get_capability(const clv__ep *provider, const OrtGraph *graph, OrtEpGraphSupportInfo *info,
                                 clv__ep_arena *arena, clv_error *error) {
  claims c = {.provider = provider, .graph = graph, .arena = arena};
  bool is_final = false;
  TRY(begin(&c, error));
  if (c.nodes.count == 0) return CLV_OK;
  TRY(is_left_alone(provider, graph, arena, &c.is_left, error));
  if (!c.is_left) {
    TRY(clv__ep_ask_all(&c, error));
    while (!is_final) { /* each round refuses a node more */
      TRY(clv__ep_set_levels(&c, error));
      TRY(ask_groups(&c, &is_final, error));
    }
    TRY(claim(&c, info, error));
  }
  return provider->options.report == NULL ? CLV_OK : clv__ep_report(&c, error);
}

OrtStatus *clv__ep_get_capability(OrtEp *self, const OrtGraph *graph, OrtEpGraphSupportInfo *info) {
  clv__ep *provider = (clv__ep *)self;
  clv__ep_arena arena = {0};
  clv_error error = {0};
  clv_status status = get_capability(provider, graph, info, &arena, &error);
  clv__ep_arena_finish(&arena);
  return clv__ep_status(provider->api, status, &error);
}
