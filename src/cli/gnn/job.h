/* The first steps of `cleave gnn plan`, `profile` and `run`: loads the model and the graph, opens the devices, partitions the
 * graph for every k of --kset, reads the cost tables, and chooses a plan. */
#ifndef CLEAVE_CLI_GNN_JOB_H
#define CLEAVE_CLI_GNN_JOB_H

#include "cli/gnn/gnn.h"
#include "gnn/planning.h"

typedef struct cli_gnn_job {
  cli_invocation *cli;
  const char *model_path, *graph_path;
  clv__gnn_model *model;
  clv__gnn_graph *graph;
  clv_devices *devices;
  clv__gnn_planning planning;
  clv__tables tables;
  clv__choice choice;
  clv__gnn_plan *plan;             /* the chosen plan */
  clv__membership *parts;          /* [part_count]: the partitionings from --parts, sorted by k; includes k = 1 */
  uint32_t part_count;             /* 0: METIS partitions the graph */
  double load_ms, cut_ms, plan_ms; /* cut_ms: to partition the graph and build the subgraphs */
} cli_gnn_job;

/* Options that cli_gnn_load(), cli_gnn_cut() and cli_gnn_choose() read. */
#define CLI_GNN_JOB_OPTIONS                                                                                                     \
  {OPTION_MODEL, "the model: JSON with its weights in the same folder, or ONNX", ""}, {OPTION_GNN_GRAPH, NULL, NULL},           \
      {OPTION_FEATURES, CLI_GNN_FEATURES_HELP, "those of the graph"}, {OPTION_GNN_X, NULL, NULL}, {OPTION_DEVICES, NULL, NULL}, \
      {OPTION_NPU_SPEC, NULL, NULL}, {OPTION_DEVICE_OPTION, NULL, NULL}, {OPTION_PLUGIN, NULL, NULL},                           \
      {OPTION_THREADS, NULL, NULL}, {OPTION_KSET, NULL, NULL}, {OPTION_GNN_PARTS, NULL, NULL},                                  \
      {OPTION_SEED, CLI_GNN_SEED_HELP, NULL}, {OPTION_PAD, NULL, NULL}, {                                                       \
    OPTION_CACHE_DIR, CLI_GNN_CACHE_HELP, NULL                                                                                  \
  }
#define CLI_GNN_CHOICE_OPTIONS                                                                              \
  {OPTION_PROFILE, "measured costs, written by 'cleave gnn profile'", NULL}, {OPTION_EFFORT, NULL, NULL}, { \
    OPTION_TOP_K, NULL, NULL                                                                                \
  }
#define CLI_GNN_FEATURES_HELP "for a graph without features: number of features per vertex, random in [-1, 1) from --seed"
#define CLI_GNN_HTML_HELP \
  "write a web page: timelines, a comparison of every k, and the predicted and measured time of every block"

clv_status cli_gnn_load(cli_invocation *cli, cli_gnn_job *job, clv_error *error);
/* parts.c: reads the files of --parts, if given. If --kset is also given, both must have the same ks. */
clv_status cli_gnn_parts_read(cli_gnn_job *job, clv_error *error);
/* Partitions the graph for every k of --kset, or as in the files of --parts, and for k = 1. */
clv_status cli_gnn_cut(cli_gnn_job *job, clv_error *error);
/* Chooses k and an execution plan per subgraph: sets `choice` and `plan`. */
clv_status cli_gnn_choose(cli_gnn_job *job, clv_error *error);
void cli_gnn_job_finish(cli_gnn_job *job); /* accepts a zeroed job */

static inline const clv__chosen_k *cli_gnn_chosen(const cli_gnn_job *job) {
  return &job->choice.items[job->choice.chosen];
}

#endif
