/* Assumed figures of a device that was not measured and whose backend gives no estimates: round numbers per kind of device.
 * They are good enough to rank choices but not to predict times. */
#ifndef CLEAVE_COST_NOMINAL_H
#define CLEAVE_COST_NOMINAL_H

#include <stdint.h>

#include "cleave/types.h"

typedef struct clv__nominal {
  const char *kind;
  double flops_per_second, bytes_per_second;
  uint64_t launch_ns;
  uint64_t copy_latency_ns;
  double copy_bytes_per_second;
  bool fuses; /* whether the device fuses elementwise nodes into the Conv, MatMul or Gemm that produces their input */
} clv__nominal;

/* Returns the figures for the kind "cpu", "npu" or "gpu". Any other kind counts as a CPU. Never returns NULL. */
const clv__nominal *clv__nominal_find(const char *kind);

#endif
