/* Forms slots in rounds: each round takes one colour, and puts all its nodes that are ready into a slot. With two colours this
 * gives the fewest slots (see levels.c). With more, a heuristic chooses the next colour. If node sets wait for each other, one of
 * them is broken up. */
#include "split/rounds.h"

#include <string.h>

/* ---- Node sets: nodes claimed together, and pairs joined on trial ---- */

static void find_roots(const clv__convex *c, clv__node_sets *sets) {
  for (uint32_t i = 0; i < c->problem->node_count; ++i) sets->root[i] = clv__find(sets->root, i);
}

static clv_status make_node_sets(clv__convex *c, clv__node_sets *sets, clv_error *error) {
  uint32_t n = c->problem->node_count;
  sets->root = clv__arena_allocate(&c->scratch, (size_t)n * sizeof *sets->root);
  sets->next = clv__arena_allocate(&c->scratch, (size_t)n * sizeof *sets->next);
  uint32_t *last = clv__arena_allocate(&c->scratch, (size_t)c->color_count * sizeof *last);
  if (sets->root == NULL || sets->next == NULL || last == NULL) return clv__error_memory(error, (size_t)n * sizeof *last);
  for (uint32_t i = 0; i < n; ++i) sets->root[i] = sets->next[i] = i;
  memset(last, 0xff, c->color_count * sizeof *last);
  for (uint32_t i = 0; i < n && c->has_claims; ++i) {
    uint32_t color = c->colors[i];
    if (!c->color_is_claimed[color]) continue;
    if (last[color] != CLV__NONE) clv__join(sets->root, sets->next, last[color], i);
    last[color] = i;
  }
  find_roots(c, sets);
  return CLV_OK;
}

void clv__node_sets_join(const clv__convex *c, clv__node_sets *sets, uint32_t x, uint32_t y) {
  clv__join(sets->root, sets->next, x, y);
  find_roots(c, sets);
}

/* ---- Running ---- */

static void begin_ready(clv__rounds *r, uint32_t set, const uint32_t *tails) {
  uint32_t color = r->c->colors[set], longest = 0, member = set;
  do {
    longest = tails[member] > longest ? tails[member] : longest;
    member = r->sets.next[member];
  } while (member != set);
  if (r->heads[color] == CLV__NONE) {
    r->active[r->active_count++] = color;
    r->longest[color] = 0;
    r->weight[color] = 0;
  }
  r->link[set] = r->heads[color];
  r->heads[color] = set;
  if (longest > r->longest[color]) r->longest[color] = longest;
  r->weight[color] += (uint64_t)longest + 1;
}

/* Makes every member a set of its own that waits for its missing inputs. */
static void undo_set(clv__rounds *r, uint32_t set, const clv__edges *in, const uint32_t *tails, const clv__slots *slots) {
  uint32_t member = set;
  do {
    uint32_t next = r->sets.next[member];
    r->sets.root[member] = r->sets.next[member] = member;
    r->pending[member] = 0;
    for (uint32_t i = in->offsets[member]; i < in->offsets[member + 1]; ++i) {
      r->pending[member] += slots->of_node[in->nodes[i]] == CLV__NONE;
    }
    if (r->pending[member] == 0) begin_ready(r, member, tails);
    member = next;
  } while (member != set);
}

static bool is_before(const clv__rounds *r, clv__rounds_rule rule, uint32_t a, uint32_t b) {
  const uint64_t *launch_ns = r->c->problem->launch_ns;
  uint64_t x = launch_ns[r->c->color_devices[a]], y = launch_ns[r->c->color_devices[b]];
  if (rule == CLV__ROUNDS_CHEAPEST && x != y) return x < y;
  if (rule == CLV__ROUNDS_HEAVIEST && r->weight[a] != r->weight[b]) return r->weight[a] > r->weight[b];
  if (r->longest[a] != r->longest[b]) return r->longest[a] > r->longest[b];
  return r->weight[a] != r->weight[b] ? r->weight[a] > r->weight[b] : a < b;
}

static uint32_t choose(const clv__rounds *r, clv__rounds_rule rule, uint32_t wanted) {
  uint32_t best = 0;
  for (uint32_t i = 0; i < r->active_count; ++i) {
    if (r->active[i] == wanted) return i;
    if (i > 0 && is_before(r, rule, r->active[i], r->active[best])) best = i;
  }
  return best;
}

/* Runs all ready nodes of the active colour at `index`, and its nodes that thereby become ready. Returns the number of nodes. */
static uint32_t drain(clv__rounds *r, uint32_t index, uint32_t slot, const clv__edges *out, const uint32_t *tails,
                      clv__slots *slots) {
  uint32_t done = 0, color = r->active[index], stack = r->heads[color];
  r->active[index] = r->active[--r->active_count];
  r->heads[color] = CLV__NONE;
  while (stack != CLV__NONE) {
    uint32_t set = stack, member = set;
    stack = r->link[set];
    do {
      slots->of_node[member] = slot;
      ++done;
      for (uint32_t i = out->offsets[member]; i < out->offsets[member + 1]; ++i) {
        uint32_t reader = r->sets.root[out->nodes[i]];
        if (reader == set || --r->pending[reader] > 0) continue;
        if (r->c->colors[reader] == color) {
          r->link[reader] = stack;
          stack = reader;
        } else {
          begin_ready(r, reader, tails);
        }
      }
      member = r->sets.next[member];
    } while (member != set);
  }
  return done;
}

