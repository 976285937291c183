/* `cleave run`: runs a model or a plan once; shows, writes and verifies its outputs. */
#include <stdio.h>
#include <string.h>

#include "cleave/session_info.h"
#include "cleave/tensors.h"
#include "cleave/trace.h"
#include "cleave/verify.h"
#include "cli/console.h"
#include "cli/job.h"
#include "cli/json.h"
#include "cli/values.h"

typedef struct run {
  cli_invocation *cli;
  cli_job job;
  clv_session *session;
  uint32_t value_count; /* number of graph outputs and of values of --dump, which follow them */
  clv_tensor *outputs;
  clv_named_tensor *values;
  clv_verification *verification; /* NULL: not verified */
  double session_ms, run_ms;
} run;

static clv_status prepare(run *r, clv_error *error) {
  cli_invocation *cli = r->cli;
  CLI_TRY(cli_job_load(cli, cli->options->operands[0], &r->job, error));
  CLI_TRY(cli_job_plan(cli, &r->job, true, error));
  CLI_TRY(cli_inputs_fill(cli, &r->job, cli_number(cli, OPTION_SEED, 0), error));
  r->value_count = clv_plan_output_count(r->job.plan);
  r->outputs = cli_arena_allocate_zero(&cli->arena, r->value_count, sizeof *r->outputs);
  r->values = cli_arena_allocate_zero(&cli->arena, r->value_count, sizeof *r->values);
  if (r->outputs == NULL || r->values == NULL) return cli_error_memory(error, r->value_count * sizeof *r->values);
  for (uint32_t i = 0; i < r->value_count; ++i) r->values[i].name = clv_plan_output_name(r->job.plan, i);
  return CLV_OK;
}

static clv_status run_once(run *r, clv_error *error) {
  cli_invocation *cli = r->cli;
  clv_session_options options;
  cli_job_session_options(cli, &r->job, &options);
  cli_progress(cli, "compiling %s", r->job.path);
  uint64_t start = cli_now_ns();
  CLI_TRY(clv_session_create(r->job.plan, &options, &r->session, error));
  cli_job_note_compiled(cli, &r->job, r->session);
  (void)clv_memory_trim();
  r->session_ms = cli_ms(start, cli_now_ns());
  uint64_t runs = cli_number(cli, OPTION_RUNS, 1);
  for (uint64_t i = 0; i < runs; ++i) {
    if (i + 1 == runs && cli_is_given(cli, OPTION_TRACE)) clv_session_trace_start(r->session);
    memset(r->outputs, 0, r->value_count * sizeof *r->outputs); /* without data: the session provides the memory */
    cli_progress(cli, "running %s", r->job.path);
    start = cli_now_ns();
    CLI_TRY(clv_session_run(r->session, r->job.inputs.tensors, r->job.inputs.count, r->outputs, r->value_count, error));
    if (i == 0) r->run_ms = cli_ms(start, cli_now_ns());
  }
  for (uint32_t i = 0; i < r->value_count; ++i) r->values[i].tensor = r->outputs[i];
  return CLV_OK;
}

/* Call after showing the outputs: verification reuses the session's memory, which contains them. */
static clv_status verify(run *r, clv_error *error) {
  cli_progress(r->cli, "verifying %s", r->job.path);
  clv_verify_result result = {.struct_size = sizeof result};
  CLI_TRY(clv_session_verify(r->session, r->job.inputs.tensors, r->job.inputs.count, NULL, &r->verification, error));
  clv_verification_get_result(r->verification, &result);
  if (!result.equal) r->cli->exit_status = CLI_EXIT_FAILED;
  return CLV_OK;
}

/* Prints a document of the library, unless `status` says that there is none. */
static clv_status print_document(run *r, clv_status status, char *document, clv_error *error) {
  if (status == CLV_OK) status = cli_print_document(r->cli, document, error);
  clv_text_free(document);
  return status;
}

/* Prints the result of --verify, if given, and the devices that were removed in any run of the session. */
static clv_status print_verdict(run *r, clv_error *error) {
  const clv_form form = cli_form(r->cli);
  char *text = NULL;
  if (r->verification != NULL) {
    const clv_status status = clv_verification_text(r->verification, form, r->cli->quiet, &text, error);
    CLI_TRY(print_document(r, status, text, error));
  }
  const clv_status status = clv_session_report(r->session, CLV_REPORT_FALLBACKS, form, &text, error);
  return print_document(r, status, text, error);
}

static clv_status print_outputs(run *r, clv_error *error) {
  cli_invocation *cli = r->cli;
  char *text;
  if (!(cli->quiet && cli_is_given(cli, OPTION_OUTPUT_DIR))) {
    const clv_status status = clv_tensors_report(r->job.graph, r->values, r->value_count, cli_form(cli), &text, error);
    CLI_TRY(print_document(r, status, text, error));
  }
  if (!cli->verbose) return CLV_OK;
  cli_progress_end(cli);
  printf("\nload %.3f ms, plan %.3f ms, compile %.3f ms, first run %.3f ms\n", r->job.load_ms, r->job.plan_ms, r->session_ms,
         r->run_ms);
  return CLV_OK;
}

