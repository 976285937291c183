/* Opens the OpenCL device of a test through the public API, by its name. */
#ifndef CLEAVE_TESTS_BACKENDS_OPENCL_DEVICE_H
#define CLEAVE_TESTS_BACKENDS_OPENCL_DEVICE_H

#include <stdio.h>

#include "cleave/cleave.h"

static clv_context *context;
static clv_devices *devices;

/* Opens the device with `option`, such as "opencl:memory=own", or without an option if it is NULL. If there is no OpenCL
 * device, prints the reason and returns false. The caller then skips its tests. */
static inline bool device_open_with(const char *option, clv_capture_policy mode) {
  clv_error error = {0};
  clv_context_options context_options = CLV_CONTEXT_OPTIONS_INIT;
  clv_devices_options options = CLV_DEVICES_OPTIONS_INIT;
  context_options.cache_directory = ""; /* no cache: an executable from an earlier build would hide errors */
  context_options.capture = mode;
  options.list = "opencl";
  options.device_options = &option;
  options.device_option_count = option != NULL;
  clv_status status = clv_context_create(&context_options, &context, &error);
  if (status == CLV_OK) status = clv_devices_open(context, &options, &devices, &error);
  if (status == CLV_OK) return true;
  printf("skipped: %s\n", error.message);
  clv_context_destroy(context);
  context = NULL;
  return false;
}

static inline bool device_open(const char *option) {
  return device_open_with(option, CLV_CAPTURE_UNSET);
}

static inline void device_close(void) {
  clv_devices_close(devices);
  clv_context_destroy(context);
}

#endif