/* Returns the index of the next colour among the active ones, or CLV__NONE at the end of the guide. `position` is the current
 * position in the guide. */
static uint32_t choose_next(const clv__rounds *r, const clv__rounds_way *way, uint32_t slot, uint32_t *position) {
  if (way->guide == NULL) return choose(r, way->rule, slot == 0 ? way->start : CLV__NONE);
  for (; *position < way->guide_count; ++*position) {
    uint32_t at = way->backward ? way->guide_count - 1 - *position : *position;
    if (at == way->left_out) continue;
    for (uint32_t i = 0; i < r->active_count; ++i) {
      if (r->active[i] != way->guide[at]) continue;
      ++*position;
      return i;
    }
  }
  return CLV__NONE;
}

static void reset(clv__rounds *r, const clv__rounds_way *way, const clv__edges *in, clv__slots *slots) {
  const clv__convex *c = r->c;
  uint32_t n = c->problem->node_count;
  const uint32_t *root = r->sets.root;
  memset(slots->of_node, 0xff, (size_t)n * sizeof *slots->of_node);
  memset(r->heads, 0xff, (size_t)c->color_count * sizeof *r->heads);
  memset(r->pending, 0, (size_t)n * sizeof *r->pending);
  r->active_count = 0;
  for (uint32_t node = 0; node < n; ++node) {
    for (uint32_t i = in->offsets[node]; i < in->offsets[node + 1]; ++i)
      r->pending[root[node]] += root[in->nodes[i]] != root[node];
  }
  for (uint32_t node = 0; node < n; ++node) {
    if (root[node] == node && r->pending[node] == 0) begin_ready(r, node, r->tails[way->backward]);
  }
}

bool clv__rounds_run(clv__rounds *r, const clv__rounds_way *way, clv__slots *slots) {
  clv__convex *c = r->c;
  const clv__edges *in = way->backward ? &c->out : &c->in, *out = way->backward ? &c->in : &c->out;
  const uint32_t *tails = r->tails[way->backward];
  uint32_t n = c->problem->node_count, done = 0, waiting = 0, position = 0;
  reset(r, way, in, slots);
  slots->count = 0;
  while (done < n) {
    if (r->active_count == 0) { /* node sets wait for each other: break up the set of a node that waits for nothing */
      while (slots->of_node[way->backward ? n - 1 - waiting : waiting] != CLV__NONE) ++waiting;
      undo_set(r, r->sets.root[way->backward ? n - 1 - waiting : waiting], in, tails, slots);
    }
    uint32_t index = choose_next(r, way, slots->count, &position);
    if (index == CLV__NONE) return false;
    slots->colors[slots->count] = r->active[index];
    done += drain(r, index, slots->count++, out, tails, slots);
  }
  if (way->backward) {
    for (uint32_t node = 0; node < n; ++node) slots->of_node[node] = slots->count - 1 - slots->of_node[node];
    for (uint32_t a = 0, b = slots->count - 1; a < b; ++a, --b) {
      uint32_t color = slots->colors[a];
      slots->colors[a] = slots->colors[b];
      slots->colors[b] = color;
    }
  }
  clv__slots_price(c, slots);
  return true;
}

static void find_tails(const clv__convex *c, bool backward, uint32_t *tails) {
  const clv__edges *out = backward ? &c->in : &c->out;
  uint32_t n = c->problem->node_count;
  for (uint32_t k = 0; k < n; ++k) {
    uint32_t node = backward ? k : n - 1 - k, longest = 0;
    for (uint32_t i = out->offsets[node]; i < out->offsets[node + 1]; ++i) {
      uint32_t tail = tails[out->nodes[i]] + (c->colors[out->nodes[i]] != c->colors[node]);
      longest = tail > longest ? tail : longest;
    }
    tails[node] = longest;
  }
}

clv_status clv__rounds_init(clv__rounds *r, clv__convex *c, clv_error *error) {
  *r = (clv__rounds){.c = c};
  size_t n = (size_t)c->problem->node_count + 1, colors = (size_t)c->color_count + 1;
  CLV__TRY(clv__convex_edges(c, error));
  CLV__TRY(make_node_sets(c, &r->sets, error));
  uint32_t **by_node[] = {&r->pending, &r->link, &r->tails[0], &r->tails[1]}, **by_color[] = {&r->heads, &r->longest, &r->active};
  for (uint32_t i = 0; i < 4; ++i) {
    *by_node[i] = clv__arena_allocate(&c->scratch, n * sizeof(uint32_t));
    if (*by_node[i] == NULL) return clv__error_memory(error, n * sizeof(uint32_t));
  }
  for (uint32_t i = 0; i < 3; ++i) {
    *by_color[i] = clv__arena_allocate(&c->scratch, colors * sizeof(uint32_t));
    if (*by_color[i] == NULL) return clv__error_memory(error, colors * sizeof(uint32_t));
  }
  r->weight = clv__arena_allocate(&c->scratch, colors * sizeof *r->weight);
  if (r->weight == NULL) return clv__error_memory(error, colors * sizeof *r->weight);
  find_tails(c, false, r->tails[0]);
  find_tails(c, true, r->tails[1]);
  return CLV_OK;
}
