/* The blocks of a plan as ONNX files, for whoever compiles them elsewhere. */
#ifndef CLEAVE_GNN_EXPORT_H
#define CLEAVE_GNN_EXPORT_H

#include "gnn/planning.h"

/* Writes into `folder`, which is made where it is not there, every block of the schedule once: with open sizes where a device
 * takes any, and one for each padded size where it does not: "layer0_gather_to_normalize.onnx",
 * "layer0_transform_to_activate_n2000_m5000.onnx". `count` is how many. */
clv_status clv__gnn_export(const clv__gnn_planning *planning, const clv__gnn_schedule *schedule, const char *folder,
                           uint32_t *count, clv_error *error);

#endif
