/* Shifting: moves nodes to a later or an earlier slot of their colour if that keeps a saving, moves views to slots that do
 * work, or empties a slot. Every step is checked against its cost, so a grouping never gets worse. For each slot it tries to
 * move: the whole slot into the next one of its colour that does work; everything except views; everything that is fused
 * together; single nodes. */
#include <string.h>

#include "split/convex.h"

/* One direction: positions are slots, counted so that edges of `out` lead to the same or a higher position. */
typedef struct shift {
  const clv__convex *c;
  clv__slots *slots;
  const clv__edges *in, *out;
  bool backward;
  uint32_t changed;            /* nodes moved in this pass */
  uint32_t *offsets, *nodes;   /* by position: its nodes at the start of the pass, in topological order */
  uint32_t *members, *workers; /* by position: how many nodes it has now; how many of these are not views */
  uint32_t *near;              /* by colour: the next higher position that has workers */
  uint32_t *root, *next;       /* sets of fused nodes: each node's representative, and the next node in the ring of its set */
  uint8_t *tried;              /* by representative */
} shift;

static inline uint32_t position(const shift *s, uint32_t node) {
  uint32_t slot = s->slots->of_node[node];
  return s->backward ? s->slots->count - 1 - slot : slot;
}

static inline bool is_view(const shift *s, uint32_t node) {
  return (s->c->problem->flags[node] & CLV__NODE_VIEW) != 0;
}

/* The highest position that `node` may take if its neighbours at position `but` are ignored. The slot at that position may have
 * another colour; then the node cannot be there. */
static uint32_t bound_of(const shift *s, uint32_t node, uint32_t but) {
  uint32_t bound = CLV__NONE;
  for (uint32_t i = s->out->offsets[node]; i < s->out->offsets[node + 1]; ++i) {
    uint32_t at = position(s, s->out->nodes[i]);
    if (at != but && at < bound) bound = at;
  }
  return bound;
}

static void move(shift *s, uint32_t node, uint32_t to) {
  uint32_t from = position(s, node);
  --s->members[from], ++s->members[to];
  if (!is_view(s, node)) --s->workers[from], ++s->workers[to];
  s->slots->of_node[node] = s->backward ? s->slots->count - 1 - to : to;
  ++s->changed;
}

/* Returns whether it pays to move `members` nodes, `workers` of them not views, from `from` to `to`, where they save `gain` and
 * lose `loss`. */
static bool pays(const shift *s, uint32_t color, uint32_t from, uint32_t to, uint32_t members, uint32_t workers, uint64_t gain,
                 uint64_t loss) {
  uint64_t launch = s->c->problem->launch_ns[s->c->color_devices[color]];
  if (workers > 0 && s->workers[from] == workers) gain = clv__sum_ns(gain, launch);
  if (workers > 0 && s->workers[to] == 0) loss = clv__sum_ns(loss, launch);
  if (gain != loss) return gain > loss;
  return s->members[from] == members || (s->workers[from] == 0 && s->workers[to] > 0);
}

/* Finds the target of node `first` or, with `ring`, of its whole ring: the position, at most `bound`, of the greatest single
 * saving, and the total saving there. Returns CLV__NONE if there is none. */
static uint32_t find_target(const shift *s, uint32_t first, bool ring, uint32_t from, uint32_t bound, uint64_t *gain) {
  uint32_t target = CLV__NONE, node = first;
  uint64_t most = 0;
  do {
    for (uint32_t i = s->out->offsets[node]; i < s->out->offsets[node + 1]; ++i) {
      uint64_t saved = s->out->savings[i];
      if (saved <= most) continue;
      uint32_t at = position(s, s->out->nodes[i]);
      if (at == from || at > bound) continue;
      most = saved, target = at;
    }
    node = ring ? s->next[node] : first;
  } while (node != first);
  *gain = 0;
  node = first;
  if (target == CLV__NONE) return target;
  do {
    for (uint32_t i = s->out->offsets[node]; i < s->out->offsets[node + 1]; ++i) {
      if (s->out->savings[i] > 0 && position(s, s->out->nodes[i]) == target) *gain = clv__sum_ns(*gain, s->out->savings[i]);
    }
    node = ring ? s->next[node] : first;
  } while (node != first);
  return target;
}

