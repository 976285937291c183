/* Prices from which plans of GNNs are made: measured times of blocks and copies, and fits that interpolate between them.
 *
 * Unstable: may change until 1.0.
 *
 * A block is a run of a layer's stages on a device. Its price depends on the vertices that it reads, their in-edges and the
 * vertices that it computes. Sizes beyond the measured ones have no price. The rules of gnn.h for ownership, threads, errors and
 * structs apply; only one thread at a time may use a clv_gnn_costs. */
#ifndef CLEAVE_GNN_COSTS_H
#define CLEAVE_GNN_COSTS_H

#include "gnn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Creates prices without entries. */
CLV_API CLV_MUST_USE clv_status clv_gnn_costs_create(clv_context *context, clv_gnn_costs **costs, clv_error *error);

/* Reads prices from a file that clv_gnn_costs_write() or `cleave gnn profile` wrote.
 * Errors: CLV_NOT_FOUND; CLV_IO_ERROR; CLV_INVALID_MODEL, with the place. */
CLV_API CLV_MUST_USE clv_status clv_gnn_costs_read(clv_context *context, const char *path, clv_gnn_costs **costs,
                                                   clv_error *error);

/* Writes the prices as JSON, completely or not at all. Errors: CLV_IO_ERROR. */
CLV_API CLV_MUST_USE clv_status clv_gnn_costs_write(clv_gnn_costs *costs, const char *path, clv_error *error);

/* Checks that prices were measured on these devices, as their drivers and options are now. Devices without prices pass.
 * Errors: CLV_INVALID_ARGUMENT, with the device and both descriptions. */
CLV_API CLV_MUST_USE clv_status clv_gnn_costs_check(const clv_gnn_costs *costs, const clv_devices *devices, clv_error *error);

typedef struct clv_gnn_measure_progress {
  const char *device;
  uint32_t layer, done, of; /* sizes measured, of all sizes */
  double left_s;            /* negative: not known yet */
} clv_gnn_measure_progress;

typedef struct clv_gnn_measure_options {
  uint32_t struct_size;
  uint32_t runs;  /* how often to measure each size; the median counts */
  double limit_s; /* about how long to measure blocks. Blocks that no plan needs, and then the largest sizes, are left out. 0: no
                     limit, and every block that a device runs is measured */
  bool only_copies; /* measure only copies, merging and exchanging, for blocks that were measured elsewhere */
  bool (*progress)(void *user_data, const clv_gnn_measure_progress *progress); /* return false to cancel; NULL: none */
  void *user_data;
} clv_gnn_measure_options;
#define CLV_GNN_MEASURE_OPTIONS_INIT \
  { sizeof(clv_gnn_measure_options), 5, 60, false, NULL, NULL }

/* Measures the prices that plans for this model, graph and these devices may need, and adds them. The result is only useful if
 * the machine is otherwise idle. Of `plan_options`, k_count, ks, parts, seed, pad_step and `tell` are used. Both options may be
 * NULL. Errors: those of clv_gnn_plan_make() for its arguments; CLV_INVALID_ARGUMENT if there are prices of other devices with
 * the same names; CLV_CANCELLED; CLV_DEVICE_ERROR. After an error, prices that were measured before it remain. */
CLV_API CLV_MUST_USE clv_status clv_gnn_costs_measure(clv_gnn_costs *costs, const clv_gnn_model *model,
                                                      const clv_gnn_graph *graph, clv_devices *devices,
                                                      const clv_gnn_plan_options *plan_options,
                                                      const clv_gnn_measure_options *options, clv_error *error);

/* Adds nominal prices for all sizes of blocks up to the whole graph, from the devices' own estimates. Nothing runs. They rank
 * plans but do not predict times. Options as in clv_gnn_costs_measure(). */
CLV_API CLV_MUST_USE clv_status clv_gnn_costs_nominal(clv_gnn_costs *costs, const clv_gnn_model *model,
                                                      const clv_gnn_graph *graph, clv_devices *devices,
                                                      const clv_gnn_plan_options *plan_options, clv_error *error);

/* The stages that a column of an imported file measures. */
typedef struct clv_gnn_stage_range {
  const char *device;
  uint32_t first, end; /* stages first up to but excluding end */
} clv_gnn_stage_range;

