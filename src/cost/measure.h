/* Measures devices and stores the results in a profile. The results are only useful on a quiet machine. */
#ifndef CLEAVE_COST_MEASURE_H
#define CLEAVE_COST_MEASURE_H

#include "analysis/shapes.h"
#include "base/stop.h"
#include "cost/profile.h"

typedef struct clv__measure_options {
  uint32_t runs; /* measured runs per item; slow items get fewer */
  const char *day;
  /* May be NULL. Called from time to time with the current device and item, and the number of items done. */
  void (*progress)(void *user_data, const char *device, const char *what, uint32_t done, uint32_t total);
  void *user_data;
  const clv__stop
      *stop;       /* may be NULL. Ends the measurements after the current item with CLV_CANCELLED; the profile stays valid */
  bool goes_on;    /* true: whatever the profile already has is not measured again */
  uint64_t end_ns; /* on clv__clock_ns(): ends the measurements in the same way as `stop`; 0: no limit */
} clv__measure_options;

/* What is left to measure for a graph on a device: the number of nodes with different signatures, the greatest possible number
 * of blocks, and a rough time, which is estimated from the nodes' prices. */
typedef struct clv__expectation {
  uint32_t nodes, blocks;
  double seconds;
} clv__expectation;

/* Measures the launch, copies and peaks of a device (probe.c). */
clv_status clv__measure_device(clv_devices *devices, uint32_t device, const clv__measure_options *options, clv__profile *profile,
                               clv_error *error);
/* Whether options->stop or options->end_ns ends the measurements. */
bool clv__measure_is_over(const clv__measure_options *options);

/* Adds to `expectation` what clv__measure_graph() would measure. Runs nothing (survey.c). */
clv_status clv__measure_expect(clv_devices *devices, uint32_t device, const clv_graph *graph, const clv__shapes *shapes,
                               const clv__measure_options *options, clv__profile *profile, clv__expectation *expectation,
                               clv_error *error);
/* Measures the nodes of a graph, and blocks of them, on a device (survey.c). Only nodes that the device supports and whose
 * sizes are all known are measured. `measured` counts these nodes. */
clv_status clv__measure_graph(clv_devices *devices, uint32_t device, const clv_graph *graph, const clv__shapes *shapes,
                              const clv__measure_options *options, clv__profile *profile, uint32_t *measured, clv_error *error);
/* Creates common graph number `index`: small graphs of common operators in several sizes, for profiles without a model
 * (common_graphs.c). Sets *graph to NULL after the last one. */
clv_status clv__measure_common(const clv_allocator *allocator, uint32_t index, clv_graph **graph, clv_error *error);
/* Writes the description of this machine to the profile. */
clv_status clv__measure_host(clv__profile *profile, clv_error *error);

/* ---- Single measurements (measure_view.c) ---- */

/* Compiles a view on a device and runs it on generated inputs. The sizes of all inputs and outputs must be known.
 * CLV_TOO_LARGE or CLV_OUT_OF_MEMORY if the device has no room for it. `scratch_bytes` may be NULL. */
clv_status clv__measure_view(const clv__device *device, const clv_graph_view *view, uint32_t runs, clv__measure *measure,
                             uint64_t *scratch_bytes, clv_error *error);
/* Computes the median and the spread. Sorts the samples. */
clv__measure clv__measure_of(uint64_t *samples_ns, uint32_t count);
/* The number of runs for an item that takes `once_ns`, if `runs` were requested; at most CLV__MEASURE_MOST_RUNS. */
uint32_t clv__measure_runs(uint32_t runs, uint64_t once_ns);
enum { CLV__MEASURE_MOST_RUNS = 1000 };

#endif
