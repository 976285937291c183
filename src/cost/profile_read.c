/* Reads a profile. The file is untrusted: every number is checked for type and range, every index must refer to an existing
 * entry, and every key must be known and unique. An error names the place of the invalid content. */
#include <stdio.h>
#include <string.h>

#include "base/files/file.h"
#include "base/strict_json.h"
#include "cost/profile.h"

enum { MOST_RUNS = 1000000, MOST_COUNT = 100000000, LONGEST_TEXT = 4096, MOST_DEVICES = 4096 };
#define MOST_FILE_BYTES ((size_t)1 << 30)

typedef struct reading {
  clv__strict_json json;
  char part[32]; /* the place in the file, such as "devices[3]" */
  clv__profile *profile;
  clv__profile_device *device;
  clv__profile_term *terms; /* the terms of the block that is being read */
  size_t term_capacity;
} reading;

/* ---- Values ---- */

static clv_status get_text(reading *r, const json_t *object, const char *where, const char *key, const char **text) {
  const char *found;
  CLV__TRY(clv__json_string(&r->json, object, where, key, 0, LONGEST_TEXT, &found));
  *text = clv__arena_string(&r->profile->arena, found, strlen(found));
  return *text != NULL ? CLV_OK : clv__error_memory(r->json.error, strlen(found));
}

static clv_status get_amount(const reading *r, const json_t *object, const char *where, const char *key, double *number) {
  return clv__json_number(&r->json, object, where, key, 1e30, number);
}

static clv_status get_measure(const reading *r, const json_t *object, const char *where, clv__measure *measure) {
  uint64_t runs;
  CLV__TRY(clv__json_size(&r->json, object, where, "time_ns", CLV__PROFILE_MAX_NS, &measure->time_ns));
  CLV__TRY(clv__json_size(&r->json, object, where, "spread_ns", CLV__PROFILE_MAX_NS, &measure->spread_ns));
  CLV__TRY(clv__json_size(&r->json, object, where, "runs", MOST_RUNS, &runs));
  measure->runs = (uint32_t)runs;
  return CLV_OK;
}

/* ---- Tables ---- */

static clv_status read_copies(reading *r, json_t *object) {
  static const char *const names[] = {"in", "out", "pinned_in", "pinned_out", NULL};
  static const char *const keys[] = {"bytes", "time_ns", "spread_ns", "runs", NULL};
  CLV__TRY(clv__json_check_keys(&r->json, object, "copies", names));
  for (uint32_t kind = 0; kind < CLV__COPY_KINDS; ++kind) {
    clv__profile_copy copies[64];
    json_t *array = json_object_get(object, names[kind]);
    if (array == NULL) continue;
    CLV__TRY(clv__json_list(&r->json, object, "copies", names[kind], 0, sizeof copies / sizeof *copies, &array));
    for (size_t i = 0; i < json_array_size(array); ++i) {
      json_t *item = json_array_get(array, i);
      char where[64];
      snprintf(where, sizeof where, "copies: %s[%zu]", names[kind], i);
      CLV__TRY(clv__json_check_keys(&r->json, item, where, keys));
      CLV__TRY(clv__json_size(&r->json, item, where, "bytes", (uint64_t)1 << 50, &copies[i].size_bytes));
      CLV__TRY(get_measure(r, item, where, &copies[i].time));
      if (i > 0 && copies[i].size_bytes <= copies[i - 1].size_bytes)
        return clv__json_bad(&r->json, "%s: sizes must ascend", where);
    }
    CLV__TRY(clv__profile_put_copies(r->profile, r->device, (clv__copy_kind)kind, copies, (uint32_t)json_array_size(array),
                                     r->json.error));
  }
  return CLV_OK;
}

