/* The members of the signal family that live in a file of their own; run.c holds the table. */
#ifndef CLEAVE_OPERATORS_SIGNAL_RUN_H
#define CLEAVE_OPERATORS_SIGNAL_RUN_H

#include "operators/run.h"

/* run_windows.c: HannWindow, HammingWindow, BlackmanWindow */
clv_status clv__kernel_window(const clv__kernel_call *call);
bool clv__kernel_window_accepts(const clv__kernel_call *call, char reason[160]);
/* and MelWeightMatrix */
clv_status clv__kernel_mel(const clv__kernel_call *call);
bool clv__kernel_mel_accepts(const clv__kernel_call *call, char reason[160]);

#endif
