/* One layer at one k: between choose.c and choose_layer.c. */
#ifndef CLEAVE_GNN_CHOOSE_LAYER_H
#define CLEAVE_GNN_CHOOSE_LAYER_H

#include "gnn/choose.h"

clv_status clv__choose_layer(clv__arena *arena, const clv__costs *costs, uint32_t layer, const clv__choose_cut *cut,
                             const clv__choose_options *options, clv__chosen_layer *chosen, clv_error *error);

#endif