static clv_status read_operator(reading *r, json_t *item, size_t number) {
  static const char *const keys[] = {"signature", "flops", "bytes",     "infeasible",    "time_ns",
                                     "spread_ns", "runs",  "within_ns", "scratch_bytes", NULL};
  char where[64];
  const char *signature = NULL;
  uint32_t index;
  snprintf(where, sizeof where, "operators[%zu]", number);
  CLV__TRY(clv__json_check_keys(&r->json, item, where, keys));
  CLV__TRY(get_text(r, item, where, "signature", &signature));
  if (clv__profile_find_operator(r->device, signature) != CLV__MAP_NONE)
    return clv__json_bad(&r->json, "%s: '%.100s' appears twice", where, signature);
  CLV__TRY(clv__profile_find_or_add_operator(r->profile, r->device, signature, &index, r->json.error));
  clv__profile_operator *made = &r->device->operators[index];
  CLV__TRY(get_amount(r, item, where, "flops", &made->flops));
  CLV__TRY(get_amount(r, item, where, "bytes", &made->bytes));
  const json_t *infeasible = json_object_get(item, "infeasible");
  if (infeasible != NULL && !json_is_boolean(infeasible))
    return clv__json_bad(&r->json, "%s: 'infeasible' must be true or false", where);
  made->infeasible = json_is_true(infeasible);
  if (json_object_get(item, "time_ns") != NULL) CLV__TRY(get_measure(r, item, where, &made->alone));
  made->has_within = json_object_get(item, "within_ns") != NULL;
  if (made->has_within) CLV__TRY(clv__json_size(&r->json, item, where, "within_ns", CLV__PROFILE_MAX_NS, &made->within_ns));
  if (json_object_get(item, "scratch_bytes") == NULL) return CLV_OK;
  return clv__json_size(&r->json, item, where, "scratch_bytes", (uint64_t)1 << 62, &made->scratch_bytes);
}

static clv_status read_saving(reading *r, json_t *item, size_t number) {
  static const char *const keys[] = {"producer", "consumer", "bytes", "saving_ns", NULL};
  char where[64];
  uint64_t producer, consumer, saving;
  double bytes;
  uint32_t index, operators = r->device->operator_count;
  snprintf(where, sizeof where, "savings[%zu]", number);
  CLV__TRY(clv__json_check_keys(&r->json, item, where, keys));
  if (operators == 0) return clv__json_bad(&r->json, "%s: 'operators' is empty", where);
  CLV__TRY(clv__json_size(&r->json, item, where, "producer", operators - 1, &producer));
  CLV__TRY(clv__json_size(&r->json, item, where, "consumer", operators - 1, &consumer));
  CLV__TRY(get_amount(r, item, where, "bytes", &bytes));
  CLV__TRY(clv__json_size(&r->json, item, where, "saving_ns", CLV__PROFILE_MAX_NS, &saving));
  if (saving % 2 != 0)
    return clv__json_bad(&r->json, "%s: 'saving_ns' is %llu, but must be even", where, (unsigned long long)saving);
  if (clv__profile_find_saving(r->device, (uint32_t)producer, (uint32_t)consumer) != CLV__MAP_NONE)
    return clv__json_bad(&r->json, "%s: an earlier entry has the same producer and consumer", where);
  CLV__TRY(clv__profile_find_or_add_saving(r->profile, r->device, (uint32_t)producer, (uint32_t)consumer, bytes, &index,
                                           r->json.error));
  r->device->savings[index].saving_ns = saving;
  return CLV_OK;
}

/* Reads one list of [index, count] pairs and appends them to r->terms, of which `used` are in use. Indices must ascend and be
 * below `limit`. */
