/* Predicts costs: a node on a device, a copy, a launch, and the saving of compiling two nodes together. The sources are, in
 * this order: a profile, the device's own statement, a roofline. */
#ifndef CLEAVE_COST_COST_H
#define CLEAVE_COST_COST_H

#include "cost/profile.h"

typedef enum clv__cost_source {
  CLV__COST_MEASURED, /* exactly this signature was measured */
  CLV__COST_FITTED,   /* interpolated by a fit, inside its domain */
  CLV__COST_STATED,   /* the backend's own model of its device */
  CLV__COST_ROOFLINE, /* roofline from measured peaks */
  CLV__COST_NOMINAL,  /* roofline from assumed peaks: no profile for this device */
  CLV__COST_UNKNOWN   /* the sizes are known only at run time: priced as no work */
} clv__cost_source;
const char *clv__cost_source_name(clv__cost_source source);

typedef struct clv__cost {
  uint64_t time_ns;
  clv__cost_source source;
  bool infeasible; /* measured, and too large for the device */
} clv__cost;

typedef struct clv__cost_model clv__cost_model;

/* Creates a model for `devices` and the nodes of `whole` (types as planned: static if sizes are known). `profile` may be NULL.
 * Its entries for devices with another fingerprint are ignored, and a note reports this. `folded` nodes (by node, may be NULL)
 * get no price. */
clv_status clv__cost_model_create(const clv_devices *devices, const clv_graph_view *whole, const bool *folded,
                                  const clv__profile *profile, clv__cost_model **model, clv_error *error);
void clv__cost_model_destroy(clv__cost_model *model); /* accepts NULL */

/* The price of a node alone in its partition, without the launch. It also covers nodes that the device does not support ("what
 * if"). Views cost 0. */
clv__cost clv__cost_node(const clv__cost_model *model, uint32_t node, uint32_t device);
/* The saving if `consumer` reads from `producer` in the same partition, once per value it reads. Half of all the savings of a
 * node never exceeds its time. */
uint64_t clv__cost_saving(const clv__cost_model *model, uint32_t producer, uint32_t consumer, uint32_t device);
/* The cost of one partition in addition to its nodes. */
uint64_t clv__cost_launch(const clv__cost_model *model, uint32_t device);
/* The cost of a copy from host to device (`to_device`) or back. */
uint64_t clv__cost_copy(const clv__cost_model *model, uint32_t device, bool to_device, uint64_t size_bytes);
/* The origin of the device's prices, for the plan: "profile of 2026-11-21", "stated by the device", "nominal: no profile". */
const char *clv__cost_origin(const clv__cost_model *model, uint32_t device);

#endif
