/* `cleave check-backend`: runs the conformance kit on a plugin or a device. */
#include <string.h>

#include "cleave/check.h"
#include "cli/console.h"
#include "cli/json.h"
#include "cli/options/options.h"
#include "report/label.h"
#include "report/table.h"

static void show_progress(void *user_data, const char *section, uint32_t done, uint32_t of) {
  cli_invocation *cli = user_data;
  if (of > 0)
    cli_progress(cli, "%s: %u of %u", section, done, of);
  else
    cli_progress(cli, "%s", section);
}

/* ---- JSON ---- */

static json_t *items_json(const clv_check_item *items, uint32_t count, const char *text_name, bool with_count) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < count; ++i) {
    json_t *object = json_object();
    json_object_set_new(object, "what", cli_json_text(items[i].what));
    json_object_set_new(object, text_name, cli_json_text(items[i].text));
    if (with_count) json_object_set_new(object, "count", json_integer(items[i].count));
    json_array_append_new(list, object);
  }
  return list;
}

static void count_json(json_t *object, uint32_t passed, uint32_t failed, uint32_t skipped) {
  json_object_set_new(object, "passed", json_integer(passed));
  json_object_set_new(object, "failed", json_integer(failed));
  json_object_set_new(object, "skipped", json_integer(skipped));
}

static clv_status print_json(cli_invocation *cli, const clv_check_report *report, uint64_t seed, clv_error *error) {
  json_t *root = json_object(), *sections = json_array();
  for (uint32_t i = 0; i < report->section_count; ++i) {
    const clv_check_section *section = &report->sections[i];
    json_t *object = json_object();
    json_object_set_new(object, "name", cli_json_text(section->name));
    json_object_set_new(object, "help", cli_json_text(section->help));
    count_json(object, section->passed, section->failed, section->skipped);
    json_object_set_new(object, "seconds", cli_json_real(section->seconds));
    json_object_set_new(object, "failures", items_json(section->failures, section->failure_count, "text", false));
    json_object_set_new(object, "skips", items_json(section->skips, section->skip_count, "reason", true));
    json_array_append_new(sections, object);
  }
  json_object_set_new(root, "device", cli_json_text(report->device));
  json_object_set_new(root, "backend", cli_json_text(report->backend));
  json_object_set_new(root, "version", cli_json_text(report->version));
  json_object_set_new(root, "description", cli_json_text(report->description));
  json_object_set_new(root, "seed", json_integer((json_int_t)seed));
  count_json(root, report->passed, report->failed, report->skipped);
  json_object_set_new(root, "sections", sections);
  return cli_json_print(cli, root, error);
}

/* ---- For people ---- */

static void write_table(const cli_invocation *cli, const clv_check_report *report, clv__text *text) {
  static const char *const titles[] = {"section", "passed", "failed", "skipped", "time", "what it checks"};
  char time[CLV__LABEL_BYTES];
  clv__table table;
  clv__table_init(&table, cli->allocator, "lrrrrl", true);
  for (uint32_t i = 0; i < table.columns; ++i) clv__table_cell(&table, "%s", titles[i]);
  for (uint32_t i = 0; i < report->section_count; ++i) {
    const clv_check_section *section = &report->sections[i];
    clv__table_cell(&table, "%s", section->name);
    clv__table_cell(&table, "%u", section->passed);
    clv__table_cell(&table, "%u", section->failed);
    clv__table_cell(&table, "%u", section->skipped);
    clv__table_cell(&table, "%s", clv__label_time((uint64_t)(section->seconds * 1e9), time));
    clv__table_cell(&table, "%s", section->help);
  }
  clv__table_write(&table, 0, cli->color_out, text);
  clv__table_finish(&table);
}

static void write_items(const cli_invocation *cli, const clv_check_section *section, bool skips, clv__text *text) {
  const clv_check_item *items = skips ? section->skips : section->failures;
  uint32_t count = skips ? section->skip_count : section->failure_count;
  for (uint32_t i = 0; i < count; ++i) {
    clv__text_append(text, "%s%s%s %s: ", cli_begin(cli, skips ? CLI_DIM : CLI_RED), skips ? "SKIP" : "FAIL", cli_reset(cli),
                     section->name);
    clv__label_name(text, items[i].what);
    clv__text_append(text, ": ");
    clv__label_name(text, items[i].text);
    if (items[i].count > 1) clv__text_append(text, " (%u times)", items[i].count);
    clv__text_append(text, "\n");
  }
  if (!skips && section->failed > count) {
    clv__text_append(text, "     %s: and %u more\n", section->name, section->failed - count);
  }
}

