/* The best plan under memory limits: see problem_brute.h. Tries every placement and every choice of streamed weights, the
 * cheapest first. For each, it finds the best sequence of partitions by dynamic programming over the sets of completed nodes. It
 * skips only what cannot be better than the best plan so far, or cannot fit. Sets of nodes and of weights are bit masks. */
#include <stdlib.h>
#include <string.h>

#include "problem_brute.h"

enum { MOST_NODES = 9, MOST_SETS = 1 << MOST_NODES, MOST_VALUES = 32, MOST_WEIGHTS = 18, MOST_DEVICES = 2, MOST_SPACES = 3 };

/* One way to complete a set of nodes: its time, and the bytes in memory at the fullest moment so far. A set keeps several
 * labels if none of them is better in every respect. */
typedef struct label {
  uint64_t time_ns;
  uint64_t inner[MOST_DEVICES]; /* by device: the most bytes of values inside a partition */
  uint64_t alive[MOST_SPACES];  /* by space: the most bytes of values between partitions and of streamed weights */
} label;

typedef struct label_list {
  label *items;
  uint32_t count, capacity;
} label_list;

typedef struct budgets {
  const clv__problem *problem;
  /* The following fields depend only on the problem. */
  uint32_t all; /* the set of all nodes */
  uint32_t readers[MOST_VALUES];
  uint32_t views;
  uint32_t before[MOST_SETS];               /* by set: the nodes outside that it reads from */
  uint32_t weights[MOST_SETS];              /* by set: the weights that it reads */
  uint64_t inner[MOST_SETS];                /* by set: the most bytes of values that are read only inside the set */
  uint64_t set_ns[MOST_SETS][MOST_DEVICES]; /* by set and device: the time as one partition, without copies */
  /* The following fields depend on the placement. */
  uint32_t devices[MOST_NODES];
  uint32_t on[MOST_DEVICES], in_space[MOST_SPACES]; /* by device, by space: the nodes there */
  uint64_t rest_ns[MOST_SETS]; /* by set of completed nodes: rest_of(), or UNKNOWN if it is not computed yet */
  /* The following fields depend on the choice of streamed weights. */
  uint32_t streamed[MOST_DEVICES], read[MOST_DEVICES]; /* by device: the streamed weights; all weights that its nodes read */
  uint64_t resident[MOST_SPACES];
  label_list labels[MOST_SETS];
  uint64_t least;
} budgets;

#define UNKNOWN UINT64_MAX

static bool in(uint32_t set, uint32_t member) {
  return (set >> member & 1u) != 0;
}

static uint64_t rounded(uint64_t bytes) {
  return bytes == 0 ? 64 : (bytes + 63) / 64 * 64;
}

static uint64_t larger(uint64_t a, uint64_t b) {
  return a > b ? a : b;
}

/* ---- Sets of nodes, wherever they run ---- */

/* Whether the value, which a node of `set` makes, is an output of the graph or is read by a node outside `set`. */
static bool leaves(const budgets *b, uint32_t value, uint32_t set) {
  return b->problem->is_output[value] || (b->readers[value] & ~set) != 0;
}

/* The most bytes that values inside a partition of `set` need at one time. A value needs memory from the node that makes it to
 * its last reader. */
static uint64_t inner_bytes(const budgets *b, uint32_t set) {
  const clv__problem *p = b->problem;
  uint64_t most = 0;
  for (uint32_t at = 0; at < p->node_count; ++at) {
    uint64_t alive = 0;
    if (!in(set, at)) continue;
    for (uint32_t v = 0; v < p->value_count; ++v) {
      uint32_t made = p->producers[v], last = made;
      if (made == CLV__NONE || !in(set, made) || leaves(b, v, set)) continue;
      if (b->readers[v] != 0) last = 31 - (uint32_t)__builtin_clz(b->readers[v]);
      if (made <= at && at <= last) alive += rounded(p->value_bytes[v]);
    }
    most = larger(most, alive);
  }
  return most;
}

static uint64_t partition_ns(const budgets *b, uint32_t set, uint32_t device) {
  const clv__problem *p = b->problem;
  uint64_t time_ns = (set & ~b->views) == 0 ? 0 : p->launch_ns[device];
  for (uint32_t n = 0; n < p->node_count; ++n) {
    if (!in(set, n)) continue;
    if (!in(clv__node_devices(p, n), device)) return UNKNOWN;
    time_ns += clv__node_ns(p, n, device);
  }
  for (uint32_t n = 0; n < p->node_count; ++n) {
    for (uint32_t r = p->read_offsets[n]; in(set, n) && r < p->read_offsets[n + 1]; ++r) {
      uint32_t made = p->producers[p->reads[r]];
      if (made != CLV__NONE && in(set, made)) time_ns -= clv__saving_ns(p, r, device);
    }
  }
  return time_ns;
}

