/* See job.h. */
#include "cli/gnn/job.h"

#include <stdlib.h>
#include <string.h>

#include "cli/console.h"
#include "cli/job.h"

/* Takes the features from --x or --features. */
static clv_status find_features(cli_gnn_job *job, clv_error *error) {
  cli_invocation *cli = job->cli;
  clv_gnn_graph_info info = {.struct_size = sizeof info};
  const char *path = cli_text(cli, OPTION_GNN_X, NULL);
  const uint64_t count = cli_number(cli, OPTION_FEATURES, 0);
  if (path != NULL && count > 0) return cli_usage(cli, error, "options '--x' and '--features' exclude each other");
  if (path != NULL) return clv_gnn_graph_read_features(job->graph, path, error);
  if (count == 0) return CLV_OK;
  clv_gnn_graph_get_info(job->graph, &info);
  if (info.features.dtype != CLV_DTYPE_NONE)
    return cli_usage(cli, error, "option '--features': %s has %llu features per vertex; --x FILE replaces them", job->graph_path,
                     (unsigned long long)info.feature_count);
  if (count > UINT32_MAX) return cli_usage(cli, error, "option '--features': %llu is too large", (unsigned long long)count);
  return clv_gnn_graph_draw_features(job->graph, (uint32_t)count, cli_number(cli, OPTION_SEED, 0), error);
}

clv_status cli_gnn_load(cli_invocation *cli, cli_gnn_job *job, clv_error *error) {
  *job = (cli_gnn_job){
      .cli = cli, .model_path = cli_text(cli, OPTION_MODEL, NULL), .graph_path = cli_text(cli, OPTION_GNN_GRAPH, NULL)};
  if (job->model_path == NULL) return cli_usage(cli, error, "option '--model FILE' is missing: a model as JSON or ONNX");
  if (job->graph_path == NULL)
    return cli_usage(cli, error, "option '--graph FILE' is missing: a graph as npz, METIS's .graph or a list of edges");
  cli_progress(cli, "reading %s", job->model_path);
  CLI_TRY(clv_gnn_model_read(cli->context, job->model_path, &job->model, error));
  cli_progress(cli, "reading %s", job->graph_path);
  CLI_TRY(clv_gnn_graph_read(cli->context, job->graph_path, &job->graph, error));
  CLI_TRY(find_features(job, error));
  return cli_devices_open(cli, NULL, &job->devices, error);
}

static void tell(void *user_data, clv_gnn_message kind, const char *text) {
  cli_invocation *cli = user_data;
  if (kind == CLV_GNN_PROGRESS)
    cli_progress(cli, "%s", text);
  else if (kind == CLV_GNN_NOTE || cli->verbose)
    cli_note(cli, "%s", text);
}

clv_status cli_gnn_options(cli_gnn_job *job, bool cuts, clv_error *error) {
  cli_invocation *cli = job->cli;
  clv_gnn_plan_options *o = &job->options;
  *o = (clv_gnn_plan_options)CLV_GNN_PLAN_OPTIONS_INIT;
  CLI_TRY(cli_gnn_parts_read(job, error));
  o->parts = (const clv_gnn_parts *const *)job->parts;
  o->part_count = job->part_count;
  if (cuts && job->part_count == 0) {
    CLI_TRY(
        cli_kset_parse(cli, cli_text(cli, OPTION_KSET, cli_option_table[OPTION_KSET].fallback), &job->ks, &o->k_count, error));
    o->ks = job->ks;
  }
  o->seed = cli_number(cli, OPTION_SEED, 0);
  o->pad_step = cli_number(cli, OPTION_PAD, 1000);
  o->tell = tell;
  o->user_data = cli;
  return CLV_OK;
}

clv_status cli_gnn_plan(cli_gnn_job *job, clv_error *error) {
  cli_invocation *cli = job->cli;
  const char *path = cli_text(cli, OPTION_PROFILE, NULL);
  CLI_TRY(cli_gnn_options(job, true, error));
  if (path != NULL)
    CLI_TRY(clv_gnn_costs_read(cli->context, path, &job->costs, error));
  else
    cli_note(cli, "prices are nominal, because there is no --profile: measure the devices with 'cleave gnn profile -o FILE'");
  job->options.costs = job->costs;
  job->options.quick = strcmp(cli_text(cli, OPTION_EFFORT, "full"), "quick") == 0;
  job->options.top_k = (uint32_t)cli_number(cli, OPTION_TOP_K, 0);
  return clv_gnn_plan_make(job->model, job->graph, job->devices, &job->options, &job->plan, error);
}

void cli_gnn_job_finish(cli_gnn_job *job) {
  clv_gnn_plan_destroy(job->plan);
  clv_gnn_costs_destroy(job->costs);
  for (uint32_t i = 0; i < job->part_count; ++i) clv_gnn_parts_destroy(job->parts[i]);
  free(job->parts);
  free(job->ks);
  clv_devices_close(job->devices);
  clv_gnn_graph_destroy(job->graph);
  clv_gnn_model_destroy(job->model);
}
