/* Fills gaps in measured tables with points from the rule below, marked as synthetic. For experiments with virtual devices,
 * never for real ones. */
#ifndef CLEAVE_GNN_TABLES_SYNTHETIC_H
#define CLEAVE_GNN_TABLES_SYNTHETIC_H

#include "gnn/plan/pep.h"

/* The assumptions about a device. Its measured block gives its cost per row and per edge. A block without measurements takes
 *
 *   time = base + (rows * B_row + edges * B_edge) + rows * F / flops
 *
 * base, B_row and B_edge come from the measured block's fit. B_row is without the time that the assumed speed gives for the
 * measured block's own transform, if it has one. B_row and B_edge are scaled by the ratio of the two blocks' bytes per row and
 * per edge, read and written. Each edge along which a row is gathered also counts the bytes of a row. F is the number of
 * operations per row of the block's transform; 0 if it has none. Seeded noise varies times by up to 2 %. Sizes have up to
 * most_rows `rows`, each with 0 to most_density edges. Sizes that ran out of memory in the measured block do so in every block
 * that reads edges. */
typedef struct clv__synthetic_device {
  const char *device;
  uint32_t first, last; /* the measured block's stages */
  double flops_per_second;
} clv__synthetic_device;

typedef struct clv__synthetic_options {
  const clv__synthetic_device *devices;
  uint32_t device_count;
  uint64_t most_rows;
  double most_density;
  uint64_t seed;
  double copy_bytes_per_second, copy_base_ns; /* between the host and each device, in either direction */
  double pack_bytes_per_second;
} clv__synthetic_options;

/* Completes the tables for a layer on a machine. Blocks without points get points; measured blocks get points with fewer edges
 * per row than they have; missing copies are added. Returns CLV_NOT_FOUND unless the tables have each device's measured block
 * with a good fit. */
clv_status clv__tables_complete(clv__tables *tables, const clv__machine *machine, const clv__chain *chain,
                                const clv__synthetic_options *options, clv_error *error);

#endif
