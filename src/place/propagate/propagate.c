/* `propagate`: the multi-pass assignment by location, as numbered passes. First, nodes are placed where their data (buffers,
 * inputs, weights) already is. From these nodes, devices spread to neighbours. The remaining nodes go to the device that can read
 * most of their inputs, and views follow their sources. Finally the list is cut. `propagate-graph` differs in pass 2 only:
 * devices spread along the edges of the graph (edges.c) instead of to neighbours in the list. record.c records the state after
 * each pass for --explain-passes. */
#include "place/propagate/propagate.h"

#include <stdio.h>
#include <string.h>

#include "place/list_cut.h"

enum { PASS_COUNT = 8 };

typedef struct passes {
  const clv__propagation *p;
  clv__arena *arena;
  clv__pass *items; /* NULL if no records are requested */
  uint32_t count;
} passes;

static clv_status record(passes *to, const char *name, const clv__cut *cut, const clv__copies *copies, clv_error *error) {
  if (to->items == NULL) return CLV_OK;
  CLV__TRY(clv__propagate_record(to->p, name, cut, copies, to->arena, &to->items[to->count], error));
  ++to->count;
  return CLV_OK;
}

/* ---- Pass 1: nodes whose device is fixed before devices spread. ----
 *
 * A node runs where the user pinned it, where the memory of its outputs is, or where its weights are. Exception: if its weights
 * are in host memory, a device of higher priority may prefer to run it. */

#define WEIGHT_CAUSES(tens)                                                                                         \
  "1.wgt" #tens "0", "1.wgt" #tens "1", "1.wgt" #tens "2", "1.wgt" #tens "3", "1.wgt" #tens "4", "1.wgt" #tens "5", \
      "1.wgt" #tens "6", "1.wgt" #tens "7", "1.wgt" #tens "8", "1.wgt" #tens "9"

static const char *const weight_causes[] = {WEIGHT_CAUSES(),  WEIGHT_CAUSES(1), WEIGHT_CAUSES(2), WEIGHT_CAUSES(3),
                                            WEIGHT_CAUSES(4), WEIGHT_CAUSES(5), WEIGHT_CAUSES(6), WEIGHT_CAUSES(7),
                                            WEIGHT_CAUSES(8), WEIGHT_CAUSES(9)};

typedef struct locating {
  clv__propagation *p;
  const uint32_t *homes; /* by value, NULL: none; the home of a view is also the home of its source */
  uint32_t host;         /* bit d: device d works in host memory, or is the last one */
} locating;

static bool has_homes(const uint32_t *homes, uint32_t count) {
  for (uint32_t i = 0; homes != NULL && i < count; ++i) {
    if (homes[i] != CLV__NONE) return true;
  }
  return false;
}

/* Finds the homes of the values that the user placed. If such a value is computed by a view, the view's source, which has the
 * same bytes, has the same home. */
static clv_status find_homes(locating *l, clv__arena *arena, clv_error *error) {
  const clv__problem *problem = l->p->problem;
  if (!has_homes(problem->value_homes, problem->value_count)) return CLV_OK;
  uint32_t *homes = clv__arena_copy(arena, problem->value_homes, (size_t)problem->value_count * sizeof *homes);
  if (homes == NULL) return clv__error_memory(error, (size_t)problem->value_count * sizeof *homes);
  for (uint32_t n = problem->node_count; n-- > 0;) {
    if (!clv__node_is_view(problem, n) || problem->pins[n] != CLV__NONE) continue;
    uint32_t source = problem->reads[problem->read_offsets[n]];
    uint32_t home = homes[problem->writes[problem->write_offsets[n]]];
    if (homes[source] == CLV__NONE) homes[source] = home;
  }
  l->homes = homes;
  return CLV_OK;
}

/* Returns the devices, as bits, that work in the memory of `device`. */
static uint32_t mates(const clv__problem *problem, uint32_t device) {
  uint32_t mask = 0;
  for (uint32_t d = 0; d < problem->device_count; ++d) mask |= problem->spaces[d] == problem->spaces[device] ? 1u << d : 0;
  return mask;
}

/* Returns the device that runs a node whose data is at `home`: `home` itself, or the first device in the same memory that can run
 * the node. CLV__NONE if there is none. */
