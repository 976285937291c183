/* See check.h. */
#include "check/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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

/* ---- Results of sections ---- */

void clv__check_beat(clv__check *check) {
  __atomic_add_fetch(&check->sign->beats, 1, __ATOMIC_RELAXED);
}

static void report_fact(clv__check *check, clv__check_fact fact, const char *what, const char *text) {
  clv__check_beat(check);
  clv__report_add(check->report, check->section, fact, what, text);
  if (check->listener != NULL) check->listener(check->cookie, fact, what, text);
}

void clv__check_pass(clv__check *check) {
  report_fact(check, CLV__CHECK_PASS, NULL, NULL);
}

static void report_format(clv__check *check, clv__check_fact fact, const char *what, const char *format, va_list arguments) {
  char text[1024];
  vsnprintf(text, sizeof text, format, arguments);
  report_fact(check, fact, what, text);
}

void clv__check_fail(clv__check *check, const char *what, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  report_format(check, CLV__CHECK_FAIL, what, format, arguments);
  va_end(arguments);
}

void clv__check_skip(clv__check *check, const char *what, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  report_format(check, CLV__CHECK_SKIP, what, format, arguments);
  va_end(arguments);
}

bool clv__check_that(clv__check *check, bool holds, const char *what, const char *format, ...) {
  va_list arguments;
  if (holds) {
    clv__check_pass(check);
    return true;
  }
  va_start(arguments, format);
  report_format(check, CLV__CHECK_FAIL, what, format, arguments);
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
  if (options->progress == NULL || check->listener != NULL) return; /* the parent process reports the progress */
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

/* ---- The device ---- */

clv_status clv__check_open(clv__check *check, clv_error *error) {
  CLV__TRY(clv_devices_open(check->context, check->devices_options, &check->devices, error));
  check->device = &check->devices->items[0];
  check->backend = check->device->backend;
  check->handle = check->device->handle;
  return CLV_OK;
}

clv_status clv__check_reopen(clv__check *check, clv_error *error) {
  clv_devices_close(check->devices);
  check->devices = NULL;
  return clv__check_open(check, error);
}
