/* `cleave plan`: prints, explains, writes and draws the split of a model. */
#include <stdlib.h>
#include <string.h>

#include "cleave/plan_contents.h"
#include "cleave/report.h"
#include "cli/alternatives.h"
#include "cli/console.h"
#include "cli/job.h"
#include "cli/json.h"

/* The documents that the options ask for; NULL: not asked for. */
typedef struct documents {
  clv_comparison *comparison;
  char *plan, *passes, *compared, *what_if, *explained;
} documents;

static clv_status check_targets(cli_invocation *cli, const cli_job *job, clv_error *error) {
  CLI_TRY(cli_job_check_target(cli, job, OPTION_OUTPUT, error));
  CLI_TRY(cli_job_check_target(cli, job, OPTION_SVG, error));
  CLI_TRY(cli_job_check_target(cli, job, OPTION_HTML, error));
  return cli_job_check_target(cli, job, OPTION_DOT, error);
}

static clv_status write_files(cli_invocation *cli, const cli_job *job, const clv_comparison *comparison, clv_error *error) {
  static const struct {
    cli_option_id option;
    clv_picture picture;
  } pictures[] = {{OPTION_SVG, CLV_PICTURE_SVG}, {OPTION_HTML, CLV_PICTURE_PAGE}, {OPTION_DOT, CLV_PICTURE_DOT}};
  const char *path = cli_text(cli, OPTION_OUTPUT, NULL);
  if (path != NULL) CLI_TRY(clv_plan_write(job->plan, path, error));
  for (size_t i = 0; i < sizeof pictures / sizeof *pictures; ++i) {
    path = cli_text(cli, pictures[i].option, NULL);
    if (path != NULL) CLI_TRY(clv_plan_draw(job->plan, pictures[i].picture, comparison, path, NULL, NULL, error));
  }
  return CLV_OK;
}

/* Adds the nearest name to an error about a pattern that matches no node. */
static clv_status suggest_node(cli_invocation *cli, const cli_job *job, const char *pattern, clv_error *error) {
  clv_plan_info info = {.struct_size = sizeof info};
  clv_plan_get_info(job->plan, &info);
  const char **names = cli_arena_allocate_zero(&cli->arena, info.node_count, sizeof *names);
  if (names == NULL) return cli_error_memory(error, info.node_count * sizeof *names);
  for (uint32_t n = 0; n < info.node_count; ++n) {
    clv_placed_node_info node = {.struct_size = sizeof node};
    clv_plan_node(job->plan, n, &node);
    names[n] = node.name;
  }
  const char *nearest = cli_nearest(pattern, names, info.node_count);
  if (nearest == NULL) return cli_error_set(error, CLV_NOT_FOUND, "%s: no node or operator is named '%s'", job->path, pattern);
  return cli_error_set(error, CLV_NOT_FOUND, "%s: no node or operator is named '%s'; did you mean '%s'?", job->path, pattern,
                       nearest);
}

static clv_status find_passes(cli_invocation *cli, const cli_job *job, documents *d, clv_error *error) {
  if (!cli_is_given(cli, OPTION_EXPLAIN_PASSES)) return CLV_OK;
  clv_status status = clv_plan_passes(job->plan, cli_form(cli), &d->passes, error);
  if (status != CLV_INVALID_ARGUMENT) return status;
  clv_plan_info info = {.struct_size = sizeof info};
  clv_plan_get_info(job->plan, &info);
  return cli_usage(cli, error, "option '--explain-passes' needs --strategy propagate or propagate-graph, not %s", info.strategy);
}

static clv_status find_explanation(cli_invocation *cli, const cli_job *job, documents *d, clv_error *error) {
  const char *pattern = cli_text(cli, OPTION_EXPLAIN, "");
  if (!cli_is_given(cli, OPTION_EXPLAIN) || cli->json) return CLV_OK;
  clv_status status = clv_plan_explain(job->plan, pattern[0] == '\0' ? NULL : pattern, cli_form(cli), &d->explained, error);
  return status == CLV_NOT_FOUND ? suggest_node(cli, job, pattern, error) : status;
}

static clv_status find_documents(cli_invocation *cli, const cli_job *job, documents *d, clv_error *error) {
  const clv_form form = cli_form(cli);
  CLI_TRY(cli_alternatives_compare(cli, job, &d->comparison, error));
  CLI_TRY(cli_alternatives_what_if(cli, job, form, &d->what_if, error));
  CLI_TRY(write_files(cli, job, d->comparison, error));
  if (cli_is_given(cli, OPTION_COMPARE)) CLI_TRY(clv_comparison_text(d->comparison, form, &d->compared, error));
  CLI_TRY(find_explanation(cli, job, d, error));
  if (!cli->json && cli_text(cli, OPTION_EXPLAIN, "")[0] != '\0') return CLV_OK; /* only the explanation of some nodes */
  return clv_plan_report(job->plan,
                         cli->quiet     ? CLV_STEPS_NONE
                         : cli->verbose ? CLV_STEPS_ALL
                                        : CLV_STEPS_SOME,
                         form, &d->plan, error);
}

