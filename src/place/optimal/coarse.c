/* A problem whose nodes are fragments of another problem: nodes that several cuts agree to keep together. Every key is the
 * partition number of an acyclic cut. So each edge leads from a fragment to itself, or to one in which no key is smaller. Sorting
 * fragments by their keys therefore gives a topological order. */
#include <stdlib.h>
#include <string.h>

#include "place/optimal/optimal.h"

enum { MOST_KEYS = 6 };

typedef struct item {
  uint32_t keys[MOST_KEYS];
  uint32_t node;
} item;

static int compare_items(const void *a, const void *b) {
  const item *x = a, *y = b;
  for (uint32_t k = 0; k < MOST_KEYS; ++k) {
    if (x->keys[k] != y->keys[k]) return x->keys[k] < y->keys[k] ? -1 : 1;
  }
  return x->node < y->node ? -1 : x->node > y->node;
}

typedef struct work {
  const clv__problem *fine;
  clv__coarse *coarse;
  clv__problem *problem; /* coarse->problem */
  clv__arena *arena;
  item *items;
  uint32_t *first;     /* by fragment: into items */
  uint32_t *value_map; /* by fine value: coarse value or CLV__NONE */
  uint32_t *seen;      /* by fine value or weight: the last fragment (+ 1) */
  clv_error *error;
} work;

static void *take(work *w, size_t count, size_t element_bytes) {
  void *pointer = clv__arena_allocate_zero(w->arena, count, element_bytes);
  if (pointer == NULL) (void)clv__error_memory(w->error, count * element_bytes);
  return pointer;
}
#define TAKE(target, count)                         \
  do {                                              \
    (target) = take(w, (count), sizeof *(target));  \
    if ((target) == NULL) return CLV_OUT_OF_MEMORY; \
  } while (0)

static clv_status make_fragments(work *w, const uint32_t *const *keys, uint32_t key_count, uint32_t most) {
  uint32_t n = w->fine->node_count, count = 0, size = 0;
  TAKE(w->items, n);
  TAKE(w->first, (size_t)n + 1);
  TAKE(w->coarse->fragment_of, n);
  for (uint32_t i = 0; i < n; ++i) {
    w->items[i].node = i;
    for (uint32_t k = 0; k < key_count && k < MOST_KEYS; ++k) w->items[i].keys[k] = keys[k][i];
  }
  qsort(w->items, n, sizeof *w->items, compare_items);
  for (uint32_t i = 0; i < n; ++i) {
    bool same = i > 0 && memcmp(w->items[i].keys, w->items[i - 1].keys, sizeof w->items[i].keys) == 0;
    if (!same || size == most) {
      w->first[count++] = i;
      size = 0;
    }
    ++size;
    w->coarse->fragment_of[w->items[i].node] = count - 1;
  }
  w->first[count] = n;
  w->problem->node_count = count;
  return CLV_OK;
}

/* ---- Values that cross a fragment's or the model's boundary ---- */

static bool leaves(const work *w, uint32_t value) {
  const clv__problem *fine = w->fine;
  uint32_t producer = fine->producers[value];
  if (producer == CLV__NONE || fine->is_output[value]) return true;
  for (uint32_t i = fine->reader_offsets[value]; i < fine->reader_offsets[value + 1]; ++i) {
    if (w->coarse->fragment_of[fine->readers[i]] != w->coarse->fragment_of[producer]) return true;
  }
  return false;
}

