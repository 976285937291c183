/* Where measured tables are silent: points by a documented rule, marked as synthetic. For experiments with virtual devices, never
 * for real ones. */
#ifndef CLEAVE_GNN_TABLES_SYNTHETIC_H
#define CLEAVE_GNN_TABLES_SYNTHETIC_H

#include "gnn/plan/pep.h"

/* What is assumed of a device. Its measured block gives what a row and an edge cost there; of a block that was not measured
 *
 *   time = base + (rows * B_row + edges * B_edge) + rows * F / flops
 *
 * with base, B_row and B_edge those of the measured block's fit, the latter two scaled by the bytes a row and an edge that either
 * block reads and makes (of rows that are gathered along an edge: their width), and F the operations a row of a transform, of
 * which the measured block's own have been taken off. Times are scattered by up to 2 %, seeded. Sizes: `rows` up to most_rows,
 * each with 0 to most_density edges a row. Sizes that ran out of memory in the measured block do so in every block that reads
 * edges. */
typedef struct clv__synthetic_device {
  const char *device;
  uint32_t first, last; /* its measured block */
  double flops_per_second;
} clv__synthetic_device;

typedef struct clv__synthetic_options {
  const clv__synthetic_device *devices;
  uint32_t device_count;
  uint64_t most_rows;
  double most_density;
  uint64_t seed;
  double copy_bytes_per_second, copy_base_ns; /* between the host and each device, either way */
  double pack_bytes_per_second;
} clv__synthetic_options;

/* Completes the tables for a layer on a machine: blocks without points get them, measured blocks get some below and above their
 * range, missing copies too. The measured block of each device must be in the tables with a good fit: CLV_NOT_FOUND. */
clv_status clv__tables_complete(clv__tables *tables, const clv__machine *machine, const clv__chain *chain,
                                const clv__synthetic_options *options, clv_error *error);

#endif
