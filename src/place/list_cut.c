/* See list_cut.h. One walk over the list, with state by partition, by value and by weight. */
#include "place/list_cut.h"

#include <string.h>

#include "place/node.h"
#include "place/views.h"

typedef struct part {
  uint32_t node_count;
  uint32_t inputs; /* see count_inputs() */
  bool streams;    /* it reads a streamed weight */
  bool is_hosted;  /* it has only hosted views */
} part;

typedef struct walk {
  const clv__problem *problem;
  const clv__list_cut *options;
  clv__placing *placing;
  clv__cut *cut;
  part *parts;
  uint32_t *copied;      /* by value: the memory spaces it was copied to, as bits, without the one it was computed in */
  uint32_t *seen;        /* by value, for devices with an input limit: the last partition (+ 1) that reads it from outside */
  uint32_t *weight_seen; /* by weight: the last partition (+ 1) that it is streamed for */
  uint32_t latest[16];   /* by device: its latest partition so far that is not of hosted views */
  uint32_t open;         /* the partition to which the next node of the list is added if it fits; CLV__NONE at the beginning */
  clv__views views;
} walk;

static uint32_t group_of(const walk *w, uint32_t node) {
  return w->placing->groups == NULL ? CLV__NONE : w->placing->groups[node];
}

static bool is_hosted(const walk *w, uint32_t node) {
  return clv__is_hosted(w->problem, node, w->placing->devices[node]);
}

static uint32_t any_node_of(const walk *w, uint32_t partition) {
  return w->cut->nodes[partition]; /* during the walk, `nodes` has the first node of each partition */
}

/* ---- The inputs that a node adds to its partition ---- */

/* Returns the memory space in which a value is computed. A graph input starts in host memory even if the user placed it on a
 * device, as in clv__split_copies(). */
static uint32_t birth_of(const walk *w, uint32_t value) {
  uint32_t producer = w->problem->producers[value];
  return producer == CLV__NONE ? 0 : w->problem->spaces[w->placing->devices[producer]];
}

static bool is_copied(const walk *w, uint32_t value, uint32_t space) {
  return birth_of(w, value) != space && (w->copied[value] >> space & 1u) == 0;
}

/* Returns how many streamed weights the node would add to those of partition `into`. Returns 0 for a view: only its source is
 * data; its other operands, such as the shape of a Reshape, are not. */
static uint32_t count_streamed(const walk *w, uint32_t node, uint32_t into) {
  const clv__problem *problem = w->problem;
  uint32_t device = w->placing->devices[node], fresh = 0;
  if (w->placing->streamed == NULL || clv__node_is_view(problem, node)) return 0;
  for (uint32_t k = problem->weight_offsets[node]; k < problem->weight_offsets[node + 1]; ++k) {
    uint32_t weight = problem->weights[k];
    fresh += (w->placing->streamed[weight] >> device & 1u) != 0 && w->weight_seen[weight] != into + 1;
  }
  return fresh;
}

static uint32_t limit_of(const walk *w, uint32_t device) {
  uint32_t stated = w->problem->limits[device].max_inputs;
  return stated > 0 ? stated : w->options->copy_limit;
}

/* Returns how many inputs the node would add to partition `into`: values from outside if the device has an input limit, copied
 * values otherwise. The count is exact, because a node reads each value once. */
static uint32_t count_inputs(const walk *w, uint32_t node, uint32_t into) {
  const clv__problem *problem = w->problem;
  const uint32_t *devices = w->placing->devices;
  uint32_t device = devices[node], space = problem->spaces[device], fresh = 0;
  bool is_stated = problem->limits[device].max_inputs > 0;
  if (limit_of(w, device) == 0) return 0;
  for (uint32_t r = problem->read_offsets[node]; r < problem->read_offsets[node + 1]; ++r) {
    uint32_t value = problem->reads[r], producer = problem->producers[value];
    if (is_stated) {
      bool is_outside = producer == CLV__NONE || w->cut->partition_of[producer] != into;
      fresh += is_outside && w->seen[value] != into + 1;
    } else if (producer == CLV__NONE || devices[producer] != device) {
      fresh += is_copied(w, value, space);
    }
  }
  return is_stated ? fresh : fresh + count_streamed(w, node, into);
}

/* Adds the node to partition `into`. `inputs` is the result of count_inputs(). */
static void add_to_partition(walk *w, uint32_t node, uint32_t into, uint32_t inputs) {
  const clv__problem *problem = w->problem;
  uint32_t device = w->placing->devices[node], space = problem->spaces[device];
  part *to = &w->parts[into];
  to->inputs += inputs;
  to->streams = to->streams || count_streamed(w, node, into) > 0;
  ++to->node_count;
  w->cut->partition_of[node] = into;
  for (uint32_t r = problem->read_offsets[node]; inputs > 0 && r < problem->read_offsets[node + 1]; ++r) {
    uint32_t value = problem->reads[r];
    if (problem->limits[device].max_inputs == 0) {
      if (is_copied(w, value, space)) w->copied[value] |= 1u << space | 1u; /* the copy passes through host memory */
    } else if (w->seen[value] < into + 1) {
      w->seen[value] = into + 1;
    }
  }
  for (uint32_t k = problem->weight_offsets[node]; w->placing->streamed != NULL && k < problem->weight_offsets[node + 1]; ++k) {
    if (w->weight_seen[problem->weights[k]] < into + 1) w->weight_seen[problem->weights[k]] = into + 1;
  }
}