static void move_slot(shift *s, uint32_t at) {
  uint32_t first = s->offsets[at], end = s->offsets[at + 1], bound = CLV__NONE;
  if (first == end) return;
  uint32_t color = s->c->colors[s->nodes[first]], to = s->near[color];
  if (to == CLV__NONE) return;
  for (uint32_t i = first; i < end && bound >= to; ++i) {
    uint32_t most = bound_of(s, s->nodes[i], at);
    bound = most < bound ? most : bound;
  }
  if (bound < to) return;
  for (uint32_t i = first; i < end; ++i) move(s, s->nodes[i], to);
}

/* Moves all nodes that do work, and the views that wait for them, to the next position where their colour does work; the other
 * views stay. This saves one launch. */
static void move_workers(shift *s, uint32_t at) {
  uint32_t first = s->offsets[at], end = s->offsets[at + 1];
  if (s->workers[at] == 0 || s->workers[at] == s->members[at]) return;
  uint32_t color = s->slots->colors[s->backward ? s->slots->count - 1 - at : at], to = s->near[color], members = 0;
  uint64_t gain = 0, loss = 0;
  if (to == CLV__NONE) return;
  for (uint32_t i = first; i < end; ++i) s->tried[s->nodes[i]] = 0;
  for (uint32_t i = first; i < end; ++i) {
    uint32_t node = s->nodes[i];
    bool leaves = !is_view(s, node);
    uint64_t saved = 0;
    if (position(s, node) != at) continue;
    for (uint32_t k = s->in->offsets[node]; k < s->in->offsets[node + 1]; ++k) {
      if (position(s, s->in->nodes[k]) != at) continue;
      if (s->tried[s->in->nodes[k]] != 0)
        leaves = true;
      else
        saved = clv__sum_ns(saved, s->in->savings[k]);
    }
    if (!leaves) continue;
    if (bound_of(s, node, at) < to) return;
    s->tried[node] = 1;
    ++members;
    loss = clv__sum_ns(loss, saved);
    for (uint32_t k = s->out->offsets[node]; k < s->out->offsets[node + 1]; ++k) {
      if (s->out->savings[k] > 0 && position(s, s->out->nodes[k]) == to) gain = clv__sum_ns(gain, s->out->savings[k]);
    }
  }
  if (!pays(s, color, at, to, members, s->workers[at], gain, loss)) return;
  for (uint32_t i = first; i < end; ++i) {
    if (s->tried[s->nodes[i]] != 0) move(s, s->nodes[i], to);
  }
}

/* Builds the rings of fused nodes at `at`. */
static void make_rings(shift *s, uint32_t at) {
  for (uint32_t i = s->offsets[at]; i < s->offsets[at + 1]; ++i) {
    s->root[s->nodes[i]] = s->next[s->nodes[i]] = s->nodes[i];
    s->tried[s->nodes[i]] = 0;
  }
  for (uint32_t i = s->offsets[at]; i < s->offsets[at + 1]; ++i) {
    uint32_t node = s->nodes[i];
    for (uint32_t k = s->out->offsets[node]; k < s->out->offsets[node + 1]; ++k) {
      uint32_t other = s->out->nodes[k];
      if (s->out->savings[k] == 0 || position(s, other) != at) continue;
      clv__join(s->root, s->next, node, other);
    }
  }
}

static void move_rings(shift *s, uint32_t at) {
  make_rings(s, at);
  for (uint32_t i = s->offsets[at + 1]; i-- > s->offsets[at];) {
    uint32_t first = s->nodes[i], node = first, bound = CLV__NONE, members = 0, workers = 0, to;
    uint32_t ring = clv__find(s->root, first);
    uint64_t gain;
    if (s->tried[ring]) continue;
    s->tried[ring] = 1;
    do {
      for (uint32_t k = s->out->offsets[node]; k < s->out->offsets[node + 1]; ++k) {
        uint32_t other = s->out->nodes[k], reached = position(s, other);
        if (reached == at && clv__find(s->root, other) == ring) continue;
        bound = reached < bound ? reached : bound;
      }
      ++members;
      workers += !is_view(s, node);
      node = s->next[node];
    } while (node != first && bound > at);
    if (bound <= at) continue;
    to = find_target(s, first, true, at, bound, &gain);
    if (to == CLV__NONE || !pays(s, s->c->colors[first], at, to, members, workers, gain, 0)) continue;
    do {
      move(s, node, to);
      node = s->next[node];
    } while (node != first);
  }
}

