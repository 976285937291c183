/* What is supposed of a device where nobody measured and the device says nothing: round figures, by kind. They order things; they
 * predict nothing. */
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
  bool fuses; /* elementwise nodes ride on the product before them */
} clv__nominal;

/* Of "cpu", "npu", "gpu"; anything else is as good as a CPU. Never NULL. */
const clv__nominal *clv__nominal_find(const char *kind);

#endif
