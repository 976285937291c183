/* Reads and writes tables as JSON. The file has points only, because fits follow from them. Reading is strict: every key must
 * be known, every number in range, and no size may occur twice. */
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/strict_json.h"
#include "gnn/tables/tables.h"

enum { MOST_POINTS = 4096, MOST_TABLES = 4096, MOST_NAME_BYTES = 256 };
#define MOST_FILE_BYTES ((size_t)1 << 28)
#define FORMAT "cleave-gnn-tables"

/* ---- Writing ---- */

static json_t *point_json(const clv__table_point *point) {
  json_t *object = json_object();
  json_object_set_new(object, "n", json_integer((json_int_t)point->n));
  json_object_set_new(object, "m", json_integer((json_int_t)point->m));
  if (point->targets != 0) json_object_set_new(object, "targets", json_integer((json_int_t)point->targets));
  json_object_set_new(object, "origin", json_string(clv__table_origin_name(point->origin)));
  if (point->infeasible) {
    json_object_set_new(object, "infeasible", json_true());
    return object;
  }
  json_object_set_new(object, "time_ns", json_real(point->time_ns));
  json_object_set_new(object, "spread_ns", json_real(point->spread_ns));
  if (point->peak_bytes != 0) json_object_set_new(object, "peak_bytes", json_integer((json_int_t)point->peak_bytes));
  if (point->compile_ns > 0) json_object_set_new(object, "compile_ns", json_real(point->compile_ns));
  return object;
}

static json_t *table_json(const clv__block_table *table) {
  json_t *object = json_object(), *points = json_array();
  for (uint32_t p = 0; p < table->point_count; ++p) json_array_append_new(points, point_json(&table->points[p]));
  json_object_set_new(object, "device", json_string(table->device));
  json_object_set_new(object, "layer", json_string(table->layer));
  json_object_set_new(object, "first", json_integer(table->first));
  json_object_set_new(object, "last", json_integer(table->last));
  json_object_set_new(object, "points", points);
  return object;
}

static json_t *copy_json(const clv__copy_table *table) {
  json_t *object = json_object(), *points = json_array();
  for (uint32_t p = 0; p < table->point_count; ++p) {
    json_t *point = json_object();
    json_object_set_new(point, "bytes", json_integer((json_int_t)table->points[p].size_bytes));
    json_object_set_new(point, "origin", json_string(clv__table_origin_name(table->points[p].origin)));
    json_object_set_new(point, "time_ns", json_real(table->points[p].time_ns));
    json_object_set_new(point, "spread_ns", json_real(table->points[p].spread_ns));
    json_array_append_new(points, point);
  }
  json_object_set_new(object, "from", json_string(table->from));
  json_object_set_new(object, "to", json_string(table->to));
  json_object_set_new(object, "points", points);
  return object;
}

static json_t *overhead_json(const clv__table_overhead *overhead) {
  json_t *object = json_object();
  json_object_set_new(object, "kind", json_string(clv__overhead_name(overhead->kind)));
  if (overhead->device[0] != '\0') json_object_set_new(object, "device", json_string(overhead->device));
  json_object_set_new(object, "origin", json_string(clv__table_origin_name(overhead->origin)));
  json_object_set_new(object, "time_ns", json_real(overhead->time_ns));
  json_object_set_new(object, "spread_ns", json_real(overhead->spread_ns));
  return object;
}

clv_status clv__tables_print(const clv__tables *tables, clv__text *text, clv_error *error) {
  json_t *root = json_object(), *blocks = json_array(), *copies = json_array();
  for (uint32_t t = 0; t < tables->table_count; ++t) json_array_append_new(blocks, table_json(&tables->tables[t]));
  for (uint32_t c = 0; c < tables->copy_count; ++c) json_array_append_new(copies, copy_json(&tables->copies[c]));
  json_object_set_new(root, "format", json_string(FORMAT));
  json_object_set_new(root, "version", json_integer(CLV__TABLES_VERSION));
  json_t *devices = json_array();
  for (uint32_t d = 0; d < tables->device_count; ++d) {
    json_t *device = json_object();
    json_object_set_new(device, "name", json_string(tables->devices[d].name));
    json_object_set_new(device, "fingerprint", json_string(tables->devices[d].fingerprint));
    json_array_append_new(devices, device);
  }
  json_object_set_new(root, "devices", devices);
  json_object_set_new(root, "blocks", blocks);
  json_object_set_new(root, "copies", copies);
  if (tables->overhead_count > 0) { /* without overheads the key is omitted, as in older files */
    json_t *overheads = json_array();
    for (uint32_t o = 0; o < tables->overhead_count; ++o) json_array_append_new(overheads, overhead_json(&tables->overheads[o]));
    json_object_set_new(root, "overheads", overheads);
  }
  char *dumped = root == NULL ? NULL : json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(17));
  json_decref(root);
  if (dumped == NULL) return clv__error_set(error, CLV_OUT_OF_MEMORY, "out of memory for JSON");
  clv__text_append(text, "%s\n", dumped);
  free(dumped);
  return text->failed ? clv__error_memory(error, text->size_bytes) : CLV_OK;
}

