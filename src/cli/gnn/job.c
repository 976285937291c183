/* See job.h. */
#include "cli/gnn/job.h"
#include "base/clock.h"

#include <string.h>

#include "cli/console.h"
#include "cli/job.h"
#include "gnn/measure/nominal.h"
#include "gnn/run/single.h"

#define LESS_MEMORY 0.9 /* a larger k helps only if it needs less than this share of the memory that k / 4 needs */

/* Takes the features from --x or --features. */
static clv_status find_features(cli_gnn_job *job, clv_error *error) {
  cli_invocation *cli = job->cli;
  const char *path = cli_text(cli, OPTION_GNN_X, NULL);
  const uint64_t count = cli_number(cli, OPTION_FEATURES, 0);
  if (path != NULL && count > 0) return cli_usage(cli, error, "options '--x' and '--features' exclude each other");
  if (path != NULL) return clv__gnn_graph_read_features(job->graph, path, error);
  if (count == 0) return CLV_OK;
  if (job->graph->features.dtype != CLV_DTYPE_NONE)
    return cli_usage(cli, error, "option '--features': %s has %lld features per vertex; --x FILE replaces them", job->graph_path,
                     (long long)job->graph->features.dims[1]);
  if (count > UINT32_MAX) return cli_usage(cli, error, "option '--features': %llu is too large", (unsigned long long)count);
  return clv__gnn_graph_draw_features(job->graph, (uint32_t)count, cli_number(cli, OPTION_SEED, 0), error);
}

clv_status cli_gnn_load(cli_invocation *cli, cli_gnn_job *job, clv_error *error) {
  const clv_allocator *allocator = clv__context_allocator(cli->context);
  *job = (cli_gnn_job){
      .cli = cli, .model_path = cli_text(cli, OPTION_MODEL, NULL), .graph_path = cli_text(cli, OPTION_GNN_GRAPH, NULL)};
  if (job->model_path == NULL) return cli_usage(cli, error, "option '--model FILE' is missing: a model as JSON or ONNX");
  if (job->graph_path == NULL)
    return cli_usage(cli, error, "option '--graph FILE' is missing: a graph as npz, METIS's .graph or a list of edges");
  uint64_t begin_ns = clv__clock_ns();
  cli_progress(cli, "reading %s", job->model_path);
  CLV__TRY(clv__gnn_model_read(allocator, job->model_path, &job->model, error));
  cli_progress(cli, "reading %s", job->graph_path);
  CLV__TRY(clv__gnn_graph_read(allocator, job->graph_path, &job->graph, error));
  CLV__TRY(find_features(job, error));
  clv_status status = clv__gnn_check_fit(job->model, job->graph, error);
  if (status != CLV_OK) return clv__error_prefix(error, status, "%s", job->graph_path);
  job->load_ms = cli_ms(begin_ns, clv__clock_ns());
  return cli_devices_open(cli, NULL, &job->devices, error);
}

static void tell_cut(void *user_data, uint32_t k) {
  cli_progress(user_data, "partitioning into %u subgraphs", k);
}

/* With -v, reports where each partitioning came from. */
static void tell_cuts(const cli_gnn_job *job) {
  for (uint32_t c = 0; c < job->planning.cut_count; ++c) {
    const clv__membership *membership = &job->planning.cuts[c].membership;
    if (membership->k == 1) continue;
    if (membership->from_cache)
      cli_note(job->cli, "k = %u: subgraphs from the cache", membership->k);
    else if (membership->metis_seconds > 0)
      cli_note(job->cli, "k = %u: partitioned by METIS in %.1f ms", membership->k, 1e3 * membership->metis_seconds);
    else
      cli_note(job->cli, "k = %u: METIS not used", membership->k);
  }
}

static clv_status cut_as_given(cli_gnn_job *job, clv_error *error) {
  uint64_t begin_ns = clv__clock_ns();
  cli_progress(job->cli, "partitioning according to --parts");
  clv_status status = clv__gnn_planning_init_parts(&job->planning, job->devices, job->model, job->graph, job->parts,
                                                   job->part_count, cli_number(job->cli, OPTION_PAD, 1000), error);
  job->cut_ms = cli_ms(begin_ns, clv__clock_ns());
  return status == CLV_OK ? CLV_OK : clv__error_prefix(error, status, "%s", job->graph_path);
}

clv_status cli_gnn_cut(cli_gnn_job *job, clv_error *error) {
  cli_invocation *cli = job->cli;
  const char *reason;
  uint32_t *ks, count;
  uint64_t begin_ns = clv__clock_ns();
  CLV__TRY(cli_gnn_parts_read(job, error));
  if (job->part_count > 0) return cut_as_given(job, error);
  CLV__TRY(cli_kset_parse(cli, cli_text(cli, OPTION_KSET, cli_option_table[OPTION_KSET].fallback), &ks, &count, error));
  if (ks[0] != 1) { /* the whole graph is always a candidate */
    uint32_t *more = clv__arena_allocate_zero(&cli->arena, count + 1u, sizeof *more);
    if (more == NULL) return clv__error_memory(error, (count + 1u) * sizeof *more);
    more[0] = 1;
    memcpy(more + 1, ks, count * sizeof *ks);
    ks = more;
    ++count;
  }
  clv_status status =
      clv__gnn_planning_init(&job->planning, job->devices, job->model, job->graph, ks, count, cli_number(cli, OPTION_SEED, 0),
                             cli_number(cli, OPTION_PAD, 1000), clv__context_cache(cli->context, &reason), tell_cut, cli, error);
  job->cut_ms = cli_ms(begin_ns, clv__clock_ns());
  if (status != CLV_OK) return clv__error_prefix(error, status, "%s", job->graph_path);
  if (cli->verbose) tell_cuts(job);
  return CLV_OK;
}

