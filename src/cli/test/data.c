/* See data.h. */
#include "cli/test/data.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "formats/onnx/onnx.h"

enum { DEEPEST = 12, MOST_SETS = 10000 };

static bool is_folder(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static bool is_file(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

static char *join(clv__arena *arena, const char *folder, const char *name) {
  size_t folder_bytes = strlen(folder), name_bytes = strlen(name);
  char *path = clv__arena_allocate(arena, folder_bytes + name_bytes + 2);
  if (path == NULL) return NULL;
  while (folder_bytes > 1 && folder[folder_bytes - 1] == '/') --folder_bytes;
  memcpy(path, folder, folder_bytes);
  path[folder_bytes] = '/';
  memcpy(path + folder_bytes + 1, name, name_bytes + 1);
  return path;
}

static clv_status add_path(const clv_allocator *allocator, cli_test_paths *paths, const char *path, clv_error *error) {
  if (!clv__array_reserve(allocator, (void **)&paths->items, &paths->capacity, paths->count + 1, sizeof *paths->items,
                          paths->count)) {
    return clv__error_memory(error, sizeof *paths->items);
  }
  paths->items[paths->count++] = path;
  return CLV_OK;
}

static clv_status find(const clv_allocator *allocator, clv__arena *arena, const char *path, int depth, cli_test_paths *paths,
                       clv_error *error) {
  const char *model = join(arena, path, "model.onnx");
  if (model == NULL) return clv__error_memory(error, strlen(path));
  if (is_file(model)) return add_path(allocator, paths, path, error);
  if (depth == DEEPEST || !is_folder(path)) return CLV_OK;
  struct dirent **entries;
  int count = scandir(path, &entries, NULL, alphasort);
  if (count < 0) return clv__error_set(error, CLV_IO_ERROR, "%s: cannot read the folder: %s", path, strerror(errno));
  clv_status status = CLV_OK;
  for (int i = 0; i < count; ++i) {
    if (status == CLV_OK && entries[i]->d_name[0] != '.') {
      const char *below = join(arena, path, entries[i]->d_name);
      if (below == NULL)
        status = clv__error_memory(error, strlen(path));
      else if (is_folder(below))
        status = find(allocator, arena, below, depth + 1, paths, error);
    }
    free(entries[i]);
  }
  free(entries);
  return status;
}

clv_status cli_test_find(const clv_allocator *allocator, clv__arena *arena, const char *path, cli_test_paths *paths,
                         clv_error *error) {
  size_t before = paths->count;
  CLV__TRY(find(allocator, arena, path, 0, paths, error));
  return paths->count > before ? CLV_OK : add_path(allocator, paths, path, error);
}

/* ---- Data sets ---- */

/* Returns the graph input that input_K.pb belongs to, where `file` is K. If there are at most as many files as inputs without a
 * default, the files belong to these inputs, in order; otherwise to all inputs, in order. */
static uint32_t input_index(const clv_graph *graph, uint32_t file, uint32_t file_count) {
  uint32_t needed = 0;
  for (uint32_t i = 0; i < graph->input_count; ++i) needed += graph->values[graph->inputs[i]].type.data == NULL;
  if (file_count > needed) return file;
  for (uint32_t i = 0, seen = 0; i < graph->input_count; ++i) {
    if (graph->values[graph->inputs[i]].type.data == NULL && seen++ == file) return i;
  }
  return file;
}

/* Returns one more than the highest K for which kind_K.pb exists. */
static uint32_t count_files(const char *folder, const char *kind) {
  uint32_t count = 0;
  size_t length = strlen(kind);
  DIR *entries = opendir(folder);
  for (struct dirent *entry; entries != NULL && (entry = readdir(entries)) != NULL;) {
    char *end;
    if (strncmp(entry->d_name, kind, length) != 0 || entry->d_name[length] != '_') continue;
    unsigned long number = strtoul(entry->d_name + length + 1, &end, 10);
    if (strcmp(end, ".pb") == 0 && number < MOST_SETS && number >= count) count = (uint32_t)number + 1;
  }
  if (entries != NULL) closedir(entries);
  return count;
}

static clv_status read_files(const clv_allocator *allocator, clv__arena *arena, const char *folder, const char *kind,
                             const clv_graph *graph, clv_tensor *tensors, uint32_t count, clv_error *error) {
  uint32_t files = count_files(folder, kind);
  bool inputs = strcmp(kind, "input") == 0;
  if (files > count) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "%s: contains files for %u %ss, but the model has %u %ss", folder, files,
                          kind, count, kind);
  }
  for (uint32_t k = 0; k < files; ++k) {
    char name[64];
    snprintf(name, sizeof name, "%s_%u.pb", kind, k);
    const char *path = join(arena, folder, name);
    if (path == NULL) return clv__error_memory(error, strlen(folder));
    if (!is_file(path)) continue;
    uint32_t index = inputs ? input_index(graph, k, files) : k;
    const clv__value *value = &graph->values[inputs ? graph->inputs[index] : graph->outputs[index]];
    clv_status status = clv__onnx_tensor_read_file(allocator, path, &tensors[index], NULL, error);
    if (status == CLV_OK) continue;
    if (value->type.dtype != CLV_DTYPE_NONE) return status;
    return clv__error_set(error, CLV_NOT_SUPPORTED, "%s '%s' is not a tensor, or has an unsupported element type", kind,
                          value->name);
  }
  return CLV_OK;
}

