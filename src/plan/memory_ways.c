/* See memory.h: the two remedies for a device that does not fit. */
#include "plan/memory.h"

#include <stdlib.h>
#include <string.h>

#include "place/stream.h"

/* Streaming tries up to BUFFERS sizes of the buffer, for coarse and for fine cuts, each with about KEPT_STEPS numbers of
 * resident weights. A large graph gets fewer numbers, but at least LEAST_STEPS: so few that the cuts for one size of the buffer
 * have about CUT_NODES nodes in total. */
enum { KEPT_STEPS = 64, LEAST_STEPS = 8, BUFFERS = 7, CUT_NODES = 400000, MOST_CANDIDATES = 2 * BUFFERS * (KEPT_STEPS + 1) };

/* Cuts the placing in `arena`, plans its copies and computes its time. */
static clv_status price(const clv__fitting *f, clv__placing *placing, clv__arena *arena, clv__copies *copies, uint64_t *time_ns,
                        clv_error *error) {
  clv__price price;
  CLV__TRY(f->cutter->cut(f->cutter->cookie, placing, arena, error));
  CLV__TRY(clv__split_copies(f->plan->problem, &placing->cut, placing->streamed, arena, copies, error));
  CLV__TRY(clv__price_cut(f->plan->problem, &placing->cut, copies, arena, &price, error));
  *time_ns = clv__price_of(&price, f->plan->objective);
  return CLV_OK;
}

/* ---- Moving ---- */

/* Returns whether the partition must stay: a node is pinned, or the cut has put a node back on the device after a move, as it
 * may do with views (`returned`, by node). */
static bool is_held(const clv_plan *plan, const clv__partition *partition, const bool *returned) {
  for (uint32_t i = 0; i < partition->node_count; ++i) {
    uint32_t node = plan->problem_nodes[partition->nodes[i]];
    if (plan->problem->pins[node] != CLV__NONE || returned[node]) return true;
  }
  return false;
}

static bool supports_all(const clv_plan *plan, const clv__partition *partition, uint32_t device) {
  for (uint32_t i = 0; i < partition->node_count; ++i) {
    if (!clv__can_run(plan->problem, plan->problem_nodes[partition->nodes[i]], device)) return false;
  }
  return true;
}

/* Returns the next device after the partition's own that supports all of its nodes. If there is none, returns the first of the
 * earlier devices that does and has no memory limit (so that the partition need not move again), or CLV__NONE. */
static uint32_t next_device(const clv_plan *plan, const clv__partition *partition, const bool *returned) {
  if (is_held(plan, partition, returned)) return CLV__NONE;
  for (uint32_t d = partition->device + 1; d < plan->devices->count; ++d) {
    if (supports_all(plan, partition, d)) return d;
  }
  for (uint32_t d = 0; d < partition->device; ++d) {
    if (plan->devices->items[d].info.memory_limit_bytes == 0 && supports_all(plan, partition, d)) return d;
  }
  return CLV__NONE;
}

/* Returns which partition of the device to move: one the compiler rejects as too large, if it can move; otherwise the first
 * movable one, in the order of execution, at which the weights up to and including its own, together with everything else that
 * the device needs, exceed the memory; otherwise the last movable one. CLV__NONE if none can move. */
static uint32_t find_victim(const clv__fitting *f, const bool *returned) {
  const clv_plan *plan = f->plan;
  const clv__memory_need *need = &plan->needs[f->device];
  uint64_t limit = plan->devices->items[f->device].info.memory_limit_bytes, weights = need->total_bytes - need->weight_bytes;
  uint32_t before = CLV__NONE;
  if (need->too_large != CLV__NONE && next_device(plan, &plan->partitions[need->too_large], returned) != CLV__NONE)
    return need->too_large;
  for (uint32_t p = 0; p < plan->partition_count; ++p) {
    const clv__partition *partition = &plan->partitions[p];
    if (partition->device != f->device) continue;
    weights += partition->weight_bytes;
    if (next_device(plan, partition, returned) == CLV__NONE) continue;
    before = p;
    if (weights > limit) return p;
  }
  return before;
}