static clv_status read_terms(reading *r, const json_t *item, const char *where, const char *key, uint32_t limit, size_t used,
                             uint32_t *count) {
  json_t *array;
  CLV__TRY(clv__json_list(&r->json, item, where, key, 0, limit, &array));
  size_t size = json_array_size(array);
  if (!clv__array_reserve(r->profile->arena.allocator, (void **)&r->terms, &r->term_capacity, used + size, sizeof *r->terms,
                          used))
    return clv__error_memory(r->json.error, size * sizeof *r->terms);
  json_int_t last = -1;
  for (size_t i = 0; i < size; ++i) {
    const json_t *pair = json_array_get(array, i), *first = json_array_get(pair, 0), *second = json_array_get(pair, 1);
    if (json_array_size(pair) != 2 || !json_is_integer(first) || !json_is_integer(second))
      return clv__json_bad(&r->json, "%s: %s[%zu] is not a pair of whole numbers", where, key, i);
    json_int_t index = json_integer_value(first), times = json_integer_value(second);
    if (index < 0 || index >= limit)
      return clv__json_bad(&r->json, "%s: %s[%zu] has the index %lld; expected 0 to %u", where, key, i, (long long)index,
                           limit - 1);
    if (index <= last)
      return clv__json_bad(&r->json, "%s: %s[%zu] has the index %lld after %lld; indices must ascend", where, key, i,
                           (long long)index, (long long)last);
    if (times < 1 || times > MOST_COUNT)
      return clv__json_bad(&r->json, "%s: %s[%zu] has the count %lld, which is below 1 or too large", where, key, i,
                           (long long)times);
    r->terms[used + i] = (clv__profile_term){(uint32_t)index, (uint32_t)times};
    last = index;
  }
  *count = (uint32_t)size;
  return CLV_OK;
}

static clv_status read_block(reading *r, json_t *item, size_t number) {
  static const char *const keys[] = {"key", "time_ns", "spread_ns", "runs", "nodes", "cut", NULL};
  char where[64];
  clv__profile_block block = {.key = ""};
  snprintf(where, sizeof where, "blocks[%zu]", number);
  CLV__TRY(clv__json_check_keys(&r->json, item, where, keys));
  CLV__TRY(get_text(r, item, where, "key", &block.key));
  if (clv__map_find(&r->device->block_index, block.key) != CLV__MAP_NONE)
    return clv__json_bad(&r->json, "%s: '%.100s' appears twice", where, block.key);
  CLV__TRY(get_measure(r, item, where, &block.total));
  CLV__TRY(read_terms(r, item, where, "nodes", r->device->operator_count, 0, &block.node_count));
  CLV__TRY(read_terms(r, item, where, "cut", r->device->saving_count, block.node_count, &block.edge_count));
  block.nodes = r->terms;
  block.edges = r->terms == NULL ? NULL : r->terms + block.node_count;
  return clv__profile_put_block(r->profile, r->device, &block, r->json.error);
}

static clv_status read_table(reading *r, const json_t *object, const char *key,
                             clv_status (*read_item)(reading *, json_t *, size_t)) {
  json_t *array;
  CLV__TRY(clv__json_list(&r->json, object, "device", key, 0, MOST_COUNT, &array));
  for (size_t i = 0; i < json_array_size(array); ++i) CLV__TRY(read_item(r, json_array_get(array, i), i));
  return CLV_OK;
}

/* ---- The whole ---- */

static clv_status read_device(reading *r, json_t *object) {
  static const char *const keys[] = {"fingerprint", "name",   "kind",      "description", "measured", "launch",
                                     "peaks",       "copies", "operators", "savings",     "blocks",   NULL};
  static const char *const launch_keys[] = {"time_ns", "spread_ns", "runs", NULL};
  static const char *const peak_keys[] = {"flops_per_second", "bytes_per_second", NULL};
  const char *fingerprint = NULL;
  CLV__TRY(clv__json_check_keys(&r->json, object, "device", keys));
  CLV__TRY(get_text(r, object, "device", "fingerprint", &fingerprint));
  if (clv__profile_find_device(r->profile, fingerprint) != CLV__NO_ID)
    return clv__json_bad(&r->json, "fingerprint '%.100s' appears twice", fingerprint);
  CLV__TRY(clv__profile_find_or_add_device(r->profile, fingerprint, &r->device, r->json.error));
  clv__profile_device *device = r->device;
  CLV__TRY(get_text(r, object, "device", "name", &device->name));
  CLV__TRY(get_text(r, object, "device", "kind", &device->kind));
  CLV__TRY(get_text(r, object, "device", "description", &device->description));
  CLV__TRY(get_text(r, object, "device", "measured", &device->measured));
  json_t *launch = json_object_get(object, "launch"), *peaks = json_object_get(object, "peaks");
  CLV__TRY(clv__json_check_keys(&r->json, launch, "launch", launch_keys));
  CLV__TRY(get_measure(r, launch, "launch", &device->launch));
  CLV__TRY(clv__json_check_keys(&r->json, peaks, "peaks", peak_keys));
  CLV__TRY(get_amount(r, peaks, "peaks", "flops_per_second", &device->flops_per_second));
  CLV__TRY(get_amount(r, peaks, "peaks", "bytes_per_second", &device->bytes_per_second));
  CLV__TRY(read_copies(r, json_object_get(object, "copies")));
  CLV__TRY(read_table(r, object, "operators", read_operator));
  CLV__TRY(read_table(r, object, "savings", read_saving));
  return read_table(r, object, "blocks", read_block);
}

