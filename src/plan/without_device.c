/* Makes a plan again without some of its devices. The nodes of these devices move to others; all other nodes stay, so that
 * existing executables and computed values remain usable. Backends are queried only about memory. */
#include <stdio.h>
#include <string.h>

#include "place/node.h"
#include "plan/without_device.h"

/* ---- Placing the nodes of lost devices ---- */

/* Runs the strategy on a problem in which every node of a remaining device is pinned to that device, so that only nodes of lost
 * devices are placed. The strategy is skipped if none of these has a choice between devices. Each old partition becomes a
 * group, so the new partitions lie within the old ones. */
static clv_status place_lost(clv__leaving *l, clv_error *error) {
  clv_plan *plan = l->plan;
  clv__placing *placing = &l->placing;
  clv__problem held = *plan->problem;
  bool is_open = false;
  uint32_t *pins = clv__arena_copy(&plan->arena, l->old->problem_devices, held.node_count * sizeof *pins);
  if (pins == NULL) return clv__error_memory(error, held.node_count * sizeof *pins);
  for (uint32_t n = 0; n < held.node_count; ++n) {
    if (!clv__is_bit(plan->gone, pins[n])) continue;
    uint32_t choices = held.supports[n];
    if (choices == 0) return clv__node_unsupported(&held, n, error);
    bool is_one = (choices & (choices - 1)) == 0;
    is_open = is_open || !is_one;
    pins[n] = is_one ? (uint32_t)__builtin_ctz(choices) : CLV__NONE;
  }
  held.pins = pins;
  clv__place_input input = clv__leaving_input(plan, &held);
  CLV__TRY(clv__placing_init(&held, &plan->arena, placing, error));
  memcpy(placing->devices, pins, held.node_count * sizeof *pins);
  if (is_open) CLV__TRY(l->strategy->place(&input, &plan->arena, placing, error));
  uint32_t *groups = clv__arena_allocate(&plan->arena, held.node_count * sizeof *groups);
  if (groups == NULL) return clv__error_memory(error, held.node_count * sizeof *groups);
  for (uint32_t n = 0; n < held.node_count; ++n) {
    uint32_t first = l->old->cut.offsets[l->old->cut.partition_of[n]];
    groups[n] = l->old->cut.nodes[first]; /* a group number that no other partition has */
  }
  placing->groups = groups;
  placing->has_cut = false;
  return CLV_OK;
}

/* Keeps each weight streamed or resident as before on devices whose nodes read it in the old plan. Elsewhere the strategy
 * decides. */
static clv_status stream_lost(clv__leaving *l, clv_error *error) {
  const clv__problem *problem = l->plan->problem;
  const uint16_t *before = l->old->streamed, *said = l->placing.streamed;
  if (before == NULL && said == NULL) return CLV_OK;
  uint16_t *streamed = clv__arena_allocate_zero(&l->plan->arena, problem->weight_count, sizeof *streamed);
  uint16_t *read_by = clv__arena_allocate_zero(&l->plan->arena, problem->weight_count, sizeof *read_by);
  if (streamed == NULL || read_by == NULL) return clv__error_memory(error, problem->weight_count * sizeof *streamed);
  for (uint32_t n = 0; n < problem->node_count; ++n) {
    uint16_t bit = (uint16_t)(1u << l->old->problem_devices[n]);
    for (uint32_t k = problem->weight_offsets[n]; k < problem->weight_offsets[n + 1]; ++k) read_by[problem->weights[k]] |= bit;
  }
  for (uint32_t w = 0; w < problem->weight_count; ++w) {
    uint16_t is = before == NULL ? 0 : before[w], should = said == NULL ? 0 : said[w];
    streamed[w] = (uint16_t)(((is & read_by[w]) | (should & ~read_by[w])) & ~l->plan->gone);
  }
  l->placing.streamed = streamed;
  return CLV_OK;
}

/* ---- The cut: the old partitions in their order, some of them replaced by several pieces ---- */

/* Returns whether the partition stays whole: its nodes are all on one device and in one group, and that device is still the old
 * one, or has no limits on partitions. */
static bool is_whole(const clv__leaving *l, const clv__placing *placing, uint32_t partition) {
  const clv__cut *cut = &l->old->cut;
  const clv__problem *problem = l->plan->problem;
  uint32_t first = cut->offsets[partition], end = cut->offsets[partition + 1];
  uint32_t device = placing->devices[cut->nodes[first]], group = placing->groups[cut->nodes[first]];
  for (uint32_t i = first; i < end; ++i) {
    uint32_t node = cut->nodes[i];
    if (placing->devices[node] != device || placing->groups[node] != group) return false;
    if (clv__is_hosted(problem, node, device) != clv__is_hosted(problem, cut->nodes[first], device)) return false;
  }
  const clv__limits *limits = &problem->limits[device];
  return device == cut->devices[partition] || (limits->max_inputs == 0 && limits->max_nodes == 0);
}

