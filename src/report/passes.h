/* What every pass of `propagate` left: device or -1, and cause, of every value, weight and node. */
#ifndef CLEAVE_REPORT_PASSES_H
#define CLEAVE_REPORT_PASSES_H

#include <jansson.h>

#include "base/text.h"
#include "plan/plan.h"

/* A table a pass, and after the pass that cuts, what is copied for each partition. Nothing where the plan has kept no passes. */
void clv__report_passes(const clv_plan *plan, clv__text *text);
/* [{"pass": "2a", "values": [{"name", "device": text or -1, "cause"}], "weights": […], "nodes": […]}]; the last has
 * "partitions": [{"device", "inputs": […]}] too, and its nodes a "partition". NULL when memory is out. */
json_t *clv__report_passes_json(const clv_plan *plan);

#endif