static uint32_t runs_at(const clv__problem *problem, uint32_t node, uint32_t home) {
  if (clv__can_run(problem, node, home)) return home;
  uint32_t able = problem->supports[node] & mates(problem, home);
  return able == 0 ? CLV__NONE : (uint32_t)__builtin_ctz(able);
}

static bool locate_by_buffers(const locating *l, uint32_t node) {
  const clv__problem *problem = l->p->problem;
  for (uint32_t w = problem->write_offsets[node]; w < problem->write_offsets[node + 1]; ++w) {
    uint32_t home = l->homes[problem->writes[w]];
    uint32_t device = home == CLV__NONE ? CLV__NONE : runs_at(problem, node, home);
    if (device == CLV__NONE) continue;
    l->p->devices[node] = device;
    l->p->causes[node] = "1.dst";
    return true;
  }
  return false;
}

/* Places the node on the device that has its weights. The first weight that is in the memory of a device able to run the node
 * decides. Returns whether there is such a weight. */
static bool locate_by_weights(const locating *l, uint32_t node) {
  const clv__problem *problem = l->p->problem;
  uint32_t supports = problem->supports[node],
           wants = problem->prefers == NULL ? 0 : problem->prefers[node] & supports & ~l->host;
  for (uint32_t k = problem->weight_offsets[node]; k < problem->weight_offsets[node + 1]; ++k) {
    uint32_t home = problem->weight_homes == NULL ? CLV__NONE : problem->weight_homes[problem->weights[k]], device;
    if (home != CLV__NONE)
      device = runs_at(problem, node, home);
    else
      device = (supports & l->host) == 0 ? CLV__NONE : (uint32_t)__builtin_ctz(supports & l->host);
    /* If the weight is in host memory, a device before `device` that prefers the node gets it. If no device in host memory can
     * run the node, every device that prefers it counts. */
    if (home == CLV__NONE || (l->host >> home & 1u) != 0) {
      uint32_t before = device == CLV__NONE ? wants : wants & ((1u << device) - 1);
      if (before != 0) {
        l->p->devices[node] = (uint32_t)__builtin_ctz(before);
        l->p->causes[node] = "1.off";
        return true;
      }
    }
    if (device == CLV__NONE) continue;
    uint32_t operand = problem->weight_operands == NULL ? k - problem->weight_offsets[node] : problem->weight_operands[k];
    l->p->devices[node] = device;
    l->p->causes[node] = operand < sizeof weight_causes / sizeof *weight_causes ? weight_causes[operand] : "1.wgt";
    return true;
  }
  return false;
}

static clv_status locate_nodes(clv__propagation *p, clv__arena *arena, clv_error *error) {
  const clv__problem *problem = p->problem;
  locating l = {.p = p, .host = 1u << p->last};
  for (uint32_t d = 0; d < problem->device_count; ++d) l.host |= problem->spaces[d] == 0 ? 1u << d : 0;
  CLV__TRY(find_homes(&l, arena, error));
  p->left = 0;
  for (uint32_t n = 0; n < problem->node_count; ++n) {
    if (problem->pins[n] != CLV__NONE) {
      p->devices[n] = problem->pins[n];
      p->causes[n] = "usr";
      continue;
    }
    if (clv__node_is_view(problem, n)) continue;
    if (l.homes != NULL && locate_by_buffers(&l, n)) continue;
    if ((problem->flags[n] & CLV__NODE_LIGHT_WEIGHT) == 0 && locate_by_weights(&l, n)) continue;
    ++p->left;
  }
  return CLV_OK;
}

/* ---- Pass 2: devices spread to neighbours. ---- */

typedef struct sweep_entry {
  const char *name;
  clv__sweep sweep;
} sweep_entry;

static const sweep_entry sweeps[] = {
    {"2a", {.up = false, .host = false, .cause = "2a.down"}},
    {"2b", {.up = true, .host = false, .cause = "2b.up"}},
    {"2c", {.up = false, .host = true, .cause = "2c.down"}},
    {"2d", {.up = true, .host = true, .cause = "2d.up"}},
};