/* With -v, reports a subgraph that the quick search moved off the busiest device. */
static void tell_move(void *user, uint32_t k, uint32_t layer, const clv__assign_move *move, const clv__pep *from,
                      const clv__pep *to) {
  const cli_gnn_job *job = user;
  clv__text text;
  clv__text_init(&text, job->cli->allocator);
  clv__pep_describe(from, &job->planning.machine, &text);
  clv__text_append(&text, " -> ");
  clv__pep_describe(to, &job->planning.machine, &text);
  if (!text.failed)
    cli_note(job->cli, "k = %u, layer %u: moved subgraph %u off %s: %s; largest load %.3f -> %.3f ms", k, layer, move->subgraph,
             job->planning.machine.devices[move->bottleneck].name, text.data, 1e-6 * move->before_ns, 1e-6 * move->after_ns);
  clv__text_finish(&text);
}

/* Reads the profile. Without one, prices are nominal. */
static clv_status find_prices(cli_gnn_job *job, const char *path, clv_error *error) {
  clv__tables_init(&job->tables, clv__context_allocator(job->cli->context));
  if (path != NULL) return clv__tables_read(&job->tables, path, error);
  cli_note(job->cli, "prices are nominal, because there is no --profile: measure the devices with 'cleave gnn profile -o FILE'");
  return clv__gnn_nominal(&job->planning, &job->tables, error);
}

/* Returns twice the largest k, if more subgraphs may help: METIS partitions the graph, and the last k needs clearly less memory
 * than a quarter as many subgraphs. Otherwise, returns 0. */
static uint32_t next_k(const cli_gnn_job *job) {
  const clv__choice *choice = &job->choice;
  const clv__chosen_k *last = &choice->items[choice->k_count - 1];
  if (job->part_count > 0 || last->least.size_bytes == 0 || last->k > job->graph->csr.vertex_count / 2) return 0;
  for (uint32_t c = 0; c + 1 < choice->k_count; ++c) {
    const clv__chosen_k *item = &choice->items[c];
    if (4 * item->k == last->k && (double)last->least.size_bytes > LESS_MEMORY * (double)item->least.size_bytes) return 0;
  }
  return 2 * last->k;
}

/* Chooses a plan. If no k fits the memory of the devices, tries more and smaller subgraphs. */
static clv_status choose_fitting(cli_gnn_job *job, const clv__choose_options *options, clv_error *error) {
  const char *reason;
  clv__cache *cache = clv__context_cache(job->cli->context, &reason);
  for (;;) {
    clv_status status = clv__gnn_planning_choose(&job->planning, &job->tables, options, &job->choice, error);
    uint32_t k = status == CLV_TOO_LARGE ? next_k(job) : 0;
    if (k == 0) return status;
    cli_note(job->cli, "no k up to %u fits the memory of the devices: trying k = %u", k / 2, k);
    clv__error_clear(error);
    CLV__TRY(clv__gnn_planning_cut(&job->planning, k, cache, error));
  }
}

clv_status cli_gnn_choose(cli_gnn_job *job, clv_error *error) {
  cli_invocation *cli = job->cli;
  const char *path = cli_text(cli, OPTION_PROFILE, NULL);
  clv__choose_options options = CLV__CHOOSE_OPTIONS_INIT;
  CLV__TRY(find_prices(job, path, error));
  options.effort = strcmp(cli_text(cli, OPTION_EFFORT, "full"), "quick") == 0 ? CLV__EFFORT_QUICK : CLV__EFFORT_FULL;
  options.peps.top_k = (uint32_t)cli_number(cli, OPTION_TOP_K, 0);
  if (cli->verbose) options.moves = tell_move;
  options.user = job;
  cli_progress(cli, "planning");
  uint64_t begin_ns = clv__clock_ns();
  clv_status status = choose_fitting(job, &options, error);
  job->plan_ms = cli_ms(begin_ns, clv__clock_ns());
  if (status != CLV_OK) return clv__error_prefix(error, status, "%s", path != NULL ? path : job->graph_path);
  return clv__gnn_planning_plan(&job->planning, &job->tables, &job->choice, job->model_path, job->graph_path, &job->plan, error);
}

void cli_gnn_job_finish(cli_gnn_job *job) {
  if (job->cli == NULL) return;
  clv__gnn_plan_destroy(job->plan);
  clv__gnn_planning_finish(&job->planning);
  if (job->tables.arena.allocator != NULL) clv__tables_finish(&job->tables);
  for (uint32_t i = 0; i < job->part_count; ++i) clv__membership_finish(job->cli->allocator, &job->parts[i]);
  clv_devices_close(job->devices);
  clv__gnn_graph_destroy(job->graph);
  clv__gnn_model_destroy(job->model);
}