/* ---- Views ---- */

/* Returns an upper bound on the inputs that `view` would add to an earlier partition, whose inputs are no longer known
 * individually. */
static uint32_t bound_inputs(const walk *w, uint32_t view, uint32_t partition) {
  const clv__problem *problem = w->problem;
  uint32_t device = w->placing->devices[view], fresh = 0;
  for (uint32_t r = problem->read_offsets[view]; r < problem->read_offsets[view + 1]; ++r) {
    uint32_t value = problem->reads[r], producer = problem->producers[value];
    if (problem->limits[device].max_inputs > 0)
      fresh += producer == CLV__NONE || w->cut->partition_of[producer] != partition;
    else
      fresh += birth_of(w, value) != problem->spaces[device];
  }
  return fresh;
}

/* Returns whether `view` can be in `partition`, even if other partitions follow it already: the view's inputs are computed in
 * that partition or before, and the partition's limits allow one more node. */
static bool fits_earlier(const walk *w, uint32_t view, uint32_t partition) {
  const clv__problem *problem = w->problem;
  uint32_t device = w->placing->devices[view], limit = limit_of(w, device);
  uint32_t max_nodes = problem->limits[device].max_nodes;
  if (w->cut->devices[partition] != device || group_of(w, any_node_of(w, partition)) != group_of(w, view)) return false;
  if (w->parts[partition].is_hosted) return false;
  if (max_nodes > 0 && w->parts[partition].node_count >= max_nodes) return false;
  for (uint32_t r = problem->read_offsets[view]; r < problem->read_offsets[view + 1]; ++r) {
    uint32_t producer = problem->producers[problem->reads[r]];
    if (producer != CLV__NONE && w->cut->partition_of[producer] > partition) return false;
  }
  return limit == 0 || w->parts[partition].inputs + bound_inputs(w, view, partition) <= limit;
}

/* Returns a partition before the open one that has room for the view: that of its source, or the last one of its device;
 * CLV__NONE if there is none. */
static uint32_t find_earlier(const walk *w, uint32_t view) {
  uint32_t source = clv__node_source(w->problem, view), latest = w->latest[w->placing->devices[view]];
  if (source != CLV__NONE && fits_earlier(w, view, w->cut->partition_of[source])) return w->cut->partition_of[source];
  return latest != CLV__NONE && fits_earlier(w, view, latest) ? latest : CLV__NONE;
}

/* Puts the view into an earlier partition if one has room, and returns whether it did. If none has, the view may have changed to
 * the device of the run around it. */
static bool place_view(walk *w, uint32_t view) {
  if (w->open == CLV__NONE) return false;
  uint32_t open = w->open, around = w->cut->devices[open], around_group = group_of(w, any_node_of(w, open));
  if (w->placing->devices[view] == around && group_of(w, view) == around_group) return false;
  uint32_t earlier = find_earlier(w, view);
  if (earlier != CLV__NONE) {
    add_to_partition(w, view, earlier, bound_inputs(w, view, earlier));
    return true;
  }
  bool is_fixed = w->problem->pins[view] != CLV__NONE || group_of(w, view) != CLV__NONE || w->views.stays[view];
  if (is_fixed || !clv__can_run(w->problem, view, around) || clv__is_hosted(w->problem, view, around)) return false;
  if ((w->options->closed >> around & 1u) != 0) return false;
  w->placing->devices[view] = around;
  w->placing->causes[view] = w->options->joined;
  if (w->placing->groups != NULL) w->placing->groups[view] = around_group;
  return false;
}

/* ---- The walk ---- */

/* Puts a hosted view into a partition of such views, which comes after the open partition (`open`). The open partition stays
 * open for nodes that do not read the view. */
static void place_hosted(walk *w, uint32_t view) {
  uint32_t device = w->placing->devices[view], into = w->cut->count - 1;
  bool fits = w->cut->count > 0 && w->parts[into].is_hosted && w->cut->devices[into] == device;
  if (!fits || group_of(w, any_node_of(w, into)) != group_of(w, view)) {
    into = w->cut->count++;
    w->cut->devices[into] = device;
    w->cut->nodes[into] = view;
    w->parts[into] = (part){.is_hosted = true};
  }
  ++w->parts[into].node_count;
  w->cut->partition_of[view] = into;
}

/* Returns whether the node reads from a partition after `partition`. */
static bool reads_later(const walk *w, uint32_t node, uint32_t partition) {
  const clv__problem *problem = w->problem;
  for (uint32_t r = problem->read_offsets[node]; r < problem->read_offsets[node + 1]; ++r) {
    uint32_t producer = problem->producers[problem->reads[r]];
    if (producer != CLV__NONE && w->cut->partition_of[producer] > partition) return true;
  }
  return false;
}

