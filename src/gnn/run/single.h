/* The reference run: a whole graph, layer after layer, each of them one block on one list of devices. Every other way to run the
 * model is compared with it. */
#ifndef CLEAVE_GNN_RUN_SINGLE_H
#define CLEAVE_GNN_RUN_SINGLE_H

#include "gnn/data/graph.h"
#include "gnn/model/block.h"

typedef struct clv__gnn_single clv__gnn_single;

/* What a model asks of a graph: features, as many as the first layer reads. */
clv_status clv__gnn_check_fit(const clv__gnn_model *model, const clv__gnn_graph *graph, clv_error *error);

/* Plans and compiles all layers for the sizes of the graph, on device `device` of the set, or (CLV__NO_ID) where planning puts
 * them. All four outlive it. Errors: those of clv__gnn_check_fit(), of plans and sessions, with the layer in front. */
clv_status clv__gnn_single_create(clv_devices *devices, uint32_t device, const clv__gnn_model *model, const clv__gnn_graph *graph,
                                  clv__gnn_single **single, clv_error *error);
void clv__gnn_single_destroy(clv__gnn_single *single); /* accepts NULL */

/* Runs all layers. `features` f32 [n, F] (NULL: the graph's), `out` f32 [n, width of the last layer], both with data. */
clv_status clv__gnn_single_run(clv__gnn_single *single, const clv_tensor *features, clv_tensor *out, clv_error *error);

#endif
