/* Lists devices and their capabilities: clv_devices_report(). */
#include "base/document.h"
#include "base/error.h"
#include "base/memory.h"
#include "cleave/report.h"
#include "report/devices/probe.h"
#include "report/json.h"
#include "report/label.h"
#include "report/table.h"

static json_t *operators_json(const clv__probe *probe, uint32_t device) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < probe->count; ++i) {
    if (!probe->supported[(size_t)i * probe->device_count + device]) continue;
    json_array_append_new(list, clv__json_text(probe->ops[i]->name));
  }
  return list;
}

static json_t *options_json(const clv_backend *backend) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < backend->option_count; ++i) {
    const clv_option_info *option = &backend->options[i];
    json_t *object = json_object();
    json_object_set_new(object, "key", clv__json_text(option->key));
    json_object_set_new(object, "values", clv__json_text(option->values != NULL ? option->values : ""));
    json_object_set_new(object, "help", clv__json_text(option->help != NULL ? option->help : ""));
    json_array_append_new(list, object);
  }
  return list;
}

static json_t *left_out_json(const clv_devices *devices) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < devices->left_out_count; ++i) {
    json_t *object = json_object();
    json_object_set_new(object, "name", clv__json_text(devices->left_out[i].name));
    json_object_set_new(object, "reason", clv__json_text(devices->left_out[i].reason));
    json_array_append_new(list, object);
  }
  return list;
}

static json_t *device_json(const clv__device *device, const clv__probe *probe, uint32_t index) {
  const clv_device_info *info = &device->info;
  json_t *object = json_object(), *operators = operators_json(probe, index);
  json_object_set_new(object, "name", clv__json_text(device->name));
  json_object_set_new(object, "backend", clv__json_text(device->backend->name));
  json_object_set_new(object, "version", clv__json_text(device->backend->version));
  json_object_set_new(object, "kind", clv__json_text(info->kind));
  json_object_set_new(object, "description", clv__json_text(info->description));
  json_object_set_new(object, "memory_space", clv__json_text(info->memory_space));
  json_object_set_new(object, "memory_limit_bytes",
                      info->memory_limit_bytes == 0 ? json_null() : json_integer((json_int_t)info->memory_limit_bytes));
  json_object_set_new(object, "alignment_bytes", json_integer(info->alignment_bytes));
  json_object_set_new(object, "static_shapes_only", json_boolean(info->static_shapes_only));
  json_object_set_new(object, "fingerprint", clv__json_text(info->fingerprint));
  json_object_set_new(object, "options", options_json(device->backend));
  json_object_set_new(object, "operator_count", json_integer((json_int_t)json_array_size(operators)));
  json_object_set_new(object, "operators", operators);
  return object;
}

static void list_operators(const clv_devices *devices, const clv__probe *probe, clv__text *text) {
  for (uint32_t d = 0; d < devices->count; ++d) {
    clv__text_append(text, "\n%s supports these operators, for some types, shapes and attributes:\n ", devices->items[d].name);
    size_t column = 1;
    for (uint32_t i = 0; i < probe->count; ++i) {
      if (!probe->supported[(size_t)i * probe->device_count + d]) continue;
      size_t width = clv__label_columns(probe->ops[i]->name);
      if (column + 1 + width > 100) {
        clv__text_append(text, "\n ");
        column = 1;
      }
      clv__text_append(text, " %s", probe->ops[i]->name);
      column += 1 + width;
    }
    clv__text_append(text, "\n");
  }
}

static void list_options(const clv_devices *devices, bool bold, clv__text *text) {
  for (uint32_t d = 0; d < devices->count; ++d) {
    const clv_backend *backend = devices->items[d].backend;
    if (backend->option_count == 0) continue;
    clv__table table;
    clv__table_init(&table, text->allocator, "lll", true);
    static const char *const titles[] = {"option", "values", "meaning"};
    for (uint32_t i = 0; i < table.columns; ++i) clv__table_cell(&table, "%s", titles[i]);
    for (uint32_t i = 0; i < backend->option_count; ++i) {
      const clv_option_info *option = &backend->options[i];
      clv__table_cell(&table, "%s", option->key);
      clv__table_cell(&table, "%s", option->values != NULL ? option->values : "");
      clv__table_cell(&table, "%s", option->help != NULL ? option->help : "");
    }
    clv__text_append(text, "\nOptions of %s, given as --device-option %s:OPTION=VALUE\n", devices->items[d].name,
                     devices->items[d].name);
    clv__table_write(&table, 2, bold, text);
    clv__table_finish(&table);
  }
}

