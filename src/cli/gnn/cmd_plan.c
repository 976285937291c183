/* `cleave gnn plan`: determines the number of subgraphs, the devices of their blocks, and the predicted time. */
#include "cli/console.h"
#include "cli/gnn/report.h"
#include "cli/json.h"
#include "gnn/export.h"

static const cli_gnn_option options[] = {
    CLI_GNN_JOB_OPTIONS,
    CLI_GNN_CHOICE_OPTIONS,
    {OPTION_LIST_PEPS, NULL, NULL},
    {OPTION_EXPORT_DIR, NULL, NULL},
    {OPTION_INLINE, NULL, NULL},
    {OPTION_HTML, CLI_GNN_HTML_HELP, NULL},
    {OPTION_OUTPUT, "write the plan, for 'cleave gnn run --plan'", NULL},
};

/* ---- --list-peps: the candidate plans of the chosen k ---- */

typedef clv_status (*pep_teller)(void *user, uint32_t layer, uint32_t subgraph, const clv__pep_list *list, clv_error *error);

static clv_status each_list(cli_gnn_job *job, pep_teller teller, void *user, clv_error *error) {
  const clv__chosen_k *chosen = cli_gnn_chosen(job);
  const clv__subgraph_sizes *subgraphs = NULL;
  clv__pep_options kept = CLV__PEP_OPTIONS_INIT;
  kept.top_k = (uint32_t)cli_number(job->cli, OPTION_TOP_K, 0);
  for (uint32_t c = 0; c < job->planning.cut_count; ++c) {
    if (job->planning.cuts[c].membership.k == chosen->k) subgraphs = job->planning.cuts[c].subgraphs;
  }
  for (uint32_t l = 0; l < job->choice.layer_count; ++l) {
    for (uint32_t i = 0; i < chosen->k; ++i) {
      clv__arena arena;
      clv__pep_list list;
      if (subgraphs[i].owned == 0) continue;
      clv__arena_init(&arena, job->cli->allocator);
      clv_status status = clv__peps_make(&arena, &job->planning.costs[l], &subgraphs[i], &kept, &list, error);
      if (status == CLV_OK) status = teller(user, l, i, &list, error);
      clv__arena_finish(&arena);
      CLV__TRY(status);
    }
  }
  return CLV_OK;
}

typedef struct telling {
  cli_gnn_job *job;
  clv__text *text;
  json_t *list;
} telling;

static clv_status tell_text(void *user, uint32_t layer, uint32_t subgraph, const clv__pep_list *list, clv_error *error) {
  const telling *t = user;
  const clv__pep *chosen = cli_gnn_chosen(t->job)->layers[layer].peps[subgraph];
  (void)error;
  clv__text_append(t->text,
                   "layer %u, subgraph %u: %u ways to assign its stages, %u priced, %u outside the measured sizes, %u too large "
                   "for a device\n",
                   layer, subgraph, list->structures, list->priced, list->unknown, list->infeasible);
  for (uint32_t i = 0; i < list->count; ++i) {
    clv__text_append(t->text, "%s %12.3f ms  ", clv__pep_same(&list->items[i], chosen) ? "*" : " ",
                     1e-6 * list->items[i].time_ns);
    clv__pep_describe(&list->items[i], &t->job->planning.machine, t->text);
    clv__text_append(t->text, "\n");
  }
  return CLV_OK;
}

static clv_status tell_json(void *user, uint32_t layer, uint32_t subgraph, const clv__pep_list *list, clv_error *error) {
  const telling *t = user;
  json_t *object = json_object(), *peps = json_array();
  json_object_set_new(object, "layer", json_integer(layer));
  json_object_set_new(object, "subgraph", json_integer(subgraph));
  json_object_set_new(object, "structures", json_integer(list->structures));
  json_object_set_new(object, "priced", json_integer(list->priced));
  json_object_set_new(object, "unknown", json_integer(list->unknown));
  json_object_set_new(object, "infeasible", json_integer(list->infeasible));
  for (uint32_t i = 0; i < list->count; ++i) {
    clv__text text;
    json_t *pep = json_object();
    clv__text_init(&text, t->job->cli->allocator);
    clv__pep_describe(&list->items[i], &t->job->planning.machine, &text);
    json_object_set_new(pep, "pep", cli_json_text(text.failed ? NULL : text.data));
    json_object_set_new(pep, "ms", cli_json_real(1e-6 * list->items[i].time_ns));
    json_array_append_new(peps, pep);
    clv__text_finish(&text);
  }
  json_object_set_new(object, "peps", peps);
  return json_array_append_new(t->list, object) == 0 ? CLV_OK : clv__error_memory(error, sizeof(json_t));
}

/* ---- Output ---- */

