/* `ready`: runs everything that is ready on one device, then everything that is ready on the other. For two devices this gives
 * the fewest alternations of any placement: a node runs in the first phase in which all its inputs are computed and whose
 * device can run it. Both devices are tried as the first. A node that both devices can run goes to the device whose turn it is.
 * With more devices, the turn goes to the one that can run the most nodes. */
#include <string.h>

#include "place/node.h"
#include "place/place.h"

/* Returns whether the node is a view that has to wait until its readers are placed: one that is not pinned, that every device
 * supports, and that reads only graph inputs and other such views. (Any other view follows its source.) */
static bool is_free_view(const clv__problem *problem, uint32_t node, const uint8_t *waits) {
  if (!clv__node_is_view(problem, node) || problem->pins[node] != CLV__NONE) return false;
  if (problem->supports[node] != (1u << problem->device_count) - 1) return false;
  for (uint32_t r = problem->read_offsets[node]; r < problem->read_offsets[node + 1]; ++r) {
    uint32_t producer = problem->producers[problem->reads[r]];
    if (producer != CLV__NONE && !waits[producer]) return false;
  }
  return true;
}

/* Returns `at`, the device of a view's source, if the view can follow its source there, otherwise CLV__NONE. `at` may be
 * CLV__NONE. */
static uint32_t device_of_source(const clv__problem *problem, uint32_t node, uint32_t at) {
  bool follows = at != CLV__NONE && problem->pins[node] == CLV__NONE && clv__can_run(problem, node, at);
  return follows ? at : CLV__NONE;
}

/* Places the views that had to wait until their readers were placed: each on the device of the reader whose turn comes first. The
 * walk starts at the end of the list, because a view may read another. */
static void place_waiting(const clv__problem *problem, const uint8_t *waits, uint32_t *turns, clv__placing *placing) {
  for (uint32_t n = problem->node_count; n-- > 0;) {
    if (!waits[n]) continue;
    uint32_t value = problem->writes[problem->write_offsets[n]], best = CLV__NONE;
    for (uint32_t i = problem->reader_offsets[value]; i < problem->reader_offsets[value + 1]; ++i) {
      uint32_t reader = problem->readers[i];
      if (best == CLV__NONE || turns[reader] < turns[best]) best = reader;
    }
    uint32_t host = 0; /* for a value without readers: it is an output, and ends in host memory */
    while (host + 1 < problem->device_count && problem->spaces[host] != 0) ++host;
    placing->devices[n] = best == CLV__NONE ? host : placing->devices[best];
    placing->causes[n] = "view";
    turns[n] = best == CLV__NONE ? 0 : turns[best];
  }
}

/* ---- Two devices ---- */

/* The phases of a placement. Phase 0 runs on device `first`. */
typedef struct phases {
  uint32_t first, lowest, highest;
  uint32_t *turns; /* by node: its phase */
} phases;

/* Assigns to the node the first phase, not before `turn`, whose device can run it. `turn` is the last phase in which an input
 * of the node is computed. */
static inline void take_turn_of(const clv__problem *problem, uint32_t node, uint32_t turn, uint32_t source, phases *p) {
  uint32_t choices = clv__node_choices(problem, node);
  if (source != CLV__NONE) { /* a view gets its source's device if possible */
    uint32_t at = (p->turns[source] + p->first) & 1u;
    if (device_of_source(problem, node, at) != CLV__NONE) choices = 1u << at;
  }
  turn += (choices >> ((turn + p->first) & 1u) & 1u) == 0;
  p->turns[node] = turn;
  p->lowest = turn < p->lowest ? turn : p->lowest;
  p->highest = turn > p->highest ? turn : p->highest;
}

static void place_two(const clv__problem *problem, const uint8_t *waits, uint32_t *turns, uint32_t *other,
                      clv__placing *placing) {
  phases a = {0, CLV__NONE, 0, turns}, b = {1, CLV__NONE, 0, other};
  for (uint32_t n = 0; n < problem->node_count; ++n) {
    if (waits[n]) continue; /* it stays in phase 0, and no node waits for it */
    uint32_t turn_a = 0, turn_b = 0;
    for (uint32_t r = problem->read_offsets[n]; r < problem->read_offsets[n + 1]; ++r) {
      uint32_t producer = problem->producers[problem->reads[r]];
      if (producer == CLV__NONE) continue;
      turn_a = turns[producer] > turn_a ? turns[producer] : turn_a;
      turn_b = other[producer] > turn_b ? other[producer] : turn_b;
    }
    uint32_t source = clv__node_is_view(problem, n) ? clv__node_source(problem, n) : CLV__NONE;
    if (source != CLV__NONE && waits[source]) source = CLV__NONE;
    take_turn_of(problem, n, turn_a, source, &a);
    take_turn_of(problem, n, turn_b, source, &b);
  }
  uint32_t first = b.highest - b.lowest < a.highest - a.lowest;
  if (first == 1) memcpy(turns, other, (size_t)problem->node_count * sizeof *turns);
  for (uint32_t n = 0; n < problem->node_count; ++n) placing->devices[n] = (turns[n] + first) & 1u;
}

