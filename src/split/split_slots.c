/* Turns slots into partitions: if a launch costs nothing, separates parts of a slot that could run at different times; cuts
 * what exceeds a device's limits; and puts the slots into the order in which they can start. */
#include <stdlib.h>
#include <string.h>

#include "split/convex.h"

/* Nodes by slot, ascending. */
typedef struct lists {
  uint32_t *offsets, *nodes;
} lists;

static clv_status list_nodes(clv__convex *c, const clv__slots *slots, lists *l, clv_error *error) {
  uint32_t n = c->problem->node_count;
  l->offsets = clv__arena_allocate_zero(&c->scratch, (size_t)slots->count + 2, sizeof *l->offsets);
  l->nodes = clv__arena_allocate(&c->scratch, (size_t)n * sizeof *l->nodes);
  if (l->offsets == NULL || l->nodes == NULL) return clv__error_memory(error, (size_t)n * sizeof *l->nodes);
  for (uint32_t node = 0; node < n; ++node) ++l->offsets[slots->of_node[node] + 2];
  for (uint32_t s = 0; s < slots->count; ++s) l->offsets[s + 2] += l->offsets[s + 1];
  for (uint32_t node = 0; node < n; ++node) l->nodes[l->offsets[slots->of_node[node] + 1]++] = node;
  return CLV_OK;
}

static void drop_empty(const clv__convex *c, clv__slots *slots, uint32_t *number) {
  uint32_t count = 0;
  for (uint32_t s = 0; s < slots->count; ++s) {
    number[s] = count;
    if (slots->contents[s] == 0) continue;
    slots->colors[count++] = slots->colors[s];
  }
  for (uint32_t node = 0; node < c->problem->node_count; ++node) slots->of_node[node] = number[slots->of_node[node]];
  slots->count = count;
}

/* ---- Parts that could run at different times ---- */

/* Connected nodes of a slot. Only two properties of a part matter to other devices: the last of their slots that the part waits
 * for, and the first of their slots that waits for the part. Parts that agree in both gain nothing from being separate. */
typedef struct part {
  uint32_t slot, after, before, root;
  bool works; /* some node is not a view */
} part;

static int compare_parts(const void *a, const void *b) {
  const part *x = a, *y = b;
  if (x->slot != y->slot) return x->slot < y->slot ? -1 : 1;
  if (x->after != y->after) return x->after < y->after ? -1 : 1;
  if (x->before != y->before) return x->before < y->before ? -1 : 1;
  return (x->root > y->root) - (x->root < y->root);
}

static bool is_free(const clv__convex *c, const clv__slots *slots, uint32_t node) {
  return c->problem->launch_ns[c->color_devices[slots->colors[slots->of_node[node]]]] == 0;
}

/* Finds the parts. The part of a root is at index `index[root]`. */
static uint32_t find_parts(const clv__convex *c, const clv__slots *slots, const lists *l, uint32_t *root, uint32_t *index,
                           part *parts) {
  const clv__problem *problem = c->problem;
  uint32_t n = problem->node_count, count = 0;
  for (uint32_t node = 0; node < n; ++node) {
    uint32_t slot = slots->of_node[node];
    root[node] = node;
    if (!is_free(c, slots, node)) clv__join(root, NULL, l->nodes[l->offsets[slot]], node);
    for (uint32_t r = problem->read_offsets[node]; r < problem->read_offsets[node + 1]; ++r) {
      uint32_t producer = problem->producers[problem->reads[r]];
      if (producer != CLV__NONE && slots->of_node[producer] == slot) clv__join(root, NULL, producer, node);
    }
  }
  for (uint32_t node = 0; node < n; ++node) {
    uint32_t at = clv__find(root, node), device = c->color_devices[c->colors[node]];
    if (at == node) {
      index[node] = count;
      parts[count++] = (part){.slot = slots->of_node[node], .before = CLV__NONE, .root = node};
    }
    part *to = &parts[index[at]];
    to->works = to->works || (problem->flags[node] & CLV__NODE_VIEW) == 0;
    for (uint32_t r = problem->read_offsets[node]; r < problem->read_offsets[node + 1]; ++r) {
      uint32_t producer = problem->producers[problem->reads[r]];
      if (producer == CLV__NONE || c->color_devices[c->colors[producer]] == device) continue;
      part *from = &parts[index[clv__find(root, producer)]];
      if (from->slot + 1 > to->after) to->after = from->slot + 1;
      if (to->slot < from->before) from->before = to->slot;
    }
  }
  return count;
}

