/* The convex split: cuts a placement into convex partitions whose graph is acyclic, for the least time (among ties, the fewest
 * partitions) or for the fewest partitions. This file builds the colours, edges and slots; find_slots() shows the other steps and
 * their order. */
#include "split/convex.h"

#include <stdlib.h>
#include <string.h>

/* ---- Slots ---- */

clv_status clv__slots_init(clv__convex *c, clv__slots *slots, clv_error *error) {
  size_t n = (size_t)c->problem->node_count + 1;
  *slots = (clv__slots){.of_node = clv__arena_allocate(&c->scratch, n * sizeof *slots->of_node),
                        .colors = clv__arena_allocate(&c->scratch, n * sizeof *slots->colors),
                        .contents = clv__arena_allocate(&c->scratch, n)};
  if (slots->of_node != NULL && slots->colors != NULL && slots->contents != NULL) return CLV_OK;
  return clv__error_memory(error, n * sizeof *slots->of_node);
}

/* The savings lost between nodes of one device in different slots. */
static uint64_t lost_savings(const clv__convex *c, const clv__slots *slots) {
  const clv__problem *problem = c->problem;
  uint64_t lost = 0;
  for (uint32_t node = 0; node < problem->node_count; ++node) {
    uint32_t slot = slots->of_node[node];
    for (uint32_t r = problem->read_offsets[node]; r < problem->read_offsets[node + 1]; ++r) {
      uint32_t producer = problem->producers[problem->reads[r]];
      if (producer == CLV__NONE || slots->of_node[producer] == slot) continue;
      uint32_t device = c->color_devices[c->colors[node]];
      if (c->color_devices[c->colors[producer]] == device) lost = clv__sum_ns(lost, clv__saving_ns(problem, r, device));
    }
  }
  return lost;
}

/* Prices the launches of the slots, without lost savings. */
static void price_launches(const clv__convex *c, clv__slots *slots) {
  const clv__problem *problem = c->problem;
  slots->cost_ns = 0;
  slots->filled = slots->bare = 0;
  memset(slots->contents, 0, slots->count);
  for (uint32_t node = 0; node < problem->node_count; ++node) {
    slots->contents[slots->of_node[node]] |= (problem->flags[node] & CLV__NODE_VIEW) != 0 ? 1 : 3;
  }
  for (uint32_t s = 0; s < slots->count; ++s) {
    slots->filled += slots->contents[s] != 0;
    slots->bare += slots->contents[s] == 1;
    if (slots->contents[s] == 3)
      slots->cost_ns = clv__sum_ns(slots->cost_ns, problem->launch_ns[c->color_devices[slots->colors[s]]]);
  }
}

void clv__slots_price(const clv__convex *c, clv__slots *slots) {
  price_launches(c, slots);
  uint64_t lost = c->problem->saving_ns == NULL ? 0 : lost_savings(c, slots);
  slots->loses = lost > 0;
  slots->cost_ns = clv__sum_ns(slots->cost_ns, lost);
}

bool clv__slots_better(const clv__convex *c, const clv__slots *a, const clv__slots *b) {
  if (c->fewest && a->filled != b->filled) return a->filled < b->filled;
  return a->cost_ns != b->cost_ns ? a->cost_ns < b->cost_ns : a->filled < b->filled;
}

void clv__slots_take_better(const clv__convex *c, clv__slots *best, clv__slots *other) {
  if (!clv__slots_better(c, other, best)) return;
  clv__slots swapped = *best;
  *best = *other, *other = swapped;
}

/* ---- Colours and edges ---- */

typedef struct claim {
  uint32_t device, group, node;
  bool is_hosted;
} claim;

static bool same_color(const claim *x, const claim *y) {
  return x->device == y->device && x->group == y->group && x->is_hosted == y->is_hosted;
}

static int compare_claims(const void *a, const void *b) {
  const claim *x = a, *y = b;
  if (x->device != y->device) return x->device < y->device ? -1 : 1;
  if (x->group != y->group) return x->group < y->group ? -1 : 1;
  if (x->is_hosted != y->is_hosted) return x->is_hosted ? 1 : -1;
  return (x->node > y->node) - (x->node < y->node);
}

