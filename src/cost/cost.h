/* What things take: a node on a device, a copy, a launch, and what is saved where two nodes are compiled together. From a profile
 * where there is one; from what the backend states of its own device; else from a roofline. */
#ifndef CLEAVE_COST_COST_H
#define CLEAVE_COST_COST_H

#include "cost/profile.h"

typedef enum clv__cost_source {
  CLV__COST_MEASURED, /* this very signature was measured */
  CLV__COST_FITTED,   /* a fit of measured ones, inside its domain */
  CLV__COST_STATED,   /* the backend says so: a device's own model */
  CLV__COST_ROOFLINE, /* from measured peaks */
  CLV__COST_NOMINAL,  /* from peaks that nobody measured: no profile for this device */
  CLV__COST_UNKNOWN   /* sizes that only a run can tell: priced as no work at all */
} clv__cost_source;
const char *clv__cost_source_name(clv__cost_source source);

typedef struct clv__cost {
  uint64_t time_ns;
  clv__cost_source source;
  bool infeasible; /* measured, and found too large for the device */
} clv__cost;

typedef struct clv__cost_model clv__cost_model;

/* A model for `devices` and the nodes of `whole` (types as planned: static where sizes are known). `profile` may be NULL; entries
 * of devices with another fingerprint are not used, and a note says so. `folded` (by node, may be NULL) need no price. */
clv_status clv__cost_model_create(const clv_devices *devices, const clv_graph_view *whole, const bool *folded,
                                  const clv__profile *profile, clv__cost_model **model, clv_error *error);
void clv__cost_model_destroy(clv__cost_model *model); /* accepts NULL */

/* Of a node alone in a partition, launch apart; also for nodes that the device does not support ("what if"). Views take 0. */
clv__cost clv__cost_node(const clv__cost_model *model, uint32_t node, uint32_t device);
/* Saved where `consumer` reads from `producer` in one partition: once for each value it reads. Half of all savings that a node
 * takes part in never exceeds its time. */
uint64_t clv__cost_saving(const clv__cost_model *model, uint32_t producer, uint32_t consumer, uint32_t device);
/* Of one partition, beside its nodes. */
uint64_t clv__cost_launch(const clv__cost_model *model, uint32_t device);
/* Host to device (`to_device`) or back. */
uint64_t clv__cost_copy(const clv__cost_model *model, uint32_t device, bool to_device, uint64_t size_bytes);
/* Where the device's prices come from, for the plan: "profile of 2026-11-21", "stated by the device", "nominal: no profile". */
const char *clv__cost_origin(const clv__cost_model *model, uint32_t device);

#endif
