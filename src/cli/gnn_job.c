/* See gnn_job.h. */
#include "cli/gnn_job.h"

#include <math.h>
#include <string.h>

#include "cli/console.h"
#include "cli/job.h"
#include "cli/json.h"
#include "gnn/single.h"

clv_status cli_gnn_load(cli_invocation *cli, cli_gnn_job *job, clv_error *error) {
  const clv_allocator *allocator = clv__context_allocator(cli->context);
  *job = (cli_gnn_job){
      .cli = cli, .model_path = cli_text(cli, OPTION_MODEL, NULL), .graph_path = cli_text(cli, OPTION_GNN_GRAPH, NULL)};
  if (job->model_path == NULL) return cli_usage(cli, error, "--model FILE is missing: JSON or ONNX");
  if (job->graph_path == NULL) return cli_usage(cli, error, "--graph FILE is missing: npz, METIS's .graph or a list of edges");
  uint64_t begin_ns = cli_now_ns();
  cli_progress(cli, "reading %s", job->model_path);
  CLV__TRY(clv__gnn_model_read(allocator, job->model_path, &job->model, error));
  cli_progress(cli, "reading %s", job->graph_path);
  CLV__TRY(clv__gnn_graph_read(allocator, job->graph_path, &job->graph, error));
  clv_status status = clv__gnn_check_fit(job->model, job->graph, error);
  if (status != CLV_OK) return clv__error_prefix(error, status, "%s", job->graph_path);
  job->load_ms = cli_ms(begin_ns, cli_now_ns());
  return cli_devices_open(cli, NULL, &job->devices, error);
}

static void tell_cut(void *user_data, uint32_t k) {
  cli_progress(user_data, "cutting into %u", k);
}

clv_status cli_gnn_cut(cli_gnn_job *job, const char *fallback, clv_error *error) {
  cli_invocation *cli = job->cli;
  const char *reason;
  uint32_t *ks, count;
  uint64_t begin_ns = cli_now_ns();
  CLV__TRY(cli_kset_parse(cli, cli_text(cli, OPTION_KSET, fallback), &ks, &count, error));
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
  job->cut_ms = cli_ms(begin_ns, cli_now_ns());
  return status == CLV_OK ? CLV_OK : clv__error_prefix(error, status, "%s", job->graph_path);
}

/* The quick mode's moves, with -v. */
static void tell_move(void *user, uint32_t k, uint32_t layer, const clv__assign_move *move, const clv__pep *from,
                      const clv__pep *to) {
  const cli_gnn_job *job = user;
  clv__text text;
  clv__text_init(&text, job->cli->allocator);
  clv__pep_describe(from, &job->planning.machine, &text);
  clv__text_append(&text, " -> ");
  clv__pep_describe(to, &job->planning.machine, &text);
  if (!text.failed)
    cli_note(job->cli, "k = %u, layer %u: subgraph %u off %s: %s: %.3f -> %.3f ms", k, layer, move->piece,
             job->planning.machine.devices[move->bottleneck].name, text.data, 1e-6 * move->before_ns, 1e-6 * move->after_ns);
  clv__text_finish(&text);
}

clv_status cli_gnn_choose(cli_gnn_job *job, clv_error *error) {
  cli_invocation *cli = job->cli;
  const char *path = cli_text(cli, OPTION_PROFILE, NULL);
  clv__choose_options options = CLV__CHOOSE_OPTIONS_INIT;
  if (path == NULL)
    return cli_usage(cli, error, "--profile FILE is missing: measure the devices with 'cleave gnn profile -o FILE'");
  clv__tables_init(&job->tables, clv__context_allocator(cli->context));
  CLV__TRY(clv__tables_read(&job->tables, path, error));
  options.effort = strcmp(cli_text(cli, OPTION_EFFORT, "full"), "quick") == 0 ? CLV__EFFORT_QUICK : CLV__EFFORT_FULL;
  options.peps.top_k = (uint32_t)cli_number(cli, OPTION_TOP_K, 0);
  if (cli->verbose) options.moves = tell_move;
  options.user = job;
  cli_progress(cli, "planning");
  uint64_t begin_ns = cli_now_ns();
  clv_status status = clv__gnn_planning_choose(&job->planning, &job->tables, &options, &job->choice, error);
  job->plan_ms = cli_ms(begin_ns, cli_now_ns());
  if (status != CLV_OK) return clv__error_prefix(error, status, "%s", path);
  return clv__gnn_planning_plan(&job->planning, &job->tables, &job->choice, job->model_path, job->graph_path, &job->plan, error);
}

void cli_gnn_job_finish(cli_gnn_job *job) {
  if (job->cli == NULL) return;
  clv__gnn_plan_destroy(job->plan);
  clv__gnn_planning_finish(&job->planning);
  if (job->tables.arena.allocator != NULL) clv__tables_finish(&job->tables);
  clv_devices_close(job->devices);
  clv__gnn_graph_destroy(job->graph);
  clv__gnn_model_destroy(job->model);
}

/* ---- What the choice says ---- */

static json_t *ms(double ns) {
  return cli_json_real(1e-6 * ns);
}

static json_t *device_json(const cli_gnn_job *job, const clv__chosen_k *item, uint32_t d) {
  json_t *object = json_object();
  json_object_set_new(object, "device", cli_json_text(job->planning.machine.devices[d].name));
  json_object_set_new(object, "busy_ms", ms(item->busy_ns[d]));
  json_object_set_new(object, "idle_ms", ms(item->idle_ns[d]));
  json_object_set_new(object, "alone_ms", ms(item->single_ns[d]));
  return object;
}

