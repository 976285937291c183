/* Reads a profile. The file is untrusted: every number is checked for type and range, every index for its target, and every
 * key for being known and unique. Invalid content is rejected with its place. */
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/files/file.h"
#include "cost/profile.h"

enum { MOST_RUNS = 1000000, MOST_COUNT = 100000000, LONGEST_TEXT = 4096 };
#define MOST_FILE_BYTES ((size_t)1 << 30)

typedef struct reading {
  const char *name;
  clv__profile *profile;
  clv__profile_device *device;
  bool in_device;
  uint32_t device_number;
  clv__profile_term *terms; /* of one block */
  size_t term_capacity;
  clv_error *error;
} reading;

static clv_status bad(const reading *r, const char *format, ...) CLV_PRINTF(2, 3);
static clv_status bad(const reading *r, const char *format, ...) {
  char what[512], where[64] = "";
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(what, sizeof what, format, arguments);
  va_end(arguments);
  if (r->in_device) snprintf(where, sizeof where, "devices[%u]: ", r->device_number);
  return clv__error_set(r->error, CLV_INVALID_MODEL, "%s: %s%s", r->name, where, what);
}

/* ---- Values ---- */

/* Checks that every key is in `known`, a NULL-terminated list. */
static clv_status check_keys(const reading *r, json_t *object, const char *where, const char *const *known) {
  const char *key;
  json_t *value;
  if (!json_is_object(object)) return bad(r, "%s is not an object", where);
  json_object_foreach(object, key, value) {
    bool found = false;
    for (const char *const *k = known; *k != NULL && !found; ++k) found = strcmp(*k, key) == 0;
    if (!found) return bad(r, "%s: unknown key '%.60s'", where, key);
  }
  return CLV_OK;
}

static clv_status get_text(reading *r, const json_t *object, const char *where, const char *key, const char **text) {
  const json_t *value = json_object_get(object, key);
  if (!json_is_string(value)) return bad(r, "%s: '%s' must be a string", where, key);
  size_t length = json_string_length(value);
  if (length > LONGEST_TEXT || strlen(json_string_value(value)) != length)
    return bad(r, "%s: '%s' is a string of %zu bytes, which is too long, or contains a zero byte", where, key, length);
  *text = clv__arena_string(&r->profile->arena, json_string_value(value), length);
  return *text != NULL ? CLV_OK : clv__error_memory(r->error, length);
}

static clv_status get_integer(const reading *r, const json_t *object, const char *where, const char *key, uint64_t most,
                              uint64_t *number) {
  const json_t *value = json_object_get(object, key);
  if (!json_is_integer(value)) return bad(r, "%s: '%s' must be a whole number", where, key);
  json_int_t got = json_integer_value(value);
  if (got < 0 || (uint64_t)got > most)
    return bad(r, "%s: '%s' is %lld; expected 0 to %llu", where, key, (long long)got, (unsigned long long)most);
  *number = (uint64_t)got;
  return CLV_OK;
}

static clv_status get_amount(const reading *r, const json_t *object, const char *where, const char *key, double *number) {
  const json_t *value = json_object_get(object, key);
  if (!json_is_number(value)) return bad(r, "%s: '%s' must be a number", where, key);
  *number = json_number_value(value);
  if (!isfinite(*number) || *number < 0 || *number > 1e30)
    return bad(r, "%s: '%s' is %g; expected 0 to 1e30", where, key, *number);
  return CLV_OK;
}

static clv_status get_measure(const reading *r, const json_t *object, const char *where, clv__measure *measure) {
  uint64_t runs;
  CLV__TRY(get_integer(r, object, where, "time_ns", CLV__PROFILE_MAX_NS, &measure->time_ns));
  CLV__TRY(get_integer(r, object, where, "spread_ns", CLV__PROFILE_MAX_NS, &measure->spread_ns));
  CLV__TRY(get_integer(r, object, where, "runs", MOST_RUNS, &runs));
  measure->runs = (uint32_t)runs;
  return CLV_OK;
}

static clv_status get_array(const reading *r, const json_t *object, const char *where, const char *key, json_t **array) {
  *array = json_object_get(object, key);
  return json_is_array(*array) ? CLV_OK : bad(r, "%s: '%s' must be a list", where, key);
}

/* ---- Tables ---- */

