/* See fit.h. A fit has three or four unknowns. The best non-negative solution is found by solving every subset of the unknowns
 * and keeping the best solution without negative values. */
#include "cost/fit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cost/signature.h"

enum { LEAST_EDGES = 2, FAMILY_BYTES = 96, UNKNOWNS = 4 };
#define SMALLEST_NS 1000.0 /* added to times before dividing by them: smaller differences are noise */

/* ---- One fit ---- */

/* Solves the normal equations of the unknowns in `mask`; false if the equations are singular. */
static bool solve_subset(double square[UNKNOWNS][UNKNOWNS], const double right[UNKNOWNS], unsigned mask,
                         double solution[UNKNOWNS]) {
  double a[UNKNOWNS][UNKNOWNS + 1];
  int unknowns[UNKNOWNS], count = 0;
  for (int i = 0; i < UNKNOWNS; ++i) {
    solution[i] = 0;
    if ((mask >> i & 1u) != 0) unknowns[count++] = i;
  }
  for (int i = 0; i < count; ++i) {
    for (int k = 0; k < count; ++k) a[i][k] = square[unknowns[i]][unknowns[k]];
    a[i][count] = right[unknowns[i]];
  }
  for (int i = 0; i < count; ++i) {
    int pivot = i;
    for (int k = i + 1; k < count; ++k) pivot = fabs(a[k][i]) > fabs(a[pivot][i]) ? k : pivot;
    if (!(fabs(a[pivot][i]) > 1e-9)) return false; /* singular; the columns are scaled so that entries are about 1 */
    for (int c = 0; c <= count; ++c) {
      double swap = a[i][c];
      a[i][c] = a[pivot][c], a[pivot][c] = swap;
    }
    for (int k = 0; k < count; ++k) {
      if (k == i) continue;
      double factor = a[k][i] / a[i][i];
      for (int c = i; c <= count; ++c) a[k][c] -= factor * a[i][c];
    }
  }
  for (int i = 0; i < count; ++i) {
    solution[unknowns[i]] = a[i][count] / a[i][i];
    if (!(solution[unknowns[i]] >= 0)) return false;
  }
  return true;
}