static void sweep_list(clv__propagation *p, const clv__sweep *sweep) {
  const clv__problem *problem = p->problem;
  uint32_t current = CLV__NONE, stop = sweep->host ? CLV__NONE : p->last;
  for (uint32_t i = 0; i < problem->node_count && p->left > 0; ++i) {
    uint32_t n = sweep->up ? problem->node_count - 1 - i : i;
    if (clv__node_is_view(problem, n)) continue;
    uint32_t device = p->devices[n];
    if (device != CLV__NONE) {
      current = device == stop ? CLV__NONE : device;
    } else if (current != CLV__NONE && clv__can_run(problem, n, current)) {
      p->devices[n] = current;
      p->causes[n] = sweep->cause;
      --p->left;
    }
  }
}

static clv_status spread(clv__propagation *p, bool on_edges, passes *recorded, clv_error *error) {
  const clv_allocator *allocator = recorded->arena->allocator;
  clv_status status = CLV_OK;
  uint8_t *flows = on_edges ? clv__allocate(allocator, p->problem->node_count) : NULL;
  if (on_edges && flows == NULL) return clv__error_memory(error, p->problem->node_count);
  for (size_t i = 0; i < sizeof sweeps / sizeof *sweeps; ++i) {
    if (on_edges)
      clv__propagate_along_edges(p, &sweeps[i].sweep, flows);
    else
      sweep_list(p, &sweeps[i].sweep);
    CLV__TRY_GOTO(record(recorded, sweeps[i].name, NULL, NULL, error));
  }
cleanup:
  clv__release(allocator, flows);
  return status;
}

/* ---- Pass 3: the remaining nodes. ----
 *
 * A node that no device has spread to goes to the device that can read most of its inputs. A node that has a device, and has
 * all its inputs in the memory of this device, moves to a device of higher priority that works in the same memory and supports
 * the node. */

enum { MAX_SPACES = 17 }; /* one memory space per device, and the host's */

typedef struct third_pass {
  clv__propagation *p;
  uint32_t better[16]; /* by device: the devices of higher priority in the same memory space, as bits */
} third_pass;

/* Returns the device that can read the most inputs of the node, among those that support it; among ties, or if none can read any,
 * the first. The operands of a view other than its source are not data. */
static uint32_t most_readable(const clv__propagation *p, uint32_t node) {
  const clv__problem *problem = p->problem;
  uint32_t counts[MAX_SPACES] = {0}, best = CLV__NONE;
  bool is_view = clv__node_is_view(problem, node);
  uint32_t reads_end = is_view ? problem->read_offsets[node] + 1 : problem->read_offsets[node + 1];
  for (uint32_t r = problem->read_offsets[node]; r < reads_end; ++r) {
    ++counts[problem->spaces[clv__propagate_value_device(p, problem->reads[r])]];
  }
  for (uint32_t k = problem->weight_offsets[node]; !is_view && k < problem->weight_offsets[node + 1]; ++k) {
    uint32_t device = clv__propagate_weight_device(p, node, problem->weights[k]);
    if (device != CLV__NONE) ++counts[problem->spaces[device]];
  }
  for (uint32_t mask = problem->supports[node]; mask != 0; mask &= mask - 1) {
    uint32_t d = (uint32_t)__builtin_ctz(mask);
    if (best == CLV__NONE || counts[problem->spaces[d]] > counts[problem->spaces[best]]) best = d;
  }
  return best;
}

/* Returns whether all inputs of the node are in the memory space of its device. */
static bool all_readable(const clv__propagation *p, uint32_t node) {
  const clv__problem *problem = p->problem;
  uint32_t space = problem->spaces[p->devices[node]];
  for (uint32_t r = problem->read_offsets[node]; r < problem->read_offsets[node + 1]; ++r) {
    if (problem->spaces[clv__propagate_value_device(p, problem->reads[r])] != space) return false;
  }
  for (uint32_t k = problem->weight_offsets[node]; k < problem->weight_offsets[node + 1]; ++k) {
    uint32_t device = clv__propagate_weight_device(p, node, problem->weights[k]);
    if (device != CLV__NONE && problem->spaces[device] != space) return false;
  }
  return true;
}