/* Moves the partition, and cuts again. */
static clv_status move_partition(clv__fitting *f, uint32_t victim, bool *returned, clv__way *way, clv_error *error) {
  const clv_plan *plan = f->plan;
  const clv__partition *partition = &plan->partitions[victim];
  uint32_t device = next_device(plan, partition, returned), *devices = way->placing.devices;
  for (uint32_t i = 0; i < partition->node_count; ++i) devices[plan->problem_nodes[partition->nodes[i]]] = device;
  CLV__TRY(clv__fitting_adopt(f, &way->placing, error));
  for (uint32_t i = 0; i < partition->node_count; ++i) {
    uint32_t node = plan->problem_nodes[partition->nodes[i]];
    returned[node] = devices[node] == f->device;
  }
  return CLV_OK;
}

clv_status clv__fitting_move(clv__fitting *f, const clv__placing *placing, clv__way *way, clv_error *error) {
  clv_plan *plan = f->plan;
  bool *returned = clv__arena_allocate_zero(&plan->arena, plan->problem->node_count, sizeof *returned);
  if (returned == NULL) return clv__error_memory(error, plan->problem->node_count);
  CLV__TRY(clv__placing_copy(plan, placing, &way->placing, error));
  CLV__TRY(clv__fitting_adopt(f, &way->placing, error));
  while (!clv__fitting_fits(f)) {
    uint32_t victim = find_victim(f, returned);
    if (victim == CLV__NONE) return CLV_OK;
    CLV__TRY(move_partition(f, victim, returned, way, error));
  }
  clv__arena work;
  clv__copies copies;
  clv__placing trial = way->placing;
  clv__arena_init(&work, plan->graph->allocator);
  clv_status status = price(f, &trial, &work, &copies, &way->time_ns, error);
  clv__arena_finish(&work);
  way->is_possible = status == CLV_OK;
  return status;
}

/* ---- Streaming ---- */

typedef struct candidate {
  uint64_t time_ns, quick_bytes;
  clv__stream_way way;
} candidate;

static int by_time(const void *a, const void *b) {
  const candidate *x = a, *y = b;
  if (x->time_ns != y->time_ns) return x->time_ns < y->time_ns ? -1 : 1;
  if (x->quick_bytes != y->quick_bytes) return x->quick_bytes < y->quick_bytes ? -1 : 1;
  if (x->way.kept != y->way.kept) return x->way.kept < y->way.kept ? -1 : 1;
  if (x->way.is_fine != y->way.is_fine) return x->way.is_fine ? 1 : -1;
  return (x->way.buffer_bytes > y->way.buffer_bytes) - (x->way.buffer_bytes < y->way.buffer_bytes);
}

static void apply(const clv_plan *plan, const clv__stream *stream, const candidate *c, const clv__placing *from,
                  clv__placing *to) {
  const clv__problem *problem = plan->problem;
  memcpy(to->devices, from->devices, problem->node_count * sizeof *to->devices);
  memcpy(to->causes, from->causes, problem->node_count * sizeof *to->causes);
  memset(to->groups, 0xff, problem->node_count * sizeof *to->groups); /* CLV__NONE */
  memset(to->streamed, 0, problem->weight_count * sizeof *to->streamed);
  if (from->groups != NULL) memcpy(to->groups, from->groups, problem->node_count * sizeof *to->groups);
  if (from->streamed != NULL) memcpy(to->streamed, from->streamed, problem->weight_count * sizeof *to->streamed);
  clv__stream_apply(stream, &c->way, to->streamed, to->groups);
}

/* Computes the time and the least memory of a candidate. If the candidate cannot be cut, returns CLV_OK and sets `is_valid` to
 * false. */
static clv_status describe(clv__fitting *f, const clv__stream *stream, const clv__placing *from, clv__placing *trial,
                           candidate *c, bool *is_valid, clv_error *error) {
  const clv__problem *problem = f->plan->problem;
  clv__arena work;
  clv__copies copies;
  clv__memory memory;
  apply(f->plan, stream, c, from, trial);
  clv__arena_init(&work, f->plan->graph->allocator);
  clv_status status = price(f, trial, &work, &copies, &c->time_ns, error);
  *is_valid = status == CLV_OK;
  if (status == CLV_OK)
    status = clv__memory_count(problem, &trial->cut, &copies, trial->streamed, false, work.allocator, &memory, error);
  if (status == CLV_OK) c->quick_bytes = clv__memory_needed(problem, &memory, NULL, f->device);
  clv__arena_finish(&work);
  return status == CLV_NOT_SUPPORTED ? CLV_OK : status;
}

