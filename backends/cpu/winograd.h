/* Weights of 3x3 convolutions transformed for Winograd's algorithm, in the order in which oneDNN's convolutions read them. What
 * oneDNN's own reorder does in plain code, element by element, is done here for 16 output channels at once and on all threads: it
 * was most of the time that a model of convolutions took to load. */
#ifndef CLEAVE_BACKENDS_CPU_WINOGRAD_H
#define CLEAVE_BACKENDS_CPU_WINOGRAD_H

#include "onednn.h"

/* Writes G g G' of row-major f32 weights, which may be anywhere in memory, each output channel times its `scale` (NULL: 1), zeros
 * where the layout is padded. False, with nothing written: not weights of Winograd's algorithm, or in an order that is not known
 * here: oneDNN has to fill the layout itself. */
bool clv__cpu_winograd_pack(const clv__dnn_layout *layout, const void *weights, const float *scale, void *packed);

#endif
