/* See measure.h. */
#include "gnn/measure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "gnn/measure_copies.h"
#include "gnn/measure_overheads.h"
#include "gnn/measure_point.h"

enum { MOST_STEPS = 16 };

typedef struct measuring {
  const clv__gnn_planning *planning;
  const clv__gnn_measure_options *options;
  clv__tables *tables;
  const clv_allocator *allocator;
  uint32_t done, of;
} measuring;

/* ---- What sizes there are ---- */

typedef struct extent {
  double least_rows, most_rows, least_density, most_density, least_targets; /* edges, and targets, a row */
  uint64_t most_edges;
} extent;

static void widen(extent *x, double rows, double edges, double targets) {
  if (rows < 1) return;
  x->least_targets = fmin(x->least_targets, targets / rows);
  x->least_rows = fmin(x->least_rows, rows);
  x->most_rows = fmax(x->most_rows, rows);
  x->least_density = fmin(x->least_density, edges / rows);
  x->most_density = fmax(x->most_density, edges / rows);
  x->most_edges = (uint64_t)fmax((double)x->most_edges, edges);
}

/* All parts of all subgraphs, for a block that reads rows, edges, both or neither; padded where the device is static. */
static extent find_extent(const measuring *m, const clv__chain_block *block, bool is_static) {
  const clv__gnn_planning *p = m->planning;
  extent x = {INFINITY, 0, INFINITY, 0, 1, 0};
  for (uint32_t c = 0; c < p->cut_count; ++c) {
    for (uint32_t i = 0; i < p->cuts[c].membership.k; ++i) {
      for (uint32_t from = 0; from < CLV__PEP_SHARES; ++from) {
        for (uint32_t to = from + 1; to <= CLV__PEP_SHARES; ++to) {
          clv__share share;
          if (block->is_whole && (from > 0 || to < CLV__PEP_SHARES)) continue;
          clv__piece_share(&p->cuts[c].pieces[i], (double)from / CLV__PEP_SHARES, (double)to / CLV__PEP_SHARES, &share);
          if (share.targets == 0) continue;
          clv__block_form form =
              clv__block_form_padded(share.targets + (block->reads_rows ? share.halo : 0), block->reads_edges ? share.edges : 0,
                                     is_static ? p->machine.pad_step : 1);
          widen(&x, (double)form.sizes.rows, (double)form.sizes.edges,
                is_static ? (double)form.sizes.rows : (double)share.targets);
        }
      }
    }
  }
  return x;
}

static double step_of(double least, double most, uint32_t step, uint32_t steps) {
  if (steps < 2 || !(most > least)) return most;
  double low = fmax(least, 1e-3 * most); /* a density may be 0 */
  return step == 0 ? least : low * pow(most / low, (double)step / (steps - 1));
}

/* ---- A block over its grid ---- */

static clv_status tell(measuring *m, uint32_t layer, uint32_t device, clv_error *error) {
  const clv__gnn_measure_options *o = m->options;
  const char *name = m->planning->machine.devices[device].name;
  if (o->progress == NULL || o->progress(o->user_data, name, layer, m->done, m->of)) return CLV_OK;
  return clv__error_set(error, CLV_CANCELLED, "measuring was cancelled at layer %u on %s", layer, name);
}

static clv_status measure_block(measuring *m, uint32_t layer, uint32_t device, uint32_t first, uint32_t last, clv_error *error) {
  const clv__gnn_planning *p = m->planning;
  const clv__chain_block *block = &p->chains[layer].blocks[first][last];
  const clv__machine_device *about = &p->machine.devices[device];
  const extent x = find_extent(m, block, about->is_static);
  uint64_t step = about->is_static ? p->machine.pad_step : 1;
  uint32_t row_steps = m->options->row_steps, densities = block->reads_edges ? m->options->density_steps : 1;
  for (uint32_t r = 0; r < row_steps && x.most_rows > 0; ++r) {
    for (uint32_t d = 0; d < densities; ++d) {
      double rows = step_of(x.least_rows, x.most_rows, r, row_steps);
      double edges = block->reads_edges ? rows * step_of(x.least_density, x.most_density, d, densities) : 0;
      uint64_t n = (uint64_t)llround(rows), edge_count = (uint64_t)fmin(llround(edges), 1.05 * (double)x.most_edges);
      clv__table_point point = {.origin = CLV__MEASURED};
      point.n = clv__pad_up(n, step);
      point.m = clv__pad_up(edge_count, step);
      /* Parts make fewer rows than they read. In every other point they make all, so that one is told from the other. */
      double part = (r + d) % 2 == 0 ? 1 : x.least_targets;
      point.targets = fmax(1, ceil(part * (double)point.n));
      clv__layer_sizes sizes = {point.n, point.targets, point.m};
      CLV__TRY(tell(m, layer, device, error));
      const clv__measured_block about_block = {p, m->options, m->tables, layer, device, first, last};
      CLV__TRY(m->options->asks_models ? clv__model_block(&about_block, sizes, &point, error)
                                       : clv__measure_block(&about_block, sizes, &point, error));
      CLV__TRY(clv__tables_put(m->tables, about->name, p->chains[layer].layer, first, last, &point, error));
      ++m->done;
    }
  }
  return CLV_OK;
}

