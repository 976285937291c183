/* See views.h. Two walks over the nodes: from the first to the last, to find the views of graph inputs, and back, to place each
 * of them after its readers have their final devices. */
#include "place/views.h"

#include <string.h>

#include "place/node.h"

typedef struct viewing {
  const clv__problem *problem;
  const clv__view_options *options;
  clv__placing *placing;
  uint32_t *positions; /* by node: its position in the list; for a view of a graph input, that of its first reader */
  uint8_t *is_free;    /* by node: a view of a graph input, or of such a view; this file places it */
  uint8_t *may_lead;   /* by node: a view that needs only graph inputs and other such views, so it may be at the front */
  uint8_t *leads;      /* by node: a view at the front of the list, because it is in host memory and its first reader is not, or
                          because another view at the front reads it */
  clv__views *views;
} viewing;

static uint32_t node_at(const viewing *v, uint32_t position) {
  return v->options->order == NULL ? position : v->options->order[position];
}

/* Finds the views of graph inputs, and of such views. */
static void find_free(viewing *v) {
  const clv__problem *problem = v->problem;
  for (uint32_t n = 0; n < problem->node_count; ++n) {
    bool is_claimed = v->placing->groups != NULL && v->placing->groups[n] != CLV__NONE;
    if (!clv__node_is_view(problem, n) || problem->pins[n] != CLV__NONE || is_claimed) continue;
    uint32_t source = clv__node_source(problem, n);
    v->is_free[n] = source == CLV__NONE || v->is_free[source];
    v->may_lead[n] = v->is_free[n];
    for (uint32_t r = problem->read_offsets[n]; r < problem->read_offsets[n + 1]; ++r) {
      uint32_t producer = problem->producers[problem->reads[r]];
      if (producer != CLV__NONE && !v->may_lead[producer]) v->may_lead[n] = false;
    }
  }
}

/* The readers of a view, which have their final devices. */
typedef struct reading {
  uint32_t first, position; /* the first reader and its position; CLV__NONE if there is none */
  uint32_t host;            /* the first reader in host memory; CLV__NONE if there is none */
  bool leads;               /* a reader is a view at the front of the list */
  bool in_host;             /* the value is needed in host memory, or in more than one memory space */
} reading;

static reading find_readers(const viewing *v, uint32_t view) {
  const clv__problem *problem = v->problem;
  uint32_t value = problem->writes[problem->write_offsets[view]];
  uint32_t spaces = problem->is_output[value] != 0 ? 1u : 0u;
  reading is = {.first = CLV__NONE, .position = CLV__NONE, .host = CLV__NONE};
  for (uint32_t i = problem->reader_offsets[value]; i < problem->reader_offsets[value + 1]; ++i) {
    uint32_t reader = problem->readers[i], position = v->positions[reader];
    if (is.first == CLV__NONE || position < is.position) is.first = reader, is.position = position;
    if (v->leads[reader]) is.leads = true;
    uint32_t space = problem->spaces[v->placing->devices[reader]];
    spaces |= 1u << space;
    if (space == 0 && (is.host == CLV__NONE || position < v->positions[is.host])) is.host = reader;
  }
  is.in_host = (spaces & 1u) != 0 || (spaces & (spaces - 1)) != 0;
  return is;
}

/* Returns the device for a view: one in host memory if its value is needed there, otherwise that of its readers, if possible. */
static uint32_t choose(const viewing *v, uint32_t view, const reading *readers) {
  const clv__problem *problem = v->problem;
  const uint32_t *devices = v->placing->devices;
  uint32_t able = problem->supports[view] & ~v->options->closed, host = 0;
  for (uint32_t d = 0; d < problem->device_count; ++d) host |= problem->spaces[d] == 0 ? able & 1u << d : 0;
  bool may_join = readers->first != CLV__NONE && (able >> devices[readers->first] & 1u) != 0;
  if (may_join && (!readers->in_host || host == 0)) return devices[readers->first];
  if (host == 0) return devices[view];
  if (readers->host != CLV__NONE && (host >> devices[readers->host] & 1u) != 0) return devices[readers->host];
  return (host >> devices[view] & 1u) != 0 ? devices[view] : (uint32_t)__builtin_ctz(host);
}

static void place_free(viewing *v) {
  const clv__problem *problem = v->problem;
  for (uint32_t n = problem->node_count; n-- > 0;) {
    if (!v->is_free[n]) continue;
    reading readers = find_readers(v, n);
    uint32_t device = choose(v, n, &readers);
    if (device != v->placing->devices[n]) v->placing->causes[n] = v->options->joined;
    v->placing->devices[n] = device;
    v->positions[n] = readers.first == CLV__NONE ? problem->node_count : readers.position;
    bool is_apart = readers.first != CLV__NONE && v->placing->devices[readers.first] != device;
    v->leads[n] = v->may_lead[n] && ((is_apart && problem->spaces[device] == 0) || readers.leads);
    v->views->stays[n] = v->leads[n] || !is_apart;
    if (v->leads[n]) v->positions[n] = 0;
  }
}

/* Sorts the list by position: first the views at the front, then all other nodes in their old order, with each other view of a
 * graph input directly before its first reader. */
static void sort(const viewing *v, uint32_t *starts) {
  uint32_t count = v->problem->node_count, lead = 0;
  for (uint32_t n = 0; n < count; ++n) {
    if (v->leads[n])
      ++lead;
    else
      ++starts[v->positions[n] + 1];
  }
  starts[0] = lead;
  for (uint32_t i = 0; i <= count; ++i) starts[i + 1] += starts[i];
  lead = 0;
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t n = node_at(v, i);
    if (v->is_free[n]) v->views->order[v->leads[n] ? lead++ : starts[v->positions[n]]++] = n;
  }
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t n = node_at(v, i);
    if (!v->is_free[n]) v->views->order[starts[i]] = n;
  }
}

clv_status clv__place_views(const clv__problem *problem, const clv__view_options *options, clv__arena *arena,
                            clv__placing *placing, clv__views *views, clv_error *error) {
  size_t count = problem->node_count;
  uint32_t *starts = clv__arena_allocate_zero(arena, count + 2, sizeof *starts);
  views->order = clv__arena_allocate(arena, count * sizeof *views->order);
  views->stays = clv__arena_allocate_zero(arena, count, sizeof *views->stays);
  viewing v = {.problem = problem, .options = options, .placing = placing, .views = views};
  v.positions = clv__arena_allocate(arena, count * sizeof *v.positions);
  v.is_free = clv__arena_allocate_zero(arena, count, sizeof *v.is_free);
  v.may_lead = clv__arena_allocate_zero(arena, count, sizeof *v.may_lead);
  v.leads = clv__arena_allocate_zero(arena, count, sizeof *v.leads);
  if (starts == NULL || views->order == NULL || views->stays == NULL || v.positions == NULL || v.is_free == NULL ||
      v.may_lead == NULL || v.leads == NULL) {
    return clv__error_memory(error, count * sizeof *v.positions);
  }
  for (uint32_t i = 0; i < count; ++i) v.positions[node_at(&v, i)] = i;
  find_free(&v);
  place_free(&v);
  sort(&v, starts);
  return CLV_OK;
}