/* Prints the JSON of the plan, with how long the command took and with the other documents. */
static clv_status print_json(cli_invocation *cli, const cli_job *job, const documents *d, clv_error *error) {
  json_t *root = json_loads(d->plan, 0, NULL), *timings = json_object_get(root, "timings_ms");
  json_object_set_new(timings, "load", cli_json_real(job->load_ms));
  json_object_set_new(timings, "plan", cli_json_real(job->plan_ms));
  if (d->compared != NULL) json_object_set_new(root, "comparison", json_loads(d->compared, 0, NULL));
  if (d->what_if != NULL) json_object_set_new(root, "what_if", json_loads(d->what_if, 0, NULL));
  if (d->passes != NULL) json_object_set_new(root, "passes", json_loads(d->passes, 0, NULL));
  return cli_json_print(cli, root, error);
}

static clv_status print_text(cli_invocation *cli, const documents *d, clv_error *error) {
  const struct {
    const char *document, *before;
  } parts[] = {{d->plan, ""}, {d->compared, "\n"}, {d->what_if, "\n"}, {d->passes, ""}, {d->explained, "\n"}};
  bool is_first = true;
  for (size_t i = 0; i < sizeof parts / sizeof *parts; ++i) {
    if (parts[i].document == NULL) continue;
    if (!is_first || parts[i].document != d->explained) CLI_TRY(cli_print_document(cli, parts[i].before, error));
    CLI_TRY(cli_print_document(cli, parts[i].document, error));
    is_first = false;
  }
  return CLV_OK;
}

static void finish(documents *d) {
  clv_comparison_destroy(d->comparison);
  clv_text_free(d->plan);
  clv_text_free(d->passes);
  clv_text_free(d->compared);
  clv_text_free(d->what_if);
  clv_text_free(d->explained);
}

/* Prints a note if open sizes keep nodes off a device with static shapes. Without the note, the device may appear to support few
 * operators. */
static void note_open_sizes(cli_invocation *cli, const cli_job *job) {
  if (job->from_plan_file) return;
  for (uint32_t d = 0; d < clv_devices_count(job->devices); ++d) {
    const uint32_t nodes = clv_plan_open_nodes(job->plan, d);
    if (nodes == 0) continue;
    cli_note(cli,
             "device '%s' needs fixed shapes, but sizes of the model are open, so it cannot run %u node%s; set sizes with --dim "
             "and --shape, or see --explain",
             clv_devices_name(job->devices, d), nodes, nodes == 1 ? "" : "s");
    return;
  }
}

static clv_status execute(cli_invocation *cli, clv_error *error) {
  cli_job job = {0};
  documents d = {0};
  clv_status status = cli_job_load(cli, cli->options->operands[0], &job, error);
  if (status == CLV_OK) status = check_targets(cli, &job, error);
  if (status == CLV_OK) status = cli_job_plan(cli, &job, false, error);
  if (status == CLV_OK) status = find_passes(cli, &job, &d, error);
  if (status == CLV_OK) note_open_sizes(cli, &job);
  if (status == CLV_OK) status = find_documents(cli, &job, &d, error);
  if (status == CLV_OK) status = cli->json ? print_json(cli, &job, &d, error) : print_text(cli, &d, error);
  finish(&d);
  cli_job_finish(cli, &job);
  return status;
}

const cli_command cli_command_plan = {
    .name = "plan",
    .operands = "MODEL|PLAN",
    .min_operands = 1,
    .max_operands = 1,
    .summary = "show how a model is split between devices, and why",
    .description =
        "Assigns each node to a device, groups nodes into partitions, and lists the partitions and the transfers between them\n"
        "in execution order. Transfers of the model's inputs and outputs are counted separately; -v lists them too.\n"
        "Times are predicted from measured costs (--profile, written by 'cleave profile'), from a device's own estimates, or\n"
        "from nominal figures; the last line says which. The bound is a lower bound on the time of any plan without "
        "recomputation.\n"
        "Given a plan file that was written with -o, shows that plan.",
    .examples =
        "  cleave plan resnet50.onnx --devices npu,cpu --force MaxPool=cpu    # run MaxPool on the CPU\n"
        "  cleave plan resnet50.onnx --devices npu,cpu --pin '/layer4/*=cpu' -o plan.json --svg plan.svg"
        "    # run layer 4 on the CPU; save and draw the plan\n"
        "  cleave plan resnet50.onnx --devices npu,cpu --explain Softmax    # why Softmax is on its device\n"
        "  cleave plan resnet50.onnx --devices npu,cpu --profile costs.json --compare    # compare strategies\n"
        "  cleave plan resnet50.onnx --devices npu,cpu --what-if all    # rank operators to add to a device\n",
    .execute = execute,
};