/* Describes the ways of streaming with one size of the buffer. If all weights stay resident, only fine cuts change anything. */
static clv_status list_buffer(clv__fitting *f, const clv__stream *stream, const clv__placing *from, clv__placing *trial,
                              clv__stream_way way, candidate *candidates, uint32_t *count, clv_error *error) {
  uint32_t steps = CUT_NODES / (f->plan->problem->node_count + 1), last = CLV__NONE;
  steps = steps > KEPT_STEPS ? KEPT_STEPS : steps < LEAST_STEPS ? LEAST_STEPS : steps;
  for (uint32_t step = 0; step <= steps; ++step) {
    bool is_valid;
    way.kept = step == steps ? stream->count : clv__stream_kept(stream, step, steps);
    if (way.kept == last || (way.kept == stream->count && !way.is_fine)) continue;
    last = way.kept;
    candidate c = {.way = way};
    CLV__TRY(describe(f, stream, from, trial, &c, &is_valid, error));
    if (is_valid) candidates[(*count)++] = c;
  }
  return CLV_OK;
}

static clv_status list(clv__fitting *f, const clv__stream *stream, const clv__placing *from, clv__placing *trial,
                       candidate *candidates, uint32_t *count, clv_error *error) {
  const uint64_t total = stream->count == 0 ? 0 : stream->ends[stream->count - 1];
  for (uint32_t b = 0; b < 2 * BUFFERS; ++b) {
    clv__stream_way way = {.buffer_bytes = clv__stream_buffer(stream, b / 2, b % 2 == 1), .is_fine = b % 2 == 1};
    if (b / 2 > 1 && !way.is_fine && clv__stream_buffer(stream, b / 2 - 1, false) >= total) continue; /* gives no new cuts */
    CLV__TRY(list_buffer(f, stream, from, trial, way, candidates, count, error));
  }
  qsort(candidates, *count, sizeof *candidates, by_time);
  return CLV_OK;
}

static clv_status try_candidates(clv__fitting *f, const clv__stream *stream, const clv__placing *from,
                                 const candidate *candidates, uint32_t count, clv__way *way, clv_error *error) {
  const uint64_t limit = f->plan->devices->items[f->device].info.memory_limit_bytes;
  const candidate *least = NULL;
  for (uint32_t i = 0; i < count; ++i) {
    const candidate *c = &candidates[i];
    if (least == NULL || c->quick_bytes < least->quick_bytes) least = c;
    if (c->quick_bytes > limit) continue;
    apply(f->plan, stream, c, from, &way->placing);
    CLV__TRY(clv__fitting_adopt(f, &way->placing, error));
    if (!clv__fitting_fits(f)) continue;
    way->is_possible = true;
    way->time_ns = c->time_ns;
    return CLV_OK;
  }
  if (least == NULL) return CLV_OK;
  apply(f->plan, stream, least, from, &way->placing); /* for the message: the least memory that would do */
  return clv__fitting_adopt(f, &way->placing, error);
}

clv_status clv__fitting_stream(clv__fitting *f, const clv__placing *placing, clv__way *way, clv_error *error) {
  clv_plan *plan = f->plan;
  clv__arena work;
  clv__stream stream;
  uint32_t count = 0;
  CLV__TRY(clv__placing_copy(plan, placing, &way->placing, error));
  clv__arena_init(&work, plan->graph->allocator);
  candidate *candidates = clv__arena_allocate(&work, MOST_CANDIDATES * sizeof *candidates);
  clv_status status = candidates != NULL ? CLV_OK : clv__error_memory(error, MOST_CANDIDATES * sizeof *candidates);
  if (status == CLV_OK) {
    status = clv__stream_list(plan->problem, placing->devices, placing->streamed, f->device, &work, &stream, error);
  }
  if (status == CLV_OK) {
    status = list(f, &stream, placing, &way->placing, candidates, &count, error);
    if (status == CLV_OK) status = try_candidates(f, &stream, placing, candidates, count, way, error);
  }
  clv__arena_finish(&work);
  return status;
}