static void describe_sets(budgets *b) {
  const clv__problem *p = b->problem;
  b->all = (1u << p->node_count) - 1;
  for (uint32_t n = 0; n < p->node_count; ++n) {
    b->views |= ((p->flags[n] & CLV__NODE_VIEW) != 0 ? 1u : 0u) << n;
    for (uint32_t r = p->read_offsets[n]; r < p->read_offsets[n + 1]; ++r) b->readers[p->reads[r]] |= 1u << n;
  }
  for (uint32_t set = 1; set <= b->all; ++set) {
    for (uint32_t n = 0; n < p->node_count; ++n) {
      for (uint32_t r = p->read_offsets[n]; in(set, n) && r < p->read_offsets[n + 1]; ++r) {
        uint32_t made = p->producers[p->reads[r]];
        if (made != CLV__NONE) b->before[set] |= 1u << made & ~set;
      }
      for (uint32_t k = p->weight_offsets[n]; in(set, n) && k < p->weight_offsets[n + 1]; ++k)
        b->weights[set] |= 1u << p->weights[k];
    }
    b->inner[set] = inner_bytes(b, set);
    for (uint32_t d = 0; d < p->device_count; ++d) b->set_ns[set][d] = partition_ns(b, set, d);
  }
}

/* ---- One placement: where values are once the nodes of `done` are complete ---- */

static uint32_t home_of(const budgets *b, uint32_t value) {
  uint32_t made = b->problem->producers[value];
  return made == CLV__NONE ? 0 : b->problem->spaces[b->devices[made]];
}

/* Whether the value, which exists, is in the memory space: it is made there, or was copied there for a reader. Copies between the
 * memories of two devices leave it in host memory too. */
static bool is_there(const budgets *b, uint32_t value, uint32_t space, uint32_t done) {
  uint32_t home = home_of(b, value), readers = b->readers[value] & done;
  if (space == home) return true;
  return (readers & (space == 0 ? ~b->in_space[home] : b->in_space[space])) != 0;
}

/* Whether the memory space holds the value between two partitions, after `done` is complete: the value is there, and a reader
 * or a copy needs it later. */
static bool is_held(const budgets *b, uint32_t value, uint32_t space, uint32_t done) {
  uint32_t made = b->problem->producers[value], later = b->readers[value] & ~done;
  if ((made != CLV__NONE && !in(done, made)) || !is_there(b, value, space, done)) return false;
  if ((later & b->in_space[space]) != 0) return true;
  return space == home_of(b, value) && !is_there(b, value, 0, done) && (later != 0 || b->problem->is_output[value]);
}

/* The time to copy the value to the memory space, if it is not there. */
static uint64_t bring_ns(const budgets *b, uint32_t value, uint32_t space, uint32_t done) {
  if (is_there(b, value, space, done)) return 0;
  uint64_t out = is_there(b, value, 0, done) ? 0 : clv__out_ns(b->problem, value, home_of(b, value));
  return out + (space == 0 ? 0 : clv__in_ns(b->problem, value, space));
}

/* The time of the copies, without weights, into a partition with the nodes of `set`. */
static uint64_t copies_ns(const budgets *b, uint32_t set, uint32_t space, uint32_t done) {
  const clv__problem *p = b->problem;
  uint64_t time_ns = 0;
  for (uint32_t v = 0; v < p->value_count; ++v) {
    if ((b->readers[v] & set) != 0 && (p->producers[v] == CLV__NONE || !in(set, p->producers[v])))
      time_ns += bring_ns(b, v, space, done);
  }
  return time_ns;
}