static clv_status read_copies(reading *r, json_t *object) {
  static const char *const names[] = {"in", "out", "pinned_in", "pinned_out", NULL};
  static const char *const keys[] = {"bytes", "time_ns", "spread_ns", "runs", NULL};
  CLV__TRY(check_keys(r, object, "copies", names));
  for (uint32_t kind = 0; kind < CLV__COPY_KINDS; ++kind) {
    clv__profile_copy copies[64];
    json_t *array = json_object_get(object, names[kind]);
    if (array == NULL) continue;
    if (!json_is_array(array) || json_array_size(array) > 64)
      return bad(r, "copies: '%s' must be a list of at most 64", names[kind]);
    for (size_t i = 0; i < json_array_size(array); ++i) {
      json_t *item = json_array_get(array, i);
      char where[64];
      snprintf(where, sizeof where, "copies: %s[%zu]", names[kind], i);
      CLV__TRY(check_keys(r, item, where, keys));
      CLV__TRY(get_integer(r, item, where, "bytes", (uint64_t)1 << 50, &copies[i].size_bytes));
      CLV__TRY(get_measure(r, item, where, &copies[i].time));
      if (i > 0 && copies[i].size_bytes <= copies[i - 1].size_bytes) return bad(r, "%s: sizes must ascend", where);
    }
    CLV__TRY(
        clv__profile_put_copies(r->profile, r->device, (clv__copy_kind)kind, copies, (uint32_t)json_array_size(array), r->error));
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
  CLV__TRY(check_keys(r, item, where, keys));
  CLV__TRY(get_text(r, item, where, "signature", &signature));
  if (clv__profile_find_operator(r->device, signature) != CLV__MAP_NONE)
    return bad(r, "%s: '%.100s' appears twice", where, signature);
  CLV__TRY(clv__profile_find_or_add_operator(r->profile, r->device, signature, &index, r->error));
  clv__profile_operator *made = &r->device->operators[index];
  CLV__TRY(get_amount(r, item, where, "flops", &made->flops));
  CLV__TRY(get_amount(r, item, where, "bytes", &made->bytes));
  const json_t *infeasible = json_object_get(item, "infeasible");
  if (infeasible != NULL && !json_is_boolean(infeasible)) return bad(r, "%s: 'infeasible' must be true or false", where);
  made->infeasible = json_is_true(infeasible);
  if (json_object_get(item, "time_ns") != NULL) CLV__TRY(get_measure(r, item, where, &made->alone));
  made->has_within = json_object_get(item, "within_ns") != NULL;
  if (made->has_within) CLV__TRY(get_integer(r, item, where, "within_ns", CLV__PROFILE_MAX_NS, &made->within_ns));
  if (json_object_get(item, "scratch_bytes") == NULL) return CLV_OK;
  return get_integer(r, item, where, "scratch_bytes", (uint64_t)1 << 62, &made->scratch_bytes);
}

static clv_status read_saving(reading *r, json_t *item, size_t number) {
  static const char *const keys[] = {"producer", "consumer", "bytes", "saving_ns", NULL};
  char where[64];
  uint64_t producer, consumer, saving;
  double bytes;
  uint32_t index, operators = r->device->operator_count;
  snprintf(where, sizeof where, "savings[%zu]", number);
  CLV__TRY(check_keys(r, item, where, keys));
  if (operators == 0) return bad(r, "%s: 'operators' is empty", where);
  CLV__TRY(get_integer(r, item, where, "producer", operators - 1, &producer));
  CLV__TRY(get_integer(r, item, where, "consumer", operators - 1, &consumer));
  CLV__TRY(get_amount(r, item, where, "bytes", &bytes));
  CLV__TRY(get_integer(r, item, where, "saving_ns", CLV__PROFILE_MAX_NS, &saving));
  if (saving % 2 != 0) return bad(r, "%s: 'saving_ns' is %llu, but must be even", where, (unsigned long long)saving);
  if (clv__profile_find_saving(r->device, (uint32_t)producer, (uint32_t)consumer) != CLV__MAP_NONE)
    return bad(r, "%s: this edge appears twice", where);
  CLV__TRY(
      clv__profile_find_or_add_saving(r->profile, r->device, (uint32_t)producer, (uint32_t)consumer, bytes, &index, r->error));
  r->device->savings[index].saving_ns = saving;
  return CLV_OK;
}

/* Appends the terms of one list. Indices must be distinct and below `limit`. */
static clv_status read_terms(reading *r, const json_t *item, const char *where, const char *key, uint32_t limit, size_t used,
                             uint32_t *count) {
  json_t *array;
  CLV__TRY(get_array(r, item, where, key, &array));
  size_t size = json_array_size(array);
  if (size > limit) return bad(r, "%s: '%s' has %zu entries, for %u", where, key, size, limit);
  if (!clv__array_reserve(r->profile->arena.allocator, (void **)&r->terms, &r->term_capacity, used + size, sizeof *r->terms,
                          used))
    return clv__error_memory(r->error, size * sizeof *r->terms);
  json_int_t last = -1;
  for (size_t i = 0; i < size; ++i) {
    const json_t *pair = json_array_get(array, i), *first = json_array_get(pair, 0), *second = json_array_get(pair, 1);
    if (json_array_size(pair) != 2 || !json_is_integer(first) || !json_is_integer(second))
      return bad(r, "%s: %s[%zu] is not a pair of whole numbers", where, key, i);
    json_int_t index = json_integer_value(first), times = json_integer_value(second);
    if (index <= last || index >= limit)
      return bad(r, "%s: %s[%zu] is index %lld after %lld; indices must ascend and be below %u", where, key, i, (long long)index,
                 (long long)last, limit);
    if (times < 1 || times > MOST_COUNT)
      return bad(r, "%s: %s[%zu] has an invalid count of %lld", where, key, i, (long long)times);
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
  CLV__TRY(check_keys(r, item, where, keys));
  CLV__TRY(get_text(r, item, where, "key", &block.key));
  if (clv__map_find(&r->device->block_index, block.key) != CLV__MAP_NONE)
    return bad(r, "%s: '%.100s' appears twice", where, block.key);
  CLV__TRY(get_measure(r, item, where, &block.total));
  CLV__TRY(read_terms(r, item, where, "nodes", r->device->operator_count, 0, &block.node_count));
  CLV__TRY(read_terms(r, item, where, "cut", r->device->saving_count, block.node_count, &block.edge_count));
  block.nodes = r->terms;
  block.edges = r->terms == NULL ? NULL : r->terms + block.node_count;
  return clv__profile_put_block(r->profile, r->device, &block, r->error);
}

static clv_status read_table(reading *r, const json_t *object, const char *key,
                             clv_status (*read_item)(reading *, json_t *, size_t)) {
  json_t *array;
  CLV__TRY(get_array(r, object, "device", key, &array));
  if (json_array_size(array) > MOST_COUNT) return bad(r, "'%s' has too many entries: %zu", key, json_array_size(array));
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
  CLV__TRY(check_keys(r, object, "device", keys));
  CLV__TRY(get_text(r, object, "device", "fingerprint", &fingerprint));
  if (clv__profile_find_device(r->profile, fingerprint) != CLV__NO_ID)
    return bad(r, "fingerprint '%.100s' appears twice", fingerprint);
  CLV__TRY(clv__profile_find_or_add_device(r->profile, fingerprint, &r->device, r->error));
  clv__profile_device *device = r->device;
  CLV__TRY(get_text(r, object, "device", "name", &device->name));
  CLV__TRY(get_text(r, object, "device", "kind", &device->kind));
  CLV__TRY(get_text(r, object, "device", "description", &device->description));
  CLV__TRY(get_text(r, object, "device", "measured", &device->measured));
  json_t *launch = json_object_get(object, "launch"), *peaks = json_object_get(object, "peaks");
  CLV__TRY(check_keys(r, launch, "launch", launch_keys));
  CLV__TRY(get_measure(r, launch, "launch", &device->launch));
  CLV__TRY(check_keys(r, peaks, "peaks", peak_keys));
  CLV__TRY(get_amount(r, peaks, "peaks", "flops_per_second", &device->flops_per_second));
  CLV__TRY(get_amount(r, peaks, "peaks", "bytes_per_second", &device->bytes_per_second));
  CLV__TRY(read_copies(r, json_object_get(object, "copies")));
  CLV__TRY(read_table(r, object, "operators", read_operator));
  CLV__TRY(read_table(r, object, "savings", read_saving));
  return read_table(r, object, "blocks", read_block);
}

static clv_status read_root(reading *r, json_t *root) {
  static const char *const keys[] = {"format", "version", "host", "devices", NULL};
  static const char *const host_keys[] = {"processor", "system", "cleave", NULL};
  const char *format = json_string_value(json_object_get(root, "format"));
  uint64_t version;
  json_t *devices;
  if (!json_is_object(root) || format == NULL || strcmp(format, "cleave-profile") != 0)
    return bad(r, "not a profile: 'format' must be 'cleave-profile'");
  CLV__TRY(get_integer(r, root, "profile", "version", UINT32_MAX, &version));
  if (version != CLV__PROFILE_VERSION) {
    return bad(r, "unknown version %llu; this library reads version %d: measure again with 'cleave profile'",
               (unsigned long long)version, CLV__PROFILE_VERSION);
  }
  CLV__TRY(check_keys(r, root, "profile", keys));
  json_t *host = json_object_get(root, "host");
  CLV__TRY(check_keys(r, host, "host", host_keys));
  CLV__TRY(get_text(r, host, "host", "processor", &r->profile->host_processor));
  CLV__TRY(get_text(r, host, "host", "system", &r->profile->host_system));
  CLV__TRY(get_text(r, host, "host", "cleave", &r->profile->cleave_version));
  CLV__TRY(get_array(r, root, "profile", "devices", &devices));
  if (json_array_size(devices) > 4096) return bad(r, "'devices' has too many entries: %zu", json_array_size(devices));
  for (size_t i = 0; i < json_array_size(devices); ++i) {
    r->in_device = true;
    r->device_number = (uint32_t)i;
    CLV__TRY(read_device(r, json_array_get(devices, i)));
  }
  return CLV_OK;
}

/* Sets the hash of the printed form, so that it depends on the content and not on the file's layout. */
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
  json_error_t where;
  *out = NULL;
  if (size_bytes > MOST_FILE_BYTES)
    return clv__error_set(error, CLV_INVALID_MODEL, "%s: a file of %zu bytes cannot be a profile", name, size_bytes);
  json_t *root = json_loadb(text == NULL ? "" : text, size_bytes, JSON_REJECT_DUPLICATES, &where);
  if (root == NULL) {
    return clv__error_set(error, CLV_INVALID_MODEL, "%s: line %d, column %d: %s", name, where.line, where.column, where.text);
  }
  reading r = {.name = name, .error = error};
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
