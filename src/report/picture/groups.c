/* See groups.h. Divides the order of scopes.h into scopes, from the outside to the inside. Where a scope still has many members,
 * finds repeated sequences of operators among them (blocks), and then divides what is left into runs of about equal length.
 * Blocks and runs end where few edges pass. */
#include "report/picture/groups.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"

enum {
  LEAST_NODES = 4,     /* smaller scopes are not groups */
  LEAST_PART = 2,      /* partitions with fewer nodes are not groups */
  FEW_MEMBERS = 16,    /* groups with at most this many members are not searched for blocks */
  MOST_MEMBERS = 48,   /* groups with more members are divided into runs */
  RUN_MEMBERS = 32,    /* approximate number of members of a run */
  SHORTEST_PERIOD = 4, /* of a block, in members: shorter repetitions are ignored */
  LONGEST_PERIOD = 1024,
  SHORT_PERIOD = 8,        /* blocks that are shorter must occur three times, because two are often a coincidence */
  MOST_COMPARED = 60000000 /* comparisons in the whole graph, after which no more blocks are searched for */
};

/* A member of a group: a node or an inner group. */
typedef struct member {
  uint32_t first, end; /* its positions in the order: from `first` up to but excluding `end` */
  uint32_t label;      /* equal for equal sequences of operators */
  bool block;
} member;

typedef struct grouping {
  const clv__groups_input *input;
  clv__groups *groups;
  clv__arena *arena;
  clv__scopes scopes;
  clv__map numbers;    /* operator -> its number */
  uint32_t *operators; /* indexed by position in the order */
  uint32_t *passing;   /* indexed by position: the number of edges from earlier positions to this or later ones */
  uint64_t compared;
  size_t capacity;
} grouping;

static bool add_group(grouping *g, clv__group group) {
  clv__groups *groups = g->groups;
  if (!clv__array_reserve(g->arena->allocator, (void **)&groups->items, &g->capacity, (size_t)groups->count + 1,
                          sizeof *groups->items, groups->count)) {
    return false;
  }
  groups->items[groups->count++] = group;
  return true;
}

static uint32_t label_of(const grouping *g, uint32_t first, uint32_t end) {
  if (end - first == 1) return g->operators[first];
  uint32_t hash = 2166136261u;
  for (uint32_t i = first; i < end; ++i) hash = (hash ^ g->operators[i]) * 16777619u;
  return hash | 0x80000000u;
}

/* ---- Runs ---- */

static bool add_run(grouping *g, const member *members, uint32_t count, member *run) {
  *run = (member){members[0].first, members[count - 1].end, 0, false};
  return count == 1 || add_group(g, (clv__group){.kind = CLV__GROUP_RUN, .first = run->first, .end = run->end});
}

/* Divides members into groups of neighbours until at most `most` are left, and returns their number, or 0 if memory runs out. */
static uint32_t divide(grouping *g, member *members, uint32_t count, uint32_t most) {
  while (count > most) {
    uint32_t runs = (count + RUN_MEMBERS - 1) / RUN_MEMBERS, begin = 0;
    for (uint32_t k = 0; k < runs; ++k) {
      uint32_t stop = k + 1 < runs ? (uint32_t)((uint64_t)count * (k + 1) / runs) : count, best = stop;
      for (uint32_t away = 1; k + 1 < runs && away <= RUN_MEMBERS / 4; ++away) {
        if (g->passing[members[stop - away].first] < g->passing[members[best].first]) best = stop - away;
        if (stop + away < count && g->passing[members[stop + away].first] < g->passing[members[best].first]) best = stop + away;
      }
      member run;
      if (!add_run(g, members + begin, best - begin, &run)) return 0;
      members[k] = run; /* k <= begin, so every member is read before it is overwritten */
      begin = best;
    }
    count = runs;
  }
  return count;
}

/* Divides members into runs if there are many: first the members between blocks and then, if there are still many, all
 * members. */
static bool add_runs(grouping *g, member *members, uint32_t count) {
  if (count <= MOST_MEMBERS) return true;
  uint32_t made = 0;
  for (uint32_t at = 0; at < count;) {
    uint32_t stop = at;
    while (stop < count && members[stop].block == members[at].block) ++stop;
    uint32_t left = stop - at;
    bool whole = left == count || members[at].block; /* without blocks, the runs need no group around them */
    if (!whole && (left = divide(g, members + at, left, MOST_MEMBERS)) == 0) return false;
    if (!whole && left >= LEAST_NODES) {
      if (!add_run(g, members + at, left, &members[at])) return false;
      left = 1;
    }
    memmove(members + made, members + at, left * sizeof *members);
    made += left;
    at = stop;
  }
  return divide(g, members, made, MOST_MEMBERS) > 0;
}

