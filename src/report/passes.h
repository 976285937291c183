/* The result of every pass of `propagate`: the device (or -1) and cause of every value, weight and node. */
#ifndef CLEAVE_REPORT_PASSES_H
#define CLEAVE_REPORT_PASSES_H

#include <jansson.h>

#include "base/text.h"
#include "plan/plan.h"

/* Writes one table per pass. After the pass that splits the graph, also writes the values copied for each partition. Writes
 * nothing if the plan has not kept its passes. */
void clv__report_passes(const clv_plan *plan, clv__text *text);
/* [{"pass": "2a", "values": [{"name", "device": text or -1, "cause"}], "weights": […], "nodes": […]}]. The last pass also has
 * "partitions": [{"device", "inputs": […]}], and its nodes have a "partition". NULL if out of memory. */
json_t *clv__report_passes_json(const clv_plan *plan);

#endif
