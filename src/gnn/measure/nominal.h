/* Prices without measurements, from the same sources as those of `cleave plan` without a profile: the device's own estimates, or
 * round figures per kind of device (cost/nominal.h). Such prices rank choices but do not predict times. */
#ifndef CLEAVE_GNN_MEASURE_NOMINAL_H
#define CLEAVE_GNN_MEASURE_NOMINAL_H

#include "gnn/planning.h"

/* Adds prices of every block of every layer that a device of the planning runs, for all sizes up to the whole graph with its
 * padding, and of copies; then fits the tables. The same planning gives the same tables. Runs and compiles nothing. */
clv_status clv__gnn_nominal(const clv__gnn_planning *planning, clv__tables *tables, clv_error *error);

#endif
