/* Predicts costs: a node on a device, a copy, a launch, and the saving of compiling two nodes together. The sources are, in
 * this order: a profile, the device's own statement, a roofline. */
#ifndef CLEAVE_COST_COST_H
#define CLEAVE_COST_COST_H

#include "cost/profile.h"

typedef enum clv__cost_source {
  CLV__COST_MEASURED, /* exactly this signature was measured */
  CLV__COST_FITTED,   /* interpolated between measurements of the same operator with other sizes (fit.h) */
  CLV__COST_STATED,   /* estimated by the backend */
  CLV__COST_ROOFLINE, /* roofline from measured peaks */
  CLV__COST_NOMINAL,  /* roofline from assumed peaks, because the device has no profile */
  CLV__COST_UNKNOWN   /* priced as 0, because the sizes are known only at run time */
} clv__cost_source;
const char *clv__cost_source_name(clv__cost_source source);

typedef struct clv__cost {
  uint64_t time_ns;
  clv__cost_source source;
  bool infeasible; /* the measurement found the node too large for the device */
} clv__cost;

typedef struct clv__cost_model clv__cost_model;

/* Creates a model for `devices` and the nodes of `whole`, a view of all nodes with the types inferred for the plan. `profile`
 * may be NULL. Its tables for devices with another fingerprint are ignored; the log names each device that has no table.
 * `folded` (by node, may be NULL) marks the nodes removed by constant folding, which get no price. */
clv_status clv__cost_model_create(const clv_devices *devices, const clv_graph_view *whole, const bool *folded,
                                  const clv__profile *profile, clv__cost_model **model, clv_error *error);
void clv__cost_model_destroy(clv__cost_model *model); /* accepts NULL */

/* The price of a node alone in its partition, without the launch. A node that the device does not support also has a price,
 * for what-if plans. Views cost 0. */
clv__cost clv__cost_node(const clv__cost_model *model, uint32_t node, uint32_t device);
/* The saving for one value that `consumer` reads from `producer`, if both run in the same partition; 0 if it reads none. Half
 * of the sum of a node's savings never exceeds its price. */
uint64_t clv__cost_saving(const clv__cost_model *model, uint32_t producer, uint32_t consumer, uint32_t device);
/* The cost of launching one partition, in addition to the cost of its nodes. */
uint64_t clv__cost_launch(const clv__cost_model *model, uint32_t device);
/* The cost of a copy from the host to the device (`to_device`) or from the device to the host. */
uint64_t clv__cost_copy(const clv__cost_model *model, uint32_t device, bool to_device, uint64_t size_bytes);
/* The origin of the device's prices, for the plan: "profile of 2026-11-21", "stated by the device", "nominal figures, because
 * no profile is given". */
const char *clv__cost_origin(const clv__cost_model *model, uint32_t device);

#endif
