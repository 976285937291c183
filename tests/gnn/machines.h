/* Devices for the tests of GNNs. */
#ifndef CLEAVE_TESTS_GNN_MACHINES_H
#define CLEAVE_TESTS_GNN_MACHINES_H

#include "cleave/devices.h"
#include "support.h"

typedef struct machine {
  clv_context *context;
  clv_devices *devices;
} machine;

/* Two threads, no cache on disk. */
static inline machine open_machine(const char *list) {
  clv_context_options context_options = CLV_CONTEXT_OPTIONS_INIT;
  clv_devices_options options = CLV_DEVICES_OPTIONS_INIT;
  clv_error error = {0};
  machine m;
  context_options.cache_directory = "";
  options.list = list;
  options.thread_count = 2;
  assert_ok(clv_context_create(&context_options, &m.context, &error), error);
  assert_ok(clv_devices_open(m.context, &options, &m.devices, &error), error);
  return m;
}

static inline void close_machine(machine *m) {
  clv_devices_close(m->devices);
  clv_context_destroy(m->context);
}

#endif
