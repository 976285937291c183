/* See html_data.h. To keep a page with thousands of nodes small, the data has arrays instead of objects, and repeated texts are
 * indices in `texts`.
 *
 *   texts       all operators, types, causes and reasons; text 0 is ""
 *   devices     {name, color, space}
 *   lanes       lanes of the timeline, {name, color}: devices, then memories that are the source or target of a copy
 *   nodes       [name, op, device or -1, cause, meaning, note, partition or -1, inputs, outputs,
 *                by device: the reason why it cannot run the node, or "",
 *                by device: the change of the cost if the node moved there]
 *   values      [name, type, producer or -1, 0 | 1 an input of the graph | 2 constant]
 *   partitions  [device, time, start, start in sequence, nodes, inputs, outputs]
 *   transfers   [value, from, to, bytes or -1, time, start, start in sequence, lane, source space, target space]
 *   foldings    the groups of the nodes that run, for the picture in layers (html_groups.h): by scope, and if there are several
 *               partitions, also by partition
 *
 * Times are nanoseconds. "Start in sequence" is the start if the steps run one after the other. The changes of the cost are null
 * if computing all of them would take too long. */
#include "report/page/html_data.h"

#include <inttypes.h>
#include <string.h>

#include "place/place.h"
#include "report/label.h"
#include "report/page/html_groups.h"
#include "report/page/html_json.h"
#include "report/picture/palette.h"

enum { MOST_MOVE_WORK = 40000000 }; /* limit in can_price_moves(): the work of about a second */

typedef struct data {
  const clv_plan *plan;
  clv__text *text;
  clv__arena arena;
  clv__map numbers; /* text -> index in `texts` */
  const char **texts;
  size_t text_count, text_capacity;
  uint32_t *partition_of;                         /* indexed by node */
  uint64_t *partition_serial_ns, *move_serial_ns; /* starts if the steps run one after the other */
  uint32_t lane_of_space[CLV__MAX_DEVICES + 1];
  bool failed;
} data;

/* ---- Texts ---- */

/* Returns the index of a text in `texts`. Adds a copy of the text if it is new. */
static uint32_t number_of(data *d, const char *string) {
  if (string == NULL) string = "";
  uint32_t number = clv__map_find(&d->numbers, string);
  if (number != CLV__MAP_NONE) return number;
  char *copy = clv__arena_string(&d->arena, string, strlen(string));
  if (copy == NULL ||
      !clv__array_reserve(d->text->allocator, (void **)&d->texts, &d->text_capacity, d->text_count + 1, sizeof *d->texts,
                          d->text_count) ||
      !clv__map_set(&d->numbers, copy, (uint32_t)d->text_count)) {
    d->failed = true;
    return 0;
  }
  d->texts[d->text_count] = copy;
  return (uint32_t)d->text_count++;
}

static void append_id(clv__text *text, uint32_t id) {
  if (id == CLV__NO_ID)
    clv__text_append(text, "-1");
  else
    clv__text_append(text, "%u", id);
}

static void append_ids(clv__text *text, const uint32_t *ids, uint32_t count) {
  clv__text_append(text, "[");
  for (uint32_t i = 0; i < count; ++i) {
    if (i > 0) clv__text_append(text, ",");
    append_id(text, ids[i]);
  }
  clv__text_append(text, "]");
}

/* ---- Devices and lanes ---- */

static void append_devices(data *d) {
  const clv_devices *devices = d->plan->devices;
  clv__text_append(d->text, "\"devices\":[");
  for (uint32_t i = 0; i < devices->count; ++i) {
    clv__text_append(d->text, "%s{\"name\":", i > 0 ? "," : "");
    clv__html_json_string(d->text, devices->items[i].name);
    clv__text_append(d->text, ",\"color\":%u,\"space\":%u}", clv__palette_index(i), devices->items[i].space);
  }
  clv__text_append(d->text, "],\n");
}

static uint32_t outer_space(const clv__transfer *transfer) {
  return transfer->from == CLV__SPACE_HOST ? transfer->to : transfer->from;
}

