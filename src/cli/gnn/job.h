/* The first steps of `cleave gnn plan`, `profile` and `run`: loads the model and the graph, opens the devices, reads the options
 * of the plan, and makes it. */
#ifndef CLEAVE_CLI_GNN_JOB_H
#define CLEAVE_CLI_GNN_JOB_H

#include <cleave/gnn_costs.h>

#include "cli/gnn/gnn.h"

typedef struct cli_gnn_job {
  cli_invocation *cli;
  const char *model_path, *graph_path;
  clv_gnn_model *model;
  clv_gnn_graph *graph;
  clv_devices *devices;
  clv_gnn_costs *costs; /* NULL: nominal prices */
  clv_gnn_plan *plan;
  uint32_t *ks;          /* of --kset */
  clv_gnn_parts **parts; /* of --parts */
  uint32_t part_count;
  clv_gnn_plan_options options; /* refers to ks, parts and costs */
} cli_gnn_job;

/* Options that cli_gnn_load() and cli_gnn_options() read, and those that cli_gnn_plan() reads in addition. */
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

/* Sets `job` up, and loads the model and the graph. Finish the job also after an error. */
clv_status cli_gnn_load(cli_invocation *cli, cli_gnn_job *job, clv_error *error);
/* Sets job->options from the arguments, but for those of the choice. With `cuts`, the numbers of subgraphs are those of --kset or
 * its default, unless --parts is given. */
clv_status cli_gnn_options(cli_gnn_job *job, bool cuts, clv_error *error);
/* Makes the plan: sets job->plan. */
clv_status cli_gnn_plan(cli_gnn_job *job, clv_error *error);
void cli_gnn_job_finish(cli_gnn_job *job); /* accepts a zeroed job */

/* parts.c: reads the files of --parts, if given. If --kset is also given, both must have the same ks. */
clv_status cli_gnn_parts_read(cli_gnn_job *job, clv_error *error);

#endif
