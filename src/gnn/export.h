/* Exports the blocks of a plan as ONNX files, so that other tools can compile them. */
#ifndef CLEAVE_GNN_EXPORT_H
#define CLEAVE_GNN_EXPORT_H

#include "gnn/planning.h"

/* Writes every block of the schedule once to `folder`, creating it if necessary. The operators over edges are functions that the
 * files define; with `inlines`, they are replaced by the standard operators of the functions. On a device that accepts any size,
 * a block has one file with symbolic sizes; otherwise it has one file per padded size: "layer0_gather_to_normalize.onnx",
 * "layer0_transform_to_activate_n2000_m5000.onnx". `stages` has the stages of each layer. Sets `count` to the number of files. */
clv_status clv__gnn_export(const clv_allocator *allocator, const clv__stages *stages, const clv__gnn_schedule *schedule,
                           const char *folder, bool inlines, uint32_t *count, clv_error *error);

#endif