static clv_status separate_parts(clv__convex *c, clv__slots *slots, const lists *l, clv_error *error) {
  uint32_t n = c->problem->node_count, count = 0;
  uint32_t *root = clv__arena_allocate(&c->scratch, (size_t)n * sizeof *root);
  uint32_t *index = clv__arena_allocate(&c->scratch, (size_t)n * sizeof *index);
  uint32_t *colors = clv__arena_allocate(&c->scratch, (size_t)n * sizeof *colors);
  part *parts = clv__arena_allocate(&c->scratch, (size_t)n * sizeof *parts);
  if (root == NULL || index == NULL || colors == NULL || parts == NULL) {
    return clv__error_memory(error, (size_t)n * sizeof *parts);
  }
  uint32_t part_count = find_parts(c, slots, l, root, index, parts);
  qsort(parts, part_count, sizeof *parts, compare_parts);
  for (uint32_t i = 0, works = 0; i < part_count;) {
    uint32_t end = i + 1;
    bool now = parts[i].works;
    for (; end < part_count && parts[end].slot == parts[i].slot && parts[end].after == parts[i].after &&
           parts[end].before == parts[i].before;
         ++end) {
      now = now || parts[end].works;
    }
    /* A part that has only views joins the previous part, or absorbs the next one. */
    bool first = i == 0 || parts[i].slot != parts[i - 1].slot;
    if (first || (now && works)) colors[count++] = slots->colors[parts[i].slot];
    works = first ? now : works || now;
    for (; i < end; ++i) index[parts[i].root] = count - 1;
  }
  for (uint32_t node = 0; node < n; ++node) slots->of_node[node] = index[clv__find(root, node)];
  memcpy(slots->colors, colors, (size_t)count * sizeof *colors);
  slots->count = count;
  return CLV_OK;
}

/* ---- Limits ---- */

typedef struct limiter {
  const clv__convex *c;
  const uint32_t *slot_of; /* by node: its new slot, or CLV__NONE if it has none yet */
  uint32_t *seen;          /* by value: the last new slot (+ 1) that reads it from outside */
  uint32_t slot, nodes, inputs;
} limiter;

/* Returns how many more values the new slot would read from outside with `node`. Marks these values as seen, so that a later
 * node of the slot does not count them again. */
static uint32_t count_new_inputs(limiter *m, uint32_t node) {
  const clv__problem *problem = m->c->problem;
  uint32_t fresh = 0;
  for (uint32_t r = problem->read_offsets[node]; r < problem->read_offsets[node + 1]; ++r) {
    uint32_t value = problem->reads[r], producer = problem->producers[value];
    if ((producer != CLV__NONE && m->slot_of[producer] == m->slot) || m->seen[value] == m->slot + 1) continue;
    m->seen[value] = m->slot + 1;
    ++fresh;
  }
  return fresh;
}

/* Cuts each slot's nodes, in the given order, whenever the new slot would exceed a limit. The result goes into `made`, which must
 * be initialised. */
static clv_status cut_in_order(clv__convex *c, const clv__slots *slots, const lists *l, const uint32_t *order, clv__slots *made,
                               clv_error *error) {
  const clv__problem *problem = c->problem;
  uint32_t *slot_of = made->of_node, *colors = made->colors;
  limiter m = {c, slot_of, clv__arena_allocate_zero(&c->scratch, problem->value_count, sizeof *m.seen), CLV__NONE, 0, 0};
  if (m.seen == NULL) return clv__error_memory(error, (size_t)problem->value_count * sizeof *m.seen);
  memset(slot_of, 0xff, (size_t)problem->node_count * sizeof *slot_of);
  for (uint32_t s = 0; s < slots->count; ++s) {
    const clv__limits *limits = &problem->limits[c->color_devices[slots->colors[s]]];
    for (uint32_t i = l->offsets[s]; i < l->offsets[s + 1]; ++i) {
      uint32_t node = order[i], fresh = 0;
      bool begin = i == l->offsets[s] || (limits->max_nodes > 0 && m.nodes >= limits->max_nodes);
      if (!begin && limits->max_inputs > 0) {
        fresh = count_new_inputs(&m, node);
        begin = fresh > limits->max_inputs || m.inputs > limits->max_inputs - fresh;
      }
      if (begin) {
        ++m.slot;
        m.nodes = m.inputs = 0;
        colors[m.slot] = slots->colors[s];
        fresh = limits->max_inputs > 0 ? count_new_inputs(&m, node) : 0;
        if (fresh > limits->max_inputs)
          return clv__split_too_many_inputs(problem, node, c->color_devices[slots->colors[s]], fresh, error);
      }
      slot_of[node] = m.slot;
      m.inputs += fresh;
      ++m.nodes;
    }
  }
  made->count = m.slot + 1;
  return CLV_OK;
}