/* Adds the results of --verify, and the devices that were removed. */
static clv_status add_documents(run *r, json_t *root, clv_error *error) {
  char *text;
  if (r->verification != NULL) {
    CLI_TRY(clv_verification_text(r->verification, CLV_FORM_JSON, false, &text, error));
    json_object_set_new(root, "verify", cli_json_parse(text));
  }
  CLI_TRY(clv_session_report(r->session, CLV_REPORT_FALLBACKS, CLV_FORM_JSON, &text, error));
  json_t *report = cli_json_parse(text);
  json_object_update(root, report);
  json_decref(report);
  return CLV_OK;
}

static clv_status print_json(run *r, json_t *outputs, clv_error *error) {
  json_t *root = json_object(), *timings = json_object();
  json_object_set_new(root, "model", cli_json_text(r->job.model_path));
  json_object_set_new(root, "outputs", outputs);
  const clv_status status = add_documents(r, root, error);
  json_object_set_new(timings, "load", cli_json_real(r->job.load_ms));
  json_object_set_new(timings, "plan", cli_json_real(r->job.plan_ms));
  json_object_set_new(timings, "compile", cli_json_real(r->session_ms));
  json_object_set_new(timings, "first_run", cli_json_real(r->run_ms));
  json_object_set_new(root, "timings_ms", timings);
  if (status == CLV_OK) return cli_json_print(r->cli, root, error);
  json_decref(root);
  return status;
}

/* Call at the end: the run that measures operators overwrites the outputs. */
static clv_status write_trace(run *r, clv_error *error) {
  const char *path = cli_text(r->cli, OPTION_TRACE, NULL);
  clv_trace_options options = CLV_TRACE_OPTIONS_INIT;
  if (path == NULL) return CLV_OK;
  cli_progress(r->cli, "measuring the operators of %s", r->job.path);
  options.inputs = r->job.inputs.tensors;
  options.input_count = r->job.inputs.count;
  return clv_session_trace_write(r->session, &options, path, NULL, NULL, error);
}

static clv_status finish_run(run *r, clv_error *error) {
  cli_invocation *cli = r->cli;
  const char *folder = cli_text(cli, OPTION_OUTPUT_DIR, NULL);
  bool wants_verdict = cli_is_given(cli, OPTION_VERIFY);
  if (folder != NULL) CLI_TRY(cli_values_write(cli, folder, r->values, r->value_count, error));
  if (!cli->json) {
    CLI_TRY(print_outputs(r, error));
    if (wants_verdict) CLI_TRY(verify(r, error));
    return print_verdict(r, error);
  }
  char *text;
  CLI_TRY(clv_tensors_report(r->job.graph, r->values, r->value_count, CLV_FORM_JSON, &text, error));
  json_t *outputs = cli_json_parse(text);
  clv_status status = wants_verdict ? verify(r, error) : CLV_OK;
  if (status == CLV_OK) return print_json(r, outputs, error);
  json_decref(outputs);
  return status;
}

static clv_status execute(cli_invocation *cli, clv_error *error) {
  run r = {.cli = cli};
  clv_status status = prepare(&r, error);
  if (status == CLV_OK) {
    status = run_once(&r, error);
    if (status != CLV_OK) cli_error_prefix(error, status, "%s", r.job.path);
  }
  if (status == CLV_OK) status = finish_run(&r, error);
  if (status == CLV_OK) status = write_trace(&r, error);
  clv_verification_destroy(r.verification);
  clv_session_destroy(r.session);
  cli_job_finish(cli, &r.job);
  return status;
}

const cli_command cli_command_run = {
    .name = "run",
    .operands = "MODEL|PLAN|DIR",
    .min_operands = 1,
    .max_operands = 1,
    .summary = "run a model, a plan, or a compiled directory",
    .description =
        "Runs the model once (see --runs) and shows the outputs. Inputs that are not given are filled with random numbers:\n"
        "floats in [-1, 1), integers from 0 to 9. Open sizes are dimensions to which the model gives no number. Those that\n"
        "are not given become 1, with a note on standard error. A plan file names its devices, sizes and model; the model's\n"
        "path is relative to the plan file. A plan is made for exactly the sizes of the run, unless --bucket is given or\n"
        "the plan file leaves sizes open: then one plan serves all sizes. A directory written by 'cleave compile' contains\n"
        "the plan, the model and executables, which are not compiled again. --verify also runs every partition on inputs\n"
        "that the reference evaluator computes, and reports the first partition whose result is wrong; the exit status is\n"
        "then 1.",
    .examples =
        "  cleave run resnet50.onnx --devices npu,cpu --input data=cat.npy --output-dir out    # write out/NAME.npy\n"
        "  cleave run bert.onnx --dim batch=1 --dim sequence=128 --verify    # check every partition\n"
        "  cleave run plan.json --seed 7    # run a saved plan on other random inputs\n"
        "  cleave run resnet50.compiled --verify    # run what 'cleave compile' wrote\n"
        "  cleave run plan.json --trace trace.json    # write a timeline\n",
    .execute = execute,
};
