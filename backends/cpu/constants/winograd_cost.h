/* Which convolutions are made by Winograd's algorithm where nothing is measured (tune.h does that). */
#ifndef CLEAVE_BACKENDS_CPU_CONSTANTS_WINOGRAD_COST_H
#define CLEAVE_BACKENDS_CPU_CONSTANTS_WINOGRAD_COST_H

#include "backends/cpu/onednn/onednn.h"

/* Whether the algorithm is there for such windows at all. */
bool clv__cpu_winograd_fits(const clv__dnn_convolution *spec);
/* Whether it is worth asking oneDNN for: many channels or pixels, and more saved than its weights cost. */
bool clv__cpu_winograd_may_pay(const clv__dnn_convolution *spec);
/* Whether what oneDNN made of it is faster than the direct algorithm: by the size of its tiles, its weights and its scratch.
 * Threads: as many as OpenMP would take now. */
bool clv__cpu_winograd_pays(const clv__dnn_convolution *spec, const clv__dnn_primitive *primitive);

#endif
