/* What plan, profile and run of `cleave gnn` begin with: model, graph and devices; the graph cut for every k of --kset; tables,
 * and the choice of a plan. */
#ifndef CLEAVE_CLI_GNN_JOB_H
#define CLEAVE_CLI_GNN_JOB_H

#include <jansson.h>

#include "cli/gnn.h"
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
  clv__gnn_plan *plan;             /* what was chosen */
  double load_ms, cut_ms, plan_ms; /* cut: METIS and subgraphs */
} cli_gnn_job;

/* Options that cli_gnn_load(), cli_gnn_cut() and cli_gnn_choose() look at. */
#define CLI_GNN_JOB_OPTIONS                                                                                             \
  OPTION_MODEL, OPTION_GNN_GRAPH, OPTION_DEVICES, OPTION_NPU_SPEC, OPTION_DEVICE_OPTION, OPTION_PLUGIN, OPTION_THREADS, \
      OPTION_CACHE_DIR, OPTION_KSET, OPTION_SEED, OPTION_PAD
#define CLI_GNN_CHOICE_OPTIONS OPTION_PROFILE, OPTION_EFFORT, OPTION_TOP_K

clv_status cli_gnn_load(cli_invocation *cli, cli_gnn_job *job, clv_error *error);
/* For --kset, `fallback` where it is not given; and for 1. */
clv_status cli_gnn_cut(cli_gnn_job *job, const char *fallback, clv_error *error);
/* Sets choice and plan. */
clv_status cli_gnn_choose(cli_gnn_job *job, clv_error *error);
void cli_gnn_job_finish(cli_gnn_job *job); /* accepts a zeroed one */

static inline const clv__chosen_k *cli_gnn_chosen(const cli_gnn_job *job) {
  return &job->choice.items[job->choice.chosen];
}

/* What the choice says, into a document, and as text. */
void cli_gnn_choice_json(const cli_gnn_job *job, json_t *root);
void cli_gnn_choice_text(const cli_gnn_job *job, clv__text *text);

#endif
