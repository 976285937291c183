/* See html_groups.h. */
#include "report/page/html_groups.h"

#include <string.h>

#include "report/label.h"
#include "report/page/html_json.h"
#include "report/picture/groups.h"

/* Numbers the nodes by position, and adds an edge per pair of nodes of which one reads the other. */
static bool make_input(const clv_graph *graph, const clv_node_id *nodes, uint32_t count, clv__arena *arena,
                       clv__groups_input *input) {
  const char **names = clv__arena_allocate_zero(arena, (size_t)count + 1, sizeof *names);
  const char **operators = clv__arena_allocate_zero(arena, (size_t)count + 1, sizeof *operators);
  uint32_t *positions = clv__arena_allocate(arena, ((size_t)graph->node_count + 1) * sizeof *positions);
  size_t most = 1;
  for (uint32_t i = 0; i < count; ++i) most += graph->nodes[nodes[i]].input_count;
  uint32_t *from = clv__arena_allocate_zero(arena, most, sizeof *from), *to = clv__arena_allocate_zero(arena, most, sizeof *to);
  if (names == NULL || operators == NULL || positions == NULL || from == NULL || to == NULL) return false;
  memset(positions, 0xff, graph->node_count * sizeof *positions);
  for (uint32_t i = 0; i < count; ++i) {
    const clv__node *node = &graph->nodes[nodes[i]];
    positions[nodes[i]] = i;
    names[i] = node->name;
    operators[i] = clv__label_op(node);
    for (uint32_t k = 0; k < node->input_count; ++k) {
      clv_node_id producer = node->inputs[k] == CLV__NO_ID ? CLV__NO_ID : graph->values[node->inputs[k]].producer;
      if (producer == CLV__NO_ID || positions[producer] == CLV__NO_ID || positions[producer] == i) continue;
      from[input->edge_count] = positions[producer];
      to[input->edge_count++] = i;
    }
  }
  input->node_count = count;
  input->names = names;
  input->operators = operators;
  input->from = from;
  input->to = to;
  return true;
}

static void append_groups(const clv__groups *groups, const clv_node_id *nodes, uint32_t count, clv__text *text) {
  clv__text_append(text, "{\"order\":[");
  for (uint32_t i = 0; i < count; ++i) clv__text_append(text, "%s%u", i > 0 ? "," : "", nodes[groups->order[i]]);
  clv__text_append(text, "],\"groups\":[");
  for (uint32_t i = 0; i < groups->count; ++i) {
    const clv__group *group = &groups->items[i];
    clv__text_append(text, "%s[%d,%u,%u,%d,", i > 0 ? "," : "", group->parent == UINT32_MAX ? -1 : (int)group->parent,
                     group->first, group->end, (int)group->kind);
    if (group->name != NULL)
      clv__html_json_string(text, group->name);
    else
      clv__text_append(text, "%u", group->number);
    clv__text_append(text, ",%u]", group->total);
  }
  clv__text_append(text, "]}");
}

void clv__html_groups(const clv_graph *graph, const clv_node_id *nodes, uint32_t count, const uint32_t *parts, clv__text *text) {
  clv__arena arena;
  clv__arena_init(&arena, text->allocator);
  clv__groups_input input = {.parts = parts};
  clv__groups groups;
  if (make_input(graph, nodes, count, &arena, &input) && clv__groups_make(&input, &arena, &groups))
    append_groups(&groups, nodes, count, text);
  else
    text->failed = true;
  clv__arena_finish(&arena);
}
