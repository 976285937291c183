/* Fits tables to their points, and gives times only for sizes that the points cover. See tables.h. */
#include "gnn/tables/tables.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LEFT_OUT = 512 }; /* up to this many points, each is left out in turn; of more points, only a sample */

static int compare_points(const void *a, const void *b) {
  const clv__table_point *x = a, *y = b;
  if (x->n != y->n) return (x->n > y->n) - (x->n < y->n);
  if (x->m != y->m) return (x->m > y->m) - (x->m < y->m);
  return (clv__table_targets(x) > clv__table_targets(y)) - (clv__table_targets(x) < clv__table_targets(y));
}

static int compare_copy_points(const void *a, const void *b) {
  const clv__copy_point *x = a, *y = b;
  return (x->size_bytes > y->size_bytes) - (x->size_bytes < y->size_bytes);
}

static int compare_tables(const void *a, const void *b) {
  const clv__block_table *x = a, *y = b;
  int order = strcmp(x->device, y->device);
  if (order == 0) order = strcmp(x->layer, y->layer);
  if (order == 0) order = (x->first > y->first) - (x->first < y->first);
  return order != 0 ? order : (x->last > y->last) - (x->last < y->last);
}

static int compare_copies(const void *a, const void *b) {
  const clv__copy_table *x = a, *y = b;
  int order = strcmp(x->from, y->from);
  return order != 0 ? order : strcmp(x->to, y->to);
}