static clv_status color_claims(clv__convex *c, const uint32_t *devices, const uint32_t *groups, clv_error *error) {
  uint32_t n = c->problem->node_count;
  claim *claims = clv__arena_allocate(&c->scratch, (size_t)n * sizeof *claims);
  if (claims == NULL) return clv__error_memory(error, (size_t)n * sizeof *claims);
  for (uint32_t i = 0; i < n; ++i) {
    claims[i] = (claim){devices[i], groups == NULL ? CLV__NONE : groups[i], i, clv__is_hosted(c->problem, i, devices[i])};
  }
  qsort(claims, n, sizeof *claims, compare_claims);
  for (uint32_t i = 0; i < n; ++i) {
    if (i == 0 || !same_color(&claims[i], &claims[i - 1])) {
      c->color_devices[c->color_count] = claims[i].device;
      c->color_is_claimed[c->color_count] = claims[i].group != CLV__NONE;
      c->has_claims = c->has_claims || claims[i].group != CLV__NONE;
      ++c->color_count;
    }
    c->colors[claims[i].node] = c->color_count - 1;
  }
  return CLV_OK;
}

static clv_status find_colors(clv__convex *c, const uint32_t *devices, const uint32_t *groups, clv_error *error) {
  const clv__problem *problem = c->problem;
  uint32_t n = problem->node_count, color_of[32], used = 0, flags = 0;
  size_t room = (size_t)n + 32;
  bool has_hosted = false;
  c->colors = clv__arena_allocate(&c->scratch, (size_t)n * sizeof *c->colors);
  c->color_devices = clv__arena_allocate(&c->scratch, room * sizeof *c->color_devices);
  c->color_is_claimed = clv__arena_allocate_zero(&c->scratch, room, sizeof *c->color_is_claimed);
  if (c->colors == NULL || c->color_devices == NULL || c->color_is_claimed == NULL) {
    return clv__error_memory(error, room * sizeof *c->color_devices);
  }
  for (uint32_t i = 0; i < n; ++i) {
    if (devices[i] >= problem->device_count || devices[i] >= 32) {
      return clv__error_set(error, CLV_INVALID_ARGUMENT, "node %u is on device %u, but there are only %u devices", i, devices[i],
                            problem->device_count);
    }
    used |= 1u << devices[i];
    flags |= problem->flags[i];
    has_hosted = has_hosted || clv__is_hosted(problem, i, devices[i]);
  }
  c->has_views = (flags & CLV__NODE_VIEW) != 0;
  c->device_count = (uint32_t)__builtin_popcount(used);
  if (groups != NULL || has_hosted) return color_claims(c, devices, groups, error);
  for (uint32_t bits = used; bits != 0; bits &= bits - 1) {
    uint32_t device = (uint32_t)__builtin_ctz(bits);
    color_of[device] = c->color_count;
    c->color_devices[c->color_count++] = device;
  }
  for (uint32_t i = 0; i < n; ++i) c->colors[i] = color_of[devices[i]];
  return CLV_OK;
}

static clv_status take_edges(clv__convex *c, clv__edges *edges, clv_error *error) {
  size_t n = c->problem->node_count, reads = c->problem->read_offsets[n];
  edges->offsets = clv__arena_allocate_zero(&c->scratch, n + 2, sizeof *edges->offsets);
  edges->nodes = clv__arena_allocate(&c->scratch, reads * sizeof *edges->nodes);
  edges->savings = clv__arena_allocate(&c->scratch, reads * sizeof *edges->savings);
  if (edges->offsets != NULL && edges->nodes != NULL && edges->savings != NULL) return CLV_OK;
  return clv__error_memory(error, reads * sizeof *edges->savings);
}

clv_status clv__convex_edges(clv__convex *c, clv_error *error) {
  const clv__problem *problem = c->problem;
  uint32_t n = problem->node_count, count = 0;
  clv__edges in, out;
  if (c->in.offsets != NULL) return CLV_OK;
  CLV__TRY(take_edges(c, &in, error));
  CLV__TRY(take_edges(c, &out, error));
  for (uint32_t node = 0; node < n; ++node) {
    for (uint32_t r = problem->read_offsets[node]; r < problem->read_offsets[node + 1]; ++r) {
      uint32_t producer = problem->producers[problem->reads[r]], color = c->colors[node];
      if (producer == CLV__NONE) continue;
      in.nodes[count] = producer;
      in.savings[count++] = c->colors[producer] == color ? clv__saving_ns(problem, r, c->color_devices[color]) : 0;
      ++out.offsets[producer + 2];
    }
    in.offsets[node + 1] = count;
  }
  for (uint32_t node = 0; node < n; ++node) out.offsets[node + 2] += out.offsets[node + 1];
  for (uint32_t node = 0; node < n; ++node) {
    for (uint32_t i = in.offsets[node]; i < in.offsets[node + 1]; ++i) {
      uint32_t at = out.offsets[in.nodes[i] + 1]++;
      out.nodes[at] = node;
      out.savings[at] = in.savings[i];
    }
  }
  c->in = in, c->out = out;
  return CLV_OK;
}

