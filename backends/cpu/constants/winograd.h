/* Weights of 3x3 convolutions transformed for Winograd's algorithm, in the order in which oneDNN's convolutions read them. What
 * oneDNN's own reorder does in plain code, element by element, is done here for 16 output channels at once and on all threads: it
 * was most of the time that a model of convolutions took to load. */
#ifndef CLEAVE_BACKENDS_CPU_CONSTANTS_WINOGRAD_H
#define CLEAVE_BACKENDS_CPU_CONSTANTS_WINOGRAD_H

#include "backends/cpu/onednn/onednn.h"

typedef struct clv__cpu_filters {
  const void *weights; /* row-major f32, anywhere in memory */
  int64_t inputs;      /* channels of a row of them */
  int64_t first_input; /* the channel that the layout begins with */
  const float *scale;  /* a factor an output channel; NULL: 1 */
} clv__cpu_filters;

/* Writes G g G', zeros where the layout is padded. False, with nothing written: not weights of Winograd's algorithm, or in an
 * order that is not known here: oneDNN has to fill the layout itself. */
bool clv__cpu_winograd_pack(const clv__dnn_layout *layout, const clv__cpu_filters *filters, void *packed);

#endif
