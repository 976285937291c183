/* Measures the time to gather rows in host memory, and to copy bytes between host memory and a device. */
#ifndef CLEAVE_GNN_MEASURE_COPIES_H
#define CLEAVE_GNN_MEASURE_COPIES_H

#include "device/device.h"
#include "gnn/tables/tables.h"

/* Measures gathering rows of 256 bytes into consecutive places, up to `most_bytes` in total. It picks about one of every four
 * rows, in ascending order, as the rows of a subgraph are spread over a graph. The table entry is "host" to "host". */
clv_status clv__measure_packing(clv__tables *tables, const clv_allocator *allocator, uint64_t most_bytes, uint32_t runs,
                                uint64_t seed, clv_error *error);
/* Measures copies into and out of a device's memory, up to `most_bytes`, or as much as the device has room for. */
clv_status clv__measure_device_copies(clv__tables *tables, const clv_allocator *allocator, const clv__device *device,
                                      uint64_t most_bytes, uint32_t runs, clv_error *error);
/* Like clv__measure_device_copies(), but runs nothing: the device's own speed model gives the times. Returns CLV_NOT_SUPPORTED if
 * it has no model. */
clv_status clv__model_device_copies(clv__tables *tables, const clv__device *device, uint64_t most_bytes, clv_error *error);

#endif
