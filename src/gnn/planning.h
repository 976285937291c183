/* From a graph, a model and open devices to a choice: the graph is cut for every k, the layers become chains, the devices a
 * machine, tables price them, and clv__choose() chooses. What runs is a schedule (run.h) over the subgraphs of the k that was
 * chosen. */
#ifndef CLEAVE_GNN_PLANNING_H
#define CLEAVE_GNN_PLANNING_H

#include "gnn/data/graph.h"
#include "gnn/model/block.h"
#include "gnn/plan/choose.h"
#include "gnn/plan/plan.h"
#include "gnn/run/run.h"

/* The graph that a model aggregates over: with self loops for GCN and GAT. */
typedef struct clv__gnn_cut {
  clv__membership membership;
  uint64_t edge_count, cut_edges, communication_volume;
  clv__piece *pieces; /* [k] */
} clv__gnn_cut;

typedef struct clv__gnn_planning {
  clv__arena arena;
  clv_devices *devices;
  const clv__gnn_model *model;
  const clv__gnn_graph *graph;
  clv__gnn_graph *looped; /* NULL: the graph itself */
  uint64_t seed;          /* of METIS */
  clv__machine machine;
  clv__stages *stages; /* [layer_count] */
  clv__chain *chains;
  clv__stage_table **runs;
  uint32_t cut_count;
  clv__gnn_cut *cuts; /* by k */
  clv__choose_cut *choose_cuts;
  clv__costs *costs;  /* [layer_count], once there are tables */
  double exchange_ns; /* between two layers, as these tables say */
} clv__gnn_planning;

/* Asks the devices, and cuts the graph for each of `ks` (ascending), from the cache (may be NULL) where it was before. `progress`
 * (may be NULL) is told of each k before it is cut. Model, graph and devices outlive it. Errors: those of clv__gnn_check_fit(),
 * of clv__membership_make(), and CLV_INVALID_ARGUMENT for more devices than can share a graph. */
clv_status clv__gnn_planning_init(clv__gnn_planning *planning, clv_devices *devices, const clv__gnn_model *model,
                                  const clv__gnn_graph *graph, const uint32_t *ks, uint32_t k_count, uint64_t seed,
                                  uint64_t pad_step, clv__cache *cache, void (*progress)(void *user_data, uint32_t k),
                                  void *user_data, clv_error *error);
/* The same over parts that are given, one membership for each k, ascending; they are copied. CLV_INVALID_ARGUMENT where one is
 * not of the graph. */
clv_status clv__gnn_planning_init_parts(clv__gnn_planning *planning, clv_devices *devices, const clv__gnn_model *model,
                                        const clv__gnn_graph *graph, const clv__membership *given, uint32_t count,
                                        uint64_t pad_step, clv_error *error);
void clv__gnn_planning_finish(clv__gnn_planning *planning); /* accepts a zeroed one */

/* Prices and chooses; what merging, switching and exchanging take is as the tables say too, not as the options do. `tables` must
 * have every device: CLV_NOT_FOUND; measured ones must be those of these devices: CLV_INVALID_ARGUMENT. The choice lives in the
 * planning's arena. */
clv_status clv__gnn_planning_choose(clv__gnn_planning *planning, const clv__tables *tables, const clv__choose_options *options,
                                    clv__choice *choice, clv_error *error);

/* The choice as a plan, which outlives all this. The names are of files: information. */
clv_status clv__gnn_planning_plan(const clv__gnn_planning *planning, const clv__tables *tables, const clv__choice *choice,
                                  const char *model_path, const char *graph_path, clv__gnn_plan **plan, clv_error *error);

/* What a plan says to run; it and `arena` outlive the schedule. */
clv_status clv__gnn_schedule_of(clv__arena *arena, const clv__gnn_plan *plan, clv__gnn_schedule *schedule, clv_error *error);

/* The subgraphs that a plan was made for: as `given` says, or, where it is NULL, by METIS or from the cache (may be NULL).
 * CLV_INVALID_ARGUMENT where graph, model or cut are not those of the plan. */
clv_status clv__gnn_plan_subgraphs(const clv_allocator *allocator, const clv__gnn_plan *plan, const clv__gnn_model *model,
                                   const clv__gnn_graph *graph, const clv__membership *given, clv__cache *cache,
                                   clv__partitioned *partitioned, clv_error *error);

/* The subgraphs of one k: with self loops where the model wants them. */
clv_status clv__gnn_planning_subgraphs(const clv__gnn_planning *planning, uint32_t k, clv__partitioned *partitioned,
                                       clv_error *error);

#endif
