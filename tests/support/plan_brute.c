/* See plan_brute.h. Nodes are assigned one after the other to a partition that exists or to a new one. */
#include "plan_brute.h"

#include <stdio.h>
#include <string.h>

#include "support.h"

typedef struct brute {
  const clv_graph *graph;
  clv_devices *devices;
  const uint32_t *choices;
  char hash[2 * CLV__HASH_BYTES + 1];
  uint32_t most, tried;
  uint32_t block_of[PLAN_BRUTE_NODES]; /* by node: the number of its partition */
  uint32_t block_devices[PLAN_BRUTE_NODES], block_sizes[PLAN_BRUTE_NODES], block_count;
  clv_plan *found;
} brute;

/* Sets `order` to an order in which the partitions can run: the next one is always the first that is ready. Returns false if
 * partitions wait for each other. */
static bool order_blocks(const brute *b, uint32_t *order) {
  const clv_graph *graph = b->graph;
  uint32_t waits[PLAN_BRUTE_NODES] = {0}, done = 0, count = 0;
  for (uint32_t n = 0; n < graph->node_count; ++n) {
    for (uint32_t i = 0; i < graph->nodes[n].input_count; ++i) {
      clv_node_id producer = graph->values[graph->nodes[n].inputs[i]].producer;
      if (producer != CLV__NO_ID && b->block_of[producer] != b->block_of[n]) waits[b->block_of[n]] |= 1u << b->block_of[producer];
    }
  }
  for (uint32_t next = 0; next < b->block_count;) {
    if ((done >> next & 1u) != 0 || (waits[next] & ~done) != 0) {
      ++next;
      continue;
    }
    done |= 1u << next;
    order[count++] = next;
    next = 0;
  }
  return count == b->block_count;
}

static void append(char *text, size_t room, const char *before, const char *name) {
  size_t used = strlen(text);
  assert_true(used + strlen(before) + strlen(name) + 3 < room);
  snprintf(text + used, room - used, "%s\"%s\"", before, name);
}

static void write_block(const brute *b, uint32_t block, bool is_streamed, char *text, size_t room) {
  const clv_graph *graph = b->graph;
  const char *before = "";
  append(text, room, "{\"device\": ", clv_devices_name(b->devices, b->block_devices[block]));
  strcat(text, ", \"nodes\": [");
  for (uint32_t n = 0; n < graph->node_count; ++n) {
    if (b->block_of[n] != block) continue;
    append(text, room, before, graph->nodes[n].name);
    before = ", ";
  }
  strcat(text, "], \"streamed\": [");
  before = "";
  is_streamed = is_streamed && b->devices->items[b->block_devices[block]].space != CLV__SPACE_HOST;
  for (uint32_t n = 0; is_streamed && n < graph->node_count; ++n) {
    for (uint32_t i = 0; b->block_of[n] == block && i < graph->nodes[n].input_count; ++i) {
      const clv__value *value = &graph->values[graph->nodes[n].inputs[i]];
      if (value->type.data == NULL) continue;
      append(text, room, before, value->name);
      before = ", ";
    }
  }
  strcat(text, "]}");
}

static void try_plan(brute *b, const uint32_t *order, bool is_streamed) {
  char text[4096];
  clv_error error;
  clv_plan *plan;
  snprintf(text, sizeof text, "{\"cleave_plan\": 1, \"model_hash\": \"%s\", \"partitions\": [", b->hash);
  for (uint32_t i = 0; i < b->block_count; ++i) {
    if (i > 0) strcat(text, ", ");
    write_block(b, order[i], is_streamed, text, sizeof text);
  }
  strcat(text, "]}");
  clv_status status = clv__plan_parse(b->graph, b->devices, text, strlen(text), NULL, &plan, &error);
  if (status != CLV_OK && status != CLV_NOT_SUPPORTED) fail_msg("%s: %s", text, error.message);
  bool fits = status == CLV_OK;
  for (uint32_t d = 0; fits && d < b->devices->count; ++d) fits = clv__plan_fits(plan, d);
  if (fits)
    b->found = plan;
  else if (status == CLV_OK)
    clv_plan_destroy(plan);
}

static void assign(brute *b, uint32_t node) {
  uint32_t order[PLAN_BRUTE_NODES];
  if (b->found != NULL || b->tried >= b->most) return;
  if (node == b->graph->node_count) {
    if (!order_blocks(b, order)) return;
    ++b->tried;
    try_plan(b, order, true);
    if (b->found == NULL) try_plan(b, order, false);
    return;
  }
  for (uint32_t d = 0; d < b->devices->count; ++d) { /* a new partition first: small ones need the least memory */
    if ((b->choices[node] >> d & 1u) == 0) continue;
    b->block_of[node] = b->block_count;
    b->block_devices[b->block_count] = d;
    b->block_sizes[b->block_count++] = 1;
    assign(b, node + 1);
    --b->block_count;
  }
  for (uint32_t block = 0; block < b->block_count; ++block) {
    const uint32_t most = b->devices->items[b->block_devices[block]].info.max_partition_nodes;
    if ((b->choices[node] >> b->block_devices[block] & 1u) == 0 || (most > 0 && b->block_sizes[block] == most)) continue;
    b->block_of[node] = block;
    ++b->block_sizes[block];
    assign(b, node + 1);
    --b->block_sizes[block];
  }
}

clv_plan *test_brute_plan(const clv_graph *graph, clv_devices *devices, const uint32_t *choices, uint32_t most, uint32_t *count) {
  brute b = {.graph = graph, .devices = devices, .choices = choices, .most = most};
  clv__hash hash;
  assert_true(graph->node_count <= PLAN_BRUTE_NODES);
  clv__graph_hash(graph, &hash);
  clv__hash_text(&hash, b.hash);
  assign(&b, 0);
  *count = b.tried;
  return b.found;
}
