/* Finds placements if the weights do not fit. Tries prices per byte on the devices that lack memory (Lagrange multipliers, found
 * by doubling and bisection), and tries to fill devices one after the other. */
#include <string.h>

#include "place/optimal/optimal.h"

#define FIT_EFFORT ((uint64_t)250000)

static uint64_t add_capped(uint64_t a, uint64_t b) {
  return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* Returns the price, in nanoseconds per 1,024 bytes, at which all weights together cost as much as all nodes. */
static uint64_t unit_price(const clv__problem *problem) {
  uint64_t time = 0, bytes = 1;
  for (uint32_t n = 0; n < problem->node_count; ++n) {
    uint64_t most = 0;
    for (uint32_t d = 0; d < problem->device_count; ++d) {
      uint64_t here = clv__node_ns(problem, n, d);
      if (here != CLV__NO_TIME && here > most) most = here;
    }
    time = add_capped(time, most);
  }
  for (uint32_t w = 0; w < problem->weight_count; ++w) bytes = add_capped(bytes, problem->weight_bytes[w]);
  unsigned __int128 price = (unsigned __int128)time * 1024 / bytes;
  return price == 0 ? 1 : price > CLV__MAX_TIME_NS ? CLV__MAX_TIME_NS : (uint64_t)price;
}

static clv_status cut_at_price(clv__optimal *o, uint64_t price, bool *fits) {
  clv__arena arena;
  clv__problem repriced;
  clv__score score;
  clv__reprice prices = CLV__REPRICE_AS_IS;
  for (uint32_t d = 0; d < o->problem->device_count; ++d) prices.byte[d] = o->problem->limits[d].memory_bytes > 0 ? price : 0;
  memcpy(o->scratch, o->reference, o->problem->node_count * sizeof *o->scratch);
  clv__arena_init(&arena, o->allocator);
  clv_status status = clv__reprice_make(o->problem, &prices, &arena, &repriced, o->error);
  if (status == CLV_OK) status = clv__swap(&repriced, 2, o->allocator, o->scratch, o->error);
  clv__arena_finish(&arena);
  if (status != CLV_OK) return status;
  CLV__TRY(clv__evaluate(&o->evaluator, o->scratch, &score, o->error));
  *fits = score.excess_bytes == 0;
  return clv__pool_add(&o->pool, o->scratch, o->error);
}

/* ---- Filling devices ---- */

enum { MOST_FILLED = 3 }; /* the first three devices with limits are filled: every selection of them, in every order */

typedef struct filling {
  clv__optimal *o;
  uint32_t *elsewhere; /* by node: the fastest device without a limit, or else its device in the minimum cut */
  uint32_t *seen;      /* by weight: the devices that hold it, as bits */
  uint32_t *order;     /* the nodes, sorted by rank */
  uint64_t *rank;      /* by node: the time that it saves per byte of its weights on the device that is being filled */
  uint64_t used[CLV__MOST_DEVICES];
} filling;

static uint64_t limit_of(const filling *f, uint32_t device) {
  return f->o->problem->limits[device].memory_bytes;
}

static void find_elsewhere(filling *f) {
  const clv__problem *problem = f->o->problem;
  for (uint32_t n = 0; n < problem->node_count; ++n) {
    uint64_t best = CLV__NO_TIME;
    f->elsewhere[n] = f->o->reference[n];
    for (uint32_t d = 0; d < problem->device_count; ++d) {
      if (limit_of(f, d) > 0 || (clv__node_devices(problem, n) >> d & 1u) == 0 || clv__node_ns(problem, n, d) >= best) continue;
      best = clv__node_ns(problem, n, d);
      f->elsewhere[n] = d;
    }
  }
}

static void start(filling *f) {
  memset(f->seen, 0, f->o->problem->weight_count * sizeof *f->seen);
  memset(f->used, 0, sizeof f->used);
  memcpy(f->o->scratch, f->elsewhere, f->o->problem->node_count * sizeof *f->elsewhere);
}

/* Places the node on the device if its weights still fit into `share` sixteenths of the memory. Returns whether they do. */
static bool take(filling *f, uint32_t node, uint32_t device, uint32_t share) {
  const clv__problem *problem = f->o->problem;
  uint64_t bytes = 0;
  for (uint32_t k = problem->weight_offsets[node]; k < problem->weight_offsets[node + 1]; ++k) {
    if ((f->seen[problem->weights[k]] >> device & 1u) == 0) bytes = add_capped(bytes, problem->weight_bytes[problem->weights[k]]);
  }
  if (bytes > 0 && add_capped(f->used[device], bytes) > limit_of(f, device) / 16 * share) return false;
  f->used[device] += bytes;
  for (uint32_t k = problem->weight_offsets[node]; k < problem->weight_offsets[node + 1]; ++k) {
    f->seen[problem->weights[k]] |= 1u << device;
  }
  f->o->scratch[node] = device;
  return true;
}

/* Fills the devices of `sequence` one after the other, with the nodes in the order of the list or backwards. */
static clv_status fill_sequence(filling *f, const uint32_t *sequence, uint32_t count, bool backwards, uint32_t share) {
  const clv__problem *problem = f->o->problem;
  start(f);
  for (uint32_t i = 0, at = 0; i < problem->node_count && at < count; ++i) {
    uint32_t n = backwards ? problem->node_count - 1 - i : i;
    for (uint32_t next = at; next < count; ++next) {
      if ((clv__node_devices(problem, n) >> sequence[next] & 1u) == 0) continue;
      bool is_taken = take(f, n, sequence[next], share);
      if (is_taken || next == at) at = is_taken ? next : next + 1;
      if (is_taken) break;
    }
  }
  return clv__pool_add(&f->o->pool, f->o->scratch, f->o->error);
}

/* Fills in every way that begins with the first `count` devices of `sequence` and goes on with none, some or all of the devices
 * `rest` (bits). */
static clv_status fill_from(filling *f, uint32_t *sequence, uint32_t count, uint32_t rest) {
  for (uint32_t kind = 0; count > 0 && kind < 4; ++kind) {
    CLV__TRY(fill_sequence(f, sequence, count, kind % 2 == 1, kind < 2 ? 15 : 12));
  }
  for (uint32_t d = 0; d < f->o->problem->device_count; ++d) {
    if ((rest >> d & 1u) == 0) continue;
    sequence[count] = d;
    CLV__TRY(fill_from(f, sequence, count + 1, rest & ~(1u << d)));
  }
  return CLV_OK;
}

/* Sorts the nodes by falling rank. Nodes of equal rank keep their order. */
static void sort_by_rank(filling *f, uint32_t low, uint32_t high, uint32_t *work) {
  if (high - low < 2) return;
  uint32_t middle = low + (high - low) / 2, a = low, b = middle;
  sort_by_rank(f, low, middle, work);
  sort_by_rank(f, middle, high, work);
  for (uint32_t i = low; i < high; ++i) {
    bool is_first = b >= high || (a < middle && f->rank[f->order[a]] >= f->rank[f->order[b]]);
    work[i] = f->order[is_first ? a++ : b++];
  }
  memcpy(f->order + low, work + low, (high - low) * sizeof *work);
}

/* Fills each device with the nodes that save most time per byte of their weights, as for a knapsack. */
static clv_status fill_by_saving(filling *f, uint32_t *work) {
  const clv__problem *problem = f->o->problem;
  start(f);
  for (uint32_t d = 0; d < problem->device_count; ++d) {
    if (limit_of(f, d) == 0) continue;
    for (uint32_t n = 0; n < problem->node_count; ++n) {
      uint64_t here = clv__node_ns(problem, n, d), there = clv__node_ns(problem, n, f->elsewhere[n]), bytes = 1;
      bool can = (clv__node_devices(problem, n) >> d & 1u) != 0 && limit_of(f, f->o->scratch[n]) == 0;
      for (uint32_t k = problem->weight_offsets[n]; k < problem->weight_offsets[n + 1]; ++k)
        bytes = add_capped(bytes, problem->weight_bytes[problem->weights[k]]);
      uint64_t saved = can && there > here ? (there > CLV__MAX_TIME_NS ? CLV__MAX_TIME_NS : there) - here : 0;
      f->rank[n] = saved > UINT64_MAX / 4096 ? UINT64_MAX / bytes : saved * 4096 / bytes;
      f->order[n] = n;
    }
    sort_by_rank(f, 0, problem->node_count, work);
    for (uint32_t i = 0; i < problem->node_count && f->rank[f->order[i]] > 0; ++i) (void)take(f, f->order[i], d, 15);
  }
  return clv__pool_add(&f->o->pool, f->o->scratch, f->o->error);
}

static clv_status fill_devices(clv__optimal *o) {
  uint32_t sequence[CLV__MOST_DEVICES], limited = 0, nodes = o->problem->node_count;
  clv__arena arena;
  clv__arena_init(&arena, o->allocator);
  filling f = {.o = o,
               .elsewhere = clv__arena_allocate(&arena, nodes * sizeof *f.elsewhere),
               .seen = clv__arena_allocate(&arena, o->problem->weight_count * sizeof *f.seen),
               .order = clv__arena_allocate(&arena, nodes * sizeof *f.order),
               .rank = clv__arena_allocate(&arena, nodes * sizeof *f.rank)};
  uint32_t *work = clv__arena_allocate(&arena, nodes * sizeof *work);
  clv_status status = CLV_OK;
  if (f.elsewhere == NULL || f.seen == NULL || f.order == NULL || f.rank == NULL || work == NULL) {
    status = clv__error_memory(o->error, nodes * sizeof *work);
  } else {
    find_elsewhere(&f);
    for (uint32_t d = 0, count = 0; d < o->problem->device_count; ++d) {
      if (limit_of(&f, d) == 0 || count++ >= MOST_FILLED) continue;
      limited |= 1u << d;
    }
    status = fill_from(&f, sequence, 0, limited);
    if (status == CLV_OK) status = fill_by_saving(&f, work);
  }
  clv__arena_finish(&arena);
  return status;
}

clv_status clv__optimal_fit(clv__optimal *o) {
  if (!o->evaluator.has_limits || o->reference_fits || o->problem->weight_count == 0) return CLV_OK;
  CLV__TRY(fill_devices(o));
  uint32_t times = 3 + clv__optimal_times(o, FIT_EFFORT, 2, 9);
  uint64_t price = unit_price(o->problem) / 8 + 1, low = 0, high = 0;
  for (uint32_t i = 0; i < times; ++i) {
    bool fits;
    CLV__TRY(cut_at_price(o, price, &fits));
    if (fits)
      high = price;
    else
      low = price;
    price = high > 0 ? low + (high - low) / 2 : price * 4;
    if (price == low || price > CLV__MAX_TIME_NS) break;
  }
  return CLV_OK;
}
