/* Declares the kernels of this folder that are not in run.c. The table in run.c lists all kernels. */
#ifndef CLEAVE_OPERATORS_SIGNAL_RUN_H
#define CLEAVE_OPERATORS_SIGNAL_RUN_H

#include "operators/run.h"

/* run_windows.c: HannWindow, HammingWindow, BlackmanWindow */
clv_status clv__kernel_window(const clv__kernel_call *call);
bool clv__kernel_window_accepts(const clv__kernel_call *call, char reason[160]);
/* run_windows.c: MelWeightMatrix */
clv_status clv__kernel_mel(const clv__kernel_call *call);
bool clv__kernel_mel_accepts(const clv__kernel_call *call, char reason[160]);

#endif
