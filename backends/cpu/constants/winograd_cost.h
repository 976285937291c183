/* Estimates which convolutions are faster with Winograd's algorithm. With --tune, they are measured instead (tune.h). */
#ifndef CLEAVE_BACKENDS_CPU_CONSTANTS_WINOGRAD_COST_H
#define CLEAVE_BACKENDS_CPU_CONSTANTS_WINOGRAD_COST_H

#include "backends/cpu/onednn/onednn.h"

/* Whether the algorithm supports these windows at all. */
bool clv__cpu_winograd_fits(const clv__dnn_convolution *spec);
/* Whether the algorithm may be faster: there are many channels or pixels, and the saving exceeds the cost of its weights. */
bool clv__cpu_winograd_may_pay(const clv__dnn_convolution *spec);
/* Whether `primitive`, which uses Winograd's algorithm, is faster than the direct algorithm, judged by the sizes of its tiles,
 * weights and scratch. True if the order of its weights is unknown. Assumes as many threads as OpenMP would use now. */
bool clv__cpu_winograd_pays(const clv__dnn_convolution *spec, const clv__dnn_primitive *primitive);

#endif