static void move_nodes(shift *s, uint32_t at) {
  for (uint32_t i = s->offsets[at + 1]; i-- > s->offsets[at];) {
    uint32_t node = s->nodes[i], color = s->c->colors[node], bound, to;
    uint64_t gain, loss = 0;
    if (position(s, node) != at || (bound = bound_of(s, node, CLV__NONE)) <= at) continue;
    to = find_target(s, node, false, at, bound, &gain);
    if (to == CLV__NONE && s->workers[at] == 0 && s->near[color] <= bound) to = s->near[color];
    if (to == CLV__NONE) continue;
    for (uint32_t k = s->in->offsets[node]; k < s->in->offsets[node + 1]; ++k) {
      if (s->in->savings[k] > 0 && position(s, s->in->nodes[k]) == at) loss = clv__sum_ns(loss, s->in->savings[k]);
    }
    if (pays(s, color, at, to, 1, !is_view(s, node), gain, loss)) move(s, node, to);
  }
}

static void pass(shift *s) {
  clv__slots *slots = s->slots;
  uint32_t n = s->c->problem->node_count, count = slots->count;
  memset(s->offsets, 0, ((size_t)count + 2) * sizeof *s->offsets);
  memset(s->members, 0, (size_t)count * sizeof *s->members);
  memset(s->workers, 0, (size_t)count * sizeof *s->workers);
  memset(s->near, 0xff, (size_t)s->c->color_count * sizeof *s->near);
  for (uint32_t node = 0; node < n; ++node) {
    uint32_t at = position(s, node);
    ++s->offsets[at + 2];
    ++s->members[at];
    s->workers[at] += !is_view(s, node);
  }
  for (uint32_t at = 0; at < count; ++at) s->offsets[at + 2] += s->offsets[at + 1];
  for (uint32_t k = 0; k < n; ++k) {
    uint32_t node = s->backward ? n - 1 - k : k;
    s->nodes[s->offsets[position(s, node) + 1]++] = node;
  }
  for (uint32_t at = count; at-- > 0;) {
    move_slot(s, at);
    move_workers(s, at);
    if (s->members[at] > 0 && s->c->problem->saving_ns != NULL) move_rings(s, at);
    if (s->members[at] > 0) move_nodes(s, at);
    if (s->workers[at] > 0) s->near[slots->colors[s->backward ? count - 1 - at : at]] = at;
  }
}

clv_status clv__slots_shift(clv__convex *c, clv__slots *slots, clv_error *error) {
  enum { MOST_PASSES = 6, ARRAYS = 7 };
  shift s = {.c = c, .slots = slots};
  size_t room = (size_t)c->problem->node_count + 2;
  uint32_t **arrays[ARRAYS] = {&s.offsets, &s.nodes, &s.members, &s.workers, &s.root, &s.next, &s.near};
  CLV__TRY(clv__convex_edges(c, error));
  for (uint32_t i = 0; i < ARRAYS; ++i) {
    *arrays[i] = clv__arena_allocate(&c->scratch, room * sizeof(uint32_t));
    if (*arrays[i] == NULL) return clv__error_memory(error, room * sizeof(uint32_t));
  }
  s.tried = clv__arena_allocate(&c->scratch, room);
  if (s.tried == NULL) return clv__error_memory(error, room);
  for (uint32_t i = 0, idle = 0; i < MOST_PASSES && idle < 2; ++i) {
    s.backward = (i & 1u) != 0;
    s.in = s.backward ? &c->out : &c->in;
    s.out = s.backward ? &c->in : &c->out;
    s.changed = 0;
    pass(&s);
    /* A pass that moves few nodes counts as idle: further passes would gain little. */
    idle = s.changed > c->problem->node_count / 256 ? 0 : idle + 1;
  }
  clv__slots_price(c, slots);
  return CLV_OK;
}
