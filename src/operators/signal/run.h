/* The operators of the signal family that have their own file. run.c has the table. */
#ifndef CLEAVE_OPERATORS_SIGNAL_RUN_H
#define CLEAVE_OPERATORS_SIGNAL_RUN_H

#include "operators/run.h"

/* run_windows.c: HannWindow, HammingWindow, BlackmanWindow */
clv_status clv__kernel_window(const clv__kernel_call *call);
bool clv__kernel_window_accepts(const clv__kernel_call *call, char reason[160]);
/* run_windows.c: also MelWeightMatrix */
clv_status clv__kernel_mel(const clv__kernel_call *call);
bool clv__kernel_mel_accepts(const clv__kernel_call *call, char reason[160]);

#endif
