/* Determines which operators a device supports at all. Tries every operator of the table as a single-node graph with several
 * kinds of operands. */
#ifndef CLEAVE_REPORT_DEVICES_PROBE_H
#define CLEAVE_REPORT_DEVICES_PROBE_H

#include "device/device.h"
#include "operators/infer.h"

typedef struct clv__probe {
  uint32_t count; /* number of operators */
  uint32_t device_count;
  const clv__op **ops;
  bool *supported; /* [op * device_count + device] */
} clv__probe;

/* The caller holds the lock of the devices. Call clv__probe_finish() also after a failure. */
clv_status clv__probe_run(const clv_allocator *allocator, const clv_devices *devices, clv__probe *probe, clv_error *error);
void clv__probe_finish(const clv_allocator *allocator, clv__probe *probe);
/* Returns how many operators a device supports. */
uint32_t clv__probe_count(const clv__probe *probe, uint32_t device);

#endif