typedef struct composing {
  clv__cut *cut;
  uint32_t node_count;
  uint32_t *first, *next; /* by old partition: its first piece; by piece: the next piece; CLV__NONE: no more */
} composing;

static void add_partition(composing *c, uint32_t device, const uint32_t *nodes, uint32_t count) {
  clv__cut *cut = c->cut;
  for (uint32_t i = 0; i < count; ++i) {
    cut->nodes[c->node_count + i] = nodes[i];
    cut->partition_of[nodes[i]] = cut->count;
  }
  cut->devices[cut->count++] = device;
  cut->offsets[cut->count] = c->node_count += count;
}

/* Builds the new cut from the old one: keeps each partition that stays whole, and replaces each other one by its pieces. Each
 * partition of `pieces` lies within an old one, and the pieces of one old partition are in an executable order. */
static void compose(const clv__leaving *l, const clv__placing *placing, const clv__cut *pieces, composing *c) {
  const clv__cut *old = &l->old->cut;
  for (uint32_t p = 0; p < old->count; ++p) {
    uint32_t first = old->offsets[p], count = old->offsets[p + 1] - first;
    if (is_whole(l, placing, p)) {
      add_partition(c, placing->devices[old->nodes[first]], old->nodes + first, count);
      continue;
    }
    for (uint32_t q = c->first[p]; q != CLV__NONE; q = c->next[q]) {
      add_partition(c, pieces->devices[q], pieces->nodes + pieces->offsets[q], pieces->offsets[q + 1] - pieces->offsets[q]);
    }
  }
}

static clv_status cut_again(void *cookie, clv__placing *placing, clv__arena *arena, clv_error *error) {
  clv__leaving *l = cookie;
  clv_plan *plan = l->plan;
  const clv__problem *problem = plan->problem;
  clv__cut pieces = {0}, *cut = &placing->cut;
  bool all_whole = true;
  for (uint32_t p = 0; p < l->old->cut.count; ++p) all_whole = all_whole && is_whole(l, placing, p);
  if (!all_whole) {
    CLV__TRY(
        clv__split_convex(problem, placing->devices, placing->groups, plan->split == CLV__SPLIT_FEWEST, arena, &pieces, error));
  }
  size_t most = (size_t)l->old->cut.count + pieces.count;
  *cut = (clv__cut){.devices = clv__arena_allocate(arena, most * sizeof *cut->devices),
                    .offsets = clv__arena_allocate_zero(arena, most + 1, sizeof *cut->offsets),
                    .nodes = clv__arena_allocate(arena, problem->node_count * sizeof *cut->nodes),
                    .partition_of = clv__arena_allocate(arena, problem->node_count * sizeof *cut->partition_of)};
  if (cut->devices == NULL || cut->offsets == NULL || cut->nodes == NULL || cut->partition_of == NULL) {
    return clv__error_memory(error, problem->node_count * sizeof *cut->nodes);
  }
  composing c = {.cut = cut,
                 .first = clv__arena_allocate(arena, l->old->cut.count * sizeof *c.first),
                 .next = clv__arena_allocate(arena, pieces.count * sizeof *c.next)};
  if (c.first == NULL || c.next == NULL) return clv__error_memory(error, most * sizeof *c.next);
  memset(c.first, 0xff, l->old->cut.count * sizeof *c.first); /* CLV__NONE */
  for (uint32_t q = pieces.count; q-- > 0;) {
    uint32_t p = l->old->cut.partition_of[pieces.nodes[pieces.offsets[q]]];
    c.next[q] = c.first[p];
    c.first[p] = q;
  }
  compose(l, placing, &pieces, &c);
  return CLV_OK;
}

/* ---- Causes and notes ---- */

/* The note that explains why a node moved; nodes from the same device share it. */
static clv_status note_moved(clv__leaving *l, const char **notes, uint32_t from, const char **note, clv_error *error) {
  if (notes[from] == NULL) {
    char text[256];
    snprintf(text, sizeof text, "it was on %s, which was %s", l->plan->devices->items[from].name, l->plan->gone_why[from]);
    CLV__TRY(clv__leaving_text(&l->plan->arena, text, &notes[from], error));
  }
  *note = notes[from];
  return CLV_OK;
}

/* Gives the nodes that were on a lost device the cause "lost" and a note. */
static clv_status explain_moved(clv__leaving *l, clv_error *error) {
  clv_plan *plan = l->plan;
  const char *notes[CLV__MAX_DEVICES] = {NULL};
  for (clv_node_id n = 0; n < plan->graph->node_count; ++n) {
    uint32_t from = l->old->placement.devices[n];
    if (from == CLV__NO_ID || !clv__is_bit(l->lost, from)) continue;
    plan->placement.causes[n] = "lost";
    CLV__TRY(note_moved(l, notes, from, &plan->placement.notes[n], error));
  }
  return CLV_OK;
}

