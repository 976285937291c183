/* See synthetic.h. */
#include "gnn/tables/synthetic.h"
#include "base/random.h"

#include <math.h>
#include <string.h>

static double scatter(uint64_t *state) {
  return 1 + 0.02 * (2 * clv__random_real(state) - 1);
}

/* Bytes per row and per edge that a block reads and computes. Each edge along which a row is gathered also counts the bytes of
 * a row. */
static void traffic(const clv__chain *chain, uint32_t first, uint32_t last, double *row, double *edge) {
  const clv__chain_block *block = &chain->blocks[first][last];
  const clv__size_rule *given = &block->given[0], *made = &block->made[0], *out = &block->out;
  *row = given->row + given->target + made->row + made->target + out->row + out->target;
  *edge = given->edge + made->edge + out->edge;
  for (uint32_t s = first; s < last; ++s) {
    if (chain->stages[s] == CLV__STAGE_GATHER || chain->stages[s] == CLV__STAGE_GATHER_BOTH) *edge += given->row + made->row;
  }
}

/* Operations per row of the transform, 0 if the block has none: a multiplication and an addition for each pair of a column read
 * and a column computed, once for the vertex and once for the mean of its neighbours. */
static double operations(const clv__chain *chain, uint32_t first, uint32_t last) {
  uint32_t at = chain->stage_count;
  for (uint32_t s = first; s < last; ++s) at = chain->stages[s] == CLV__STAGE_TRANSFORM ? s : at;
  if (at == chain->stage_count) return 0;
  const clv__chain_block *whole = &chain->blocks[0][chain->stage_count];
  double in = fmax(whole->given[0].row, whole->given[0].target) / 4, out = whole->out.target / 4;
  return 4 * in * out;
}

static clv_status put(clv__tables *tables, const clv__synthetic_options *options, const clv__synthetic_device *device,
                      const clv__chain *chain, uint32_t first, uint32_t last, const clv__table_fit *fit, uint64_t *state,
                      clv_error *error) {
  static const double parts[] = {0.0005, 0.002, 0.01, 0.04, 0.15, 0.5, 1}, densities[] = {0, 0.05, 0.2, 0.5, 1};
  const clv__chain_block *block = &chain->blocks[first][last];
  double row, edge, their_row, their_edge, flops = options->device_count > 0 ? device->flops_per_second : 1;
  traffic(chain, first, last, &row, &edge);
  traffic(chain, device->first, device->last, &their_row, &their_edge);
  double theirs = operations(chain, device->first, device->last) * 1e9 / flops;
  double per_row = fmax(fit->per_n - theirs, 0.1 * fit->per_n) * row / fmax(their_row, 1);
  double per_edge = their_edge > 0 ? fit->per_m * edge / their_edge : fit->per_n * edge / fmax(their_row, 1);
  per_row += operations(chain, first, last) * 1e9 / flops;
  for (uint32_t i = 0; i < sizeof parts / sizeof *parts; ++i) {
    for (uint32_t k = 0; k < (block->reads_edges ? sizeof densities / sizeof *densities : 1); ++k) {
      clv__table_point point = {.n = (uint64_t)fmax(1, parts[i] * (double)options->most_rows), .origin = CLV__SYNTHETIC};
      point.m = (uint64_t)(densities[k] * options->most_density * (double)point.n);
      point.time_ns = (fit->base + per_row * (double)point.n + per_edge * (double)point.m) * scatter(state);
      CLV__TRY(clv__tables_put(tables, device->device, chain->layer, first, last, &point, error));
    }
  }
  return CLV_OK;
}

/* Adds points like those of the measured block, in the ranges that it lacks: fewer rows, fewer edges per row. */
static clv_status put_beside(clv__tables *tables, const clv__synthetic_options *options, const clv__block_table *measured,
                             uint64_t *state, clv_error *error) {
  static const double parts[] = {0.0005, 0.01, 0.1, 0.4, 1}, densities[] = {0, 0.1, 0.5};
  clv__table_fit fit = measured->time;
  const char *device = measured->device, *layer = measured->layer;
  uint32_t first = measured->first, last = measured->last;
  bool has_edges = measured->most_m > 0;
  double density = fmin(measured->least_density, options->most_density);
  for (uint32_t i = 0; i < sizeof parts / sizeof *parts; ++i) {
    for (uint32_t k = 0; k < (has_edges ? sizeof densities / sizeof *densities : 1); ++k) {
      clv__table_point point = {.n = (uint64_t)fmax(1, parts[i] * (double)options->most_rows), .origin = CLV__SYNTHETIC};
      point.m = has_edges ? (uint64_t)(densities[k] * density * (double)point.n) : 0;
      point.time_ns = (fit.base + fit.per_n * (double)point.n + fit.per_m * (double)point.m) * scatter(state);
      CLV__TRY(clv__tables_put(tables, device, layer, first, last, &point, error));
    }
  }
  return CLV_OK;
}

