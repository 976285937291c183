/* Measuring devices, into a profile. Needs a quiet machine to be of use. */
#ifndef CLEAVE_COST_MEASURE_H
#define CLEAVE_COST_MEASURE_H

#include "analysis/shapes.h"
#include "cost/profile.h"

typedef struct clv__measure_options {
  uint32_t runs; /* measured runs of each thing; things that take long get fewer */
  const char *day;
  /* May be NULL. Called now and then: what is measured on which device, and how many are done. */
  void (*progress)(void *user_data, const char *device, const char *what, uint32_t done, uint32_t total);
  void *user_data;
} clv__measure_options;

/* Launch, copies and peaks of a device (probe.c). */
clv_status clv__measure_device(clv_devices *devices, uint32_t device, const clv__measure_options *options, clv__profile *profile,
                               clv_error *error);
/* The nodes of a graph on a device, and blocks of them (survey.c): of what it supports and where every size is known. `measured`
 * counts the nodes that were. What is measured already is measured again. */
clv_status clv__measure_graph(clv_devices *devices, uint32_t device, const clv_graph *graph, const clv__shapes *shapes,
                              const clv__measure_options *options, clv__profile *profile, uint32_t *measured, clv_error *error);
/* Small graphs of common operators in several sizes, for profiles without a model (common_graphs.c). NULL after the last. */
clv_status clv__measure_common(const clv_allocator *allocator, uint32_t index, clv_graph **graph, clv_error *error);
/* What machine this is, into the profile. */
clv_status clv__measure_host(clv__profile *profile, clv_error *error);

/* ---- One thing at a time (measure_view.c) ---- */

/* Compiles a view on a device and runs it on made-up inputs. Every input and output is static. CLV_TOO_LARGE and
 * CLV_OUT_OF_MEMORY where the device has no room for it. `scratch_bytes` may be NULL. */
clv_status clv__measure_view(const clv__device *device, const clv_graph_view *view, uint32_t runs, clv__measure *measure,
                             uint64_t *scratch_bytes, clv_error *error);
/* Median and spread; sorts the samples. */
clv__measure clv__measure_of(uint64_t *samples_ns, uint32_t count);
/* How many runs a thing that takes `once_ns` gets, where `runs` were asked for; at most CLV__MEASURE_MOST_RUNS. */
uint32_t clv__measure_runs(uint32_t runs, uint64_t once_ns);
enum { CLV__MEASURE_MOST_RUNS = 1000 };

#endif
