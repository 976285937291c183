/* Stores points, devices and overheads by name. fit.c fits them. See tables.h. */
#include "gnn/tables/tables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST_TIME_NS 1e18
#define LARGEST_SIZE ((uint64_t)1 << 52) /* a double represents it exactly */

const char *clv__table_origin_name(clv__table_origin origin) {
  static const char *const names[] = {"measured", "imported", "synthetic", "nominal"};
  return names[origin];
}

void clv__tables_init(clv__tables *tables, const clv_allocator *allocator) {
  *tables = (clv__tables){0};
  clv__arena_init(&tables->arena, allocator);
}

void clv__tables_finish(clv__tables *tables) {
  const clv_allocator *allocator = tables->arena.allocator;
  for (uint32_t t = 0; t < tables->table_count; ++t) clv__release(allocator, tables->tables[t].points);
  for (uint32_t c = 0; c < tables->copy_count; ++c) clv__release(allocator, tables->copies[c].points);
  clv__release(allocator, tables->tables);
  clv__release(allocator, tables->copies);
  clv__release(allocator, tables->devices);
  clv__release(allocator, tables->overheads);
  clv__arena_finish(&tables->arena);
  *tables = (clv__tables){0};
}

/* ---- Points ---- */

static clv__block_table *find_table(const clv__tables *tables, const char *device, const char *layer, uint32_t first,
                                    uint32_t last) {
  for (uint32_t t = 0; t < tables->table_count; ++t) {
    clv__block_table *table = &tables->tables[t];
    if (table->first == first && table->last == last && strcmp(table->device, device) == 0 && strcmp(table->layer, layer) == 0)
      return table;
  }
  return NULL;
}

static clv__copy_table *find_copy(const clv__tables *tables, const char *from, const char *to) {
  for (uint32_t c = 0; c < tables->copy_count; ++c) {
    if (strcmp(tables->copies[c].from, from) == 0 && strcmp(tables->copies[c].to, to) == 0) return &tables->copies[c];
  }
  return NULL;
}

static char *own(clv__tables *tables, const char *text) {
  return clv__arena_string(&tables->arena, text, strlen(text));
}

static bool good_time(double time_ns, double spread_ns) {
  return time_ns >= 0 && time_ns <= LARGEST_TIME_NS && spread_ns >= 0 && spread_ns <= LARGEST_TIME_NS;
}

clv_status clv__tables_put(clv__tables *tables, const char *device, const char *layer, uint32_t first, uint32_t last,
                           const clv__table_point *point, clv_error *error) {
  const clv_allocator *allocator = tables->arena.allocator;
  if (first >= last || last > CLV__TABLE_STAGES)
    return clv__error_set(error, CLV_INVALID_ARGUMENT,
                          "%s: a block begins with stage %u and ends before stage %u; expected first < end <= %d", device, first,
                          last, CLV__TABLE_STAGES);
  if (point->n > LARGEST_SIZE || point->m > LARGEST_SIZE || point->peak_bytes > LARGEST_SIZE || point->targets > point->n ||
      (!point->infeasible && !good_time(point->time_ns, point->spread_ns)) || !good_time(point->compile_ns, 0))
    return clv__error_set(
        error, CLV_INVALID_ARGUMENT,
        "%s: invalid measurement of n %llu, m %llu, targets %llu, %g ns: n and m must be at most 2^52, targets at most n, and "
        "times from 0 to 1e18 ns",
        device, (unsigned long long)point->n, (unsigned long long)point->m, (unsigned long long)point->targets, point->time_ns);
  clv__block_table *table = find_table(tables, device, layer, first, last);
  if (table == NULL) {
    clv__block_table made = {.device = own(tables, device), .layer = own(tables, layer), .first = first, .last = last};
    if (made.device == NULL || made.layer == NULL ||
        !clv__array_reserve(allocator, (void **)&tables->tables, &tables->table_capacity, tables->table_count + 1u, sizeof made,
                            tables->table_count))
      return clv__error_memory(error, sizeof made);
    table = &tables->tables[tables->table_count++];
    *table = made;
  }
  for (uint32_t p = 0; p < table->point_count; ++p) {
    const clv__table_point *other = &table->points[p];
    if (other->n != point->n || other->m != point->m || clv__table_targets(other) != clv__table_targets(point)) continue;
    table->points[p] = *point;
    return CLV_OK;
  }
  if (!clv__array_reserve(allocator, (void **)&table->points, &table->capacity, table->point_count + 1u, sizeof *point,
                          table->point_count))
    return clv__error_memory(error, sizeof *point);
  table->points[table->point_count++] = *point;
  return CLV_OK;
}

