/* `cleave plan`: prints, explains, writes and draws the split of a model. */
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "cli/alternatives.h"
#include "cli/console.h"
#include "cli/job.h"
#include "cli/json.h"
#include "report/page/html.h"
#include "report/passes.h"
#include "report/picture/dot.h"
#include "report/picture/svg.h"
#include "report/steps.h"

static clv_status write_text(const char *path, clv__text *text, clv_error *error) {
  clv_status status =
      text->failed ? clv__error_memory(error, text->size_bytes) : clv__file_write(path, text->data, text->size_bytes, error);
  clv__text_finish(text);
  return status;
}

static clv_status write_page(cli_invocation *cli, const cli_job *job, const cli_alternatives *alternatives, clv_error *error) {
  const char *path = cli_text(cli, OPTION_HTML, NULL);
  if (path == NULL) return CLV_OK;
  clv__text text;
  clv__text_init(&text, cli->allocator);
  clv__report_html(job->plan, alternatives->comparison, alternatives->comparison_count, &text);
  return write_text(path, &text, error);
}

static clv_status write_picture(cli_invocation *cli, const cli_job *job, cli_option_id option,
                                void (*draw)(const clv_plan *, clv__text *), clv_error *error) {
  const char *path = cli_text(cli, option, NULL);
  if (path == NULL) return CLV_OK;
  clv__text text;
  clv__text_init(&text, cli->allocator);
  draw(job->plan, &text);
  return write_text(path, &text, error);
}

static clv_status check_targets(cli_invocation *cli, const cli_job *job, clv_error *error) {
  CLV__TRY(cli_job_check_target(cli, job, OPTION_OUTPUT, error));
  CLV__TRY(cli_job_check_target(cli, job, OPTION_SVG, error));
  CLV__TRY(cli_job_check_target(cli, job, OPTION_HTML, error));
  return cli_job_check_target(cli, job, OPTION_DOT, error);
}

static clv_status write_files(cli_invocation *cli, const cli_job *job, const cli_alternatives *alternatives, clv_error *error) {
  const char *path = cli_text(cli, OPTION_OUTPUT, NULL);
  if (path != NULL) CLV__TRY(clv_plan_write(job->plan, path, error));
  CLV__TRY(write_picture(cli, job, OPTION_SVG, clv__report_svg, error));
  CLV__TRY(write_page(cli, job, alternatives, error));
  return write_picture(cli, job, OPTION_DOT, clv__report_dot, error);
}

/* Prints the JSON of a plan file, plus data that plan files do not contain: times, totals and alternatives. */
static clv_status print_json(cli_invocation *cli, const cli_job *job, const cli_alternatives *alternatives, clv_error *error) {
  char *text;
  CLV__TRY(clv__plan_to_json(job->plan, true, &text, error));
  json_t *root = json_loads(text, 0, NULL);
  clv__release(job->graph->allocator, text);
  if (root == NULL) return clv__error_set(error, CLV_INTERNAL_ERROR, "the JSON written for the plan cannot be parsed");
  clv__plan_totals totals;
  clv__plan_totals_get(job->plan, &totals);
  json_t *timings = json_object_get(root, "timings_ms"), *sums = json_object();
  json_object_set_new(timings, "load", cli_json_real(job->load_ms));
  json_object_set_new(timings, "plan", cli_json_real(job->plan_ms));
  json_object_set_new(sums, "partitions", json_integer(job->plan->partition_count - job->plan->hosted_count));
  json_object_set_new(sums, "transfers", json_integer(totals.inner_transfers));
  json_object_set_new(sums, "transfer_bytes", json_integer((json_int_t)totals.inner_bytes));
  json_object_set_new(sums, "own_transfers", json_integer(totals.own_transfers));
  json_object_set_new(sums, "own_transfer_bytes", json_integer((json_int_t)totals.own_bytes));
  json_object_set_new(sums, "bytes_known", json_boolean(totals.bytes_known));
  json_object_set_new(sums, "folded_nodes", json_integer(totals.folded_nodes));
  json_object_set_new(root, "totals", sums);
  cli_alternatives_json(job, alternatives, root);
  if (cli_is_given(cli, OPTION_EXPLAIN_PASSES)) json_object_set_new(root, "passes", clv__report_passes_json(job->plan));
  return cli_json_print(cli, root, error);
}