static int compare_reals(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Fits the points. Cross-validates by leaving out each point in turn and predicting it from the others. `spreads` are the
 * points' relative spreads. */
static clv__table_fit fit_points(const clv__fit_point *points, uint32_t count, double *spreads) {
  clv__fit whole, part;
  clv__table_fit fit = {.points = count};
  double errors[MOST_LEFT_OUT];
  fit.is_good = clv__fit_points(points, count, &whole);
  fit.base = whole.base_ns, fit.per_n = whole.per_flop_ns, fit.per_m = whole.per_byte_ns, fit.per_target = whole.per_other_ns;
  uint32_t left_out = 0, step = count / MOST_LEFT_OUT + 1;
  clv__fit_point *others = (clv__fit_point *)points; /* the loop changes the array and restores it */
  for (uint32_t p = 0; p < count && left_out < MOST_LEFT_OUT; p += step) {
    clv__fit_point left = others[p];
    others[p] = others[count - 1];
    /* With four points and three unknowns, the other three points would determine the fit exactly. */
    bool made = count > 4 && (clv__fit_points(others, count - 1, &part), part.points == count - 1);
    others[p] = left;
    if (!made || left.time_ns <= 0) continue;
    double predicted =
        part.base_ns + part.per_flop_ns * left.flops + part.per_byte_ns * left.bytes + part.per_other_ns * left.other;
    errors[left_out++] = fabs(predicted - left.time_ns) / left.time_ns;
  }
  if (left_out > 0) {
    qsort(errors, left_out, sizeof *errors, compare_reals);
    fit.error = errors[left_out / 2], fit.worst_error = errors[left_out - 1];
  } else {
    fit.error = fit.worst_error = whole.error;
  }
  if (count > 0) {
    qsort(spreads, count, sizeof *spreads, compare_reals);
    fit.spread = spreads[count / 2];
  }
  return fit;
}

static void widen(double value, double *least, double *most) {
  *least = fmin(*least, value), *most = fmax(*most, value);
}

/* Converts a point for fitting. The computed rows are a separate variable only if some point computes fewer rows than it
 * reads. */
static clv__fit_point fit_point_of(const clv__table_point *point, bool has_targets, double value) {
  return (clv__fit_point){(double)point->n, (double)point->m, value, has_targets ? (double)clv__table_targets(point) : 0};
}

/* Sorts the table's points and sets the table's other members from them. `points` and `spreads` are scratch memory with room
 * for all of its points. */
static void fit_table(clv__block_table *table, clv__fit_point *points, double *spreads) {
  uint32_t count = 0, peaks = 0;
  bool has_targets = false;
  table->least_n = table->least_m = table->least_density = INFINITY;
  table->most_n = table->most_m = table->most_density = -INFINITY;
  table->origin = CLV__MEASURED;
  table->first_infeasible = table->end_infeasible = 0;
  qsort(table->points, table->point_count, sizeof *table->points, compare_points);
  for (uint32_t p = 0; p < table->point_count; ++p)
    has_targets = has_targets || (!table->points[p].infeasible && clv__table_targets(&table->points[p]) < table->points[p].n);
  for (uint32_t p = 0; p < table->point_count; ++p) {
    const clv__table_point *point = &table->points[p];
    if (point->origin > table->origin) table->origin = point->origin;
    if (point->infeasible) {
      if (table->end_infeasible == 0) table->first_infeasible = p;
      table->end_infeasible = p + 1;
      continue;
    }
    spreads[count] = point->time_ns > 0 ? point->spread_ns / point->time_ns : 0;
    points[count++] = fit_point_of(point, has_targets, point->time_ns);
    widen((double)point->n, &table->least_n, &table->most_n);
    widen((double)point->m, &table->least_m, &table->most_m);
    widen(point->n > 0 ? (double)point->m / (double)point->n : 0, &table->least_density, &table->most_density);
  }
  table->time = fit_points(points, count, spreads);
  for (uint32_t p = 0; p < table->point_count; ++p) {
    const clv__table_point *point = &table->points[p];
    if (point->infeasible || point->peak_bytes == 0) continue;
    spreads[peaks] = 0;
    points[peaks++] = fit_point_of(point, has_targets, (double)point->peak_bytes);
  }
  table->peak = fit_points(points, peaks, spreads);
  uint32_t compiled = 0;
  for (uint32_t p = 0; p < table->point_count; ++p) {
    if (table->points[p].compile_ns > 0) spreads[compiled++] = table->points[p].compile_ns;
  }
  if (compiled > 1) qsort(spreads, compiled, sizeof *spreads, compare_reals);
  table->compile_ns = compiled > 0 ? spreads[compiled / 2] : 0;
}

static void fit_copy(clv__copy_table *table, clv__fit_point *points, double *spreads) {
  table->origin = CLV__MEASURED;
  qsort(table->points, table->point_count, sizeof *table->points, compare_copy_points);
  for (uint32_t p = 0; p < table->point_count; ++p) {
    const clv__copy_point *point = &table->points[p];
    if (point->origin > table->origin) table->origin = point->origin;
    spreads[p] = point->time_ns > 0 ? point->spread_ns / point->time_ns : 0;
    points[p] = (clv__fit_point){.flops = (double)point->size_bytes, .time_ns = point->time_ns};
  }
  for (uint32_t p = 0; p < table->point_count; ++p) {
    clv__copy_point *point = &table->points[p];
    point->smooth_ns = point->time_ns;
    for (uint32_t q = p + 1; q < table->point_count; ++q) point->smooth_ns = fmin(point->smooth_ns, table->points[q].time_ns);
  }
  table->time = fit_points(points, table->point_count, spreads);
}

clv_status clv__tables_fit(clv__tables *tables, clv_error *error) {
  const clv_allocator *allocator = tables->arena.allocator;
  uint32_t most = 1;
  for (uint32_t t = 0; t < tables->table_count; ++t)
    most = tables->tables[t].point_count > most ? tables->tables[t].point_count : most;
  for (uint32_t c = 0; c < tables->copy_count; ++c)
    most = tables->copies[c].point_count > most ? tables->copies[c].point_count : most;
  clv__fit_point *points = clv__allocate(allocator, most * sizeof *points);
  double *spreads = clv__allocate(allocator, most * sizeof *spreads);
  if (points != NULL && spreads != NULL) {
    if (tables->table_count > 1) qsort(tables->tables, tables->table_count, sizeof *tables->tables, compare_tables);
    if (tables->copy_count > 1) qsort(tables->copies, tables->copy_count, sizeof *tables->copies, compare_copies);
    for (uint32_t t = 0; t < tables->table_count; ++t) fit_table(&tables->tables[t], points, spreads);
    for (uint32_t c = 0; c < tables->copy_count; ++c) fit_copy(&tables->copies[c], points, spreads);
  }
  clv_status status = points != NULL && spreads != NULL ? CLV_OK : clv__error_memory(error, most * sizeof *points);
  clv__release(allocator, spreads);
  clv__release(allocator, points);
  return status;
}

/* ---- Lookup ---- */

static bool is_within(double value, double least, double most) {
  return value >= least * (1 - CLV__TABLE_TOLERANCE) && value <= most * (1 + CLV__TABLE_TOLERANCE);
}

clv__known clv__table_time(const clv__block_table *table, uint64_t n, uint64_t m, uint64_t targets, double *time_ns) {
  double rows = (double)n, edges = (double)m;
  for (uint32_t p = table->first_infeasible; p < table->end_infeasible; ++p) {
    const clv__table_point *point = &table->points[p];
    if (point->n > n) break; /* the points are sorted by n, so no later point is smaller */
    if (point->infeasible && point->m <= m) return CLV__INFEASIBLE;
  }
  if (!table->time.is_good || n == 0) return CLV__UNKNOWN;
  if (!is_within(rows, table->least_n, table->most_n) || !is_within(edges, table->least_m, table->most_m) ||
      !is_within(edges / rows, table->least_density, table->most_density))
    return CLV__UNKNOWN;
  *time_ns = table->time.base + table->time.per_n * rows + table->time.per_m * edges + table->time.per_target * (double)targets;
  return CLV__KNOWN;
}

uint64_t clv__table_peak(const clv__block_table *table, uint64_t n, uint64_t m, uint64_t targets) {
  double peak =
      table->peak.base + table->peak.per_n * (double)n + table->peak.per_m * (double)m + table->peak.per_target * (double)targets;
  return table->peak.is_good ? (uint64_t)peak : 0;
}

bool clv__copy_table_time(const clv__copy_table *table, uint64_t size_bytes, double *time_ns) {
  *time_ns = 0;
  if (size_bytes == 0) return true;
  if (table->point_count < 2) return false;
  const clv__copy_point *points = table->points, *last = &points[table->point_count - 1];
  double bytes = (double)size_bytes;
  if (bytes > (double)last->size_bytes * (1 + CLV__TABLE_TOLERANCE)) return false;
  uint32_t low = 0,
           high = table->point_count - 1; /* points[low] is not larger and points[high] is larger, if such points exist */
  if (size_bytes <= points[0].size_bytes) high = 0;
  while (high > low + 1) {
    uint32_t middle = low + (high - low) / 2;
    if (points[middle].size_bytes <= size_bytes)
      low = middle;
    else
      high = middle;
  }
  if (size_bytes >= last->size_bytes) low = high;
  double from = (double)points[low].size_bytes, to = (double)points[high].size_bytes;
  double part = high > low ? (bytes - from) / (to - from) : 0;
  *time_ns = points[low].smooth_ns + part * (points[high].smooth_ns - points[low].smooth_ns);
  return true;
}

void clv__table_fit_reason(const clv__block_table *table, char *reason, size_t room) {
  static const double varying = 0.1; /* a spread from which on the measurements are the likely cause */
  const clv__table_fit *fit = &table->time;
  const char *advice = fit->spread > varying ? "measure again on an idle machine" : "measure more sizes (--kset, --seconds)";
  reason[0] = '\0';
  if (!fit->is_good && table->point_count > 0 && fit->points == 0)
    snprintf(reason, room, "every size ran out of memory");
  else if (!fit->is_good && fit->points < CLV__FIT_LEAST_POINTS)
    snprintf(reason, room, "%u size%s measured, at least %d are needed: measure more sizes (--kset, --seconds)", fit->points,
             fit->points == 1 ? " was" : "s were", CLV__FIT_LEAST_POINTS);
  else if (!fit->is_good)
    snprintf(reason, room,
             "a fit is off by %.0f %% at the median, %.0f %% are allowed; repeated measurements vary by %.0f %%: %s",
             100 * fit->error, 100 * CLV__FIT_WORST_ERROR, 100 * fit->spread, advice);
  else if (fit->worst_error > CLV__TABLE_LARGE_ERROR)
    snprintf(reason, room,
             "off by %.0f %% at one of %u sizes when that size is left out; repeated measurements vary by %.0f %%: %s",
             100 * fit->worst_error, fit->points, 100 * fit->spread, advice);
}

void clv__table_reason(const clv__block_table *table, uint64_t n, uint64_t m, char *reason, size_t room) {
  double time;
  clv__known known = clv__table_time(table, n, m, n, &time);
  if (known == CLV__INFEASIBLE)
    snprintf(reason, room, "n %llu, m %llu: at least as large as a size that ran out of memory", (unsigned long long)n,
             (unsigned long long)m);
  else if (known == CLV__KNOWN)
    snprintf(reason, room, "the block was measured, but its inputs or outputs are larger than any measured copy or packing");
  else if (!table->time.is_good)
    clv__table_fit_reason(table, reason, room);
  else
    snprintf(reason, room,
             "n %llu, m %llu is outside the measured range, n %.0f to %.0f, m %.0f to %.0f, m/n %.3g to %.3g: measure this size",
             (unsigned long long)n, (unsigned long long)m, table->least_n, table->most_n, table->least_m, table->most_m,
             table->least_density, table->most_density);
}
