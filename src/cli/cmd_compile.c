/* `cleave compile`: writes a plan and everything that it needs to run into a directory. */
#include <string.h>

#include "cleave/compiled.h"
#include "cleave/report.h"
#include "cli/console.h"
#include "cli/job.h"
#include "cli/json.h"

typedef struct compiling {
  cli_invocation *cli;
  cli_job job;
  const char *directory;
  clv_compiled *compiled; /* the directory that was written */
  double compile_ms;
} compiling;

static clv_status write_it(compiling *c, clv_error *error) {
  cli_invocation *cli = c->cli;
  c->directory = cli_text(cli, OPTION_FOLDER, NULL);
  if (c->directory == NULL) return cli_usage(cli, error, "option '-o DIR' is missing; it names the directory to write");
  CLI_TRY(clv_compiled_check(c->directory, error));
  CLI_TRY(cli_job_load(cli, cli->options->operands[0], &c->job, error));
  CLI_TRY(cli_job_plan(cli, &c->job, true, error));
  clv_session_options session;
  clv_devices_options devices = cli_devices_options(cli);
  clv_compiled_options options = CLV_COMPILED_OPTIONS_INIT;
  cli_job_session_options(cli, &c->job, &session);
  session.compiled = NULL; /* compile again, even if MODEL is a compiled folder */
  if (c->job.compiled != NULL && devices.npu_spec_count == 0 && devices.device_option_count == 0)
    devices = *clv_compiled_devices_options(c->job.compiled);
  options.session = &session;
  options.devices = &devices;
  if (clv_plan_has_open_inputs(c->job.plan)) {
    CLI_TRY(cli_inputs_fill(cli, &c->job, 0, error));
    options.inputs = c->job.inputs.tensors;
    options.input_count = c->job.inputs.count;
  }
  cli_progress(cli, "compiling %s", c->job.path);
  uint64_t start = cli_now_ns();
  clv_status status = clv_compiled_write(c->job.plan, &options, c->directory, error);
  if (status != CLV_OK) return cli_error_prefix(error, status, "%s", c->job.path);
  c->compile_ms = cli_ms(start, cli_now_ns());
  return clv_compiled_open(cli->context, c->directory, &c->compiled, error);
}

static clv_status print_json(const compiling *c, clv_error *error) {
  char *document;
  CLI_TRY(clv_compiled_text(c->compiled, false, CLV_FORM_JSON, &document, error));
  json_t *root = json_object(), *timings = json_object(), *folder = cli_json_parse(document);
  json_object_set_new(root, "directory", json_null()); /* its place: the members of the folder follow */
  json_object_set_new(root, "model", cli_json_text(c->job.model_path));
  json_object_update(root, folder);
  json_decref(folder);
  json_object_set_new(root, "directory", cli_json_text(c->directory));
  json_object_set_new(timings, "load", cli_json_real(c->job.load_ms));
  json_object_set_new(timings, "plan", cli_json_real(c->job.plan_ms));
  json_object_set_new(timings, "compile", cli_json_real(c->compile_ms));
  json_object_set_new(root, "timings_ms", timings);
  return cli_json_print(c->cli, root, error);
}

static clv_status print_text(const compiling *c, clv_error *error) {
  char *document;
  CLI_TRY(clv_compiled_text(c->compiled, c->cli->quiet, cli_form(c->cli), &document, error));
  clv_status status = cli_print_document(c->cli, document, error);
  clv_text_free(document);
  return status;
}

static clv_status execute(cli_invocation *cli, clv_error *error) {
  compiling c = {.cli = cli};
  clv_status status = write_it(&c, error);
  if (status == CLV_OK) status = cli->json ? print_json(&c, error) : print_text(&c, error);
  clv_compiled_close(c.compiled);
  cli_job_finish(cli, &c.job);
  return status;
}

const cli_command cli_command_compile = {
    .name = "compile",
    .operands = "MODEL|PLAN|DIR",
    .min_operands = 1,
    .max_operands = 1,
    .summary = "compile a model ahead of time, into a directory for run",
    .description =
        "Plans like 'cleave run', compiles, and writes everything that a run needs into one directory: the plan, the model,\n"
        "its weights, and every partition as ONNX and, if its backend can save one, as an executable. 'cleave run DIR' and\n"
        "'cleave bench DIR' then neither plan nor measure, and compile only the partitions without an executable, which are\n"
        "listed with the reason. You can copy the directory to any machine with the same devices. If an executable cannot\n"
        "be used there, because the driver differs or the file is damaged, its partition is compiled again, and the reason\n"
        "is shown. Open sizes (see 'cleave help run') that are not given become 1. With --bucket, the directory works for\n"
        "all sizes, and executables are compiled for the sizes given by --dim and --shape, padded as for --bucket. Plugins\n"
        "are not included: give the same --plugin options to 'cleave run'.",
    .examples =
        "  cleave compile resnet50.onnx --devices npu,cpu -o resnet50.compiled         # write the directory\n"
        "  cleave run resnet50.compiled --input data=cat.npy                           # run it\n"
        "  cleave compile plan.json --deterministic -o compiled                        # compile a plan\n"
        "  cleave compile bert.onnx --bucket 64 --dim sequence=128 -o bert.compiled    # one directory for all sizes\n",
    .execute = execute,
};
