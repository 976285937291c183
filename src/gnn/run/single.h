/* The reference run: a whole graph, layer after layer, without subgraphs and PEPs, on one device or where planning places the
 * nodes. All other ways to run the model are compared with it. */
#ifndef CLEAVE_GNN_RUN_SINGLE_H
#define CLEAVE_GNN_RUN_SINGLE_H

#include "gnn/data/graph.h"
#include "gnn/model/block.h"

typedef struct clv__gnn_single clv__gnn_single;

/* Checks that the graph fits the model: it has features, as many as the first layer reads. */
clv_status clv__gnn_check_fit(const clv__gnn_model *model, const clv__gnn_graph *graph, clv_error *error);

/* Plans and compiles all layers for the graph's sizes, on device `device` of the set, or, with CLV__NO_ID, where planning
 * places them. `devices`, `model` and `graph` must outlive the result. Errors: those of clv__gnn_check_fit(), and those of
 * plans and sessions, prefixed with the layer. */
clv_status clv__gnn_single_create(clv_devices *devices, uint32_t device, const clv__gnn_model *model, const clv__gnn_graph *graph,
                                  clv__gnn_single **single, clv_error *error);
void clv__gnn_single_destroy(clv__gnn_single *single); /* accepts NULL */

/* Runs all layers. `features` is f32 [n, F] (NULL: the graph's) and `out` is f32 [n, width of the last layer]; both must have
 * data. */
clv_status clv__gnn_single_run(clv__gnn_single *single, const clv_tensor *features, clv_tensor *out, clv_error *error);

#endif