/* Assigns its device to a node in pass 3. Nodes come in the order of the list, so the producers of its inputs have theirs. */
static clv_status assign_best(const third_pass *s, uint32_t node, clv_error *error) {
  clv__propagation *p = s->p;
  const clv__problem *problem = p->problem;
  if (p->devices[node] == CLV__NONE && clv__node_is_view(problem, node)) {
    uint32_t device = clv__propagate_value_device(p, problem->reads[problem->read_offsets[node]]);
    if (clv__can_run(problem, node, device)) {
      p->devices[node] = device; /* pass 4 sets its cause */
      return CLV_OK;
    }
  }
  if (p->devices[node] == CLV__NONE) {
    p->devices[node] = most_readable(p, node);
    p->causes[node] = "3.best";
    return p->devices[node] == CLV__NONE ? clv__node_unsupported(problem, node, error) : CLV_OK;
  }
  uint32_t better = problem->supports[node] & s->better[p->devices[node]];
  if (better == 0 || problem->pins[node] != CLV__NONE || !all_readable(p, node)) return CLV_OK;
  p->devices[node] = (uint32_t)__builtin_ctz(better);
  p->causes[node] = "3.upg";
  return CLV_OK;
}

clv_status clv__propagate_best(clv__propagation *p, clv_error *error) {
  const clv__problem *problem = p->problem;
  third_pass s = {.p = p};
  bool any_better = false;
  for (uint32_t d = 0; d < problem->device_count; ++d) {
    for (uint32_t b = 0; b < d; ++b) {
      if (problem->spaces[b] == problem->spaces[d]) s.better[d] |= 1u << b;
    }
    any_better = any_better || s.better[d] != 0;
  }
  for (uint32_t n = 0; n < problem->node_count; ++n) {
    if (any_better || p->devices[n] == CLV__NONE) CLV__TRY(assign_best(&s, n, error));
  }
  p->left = 0;
  return CLV_OK;
}

/* ---- Pass 4: views follow their source. ---- */

void clv__propagate_views(clv__propagation *p) {
  for (uint32_t n = 0; n < p->problem->node_count; ++n) {
    if (p->causes[n][0] == '\0') p->causes[n] = "4.vsrc";
  }
}

/* ---- Pass 5: the cut. ---- */

/* Marks as streamed the weights that the user placed in one memory and that are read in another, except in host memory. Views are
 * skipped: their operands other than the source are not data. */
static clv_status find_streamed(const clv__problem *problem, clv__arena *arena, clv__placing *placing, clv_error *error) {
  if (problem->weight_homes == NULL) return CLV_OK;
  for (uint32_t n = 0; n < problem->node_count; ++n) {
    uint32_t device = placing->devices[n], space = problem->spaces[device];
    if (space == 0 || clv__node_is_view(problem, n)) continue;
    for (uint32_t k = problem->weight_offsets[n]; k < problem->weight_offsets[n + 1]; ++k) {
      uint32_t weight = problem->weights[k], home = problem->weight_homes[weight];
      if (home == CLV__NONE || problem->spaces[home] == space || !clv__can_stream(problem, weight, device)) continue;
      if (placing->streamed == NULL) {
        placing->streamed = clv__arena_allocate_zero(arena, problem->weight_count, sizeof *placing->streamed);
        if (placing->streamed == NULL) return clv__error_memory(error, problem->weight_count * sizeof *placing->streamed);
      }
      placing->streamed[weight] |= (uint16_t)(1u << device);
    }
  }
  return CLV_OK;
}

/* Cuts the list into partitions, unless the user chose a split mode other than linear: the caller makes any other cut. */
static clv_status cut_list(const clv__place_input *input, clv__placing *placing, passes *recorded, clv_error *error) {
  if (input->split != CLV__SPLIT_LINEAR) return CLV_OK;
  const clv__list_cut options = {.copy_limit = CLV__PROPAGATE_COPIES, .joined = "5.cur"};
  CLV__TRY(clv__place_cut_list(input->problem, &options, recorded->arena, placing, error));
  if (recorded->items == NULL) return CLV_OK;
  clv__copies copies;
  CLV__TRY(clv__split_copies(input->problem, &placing->cut, placing->streamed, recorded->arena, &copies, error));
  return record(recorded, "5", &placing->cut, &copies, error);
}

/* ---- The strategy. ---- */

