/* Reads a folder compiled ahead of time. It may come from an untrusted source, be half copied, or belong to another machine. So
 * its list is checked here, and the backend checks the contents of each executable. */
#include "compile/folder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/strict_json.h"

enum { MOST_PARTITIONS = 1 << 20 };

bool clv_compiled_recognise(const char *path) {
  return path != NULL && clv__folder_recognise(path);
}

bool clv__folder_recognise(const char *path) {
  char list[4096];
  struct stat info;
  int length = snprintf(list, sizeof list, "%s/" CLV__FOLDER_LIST, path);
  return length > 0 && (size_t)length < sizeof list && stat(list, &info) == 0 && S_ISREG(info.st_mode);
}

/* ---- The list ---- */

typedef struct reading {
  clv_compiled *compiled;
  clv_error *error;
} reading;

static clv_status damaged(const reading *r, const char *what) {
  return clv__error_set(r->error, CLV_INVALID_MODEL, "'%s' is missing or invalid: compile the model again", what);
}

static const char *keep(const reading *r, const char *text) {
  return clv__arena_string(&r->compiled->arena, text, strlen(text));
}

/* Whether `name` is a plain file name, which cannot refer to a file outside of the folder. */
static bool is_plain(const char *name) {
  return name != NULL && name[0] != '\0' && name[0] != '.' && strchr(name, '/') == NULL;
}

static clv_status path_of(const reading *r, const char *name, const char **path) {
  const char *folder = r->compiled->directory;
  size_t length = strlen(folder) + strlen(name) + 2;
  char *joined = clv__arena_allocate(&r->compiled->arena, length);
  if (joined == NULL) return clv__error_memory(r->error, length);
  snprintf(joined, length, "%s/%s", folder, name);
  *path = joined;
  return CLV_OK;
}

static uint64_t file_bytes(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 && info.st_size > 0 ? (uint64_t)info.st_size : 0;
}

static clv_status read_texts(const reading *r, const json_t *list, const char *what, const char *const **texts, uint32_t *count) {
  size_t length = json_array_size(list);
  const char **made = clv__arena_allocate_zero(&r->compiled->arena, length, sizeof *made);
  if (made == NULL) return clv__error_memory(r->error, length * sizeof *made);
  if (list != NULL && !json_is_array(list)) return damaged(r, what);
  for (size_t i = 0; i < length; ++i) {
    const char *text = json_string_value(json_array_get(list, i));
    if (text == NULL) return damaged(r, what);
    made[i] = keep(r, text);
    if (made[i] == NULL) return clv__error_memory(r->error, strlen(text));
  }
  *texts = made;
  *count = (uint32_t)length;
  return CLV_OK;
}

/* Reads the names of devices and the other options to open them. A description of a virtual NPU that is not a built-in name is
 * a file in the folder. */
static clv_status read_devices(const reading *r, const json_t *root) {
  clv_devices_options *options = &r->compiled->devices;
  *options = (clv_devices_options)CLV_DEVICES_OPTIONS_INIT;
  const json_t *names = json_object_get(root, "devices");
  clv__text list;
  clv__text_init(&list, r->compiled->arena.allocator);
  bool is_read = json_array_size(names) > 0;
  for (size_t i = 0; i < json_array_size(names); ++i) {
    const char *name = json_string_value(json_object_get(json_array_get(names, i), "name"));
    is_read = is_read && name != NULL;
    if (name != NULL) clv__text_append(&list, "%s%s", i > 0 ? "," : "", name);
  }
  options->list = is_read && !list.failed ? keep(r, list.data) : NULL;
  clv__text_finish(&list);
  if (!is_read) return damaged(r, "devices");
  if (options->list == NULL) return clv__error_memory(r->error, 1);
  CLV__TRY(read_texts(r, json_object_get(root, "device_options"), "device_options", &options->device_options,
                      &options->device_option_count));
  CLV__TRY(read_texts(r, json_object_get(root, "npu_specs"), "npu_specs", &options->npu_specs, &options->npu_spec_count));
  const char **specs = (const char **)options->npu_specs;
  for (uint32_t i = 0; i < options->npu_spec_count; ++i) {
    if (strcmp(specs[i], "default") == 0 || strcmp(specs[i], "all") == 0) continue;
    if (!is_plain(specs[i])) return damaged(r, "npu_specs");
    CLV__TRY(path_of(r, specs[i], &specs[i]));
  }
  return CLV_OK;
}

