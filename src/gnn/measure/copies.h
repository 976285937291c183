/* What it takes to move values: gathered in the host's memory, and between it and a device. */
#ifndef CLEAVE_GNN_MEASURE_COPIES_H
#define CLEAVE_GNN_MEASURE_COPIES_H

#include "device/device.h"
#include "gnn/tables/tables.h"

/* Rows of 256 bytes, about one of four of what lies there, ascending as a subgraph's are, to one behind the other, up to
 * `most_bytes` of them: "host" to "host". */
clv_status clv__measure_packing(clv__tables *tables, const clv_allocator *allocator, uint64_t most_bytes, uint32_t runs,
                                uint64_t seed, clv_error *error);
/* In and out of a device's memory, up to `most_bytes`, or as much as it has room for. */
clv_status clv__measure_device_copies(clv__tables *tables, const clv_allocator *allocator, const clv__device *device,
                                      uint64_t most_bytes, uint32_t runs, clv_error *error);
/* What the device says of itself, for the same sizes; CLV_NOT_SUPPORTED where it says nothing. */
clv_status clv__model_device_copies(clv__tables *tables, const clv__device *device, uint64_t most_bytes, clv_error *error);

#endif
