/* Shows the report of the conformance kit: clv_check_report_text(). */
#include "cleave/check.h"
#include "base/document.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "report/json.h"
#include "report/label.h"
#include "report/table.h"

/* ---- JSON ---- */

static json_t *items_json(const clv_check_item *items, uint32_t count, const char *text_name, bool with_count) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < count; ++i) {
    json_t *object = json_object();
    json_object_set_new(object, "what", clv__json_text(items[i].what));
    json_object_set_new(object, text_name, clv__json_text(items[i].text));
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

static clv_status give_json(const clv_check_report *report, char **out, clv_error *error) {
  json_t *root = json_object(), *sections = json_array();
  for (uint32_t i = 0; i < report->section_count; ++i) {
    const clv_check_section *section = &report->sections[i];
    json_t *object = json_object();
    json_object_set_new(object, "name", clv__json_text(section->name));
    json_object_set_new(object, "help", clv__json_text(section->help));
    count_json(object, section->passed, section->failed, section->skipped);
    json_object_set_new(object, "seconds", clv__json_real(section->seconds));
    json_object_set_new(object, "failures", items_json(section->failures, section->failure_count, "text", false));
    json_object_set_new(object, "skips", items_json(section->skips, section->skip_count, "reason", true));
    json_array_append_new(sections, object);
  }
  json_object_set_new(root, "device", clv__json_text(report->device));
  json_object_set_new(root, "backend", clv__json_text(report->backend));
  json_object_set_new(root, "version", clv__json_text(report->version));
  json_object_set_new(root, "description", clv__json_text(report->description));
  json_object_set_new(root, "seed", json_integer((json_int_t)report->seed));
  count_json(root, report->passed, report->failed, report->skipped);
  json_object_set_new(root, "sections", sections);
  return clv__json_give(root, clv__allocator_default(), out, error);
}

/* ---- For people ---- */

/* Returns an escape sequence, or "" without colours. */
static const char *style(bool colors, const char *sequence) {
  return colors ? sequence : "";
}

static void write_table(const clv_check_report *report, bool bold, clv__text *text) {
  static const char *const titles[] = {"section", "passed", "failed", "skipped", "time", "what it checks"};
  char time[CLV__LABEL_BYTES];
  clv__table table;
  clv__table_init(&table, text->allocator, "lrrrrl", true);
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
  clv__table_write(&table, 0, bold, text);
  clv__table_finish(&table);
}

static void write_items(const clv_check_section *section, bool skips, bool colors, clv__text *text) {
  const clv_check_item *items = skips ? section->skips : section->failures;
  uint32_t count = skips ? section->skip_count : section->failure_count;
  for (uint32_t i = 0; i < count; ++i) {
    clv__text_append(text, "%s%s%s %s: ", style(colors, skips ? "\033[2m" : "\033[31m"), skips ? "SKIP" : "FAIL",
                     style(colors, "\033[0m"), section->name);
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

static void write_report(const clv_check_report *report, const clv_check_text_options *options, bool colors, clv__text *text) {
  for (uint32_t i = 0; options->skips && i < report->section_count; ++i) write_items(&report->sections[i], true, colors, text);
  for (uint32_t i = 0; i < report->section_count; ++i) write_items(&report->sections[i], false, colors, text);
  if (!options->brief) {
    if (text->size_bytes > 0) clv__text_append(text, "\n");
    clv__label_name(text, report->device);
    clv__text_append(text, " (%s %s): ", report->backend, report->version);
    clv__label_name(text, report->description);
    clv__text_append(text, "\n\n");
    write_table(report, colors, text);
    clv__text_append(text, "\n");
  }
  clv__text_append(text, "%s%u passed, %u failed%s, %u skipped%s\n", style(colors, report->failed > 0 ? "\033[31m" : "\033[32m"),
                   report->passed, report->failed, style(colors, "\033[0m"), report->skipped,
                   report->skipped > 0 && !options->skips && !options->brief ? "; -v shows why" : "");
}

clv_status clv_check_report_text(const clv_check_report *report, const clv_check_text_options *given, clv_form form, char **out,
                                 clv_error *error) {
  CLV__TRY(clv__document_check(form, out, error));
  if (report == NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "report must not be NULL");
  clv_check_text_options options = CLV_CHECK_TEXT_OPTIONS_INIT;
  CLV__TRY(clv__options_read(&options, sizeof options, given, "CLV_CHECK_TEXT_OPTIONS_INIT", error));
  if (form == CLV_FORM_JSON) return give_json(report, out, error);
  clv__text text;
  clv__text_init(&text, clv__allocator_default());
  write_report(report, &options, form == CLV_FORM_TERMINAL, &text);
  return clv__document_give(&text, out, error);
}