static clv_status put_infeasible(clv__tables *tables, const clv__table_point *points, uint32_t count, const char *device,
                                 const char *layer, uint32_t first, uint32_t last, clv_error *error) {
  for (uint32_t p = 0; p < count; ++p) {
    if (!points[p].infeasible) continue;
    clv__table_point point = points[p];
    point.origin = CLV__SYNTHETIC;
    CLV__TRY(clv__tables_put(tables, device, layer, first, last, &point, error));
  }
  return CLV_OK;
}

static clv_status complete_device(clv__tables *tables, const clv__machine_device *device, const clv__chain *chain,
                                  const clv__synthetic_options *options, const clv__synthetic_device *assumed, uint64_t *state,
                                  clv_error *error) {
  const clv__block_table *found = clv__tables_find(tables, assumed->device, chain->layer, assumed->first, assumed->last);
  if (found == NULL || !found->time.is_good)
    return clv__error_set(error, CLV_NOT_FOUND, "%s: the costs of stages %u to %u of layer %s are missing, or have no good fit",
                          assumed->device, assumed->first, assumed->last, chain->layer);
  clv__block_table measured = *found; /* a copy, because adding tables may move `found`; its array of points stays valid until
                                         put_beside() adds points to it, at the end */
  for (uint32_t first = 0; first < chain->stage_count; ++first) {
    for (uint32_t last = first + 1; last <= chain->stage_count; ++last) {
      bool runs = !chain->blocks[first][last].is_empty;
      for (uint32_t s = first; s < last; ++s) runs = runs && (device->cannot >> chain->stages[s] & 1u) == 0;
      if (!runs || clv__tables_find(tables, assumed->device, chain->layer, first, last) != NULL) continue;
      CLV__TRY(put(tables, options, assumed, chain, first, last, &measured.time, state, error));
      if (chain->blocks[first][last].reads_edges)
        CLV__TRY(
            put_infeasible(tables, measured.points, measured.point_count, assumed->device, chain->layer, first, last, error));
    }
  }
  return put_beside(tables, options, &measured, state, error);
}

static clv_status complete_copies(clv__tables *tables, const char *from, const char *to, double base_ns, double rate,
                                  uint64_t *state, clv_error *error) {
  if (clv__tables_find_copy(tables, from, to) != NULL) return CLV_OK;
  for (uint64_t bytes = 1024; bytes <= (uint64_t)1 << 36; bytes *= 16) {
    clv__copy_point point = {.size_bytes = bytes, .origin = CLV__SYNTHETIC};
    point.time_ns = (base_ns + (double)bytes * 1e9 / rate) * scatter(state);
    CLV__TRY(clv__tables_put_copy(tables, from, to, &point, error));
  }
  return CLV_OK;
}

clv_status clv__tables_complete(clv__tables *tables, const clv__machine *machine, const clv__chain *chain,
                                const clv__synthetic_options *options, clv_error *error) {
  uint64_t state = options->seed;
  CLV__TRY(complete_copies(tables, CLV__TABLE_HOST, CLV__TABLE_HOST, 1000, options->pack_bytes_per_second, &state, error));
  for (uint32_t d = 0; d < machine->device_count; ++d) {
    const clv__machine_device *device = &machine->devices[d];
    for (uint32_t i = 0; i < options->device_count; ++i) {
      if (strcmp(options->devices[i].device, device->name) != 0) continue;
      CLV__TRY(complete_device(tables, device, chain, options, &options->devices[i], &state, error));
    }
    if (device->space == 0) continue;
    double rate = options->copy_bytes_per_second, base_ns = options->copy_base_ns;
    CLV__TRY(complete_copies(tables, CLV__TABLE_HOST, device->name, base_ns, rate, &state, error));
    CLV__TRY(complete_copies(tables, device->name, CLV__TABLE_HOST, base_ns, rate, &state, error));
  }
  return clv__tables_fit(tables, error);
}