/* Imports times that were measured elsewhere, for every layer of the model, from CSV: n_nodes,n_edges,DEVICE_ms,…,status. A
 * column is for the whole layer unless `ranges` has its device. An empty time or None means not measured, -1 means out of memory.
 * Errors: CLV_NOT_FOUND; CLV_IO_ERROR; CLV_INVALID_MODEL, with the line and the column; CLV_INVALID_ARGUMENT for a range of a
 * device without a column, or of stages that a layer does not have. */
CLV_API CLV_MUST_USE clv_status clv_gnn_costs_import(clv_gnn_costs *costs, const clv_gnn_model *model, const char *path,
                                                     const clv_gnn_stage_range *ranges, uint32_t range_count, clv_error *error);

/* A measured size of a block. */
typedef struct clv_gnn_point {
  uint64_t rows, edges; /* vertices read, in-edges; edges 0: the block reads none */
  uint64_t targets;     /* vertices computed; 0: as many as `rows` */
  double time_ns;
  double spread_ns; /* the interquartile range; 0: unknown */
} clv_gnn_point;

/* Adds sizes of one block, measured by the program, and fits the prices again. `layer` is the layer's key (see
 * clv_gnn_costs_layer()). Sizes that are there already are replaced.
 * Errors: CLV_INVALID_ARGUMENT for numbers that are not sizes or times. */
CLV_API CLV_MUST_USE clv_status clv_gnn_costs_add(clv_gnn_costs *costs, const char *device, const char *layer,
                                                  uint32_t first_stage, uint32_t end_stage, const clv_gnn_point *points,
                                                  uint32_t count, clv_error *error);
/* Writes the key of a layer in prices, such as "graphsage-500-256-f32": layers of the same type and sizes share their prices.
 * Returns false for an index beyond the count. */
CLV_API bool clv_gnn_costs_layer(const clv_gnn_model *model, uint32_t layer, char key[64]);

/* Estimates the time of a block. Returns false if it has no price: it was not measured, its fit is not good, or the size is
 * outside the measured range. */
CLV_API bool clv_gnn_costs_time(const clv_gnn_costs *costs, const char *device, const char *layer, uint32_t first_stage,
                                uint32_t end_stage, uint64_t rows, uint64_t edges, uint64_t targets, double *time_ns);

typedef struct clv_gnn_costs_info {
  uint32_t struct_size;
  uint32_t block_count;    /* blocks with prices; see clv_gnn_costs_block() */
  uint32_t wanted_count;   /* of the last measurement: blocks that plans may contain */
  uint32_t needless_count; /* of these, left out because they take longer than their whole layer */
  uint32_t cut_off_count;  /* of these, measured without their largest sizes, for lack of time */
  const char *name; /* the file that was read or written last; NULL: none. Valid until the next call that changes `costs` */
} clv_gnn_costs_info;
CLV_API void clv_gnn_costs_get_info(const clv_gnn_costs *costs, clv_gnn_costs_info *info);

/* A block with prices. Texts are valid until the next call that changes `costs`. */
typedef struct clv_gnn_costs_block_info {
  uint32_t struct_size;
  const char *device, *layer;
  uint32_t first_stage, end_stage;
  uint32_t point_count; /* measured sizes */
  bool has_fit;         /* without a fit, plans do not use the block, and the numbers below are 0 */
  double error;         /* the median of |predicted - measured| / measured, at sizes left out of the fit */
  double worst_error;   /* the largest of these */
  double spread;        /* the median of the measurements' own variation */
} clv_gnn_costs_block_info;
/* Returns false, and fills `info` with zeros, for an index beyond the count. */
CLV_API bool clv_gnn_costs_block(const clv_gnn_costs *costs, uint32_t index, clv_gnn_costs_block_info *info);

/* Reports every block with the number of measured sizes and the error of its fit, and the costs of merging, switching and
 * exchanging. Free the text with clv_text_free(). */
CLV_API CLV_MUST_USE clv_status clv_gnn_costs_report(const clv_gnn_costs *costs, clv_form form, char **text, clv_error *error);

CLV_API void clv_gnn_costs_destroy(clv_gnn_costs *costs);

#ifdef __cplusplus
}
#endif
#endif