static void list_left_out(const clv_devices *devices, bool bold, clv__text *text) {
  if (devices->left_out_count == 0) return;
  clv__table table;
  clv__table_init(&table, text->allocator, "ll", true);
  clv__table_cell(&table, "not available");
  clv__table_cell(&table, "because");
  for (uint32_t i = 0; i < devices->left_out_count; ++i) {
    clv__table_cell(&table, "%s", devices->left_out[i].name);
    clv__table_cell(&table, "%s", devices->left_out[i].reason);
  }
  clv__text_append(text, "\n");
  clv__table_write(&table, 0, bold, text);
  clv__table_finish(&table);
}

static void write_table(const clv_devices *devices, const clv__probe *probe, bool bold, clv__text *text) {
  clv__table table;
  char size[CLV__LABEL_BYTES];
  clv__table_init(&table, text->allocator, "llllrll", true);
  static const char *const titles[] = {"device", "backend", "kind", "memory", "operators", "shapes", "description"};
  for (uint32_t i = 0; i < table.columns; ++i) clv__table_cell(&table, "%s", titles[i]);
  for (uint32_t d = 0; d < devices->count; ++d) {
    const clv_device_info *info = &devices->items[d].info;
    clv__table_cell(&table, "%s", devices->items[d].name);
    clv__table_cell(&table, "%s", devices->items[d].backend->name);
    clv__table_cell(&table, "%s", info->kind);
    clv__table_cell(&table, "%s%s%s", info->memory_limit_bytes > 0 ? clv__label_size(info->memory_limit_bytes, size) : "",
                    info->memory_limit_bytes > 0 ? ", " : "", info->memory_space);
    clv__table_cell(&table, "%u of %u", clv__probe_count(probe, d), probe->count);
    clv__table_cell(&table, "%s", info->static_shapes_only ? "static" : "any");
    clv__table_cell(&table, "%s", info->description);
  }
  clv__table_write(&table, 0, bold, text);
  clv__table_finish(&table);
}

static clv_status give_json(const clv_devices *devices, const clv__probe *probe, const clv_allocator *allocator, char **out,
                            clv_error *error) {
  json_t *root = json_object(), *list = json_array();
  for (uint32_t d = 0; d < devices->count; ++d) json_array_append_new(list, device_json(&devices->items[d], probe, d));
  json_object_set_new(root, "devices", list);
  json_object_set_new(root, "left_out", left_out_json(devices));
  json_object_set_new(root, "operators_known", json_integer(probe->count));
  return clv__json_give(root, allocator, out, error);
}

static clv_status give_text(const clv_devices *devices, const clv__probe *probe, bool details, bool bold,
                            const clv_allocator *allocator, char **out, clv_error *error) {
  clv__text text;
  clv__text_init(&text, allocator);
  write_table(devices, probe, bold, &text);
  list_left_out(devices, bold, &text);
  if (details) {
    list_options(devices, bold, &text);
    list_operators(devices, probe, &text);
  }
  return clv__document_give(&text, out, error);
}

clv_status clv_devices_report(clv_devices *devices, bool details, clv_form form, char **out, clv_error *error) {
  CLV__TRY(clv__document_check(form, out, error));
  if (devices == NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "devices must not be NULL");
  const clv_allocator *allocator = clv__context_allocator(devices->context);
  clv__probe probe;
  clv__devices_lock(devices);
  clv_status status = clv__probe_run(allocator, devices, &probe, error);
  clv__devices_unlock(devices);
  if (status == CLV_OK)
    status = form == CLV_FORM_JSON ? give_json(devices, &probe, allocator, out, error)
                                   : give_text(devices, &probe, details, form == CLV_FORM_TERMINAL, allocator, out, error);
  clv__probe_finish(allocator, &probe);
  return status;
}
