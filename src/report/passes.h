/* Prints the result of every pass of the strategy `propagate`: the device (-1 if it has none yet) and the cause of every value,
 * weight and node. */
#ifndef CLEAVE_REPORT_PASSES_H
#define CLEAVE_REPORT_PASSES_H

#include <jansson.h>

#include "base/text.h"
#include "plan/plan.h"

/* Writes one table per pass. After the pass that cuts the graph, also writes the values that are copied for each partition.
 * Writes nothing if the plan has no record of its passes. */
void clv__report_passes(const clv_plan *plan, clv__text *text);
/* Returns [{"pass": "2a", "values": [{"name", "device": text or -1, "cause"}], "weights": […], "nodes": […]}]. The last pass also
 * has "partitions": [{"device", "inputs": […]}], and its nodes have a "partition". Returns NULL if memory runs out. */
json_t *clv__report_passes_json(const clv_plan *plan);

#endif
