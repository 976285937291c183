/* Lists a folder that was compiled ahead of time: clv_compiled_text(). */
#include "base/document.h"
#include "compile/folder.h"
#include "report/json.h"
#include "report/label.h"
#include "report/table.h"

/* Returns the size of all files together. */
static uint64_t total_bytes(const clv_compiled *compiled) {
  uint64_t total = compiled->other_bytes;
  for (uint32_t p = 0; p < compiled->partition_count; ++p) total += compiled->partitions[p].model_bytes;
  for (uint32_t e = 0; e < compiled->executable_count; ++e) total += compiled->executables[e].size_bytes;
  return total;
}

/* ---- As text ---- */

static void add_row(clv__table *table, const clv_compiled *compiled, uint32_t p, uint32_t *next) {
  const clv__folder_partition *partition = &compiled->partitions[p];
  char size[CLV__LABEL_BYTES];
  clv__table_cell(table, "%u", p);
  clv__table_cell(table, "%s", partition->device);
  clv__table_cell(table, "%u", partition->node_count);
  clv__table_cell(table, "%s", partition->model);
  clv__table_cell(table, "%s", clv__label_size(partition->model_bytes, size));
  uint32_t first = *next;
  uint64_t bytes = 0;
  for (; *next < compiled->executable_count && compiled->executables[*next].partition == p; ++*next)
    bytes += compiled->executables[*next].size_bytes;
  if (*next == first) {
    clv__table_cell(table, "none: %s", partition->reason != NULL ? partition->reason : "it was not saved");
    clv__table_cell(table, "%s", "");
    return;
  }
  uint32_t others = *next - first - 1;
  if (others == 0)
    clv__table_cell(table, "%s", compiled->executables[first].file);
  else
    clv__table_cell(table, "%s and %u more", compiled->executables[first].file, others);
  clv__table_cell(table, "%s", clv__label_size(bytes, size));
}

static void write_compiled(const clv_compiled *compiled, bool brief, bool bold, clv__text *text) {
  static const char *const titles[] = {"partition", "device", "nodes", "model", "size", "executable", "size"};
  char size[CLV__LABEL_BYTES];
  if (!brief) {
    clv__table table;
    uint32_t next = 0;
    clv__table_init(&table, text->allocator, "rlrlrlr", true);
    for (uint32_t i = 0; i < table.columns; ++i) clv__table_cell(&table, "%s", titles[i]);
    for (uint32_t p = 0; p < compiled->partition_count; ++p) add_row(&table, compiled, p, &next);
    clv__table_write(&table, 0, bold, text);
    clv__table_finish(&table);
    clv__text_append(text, "\n");
  }
  clv__label_name(text, compiled->directory);
  clv__text_append(text, ": ");
  clv__label_plural(text, compiled->partition_count, "partition");
  clv__text_append(text, ", ");
  clv__label_plural(text, compiled->executable_count, "executable");
  clv__text_append(text, ", %s in total; run it with 'cleave run ", clv__label_size(total_bytes(compiled), size));
  clv__label_name(text, compiled->directory);
  clv__text_append(text, "'\n");
}

/* ---- As JSON ---- */

static json_t *partition_json(const clv_compiled *compiled, uint32_t p, uint32_t *next) {
  const clv__folder_partition *partition = &compiled->partitions[p];
  json_t *object = json_object(), *list = json_array();
  json_object_set_new(object, "id", json_integer(p));
  json_object_set_new(object, "device", clv__json_text(partition->device));
  json_object_set_new(object, "nodes", json_integer(partition->node_count));
  json_object_set_new(object, "onnx", clv__json_text(partition->model));
  json_object_set_new(object, "onnx_bytes", json_integer((json_int_t)partition->model_bytes));
  for (; *next < compiled->executable_count && compiled->executables[*next].partition == p; ++*next) {
    json_t *one = json_object();
    json_object_set_new(one, "file", clv__json_text(compiled->executables[*next].file));
    json_object_set_new(one, "bytes", json_integer((json_int_t)compiled->executables[*next].size_bytes));
    json_array_append_new(list, one);
  }
  json_object_set_new(object, "executables", list);
  json_object_set_new(object, "reason", partition->reason != NULL ? clv__json_text(partition->reason) : json_null());
  return object;
}

static clv_status give_json(const clv_compiled *compiled, char **out, clv_error *error) {
  json_t *root = json_object(), *list = json_array();
  uint32_t next = 0;
  json_object_set_new(root, "directory", clv__json_text(compiled->directory));
  for (uint32_t p = 0; p < compiled->partition_count; ++p) json_array_append_new(list, partition_json(compiled, p, &next));
  json_object_set_new(root, "partitions", list);
  json_object_set_new(root, "bytes", json_integer((json_int_t)total_bytes(compiled)));
  return clv__json_give(root, compiled->arena.allocator, out, error);
}

clv_status clv_compiled_text(const clv_compiled *compiled, bool brief, clv_form form, char **out, clv_error *error) {
  CLV__TRY(clv__document_check(form, out, error));
  if (compiled == NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "compiled must not be NULL");
  if (form == CLV_FORM_JSON) return give_json(compiled, out, error);
  clv__text text;
  clv__text_init(&text, compiled->arena.allocator);
  write_compiled(compiled, brief, form == CLV_FORM_TERMINAL, &text);
  return clv__document_give(&text, out, error);
}
