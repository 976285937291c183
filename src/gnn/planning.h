/* Chooses plans for a graph, a model and open devices. Partitions the graph for every k, describes the layers (clv__chain) and
 * the devices (clv__machine), looks up their costs in tables, and calls clv__choose(). The result to run is a schedule (run.h)
 * over the subgraphs of the chosen k. */
#ifndef CLEAVE_GNN_PLANNING_H
#define CLEAVE_GNN_PLANNING_H

#include "gnn/data/graph.h"
#include "gnn/model/block.h"
#include "gnn/plan/choose.h"
#include "gnn/plan/memory.h"
#include "gnn/plan/plan.h"
#include "gnn/run/run.h"

/* One partitioning of the graph. For GCN and GAT, the subgraphs include the self loops. */
typedef struct clv__gnn_cut {
  clv__membership membership;
  uint64_t edge_count, cut_edges, communication_volume;
  clv__subgraph_sizes *subgraphs; /* [k] */
  uint64_t *subgraph_cut_edges;   /* [k]: in-edges from other subgraphs */
} clv__gnn_cut;

typedef struct clv__gnn_planning {
  clv__arena arena;
  clv_devices *devices;
  const clv__gnn_model *model;
  const clv__gnn_graph *graph;
  clv__gnn_graph *looped; /* the graph with self loops; NULL: the model uses none */
  uint64_t seed;          /* the seed for METIS */
  clv__machine machine;
  clv__gnn_memory memory;
  clv__stages *stages; /* [layer_count] */
  clv__chain *chains;
  clv__stage_table **runs;
  uint32_t cut_count;
  clv__gnn_cut *cuts; /* sorted by k */
  clv__choose_cut *choose_cuts;
  clv__costs *costs;  /* [layer_count]; set by clv__gnn_planning_choose() */
  double exchange_ns; /* the time between two layers; also set by clv__gnn_planning_choose() */
} clv__gnn_planning;

/* Queries the devices and partitions the graph for each of `ks` (ascending), using `cache` (may be NULL) for known
 * partitionings. Calls `progress` (may be NULL) before each k. Model, graph and devices must outlive the planning. Errors:
 * those of clv__gnn_check_fit() and clv__membership_make(), and CLV_INVALID_ARGUMENT for more devices than can share a graph. */
clv_status clv__gnn_planning_init(clv__gnn_planning *planning, clv_devices *devices, const clv__gnn_model *model,
                                  const clv__gnn_graph *graph, const uint32_t *ks, uint32_t k_count, uint64_t seed,
                                  uint64_t pad_step, clv__cache *cache, void (*progress)(void *user_data, uint32_t k),
                                  void *user_data, clv_error *error);
/* Like clv__gnn_planning_init(), but with given memberships, one for each k, ascending. Copies them. Returns
 * CLV_INVALID_ARGUMENT if one does not match the graph. */
clv_status clv__gnn_planning_init_parts(clv__gnn_planning *planning, clv_devices *devices, const clv__gnn_model *model,
                                        const clv__gnn_graph *graph, const clv__membership *given, uint32_t count,
                                        uint64_t pad_step, clv_error *error);
void clv__gnn_planning_finish(clv__gnn_planning *planning); /* accepts a zeroed struct */

/* Adds one more partitioning, into k subgraphs: for the case that no k so far has a plan. k must be larger than all others. */
clv_status clv__gnn_planning_cut(clv__gnn_planning *planning, uint32_t k, clv__cache *cache, clv_error *error);

/* Prices the plans of all layers for every k, and chooses the best. Takes the merge, switch and exchange costs from the tables
 * too; ignores options->exchange_ns. Returns CLV_NOT_FOUND unless `tables` has every device, and CLV_INVALID_ARGUMENT if
 * measured tables come from different devices. The planning's arena owns the choice. */
clv_status clv__gnn_planning_choose(clv__gnn_planning *planning, const clv__tables *tables, const clv__choose_options *options,
                                    clv__choice *choice, clv_error *error);

/* Converts the choice to a plan that outlives the planning. The path names are informational. */
clv_status clv__gnn_planning_plan(const clv__gnn_planning *planning, const clv__tables *tables, const clv__choice *choice,
                                  const char *model_path, const char *graph_path, clv__gnn_plan **plan, clv_error *error);

/* Extracts from a plan what a run needs. The plan and `arena` must outlive the schedule. */
clv_status clv__gnn_schedule_of(clv__arena *arena, const clv__gnn_plan *plan, clv__gnn_schedule *schedule, clv_error *error);

/* Rebuilds the subgraphs that a plan was made for: from `given`, or, if it is NULL, from METIS or the cache (may be NULL).
 * Returns CLV_INVALID_ARGUMENT if the graph, model or partitioning does not match the plan. */
clv_status clv__gnn_plan_subgraphs(const clv_allocator *allocator, const clv__gnn_plan *plan, const clv__gnn_model *model,
                                   const clv__gnn_graph *graph, const clv__membership *given, clv__cache *cache,
                                   clv__partitioned *partitioned, clv_error *error);

/* Builds the subgraphs of one k, with self loops if the model needs them. */
clv_status clv__gnn_planning_subgraphs(const clv__gnn_planning *planning, uint32_t k, clv__partitioned *partitioned,
                                       clv_error *error);

#endif