/* Returns whether the node can be in the open partition; if so, `inputs` is how many inputs it adds there. */
static bool fits_open(const walk *w, uint32_t node, uint32_t *inputs) {
  if (w->open == CLV__NONE || reads_later(w, node, w->open)) return false;
  uint32_t open = w->open, device = w->placing->devices[node];
  const part *run = &w->parts[open];
  if (w->cut->devices[open] != device || group_of(w, any_node_of(w, open)) != group_of(w, node)) return false;
  uint32_t max_nodes = w->problem->limits[device].max_nodes, limit = limit_of(w, device);
  if (max_nodes > 0 && run->node_count >= max_nodes) return false;
  if (run->streams && count_streamed(w, node, open) > 0) return false;
  *inputs = count_inputs(w, node, open);
  return limit == 0 || run->inputs + *inputs <= limit;
}

/* Opens a partition for the node. A node whose own inputs exceed the limit that its device states is an error; one that exceeds
 * only options->copy_limit still gets its partition. */
static clv_status open_with(walk *w, uint32_t node, uint32_t *inputs, clv_error *error) {
  uint32_t device = w->placing->devices[node], partition = w->cut->count++, limit = w->problem->limits[device].max_inputs;
  w->cut->devices[partition] = device;
  w->cut->nodes[partition] = node;
  w->parts[partition] = (part){0};
  w->latest[device] = w->open = partition;
  *inputs = count_inputs(w, node, partition);
  if (limit == 0 || *inputs <= limit) return CLV_OK;
  return clv__split_too_many_inputs(w->problem, node, device, *inputs, error);
}

/* Collects the nodes of each partition, ascending. */
static void gather(const clv__problem *problem, const part *parts, clv__cut *cut) {
  uint32_t *offsets = cut->offsets;
  offsets[0] = 0;
  for (uint32_t p = 0, start = 0; p < cut->count; ++p) {
    offsets[p + 1] = start; /* where to put the next node of partition p; after the next loop, where the partition ends */
    start += parts[p].node_count;
  }
  for (uint32_t n = 0; n < problem->node_count; ++n) cut->nodes[offsets[cut->partition_of[n] + 1]++] = n;
}

static clv_status walk_list(walk *w, clv_error *error) {
  const clv__problem *problem = w->problem;
  memset(w->latest, 0xff, sizeof w->latest); /* CLV__NONE */
  w->open = CLV__NONE;
  for (uint32_t i = 0; i < problem->node_count; ++i) {
    uint32_t node = w->views.order[i];
    if (is_hosted(w, node)) {
      place_hosted(w, node);
      continue;
    }
    if (clv__node_is_view(problem, node) && place_view(w, node)) continue;
    uint32_t inputs;
    if (!fits_open(w, node, &inputs)) CLV__TRY(open_with(w, node, &inputs, error));
    add_to_partition(w, node, w->open, inputs);
  }
  return CLV_OK;
}

clv_status clv__place_cut_list(const clv__problem *problem, const clv__list_cut *options, clv__arena *arena,
                               clv__placing *placing, clv_error *error) {
  const clv_allocator *allocator = arena->allocator;
  size_t count = problem->node_count;
  clv_status status = CLV_OK;
  clv__cut cut = {.devices = clv__arena_allocate(arena, count * sizeof *cut.devices),
                  .offsets = clv__arena_allocate(arena, (count + 1) * sizeof *cut.offsets),
                  .nodes = clv__arena_allocate(arena, count * sizeof *cut.nodes),
                  .partition_of = clv__arena_allocate(arena, count * sizeof *cut.partition_of)};
  walk w = {.problem = problem, .options = options, .placing = placing, .cut = &cut};
  w.parts = clv__allocate(allocator, count * sizeof *w.parts);
  w.copied = clv__allocate_zero(allocator, (size_t)problem->value_count * sizeof *w.copied);
  w.seen = clv__allocate_zero(allocator, (size_t)problem->value_count * sizeof *w.seen);
  w.weight_seen = clv__allocate_zero(allocator, (size_t)problem->weight_count * sizeof *w.weight_seen);
  if (cut.devices == NULL || cut.offsets == NULL || cut.nodes == NULL || cut.partition_of == NULL || w.parts == NULL ||
      w.copied == NULL || w.seen == NULL || w.weight_seen == NULL) {
    status = clv__error_memory(error, count * sizeof *w.parts);
    goto cleanup;
  }
  const clv__view_options views = {options->order, options->joined, options->closed};
  CLV__TRY_GOTO(clv__place_views(problem, &views, arena, placing, &w.views, error));
  CLV__TRY_GOTO(walk_list(&w, error));
  gather(problem, w.parts, &cut);
  placing->cut = cut;
  placing->has_cut = true;
cleanup:
  clv__release(allocator, w.weight_seen);
  clv__release(allocator, w.seen);
  clv__release(allocator, w.copied);
  clv__release(allocator, w.parts);
  return status;
}