/* ---- More than two devices ---- */

typedef struct juggling {
  const clv__problem *problem;
  const uint8_t *waits;
  clv__placing *placing;
  uint32_t *turns, turn;
  uint32_t *pending; /* by node: the number of its reads of values that are not computed yet */
  uint32_t *stack;
  uint32_t *ready[16], ready_counts[16]; /* by device: ready nodes that it can run; other devices may have run some meanwhile */
  uint32_t *run, run_count;              /* the nodes that the last turn ran, in order */
} juggling;

/* Returns the devices, as bits, that may run a ready node in a turn of `device`. (If the turn is a trial, a source that ran in
 * it has no device yet.) */
static uint32_t choices_of(const juggling *j, uint32_t node, uint32_t device) {
  uint32_t choices = clv__node_choices(j->problem, node);
  if (!clv__node_is_view(j->problem, node)) return choices;
  uint32_t source = clv__node_source(j->problem, node);
  if (source == CLV__NONE || j->waits[source]) return choices;
  uint32_t at = j->placing->devices[source] == CLV__NONE ? device : j->placing->devices[source];
  return device_of_source(j->problem, node, at) == CLV__NONE ? choices : 1u << at;
}

static void add_ready(juggling *j, uint32_t node, uint32_t choices) {
  for (; choices != 0; choices &= choices - 1) {
    uint32_t d = (uint32_t)__builtin_ctz(choices);
    j->ready[d][j->ready_counts[d]++] = node;
  }
}

/* Runs a node. A reader that becomes ready goes on the stack if `device` can run it. Otherwise, with `is_real`, it goes into
 * the lists of the devices that can run it. See take_turn(). */
static void finish(juggling *j, uint32_t node, uint32_t device, bool is_real, uint32_t *depth) {
  const clv__problem *problem = j->problem;
  j->run[j->run_count++] = node;
  if (is_real) j->placing->devices[node] = device;
  for (uint32_t w = problem->write_offsets[node]; w < problem->write_offsets[node + 1]; ++w) {
    uint32_t value = problem->writes[w];
    for (uint32_t i = problem->reader_offsets[value]; i < problem->reader_offsets[value + 1]; ++i) {
      uint32_t reader = problem->readers[i];
      if (--j->pending[reader] > 0) continue;
      uint32_t choices = choices_of(j, reader, device);
      if ((choices >> device & 1u) != 0)
        j->stack[(*depth)++] = reader;
      else if (is_real)
        add_ready(j, reader, choices);
    }
  }
}

/* Performs a turn of `device`: runs all nodes that it can, one after the other, and returns how many. Without `is_real`, the turn
 * is only a trial: its effects are undone. */
static uint32_t take_turn(juggling *j, uint32_t device, bool is_real) {
  const clv__problem *problem = j->problem;
  uint32_t depth = 0, kept = 0;
  j->run_count = 0;
  for (uint32_t i = 0; i < j->ready_counts[device]; ++i) {
    uint32_t node = j->ready[device][i];
    if (j->placing->devices[node] != CLV__NONE) continue;
    j->ready[device][kept++] = node;
    j->stack[depth++] = node;
  }
  j->ready_counts[device] = is_real ? 0 : kept;
  while (depth > 0) finish(j, j->stack[--depth], device, is_real, &depth);
  if (is_real) {
    for (uint32_t i = 0; i < j->run_count; ++i) j->turns[j->run[i]] = j->turn;
    return j->run_count;
  }
  for (uint32_t i = 0; i < j->run_count; ++i) {
    uint32_t node = j->run[i];
    for (uint32_t w = problem->write_offsets[node]; w < problem->write_offsets[node + 1]; ++w) {
      uint32_t value = problem->writes[w];
      for (uint32_t r = problem->reader_offsets[value]; r < problem->reader_offsets[value + 1]; ++r)
        ++j->pending[problem->readers[r]];
    }
  }
  return j->run_count;
}