static clv_status read_options(const reading *r, const json_t *root) {
  const json_t *given = json_object_get(root, "options");
  clv_session_options *options = &r->compiled->session;
  *options = (clv_session_options)CLV_SESSION_OPTIONS_INIT;
  const char *precision = json_string_value(json_object_get(given, "precision"));
  json_int_t bucket = json_integer_value(json_object_get(given, "bucket"));
  if (!json_is_object(given) || bucket < 0 || bucket > UINT32_MAX) return damaged(r, "options");
  if (precision != NULL && strcmp(precision, "bf16") != 0) return damaged(r, "precision");
  options->deterministic = json_is_true(json_object_get(given, "deterministic"));
  options->tune = json_is_true(json_object_get(given, "tune"));
  options->precision = precision != NULL ? CLV_BF16 : CLV_DTYPE_NONE;
  options->bucket_multiple = (uint32_t)bucket;
  options->compiled = r->compiled;
  return CLV_OK;
}

/* Reads only the key. clv__folder_find() later checks the whole file. */
static void read_key(const reading *r, clv__folder_executable *executable) {
  clv_error error = {0};
  clv__file_map map;
  clv__cache_info info;
  uint64_t header_bytes;
  clv_status status = clv__file_map_open(executable->path, &map, &error);
  if (status != CLV_OK) {
    snprintf(executable->problem, sizeof executable->problem, "%s does not exist or cannot be read", executable->file);
    return;
  }
  executable->size_bytes = map.size_bytes;
  const clv_allocator *allocator = r->compiled->arena.allocator;
  status = clv__cache_header_read(allocator, map.data, map.size_bytes, map.size_bytes, &info, &header_bytes, &error);
  if (status == CLV_OK) {
    executable->key = info.key;
    executable->has_key = true;
    clv__cache_info_finish(allocator, &info);
  } else {
    snprintf(executable->problem, sizeof executable->problem, "%s is %.150s", executable->file, error.message);
  }
  clv__file_map_close(&map);
}

static clv_status read_partition(const reading *r, uint32_t index, const json_t *item) {
  clv_compiled *compiled = r->compiled;
  clv__folder_partition *partition = &compiled->partitions[index];
  const char *device = json_string_value(json_object_get(item, "device"));
  const char *model = json_string_value(json_object_get(item, "onnx"));
  const char *reason = json_string_value(json_object_get(item, "reason"));
  const json_t *files = json_object_get(item, "executables"), *nodes = json_object_get(item, "nodes");
  if (device == NULL || !is_plain(model) || !json_is_array(files) || !json_is_integer(nodes)) return damaged(r, "partitions");
  *partition = (clv__folder_partition){.device = keep(r, device), .model = keep(r, model)};
  partition->node_count = (uint32_t)json_integer_value(nodes);
  if (reason != NULL) partition->reason = keep(r, reason);
  if (partition->device == NULL || partition->model == NULL || (reason != NULL && partition->reason == NULL))
    return clv__error_memory(r->error, strlen(device));
  const char *path;
  CLV__TRY(path_of(r, model, &path));
  partition->model_bytes = file_bytes(path);
  for (size_t i = 0; i < json_array_size(files); ++i) {
    const char *file = json_string_value(json_array_get(files, i));
    if (!is_plain(file)) return damaged(r, "executables");
    clv__folder_executable *executable = &compiled->executables[compiled->executable_count++];
    *executable = (clv__folder_executable){.file = keep(r, file), .partition = index};
    if (executable->file == NULL) return clv__error_memory(r->error, strlen(file));
    CLV__TRY(path_of(r, file, &executable->path));
    read_key(r, executable);
  }
  return CLV_OK;
}

static int compare_keys(const void *a, const void *b) {
  const clv__folder_executable *const *x = a, *const *y = b;
  return memcmp(&(*x)->key, &(*y)->key, sizeof(clv__key));
}

static clv_status sort_keys(const reading *r) {
  clv_compiled *compiled = r->compiled;
  compiled->by_key = clv__arena_allocate_zero(&compiled->arena, compiled->executable_count, sizeof *compiled->by_key);
  if (compiled->by_key == NULL) return clv__error_memory(r->error, compiled->executable_count * sizeof *compiled->by_key);
  for (uint32_t i = 0; i < compiled->executable_count; ++i) {
    if (compiled->executables[i].has_key) compiled->by_key[compiled->key_count++] = &compiled->executables[i];
  }
  if (compiled->key_count > 1) qsort(compiled->by_key, compiled->key_count, sizeof *compiled->by_key, compare_keys);
  return CLV_OK;
}