/* ---- Blocks ---- */

typedef struct repeat {
  uint32_t first, period, total; /* `total` times `period` members from `first` on */
} repeat;

/* Chooses where the blocks begin: of all possible positions, the one where the fewest edges pass between blocks. If several are
 * equal, the last one: the first layer of a model is more often special than the last one. */
static void turn(const grouping *g, const member *members, uint32_t length, repeat *r) {
  uint32_t begin = r->first;
  uint64_t least = UINT64_MAX;
  for (uint32_t at = begin; at + r->period * r->total <= begin + length && at < begin + r->period; ++at) {
    uint64_t passing = 0;
    for (uint32_t k = 0; k < r->total; ++k) passing += g->passing[members[at + k * r->period].first];
    if (passing <= least) {
      least = passing;
      r->first = at;
    }
  }
}

/* Finds the repeated sequence that covers the most members; of these, the shortest. */
static bool find_repeat(grouping *g, const member *members, uint32_t count, repeat *best) {
  uint32_t covered = 0;
  for (uint32_t period = SHORTEST_PERIOD; period <= count / 2 && period <= LONGEST_PERIOD; ++period) {
    g->compared += count - period;
    if (g->compared > MOST_COMPARED) break;
    uint32_t same = 0;
    for (uint32_t i = 0; i + period <= count; ++i) {
      if (i + period < count && members[i].label == members[i + period].label) {
        ++same;
        continue;
      }
      uint32_t total = (same + period) / period;
      if (total >= (period < SHORT_PERIOD ? 3 : 2) && total * period > covered) {
        repeat r = {i - same, period, total};
        covered = total * period;
        turn(g, members, same + period, &r);
        *best = r;
      }
      same = 0;
    }
  }
  return covered > 0;
}

/* Replaces repeated sequences of members by groups. Returns false if memory runs out. */
static bool add_blocks(grouping *g, member *members, uint32_t *count) {
  repeat r;
  if (*count <= FEW_MEMBERS || !find_repeat(g, members, *count, &r)) return true;
  uint32_t after = r.first + r.period * r.total, rest = *count - after, made = 0;
  member *blocks = clv__arena_allocate_zero(g->arena, r.total, sizeof *blocks);
  if (blocks == NULL) return false;
  for (uint32_t k = 0; k < r.total; ++k) {
    member *inner = members + r.first + (size_t)k * r.period;
    uint32_t inner_count = r.period;
    blocks[k] = (member){inner[0].first, inner[r.period - 1].end, 0, true};
    if (!add_group(
            g,
            (clv__group){
                .kind = CLV__GROUP_BLOCK, .first = blocks[k].first, .end = blocks[k].end, .number = k + 1, .total = r.total}) ||
        !add_blocks(g, inner, &inner_count) || !add_runs(g, inner, inner_count)) {
      return false;
    }
  }
  uint32_t before = r.first;
  if (!add_blocks(g, members, &before) || !add_blocks(g, members + after, &rest)) return false;
  made = before;
  for (uint32_t k = 0; k < r.total; ++k) members[made++] = blocks[k];
  memmove(members + made, members + after, rest * sizeof *members);
  *count = made + rest;
  return true;
}

/* ---- Scopes ---- */

static uint32_t scope_of(const grouping *g, uint32_t position, uint32_t depth) {
  return depth < CLV__MOST_SCOPES ? g->scopes.paths[g->groups->order[position]][depth] : CLV__NO_SCOPE;
}

/* Returns the end of the run of positions from `first` on whose scope at `depth` is the same; first + 1 if position `first` has
 * no scope at this depth. */
static uint32_t same_scope(const grouping *g, uint32_t first, uint32_t end, uint32_t depth) {
  uint32_t scope = scope_of(g, first, depth), at = first + 1;
  while (scope != CLV__NO_SCOPE && at < end && scope_of(g, at, depth) == scope) ++at;
  return at;
}

/* Returns the least depth, from `depth` on, at which not all positions have the same scope. */
static uint32_t shared_depth(const grouping *g, uint32_t first, uint32_t end, uint32_t depth) {
  while (scope_of(g, first, depth) != CLV__NO_SCOPE && same_scope(g, first, end, depth) == end) ++depth;
  return depth;
}

