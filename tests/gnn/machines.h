/* Devices for the tests of GNNs. */
#ifndef CLEAVE_TESTS_GNN_MACHINES_H
#define CLEAVE_TESTS_GNN_MACHINES_H

#include <string.h>

#include "cleave/devices.h"
#include "support.h"

typedef struct machine {
  clv_context *context;
  clv_devices *devices;
} machine;

#if defined(__SANITIZE_THREAD__)
enum { MACHINE_THREADS = 1 }; /* the thread sanitizer reports OpenMP's barriers as races */
#else
enum { MACHINE_THREADS = 2 };
#endif

/* Opens devices, without a cache on disk. "npu" is the virtual NPU by its default specification, which has no sparse
 * operators; "npu1" and "npu2" support all operators. `option` is an option for one device; may be NULL. */
static inline clv_status try_machine(const char *list, const char *option, machine *m, clv_error *error) {
#define MACHINE_WHOLE "{\"name\": \"whole\", \"static_shapes\": true, \"max_rank\": 4, \"operators\": \"all\"}"
  static const char *const specs[] = {"default", MACHINE_WHOLE, MACHINE_WHOLE};
  clv_context_options context_options = CLV_CONTEXT_OPTIONS_INIT;
  clv_devices_options options = CLV_DEVICES_OPTIONS_INIT;
  *m = (machine){NULL, NULL};
  context_options.cache_directory = "";
  if (option != NULL)
    context_options.capture = CLV_CAPTURE_OFF; /* with captures on, a launch that fails while it is captured would be
                                                  repeated without capture */
  options.list = list;
  options.thread_count = MACHINE_THREADS;
  options.npu_specs = specs;
  options.npu_spec_count = strstr(list, "npu2") != NULL ? 3 : strstr(list, "npu1") != NULL ? 2 : 0;
  options.device_options = &option;
  options.device_option_count = option != NULL;
  clv_error ignored = {0};
  assert_ok(clv_context_create(&context_options, &m->context, &ignored), ignored);
  return clv_devices_open(m->context, &options, &m->devices, error);
}

static inline machine open_machine(const char *list) {
  clv_error error = {0};
  machine m;
  assert_ok(try_machine(list, NULL, &m, &error), error);
  return m;
}

static inline void close_machine(machine *m) {
  clv_devices_close(m->devices);
  clv_context_destroy(m->context);
}

#endif