clv_status clv__tables_write(const clv__tables *tables, const char *path, clv_error *error) {
  clv__text text;
  clv__text_init(&text, tables->arena.allocator);
  clv_status status = clv__tables_print(tables, &text, error);
  if (status == CLV_OK) status = clv__file_write(path, text.data, text.size_bytes, error);
  clv__text_finish(&text);
  return status;
}

/* ---- Reading ---- */

typedef struct reading {
  clv__strict_json json;
  clv__tables *tables;
} reading;

static clv_status get_time(const reading *r, const json_t *object, const char *where, const char *key, double *number) {
  return clv__json_number(&r->json, object, where, key, 1e18, number);
}

static clv_status get_name(const reading *r, const json_t *object, const char *where, const char *key, const char **name) {
  return clv__json_string(&r->json, object, where, key, 1, MOST_NAME_BYTES, name);
}

static clv_status get_origin(const reading *r, const json_t *object, const char *where, clv__table_origin *origin) {
  const char *name = NULL;
  CLV__TRY(get_name(r, object, where, "origin", &name));
  for (int o = CLV__MEASURED; o <= CLV__NOMINAL; ++o) {
    *origin = (clv__table_origin)o;
    if (strcmp(name, clv__table_origin_name(*origin)) == 0) return CLV_OK;
  }
  return clv__json_bad(&r->json, "%s: 'origin' is '%.40s'; expected measured, imported, synthetic or nominal", where, name);
}

static clv_status read_point(const reading *r, json_t *item, const char *where, clv__table_point *point) {
  static const char *const keys[] = {"n",       "m",         "targets",    "origin",     "infeasible",
                                     "time_ns", "spread_ns", "peak_bytes", "compile_ns", NULL};
  static const char *const infeasible_keys[] = {"n", "m", "targets", "origin", "infeasible", NULL};
  const json_t *infeasible = json_object_get(item, "infeasible");
  if (infeasible != NULL && !json_is_true(infeasible))
    return clv__json_bad(&r->json, "%s: 'infeasible' must be true if it is present", where);
  *point = (clv__table_point){.infeasible = infeasible != NULL};
  CLV__TRY(clv__json_check_keys(&r->json, item, where, point->infeasible ? infeasible_keys : keys));
  CLV__TRY(clv__json_size(&r->json, item, where, "n", (uint64_t)1 << 52, &point->n));
  CLV__TRY(clv__json_size(&r->json, item, where, "m", (uint64_t)1 << 52, &point->m));
  if (json_object_get(item, "targets") != NULL)
    CLV__TRY(clv__json_size(&r->json, item, where, "targets", point->n, &point->targets));
  CLV__TRY(get_origin(r, item, where, &point->origin));
  if (point->infeasible) return CLV_OK;
  CLV__TRY(get_time(r, item, where, "time_ns", &point->time_ns));
  CLV__TRY(get_time(r, item, where, "spread_ns", &point->spread_ns));
  if (json_object_get(item, "compile_ns") != NULL) CLV__TRY(get_time(r, item, where, "compile_ns", &point->compile_ns));
  if (json_object_get(item, "peak_bytes") == NULL) return CLV_OK;
  return clv__json_size(&r->json, item, where, "peak_bytes", (uint64_t)1 << 52, &point->peak_bytes);
}