static bool is_wanted(const measuring *m, uint32_t layer, uint32_t device, uint32_t first, uint32_t last) {
  const clv__gnn_planning *p = m->planning;
  for (uint32_t before = 0; before < layer; ++before) { /* layers that are alike have one table */
    if (strcmp(p->chains[before].layer, p->chains[layer].layer) == 0) return false;
  }
  return p->runs[layer]->runs[device][first][last] && !p->chains[layer].blocks[first][last].is_empty;
}

static clv_status measure_blocks(measuring *m, bool only_count, clv_error *error) {
  const clv__gnn_planning *p = m->planning;
  for (uint32_t layer = 0; layer < p->model->layer_count; ++layer) {
    uint32_t stages = p->chains[layer].stage_count;
    for (uint32_t d = 0; d < p->machine.device_count; ++d) {
      for (uint32_t first = 0; first < stages; ++first) {
        for (uint32_t last = first + 1; last <= stages; ++last) {
          if (!is_wanted(m, layer, d, first, last)) continue;
          bool has_edges = p->chains[layer].blocks[first][last].reads_edges;
          if (only_count) {
            m->of += m->options->row_steps * (has_edges ? m->options->density_steps : 1);
            continue;
          }
          clv_status status = measure_block(m, layer, d, first, last, error);
          if (status != CLV_OK) return clv__error_prefix(error, status, "layer %u on %s", layer, p->machine.devices[d].name);
        }
      }
    }
  }
  return CLV_OK;
}

/* ---- All of it ---- */

/* The most that any part reads or makes, as a power of two. */
static uint64_t most_moved(const measuring *m) {
  const clv__gnn_planning *p = m->planning;
  double most = 1 << 20;
  for (uint32_t layer = 0; layer < p->model->layer_count; ++layer) {
    for (uint32_t first = 0; first < p->stages[layer].count; ++first) {
      for (uint32_t last = first + 1; last <= p->stages[layer].count; ++last) {
        const extent x = find_extent(m, &p->chains[layer].blocks[first][last], true);
        clv__layer_sizes sizes = {(uint64_t)x.most_rows, (uint64_t)x.most_rows, x.most_edges};
        clv__value_set reads = clv__block_reads(&p->stages[layer], first, last, false);
        clv__value_set makes = clv__block_makes(&p->stages[layer], first, last);
        most = fmax(most, (double)clv__layer_set_bytes(&p->stages[layer], reads, sizes));
        most = fmax(most, (double)clv__layer_set_bytes(&p->stages[layer], makes, sizes));
      }
    }
  }
  return UINT64_C(1) << (uint32_t)fmin(32, ceil(log2(most))); /* what is beyond has no price, and no plan */
}

clv_status clv__gnn_measure(const clv__gnn_planning *planning, const clv__gnn_measure_options *options, clv__tables *tables,
                            clv_error *error) {
  measuring m = {.planning = planning, .options = options, .tables = tables, .allocator = planning->arena.allocator};
  if (options->runs == 0 || options->row_steps < 2 || options->row_steps > MOST_STEPS || options->density_steps < 2 ||
      options->density_steps > MOST_STEPS)
    return clv__error_set(error, CLV_INVALID_ARGUMENT,
                          "%u runs over %u by %u sizes; at least 1, and 2 to %d by 2 to %d are wanted", options->runs,
                          options->row_steps, options->density_steps, MOST_STEPS, MOST_STEPS);
  for (uint32_t d = 0; d < planning->machine.device_count && !options->only_copies; ++d)
    CLV__TRY(
        clv__tables_put_device(tables, planning->machine.devices[d].name, planning->devices->items[d].info.fingerprint, error));
  uint64_t most_bytes = most_moved(&m);
  CLV__TRY(clv__measure_packing(tables, m.allocator, most_bytes, options->runs, options->seed, error));
  for (uint32_t d = 0; d < planning->machine.device_count; ++d) {
    if (planning->machine.devices[d].space == 0) continue;
    const clv__device *device = &planning->devices->items[d];
    clv_status status = options->asks_models
                            ? clv__model_device_copies(tables, device, most_bytes, error)
                            : clv__measure_device_copies(tables, m.allocator, device, most_bytes, options->runs, error);
    if (status != CLV_OK) return clv__error_prefix(error, status, "copies of %s", planning->machine.devices[d].name);
  }
  CLV__TRY(clv__tables_fit(tables, error));
  if (!options->asks_models) CLV__TRY(clv__measure_threads(tables, planning->machine.device_count, options->runs, error));
  if (options->only_copies) return CLV_OK;
  if (!options->asks_models) CLV__TRY(clv__measure_switches(planning, options, tables, error));
  CLV__TRY(measure_blocks(&m, true, error));
  CLV__TRY(measure_blocks(&m, false, error));
  return clv__tables_fit(tables, error);
}