static json_t *k_json(const cli_gnn_job *job, const clv__chosen_k *item) {
  json_t *object = json_object();
  json_object_set_new(object, "k", json_integer(item->k));
  json_object_set_new(object, "makespan_ms", item->has_plan ? ms(item->makespan_ns) : json_null());
  json_object_set_new(object, "lower_bound_ms", item->has_plan ? ms(item->bound_ns) : json_null());
  if (!item->has_plan) {
    json_object_set_new(object, "reason", cli_json_text(item->reason));
    return object;
  }
  json_object_set_new(object, "gap", cli_json_real(item->gap));
  json_object_set_new(object, "switches", json_integer(item->switches));
  json_t *devices = json_array();
  for (uint32_t d = 0; d < job->planning.machine.device_count; ++d) json_array_append_new(devices, device_json(job, item, d));
  json_object_set_new(object, "devices", devices);
  for (uint32_t c = 0; c < job->planning.cut_count; ++c) {
    const clv__gnn_cut *cut = &job->planning.cuts[c];
    if (cut->membership.k != item->k) continue;
    json_object_set_new(object, "cut_edges", json_integer((json_int_t)cut->cut_edges));
    json_object_set_new(object, "communication_volume", json_integer((json_int_t)cut->communication_volume));
    json_object_set_new(object, "metis_seconds", cli_json_real(cut->membership.metis_seconds));
    json_object_set_new(object, "from_cache", json_boolean(cut->membership.from_cache));
  }
  return object;
}

void cli_gnn_choice_json(const cli_gnn_job *job, json_t *root) {
  const clv__choice *choice = &job->choice;
  const clv__chosen_k *chosen = cli_gnn_chosen(job);
  json_t *per_k = json_array();
  for (uint32_t i = 0; i < choice->k_count; ++i) json_array_append_new(per_k, k_json(job, &choice->items[i]));
  json_object_set_new(root, "per_k", per_k);
  json_object_set_new(root, "k", json_integer(chosen->k));
  json_object_set_new(root, "makespan_ms", ms(chosen->makespan_ns));
  json_object_set_new(root, "lower_bound_ms", ms(chosen->bound_ns));
  json_object_set_new(root, "gap", cli_json_real(chosen->gap));
  json_object_set_new(root, "best_single_device_ms", ms(choice->best_single_ns));
  bool has_single = isfinite(choice->best_single_ns);
  json_object_set_new(root, "best_single_device",
                      has_single ? cli_json_text(job->planning.machine.devices[choice->best_single_device].name) : json_null());
  json_object_set_new(root, "gain", has_single ? cli_json_real(choice->gain) : json_null());
  json_object_set_new(root, "tables", cli_json_text(clv__origin_name(choice->origin)));
  json_object_set_new(root, "why", cli_json_text(choice->why));
  json_object_set_new(root, "load_ms", cli_json_real(job->load_ms));
  json_object_set_new(root, "cut_ms", cli_json_real(job->cut_ms));
  json_object_set_new(root, "plan_ms", cli_json_real(job->plan_ms));
}

static void k_text(const cli_gnn_job *job, const clv__chosen_k *item, clv__text *text) {
  const clv__machine *machine = &job->planning.machine;
  bool is_chosen = item == cli_gnn_chosen(job);
  clv__text_append(text, "%s %5u", is_chosen ? "*" : " ", item->k);
  if (!item->has_plan) {
    clv__text_append(text, "  no plan: %s\n", item->reason);
    return;
  }
  clv__text_append(text, "  %12.3f  %12.3f  %6.2f %%  %8u", 1e-6 * item->makespan_ns, 1e-6 * item->bound_ns, 100 * item->gap,
                   item->switches);
  for (uint32_t d = 0; d < machine->device_count; ++d)
    clv__text_append(text, "  %s %.0f %%", machine->devices[d].name,
                     item->makespan_ns > 0 ? 100 * item->busy_ns[d] / item->makespan_ns : 0);
  clv__text_append(text, "\n");
}

void cli_gnn_choice_text(const cli_gnn_job *job, clv__text *text) {
  const clv__choice *choice = &job->choice;
  const clv__chosen_k *chosen = cli_gnn_chosen(job);
  clv__text_append(text, "      k  makespan, ms  at least, ms       gap  switches  busy\n");
  for (uint32_t i = 0; i < choice->k_count; ++i) k_text(job, &choice->items[i], text);
  clv__text_append(text, "%s\n", choice->why);
  if (choice->origin != CLV__MEASURED) clv__text_append(text, "prices are from %s tables\n", clv__origin_name(choice->origin));
  for (uint32_t l = 0; l < choice->layer_count; ++l) {
    const clv__chosen_layer *layer = &chosen->layers[l];
    clv__text_append(text, "layer %u: %.3f ms\n", l, 1e-6 * layer->timeline.makespan_ns);
    for (uint32_t c = 0; c < layer->cluster_count; ++c) {
      clv__text_append(text, "  %4u x  ", layer->clusters[c].count);
      clv__pep_describe(layer->peps[layer->sequence[layer->clusters[c].first]], &job->planning.machine, text);
      clv__text_append(text, "\n");
    }
  }
}