static clv_status read_partitions(const reading *r, const json_t *root) {
  clv_compiled *compiled = r->compiled;
  const json_t *list = json_object_get(root, "partitions");
  size_t count = json_array_size(list), executables = 0;
  if (!json_is_array(list) || count > MOST_PARTITIONS) return damaged(r, "partitions");
  for (size_t i = 0; i < count; ++i) executables += json_array_size(json_object_get(json_array_get(list, i), "executables"));
  if (executables > MOST_PARTITIONS) return damaged(r, "executables");
  compiled->partitions = clv__arena_allocate_zero(&compiled->arena, count, sizeof *compiled->partitions);
  compiled->executables = clv__arena_allocate_zero(&compiled->arena, executables, sizeof *compiled->executables);
  if (compiled->partitions == NULL || compiled->executables == NULL)
    return clv__error_memory(r->error, count * sizeof *compiled->partitions + executables * sizeof *compiled->executables);
  compiled->partition_count = (uint32_t)count;
  for (uint32_t i = 0; i < compiled->partition_count; ++i) CLV__TRY(read_partition(r, i, json_array_get(list, i)));
  return sort_keys(r);
}

static clv_status read_list(const reading *r, const json_t *root) {
  clv_compiled *compiled = r->compiled;
  const json_t *version = json_object_get(root, "cleave_compiled");
  const char *source = json_string_value(json_object_get(root, "source")), *path;
  if (!json_is_integer(version)) return damaged(r, "cleave_compiled");
  if (json_integer_value(version) != CLV__FOLDER_VERSION) {
    return clv__error_set(r->error, CLV_NOT_SUPPORTED,
                          "compiled directory of unknown version %lld; this library reads version %d: compile the model again",
                          (long long)json_integer_value(version), CLV__FOLDER_VERSION);
  }
  compiled->source = keep(r, source != NULL ? source : "");
  if (compiled->source == NULL) return clv__error_memory(r->error, 1);
  CLV__TRY(path_of(r, CLV__FOLDER_MODEL, &compiled->model_path));
  CLV__TRY(path_of(r, CLV__FOLDER_PLAN, &compiled->plan_path));
  static const char *const others[] = {CLV__FOLDER_MODEL, CLV__FOLDER_PLAN, CLV__FOLDER_WEIGHTS, CLV__FOLDER_LIST};
  for (size_t i = 0; i < sizeof others / sizeof *others; ++i) {
    CLV__TRY(path_of(r, others[i], &path));
    if (access(path, R_OK) != 0)
      return clv__error_set(r->error, errno == ENOENT ? CLV_NOT_FOUND : CLV_IO_ERROR,
                            "'%s': %s: copy the directory again, or compile the model again", others[i], strerror(errno));
    compiled->other_bytes += file_bytes(path);
  }
  CLV__TRY(read_devices(r, root));
  CLV__TRY(read_options(r, root));
  return read_partitions(r, root);
}

/* ---- Open and close ---- */

static clv_status open_list(const reading *r, const char *directory) {
  clv_compiled *compiled = r->compiled;
  compiled->directory = keep(r, directory);
  if (compiled->directory == NULL) return clv__error_memory(r->error, strlen(directory));
  if (!clv__folder_recognise(directory)) {
    return clv__error_set(r->error, CLV_NOT_FOUND,
                          "'" CLV__FOLDER_LIST "' is missing, so this directory was not written by 'cleave compile'");
  }
  const char *path;
  CLV__TRY(path_of(r, CLV__FOLDER_LIST, &path));
  clv__file_map map;
  CLV__TRY(clv__file_map_open(path, &map, r->error));
  json_t *root;
  clv_status status =
      clv__json_parse(&(clv__strict_json){.error = r->error}, (const char *)map.data, map.size_bytes, SIZE_MAX, "list", &root);
  clv__file_map_close(&map);
  if (status == CLV_OK) status = read_list(r, root);
  if (status == CLV_INVALID_MODEL) clv__error_prefix(r->error, status, CLV__FOLDER_LIST);
  json_decref(root);
  return status;
}