clv_status clv__tables_put_copy(clv__tables *tables, const char *from, const char *to, const clv__copy_point *point,
                                clv_error *error) {
  const clv_allocator *allocator = tables->arena.allocator;
  if (point->size_bytes > LARGEST_SIZE || !good_time(point->time_ns, point->spread_ns))
    return clv__error_set(
        error, CLV_INVALID_ARGUMENT,
        "%s to %s: invalid measurement of %llu bytes, %g ns: expected at most 2^52 bytes, and times from 0 to 1e18 ns", from, to,
        (unsigned long long)point->size_bytes, point->time_ns);
  clv__copy_table *table = find_copy(tables, from, to);
  if (table == NULL) {
    clv__copy_table made = {.from = own(tables, from), .to = own(tables, to)};
    if (made.from == NULL || made.to == NULL ||
        !clv__array_reserve(allocator, (void **)&tables->copies, &tables->copy_capacity, tables->copy_count + 1u, sizeof made,
                            tables->copy_count))
      return clv__error_memory(error, sizeof made);
    table = &tables->copies[tables->copy_count++];
    *table = made;
  }
  for (uint32_t p = 0; p < table->point_count; ++p) {
    if (table->points[p].size_bytes != point->size_bytes) continue;
    table->points[p] = *point;
    return CLV_OK;
  }
  if (!clv__array_reserve(allocator, (void **)&table->points, &table->capacity, table->point_count + 1u, sizeof *point,
                          table->point_count))
    return clv__error_memory(error, sizeof *point);
  table->points[table->point_count++] = *point;
  return CLV_OK;
}

const clv__block_table *clv__tables_find(const clv__tables *tables, const char *device, const char *layer, uint32_t first,
                                         uint32_t last) {
  return find_table(tables, device, layer, first, last);
}

const clv__copy_table *clv__tables_find_copy(const clv__tables *tables, const char *from, const char *to) {
  return find_copy(tables, from, to);
}

/* ---- Devices ---- */

clv_status clv__tables_check_device(const clv__tables *tables, const char *name, const char *fingerprint, clv_error *error) {
  for (uint32_t d = 0; d < tables->device_count; ++d) {
    const clv__tables_device *device = &tables->devices[d];
    if (strcmp(device->name, name) == 0 && strcmp(device->fingerprint, fingerprint) != 0)
      return clv__error_set(
          error, CLV_INVALID_ARGUMENT,
          "%s is '%s' here, but was '%s' when it was measured: measure it here with 'cleave gnn profile', into another file",
          name, fingerprint, device->fingerprint);
  }
  return CLV_OK;
}

clv_status clv__tables_put_device(clv__tables *tables, const char *name, const char *fingerprint, clv_error *error) {
  uint32_t at = 0;
  CLV__TRY(clv__tables_check_device(tables, name, fingerprint, error));
  while (at < tables->device_count && strcmp(tables->devices[at].name, name) < 0) ++at;
  if (at < tables->device_count && strcmp(tables->devices[at].name, name) == 0) return CLV_OK;
  clv__tables_device made = {own(tables, name), own(tables, fingerprint)};
  if (made.name == NULL || made.fingerprint == NULL ||
      !clv__array_reserve(tables->arena.allocator, (void **)&tables->devices, &tables->device_capacity, tables->device_count + 1u,
                          sizeof made, tables->device_count))
    return clv__error_memory(error, sizeof made);
  memmove(&tables->devices[at + 1], &tables->devices[at], (tables->device_count - at) * sizeof made);
  tables->devices[at] = made;
  ++tables->device_count;
  return CLV_OK;
}

