/* The section `life` of the conformance kit (check.h): the basics of every backend, regardless of its operators. */
#include <stdio.h>
#include <string.h>

#include "check/sections.h"

enum { OPENINGS = 12, OBJECTS = 64 };

static void check_table(clv__check *check) {
  const clv_backend *b = check->backend;
  clv__check_that(check, b->name[0] != '\0', "the backend's table: name", "it is empty");
  clv__check_that(check, b->version[0] != '\0', "the backend's table: version", "it is empty, but it is part of cache keys");
  clv__check_that(check, b->option_count == 0 || b->options != NULL, "the backend's table: options",
                  "option_count is %u, but `options` is NULL", b->option_count);
  for (uint32_t i = 0; b->options != NULL && i < b->option_count; ++i) {
    const clv_option_info *option = &b->options[i];
    bool is_whole = option->key != NULL && option->key[0] != '\0' && option->values != NULL && option->help != NULL;
    clv__check_that(check, is_whole, "the backend's table: options", "option %u lacks its key, values or help", i);
  }
}

static bool is_text(const char *text) {
  return text != NULL && text[0] != '\0';
}

static void check_info(clv__check *check) {
  clv_device_info one = {.struct_size = sizeof one}, two = {.struct_size = sizeof two};
  check->backend->info(check->handle, &one);
  check->backend->info(check->handle, &two);
  clv__check_that(check, is_text(one.kind), "info: kind", "it is empty");
  clv__check_that(check, is_text(one.description), "info: description", "it is empty");
  clv__check_that(check, is_text(one.fingerprint), "info: fingerprint", "it is empty, but executables depend on it");
  clv__check_that(check, is_text(one.memory_space), "info: memory_space", "it is empty");
  clv__check_that(check, one.alignment_bytes > 0 && (one.alignment_bytes & (one.alignment_bytes - 1)) == 0,
                  "info: alignment_bytes", "%u is not a power of two", one.alignment_bytes);
  clv__check_that(check, one.silicon == NULL || one.silicon[0] != '\0', "info: silicon", "it is empty; expected a text or NULL");
  bool is_same = is_text(one.fingerprint) && is_text(two.fingerprint) && strcmp(one.fingerprint, two.fingerprint) == 0 &&
                 one.memory_limit_bytes == two.memory_limit_bytes && one.alignment_bytes == two.alignment_bytes &&
                 one.is_synchronous == two.is_synchronous && one.static_shapes_only == two.static_shapes_only;
  clv__check_that(check, is_same, "info, called twice", "the results differ");
}

static void check_openings(clv__check *check) {
  const char *fingerprint = check->device->info.fingerprint;
  for (uint32_t i = 0; i < OPENINGS; ++i) {
    clv_devices *again = NULL;
    clv_error error = {0};
    clv__check_at(check, "opening the device, %u more times", i + 1);
    clv__check_progress(check, i, OPENINGS);
    clv_status status = clv_devices_open(check->context, check->devices_options, &again, &error);
    if (status != CLV_OK) {
      clv__check_failed_call(check, "opening a device that is already open", "open", status, &error);
      return;
    }
    const char *now = again->items[0].info.fingerprint;
    clv__check_that(check, strcmp(now, fingerprint) == 0, "fingerprint of the reopened device",
                    "it is '%s', but was '%s' when first opened", now, fingerprint);
    clv_devices_close(again);
  }
}

/* Passes an unknown option. The host rejects it if the backend lists the options that it knows; otherwise the backend must reject
 * it. */
static void check_unknown_option(clv__check *check) {
  clv_devices_options options = *check->devices_options;
  char text[256];
  clv_error error = {0};
  clv_devices *devices = NULL;
  snprintf(text, sizeof text, "%.200s:no-such-option=1", check->device->name);
  const char *const list[] = {text};
  options.device_options = list;
  options.device_option_count = 1;
  clv_status status = clv_devices_open(check->context, &options, &devices, &error);
  clv_devices_close(devices);
  if (!clv__check_that(check, status == CLV_INVALID_ARGUMENT, "an unknown option",
                       "open returned '%s'; expected 'invalid argument': a misspelt option must not go unnoticed (the table's "
                       "`options` lists the valid keys; a backend without options rejects them all)",
                       clv_status_name(status))) {
    return;
  }
  clv__check_that(check, strstr(error.message, "no-such-option") != NULL, "an unknown option",
                  "the error does not name the option: %s", error.message);
}

static void check_nulls(clv__check *check) {
  clv__check_at(check, "close(NULL)");
  check->backend->close(NULL);
  clv__check_pass(check);
  clv__check_at(check, "buffer_free(NULL)");
  check->backend->buffer_free(check->handle, NULL);
  clv__check_pass(check);
  if (check->backend->capture == NULL) return;
  clv__check_at(check, "capture->destroy(NULL)");
  check->backend->capture->destroy(check->handle, NULL);
  clv__check_pass(check);
}

static void check_objects(clv__check *check) {
  const clv_backend *b = check->backend;
  clv_error error = {0};
  clv_stream *streams[OBJECTS] = {0};
  clv_event *events[OBJECTS] = {0};
  clv_status status = CLV_OK;
  uint32_t made = 0;
  clv__check_at(check, "creating %d streams and events", OBJECTS);
  for (; made < OBJECTS && status == CLV_OK; ++made) {
    clv__error_clear(&error);
    status = b->stream_create(check->handle, &streams[made], &error);
    if (status == CLV_OK) status = b->event_create(check->handle, &events[made], &error);
    if (status == CLV_OK) status = b->event_record(check->handle, events[made], streams[made], &error);
    if (status == CLV_OK) status = b->event_synchronize(check->handle, events[made], &error);
  }
  for (uint32_t i = 0; i < made; ++i) {
    if (events[i] != NULL) b->event_destroy(check->handle, events[i]);
    if (streams[i] != NULL) b->stream_destroy(check->handle, streams[i]);
  }
  if (status != CLV_OK) {
    clv__check_failed_call(check, "many streams and events", "creating, recording or awaiting an event", status, &error);
    return;
  }
  clv__check_pass(check);
}

void clv__check_life(clv__check *check) {
  check_table(check);
  check_info(check);
  check_unknown_option(check);
  check_nulls(check);
  check_objects(check);
  check_openings(check);
}
