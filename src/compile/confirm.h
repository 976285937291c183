/* Confirms that a loaded executable computes the partition that it was found for. A file's key may be forged, but the graph that
 * the executable runs cannot differ from what it computes. */
#ifndef CLEAVE_COMPILE_CONFIRM_H
#define CLEAVE_COMPILE_CONFIRM_H

#include "device/device.h"

/* Compares the executable's graph with the view: nodes, attributes, types, the constants that it contains, and the order of its
 * weights. `weights` are the view's values that the executable's weights will be bound to. Returns CLV_INVALID_MODEL if they
 * differ. Returns CLV_OK without a comparison if the backend does not have the graph. */
clv_status clv__executable_confirm(const clv__device *device, const clv_executable *executable, const clv_graph_view *view,
                                   const clv_executable_info *info, const uint32_t *weights, clv_error *error);

#endif