static void begin(juggling *j) {
  const clv__problem *problem = j->problem;
  for (uint32_t n = 0; n < problem->node_count; ++n) {
    for (uint32_t r = problem->read_offsets[n]; r < problem->read_offsets[n + 1]; ++r) {
      uint32_t producer = problem->producers[problem->reads[r]];
      j->pending[n] += producer != CLV__NONE && !j->waits[producer];
    }
  }
  for (uint32_t n = 0; n < problem->node_count; ++n) {
    if (j->pending[n] == 0 && !j->waits[n]) add_ready(j, n, choices_of(j, n, 0));
  }
}

static void juggle(juggling *j, uint32_t count) {
  begin(j);
  for (uint32_t done = 0; done < count; ++j->turn) {
    uint32_t best = 0, most = 0;
    for (uint32_t d = 0; d < j->problem->device_count; ++d) {
      uint32_t runs = take_turn(j, d, false);
      if (runs <= most) continue;
      best = d;
      most = runs;
    }
    done += take_turn(j, best, true);
  }
}

static clv_status place_many(const clv__problem *problem, const uint8_t *waits, uint32_t count, uint32_t *turns,
                             const clv_allocator *allocator, clv__placing *placing, clv_error *error) {
  size_t nodes = problem->node_count, words = nodes * (problem->device_count + 3);
  uint32_t *scratch = clv__allocate_zero(allocator, words * sizeof *scratch);
  if (scratch == NULL) return clv__error_memory(error, words * sizeof *scratch);
  juggling j = {.problem = problem, .waits = waits, .placing = placing, .turns = turns};
  j.pending = scratch, j.stack = scratch + nodes, j.run = scratch + 2 * nodes;
  for (uint32_t d = 0; d < problem->device_count; ++d) j.ready[d] = scratch + (3 + d) * nodes;
  juggle(&j, count);
  clv__release(allocator, scratch);
  return CLV_OK;
}

/* ---- For any number of devices ---- */

static void name_causes(const clv__problem *problem, const uint8_t *waits, clv__placing *placing) {
  for (uint32_t n = 0; n < problem->node_count; ++n) {
    uint32_t choices = clv__node_choices(problem, n);
    bool is_view = clv__node_is_view(problem, n) && !waits[n];
    uint32_t source = is_view ? clv__node_source(problem, n) : CLV__NONE;
    if (waits[n]) continue;
    if (problem->pins[n] != CLV__NONE)
      placing->causes[n] = "usr";
    else if (source != CLV__NONE && placing->devices[n] == placing->devices[source])
      placing->causes[n] = "view";
    else
      placing->causes[n] = (choices & (choices - 1)) == 0 ? "only" : "ready";
  }
}

clv_status clv__place_ready(const clv__place_input *input, clv__arena *arena, clv__placing *placing, clv_error *error) {
  const clv__problem *problem = input->problem;
  const clv_allocator *allocator = arena->allocator;
  size_t nodes = problem->node_count;
  CLV__TRY(clv__placing_init(problem, arena, placing, error));
  uint8_t *waits = clv__allocate_zero(allocator, nodes);
  uint32_t *turns = clv__allocate_zero(allocator, 2 * nodes * sizeof *turns);
  clv_status status = CLV_OK;
  if (waits == NULL || turns == NULL) {
    status = clv__error_memory(error, 2 * nodes * sizeof *turns);
    goto cleanup;
  }
  uint32_t count = 0;
  for (uint32_t n = 0; n < nodes; ++n) {
    if (problem->supports[n] == 0) {
      status = clv__node_unsupported(problem, n, error);
      goto cleanup;
    }
    waits[n] = is_free_view(problem, n, waits);
    count += !waits[n];
  }
  if (problem->device_count == 2)
    place_two(problem, waits, turns, turns + nodes, placing);
  else
    CLV__TRY_GOTO(place_many(problem, waits, count, turns, allocator, placing, error));
  place_waiting(problem, waits, turns, placing);
  name_causes(problem, waits, placing);
cleanup:
  clv__release(allocator, turns);
  clv__release(allocator, waits);
  return status;
}

static const clv__cause causes[] = {
    {"ready", "it was ready to run when its device's turn came"},
    {NULL, NULL},
};

const clv__strategy clv__strategy_ready = {
    .name = "ready",
    .summary = "run all ready nodes that one device supports, then all that another supports, in turn",
    .place = clv__place_ready,
    .split = CLV__SPLIT_CONVEX,
    .causes = causes,
};