static clv_status print_report(cli_invocation *cli, const clv_check_report *report, clv_error *error) {
  clv__text text;
  clv__text_init(&text, cli->allocator);
  for (uint32_t i = 0; cli->verbose && i < report->section_count; ++i) write_items(cli, &report->sections[i], true, &text);
  for (uint32_t i = 0; i < report->section_count; ++i) write_items(cli, &report->sections[i], false, &text);
  if (!cli->quiet) {
    if (text.size_bytes > 0) clv__text_append(&text, "\n");
    clv__label_name(&text, report->device);
    clv__text_append(&text, " (%s %s): ", report->backend, report->version);
    clv__label_name(&text, report->description);
    clv__text_append(&text, "\n\n");
    write_table(cli, report, &text);
    clv__text_append(&text, "\n");
  }
  clv__text_append(&text, "%s%u passed, %u failed%s, %u skipped%s\n", cli_begin(cli, report->failed > 0 ? CLI_RED : CLI_GREEN),
                   report->passed, report->failed, cli_reset(cli), report->skipped,
                   report->skipped > 0 && !cli->verbose && !cli->quiet ? "; -v shows why" : "");
  return cli_print(cli, &text, error);
}

static clv_status execute(cli_invocation *cli, clv_error *error) {
  const cli_options *given = cli->options;
  const char *device = given->operands[0];
  size_t length = strlen(device);
  if (strchr(device, '/') == NULL && length > 3 && strcmp(device + length - 3, ".so") == 0) {
    return cli_usage(cli, error, "'%s': to check a plugin, give its path: ./%s", device, device);
  }
  clv_devices_options devices = CLV_DEVICES_OPTIONS_INIT;
  devices.npu_spec_count = given->given[OPTION_NPU_SPEC].count;
  devices.npu_specs = given->given[OPTION_NPU_SPEC].values;
  devices.device_option_count = given->given[OPTION_DEVICE_OPTION].count;
  devices.device_options = given->given[OPTION_DEVICE_OPTION].values;
  devices.thread_count = (uint32_t)cli_number(cli, OPTION_THREADS, 0);
  clv_check_options options = CLV_CHECK_OPTIONS_INIT;
  options.sections = given->given[OPTION_SECTION].values;
  options.section_count = given->given[OPTION_SECTION].count;
  options.seed = cli_number(cli, OPTION_SEED, 0);
  options.progress = show_progress;
  options.user_data = cli;
  options.every = (uint32_t)cli_number(cli, OPTION_EVERY, 0);
  options.apart = true;
  clv_check_report *report = NULL;
  clv_status status = clv_check_backend(cli->context, device, &devices, &options, &report, error);
  if (status == CLV_INVALID_ARGUMENT || status == CLV_NOT_FOUND) cli->exit_status = CLI_EXIT_USAGE;
  if (status != CLV_OK) return status;
  status = cli->json ? print_json(cli, report, options.seed, error) : print_report(cli, report, error);
  if (report->failed > 0) cli->exit_status = CLI_EXIT_FAILED;
  clv_check_report_destroy(report);
  return status;
}

const cli_command cli_command_check_backend = {
    .name = "check-backend",
    .operands = "LIB.so|DEVICE",
    .min_operands = 1,
    .max_operands = 1,
    .summary = "test whether a plugin conforms to the plugin interface",
    .description =
        "Runs the conformance kit on the device of a plugin (given by its path) or on a known device (cpu, npu, opencl, ...). "
        "It\n"
        "checks what the plugin interface requires, section by section; docs/conformance.md describes the sections. Results are\n"
        "compared with those of the reference evaluator. Each section runs in a separate process. If a backend crashes, or does\n"
        "not answer for two minutes, the section fails and the next one runs. Optional features that a backend lacks are\n"
        "skipped; -v lists the reasons. All random choices depend on --seed. The exit status is 0 if nothing failed.",
    .examples =
        "  cleave check-backend ./libmynpu.so                                      # all sections, for the device of a plugin\n"
        "  cleave check-backend npu --npu-spec all --section operators --seed 7    # one section, for the virtual NPU\n"
        "  cleave check-backend opencl --json                                      # all sections, for an OpenCL device; print "
        "JSON\n",
    .execute = execute,
};