static clv_status read_table(const reading *r, json_t *item, size_t number) {
  static const char *const keys[] = {"device", "layer", "first", "last", "points", NULL};
  const char *device = NULL, *layer = NULL;
  uint64_t first, last;
  char where[64];
  json_t *points;
  snprintf(where, sizeof where, "blocks[%zu]", number);
  CLV__TRY(clv__json_check_keys(&r->json, item, where, keys));
  CLV__TRY(get_name(r, item, where, "device", &device));
  CLV__TRY(get_name(r, item, where, "layer", &layer));
  CLV__TRY(clv__json_size(&r->json, item, where, "last", CLV__TABLE_STAGES, &last));
  CLV__TRY(clv__json_size(&r->json, item, where, "first", CLV__TABLE_STAGES, &first));
  if (first >= last)
    return clv__json_bad(&r->json, "%s: 'first' is %" PRIu64 " and 'last' is %" PRIu64 "; 'last' must be greater", where, first,
                         last);
  CLV__TRY(clv__json_list(&r->json, item, where, "points", 0, MOST_POINTS, &points));
  if (json_array_size(points) == 0) return clv__json_bad(&r->json, "%s: 'points' is empty", where);
  if (clv__tables_find(r->tables, device, layer, (uint32_t)first, (uint32_t)last) != NULL)
    return clv__json_bad(&r->json, "%s: an entry with the same layer and stages of '%.40s' comes before", where, device);
  for (size_t i = 0; i < json_array_size(points); ++i) {
    clv__table_point point;
    snprintf(where, sizeof where, "blocks[%zu]: points[%zu]", number, i);
    CLV__TRY(read_point(r, json_array_get(points, i), where, &point));
    CLV__TRY(clv__tables_put(r->tables, device, layer, (uint32_t)first, (uint32_t)last, &point, r->json.error));
    if (r->tables->tables[r->tables->table_count - 1].point_count != i + 1)
      return clv__json_bad(&r->json, "%s: this size appears twice", where);
  }
  return CLV_OK;
}

static clv_status read_copy(const reading *r, json_t *item, size_t number) {
  static const char *const keys[] = {"from", "to", "points", NULL};
  static const char *const point_keys[] = {"bytes", "origin", "time_ns", "spread_ns", NULL};
  const char *from = NULL, *to = NULL;
  char where[64];
  json_t *points;
  snprintf(where, sizeof where, "copies[%zu]", number);
  CLV__TRY(clv__json_check_keys(&r->json, item, where, keys));
  CLV__TRY(get_name(r, item, where, "from", &from));
  CLV__TRY(get_name(r, item, where, "to", &to));
  CLV__TRY(clv__json_list(&r->json, item, where, "points", 0, MOST_POINTS, &points));
  if (json_array_size(points) == 0) return clv__json_bad(&r->json, "%s: 'points' is empty", where);
  if (clv__tables_find_copy(r->tables, from, to) != NULL)
    return clv__json_bad(&r->json, "%s: an entry with the same 'from' and 'to' comes before", where);
  for (size_t i = 0; i < json_array_size(points); ++i) {
    json_t *each = json_array_get(points, i);
    clv__copy_point point = {0};
    snprintf(where, sizeof where, "copies[%zu]: points[%zu]", number, i);
    CLV__TRY(clv__json_check_keys(&r->json, each, where, point_keys));
    CLV__TRY(clv__json_size(&r->json, each, where, "bytes", (uint64_t)1 << 52, &point.size_bytes));
    CLV__TRY(get_origin(r, each, where, &point.origin));
    CLV__TRY(get_time(r, each, where, "time_ns", &point.time_ns));
    CLV__TRY(get_time(r, each, where, "spread_ns", &point.spread_ns));
    CLV__TRY(clv__tables_put_copy(r->tables, from, to, &point, r->json.error));
    if (r->tables->copies[r->tables->copy_count - 1].point_count != i + 1)
      return clv__json_bad(&r->json, "%s: this size appears twice", where);
  }
  return CLV_OK;
}

static clv_status read_devices(const reading *r, const json_t *root) {
  static const char *const keys[] = {"name", "fingerprint", NULL};
  json_t *devices;
  if (json_object_get(root, "devices") == NULL) return CLV_OK;
  CLV__TRY(clv__json_list(&r->json, root, "tables", "devices", 0, MOST_TABLES, &devices));
  for (size_t i = 0; i < json_array_size(devices); ++i) {
    const char *name, *fingerprint;
    char where[64];
    snprintf(where, sizeof where, "devices[%zu]", i);
    CLV__TRY(clv__json_check_keys(&r->json, json_array_get(devices, i), where, keys));
    CLV__TRY(get_name(r, json_array_get(devices, i), where, "name", &name));
    CLV__TRY(get_name(r, json_array_get(devices, i), where, "fingerprint", &fingerprint));
    CLV__TRY(clv__tables_put_device(r->tables, name, fingerprint, r->json.error));
    if (r->tables->device_count != i + 1) return clv__json_bad(&r->json, "%s: '%.100s' appears twice", where, name);
  }
  return CLV_OK;
}

