/* The public check of one device: it selects the sections, runs them in this process or each in its own, and returns their
 * report. */
#include <stdio.h>
#include <string.h>

#include "base/options.h"
#include "check/apart.h"

const char *clv_check_section_name(uint32_t index) {
  return index < clv__check_section_count ? clv__check_sections[index].name : NULL;
}
const char *clv_check_section_help(uint32_t index) {
  return index < clv__check_section_count ? clv__check_sections[index].help : NULL;
}

static clv_status unknown_section(const char *name, clv_error *error) {
  char known[512];
  size_t used = 0;
  known[0] = '\0';
  for (uint32_t i = 0; i < clv__check_section_count && used < sizeof known; ++i) {
    used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i > 0 ? ", " : "", clv__check_sections[i].name);
  }
  return clv__error_set(error, CLV_NOT_FOUND, "unknown section '%s'; the sections are: %s", name, known);
}

/* Sets `chosen` to the requested sections, in the order in which they run: all sections if the options name none. */
static clv_status choose(const clv_check_options *options, clv_check_section *chosen, uint32_t *count, clv_error *error) {
  *count = 0;
  for (uint32_t k = 0; k < options->section_count; ++k) {
    uint32_t i = 0;
    while (i < clv__check_section_count && strcmp(clv__check_sections[i].name, options->sections[k]) != 0) ++i;
    if (i == clv__check_section_count) return unknown_section(options->sections[k], error);
  }
  for (uint32_t i = 0; i < clv__check_section_count; ++i) {
    bool is_wanted = options->section_count == 0;
    for (uint32_t k = 0; k < options->section_count; ++k) {
      is_wanted = is_wanted || strcmp(clv__check_sections[i].name, options->sections[k]) == 0;
    }
    if (!is_wanted) continue;
    chosen[*count].name = clv__check_sections[i].name;
    chosen[(*count)++].help = clv__check_sections[i].help;
  }
  return CLV_OK;
}

static clv_status run_here(clv__check_request *request, clv_check_report *report, clv_error *error) {
  clv__check_sign sign;
  CLV__TRY(clv__check_resolve(request, error));
  for (uint32_t i = 0; i < report->section_count; ++i) {
    CLV__TRY(clv__check_run_section(request, i, report, NULL, NULL, &sign, error));
  }
  return CLV_OK;
}

static clv_status begin_report(clv_context *context, const clv_check_options *options, clv_check_report **report,
                               clv_error *error) {
  const clv_allocator *allocator = clv__context_allocator(context);
  clv_check_section *chosen = clv__allocate_zero(allocator, clv__check_section_count * sizeof *chosen);
  uint32_t count;
  if (chosen == NULL) return clv__error_memory(error, clv__check_section_count * sizeof *chosen);
  clv_status status = choose(options, chosen, &count, error);
  if (status == CLV_OK) status = clv__report_create(allocator, chosen, count, options->failures_listed, report, error);
  if (status == CLV_OK) (*report)->seed = options->seed;
  clv__release(allocator, chosen);
  return status;
}

clv_status clv_check_backend(clv_context *context, const char *device, const clv_devices_options *devices_options,
                             const clv_check_options *given, clv_check_report **report, clv_error *error) {
  if (context == NULL || device == NULL || report == NULL) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "context, device and report must not be NULL");
  }
  *report = NULL;
  clv_check_options options = CLV_CHECK_OPTIONS_INIT;
  clv_devices_options opening = CLV_DEVICES_OPTIONS_INIT;
  CLV__TRY(clv__options_read(&options, sizeof options, given, "CLV_CHECK_OPTIONS_INIT", error));
  CLV__TRY(clv__options_read(&opening, sizeof opening, devices_options, "CLV_DEVICES_OPTIONS_INIT", error));
  CLV__TRY(clv__options_texts(options.sections, options.section_count, "sections", error));
  bool is_path = strchr(device, '/') != NULL;
  if (strcmp(device, "auto") == 0 || (!is_path && strchr(device, ',') != NULL)) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "one device is checked at a time, but '%s' names several", device);
  }
  opening.list = device;
  clv__check_request request = {context, device, opening, &options};
  clv_check_report *made = NULL;
  CLV__TRY(begin_report(context, &options, &made, error));
  clv_status status = options.apart ? clv__check_run_apart(&request, made, error) : run_here(&request, made, error);
  if (status != CLV_OK) {
    clv_check_report_destroy(made);
    return status;
  }
  clv__report_close(made);
  *report = made;
  return CLV_OK;
}
