/* The table of the kernels compiled for this instruction set: see kernels.h. */
#include "kernels.h"

extern const clv__cpu_kernel_versions clv__cpu_kernel_table;
const clv__cpu_kernel_versions clv__cpu_kernel_table = {
    .row_run = clv__cpu_row_run,
    .panel_f16 = clv__cpu_panel_f16,
    .small_run = clv__cpu_small_run,
    .sums_pass_run = clv__cpu_sums_pass_run,
    .sums_frame_run = clv__cpu_sums_frame_run,
};