/* The last device is treated as the host. If it is not the CPU, or does not use host memory, sets a note for the plan. */
static clv_status note_host(const clv__propagation *p, clv__arena *arena, const char **note, clv_error *error) {
  const clv__problem *problem = p->problem;
  const char *name = problem->device_names == NULL ? NULL : problem->device_names[p->last];
  bool is_cpu = name == NULL || strcmp(name, "cpu") == 0, is_host = problem->spaces[p->last] == 0;
  if (is_cpu && is_host) return CLV_OK;
  char text[256], number[16];
  snprintf(number, sizeof number, "device %u", p->last);
  snprintf(text, sizeof text,
           "the last device, %.64s, is treated as the host: inputs and weights without a given device are assumed to be in its "
           "memory%s",
           name == NULL ? number : name, is_host ? "" : ", although it does not use host memory");
  *note = clv__arena_string(arena, text, strlen(text));
  return *note == NULL ? clv__error_memory(error, strlen(text)) : CLV_OK;
}

static clv_status place(const clv__place_input *input, bool on_edges, clv__arena *arena, clv__placing *placing,
                        clv_error *error) {
  const clv__problem *problem = input->problem;
  CLV__TRY(clv__placing_init(problem, arena, placing, error));
  clv__propagation p = {problem, placing->devices, placing->causes, problem->device_count - 1, 0};
  passes recorded = {.p = &p, .arena = arena};
  if (input->record_passes) {
    recorded.items = clv__arena_allocate_zero(arena, PASS_COUNT, sizeof *recorded.items);
    if (recorded.items == NULL) return clv__error_memory(error, PASS_COUNT * sizeof *recorded.items);
  }
  CLV__TRY(note_host(&p, arena, &placing->note, error));
  CLV__TRY(locate_nodes(&p, arena, error));
  CLV__TRY(record(&recorded, "1", NULL, NULL, error));
  CLV__TRY(spread(&p, on_edges, &recorded, error));
  CLV__TRY(clv__propagate_best(&p, error));
  CLV__TRY(record(&recorded, "3", NULL, NULL, error));
  clv__propagate_views(&p);
  CLV__TRY(record(&recorded, "4", NULL, NULL, error));
  CLV__TRY(find_streamed(problem, arena, placing, error));
  CLV__TRY(cut_list(input, placing, &recorded, error));
  placing->passes = recorded.items;
  placing->pass_count = recorded.count;
  return CLV_OK;
}

clv_status clv__place_propagate(const clv__place_input *input, clv__arena *arena, clv__placing *placing, clv_error *error) {
  return place(input, false, arena, placing, error);
}

clv_status clv__place_propagate_graph(const clv__place_input *input, clv__arena *arena, clv__placing *placing, clv_error *error) {
  return place(input, true, arena, placing, error);
}
static const clv__cause causes[] = {
    {"1.dst", "the user assigned its result to that device's memory"},
    {"1.inp", "it reads graph inputs in that device's memory"},
    {"1.wgt#", "it reads a weight in that device's memory"},
    {"1.off", "its weight is in host memory, but the device prefers to run the node"},
    {"2a.down", "on the device of the previous node, which is not the host"},
    {"2b.up", "on the device of the next node, which is not the host"},
    {"2c.down", "on the device of the previous node"},
    {"2d.up", "on the device of the next node"},
    {"3.best", "the device that can read most of its inputs"},
    {"3.upg", "moved to a device of higher priority with the same memory"},
    {"4.vsrc", "a view, which moves no data, so it stays where its source is"},
    {"4.cur", "no rule placed it, so it stays in the surrounding partition"},
    {"5.cur",
     "a view placed with its readers (its source is a graph input), or in the surrounding partition (its source's is full)"},
    {NULL, NULL},
};

const clv__strategy clv__strategy_propagate = {
    .name = "propagate",
    .summary =
        "start with the nodes whose weights or inputs are in a device's memory; spread their devices to later and then to "
        "earlier nodes of the list; assign each other node to the device that can read most of its inputs",
    .place = clv__place_propagate,
    .split = CLV__SPLIT_LINEAR,
    .copy_limit = CLV__PROPAGATE_COPIES,
    .causes = causes,
};

const clv__strategy clv__strategy_propagate_graph = {
    .name = "propagate-graph",
    .summary = "like propagate, but spread along the edges of the graph, not along the list of nodes",
    .place = clv__place_propagate_graph,
    .split = CLV__SPLIT_LINEAR,
    .copy_limit = CLV__PROPAGATE_COPIES,
    .causes = causes,
};
