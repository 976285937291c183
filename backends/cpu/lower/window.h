/* Windows of convolutions and pools, from their attributes and shapes. */
#ifndef CLEAVE_BACKENDS_CPU_LOWER_WINDOW_H
#define CLEAVE_BACKENDS_CPU_LOWER_WINDOW_H

#include "backends/cpu/passes/variant.h"

/* Fills stride, dilation and padding from the attributes. `window->count` and `kernel` must be set. */
void clv__cpu_window_read(const clv__cpu_node *node, const clv_tensor *from, const clv_tensor *to, clv__dnn_window *window);

#endif