static clv_status explain(cli_invocation *cli, const cli_job *job, clv__text *text, clv_error *error) {
  const char *pattern = cli_text(cli, OPTION_EXPLAIN, "");
  if (text->size_bytes > 0) clv__text_append(text, "\n");
  uint32_t matched = clv__report_explain(job->plan, pattern[0] == '\0' ? NULL : pattern, text);
  if (matched > 0 || pattern[0] == '\0') return CLV_OK;
  const clv_graph *graph = job->graph;
  const char **names = clv__arena_allocate_zero(&cli->arena, graph->node_count, sizeof *names);
  if (names == NULL) return clv__error_memory(error, graph->node_count * sizeof *names);
  for (clv_node_id n = 0; n < graph->node_count; ++n) names[n] = graph->nodes[n].name;
  const char *nearest = cli_nearest(pattern, names, graph->node_count);
  if (nearest == NULL) return clv__error_set(error, CLV_NOT_FOUND, "%s: no node or operator is named '%s'", job->path, pattern);
  return clv__error_set(error, CLV_NOT_FOUND, "%s: no node or operator is named '%s'; did you mean '%s'?", job->path, pattern,
                        nearest);
}

static clv_status print_text(cli_invocation *cli, const cli_job *job, const cli_alternatives *alternatives, clv_error *error) {
  clv__text text;
  clv__text_init(&text, cli->allocator);
  clv_status status = CLV_OK;
  bool one = cli_text(cli, OPTION_EXPLAIN, "")[0] != '\0';
  if (!cli->quiet && !one) {
    clv__report_steps(job->plan, cli->verbose, &text);
    if (job->plan->step_count > 0) clv__text_append(&text, "\n");
  }
  if (!one) clv__report_totals(job->plan, &text);
  cli_alternatives_text(job, alternatives, &text);
  if (cli_is_given(cli, OPTION_EXPLAIN_PASSES)) clv__report_passes(job->plan, &text);
  if (cli_is_given(cli, OPTION_EXPLAIN)) status = explain(cli, job, &text, error);
  if (status == CLV_OK) return cli_print(cli, &text, error);
  clv__text_finish(&text);
  return status;
}

/* Prints a note if open sizes keep nodes off a device with static shapes. Without the note, the device may appear to support few
 * operators. */
static void note_open_sizes(cli_invocation *cli, const cli_job *job) {
  const clv_plan *plan = job->plan;
  if (plan->open == NULL || job->from_plan_file) return;
  for (uint32_t d = 0; d < job->devices->count; ++d) {
    uint32_t nodes = 0;
    if (!job->devices->items[d].info.static_shapes_only) continue;
    for (clv_node_id n = 0; n < plan->graph->node_count; ++n) {
      bool is_asked = !plan->shapes->node_folded[n] && plan->open->is_open[n];
      nodes += is_asked && (plan->open->reasons[n] != NULL || plan->open->typical == NULL);
    }
    if (nodes == 0) continue;
    cli_note(cli,
             "device '%s' needs fixed shapes, but sizes of the model are open, so it cannot run %u node%s; set sizes with --dim "
             "and --shape, or see --explain",
             job->devices->items[d].name, nodes, nodes == 1 ? "" : "s");
    return;
  }
}

static clv_status check_passes(cli_invocation *cli, const cli_job *job, clv_error *error) {
  if (!cli_is_given(cli, OPTION_EXPLAIN_PASSES) || job->plan->pass_count > 0) return CLV_OK;
  return cli_usage(cli, error, "option '--explain-passes' needs --strategy propagate or propagate-graph, not %s",
                   job->plan->placement.strategy);
}

static clv_status execute(cli_invocation *cli, clv_error *error) {
  cli_job job = {0};
  cli_alternatives alternatives = {0};
  clv_status status = cli_job_load(cli, cli->options->operands[0], &job, error);
  if (status == CLV_OK) status = check_targets(cli, &job, error);
  if (status == CLV_OK) status = cli_job_plan(cli, &job, false, error);
  if (status == CLV_OK) status = check_passes(cli, &job, error);
  if (status == CLV_OK) note_open_sizes(cli, &job);
  if (status == CLV_OK) status = cli_alternatives_find(cli, &job, cli_is_given(cli, OPTION_HTML), &alternatives, error);
  if (status == CLV_OK) status = write_files(cli, &job, &alternatives, error);
  if (status == CLV_OK)
    status = cli->json ? print_json(cli, &job, &alternatives, error) : print_text(cli, &job, &alternatives, error);
  cli_alternatives_finish(&alternatives);
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
