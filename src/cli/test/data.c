/* See data.h. */
#include "cli/test/data.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { DEEPEST = 12, MOST_SETS = 10000 };

static bool is_folder(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static bool is_file(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

static char *join(cli_arena *arena, const char *folder, const char *name) {
  size_t folder_bytes = strlen(folder), name_bytes = strlen(name);
  char *path = cli_arena_allocate(arena, folder_bytes + name_bytes + 2);
  if (path == NULL) return NULL;
  while (folder_bytes > 1 && folder[folder_bytes - 1] == '/') --folder_bytes;
  memcpy(path, folder, folder_bytes);
  path[folder_bytes] = '/';
  memcpy(path + folder_bytes + 1, name, name_bytes + 1);
  return path;
}

static clv_status add_path(cli_test_paths *paths, const char *path, clv_error *error) {
  if (paths->count == paths->capacity) {
    const size_t capacity = paths->capacity == 0 ? 64 : 2 * paths->capacity;
    const char **items = realloc(paths->items, capacity * sizeof *items);
    if (items == NULL) return cli_error_memory(error, capacity * sizeof *items);
    paths->items = items;
    paths->capacity = capacity;
  }
  paths->items[paths->count++] = path;
  return CLV_OK;
}

static clv_status find(cli_arena *arena, const char *path, int depth, cli_test_paths *paths, clv_error *error) {
  const char *model = join(arena, path, "model.onnx");
  if (model == NULL) return cli_error_memory(error, strlen(path));
  if (is_file(model)) return add_path(paths, path, error);
  if (depth == DEEPEST || !is_folder(path)) return CLV_OK;
  struct dirent **entries;
  int count = scandir(path, &entries, NULL, alphasort);
  if (count < 0) return cli_error_set(error, CLV_IO_ERROR, "%s: cannot read the folder: %s", path, strerror(errno));
  clv_status status = CLV_OK;
  for (int i = 0; i < count; ++i) {
    if (status == CLV_OK && entries[i]->d_name[0] != '.') {
      const char *below = join(arena, path, entries[i]->d_name);
      if (below == NULL)
        status = cli_error_memory(error, strlen(path));
      else if (is_folder(below))
        status = find(arena, below, depth + 1, paths, error);
    }
    free(entries[i]);
  }
  free(entries);
  return status;
}

clv_status cli_test_find(cli_arena *arena, const char *path, cli_test_paths *paths, clv_error *error) {
  size_t before = paths->count;
  CLI_TRY(find(arena, path, 0, paths, error));
  return paths->count > before ? CLV_OK : add_path(paths, path, error);
}

/* ---- Data sets ---- */

/* Returns the graph input that input_K.pb belongs to, where `file` is K. If there are at most as many files as inputs without a
 * default, the files belong to these inputs, in order; otherwise to all inputs, in order. */
static uint32_t input_index(const clv_graph *graph, uint32_t file, uint32_t file_count) {
  const uint32_t count = clv_graph_input_count(graph);
  uint32_t needed = 0;
  for (uint32_t i = 0; i < count; ++i) needed += clv_graph_input_type(graph, i)->data == NULL;
  if (file_count > needed) return file;
  for (uint32_t i = 0, seen = 0; i < count; ++i) {
    if (clv_graph_input_type(graph, i)->data == NULL && seen++ == file) return i;
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

static clv_status read_file(clv_context *context, const char *path, clv_arrays **file, clv_tensor *tensor, clv_error *error) {
  CLI_TRY(clv_arrays_open(context, path, CLV_ARRAYS_PB, file, error));
  return clv_arrays_tensor(*file, 0, tensor, error);
}

/* Reads input_K.pb or output_K.pb. `files` owns the memory of the `tensors`, of which there are `count`. */
static clv_status read_files(clv_context *context, cli_arena *arena, const char *folder, bool inputs, const clv_graph *graph,
                             clv_arrays **files, clv_tensor *tensors, uint32_t count, clv_error *error) {
  const char *kind = inputs ? "input" : "output";
  uint32_t file_count = count_files(folder, kind);
  if (file_count > count) {
    return cli_error_set(error, CLV_INVALID_ARGUMENT, "%s: contains files for %u %ss, but the model has %u %ss", folder,
                         file_count, kind, count, kind);
  }
  for (uint32_t k = 0; k < file_count; ++k) {
    char name[64];
    snprintf(name, sizeof name, "%s_%u.pb", kind, k);
    const char *path = join(arena, folder, name);
    if (path == NULL) return cli_error_memory(error, strlen(folder));
    if (!is_file(path)) continue;
    uint32_t index = inputs ? input_index(graph, k, file_count) : k;
    const clv_tensor *type = inputs ? clv_graph_input_type(graph, index) : clv_graph_output_type(graph, index);
    clv_status status = read_file(context, path, &files[index], &tensors[index], error);
    if (status == CLV_OK) continue;
    if (type->dtype != CLV_DTYPE_NONE) return status;
    return cli_error_set(error, CLV_NOT_SUPPORTED, "%s '%s' is not a tensor, or has an unsupported element type", kind,
                         inputs ? clv_graph_input_name(graph, index) : clv_graph_output_name(graph, index));
  }
  return CLV_OK;
}

static clv_status read_set(clv_context *context, cli_arena *arena, const char *folder, const clv_graph *graph, cli_data_set *set,
                           clv_error *error) {
  const uint32_t input_count = clv_graph_input_count(graph), output_count = clv_graph_output_count(graph);
  set->input_count = input_count;
  set->output_count = output_count;
  set->inputs = cli_arena_allocate_zero(arena, input_count, sizeof *set->inputs);
  set->outputs = cli_arena_allocate_zero(arena, output_count, sizeof *set->outputs);
  set->files = cli_arena_allocate_zero(arena, (size_t)input_count + output_count, sizeof *set->files);
  if (set->inputs == NULL || set->outputs == NULL || set->files == NULL)
    return cli_error_memory(error, input_count * sizeof *set->inputs);
  CLI_TRY(read_files(context, arena, folder, true, graph, set->files, set->inputs, input_count, error));
  return read_files(context, arena, folder, false, graph, set->files + input_count, set->outputs, output_count, error);
}

static int compare_numbers(const void *a, const void *b) {
  unsigned long x = *(const unsigned long *)a, y = *(const unsigned long *)b;
  return (x > y) - (x < y);
}

/* Lists the numbers N of the folders test_data_set_N, ascending. */
static clv_status list_sets(cli_arena *arena, const char *path, unsigned long **numbers, uint32_t *count, clv_error *error) {
  static const char prefix[] = "test_data_set_";
  *count = 0;
  *numbers = cli_arena_allocate_zero(arena, MOST_SETS, sizeof **numbers);
  if (*numbers == NULL) return cli_error_memory(error, MOST_SETS * sizeof **numbers);
  DIR *entries = opendir(path);
  if (entries == NULL) return cli_error_set(error, CLV_IO_ERROR, "%s: cannot read the folder: %s", path, strerror(errno));
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
    return cli_error_set(error, CLV_NOT_FOUND, "%s: contains no folder test_data_set_N, such as test_data_set_0", path);
  return CLV_OK;
}

clv_status cli_test_read(clv_context *context, cli_arena *arena, const char *path, const clv_graph *graph, cli_data_set **sets,
                         uint32_t *count, clv_error *error) {
  unsigned long *numbers;
  *count = 0;
  uint32_t set_count;
  CLI_TRY(list_sets(arena, path, &numbers, &set_count, error));
  *sets = cli_arena_allocate_zero(arena, set_count, sizeof **sets);
  if (*sets == NULL) return cli_error_memory(error, set_count * sizeof **sets);
  for (uint32_t i = 0; i < set_count; ++i) {
    char name[48];
    snprintf(name, sizeof name, "test_data_set_%lu", numbers[i]);
    (*sets)[i].name = cli_arena_string(arena, name, strlen(name));
    const char *folder = join(arena, path, name);
    if (folder == NULL || (*sets)[i].name == NULL) return cli_error_memory(error, strlen(path));
    *count = i + 1; /* includes this set even if reading it fails, so that the caller releases it */
    CLI_TRY(read_set(context, arena, folder, graph, &(*sets)[i], error));
  }
  return CLV_OK;
}

void cli_test_release(cli_data_set *sets, uint32_t count) {
  for (uint32_t s = 0; s < count; ++s) {
    for (uint32_t i = 0; sets[s].files != NULL && i < sets[s].input_count + sets[s].output_count; ++i)
      clv_arrays_close(sets[s].files[i]);
  }
}