static void append_lanes(data *d) {
  const clv_plan *plan = d->plan;
  const clv_devices *devices = plan->devices;
  uint32_t count = devices->count;
  clv__text_append(d->text, "\"lanes\":[");
  for (uint32_t i = 0; i < devices->count; ++i) {
    clv__text_append(d->text, "%s{\"name\":", i > 0 ? "," : "");
    clv__html_json_string(d->text, devices->items[i].name);
    clv__text_append(d->text, ",\"color\":%u}", clv__palette_index(i));
  }
  memset(d->lane_of_space, 0xff, sizeof d->lane_of_space);
  for (uint32_t t = 0; t < plan->transfer_count; ++t) {
    uint32_t space = outer_space(&plan->transfers[t]), first = 0;
    if (d->lane_of_space[space] != CLV__NO_ID) continue;
    while (first < devices->count && devices->items[first].space != space) ++first;
    d->lane_of_space[space] = count++;
    clv__text name;
    clv__text_init(&name, d->text->allocator);
    clv__text_append(&name, "copies, %s", clv__label_space(plan, space, CLV__BOUNDARY_INNER));
    clv__text_append(d->text, ",{\"name\":");
    clv__html_json_string(d->text, name.data);
    clv__text_append(d->text, ",\"color\":%u}", first < devices->count ? clv__palette_index(first) : (uint32_t)CLV__PALETTE_SIZE);
    d->failed = d->failed || name.failed;
    clv__text_finish(&name);
  }
  clv__text_append(d->text, "],\n");
}

/* ---- Nodes ---- */

/* Returns whether computing the cost of moving each node to each device takes at most about a second. Pricing a node examines all
 * readers of all its values, so the work is estimated as users times readers, summed over the values. */
static bool can_price_moves(const clv_plan *plan) {
  const clv_graph *graph = plan->graph;
  uint64_t work = 0;
  for (clv_value_id v = 0; v < graph->value_count; ++v) {
    uint64_t uses = (uint64_t)graph->use_offsets[v + 1] - graph->use_offsets[v];
    if (!clv__value_is_constant(graph, plan->shapes->types, v)) work += (uses + 1) * (uses + 1);
    if (work > MOST_MOVE_WORK) return false;
  }
  return work * plan->devices->count <= MOST_MOVE_WORK;
}

static void append_node(data *d, clv_node_id n, bool moves) {
  const clv_plan *plan = d->plan;
  const clv__node *node = &plan->graph->nodes[n];
  const char *cause = plan->placement.causes[n] != NULL ? plan->placement.causes[n] : "";
  clv__text_append(d->text, "%s[", n > 0 ? ",\n" : "");
  clv__html_json_string(d->text, node->name);
  clv__text_append(d->text, ",%u,", number_of(d, clv__label_op(node)));
  append_id(d->text, plan->placement.devices[n]);
  clv__text_append(d->text, ",%u,%u,%u,", number_of(d, cause), number_of(d, clv__cause_meaning(cause)),
                   number_of(d, plan->placement.notes[n]));
  append_id(d->text, d->partition_of[n]);
  clv__text_append(d->text, ",");
  append_ids(d->text, node->inputs, node->input_count);
  clv__text_append(d->text, ",");
  append_ids(d->text, node->outputs, node->output_count);
  clv__text_append(d->text, ",[");
  for (uint32_t i = 0; i < plan->devices->count; ++i) {
    clv__text_append(d->text, "%s%u", i > 0 ? "," : "", number_of(d, clv__capability_reason(&plan->capability, n, i)));
  }
  clv__text_append(d->text, "],");
  if (!moves) {
    clv__text_append(d->text, "null]");
    return;
  }
  clv__text_append(d->text, "[");
  for (uint32_t i = 0; i < plan->devices->count; ++i) {
    int64_t delta_ns;
    bool priced = plan->placement.devices[n] != CLV__NO_ID && i != plan->placement.devices[n] &&
                  clv__plan_move_price(plan, n, i, &delta_ns);
    if (i > 0) clv__text_append(d->text, ",");
    if (priced)
      clv__text_append(d->text, "%" PRId64, delta_ns);
    else
      clv__text_append(d->text, "null");
  }
  clv__text_append(d->text, "]]");
}