static int compare_reals(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double predict(const clv__fit *fit, double flops, double bytes, double other) {
  return fit->base_ns + fit->per_flop_ns * flops + fit->per_byte_ns * bytes + fit->per_other_ns * other;
}

static double median_error(const clv__fit_point *points, uint32_t count, const clv__fit *fit) {
  double few[256];
  uint32_t used = count < 256 ? count : 256; /* the points to use: all, or 256 at equal distances */
  for (uint32_t i = 0; i < used; ++i) {
    const clv__fit_point *point = &points[(size_t)i * count / used];
    few[i] = fabs(predict(fit, point->flops, point->bytes, point->other) - point->time_ns) / (point->time_ns + SMALLEST_NS);
  }
  qsort(few, used, sizeof *few, compare_reals);
  return few[used / 2];
}

static void set_domain(const clv__fit_point *points, uint32_t count, clv__fit *fit) {
  fit->least_flops = fit->most_flops = points[0].flops;
  fit->least_bytes = fit->most_bytes = points[0].bytes;
  for (uint32_t i = 1; i < count; ++i) {
    fit->least_flops = fmin(fit->least_flops, points[i].flops), fit->most_flops = fmax(fit->most_flops, points[i].flops);
    fit->least_bytes = fmin(fit->least_bytes, points[i].bytes), fit->most_bytes = fmax(fit->most_bytes, points[i].bytes);
  }
}

bool clv__fit_points(const clv__fit_point *points, uint32_t count, clv__fit *fit) {
  *fit = (clv__fit){.points = count};
  if (count < CLV__FIT_LEAST_POINTS) return false;
  set_domain(points, count, fit);
  double scales[UNKNOWNS] = {SMALLEST_NS}, square[UNKNOWNS][UNKNOWNS] = {{0}}, right[UNKNOWNS] = {0}, best = INFINITY, most = 0;
  for (uint32_t p = 0; p < count; ++p) most = fmax(most, points[p].other);
  scales[1] = fit->most_flops > 0 ? 1e3 * SMALLEST_NS / fit->most_flops : 0;
  scales[2] = fit->most_bytes > 0 ? 1e3 * SMALLEST_NS / fit->most_bytes : 0;
  scales[3] = most > 0 ? 1e3 * SMALLEST_NS / most : 0;
  for (uint32_t p = 0; p < count; ++p) {
    double weight = 1 / (points[p].time_ns + SMALLEST_NS);
    double row[UNKNOWNS] = {scales[0] * weight, points[p].flops * scales[1] * weight, points[p].bytes * scales[2] * weight,
                            points[p].other * scales[3] * weight};
    for (int i = 0; i < UNKNOWNS; ++i) {
      for (int k = 0; k < UNKNOWNS; ++k) square[i][k] += row[i] * row[k];
      right[i] += row[i] * points[p].time_ns * weight;
    }
  }
  for (unsigned mask = 0; mask < (most > 0 ? 1u << UNKNOWNS : 8u); ++mask) {
    double solution[UNKNOWNS], value = 0; /* the sum of squared errors minus a constant */
    if (!solve_subset(square, right, mask, solution)) continue;
    for (int i = 0; i < UNKNOWNS; ++i) {
      value -= 2 * solution[i] * right[i];
      for (int k = 0; k < UNKNOWNS; ++k) value += solution[i] * solution[k] * square[i][k];
    }
    if (!(value < best)) continue;
    best = value;
    fit->base_ns = solution[0] * scales[0];
    fit->per_flop_ns = solution[1] * scales[1];
    fit->per_byte_ns = solution[2] * scales[2];
    fit->per_other_ns = solution[3] * scales[3];
  }
  fit->error = median_error(points, count, fit);
  return fit->error <= CLV__FIT_WORST_ERROR;
}

bool clv__fit_time(const clv__fit *fit, double flops, double bytes, double *time_ns) {
  if (flops < fit->least_flops || flops > fit->most_flops || bytes < fit->least_bytes || bytes > fit->most_bytes) return false;
  *time_ns = predict(fit, flops, bytes, 0);
  return true;
}

/* ---- All fits of a device ---- */

/* Samples collected under one name: points of a family, or rates of a pair of families. */
typedef struct group {
  const char *name;
  uint32_t count, offset;
  clv__fit fit;
  bool is_good;
  double rate;
} group;

struct clv__fits {
  clv__arena arena;
  clv__map families, pairs;
  group *family_groups, *pair_groups;
};

/* Returns the index of the group called `name`. Creates the group on first use. CLV__MAP_NONE if memory runs out. */
static uint32_t group_of(clv__fits *fits, clv__map *map, group *groups, const char *name) {
  uint32_t found = clv__map_find(map, name);
  if (found != CLV__MAP_NONE) return found;
  found = map->count;
  char *copy = clv__arena_string(&fits->arena, name, strlen(name));
  if (copy == NULL || !clv__map_set(map, copy, found)) return CLV__MAP_NONE;
  groups[found].name = copy;
  return found;
}

static uint32_t place_groups(group *groups, uint32_t count) {
  uint32_t at = 0;
  for (uint32_t g = 0; g < count; ++g) {
    groups[g].offset = at;
    at += groups[g].count;
    groups[g].count = 0;
  }
  return at;
}

/* The time of a node inside a partition. If it is not known: the time of the node alone minus the device's launch, but not
 * below 0. False if neither time is known. */
static bool known_time(const clv__profile_device *tables, const clv__profile_operator *entry, double *time_ns) {
  uint64_t launch = tables->launch.time_ns;
  if (entry->infeasible || (!entry->has_within && entry->alone.runs == 0)) return false;
  *time_ns = (double)(entry->has_within ? entry->within_ns : entry->alone.time_ns > launch ? entry->alone.time_ns - launch : 0);
  return true;
}

static bool fit_families(clv__fits *fits, const clv__profile_device *tables, uint32_t *groups) {
  double time;
  for (uint32_t i = 0; i < tables->operator_count; ++i) {
    if (known_time(tables, &tables->operators[i], &time)) ++fits->family_groups[groups[i]].count;
  }
  uint32_t total = place_groups(fits->family_groups, fits->families.count);
  clv__fit_point *points = clv__allocate(fits->arena.allocator, total * sizeof *points);
  if (points == NULL) return false;
  for (uint32_t i = 0; i < tables->operator_count; ++i) {
    const clv__profile_operator *entry = &tables->operators[i];
    group *g = &fits->family_groups[groups[i]];
    if (known_time(tables, entry, &time)) points[g->offset + g->count++] = (clv__fit_point){entry->flops, entry->bytes, time, 0};
  }
  for (uint32_t k = 0; k < fits->families.count; ++k) {
    group *g = &fits->family_groups[k];
    g->is_good = clv__fit_points(points + g->offset, g->count, &g->fit);
  }
  clv__release(fits->arena.allocator, points);
  return true;
}

static void pair_name(char *name, size_t room, const char *producer, const char *consumer) {
  snprintf(name, room, "%s>%s", producer, consumer);
}

/* Groups the edges by the families of their two nodes. The rate of a group is the median of saving / bytes over its edges. */
static bool rate_pairs(clv__fits *fits, const clv__profile_device *tables, const uint32_t *groups) {
  char name[2 * FAMILY_BYTES + 2];
  uint32_t *of = clv__allocate(fits->arena.allocator, (size_t)tables->saving_count * sizeof *of);
  double *rates = clv__allocate(fits->arena.allocator, (size_t)tables->saving_count * sizeof *rates);
  bool good = of != NULL && rates != NULL;
  for (uint32_t i = 0; i < tables->saving_count && good; ++i) {
    const clv__profile_saving *saving = &tables->savings[i];
    pair_name(name, sizeof name, fits->family_groups[groups[saving->producer]].name,
              fits->family_groups[groups[saving->consumer]].name);
    of[i] = group_of(fits, &fits->pairs, fits->pair_groups, name);
    good = of[i] != CLV__MAP_NONE;
    if (good) ++fits->pair_groups[of[i]].count;
  }
  if (good) place_groups(fits->pair_groups, fits->pairs.count);
  for (uint32_t i = 0; i < tables->saving_count && good; ++i) {
    group *g = &fits->pair_groups[of[i]];
    double bytes = tables->savings[i].bytes;
    rates[g->offset + g->count++] = bytes > 0 ? (double)tables->savings[i].saving_ns / bytes : 0;
  }
  for (uint32_t k = 0; k < fits->pairs.count && good; ++k) {
    group *g = &fits->pair_groups[k];
    qsort(rates + g->offset, g->count, sizeof *rates, compare_reals);
    if (g->count >= LEAST_EDGES) g->rate = rates[g->offset + g->count / 2];
  }
  clv__release(fits->arena.allocator, of);
  clv__release(fits->arena.allocator, rates);
  return good;
}

clv_status clv__fits_create(const clv__profile_device *tables, const clv_allocator *allocator, clv__fits **out,
                            clv_error *error) {
  *out = NULL;
  clv__fits *fits = clv__allocate_zero(allocator, sizeof *fits);
  if (fits == NULL) return clv__error_memory(error, sizeof *fits);
  clv__arena_init(&fits->arena, allocator);
  clv__map_init(&fits->families, allocator);
  clv__map_init(&fits->pairs, allocator);
  fits->family_groups = clv__arena_allocate_zero(&fits->arena, tables->operator_count, sizeof *fits->family_groups);
  fits->pair_groups = clv__arena_allocate_zero(&fits->arena, tables->saving_count, sizeof *fits->pair_groups);
  uint32_t *groups = clv__arena_allocate_zero(&fits->arena, tables->operator_count, sizeof *groups);
  bool good = fits->family_groups != NULL && fits->pair_groups != NULL && groups != NULL;
  for (uint32_t i = 0; i < tables->operator_count && good; ++i) {
    char family[FAMILY_BYTES];
    clv__signature_family(tables->operators[i].signature, family, sizeof family);
    groups[i] = group_of(fits, &fits->families, fits->family_groups, family);
    good = groups[i] != CLV__MAP_NONE;
  }
  if (good && fit_families(fits, tables, groups) && rate_pairs(fits, tables, groups)) {
    *out = fits;
    return CLV_OK;
  }
  clv__fits_destroy(fits);
  return clv__error_memory(error, (size_t)tables->operator_count * sizeof(group));
}

void clv__fits_destroy(clv__fits *fits) {
  if (fits == NULL) return;
  const clv_allocator *allocator = fits->arena.allocator;
  clv__map_finish(&fits->families);
  clv__map_finish(&fits->pairs);
  clv__arena_finish(&fits->arena);
  clv__release(allocator, fits);
}

const clv__fit *clv__fits_find(const clv__fits *fits, const char *family) {
  uint32_t found = clv__map_find(&fits->families, family);
  return found == CLV__MAP_NONE || !fits->family_groups[found].is_good ? NULL : &fits->family_groups[found].fit;
}

double clv__fits_saving_rate(const clv__fits *fits, const char *producer, const char *consumer) {
  char name[2 * FAMILY_BYTES + 2];
  pair_name(name, sizeof name, producer, consumer);
  uint32_t found = clv__map_find(&fits->pairs, name);
  return found == CLV__MAP_NONE ? 0 : fits->pair_groups[found].rate;
}

/* ---- Copies ---- */

/* The isotonic regression at point `at`: the maximum over starts <= at of the minimum over ends >= at of the mean between
 * them. This is slow for many points, but a list has only a few. */
static double isotonic(const clv__profile_copy *copies, uint32_t count, uint32_t at) {
  double most = 0;
  for (uint32_t from = 0; from <= at; ++from) {
    double sum = 0, least = INFINITY;
    for (uint32_t to = from; to < count; ++to) {
      sum += (double)copies[to].time.time_ns;
      if (to >= at) least = fmin(least, sum / (to - from + 1));
    }
    most = fmax(most, least);
  }
  return most;
}

double clv__copy_time(const clv__profile_copy *copies, uint32_t count, uint64_t size_bytes) {
  uint32_t above = 0;
  if (count == 0) return 0;
  while (above < count && copies[above].size_bytes < size_bytes) ++above;
  if (above == 0) return isotonic(copies, count, 0);
  if (count == 1) { /* attribute all time to bandwidth: an estimate that is too high does less harm than one that is too low */
    double per_byte = copies[0].size_bytes > 0 ? (double)copies[0].time.time_ns / (double)copies[0].size_bytes : 0;
    return fmax((double)copies[0].time.time_ns, per_byte * (double)size_bytes);
  }
  uint32_t right = above < count ? above : count - 1, left = right - 1;
  double low = isotonic(copies, count, left), high = isotonic(copies, count, right);
  double slope = (high - low) / (double)(copies[right].size_bytes - copies[left].size_bytes);
  return low + slope * (double)(size_bytes - copies[left].size_bytes);
}