/* ---- Overheads ---- */

const char *clv__overhead_name(clv__overhead_kind kind) {
  static const char *const names[] = {"merge", "switch", "exchange"};
  return names[kind];
}

static int compare_overhead(const clv__table_overhead *a, clv__overhead_kind kind, const char *device) {
  if (a->kind != kind) return a->kind > kind ? 1 : -1;
  return strcmp(a->device, device);
}

const clv__table_overhead *clv__tables_find_overhead(const clv__tables *tables, clv__overhead_kind kind, const char *device) {
  for (uint32_t o = 0; o < tables->overhead_count; ++o) {
    if (compare_overhead(&tables->overheads[o], kind, device) == 0) return &tables->overheads[o];
  }
  return NULL;
}

clv_status clv__tables_put_overhead(clv__tables *tables, const clv__table_overhead *overhead, clv_error *error) {
  uint32_t at = 0;
  if (!good_time(overhead->time_ns, overhead->spread_ns) ||
      (overhead->kind == CLV__OVERHEAD_SWITCH) != (overhead->device[0] != '\0'))
    return clv__error_set(
        error, CLV_INVALID_ARGUMENT,
        "overhead %s, device '%s', %g ns: expected a time from 0 to 1e18 ns, and a device for 'switch', but not for others",
        clv__overhead_name(overhead->kind), overhead->device, overhead->time_ns);
  while (at < tables->overhead_count && compare_overhead(&tables->overheads[at], overhead->kind, overhead->device) < 0) ++at;
  bool is_there = at < tables->overhead_count && compare_overhead(&tables->overheads[at], overhead->kind, overhead->device) == 0;
  clv__table_overhead made = *overhead;
  made.device = is_there ? tables->overheads[at].device : own(tables, overhead->device);
  if (made.device == NULL) return clv__error_memory(error, strlen(overhead->device));
  if (!is_there) {
    if (!clv__array_reserve(tables->arena.allocator, (void **)&tables->overheads, &tables->overhead_capacity,
                            tables->overhead_count + 1u, sizeof made, tables->overhead_count))
      return clv__error_memory(error, sizeof made);
    memmove(&tables->overheads[at + 1], &tables->overheads[at], (tables->overhead_count - at) * sizeof made);
    ++tables->overhead_count;
  }
  tables->overheads[at] = made;
  return CLV_OK;
}

/* ---- Copies ---- */

clv_status clv__tables_copy(clv__tables *tables, const clv__tables *from, clv_error *error) {
  for (uint32_t d = 0; d < from->device_count; ++d)
    CLV__TRY(clv__tables_put_device(tables, from->devices[d].name, from->devices[d].fingerprint, error));
  for (uint32_t t = 0; t < from->table_count; ++t) {
    const clv__block_table *table = &from->tables[t];
    for (uint32_t p = 0; p < table->point_count; ++p)
      CLV__TRY(clv__tables_put(tables, table->device, table->layer, table->first, table->last, &table->points[p], error));
  }
  for (uint32_t c = 0; c < from->copy_count; ++c) {
    const clv__copy_table *copy = &from->copies[c];
    for (uint32_t p = 0; p < copy->point_count; ++p)
      CLV__TRY(clv__tables_put_copy(tables, copy->from, copy->to, &copy->points[p], error));
  }
  for (uint32_t o = 0; o < from->overhead_count; ++o) CLV__TRY(clv__tables_put_overhead(tables, &from->overheads[o], error));
  return clv__tables_fit(tables, error);
}
