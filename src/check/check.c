/* A check of one device: opened anew for each section, which then looks at what it will; what it says goes into the report. The
 * sections themselves are in files of their own, apart.c runs them in processes of their own. */
#include "check/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/options.h"
#include "check/apart.h"
#include "check/report.h"

const char *clv_check_section_name(uint32_t index) {
  return index < clv__check_section_count ? clv__check_sections[index].name : NULL;
}
const char *clv_check_section_help(uint32_t index) {
  return index < clv__check_section_count ? clv__check_sections[index].help : NULL;
}

uint64_t clv__check_random(uint64_t *state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}
uint32_t clv__check_below(uint64_t *state, uint32_t limit) {
  return (uint32_t)((clv__check_random(state) >> 32) * limit >> 32);
}
double clv__check_real(uint64_t *state) {
  return (double)(clv__check_random(state) >> 11) / 4503599627370496.0 - 1.0;
}

/* ---- What sections say ---- */

void clv__check_beat(clv__check *check) {
  __atomic_add_fetch(&check->sign->beats, 1, __ATOMIC_RELAXED);
}

static void say(clv__check *check, clv__check_fact fact, const char *what, const char *text) {
  clv__check_beat(check);
  clv__report_add(check->report, check->section, fact, what, text);
  if (check->listener != NULL) check->listener(check->cookie, fact, what, text);
}

void clv__check_pass(clv__check *check) {
  say(check, CLV__CHECK_PASS, NULL, NULL);
}

static void say_format(clv__check *check, clv__check_fact fact, const char *what, const char *format, va_list arguments) {
  char text[1024];
  vsnprintf(text, sizeof text, format, arguments);
  say(check, fact, what, text);
}

void clv__check_fail(clv__check *check, const char *what, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  say_format(check, CLV__CHECK_FAIL, what, format, arguments);
  va_end(arguments);
}

void clv__check_skip(clv__check *check, const char *what, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  say_format(check, CLV__CHECK_SKIP, what, format, arguments);
  va_end(arguments);
}

bool clv__check_that(clv__check *check, bool holds, const char *what, const char *format, ...) {
  va_list arguments;
  if (holds) {
    clv__check_pass(check);
    return true;
  }
  va_start(arguments, format);
  say_format(check, CLV__CHECK_FAIL, what, format, arguments);
  va_end(arguments);
  return false;
}

void clv__check_at(clv__check *check, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(check->sign->what, sizeof check->sign->what, format, arguments);
  va_end(arguments);
  clv__check_beat(check);
}

void clv__check_progress(clv__check *check, uint32_t done, uint32_t of) {
  check->sign->done = done;
  check->sign->of = of;
  clv__check_beat(check);
  const clv_check_options *options = check->options;
  if (options->progress == NULL || check->listener != NULL) return; /* whoever listens tells it */
  options->progress(options->user_data, check->report->sections[check->section].name, done, of);
}

uint32_t clv__check_thin(const clv__check *check, uint32_t count) {
  uint32_t few = check->options->every > 1 ? count / check->options->every : count;
  return few > 0 ? few : 1;
}

void clv__check_failed_call(clv__check *check, const char *what, const char *call, clv_status status, const clv_error *error) {
  clv__check_fail(check, what, "%s failed: %s: %s", call, clv_status_name(status),
                  error->message[0] != '\0' ? error->message : "(no text)");
}

/* ---- One section ---- */

static double now_s(void) {
  return (double)clv__clock_ns() * 1e-9;
}

static clv_status open_device(clv__check *check, clv_error *error) {
  CLV__TRY(clv_devices_open(check->context, check->devices_options, &check->devices, error));
  check->device = &check->devices->items[0];
  check->backend = check->device->backend;
  check->handle = check->device->handle;
  return CLV_OK;
}

clv_status clv__check_reopen(clv__check *check, clv_error *error) {
  clv_devices_close(check->devices);
  check->devices = NULL;
  return open_device(check, error);
}

clv_status clv__check_run_section(const clv__check_request *request, uint32_t index, clv_check_report *report,
                                  clv__check_listener listener, void *cookie, clv__check_sign *sign, clv_error *error) {
  double start_s = now_s();
  clv__check check = {
      .context = request->context,
      .allocator = clv__context_allocator(request->context),
      .devices_options = &request->devices_options,
      .options = request->options,
      .seed = request->options->seed,
      .report = report,
      .section = index,
      .listener = listener,
      .cookie = cookie,
      .sign = sign,
  };
  uint32_t section = 0;
  while (strcmp(clv__check_sections[section].name, report->sections[index].name) != 0) ++section;
  *sign = (clv__check_sign){0};
  snprintf(sign->what, sizeof sign->what, "opening the device");
  CLV__TRY(open_device(&check, error));
  clv_status status = clv__report_identify(report, check.device->name, check.backend->name, check.backend->version,
                                           check.device->info.description, error);
  clv__arena_init(&check.arena, check.allocator);
  if (status == CLV_OK) clv__check_sections[section].run(&check);
  clv__check_at(&check, "closing the device");
  clv__arena_finish(&check.arena);
  clv_devices_close(check.devices);
  clv__report_time(report, index, now_s() - start_s);
  return status;
}

/* ---- All of it ---- */

static clv_status unknown_section(const char *name, clv_error *error) {
  char known[512];
  size_t used = 0;
  known[0] = '\0';
  for (uint32_t i = 0; i < clv__check_section_count && used < sizeof known; ++i) {
    used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i > 0 ? ", " : "", clv__check_sections[i].name);
  }
  return clv__error_set(error, CLV_NOT_FOUND, "section '%s' is none; there are: %s", name, known);
}

/* The sections asked for, in the order in which they run. */
static clv_status choose(const clv_check_options *options, uint32_t *chosen, uint32_t *count, clv_error *error) {
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
    if (is_wanted) chosen[(*count)++] = i;
  }
  return CLV_OK;
}

clv_status clv__check_resolve(clv__check_request *request, clv_error *error) {
  if (strchr(request->device, '/') == NULL) return CLV_OK;
  const clv_backend *backend = NULL;
  CLV__TRY(clv__context_load_plugin(request->context, request->device, NULL, &backend, error));
  request->devices_options.list = backend->name;
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
  uint32_t *chosen = clv__allocate_zero(allocator, clv__check_section_count * sizeof *chosen), count;
  if (chosen == NULL) return clv__error_memory(error, clv__check_section_count * sizeof *chosen);
  clv_status status = choose(options, chosen, &count, error);
  if (status == CLV_OK) status = clv__report_create(allocator, chosen, count, options->failures_listed, report, error);
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
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "one device is checked at a time, '%s' names several", device);
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