clv_status clv_compiled_open(clv_context *context, const char *directory, clv_compiled **compiled, clv_error *error) {
  if (context == NULL || directory == NULL || compiled == NULL)
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "context, directory and compiled must not be NULL");
  *compiled = NULL;
  const clv_allocator *allocator = clv__context_allocator(context);
  clv_compiled *made = clv__allocate_zero(allocator, sizeof *made);
  if (made == NULL) return clv__error_memory(error, sizeof *made);
  made->context = context;
  clv__arena_init(&made->arena, allocator);
  reading r = {made, error};
  clv_status status = open_list(&r, directory);
  if (status == CLV_OK) {
    *compiled = made;
    return CLV_OK;
  }
  clv_compiled_close(made);
  return clv__error_prefix(error, status, "%s", directory);
}

void clv_compiled_close(clv_compiled *compiled) {
  if (compiled == NULL) return;
  const clv_allocator *allocator = compiled->arena.allocator;
  clv__arena_finish(&compiled->arena);
  clv__release(allocator, compiled);
}

const char *clv_compiled_directory(const clv_compiled *compiled) {
  return compiled->directory;
}
const char *clv_compiled_model_path(const clv_compiled *compiled) {
  return compiled->model_path;
}
const char *clv_compiled_plan_path(const clv_compiled *compiled) {
  return compiled->plan_path;
}
const clv_devices_options *clv_compiled_devices_options(const clv_compiled *compiled) {
  return &compiled->devices;
}
const clv_session_options *clv_compiled_session_options(const clv_compiled *compiled) {
  return &compiled->session;
}

/* ---- Executables ---- */

static clv_status check(const clv_compiled *compiled, const clv__folder_executable *executable, const clv__key *key,
                        clv__folder_found *found, clv_error *error) {
  CLV__TRY(clv__file_map_open(executable->path, &found->map, error));
  clv_status status = clv__cache_file_read(compiled->arena.allocator, found->map.data, found->map.size_bytes, &found->info,
                                           &found->payload, &found->payload_bytes, error);
  if (status == CLV_OK && memcmp(&found->info.key, key, sizeof *key) != 0)
    status = clv__error_set(error, CLV_INVALID_MODEL, "changed since the folder was opened");
  return status == CLV_OK ? CLV_OK : clv__error_prefix(error, status, "%s", executable->file);
}

/* Reports how the most similar executable differs. If its structure or weights differ, it probably belongs to another partition.
 * In that case an executable that cannot be read is reported instead, if there is one. */
static clv_status explain(const clv_compiled *compiled, const clv__key *key, clv_error *error) {
  uint32_t best = CLV__KEY_ALL;
  const char *problem = NULL;
  for (uint32_t i = 0; i < compiled->executable_count; ++i) {
    const clv__folder_executable *executable = &compiled->executables[i];
    if (!executable->has_key) {
      if (problem == NULL) problem = executable->problem;
      continue;
    }
    uint32_t parts = clv__key_differences(key, &executable->key);
    if (__builtin_popcount(parts) < __builtin_popcount(best)) best = parts;
  }
  if (problem != NULL && (best & (1u << CLV__KEY_STRUCTURE | 1u << CLV__KEY_CONSTANTS)) != 0)
    return clv__error_set(error, CLV_INVALID_MODEL, "%s", problem);
  char text[160];
  clv__key_explain(best, text, sizeof text);
  return clv__error_set(error, CLV_NOT_FOUND, "%s", text);
}

static int compare_sought(const void *key, const void *item) {
  return memcmp(key, &(*(const clv__folder_executable *const *)item)->key, sizeof(clv__key));
}

clv_status clv__folder_find(const clv_compiled *compiled, const clv__key *key, clv__folder_found *found, clv_error *error) {
  *found = (clv__folder_found){0};
  const clv__folder_executable *const *at = NULL;
  if (compiled->key_count > 0)
    at = bsearch(key, compiled->by_key, compiled->key_count, sizeof(clv__folder_executable *), compare_sought);
  if (at == NULL) return explain(compiled, key, error);
  found->file = (*at)->file;
  clv_status status = check(compiled, *at, key, found, error);
  if (status != CLV_OK) clv__folder_found_finish(compiled, found);
  return status;
}

void clv__folder_found_finish(const clv_compiled *compiled, clv__folder_found *found) {
  clv__cache_info_finish(compiled->arena.allocator, &found->info);
  clv__file_map_close(&found->map);
  *found = (clv__folder_found){0};
}