static void append_values(data *d) {
  const clv_graph *graph = d->plan->graph;
  clv__text_append(d->text, "\"values\":[");
  for (clv_value_id v = 0; v < graph->value_count; ++v) {
    const clv__value *value = &graph->values[v];
    clv__text type;
    clv__text_init(&type, d->text->allocator);
    clv__label_type(&type, graph, &d->plan->shapes->types[v]);
    clv__text_append(d->text, "%s[", v > 0 ? ",\n" : "");
    clv__html_json_string(d->text, value->name);
    clv__text_append(d->text, ",%u,", number_of(d, type.data));
    append_id(d->text, value->producer);
    bool constant = clv__value_is_constant(graph, d->plan->shapes->types, v);
    clv__text_append(d->text, ",%d]", constant ? 2 : value->is_input ? 1 : 0);
    d->failed = d->failed || type.failed;
    clv__text_finish(&type);
  }
  clv__text_append(d->text, "],\n");
}

/* ---- Steps ---- */

static void append_view_values(clv__text *text, const clv_graph_view *view, const uint32_t *items, uint32_t count) {
  clv__text_append(text, "[");
  for (uint32_t i = 0; i < count; ++i) clv__text_append(text, "%s%u", i > 0 ? "," : "", view->values[items[i]]);
  clv__text_append(text, "]");
}

static uint64_t at(const uint64_t *times, uint32_t index) {
  return times != NULL ? times[index] : 0;
}

static void append_partitions(data *d) {
  const clv_plan *plan = d->plan;
  clv__text_append(d->text, "\"partitions\":[");
  for (uint32_t p = 0; p < plan->partition_count; ++p) {
    const clv__partition *partition = &plan->partitions[p];
    const clv_graph_view *view = partition->view;
    clv__text_append(d->text, "%s[%u,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",", p > 0 ? ",\n" : "", partition->device,
                     at(plan->price.partition_ns, p), at(plan->price.partition_start_ns, p), d->partition_serial_ns[p]);
    append_ids(d->text, partition->nodes, partition->node_count);
    clv__text_append(d->text, ",");
    append_view_values(d->text, view, view->inputs, view->input_count);
    clv__text_append(d->text, ",");
    append_view_values(d->text, view, view->outputs, view->output_count);
    clv__text_append(d->text, "]");
  }
  clv__text_append(d->text, "],\n");
}

static void append_transfers(data *d) {
  const clv_plan *plan = d->plan;
  clv__text_append(d->text, "\"transfers\":[");
  for (uint32_t t = 0; t < plan->transfer_count; ++t) {
    const clv__transfer *transfer = &plan->transfers[t];
    clv__text_append(d->text, "%s[%u,%u,%u,", t > 0 ? ",\n" : "", transfer->value,
                     number_of(d, clv__label_space(plan, transfer->from, transfer->boundary)),
                     number_of(d, clv__label_space(plan, transfer->to, transfer->boundary)));
    if (transfer->size_known)
      clv__text_append(d->text, "%" PRIu64, transfer->size_bytes);
    else
      clv__text_append(d->text, "-1");
    clv__text_append(d->text, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%u,%u,%u]", at(plan->price.copy_ns, t),
                     at(plan->price.copy_start_ns, t), d->move_serial_ns[t], d->lane_of_space[outer_space(transfer)],
                     transfer->from, transfer->to);
  }
  clv__text_append(d->text, "],\n");
}

/* Appends the groups of all nodes that run: without partitions in the order of the graph, otherwise in the order of the
 * partitions. */
