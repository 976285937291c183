/* Visits all shares twice: first to find the bounds, then for the sizes in between. See sizes.h. */
#include "gnn/measure/sizes.h"

#include <math.h>
#include <stdlib.h>

#include "gnn/model/block.h"
#include "gnn/plan/pep_cost.h"

enum { ENOUGH = CLV__MEASURE_ENOUGH };
#define SAME 0.02 /* sizes that differ by at most this fraction count as one; less than CLV__TABLE_TOLERANCE */

enum bound { LEAST_ROWS, MOST_ROWS, LEAST_EDGES, MOST_EDGES, LEAST_SLOPE, MOST_SLOPE, BOUNDS };

typedef struct finding {
  const clv__gnn_planning *planning;
  const clv__chain_block *block;
  bool is_static, has_bounds;
  uint64_t least_work, most_work;
  clv__measured_size bounds[BOUNDS];
  uint32_t steps;
  clv__measured_size least[CLV__MEASURE_MOST_STEPS], most[CLV__MEASURE_MOST_STEPS]; /* rows 0: none in this range */
} finding;

clv__layer_sizes clv__measure_sizes_of(const clv__gnn_planning *planning, const clv__chain_block *block, bool is_static,
                                       const clv__share *share) {
  uint64_t rows = share->targets + (block->reads_rows ? share->halo : 0), edges = block->reads_edges ? share->edges : 0;
  if (!is_static) return (clv__layer_sizes){rows, share->targets, edges};
  return clv__block_form_padded(rows, edges, planning->machine.pad_step).sizes;
}

static uint64_t work_of(const clv__measured_size *size) {
  return size->sizes.rows + size->sizes.edges;
}

/* Returns the number of edges per row or, if the block does not read edges, of targets per row. */
static double slope_of(const finding *f, const clv__measured_size *size) {
  double over = (double)(f->block->reads_edges ? size->sizes.edges : size->sizes.targets);
  return over / (double)size->sizes.rows;
}

static void see_bounds(finding *f, const clv__measured_size *size) {
  clv__measured_size *at = f->bounds;
  double slope = slope_of(f, size);
  uint64_t work = work_of(size);
  if (!f->has_bounds || work < f->least_work) f->least_work = work;
  if (!f->has_bounds || work > f->most_work) f->most_work = work;
  for (uint32_t b = 0; !f->has_bounds && b < BOUNDS; ++b) at[b] = *size;
  f->has_bounds = true;
  if (size->sizes.rows < at[LEAST_ROWS].sizes.rows) at[LEAST_ROWS] = *size;
  if (size->sizes.rows > at[MOST_ROWS].sizes.rows) at[MOST_ROWS] = *size;
  if (size->sizes.edges < at[LEAST_EDGES].sizes.edges) at[LEAST_EDGES] = *size;
  if (size->sizes.edges > at[MOST_EDGES].sizes.edges) at[MOST_EDGES] = *size;
  if (slope < slope_of(f, &at[LEAST_SLOPE])) at[LEAST_SLOPE] = *size;
  if (slope > slope_of(f, &at[MOST_SLOPE])) at[MOST_SLOPE] = *size;
}

static void see_between(finding *f, const clv__measured_size *size) {
  double least = (double)f->least_work, most = (double)f->most_work;
  if (!(most > least)) return;
  uint32_t step = (uint32_t)lround(log((double)work_of(size) / least) / log(most / least) * (f->steps - 1));
  double slope = slope_of(f, size);
  if (f->least[step].sizes.rows == 0 || slope < slope_of(f, &f->least[step])) f->least[step] = *size;
  if (f->most[step].sizes.rows == 0 || slope > slope_of(f, &f->most[step])) f->most[step] = *size;
}

/* Calls `see` for every share of every subgraph of every partitioning. */
static void go_through(finding *f, void (*see)(finding *f, const clv__measured_size *size)) {
  const clv__gnn_planning *p = f->planning;
  for (uint32_t c = 0; c < p->cut_count; ++c) {
    for (uint32_t i = 0; i < p->cuts[c].membership.k; ++i) {
      for (uint32_t from = 0; from < CLV__PEP_SHARES; ++from) {
        for (uint32_t to = from + 1; to <= CLV__PEP_SHARES; ++to) {
          clv__measured_size size = {.is_needed = false};
          if (f->block->is_whole && (from > 0 || to < CLV__PEP_SHARES)) continue;
          clv__subgraph_share(&p->cuts[c].subgraphs[i], (double)from / CLV__PEP_SHARES, (double)to / CLV__PEP_SHARES,
                              &size.share);
          if (size.share.targets == 0) continue;
          size.sizes = clv__measure_sizes_of(p, f->block, f->is_static, &size.share);
          see(f, &size);
        }
      }
    }
  }
}

