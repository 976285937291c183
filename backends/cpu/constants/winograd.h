/* Transforms weights of 3x3 convolutions for Winograd's algorithm, in the order in which oneDNN's convolutions read them.
 * oneDNN's own reorder does this element by element and would take most of the load time of a convolutional model. This code
 * handles 16 output channels at once, on all threads. */
#ifndef CLEAVE_BACKENDS_CPU_CONSTANTS_WINOGRAD_H
#define CLEAVE_BACKENDS_CPU_CONSTANTS_WINOGRAD_H

#include "backends/cpu/onednn/onednn.h"

typedef struct clv__cpu_filters {
  const void *weights; /* row-major f32, any alignment */
  int64_t inputs;      /* input channels per row of `weights` */
  int64_t first_input; /* the input channel that comes first in the layout */
  const float *scale;  /* one factor per output channel; NULL: 1 */
} clv__cpu_filters;

/* Writes G g G' for each 3x3 filter g (G' is G transposed), with zeros as padding. Returns false and writes nothing if the layout
 * is not one of Winograd weights, or has an unknown order. oneDNN must then fill the layout itself. */
bool clv__cpu_winograd_pack(const clv__dnn_layout *layout, const clv__cpu_filters *filters, void *packed);

#endif