/* Adds the groups within the positions `first` up to but excluding `end`, which have the same scopes above `depth`. */
static bool add_members(grouping *g, uint32_t first, uint32_t end, uint32_t depth) {
  member *members = clv__arena_allocate_zero(g->arena, (size_t)(end - first) + 1, sizeof *members);
  if (members == NULL) return false;
  uint32_t count = 0;
  for (uint32_t at = first; at < end;) {
    uint32_t stop = same_scope(g, at, end, depth), scope = scope_of(g, at, depth);
    bool part = scope != CLV__NO_SCOPE && g->scopes.names[scope] == NULL;
    if (stop - at < (part ? LEAST_PART : LEAST_NODES)) {
      for (; at < stop; ++at) members[count++] = (member){at, at + 1, g->operators[at], false};
      continue;
    }
    uint32_t inner = shared_depth(g, at, stop, depth + 1);
    clv__group group = {.kind = CLV__GROUP_PART, .first = at, .end = stop, .number = g->scopes.parts[scope]};
    if (!part) {
      group.kind = CLV__GROUP_SCOPE;
      group.name = g->scopes.names[scope_of(g, at, inner - 1)];
    }
    if (!add_group(g, group) || !add_members(g, at, stop, inner)) return false;
    members[count++] = (member){at, stop, label_of(g, at, stop), false};
    at = stop;
  }
  return add_blocks(g, members, &count) && add_runs(g, members, count);
}

/* ---- Groups ---- */

static bool number_operators(grouping *g) {
  const clv__groups_input *in = g->input;
  g->operators = clv__arena_allocate_zero(g->arena, (size_t)in->node_count + 1, sizeof *g->operators);
  if (g->operators == NULL) return false;
  for (uint32_t i = 0; i < in->node_count; ++i) {
    const char *operator= in->operators[g->groups->order[i]];
    uint32_t number = clv__map_find(&g->numbers, operator);
    if (number == CLV__MAP_NONE && !clv__map_set(&g->numbers, operator, number = g->numbers.count)) return false;
    g->operators[i] = number;
  }
  return true;
}

static bool count_passing(grouping *g) {
  const clv__groups_input *in = g->input;
  uint32_t *positions = clv__arena_allocate_zero(g->arena, (size_t)in->node_count + 1, sizeof *positions);
  g->passing = clv__arena_allocate_zero(g->arena, (size_t)in->node_count + 2, sizeof *g->passing);
  if (positions == NULL || g->passing == NULL) return false;
  for (uint32_t i = 0; i < in->node_count; ++i) positions[g->groups->order[i]] = i;
  for (uint32_t e = 0; e < in->edge_count; ++e) {
    ++g->passing[positions[in->from[e]] + 1];
    --g->passing[positions[in->to[e]] + 1];
  }
  for (uint32_t i = 1; i < in->node_count; ++i) g->passing[i] += g->passing[i - 1];
  return true;
}

static int compare_groups(const void *a, const void *b) {
  const clv__group *x = a, *y = b;
  if (x->first != y->first) return x->first < y->first ? -1 : 1;
  return (x->end < y->end) - (x->end > y->end);
}

/* Sorts the groups, finds their parents, and moves them to the arena. */
static bool nest(grouping *g) {
  clv__groups *groups = g->groups;
  if (groups->count > 0) qsort(groups->items, groups->count, sizeof *groups->items, compare_groups);
  for (uint32_t i = 0; i < groups->count; ++i) {
    uint32_t parent = i > 0 ? i - 1 : UINT32_MAX;
    while (parent != UINT32_MAX && groups->items[parent].end <= groups->items[i].first) parent = groups->items[parent].parent;
    groups->items[i].parent = parent;
  }
  clv__group *items = clv__arena_allocate_zero(g->arena, (size_t)groups->count + 1, sizeof *items);
  if (items != NULL && groups->count > 0) memcpy(items, groups->items, groups->count * sizeof *items);
  clv__release(g->arena->allocator, groups->items);
  groups->items = items;
  return items != NULL;
}

bool clv__groups_make(const clv__groups_input *input, clv__arena *arena, clv__groups *groups) {
  *groups = (clv__groups){0};
  grouping g = {.input = input, .groups = groups, .arena = arena};
  groups->order = clv__arena_allocate_zero(arena, (size_t)input->node_count + 1, sizeof *groups->order);
  if (groups->order == NULL || !clv__scopes_make(input, arena, &g.scopes) ||
      !clv__scopes_order(input, &g.scopes, arena, groups->order)) {
    return false;
  }
  clv__map_init(&g.numbers, arena->allocator);
  bool done = number_operators(&g) && count_passing(&g) &&
              (input->node_count == 0 || add_members(&g, 0, input->node_count, shared_depth(&g, 0, input->node_count, 0)));
  clv__map_finish(&g.numbers);
  return nest(&g) && done;
}
