/* See values.h. */
#include "cli/values.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/console.h"
#include "formats/arrays/npy.h"
#include "report/label.h"
#include "report/table.h"

enum { FIRST_ELEMENTS = 4, NAME_COLUMNS = 44, FILE_NAME_BYTES = 200 };

typedef struct summary {
  double least, largest, mean;
  size_t counted;    /* finite elements */
  size_t not_finite; /* NaN and infinities */
} summary;

static bool is_number(const clv_tensor *tensor) {
  return clv__dtype_is_in(tensor->dtype, CLV__DTYPES_NUMBER | CLV__DTYPES_SMALL);
}
static summary summarize(const clv_tensor *tensor) {
  summary s = {.least = INFINITY, .largest = -INFINITY};
  size_t count;
  double sum = 0;
  if (!is_number(tensor) || !clv__tensor_count(tensor, &count)) return s;
  for (size_t i = 0; i < count; ++i) {
    double value = clv__tensor_get(tensor, i);
    if (!isfinite(value)) {
      ++s.not_finite;
      continue;
    }
    if (value < s.least) s.least = value;
    if (value > s.largest) s.largest = value;
    sum += value;
    ++s.counted;
  }
  if (s.counted > 0) s.mean = sum / (double)s.counted;
  return s;
}

static void add_row(clv__table *table, const clv_graph *graph, const cli_value *value, bool with_files) {
  const clv_tensor *tensor = &value->tensor;
  clv__text name, type, first;
  size_t count = 0;
  clv__text_init(&name, table->cells.allocator);
  clv__text_init(&type, table->cells.allocator);
  clv__text_init(&first, table->cells.allocator);
  bool known = clv__tensor_count(tensor, &count);
  clv__label_short(&name, value->name, NAME_COLUMNS);
  clv__label_type(&type, graph, tensor);
  for (size_t i = 0; known && i < count && i < FIRST_ELEMENTS; ++i) {
    clv__text_append(&first, i > 0 ? " " : "");
    clv__label_element(&first, tensor, i);
  }
  summary s = summarize(tensor);
  if (count > FIRST_ELEMENTS) clv__text_append(&first, " …");
  if (count == 0) clv__text_append(&first, "(empty)");
  if (s.not_finite > 0) clv__text_append(&first, "  (%zu are not finite)", s.not_finite);
  clv__table_cell(table, "%s", name.data);
  clv__table_cell(table, "%s", type.data);
  if (s.counted > 0) {
    clv__table_cell(table, "%.6g", s.least);
    clv__table_cell(table, "%.6g", s.largest);
    clv__table_cell(table, "%.6g", s.mean);
  } else {
    for (int i = 0; i < 3; ++i) clv__table_cell(table, "-");
  }
  clv__table_cell(table, "%s", first.data);
  if (with_files) clv__table_cell(table, "%s", value->file != NULL ? value->file : "");
  clv__text_finish(&first);
  clv__text_finish(&type);
  clv__text_finish(&name);
}

void cli_values_table(const cli_invocation *cli, const clv_graph *graph, const cli_value *values, uint32_t count,
                      clv__text *text) {
  bool with_files = false;
  for (uint32_t i = 0; i < count; ++i) with_files = with_files || values[i].file != NULL;
  clv__table table;
  clv__table_init(&table, cli->allocator, with_files ? "llrrrll" : "llrrrl", true);
  static const char *const titles[] = {"output", "type", "min", "max", "mean", "first elements", "file"};
  for (uint32_t i = 0; i < table.columns; ++i) clv__table_cell(&table, "%s", titles[i]);
  for (uint32_t i = 0; i < count; ++i) add_row(&table, graph, &values[i], with_files);
  clv__table_write(&table, 0, cli->color_out, text);
  clv__table_finish(&table);
}

json_t *cli_values_json(const clv_graph *graph, const cli_value *values, uint32_t count) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < count; ++i) {
    json_t *object = cli_json_type(graph, &values[i].tensor);
    summary s = summarize(&values[i].tensor);
    json_object_set_new(object, "name", cli_json_text(values[i].name));
    json_object_set_new(object, "min", s.counted > 0 ? cli_json_real(s.least) : json_null());
    json_object_set_new(object, "max", s.counted > 0 ? cli_json_real(s.largest) : json_null());
    json_object_set_new(object, "mean", s.counted > 0 ? cli_json_real(s.mean) : json_null());
    json_object_set_new(object, "not_finite", json_integer((json_int_t)s.not_finite));
    if (values[i].file != NULL) json_object_set_new(object, "file", cli_json_text(values[i].file));
    json_array_append_new(list, object);
  }
  return list;
}

/* ---- Files ---- */

/* Copies the name, with `_` for path separators, characters that control terminals, and a leading dot, so that no file is hidden
 * or named "..". Long names are truncated at a character boundary. */
static void file_name(const char *name, char out[FILE_NAME_BYTES]) {
  size_t used = 0;
  uint32_t character;
  for (size_t length; (length = clv__label_decode(name, &character)) > 0 && used + length < FILE_NAME_BYTES; name += length) {
    bool odd = character < 0x20 || (character >= 0x7f && character < 0xa0) || character == '/' || character == '\\' ||
               (character == '.' && used == 0) || (length == 1 && character == 0xfffd);
    memcpy(out + used, odd ? "_" : name, odd ? 1 : length);
    used += odd ? 1 : length;
  }
  if (used == 0) out[used++] = '_';
  out[used] = '\0';
}

static clv_status make_folder(const char *folder, clv_error *error) {
  char path[4096];
  size_t length = strlen(folder);
  if (length >= sizeof path) return clv__error_set(error, CLV_INVALID_ARGUMENT, "path of %zu bytes is too long", length);
  for (size_t i = 1; i <= length; ++i) { /* also creates the parent folders */
    if (folder[i] != '/' && folder[i] != '\0') continue;
    memcpy(path, folder, i);
    path[i] = '\0';
    if (mkdir(path, 0777) != 0 && errno != EEXIST) {
      return clv__error_set(error, CLV_IO_ERROR, "%s: cannot create the folder: %s", path, strerror(errno));
    }
  }
  struct stat info;
  if (stat(folder, &info) == 0 && S_ISDIR(info.st_mode)) return CLV_OK;
  return clv__error_set(error, CLV_IO_ERROR, "%s: exists, but is not a folder", folder);
}

clv_status cli_values_write(cli_invocation *cli, const char *folder, cli_value *values, uint32_t count, clv_error *error) {
  CLV__TRY(make_folder(folder, error));
  for (uint32_t i = 0; i < count; ++i) {
    char base[FILE_NAME_BYTES], name[FILE_NAME_BYTES + 24];
    file_name(values[i].name, base);
    snprintf(name, sizeof name, "%s.npy", base);
    size_t room = strlen(folder) + sizeof name + 2;
    char *path = clv__arena_allocate(&cli->arena, room);
    if (path == NULL) return clv__error_memory(error, room);
    snprintf(path, room, "%s/%s", folder, name);
    for (uint32_t k = 0, number = 2; k < i;
         ++k) { /* another value has this file name: try the next number, and compare with all values again */
      if (values[k].file == NULL || strcmp(values[k].file, path) != 0) continue;
      snprintf(path, room, "%s/%s-%u.npy", folder, base, number++);
      k = UINT32_MAX;
    }
    clv_status status = clv__npy_write(cli->allocator, path, &values[i].tensor, error);
    if (status != CLV_OK) return clv__error_prefix(error, status, "value '%s'", values[i].name);
    values[i].file = path;
  }
  return CLV_OK;
}