static clv_status make_values(work *w) {
  const clv__problem *fine = w->fine;
  clv__problem *problem = w->problem;
  uint32_t count = 0, spaces = fine->space_count;
  TAKE(w->value_map, fine->value_count);
  for (uint32_t v = 0; v < fine->value_count; ++v) w->value_map[v] = leaves(w, v) ? count++ : CLV__NONE;
  uint32_t *producers, *homes;
  uint8_t *is_output;
  uint64_t *bytes, *in_ns, *out_ns;
  TAKE(producers, count);
  TAKE(homes, count);
  TAKE(is_output, count);
  TAKE(bytes, count);
  TAKE(in_ns, (size_t)count * spaces);
  TAKE(out_ns, (size_t)count * spaces);
  for (uint32_t v = 0; v < fine->value_count; ++v) {
    uint32_t c = w->value_map[v];
    if (c == CLV__NONE) continue;
    producers[c] = fine->producers[v] == CLV__NONE ? CLV__NONE : w->coarse->fragment_of[fine->producers[v]];
    homes[c] = fine->value_homes == NULL ? CLV__NONE : fine->value_homes[v];
    is_output[c] = fine->is_output[v];
    bytes[c] = fine->value_bytes[v];
    memcpy(&in_ns[(size_t)c * spaces], &fine->in_ns[(size_t)v * spaces], spaces * sizeof *in_ns);
    memcpy(&out_ns[(size_t)c * spaces], &fine->out_ns[(size_t)v * spaces], spaces * sizeof *out_ns);
  }
  problem->value_count = count;
  problem->producers = producers;
  problem->value_homes = homes;
  problem->is_output = is_output;
  problem->value_bytes = bytes;
  problem->in_ns = in_ns;
  problem->out_ns = out_ns;
  return CLV_OK;
}

/* ---- Nodes ---- */

/* Collects the reads of the fragments, and the savings if a reader joins the fragment it reads from. Savings within a fragment
 * reduce its own time. */
static clv_status make_reads(work *w, uint64_t *node_ns) {
  const clv__problem *fine = w->fine;
  uint32_t devices = fine->device_count, count = 0, *offsets, *reads, *slot;
  uint64_t *savings = NULL;
  TAKE(offsets, (size_t)w->problem->node_count + 1);
  TAKE(reads, fine->read_offsets[fine->node_count]);
  TAKE(slot, fine->value_count);
  if (fine->saving_ns != NULL) TAKE(savings, (size_t)fine->read_offsets[fine->node_count] * devices);
  for (uint32_t f = 0; f < w->problem->node_count; ++f) {
    for (uint32_t i = w->first[f]; i < w->first[f + 1]; ++i) {
      uint32_t node = w->items[i].node;
      for (uint32_t r = fine->read_offsets[node]; r < fine->read_offsets[node + 1]; ++r) {
        uint32_t value = fine->reads[r], producer = fine->producers[value];
        bool inside = producer != CLV__NONE && w->coarse->fragment_of[producer] == f;
        if (!inside && w->seen[value] != f + 1) {
          w->seen[value] = f + 1;
          slot[value] = count;
          reads[count++] = w->value_map[value];
        }
        for (uint32_t d = 0; savings != NULL && d < devices; ++d) {
          uint64_t saving = clv__saving_ns(fine, r, d), *own = &node_ns[(size_t)f * devices + d];
          if (!inside)
            savings[(size_t)slot[value] * devices + d] += saving;
          else if (*own != CLV__NO_TIME)
            *own -= saving < *own ? saving : *own;
        }
      }
    }
    offsets[f + 1] = count;
  }
  w->problem->read_offsets = offsets;
  w->problem->reads = reads;
  w->problem->saving_ns = savings;
  return CLV_OK;
}

static clv_status make_readers(work *w) {
  clv__problem *problem = w->problem;
  uint32_t *offsets, *readers, *writes, *write_offsets, written = 0;
  TAKE(offsets, (size_t)problem->value_count + 2);
  TAKE(readers, problem->read_offsets[problem->node_count]);
  for (uint32_t r = 0; r < problem->read_offsets[problem->node_count]; ++r) ++offsets[problem->reads[r] + 2];
  for (uint32_t v = 0; v < problem->value_count; ++v) offsets[v + 2] += offsets[v + 1];
  for (uint32_t f = 0; f < problem->node_count; ++f) {
    for (uint32_t r = problem->read_offsets[f]; r < problem->read_offsets[f + 1]; ++r) {
      readers[offsets[problem->reads[r] + 1]++] = f;
    }
  }
  TAKE(writes, problem->value_count);
  TAKE(write_offsets, (size_t)problem->node_count + 1);
  for (uint32_t f = 0; f < problem->node_count; ++f) {
    for (uint32_t i = w->first[f]; i < w->first[f + 1]; ++i) {
      uint32_t node = w->items[i].node;
      for (uint32_t k = w->fine->write_offsets[node]; k < w->fine->write_offsets[node + 1]; ++k) {
        uint32_t value = w->value_map[w->fine->writes[k]];
        if (value != CLV__NONE) writes[written++] = value;
      }
    }
    write_offsets[f + 1] = written;
  }
  problem->reader_offsets = offsets;
  problem->readers = readers;
  problem->writes = writes;
  problem->write_offsets = write_offsets;
  return CLV_OK;
}

