/* `cleave devices`: lists the available devices and their capabilities. */
#include "cli/console.h"
#include "cli/inspect/probe.h"
#include "cli/job.h"
#include "cli/json.h"
#include "report/label.h"
#include "report/table.h"

static json_t *operators_json(const cli_probe *probe, uint32_t device) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < probe->count; ++i) {
    if (!probe->supported[(size_t)i * probe->device_count + device]) continue;
    json_array_append_new(list, cli_json_text(probe->ops[i]->name));
  }
  return list;
}

static json_t *options_json(const clv_backend *backend) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < backend->option_count; ++i) {
    const clv_option_info *option = &backend->options[i];
    json_t *object = json_object();
    json_object_set_new(object, "key", cli_json_text(option->key));
    json_object_set_new(object, "values", cli_json_text(option->values != NULL ? option->values : ""));
    json_object_set_new(object, "help", cli_json_text(option->help != NULL ? option->help : ""));
    json_array_append_new(list, object);
  }
  return list;
}

static json_t *left_out_json(const clv_devices *devices) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < devices->left_out_count; ++i) {
    json_t *object = json_object();
    json_object_set_new(object, "name", cli_json_text(devices->left_out[i].name));
    json_object_set_new(object, "reason", cli_json_text(devices->left_out[i].reason));
    json_array_append_new(list, object);
  }
  return list;
}

static json_t *device_json(const clv__device *device, const cli_probe *probe, uint32_t index) {
  const clv_device_info *info = &device->info;
  json_t *object = json_object(), *operators = operators_json(probe, index);
  json_object_set_new(object, "name", cli_json_text(device->name));
  json_object_set_new(object, "backend", cli_json_text(device->backend->name));
  json_object_set_new(object, "version", cli_json_text(device->backend->version));
  json_object_set_new(object, "kind", cli_json_text(info->kind));
  json_object_set_new(object, "description", cli_json_text(info->description));
  json_object_set_new(object, "memory_space", cli_json_text(info->memory_space));
  json_object_set_new(object, "memory_limit_bytes",
                      info->memory_limit_bytes == 0 ? json_null() : json_integer((json_int_t)info->memory_limit_bytes));
  json_object_set_new(object, "alignment_bytes", json_integer(info->alignment_bytes));
  json_object_set_new(object, "static_shapes_only", json_boolean(info->static_shapes_only));
  json_object_set_new(object, "fingerprint", cli_json_text(info->fingerprint));
  json_object_set_new(object, "options", options_json(device->backend));
  json_object_set_new(object, "operator_count", json_integer((json_int_t)json_array_size(operators)));
  json_object_set_new(object, "operators", operators);
  return object;
}

static void list_operators(const clv_devices *devices, const cli_probe *probe, clv__text *text) {
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

static void list_options(const cli_invocation *cli, const clv_devices *devices, clv__text *text) {
  for (uint32_t d = 0; d < devices->count; ++d) {
    const clv_backend *backend = devices->items[d].backend;
    if (backend->option_count == 0) continue;
    clv__table table;
    clv__table_init(&table, cli->allocator, "lll", true);
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
    clv__table_write(&table, 2, cli->color_out, text);
    clv__table_finish(&table);
  }
}

static void list_left_out(const cli_invocation *cli, const clv_devices *devices, clv__text *text) {
  if (devices->left_out_count == 0) return;
  clv__table table;
  clv__table_init(&table, cli->allocator, "ll", true);
  clv__table_cell(&table, "not available");
  clv__table_cell(&table, "because");
  for (uint32_t i = 0; i < devices->left_out_count; ++i) {
    clv__table_cell(&table, "%s", devices->left_out[i].name);
    clv__table_cell(&table, "%s", devices->left_out[i].reason);
  }
  clv__text_append(text, "\n");
  clv__table_write(&table, 0, cli->color_out, text);
  clv__table_finish(&table);
}

static void write_table(const cli_invocation *cli, const clv_devices *devices, const cli_probe *probe, clv__text *text) {
  clv__table table;
  char size[CLV__LABEL_BYTES];
  clv__table_init(&table, cli->allocator, "llllrll", true);
  static const char *const titles[] = {"device", "backend", "kind", "memory", "operators", "shapes", "description"};
  for (uint32_t i = 0; i < table.columns; ++i) clv__table_cell(&table, "%s", titles[i]);
  for (uint32_t d = 0; d < devices->count; ++d) {
    const clv_device_info *info = &devices->items[d].info;
    clv__table_cell(&table, "%s", devices->items[d].name);
    clv__table_cell(&table, "%s", devices->items[d].backend->name);
    clv__table_cell(&table, "%s", info->kind);
    clv__table_cell(&table, "%s%s%s", info->memory_limit_bytes > 0 ? clv__label_size(info->memory_limit_bytes, size) : "",
                    info->memory_limit_bytes > 0 ? ", " : "", info->memory_space);
    clv__table_cell(&table, "%u of %u", cli_probe_count(probe, d), probe->count);
    clv__table_cell(&table, "%s", info->static_shapes_only ? "static" : "any");
    clv__table_cell(&table, "%s", info->description);
  }
  clv__table_write(&table, 0, cli->color_out, text);
  clv__table_finish(&table);
}

static clv_status execute(cli_invocation *cli, clv_error *error) {
  clv_devices *devices = NULL;
  cli_probe probe = {0};
  clv_status status;
  CLV__TRY_GOTO(cli_devices_open(cli, "auto", &devices, error));
  CLV__TRY_GOTO(cli_probe_run(cli, devices, &probe, error));
  if (cli->json) {
    json_t *root = json_object(), *list = json_array();
    for (uint32_t d = 0; d < devices->count; ++d) json_array_append_new(list, device_json(&devices->items[d], &probe, d));
    json_object_set_new(root, "devices", list);
    json_object_set_new(root, "left_out", left_out_json(devices));
    json_object_set_new(root, "operators_known", json_integer(probe.count));
    status = cli_json_print(cli, root, error);
  } else {
    clv__text text;
    clv__text_init(&text, cli->allocator);
    write_table(cli, devices, &probe, &text);
    list_left_out(cli, devices, &text);
    if (cli->verbose) {
      list_options(cli, devices, &text);
      list_operators(devices, &probe, &text);
    }
    status = cli_print(cli, &text, error);
  }
cleanup:
  cli_probe_finish(cli, &probe);
  clv_devices_close(devices);
  return status;
}

const cli_command cli_command_devices = {
    .name = "devices",
    .operands = "",
    .summary = "list the devices, and the operators each supports",
    .description =
        "Opens the devices of --devices, or all that are found, and shows their memory and how many of Cleave's operators they\n"
        "support. Whether a device can run a node of a model also depends on types, shapes and attributes: see 'cleave inspect\n"
        "MODEL'. -v lists the options and operators of each device. Devices that were not found or could not be loaded are\n"
        "listed with the reason.",
    .examples =
        "  cleave devices                                                     # all devices found on this machine\n"
        "  cleave devices --devices npu,cpu -v                                # also their options and operators\n"
        "  cleave devices --plugin ./cleave_template.so --devices template    # the devices of a plugin\n"
        "  cleave devices --devices npu --npu-spec my-npu.json --json         # a virtual NPU described by a file; print JSON\n",
    .execute = execute,
};