static clv_status read_overhead(const reading *r, json_t *item, size_t number) {
  static const char *const keys[] = {"kind", "device", "origin", "time_ns", "spread_ns", NULL};
  const char *name = NULL;
  char where[64];
  clv__table_overhead overhead = {.kind = CLV__OVERHEAD_MERGE, .device = ""};
  uint32_t before = r->tables->overhead_count;
  snprintf(where, sizeof where, "overheads[%zu]", number);
  CLV__TRY(clv__json_check_keys(&r->json, item, where, keys));
  CLV__TRY(get_name(r, item, where, "kind", &name));
  while (overhead.kind < CLV__OVERHEADS && strcmp(clv__overhead_name(overhead.kind), name) != 0) ++overhead.kind;
  if (overhead.kind == CLV__OVERHEADS)
    return clv__json_bad(&r->json, "%s: 'kind' is '%.40s'; expected merge, switch or exchange", where, name);
  if (overhead.kind == CLV__OVERHEAD_SWITCH) CLV__TRY(get_name(r, item, where, "device", &overhead.device));
  if (overhead.kind != CLV__OVERHEAD_SWITCH && json_object_get(item, "device") != NULL)
    return clv__json_bad(&r->json, "%s: 'device' is only for kind 'switch'", where);
  CLV__TRY(get_origin(r, item, where, &overhead.origin));
  CLV__TRY(get_time(r, item, where, "time_ns", &overhead.time_ns));
  CLV__TRY(get_time(r, item, where, "spread_ns", &overhead.spread_ns));
  CLV__TRY(clv__tables_put_overhead(r->tables, &overhead, r->json.error));
  return r->tables->overhead_count == before + 1
             ? CLV_OK
             : clv__json_bad(&r->json, "%s: an entry with the same 'kind' and 'device' comes before", where);
}

static clv_status read_overheads(const reading *r, const json_t *root) {
  json_t *overheads;
  if (json_object_get(root, "overheads") == NULL) return CLV_OK;
  CLV__TRY(clv__json_list(&r->json, root, "tables", "overheads", 0, MOST_TABLES, &overheads));
  for (size_t i = 0; i < json_array_size(overheads); ++i) CLV__TRY(read_overhead(r, json_array_get(overheads, i), i));
  return CLV_OK;
}

static clv_status read_root(const reading *r, json_t *root) {
  static const char *const keys[] = {"format", "version", "devices", "blocks", "copies", "overheads", NULL};
  const char *format = json_string_value(json_object_get(root, "format"));
  uint64_t version;
  json_t *blocks, *copies;
  if (format == NULL || strcmp(format, FORMAT) != 0)
    return clv__json_bad(&r->json, "not a file of GNN costs: 'format' must be '" FORMAT "'");
  CLV__TRY(clv__json_size(&r->json, root, "tables", "version", UINT32_MAX, &version));
  if (version != CLV__TABLES_VERSION)
    return clv__json_bad(&r->json,
                         "version %" PRIu64 " is unknown; this library reads version %d: measure again with 'cleave gnn profile'",
                         version, CLV__TABLES_VERSION);
  CLV__TRY(clv__json_check_keys(&r->json, root, "tables", keys));
  CLV__TRY(read_devices(r, root));
  CLV__TRY(clv__json_list(&r->json, root, "tables", "blocks", 0, MOST_TABLES, &blocks));
  CLV__TRY(clv__json_list(&r->json, root, "tables", "copies", 0, MOST_TABLES, &copies));
  for (size_t i = 0; i < json_array_size(blocks); ++i) CLV__TRY(read_table(r, json_array_get(blocks, i), i));
  for (size_t i = 0; i < json_array_size(copies); ++i) CLV__TRY(read_copy(r, json_array_get(copies, i), i));
  CLV__TRY(read_overheads(r, root));
  return clv__tables_fit(r->tables, r->json.error);
}

clv_status clv__tables_parse(clv__tables *tables, const char *text, size_t size_bytes, const char *name, clv_error *error) {
  json_t *root;
  const clv_allocator *allocator = tables->arena.allocator;
  reading r = {.json = {.name = name, .error = error}, .tables = tables};
  CLV__TRY(clv__json_parse(&r.json, text, size_bytes, MOST_FILE_BYTES, "file of GNN costs", &root));
  clv__tables_finish(tables);
  clv__tables_init(tables, allocator);
  clv_status status = read_root(&r, root);
  json_decref(root);
  return status;
}

clv_status clv__tables_read(clv__tables *tables, const char *path, clv_error *error) {
  clv__file_map map;
  CLV__TRY(clv__file_map_open(path, &map, error));
  clv_status status = clv__tables_parse(tables, (const char *)map.data, map.size_bytes, path, error);
  clv__file_map_close(&map);
  return status;
}