static bool is_near(uint64_t a, uint64_t b) {
  return fabs((double)a - (double)b) <= SAME * fmax((double)a, (double)b);
}

static void put(clv__measure_sizes *sizes, const clv__measured_size *size) {
  for (uint32_t i = 0; i < sizes->count; ++i) {
    const clv__layer_sizes *other = &sizes->items[i].sizes;
    if (is_near(other->rows, size->sizes.rows) && is_near(other->targets, size->sizes.targets) &&
        is_near(other->edges, size->sizes.edges))
      return;
  }
  sizes->items[sizes->count++] = *size;
}

/* Adds sizes beyond the largest if there are too few for a fit, because the graph is small or padded to few sizes. The fit
 * then covers the sizes in between, too. */
static void add_larger(const finding *f, clv__measure_sizes *sizes) {
  const clv__layer_sizes most = {f->bounds[MOST_ROWS].sizes.rows, f->bounds[MOST_ROWS].sizes.targets,
                                 f->bounds[MOST_EDGES].sizes.edges};
  uint64_t step = f->is_static ? f->planning->machine.pad_step : most.rows / ENOUGH + 1;
  for (uint64_t i = 1; sizes->count < ENOUGH && i <= ENOUGH; ++i) {
    clv__measured_size size = {.sizes = {most.rows + i * step, most.targets + i * step, 0}};
    if (f->block->reads_edges) size.sizes.edges = most.edges + (i % 2) * (f->is_static ? step : most.edges / ENOUGH + 1);
    put(sizes, &size);
  }
}

static int compare_sizes(const void *a, const void *b) {
  const clv__layer_sizes *x = &((const clv__measured_size *)a)->sizes, *y = &((const clv__measured_size *)b)->sizes;
  uint64_t one = work_of(a), other = work_of(b);
  if (one != other) return (one > other) - (one < other);
  if (x->rows != y->rows) return (x->rows > y->rows) - (x->rows < y->rows);
  return (x->targets > y->targets) - (x->targets < y->targets);
}

/* Marks more sizes as needed until there are ENOUGH: first every second size, then any size, in both cases without the largest
 * quarter, which takes longest to measure; finally that quarter too. */
static void need_enough(clv__measure_sizes *sizes) {
  uint32_t needed = 0;
  for (uint32_t i = 0; i < sizes->count; ++i) needed += sizes->items[i].is_needed;
  for (uint32_t pass = 0; pass < 3; ++pass) {
    uint32_t end = pass < 2 ? 3 * sizes->count / 4 : sizes->count;
    for (uint32_t i = pass == 0; i < end && needed < ENOUGH; i += pass == 0 ? 2 : 1) {
      needed += !sizes->items[i].is_needed;
      sizes->items[i].is_needed = true;
    }
  }
}

void clv__measure_sizes_find(const clv__gnn_planning *planning, const clv__chain_block *block, bool is_static, uint32_t steps,
                             clv__measure_sizes *sizes) {
  finding f = {.planning = planning, .block = block, .is_static = is_static, .steps = steps};
  sizes->count = 0;
  go_through(&f, see_bounds);
  if (!f.has_bounds) return;
  for (uint32_t b = 0; b < BOUNDS; ++b) put(sizes, &f.bounds[b]);
  for (uint32_t i = 0; i < sizes->count; ++i) sizes->items[i].is_needed = true;
  go_through(&f, see_between);
  for (uint32_t s = 0; s < steps; ++s) {
    /* The last range is close to the largest size, which takes longest and is already included. */
    if (s + 1 == steps && sizes->count >= ENOUGH) break;
    if (f.least[s].sizes.rows > 0) put(sizes, &f.least[s]);
    if (f.most[s].sizes.rows > 0) put(sizes, &f.most[s]);
  }
  if (sizes->count < ENOUGH) add_larger(&f, sizes);
  qsort(sizes->items, sizes->count, sizeof *sizes->items, compare_sizes);
  need_enough(sizes);
}