static clv_status make_weights(work *w) {
  const clv__problem *fine = w->fine;
  uint32_t *offsets, *weights, *seen, count = 0;
  TAKE(offsets, (size_t)w->problem->node_count + 1);
  TAKE(weights, fine->weight_offsets[fine->node_count]);
  TAKE(seen, fine->weight_count);
  for (uint32_t f = 0; f < w->problem->node_count; ++f) {
    for (uint32_t i = w->first[f]; i < w->first[f + 1]; ++i) {
      uint32_t node = w->items[i].node;
      for (uint32_t k = fine->weight_offsets[node]; k < fine->weight_offsets[node + 1]; ++k) {
        if (seen[fine->weights[k]] == f + 1) continue;
        seen[fine->weights[k]] = f + 1;
        weights[count++] = fine->weights[k];
      }
    }
    offsets[f + 1] = count;
  }
  w->problem->weight_offsets = offsets;
  w->problem->weights = weights;
  w->problem->weight_operands = NULL;
  return CLV_OK;
}

static clv_status make_nodes(work *w) {
  const clv__problem *fine = w->fine;
  clv__problem *problem = w->problem;
  uint32_t count = problem->node_count, devices = fine->device_count, *pins;
  uint16_t *supports, *prefers;
  uint8_t *flags;
  uint64_t *node_ns;
  TAKE(pins, count);
  TAKE(supports, count);
  TAKE(prefers, count);
  TAKE(flags, count);
  TAKE(node_ns, (size_t)count * devices);
  for (uint32_t f = 0; f < count; ++f) {
    pins[f] = CLV__NONE;
    supports[f] = prefers[f] = UINT16_MAX;
    flags[f] = CLV__NODE_VIEW;
    for (uint32_t i = w->first[f]; i < w->first[f + 1]; ++i) {
      uint32_t node = w->items[i].node;
      if (fine->pins[node] != CLV__NONE) pins[f] = fine->pins[node];
      supports[f] &= fine->supports[node];
      prefers[f] &= fine->prefers[node];
      flags[f] &= fine->flags[node];
      for (uint32_t d = 0; d < devices; ++d) {
        uint64_t *own = &node_ns[(size_t)f * devices + d], time = clv__node_ns(fine, node, d);
        if (*own == CLV__NO_TIME || time == CLV__NO_TIME || __builtin_add_overflow(*own, time, own)) *own = CLV__NO_TIME;
      }
    }
  }
  problem->pins = pins;
  problem->supports = supports;
  problem->prefers = prefers;
  problem->flags = flags;
  problem->node_ns = node_ns;
  CLV__TRY(make_reads(w, node_ns));
  CLV__TRY(make_readers(w));
  return make_weights(w);
}

clv_status clv__coarse_make(const clv__problem *problem, const uint32_t *const *keys, uint32_t key_count, uint32_t most,
                            clv__arena *arena, clv__coarse *coarse, clv_error *error) {
  *coarse = (clv__coarse){.problem = *problem};
  work state = {.fine = problem, .coarse = coarse, .problem = &coarse->problem, .arena = arena, .error = error};
  work *w = &state;
  coarse->problem.node_ids = coarse->problem.value_ids = NULL;
  coarse->problem.node_names = coarse->problem.value_names = NULL;
  TAKE(w->seen, problem->value_count);
  CLV__TRY(make_fragments(w, keys, key_count, most));
  CLV__TRY(make_values(w));
  return make_nodes(w);
}