/* Places the nodes of lost devices again, but only divides old partitions. Returns CLV_NOT_SUPPORTED if the result does not fit
 * into memory, or if the strategy finds no placement. */
static clv_status place_in_place(clv__leaving *l, clv_error *error) {
  clv_plan *plan = l->plan;
  bool changed;
  clv__cutter cutter = {cut_again, l};
  CLV__TRY(place_lost(l, error));
  CLV__TRY(stream_lost(l, error));
  CLV__TRY(explain_moved(l, error));
  for (uint32_t n = 0; n < plan->problem->node_count; ++n)
    l->placing.causes[n] = plan->placement.causes[plan->problem->node_ids[n]];
  CLV__TRY(cut_again(l, &l->placing, &plan->arena, error));
  CLV__TRY(clv__plan_set_cut(plan, &l->placing.cut, l->placing.streamed, error));
  CLV__TRY(clv__place_within_memory(plan, &l->placing, &cutter, &changed, error));
  for (uint32_t n = 0; n < plan->problem->node_count; ++n)
    plan->placement.causes[plan->problem->node_ids[n]] = l->placing.causes[n];
  return clv__plan_set_steps(plan, error);
}

/* Places everything again, without the lost devices. Nodes of lost devices get the note that explains their move, if they have no
 * other note. */
static clv_status place_anew(clv__leaving *l, clv_error *error) {
  clv_plan *plan = l->plan;
  const char *notes[CLV__MAX_DEVICES] = {NULL}, *note = plan->note;
  clv__place_input input = clv__leaving_input(plan, plan->problem);
  plan->split = plan->split_is_given ? plan->split : l->strategy->split;
  input.split = plan->split;
  CLV__TRY(clv__plan_place(plan, l->strategy, &input, error));
  plan->note = note;
  for (clv_node_id n = 0; n < plan->graph->node_count; ++n) {
    uint32_t from = l->old->placement.devices[n];
    if (from == CLV__NO_ID || !clv__is_bit(l->lost, from) || plan->placement.notes[n] != NULL) continue;
    CLV__TRY(note_moved(l, notes, from, &plan->placement.notes[n], error));
  }
  return CLV_OK;
}

/* ---- Partitions that stay usable ---- */

static bool streams_alike(const clv__leaving *l, uint32_t node, uint32_t device) {
  const clv__problem *problem = l->plan->problem;
  const uint16_t *before = l->old->streamed, *now = l->plan->streamed;
  for (uint32_t k = problem->weight_offsets[node]; k < problem->weight_offsets[node + 1]; ++k) {
    uint32_t weight = problem->weights[k];
    if (clv__is_bit(before == NULL ? 0 : before[weight], device) != clv__is_bit(now == NULL ? 0 : now[weight], device))
      return false;
  }
  return true;
}

static bool is_same(const clv__leaving *l, uint32_t before, uint32_t now) {
  const clv__cut *old = &l->old->cut, *cut = &l->plan->cut;
  uint32_t first = cut->offsets[now], count = cut->offsets[now + 1] - first;
  if (old->devices[before] != cut->devices[now] || old->offsets[before + 1] - old->offsets[before] != count) return false;
  if (memcmp(old->nodes + old->offsets[before], cut->nodes + first, count * sizeof *cut->nodes) != 0) return false;
  for (uint32_t i = 0; i < count; ++i) {
    if (!streams_alike(l, cut->nodes[first + i], cut->devices[now])) return false;
  }
  return true;
}

clv_status clv__leaving_find_same(clv__leaving *l, clv_error *error) {
  const clv__cut *cut = &l->plan->cut;
  uint32_t *same = clv__arena_allocate(&l->plan->arena, cut->count * sizeof *same);
  if (same == NULL) return clv__error_memory(error, cut->count * sizeof *same);
  for (uint32_t p = 0; p < cut->count; ++p) {
    uint32_t before = l->old->cut.partition_of[cut->nodes[cut->offsets[p]]];
    same[p] = is_same(l, before, p) ? before : CLV__NO_ID;
  }
  l->plan->same_partitions = same;
  return CLV_OK;
}

clv_status clv__plan_without_devices(const clv_plan *old, uint32_t lost, const char *reason, clv_plan **out, clv_error *error) {
  clv__leaving l;
  *out = NULL;
  CLV__TRY(clv__leaving_create(old, lost, &l, error));
  clv_plan *plan = l.plan;
  clv__devices_lock(plan->origin->devices);
  clv_status status = clv__leaving_begin(&l, reason, error);
  if (status == CLV_OK) {
    status = place_in_place(&l, error);
    if (status == CLV_NOT_SUPPORTED) status = place_anew(&l, error);
  }
  if (status == CLV_OK) status = clv__leaving_find_same(&l, error);
  clv__devices_unlock(plan->origin->devices);
  if (status == CLV_OK)
    *out = plan;
  else
    clv_plan_destroy(plan);
  return status;
}