static clv_status print_json(cli_gnn_job *job, const clv__gnn_account *account, clv_error *error) {
  json_t *root = json_object();
  cli_gnn_report_json(job, account, root);
  if (cli_is_given(job->cli, OPTION_LIST_PEPS)) {
    telling t = {job, NULL, json_array()};
    json_object_set_new(root, "peps", t.list);
    clv_status status = each_list(job, tell_json, &t, error);
    if (status != CLV_OK) {
      json_decref(root);
      return status;
    }
  }
  return cli_json_print(job->cli, root, error);
}

static clv_status print_text(cli_gnn_job *job, const clv__gnn_account *account, clv_error *error) {
  clv__text text;
  clv__text_init(&text, job->cli->allocator);
  cli_gnn_report_choice(job, &text);
  cli_gnn_report_blocks(job, account, &text);
  if (cli_is_given(job->cli, OPTION_LIST_PEPS)) {
    telling t = {job, &text, NULL};
    clv_status status = each_list(job, tell_text, &t, error);
    if (status != CLV_OK) {
      clv__text_finish(&text);
      return status;
    }
  }
  return cli_print(job->cli, &text, error);
}

static clv_status export(cli_gnn_job *job, clv_error *error) {
  const char *folder = cli_text(job->cli, OPTION_EXPORT_DIR, NULL);
  clv__gnn_schedule schedule;
  uint32_t count;
  bool inlines = cli_is_given(job->cli, OPTION_INLINE);
  if (folder == NULL) return CLV_OK;
  CLV__TRY(clv__gnn_schedule_of(&job->cli->arena, job->plan, &schedule, error));
  CLV__TRY(clv__gnn_export(&job->planning, &schedule, folder, inlines, &count, error));
  cli_note(job->cli, "%s: %u blocks written as ONNX", folder, count);
  return CLV_OK;
}

static clv_status write_plan(cli_gnn_job *job, clv_error *error) {
  const clv__membership *membership = NULL;
  for (uint32_t c = 0; c < job->planning.cut_count; ++c) {
    if (job->planning.cuts[c].membership.k == job->plan->k) membership = &job->planning.cuts[c].membership;
  }
  return clv__gnn_plan_write_with(job->plan, membership, cli_text(job->cli, OPTION_OUTPUT, NULL), error);
}

static clv_status plan(cli_gnn_job *job, clv_error *error) {
  clv__gnn_account account;
  CLV__TRY(cli_gnn_cut(job, error));
  CLV__TRY(cli_gnn_choose(job, error));
  if (cli_is_given(job->cli, OPTION_OUTPUT)) CLV__TRY(write_plan(job, error));
  CLV__TRY(export(job, error));
  CLV__TRY(clv__gnn_account_make(&job->cli->arena, job->plan, job->planning.stages, NULL, &account, error));
  CLV__TRY(cli_gnn_report_html(job, &account, error));
  return job->cli->json ? print_json(job, &account, error) : print_text(job, &account, error);
}

static clv_status execute(cli_invocation *cli, clv_error *error) {
  cli_gnn_job job;
  if (cli_is_given(cli, OPTION_INLINE) && !cli_is_given(cli, OPTION_EXPORT_DIR))
    return cli_usage(cli, error, "option '--inline' needs --export-dir");
  clv_status status = cli_gnn_load(cli, &job, error);
  if (status == CLV_OK) status = plan(&job, error);
  cli_gnn_job_finish(&job);
  return status;
}

const cli_gnn_verb cli_gnn_verb_plan = {
    .name = "plan",
    .operands = "",
    .wanted = "--model FILE --graph FILE",
    .summary = "choose the number of subgraphs and their devices",
    .description =
        "Partitions the graph into k subgraphs, for k = 1 and every k of --kset, and plans each subgraph and layer: blocks\n"
        "of stages, each on one device or divided among several. Shows for every k the predicted time (makespan), a lower\n"
        "bound for any plan with that k, the gap to it, the gain over the best single device, and the load of each device.\n"
        "A switch is a device's change to another executable. The line '3 of the subgraphs: cpu 0-4 | npu 4-7' means that\n"
        "in 3 subgraphs cpu runs the layer's stages 0 to 3, and then npu its stages 4 to 6. Without --profile, prices are\n"
        "nominal: they rank plans but do not predict times.",
    .examples =
        "  cleave gnn plan --model sage.json --graph cora.npz --devices npu,cpu --kset 1,2,4 --profile costs.json -o plan.json"
        "    # save the plan\n"
        "  cleave gnn plan --model sage.json --graph cora.npz --devices npu,cpu --profile costs.json --html plan.html"
        "    # write a web page\n"
        "  cleave gnn plan --model sage.json --graph cora.npz --profile costs.json --effort quick -v    # show each move\n",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .execute = execute,
};