static clv_status read_root(reading *r, json_t *root) {
  static const char *const keys[] = {"format", "version", "partial", "host", "devices", NULL};
  static const char *const host_keys[] = {"processor", "system", "cleave", NULL};
  const char *format = json_string_value(json_object_get(root, "format"));
  uint64_t version;
  json_t *devices;
  if (!json_is_object(root) || format == NULL || strcmp(format, "cleave-profile") != 0)
    return clv__json_bad(&r->json, "not a profile: 'format' must be 'cleave-profile'");
  CLV__TRY(clv__json_size(&r->json, root, "profile", "version", UINT32_MAX, &version));
  if (version != CLV__PROFILE_VERSION) {
    return clv__json_bad(&r->json, "unknown version %llu; this library reads version %d: measure again with 'cleave profile'",
                         (unsigned long long)version, CLV__PROFILE_VERSION);
  }
  CLV__TRY(clv__json_check_keys(&r->json, root, "profile", keys));
  r->profile->is_partial = json_is_true(json_object_get(root, "partial"));
  json_t *host = json_object_get(root, "host");
  CLV__TRY(clv__json_check_keys(&r->json, host, "host", host_keys));
  CLV__TRY(get_text(r, host, "host", "processor", &r->profile->host_processor));
  CLV__TRY(get_text(r, host, "host", "system", &r->profile->host_system));
  CLV__TRY(get_text(r, host, "host", "cleave", &r->profile->cleave_version));
  CLV__TRY(clv__json_list(&r->json, root, "profile", "devices", 0, MOST_DEVICES, &devices));
  for (size_t i = 0; i < json_array_size(devices); ++i) {
    snprintf(r->part, sizeof r->part, "devices[%zu]", i);
    r->json.part = r->part;
    CLV__TRY(read_device(r, json_array_get(devices, i)));
  }
  return CLV_OK;
}

/* Sets `id` to the hash of the profile as clv__profile_print() prints it, so that the id depends on the content and not on the
 * file's layout. */
static clv_status set_id(clv__profile *profile, clv_error *error) {
  clv__text text;
  clv__hash hash;
  clv__text_init(&text, profile->arena.allocator);
  clv_status status = clv__profile_print(profile, &text, error);
  if (status == CLV_OK) {
    clv__hash_bytes(text.data, text.size_bytes, &hash);
    clv__hash_text(&hash, profile->id);
  }
  clv__text_finish(&text);
  return status;
}

clv_status clv__profile_parse(const char *text, size_t size_bytes, const char *name, const clv_allocator *allocator,
                              clv__profile **out, clv_error *error) {
  json_t *root;
  reading r = {.json = {.name = name, .error = error}};
  *out = NULL;
  CLV__TRY(clv__json_parse(&r.json, text, size_bytes, MOST_FILE_BYTES, "profile", &root));
  clv_status status = clv__profile_create(allocator, &r.profile, error);
  if (status == CLV_OK) status = read_root(&r, root);
  json_decref(root);
  clv__release(allocator, r.terms);
  if (status == CLV_OK) status = set_id(r.profile, error);
  if (status == CLV_OK)
    *out = r.profile;
  else
    clv__profile_destroy(r.profile);
  return status;
}

clv_status clv__profile_read(const char *path, const clv_allocator *allocator, clv__profile **profile, clv_error *error) {
  clv__file_map map;
  *profile = NULL;
  CLV__TRY(clv__file_map_open(path, &map, error));
  clv_status status = clv__profile_parse((const char *)map.data, map.size_bytes, path, allocator, profile, error);
  clv__file_map_close(&map);
  return status;
}
