/* One layer at one k: between choose.c and choose_layer.c. */
#ifndef CLEAVE_GNN_PLAN_CHOOSE_LAYER_H
#define CLEAVE_GNN_PLAN_CHOOSE_LAYER_H

#include "gnn/plan/choose.h"

/* Steps of the bound for what stays open otherwise: one number for all that is chosen together. */
#define CLV__CHOOSE_RESERVE UINT64_C(40000000)

clv_status clv__choose_layer(clv__arena *arena, const clv__costs *costs, uint32_t layer, const clv__choose_cut *cut,
                             const clv__choose_options *options, uint64_t *reserve, clv__chosen_layer *chosen, clv_error *error);

#endif