/* The least time, without streamed weights, of all nodes that are not in `done` and of the copies that follow `done`. */
static uint64_t rest_of(budgets *b, uint32_t done) {
  const clv__problem *p = b->problem;
  uint64_t time_ns = 0;
  if (b->rest_ns[done] != UNKNOWN) return b->rest_ns[done];
  for (uint32_t n = 0; n < p->node_count; ++n) {
    if (in(done, n)) continue;
    time_ns += clv__node_ns(p, n, b->devices[n]);
  }
  for (uint32_t n = 0; n < p->node_count; ++n) {
    for (uint32_t r = p->read_offsets[n]; !in(done, n) && r < p->read_offsets[n + 1]; ++r) {
      uint32_t made = p->producers[p->reads[r]];
      if (made == CLV__NONE || in(done, made) || b->devices[made] != b->devices[n]) continue;
      time_ns -= clv__saving_ns(p, r, b->devices[n]);
    }
  }
  for (uint32_t d = 0; d < p->device_count; ++d) {
    if ((b->on[d] & ~done & ~b->views) != 0) time_ns += p->launch_ns[d];
  }
  for (uint32_t v = 0; v < p->value_count; ++v) {
    uint32_t home = home_of(b, v), later = b->readers[v] & ~done;
    bool is_out = is_there(b, v, 0, done);
    for (uint32_t s = 1; s < p->space_count; ++s) {
      if (s != home && !is_there(b, v, s, done) && (later & b->in_space[s]) != 0) time_ns += clv__in_ns(p, v, s);
    }
    if (!is_out && ((later & ~b->in_space[home]) != 0 || p->is_output[v])) time_ns += clv__out_ns(p, v, home);
  }
  return b->rest_ns[done] = time_ns;
}

/* ---- One choice of streamed weights ---- */

/* The bytes that are alive in the device's memory while a partition of `set` runs after `done`, not counting values that are
 * read only inside the partition. */
static uint64_t alive_bytes(const budgets *b, uint32_t done, uint32_t set, uint32_t device) {
  const clv__problem *p = b->problem;
  uint32_t space = p->spaces[device], used = b->weights[set] & b->streamed[device];
  uint64_t bytes = 0;
  for (uint32_t v = 0; v < p->value_count; ++v) {
    bool is_made = p->producers[v] != CLV__NONE && in(set, p->producers[v]);
    bool is_used = is_made ? leaves(b, v, set) : (b->readers[v] & set) != 0;
    if (is_used || (is_held(b, v, space, done) && is_held(b, v, space, done | set))) bytes += rounded(p->value_bytes[v]);
  }
  /* A streamed weight has one place in each memory, from the first to the last partition that reads it there. */
  for (uint32_t w = 0; w < p->weight_count; ++w) {
    bool was_used = false, is_needed = false;
    for (uint32_t d = 0; d < p->device_count; ++d) {
      if (p->spaces[d] != space || !in(b->streamed[d], w)) continue;
      was_used = was_used || in(b->weights[b->on[d] & done], w);
      is_needed = is_needed || in(b->weights[b->on[d] & ~(done | set)], w);
    }
    if (in(used, w) || (was_used && is_needed)) bytes += rounded(p->weight_bytes[w]);
  }
  return bytes;
}

static uint64_t stream_ns(const budgets *b, uint32_t set, uint32_t device) {
  const clv__problem *p = b->problem;
  uint64_t time_ns = 0;
  for (uint32_t left = b->weights[set] & b->streamed[device]; left != 0; left &= left - 1)
    time_ns += p->weight_in_ns[(size_t)__builtin_ctz(left) * p->space_count + p->spaces[device]];
  return time_ns;
}

/* The bytes that the label `l` needs in the memory of the device, including those of other devices that share this memory. */
static uint64_t need_of(const budgets *b, const label *l, uint32_t device) {
  const clv__problem *p = b->problem;
  uint32_t space = p->spaces[device];
  uint64_t bytes = b->resident[space] + (space == 0 ? 0 : l->alive[space]);
  for (uint32_t d = 0; d < p->device_count; ++d)
    bytes += p->spaces[d] == space && p->limits[d].memory_bytes > 0 ? l->inner[d] : 0;
  return bytes;
}

static bool fits(const budgets *b, const label *l) {
  for (uint32_t d = 0; d < b->problem->device_count; ++d) {
    uint64_t limit = b->problem->limits[d].memory_bytes;
    if (limit > 0 && need_of(b, l, d) > limit) return false;
  }
  return true;
}

static label run_partition(const budgets *b, const label *from, uint32_t done, uint32_t set, uint32_t device) {
  uint32_t space = b->problem->spaces[device];
  label to = *from;
  to.time_ns += b->set_ns[set][device] + copies_ns(b, set, space, done) + stream_ns(b, set, device);
  to.inner[device] = larger(to.inner[device], b->inner[set]);
  if (space != 0) to.alive[space] = larger(to.alive[space], alive_bytes(b, done, set, device));
  return to;
}

/* ---- The best sequence of partitions ---- */