static void append_foldings(data *d) {
  const clv_plan *plan = d->plan;
  size_t most = (size_t)plan->graph->node_count + 1;
  clv_node_id *nodes = clv__arena_allocate_zero(&d->arena, most, sizeof *nodes);
  uint32_t *parts = clv__arena_allocate_zero(&d->arena, most, sizeof *parts), count = 0;
  if (nodes == NULL || parts == NULL) {
    d->failed = true;
    return;
  }
  for (clv_node_id n = 0; n < plan->graph->node_count; ++n) {
    if (d->partition_of[n] != CLV__NO_ID) nodes[count++] = n;
  }
  clv__text_append(d->text, "\"foldings\":[");
  clv__html_groups(plan->graph, nodes, count, NULL, d->text);
  if (plan->partition_count > 1) {
    count = 0;
    for (uint32_t s = 0; s < plan->step_count; ++s) {
      if (plan->steps[s].is_transfer) continue;
      const clv__partition *partition = &plan->partitions[plan->steps[s].index];
      for (uint32_t i = 0; i < partition->node_count; ++i) {
        parts[count] = plan->steps[s].index;
        nodes[count++] = partition->nodes[i];
      }
    }
    clv__text_append(d->text, ",\n");
    clv__html_groups(plan->graph, nodes, count, parts, d->text);
  }
  clv__text_append(d->text, "],\n");
}

static bool prepare(data *d) {
  const clv_plan *plan = d->plan;
  d->partition_of = clv__arena_allocate(&d->arena, ((size_t)plan->graph->node_count + 1) * sizeof *d->partition_of);
  d->partition_serial_ns = clv__arena_allocate_zero(&d->arena, (size_t)plan->partition_count + 1, sizeof *d->partition_serial_ns);
  d->move_serial_ns = clv__arena_allocate_zero(&d->arena, (size_t)plan->transfer_count + 1, sizeof *d->move_serial_ns);
  if (d->partition_of == NULL || d->partition_serial_ns == NULL || d->move_serial_ns == NULL) return false;
  for (clv_node_id n = 0; n < plan->graph->node_count; ++n) d->partition_of[n] = CLV__NO_ID;
  for (uint32_t p = 0; p < plan->partition_count; ++p) {
    for (uint32_t i = 0; i < plan->partitions[p].node_count; ++i) d->partition_of[plan->partitions[p].nodes[i]] = p;
  }
  uint64_t now_ns = 0;
  for (uint32_t s = 0; s < plan->step_count; ++s) {
    const clv__step *step = &plan->steps[s];
    (step->is_transfer ? d->move_serial_ns : d->partition_serial_ns)[step->index] = now_ns;
    now_ns += at(step->is_transfer ? plan->price.copy_ns : plan->price.partition_ns, step->index);
  }
  return number_of(d, "") == 0 && !d->failed;
}

void clv__html_data(const clv_plan *plan, clv__text *text) {
  data d = {.plan = plan, .text = text};
  clv__arena_init(&d.arena, text->allocator);
  clv__map_init(&d.numbers, text->allocator);
  if (!prepare(&d)) {
    text->failed = true;
    goto cleanup;
  }
  clv__text_append(text, "{\"objective\":%d,\"serial_ns\":%" PRIu64 ",\"overlapped_ns\":%" PRIu64 ",\n", (int)plan->objective,
                   plan->price.serial_ns, plan->price.overlapped_ns);
  append_devices(&d);
  append_lanes(&d);
  bool moves = can_price_moves(plan);
  clv__text_append(text, "\"nodes\":[");
  for (clv_node_id n = 0; n < plan->graph->node_count && !text->failed; ++n) append_node(&d, n, moves);
  clv__text_append(text, "],\n");
  append_values(&d);
  append_partitions(&d);
  append_transfers(&d);
  append_foldings(&d);
  clv__text_append(text, "\"texts\":[");
  for (size_t i = 0; i < d.text_count; ++i) {
    if (i > 0) clv__text_append(text, ",");
    clv__html_json_string(text, d.texts[i]);
  }
  clv__text_append(text, "]}");
  text->failed = text->failed || d.failed;
cleanup:
  clv__release(text->allocator, d.texts);
  clv__map_finish(&d.numbers);
  clv__arena_finish(&d.arena);
}