/* ---- Candidates ---- */

/* Makes a slot of each run of consecutive nodes of one colour, and prices the launches. */
static void take_runs(const clv__convex *c, clv__slots *slots) {
  slots->count = 0;
  for (uint32_t node = 0; node < c->problem->node_count; ++node) {
    if (node == 0 || c->colors[node] != c->colors[node - 1]) slots->colors[slots->count++] = c->colors[node];
    slots->of_node[node] = slots->count - 1;
  }
  price_launches(c, slots);
}

/* Replaces `best` by the runs of the node list if these are better, so that it is never worse than the linear cut. */
static clv_status compare_with_runs(clv__convex *c, clv__slots *best, clv__slots *other, clv_error *error) {
  take_runs(c, other);
  if (!clv__slots_better(c, other, best)) return CLV_OK; /* not better even without its lost savings */
  clv__slots_price(c, other);
  if (!clv__slots_better(c, other, best)) return CLV_OK;
  CLV__TRY(clv__slots_shift(c, other, error));
  clv__slots_take_better(c, best, other);
  return CLV_OK;
}

static clv_status find_slots(clv__convex *c, clv__slots *best, clv_error *error) {
  clv__slots other;
  bool has_other = false;
  CLV__TRY(clv__slots_init(c, best, error));
  if (c->color_count <= 1) {
    take_runs(c, best);
    return CLV_OK;
  }
  CLV__TRY(clv__slots_init(c, &other, error));
  if (c->color_count == 2 && !c->has_claims)
    CLV__TRY(clv__slots_levels(c, best, &other, &has_other, error));
  else
    CLV__TRY(clv__slots_rounds(c, best, error));
  if (has_other || best->loses || best->bare > 0 || c->color_count > 2) CLV__TRY(clv__slots_shift(c, best, error));
  if (has_other) {
    CLV__TRY(clv__slots_shift(c, &other, error));
    clv__slots_take_better(c, best, &other);
  }
  if (best->loses) {
    uint64_t cost_ns = best->cost_ns;
    CLV__TRY(clv__slots_keep_pairs(c, best, error));
    if (best->cost_ns < cost_ns) CLV__TRY(clv__slots_shift(c, best, error));
  }
  return compare_with_runs(c, best, &other, error);
}

/* ---- The cut ---- */

static clv_status make_cut(const clv__convex *c, const clv__slots *slots, clv__arena *arena, clv__cut *cut, clv_error *error) {
  uint32_t n = c->problem->node_count, count = slots->count;
  clv__cut made = {.count = count,
                   .devices = clv__arena_allocate(arena, (size_t)count * sizeof *made.devices),
                   .offsets = clv__arena_allocate_zero(arena, (size_t)count + 2, sizeof *made.offsets),
                   .nodes = clv__arena_allocate(arena, (size_t)n * sizeof *made.nodes),
                   .partition_of = clv__arena_allocate(arena, (size_t)n * sizeof *made.partition_of)};
  if (made.devices == NULL || made.offsets == NULL || made.nodes == NULL || made.partition_of == NULL) {
    return clv__error_memory(error, (size_t)n * sizeof *made.nodes);
  }
  for (uint32_t node = 0; node < n; ++node) ++made.offsets[slots->of_node[node] + 2];
  for (uint32_t s = 0; s < count; ++s) {
    made.devices[s] = c->color_devices[slots->colors[s]];
    made.offsets[s + 2] += made.offsets[s + 1];
  }
  for (uint32_t node = 0; node < n; ++node) made.nodes[made.offsets[slots->of_node[node] + 1]++] = node;
  memcpy(made.partition_of, slots->of_node, (size_t)n * sizeof *made.partition_of);
  *cut = made;
  return CLV_OK;
}

clv_status clv__split_convex(const clv__problem *problem, const uint32_t *devices, const uint32_t *groups, bool fewest,
                             clv__arena *arena, clv__cut *cut, clv_error *error) {
  clv__convex c = {.problem = problem, .fewest = fewest};
  clv__slots slots;
  clv_status status = CLV_OK;
  *cut = (clv__cut){0};
  clv__arena_init(&c.scratch, arena->allocator);
  CLV__TRY_GOTO(find_colors(&c, devices, groups, error));
  CLV__TRY_GOTO(find_slots(&c, &slots, error));
  CLV__TRY_GOTO(clv__slots_split(&c, &slots, error));
  CLV__TRY_GOTO(make_cut(&c, &slots, arena, cut, error));
cleanup:
  clv__arena_finish(&c.scratch);
  return status;
}