static clv_status read_set(const clv_allocator *allocator, clv__arena *arena, const char *folder, const clv_graph *graph,
                           cli_data_set *set, clv_error *error) {
  set->input_count = graph->input_count;
  set->output_count = graph->output_count;
  set->inputs = clv__arena_allocate_zero(arena, graph->input_count, sizeof *set->inputs);
  set->outputs = clv__arena_allocate_zero(arena, graph->output_count, sizeof *set->outputs);
  if (set->inputs == NULL || set->outputs == NULL) return clv__error_memory(error, graph->input_count * sizeof *set->inputs);
  CLV__TRY(read_files(allocator, arena, folder, "input", graph, set->inputs, graph->input_count, error));
  return read_files(allocator, arena, folder, "output", graph, set->outputs, graph->output_count, error);
}

static int compare_numbers(const void *a, const void *b) {
  unsigned long x = *(const unsigned long *)a, y = *(const unsigned long *)b;
  return (x > y) - (x < y);
}

/* Lists the numbers N of the folders test_data_set_N, ascending. */
static clv_status list_sets(clv__arena *arena, const char *path, unsigned long **numbers, uint32_t *count, clv_error *error) {
  static const char prefix[] = "test_data_set_";
  *count = 0;
  *numbers = clv__arena_allocate_zero(arena, MOST_SETS, sizeof **numbers);
  if (*numbers == NULL) return clv__error_memory(error, MOST_SETS * sizeof **numbers);
  DIR *entries = opendir(path);
  if (entries == NULL) return clv__error_set(error, CLV_IO_ERROR, "%s: cannot read the folder: %s", path, strerror(errno));
  for (struct dirent *entry; (entry = readdir(entries)) != NULL && *count < MOST_SETS;) {
    char *end;
    if (strncmp(entry->d_name, prefix, sizeof prefix - 1) != 0) continue;
    const char *digits = entry->d_name + sizeof prefix - 1;
    unsigned long number = strtoul(digits, &end, 10);
    if (*digits >= '0' && *digits <= '9' && *end == '\0') (*numbers)[(*count)++] = number;
  }
  closedir(entries);
  qsort(*numbers, *count, sizeof **numbers, compare_numbers);
  if (*count == 0)
    return clv__error_set(error, CLV_NOT_FOUND, "%s: contains no folder test_data_set_N, such as test_data_set_0", path);
  return CLV_OK;
}

clv_status cli_test_read(const clv_allocator *allocator, clv__arena *arena, const char *path, const clv_graph *graph,
                         cli_data_set **sets, uint32_t *count, clv_error *error) {
  unsigned long *numbers;
  *count = 0;
  uint32_t set_count;
  CLV__TRY(list_sets(arena, path, &numbers, &set_count, error));
  *sets = clv__arena_allocate_zero(arena, set_count, sizeof **sets);
  if (*sets == NULL) return clv__error_memory(error, set_count * sizeof **sets);
  for (uint32_t i = 0; i < set_count; ++i) {
    char name[48];
    snprintf(name, sizeof name, "test_data_set_%lu", numbers[i]);
    (*sets)[i].name = clv__arena_string(arena, name, strlen(name));
    const char *folder = join(arena, path, name);
    if (folder == NULL || (*sets)[i].name == NULL) return clv__error_memory(error, strlen(path));
    *count = i + 1; /* includes this set even if reading it fails, so that the caller releases it */
    CLV__TRY(read_set(allocator, arena, folder, graph, &(*sets)[i], error));
  }
  return CLV_OK;
}

void cli_test_release(const clv_allocator *allocator, cli_data_set *sets, uint32_t count) {
  for (uint32_t s = 0; s < count; ++s) {
    for (uint32_t i = 0; sets[s].inputs != NULL && i < sets[s].input_count; ++i) clv__release(allocator, sets[s].inputs[i].data);
    for (uint32_t i = 0; sets[s].outputs != NULL && i < sets[s].output_count; ++i)
      clv__release(allocator, sets[s].outputs[i].data);
  }
}
