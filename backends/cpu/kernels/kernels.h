/* The CPU backend's own kernels, compiled once per instruction set (base/isa.h) like those of backends/common/kernels. */
#ifndef CLEAVE_BACKENDS_CPU_KERNELS_KERNELS_H
#define CLEAVE_BACKENDS_CPU_KERNELS_KERNELS_H

#include "backends/cpu/kernels/row.h"
#include "backends/cpu/kernels/small.h"
#include "backends/cpu/sums/sums.h"
#include "base/isa.h"

/* One version of the kernels. Each function is described where it is declared. */
typedef struct clv__cpu_kernel_versions {
  __typeof__(&clv__cpu_row_run) row_run;
  __typeof__(&clv__cpu_panel_f16) panel_f16;
  __typeof__(&clv__cpu_small_run) small_run;
  __typeof__(&clv__cpu_sums_pass_run) sums_pass_run;
  __typeof__(&clv__cpu_sums_frame_run) sums_frame_run;
} clv__cpu_kernel_versions;

extern const clv__cpu_kernel_versions clv__cpu_kernel_table_base, clv__cpu_kernel_table_v3, clv__cpu_kernel_table_v4;

/* The version for the instruction set that this process uses. Any thread may call it. */
static inline const clv__cpu_kernel_versions *clv__cpu_kernels(void) {
  return CLV__FOR_ISA(clv__cpu_kernel_table);
}

#endif