static bool dominates(const label *a, const label *b) {
  bool is_less = a->time_ns <= b->time_ns;
  for (uint32_t d = 0; d < MOST_DEVICES; ++d) is_less = is_less && a->inner[d] <= b->inner[d];
  for (uint32_t s = 0; s < MOST_SPACES; ++s) is_less = is_less && a->alive[s] <= b->alive[s];
  return is_less;
}

static void add_label(label_list *list, const label *fresh) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < list->count; ++i) {
    if (dominates(&list->items[i], fresh)) return;
  }
  for (uint32_t i = 0; i < list->count; ++i) {
    if (!dominates(fresh, &list->items[i])) list->items[kept++] = list->items[i];
  }
  if (kept == list->capacity) {
    list->capacity = 2 * list->capacity + 4;
    list->items = realloc(list->items, list->capacity * sizeof *list->items);
    if (list->items == NULL) abort();
  }
  list->items[kept++] = *fresh;
  list->count = kept;
}

/* Extends every way to complete the nodes of `done` by a partition of the nodes of `set`, which runs on `device` after them. */
static void follow(budgets *b, uint32_t done, uint32_t set, uint32_t device) {
  label zero = {0}, step = run_partition(b, &zero, done, set, device);
  uint64_t rest = rest_of(b, done | set);
  for (uint32_t d = 0; d < b->problem->device_count; ++d) rest += stream_ns(b, b->on[d] & ~(done | set), d);
  for (uint32_t i = 0; i < b->labels[done].count; ++i) {
    label next = b->labels[done].items[i];
    next.time_ns += step.time_ns;
    if (next.time_ns + rest >= b->least) continue;
    for (uint32_t d = 0; d < MOST_DEVICES; ++d) next.inner[d] = larger(next.inner[d], step.inner[d]);
    for (uint32_t s = 0; s < MOST_SPACES; ++s) next.alive[s] = larger(next.alive[s], step.alive[s]);
    if (!fits(b, &next)) continue;
    if ((done | set) == b->all)
      b->least = next.time_ns + rest;
    else
      add_label(&b->labels[done | set], &next);
  }
}

static void try_sequences(budgets *b) {
  label start = {0};
  for (uint32_t done = 0; done < b->all; ++done) b->labels[done].count = 0;
  if (!fits(b, &start)) return;
  add_label(&b->labels[0], &start);
  for (uint32_t done = 0; done < b->all; ++done) {
    if (b->labels[done].count == 0) continue;
    for (uint32_t d = 0; d < b->problem->device_count; ++d) {
      uint32_t left = b->on[d] & ~done;
      for (uint32_t set = left; set != 0; set = (set - 1) & left) {
        if ((b->before[set] & ~done) == 0) follow(b, done, set, d);
      }
    }
  }
}

/* ---- All choices ---- */

/* Whether a sequence of partitions may fit, by a lower bound of the memory: each node needs at least what it reads, writes and
 * streams. */
static bool may_fit(const budgets *b) {
  const clv__problem *p = b->problem;
  for (uint32_t n = 0; n < p->node_count; ++n) {
    uint32_t device = b->devices[n], space = p->spaces[device];
    uint64_t bytes = b->resident[space];
    for (uint32_t v = 0; space != 0 && v < p->value_count; ++v)
      bytes += p->producers[v] == n || in(b->readers[v], n) ? rounded(p->value_bytes[v]) : 0;
    for (uint32_t left = b->weights[1u << n] & b->streamed[device]; left != 0; left &= left - 1)
      bytes += rounded(p->weight_bytes[__builtin_ctz(left)]);
    if (p->limits[device].memory_bytes > 0 && bytes > p->limits[device].memory_bytes) return false;
  }
  return true;
}

/* Decides for one weight after the other, from weight `weight` of device `device` on, whether it is resident or streamed, and
 * tries all combinations. `time_ns` is the time of one copy of each weight that is streamed so far. */
static void try_streams(budgets *b, uint32_t device, uint32_t weight, uint64_t time_ns) {
  const clv__problem *p = b->problem;
  if (rest_of(b, 0) + time_ns >= b->least || !may_fit(b)) return;
  while (device < p->device_count && !in(b->read[device], weight)) {
    if (++weight < p->weight_count) continue;
    weight = 0;
    ++device;
  }
  if (device == p->device_count) {
    try_sequences(b);
    return;
  }
  uint32_t space = p->spaces[device];
  uint64_t bytes = p->limits[device].memory_bytes > 0 ? rounded(p->weight_bytes[weight]) : 0;
  b->read[device] &= ~(1u << weight);
  b->resident[space] += bytes;
  try_streams(b, device, weight, time_ns);
  b->resident[space] -= bytes;
  if (bytes > 0 && space != 0 && clv__can_stream(p, weight, device)) {
    b->streamed[device] |= 1u << weight;
    try_streams(b, device, weight, time_ns + p->weight_in_ns[(size_t)weight * p->space_count + space]);
    b->streamed[device] &= ~(1u << weight);
  }
  b->read[device] |= 1u << weight;
}