/* Orders each slot's nodes so that chains stay together: the nodes that a node makes ready come next, greatest saving first. */
static clv_status order_by_depth(clv__convex *c, const clv__slots *slots, const lists *l, uint32_t *order, clv_error *error) {
  const clv__problem *problem = c->problem;
  uint32_t n = problem->node_count;
  uint32_t *waits = clv__arena_allocate_zero(&c->scratch, n, sizeof *waits);
  uint32_t *stack = clv__arena_allocate(&c->scratch, (size_t)n * sizeof *stack);
  if (waits == NULL || stack == NULL) return clv__error_memory(error, (size_t)n * sizeof *stack);
  CLV__TRY(clv__convex_edges(c, error));
  for (uint32_t node = 0; node < n; ++node) {
    for (uint32_t e = c->in.offsets[node]; e < c->in.offsets[node + 1]; ++e) {
      waits[node] += slots->of_node[c->in.nodes[e]] == slots->of_node[node];
    }
  }
  for (uint32_t s = 0, made = 0; s < slots->count; ++s) {
    uint32_t held = 0;
    for (uint32_t i = l->offsets[s + 1]; i > l->offsets[s]; --i) {
      if (waits[l->nodes[i - 1]] == 0) stack[held++] = l->nodes[i - 1];
    }
    while (held > 0) {
      uint32_t node = stack[--held], first = held;
      uint64_t most = 0;
      order[made++] = node;
      for (uint32_t e = c->out.offsets[node + 1]; e > c->out.offsets[node]; --e) {
        uint32_t next = c->out.nodes[e - 1];
        if (slots->of_node[next] != s || --waits[next] > 0) continue;
        stack[held++] = next;
        if (held > first + 1 && c->out.savings[e - 1] < most) { /* the greatest saving stays on top */
          stack[held - 1] = stack[held - 2];
          stack[held - 2] = next;
        } else {
          most = c->out.savings[e - 1];
        }
      }
    }
  }
  return CLV_OK;
}

/* Cuts the slots, taking their nodes in an order that keeps chains together. */
static clv_status cut_by_depth(clv__convex *c, const clv__slots *slots, const lists *l, clv__slots *made, clv_error *error) {
  uint32_t n = c->problem->node_count, *order = clv__arena_allocate(&c->scratch, (size_t)n * sizeof *order);
  if (order == NULL) return clv__error_memory(error, (size_t)n * sizeof *order);
  CLV__TRY(clv__slots_init(c, made, error));
  CLV__TRY(order_by_depth(c, slots, l, order, error));
  CLV__TRY(cut_in_order(c, slots, l, order, made, error));
  clv__slots_price(c, made);
  return CLV_OK;
}

/* The order of the nodes decides which of them share a slot, so two orders are tried. A node that alone reads too many values is
 * within the limit only in an order in which it shares the slot of their producers. */
static clv_status cut_for_limits(clv__convex *c, clv__slots *slots, const lists *l, clv_error *error) {
  clv__slots cut, other;
  clv_error why = {0};
  CLV__TRY(clv__slots_init(c, &cut, error));
  clv_status status = cut_in_order(c, slots, l, l->nodes, &cut, error);
  if (status != CLV_OK && status != CLV_NOT_SUPPORTED) return status;
  if (status == CLV_OK) clv__slots_price(c, &cut);
  if (status == CLV_NOT_SUPPORTED || cut.count > slots->count) {
    clv_status second = cut_by_depth(c, slots, l, &other, &why);
    if (second == CLV_OUT_OF_MEMORY) return clv__error_memory(error, c->problem->node_count * sizeof(uint32_t));
    if (second == CLV_OK && status == CLV_OK) clv__slots_take_better(c, &cut, &other);
    if (second == CLV_OK && status != CLV_OK) cut = other;
    if (second == CLV_OK) status = CLV_OK;
  }
  if (status == CLV_OK) *slots = cut;
  return status;
}

clv_status clv__slots_split(clv__convex *c, clv__slots *slots, clv_error *error) {
  const clv__problem *problem = c->problem;
  bool limited = false, launches_are_free = false;
  if (problem->node_count == 0) return CLV_OK;
  for (uint32_t i = 0; i < c->color_count; ++i) {
    const clv__limits *limits = &problem->limits[c->color_devices[i]];
    limited = limited || limits->max_nodes > 0 || limits->max_inputs > 0;
    launches_are_free = launches_are_free || problem->launch_ns[c->color_devices[i]] == 0;
  }
  bool parts = launches_are_free && !c->fewest && c->device_count > 1;
  if (slots->filled < slots->count) {
    uint32_t *number = clv__arena_allocate(&c->scratch, (size_t)slots->count * sizeof *number);
    if (number == NULL) return clv__error_memory(error, (size_t)slots->count * sizeof *number);
    drop_empty(c, slots, number);
  }
  if (!parts && !limited) return CLV_OK;
  lists l;
  uint32_t whole = slots->count;
  CLV__TRY(list_nodes(c, slots, &l, error));
  if (parts) {
    CLV__TRY(separate_parts(c, slots, &l, error));
    CLV__TRY(list_nodes(c, slots, &l, error));
  }
  if (limited) {
    CLV__TRY(cut_for_limits(c, slots, &l, error));
    CLV__TRY(list_nodes(c, slots, &l, error));
  }
  return slots->count == whole ? CLV_OK : clv__slots_order(c, slots, l.offsets, l.nodes, error);
}
