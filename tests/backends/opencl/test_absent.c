/* Tests a machine without an OpenCL driver: opening an OpenCL device fails with the reason, and other devices still work. */
#include <stdlib.h>

#include "cleave/cleave.h"
#include "opencl_host.h"

static void no_driver_is_not_supported(void **state) {
  (void)state;
  ocl o;
  clv_status status = ocl_try_open(&o, "opencl", 0, "");
  assert_int_equal(status, CLV_NOT_SUPPORTED);
  if (strstr(o.error.message, "no OpenCL loader found") == NULL && strstr(o.error.message, "finds no device") == NULL) {
    fail_msg("the error message '%s' says neither that there is no loader nor that it finds no device", o.error.message);
  }
  assert_int_equal(o.counting.live, 0);
}

static void others_do_without(void **state) {
  (void)state;
  clv_error error = {0};
  clv_context *context = NULL;
  clv_devices *devices = NULL;
  assert_ok(clv_context_create(NULL, &context, &error), error);
  clv_devices_options options = CLV_DEVICES_OPTIONS_INIT;
  options.list = "auto";
  assert_ok(clv_devices_open(context, &options, &devices, &error), error);
  bool has_cpu = false;
  for (uint32_t d = 0; d < clv_devices_count(devices); ++d) {
    const char *name = clv_devices_name(devices, d);
    has_cpu = has_cpu || strcmp(name, "cpu") == 0;
    assert_true(strncmp(name, "opencl", 6) != 0 && strncmp(name, "gpu", 3) != 0);
  }
  assert_true(has_cpu);
  clv_devices_close(devices);
  options.list = "gpu,cpu";
  assert_ok(clv_devices_open(context, &options, &devices, &error), error);
  assert_int_equal(clv_devices_count(devices), 1);
  clv_devices_close(devices);
  options.no_fallback = true;
  assert_int_equal(clv_devices_open(context, &options, &devices, &error), CLV_NOT_SUPPORTED);
  assert_non_null(strstr(error.message, "device 'gpu': "));
  clv_context_destroy(context);
}

int main(void) {
  setenv("OCL_ICD_VENDORS", "/nowhere", 1); /* must be set before the loader is opened */
  setenv("OCL_ICD_FILENAMES", "", 1);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(no_driver_is_not_supported),
      cmocka_unit_test(others_do_without),
  };
  return cmocka_run_group_tests_name("no opencl", tests, NULL, NULL);
}