static void place(budgets *b, uint32_t second) {
  const clv__problem *p = b->problem;
  memset(b->on, 0, sizeof b->on);
  memset(b->in_space, 0, sizeof b->in_space);
  memset(b->rest_ns, 0xff, sizeof b->rest_ns); /* sets all entries to UNKNOWN */
  for (uint32_t n = 0; n < p->node_count; ++n) {
    b->devices[n] = in(second, n);
    b->on[b->devices[n]] |= 1u << n;
    b->in_space[p->spaces[b->devices[n]]] |= 1u << n;
  }
  for (uint32_t d = 0; d < p->device_count; ++d) b->read[d] = b->weights[b->on[d]];
}

typedef struct choice {
  uint64_t least_ns;
  uint32_t second; /* the nodes on the second device */
} choice;

static int compare_choices(const void *a, const void *b) {
  const choice *x = a, *y = b;
  return x->least_ns != y->least_ns ? (x->least_ns < y->least_ns ? -1 : 1) : (x->second > y->second) - (x->second < y->second);
}

static void try_placements(budgets *b) {
  choice choices[MOST_SETS];
  uint32_t count = 0;
  for (uint32_t second = 0; second <= b->all; ++second) {
    if (b->set_ns[b->all & ~second][0] == UNKNOWN || b->set_ns[second][1] == UNKNOWN) continue;
    place(b, second);
    choices[count++] = (choice){rest_of(b, 0), second};
  }
  qsort(choices, count, sizeof *choices, compare_choices);
  for (uint32_t i = 0; i < count && choices[i].least_ns < b->least; ++i) {
    place(b, choices[i].second);
    try_streams(b, 0, 0, 0);
  }
}

static budgets *budgets_create(const clv__problem *problem) {
  bool is_small = problem->node_count <= MOST_NODES && problem->value_count <= MOST_VALUES &&
                  problem->weight_count <= MOST_WEIGHTS && problem->device_count == MOST_DEVICES &&
                  problem->space_count <= MOST_SPACES;
  budgets *b = calloc(1, sizeof *b);
  if (b == NULL || !is_small) abort();
  b->problem = problem;
  b->least = UINT64_MAX;
  describe_sets(b);
  return b;
}

static void budgets_destroy(budgets *b) {
  for (uint32_t set = 0; set < MOST_SETS; ++set) free(b->labels[set].items);
  free(b);
}

uint64_t test_brute_budgets(const clv__problem *problem) {
  budgets *b = budgets_create(problem);
  try_placements(b);
  uint64_t least = b->least;
  budgets_destroy(b);
  return least;
}

uint64_t test_run_budgets(const clv__problem *problem, const clv__cut *cut, const uint16_t *streamed, uint64_t *needs) {
  budgets *b = budgets_create(problem);
  label at = {0};
  uint32_t second = 0, done = 0;
  for (uint32_t n = 0; n < problem->node_count; ++n) second |= (cut->devices[cut->partition_of[n]] == 1 ? 1u : 0u) << n;
  place(b, second);
  for (uint32_t d = 0; d < problem->device_count; ++d) {
    for (uint32_t w = 0; w < problem->weight_count; ++w) {
      bool is_streamed = problem->spaces[d] != 0 && streamed != NULL && in(streamed[w], d);
      b->streamed[d] |= (is_streamed ? 1u : 0u) << w;
      if (!is_streamed && in(b->read[d], w) && problem->limits[d].memory_bytes > 0)
        b->resident[problem->spaces[d]] += rounded(problem->weight_bytes[w]);
    }
  }
  for (uint32_t p = 0; p < cut->count; ++p) {
    uint32_t set = 0;
    for (uint32_t i = cut->offsets[p]; i < cut->offsets[p + 1]; ++i) set |= 1u << cut->nodes[i];
    at = run_partition(b, &at, done, set, cut->devices[p]);
    done |= set;
  }
  /* All nodes are done, so rest_of() is the time of the copies of outputs to the host. */
  uint64_t time_ns = at.time_ns + rest_of(b, done);
  for (uint32_t d = 0; d < problem->device_count; ++d) needs[d] = need_of(b, &at, d);
  budgets_destroy(b);
  return time_ns;
}
