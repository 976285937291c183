/* `cleave compile`: writes a plan and everything that it needs to run into a directory. */
#include <string.h>

#include "base/clock.h"
#include "cli/console.h"
#include "cli/job.h"
#include "cli/json.h"
#include "compile/folder.h"
#include "report/label.h"
#include "report/table.h"

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
  CLV__TRY(clv__folder_check(cli->allocator, c->directory, error));
  CLV__TRY(cli_job_load(cli, cli->options->operands[0], &c->job, error));
  CLV__TRY(cli_job_plan(cli, &c->job, true, error));
  clv_session_options session;
  clv_devices_options devices = cli_devices_options(cli);
  clv_compiled_options options = CLV_COMPILED_OPTIONS_INIT;
  cli_job_session_options(cli, &c->job, &session);
  session.compiled = NULL; /* compile again, even if MODEL is a compiled folder */
  if (c->job.compiled != NULL && devices.npu_spec_count == 0 && devices.device_option_count == 0)
    devices = *clv_compiled_devices_options(c->job.compiled);
  options.session = &session;
  options.devices = &devices;
  if (clv__plan_has_open_inputs(c->job.plan)) {
    CLV__TRY(cli_inputs_fill(cli, &c->job, 0, error));
    options.inputs = c->job.inputs.tensors;
    options.input_count = c->job.inputs.count;
  }
  cli_progress(cli, "compiling %s", c->job.path);
  uint64_t start = clv__clock_ns();
  clv_status status = clv_compiled_write(c->job.plan, &options, c->directory, error);
  if (status != CLV_OK) return clv__error_prefix(error, status, "%s", c->job.path);
  c->compile_ms = cli_ms(start, clv__clock_ns());
  return clv_compiled_open(cli->context, c->directory, &c->compiled, error);
}

/* Returns the size of all files together. */
static uint64_t total_bytes(const clv_compiled *compiled) {
  uint64_t total = compiled->other_bytes;
  for (uint32_t p = 0; p < compiled->partition_count; ++p) total += compiled->partitions[p].model_bytes;
  for (uint32_t e = 0; e < compiled->executable_count; ++e) total += compiled->executables[e].size_bytes;
  return total;
}

/* ---- As text ---- */

static void add_row(clv__table *table, const compiling *c, uint32_t p, uint32_t *next) {
  const clv__folder_partition *partition = &c->compiled->partitions[p];
  char size[CLV__LABEL_BYTES];
  clv__table_cell(table, "%u", p);
  clv__table_cell(table, "%s", partition->device);
  clv__table_cell(table, "%u", partition->node_count);
  clv__table_cell(table, "%s", partition->model);
  clv__table_cell(table, "%s", clv__label_size(partition->model_bytes, size));
  uint32_t first = *next;
  uint64_t bytes = 0;
  for (; *next < c->compiled->executable_count && c->compiled->executables[*next].partition == p; ++*next)
    bytes += c->compiled->executables[*next].size_bytes;
  if (*next == first) {
    clv__table_cell(table, "none: %s", partition->reason != NULL ? partition->reason : "it was not saved");
    clv__table_cell(table, "%s", "");
    return;
  }
  uint32_t others = *next - first - 1;
  if (others == 0)
    clv__table_cell(table, "%s", c->compiled->executables[first].file);
  else
    clv__table_cell(table, "%s and %u more", c->compiled->executables[first].file, others);
  clv__table_cell(table, "%s", clv__label_size(bytes, size));
}

static clv_status print_text(const compiling *c, clv_error *error) {
  const clv_compiled *compiled = c->compiled;
  cli_invocation *cli = c->cli;
  char size[CLV__LABEL_BYTES];
  clv__text text;
  clv__text_init(&text, cli->allocator);
  if (!cli->quiet) {
    static const char *const titles[] = {"partition", "device", "nodes", "model", "size", "executable", "size"};
    clv__table table;
    uint32_t next = 0;
    clv__table_init(&table, cli->allocator, "rlrlrlr", true);
    for (uint32_t i = 0; i < table.columns; ++i) clv__table_cell(&table, "%s", titles[i]);
    for (uint32_t p = 0; p < compiled->partition_count; ++p) add_row(&table, c, p, &next);
    clv__table_write(&table, 0, cli->color_out, &text);
    clv__table_finish(&table);
    clv__text_append(&text, "\n");
  }
  clv__label_name(&text, c->directory);
  clv__text_append(&text, ": ");
  clv__label_plural(&text, compiled->partition_count, "partition");
  clv__text_append(&text, ", ");
  clv__label_plural(&text, compiled->executable_count, "executable");
  clv__text_append(&text, ", %s in total; run it with 'cleave run ", clv__label_size(total_bytes(compiled), size));
  clv__label_name(&text, c->directory);
  clv__text_append(&text, "'\n");
  return cli_print(cli, &text, error);
}

/* ---- As JSON ---- */

static json_t *partition_json(const compiling *c, uint32_t p, uint32_t *next) {
  const clv__folder_partition *partition = &c->compiled->partitions[p];
  json_t *object = json_object(), *list = json_array();
  json_object_set_new(object, "id", json_integer(p));
  json_object_set_new(object, "device", cli_json_text(partition->device));
  json_object_set_new(object, "nodes", json_integer(partition->node_count));
  json_object_set_new(object, "onnx", cli_json_text(partition->model));
  json_object_set_new(object, "onnx_bytes", json_integer((json_int_t)partition->model_bytes));
  for (; *next < c->compiled->executable_count && c->compiled->executables[*next].partition == p; ++*next) {
    json_t *one = json_object();
    json_object_set_new(one, "file", cli_json_text(c->compiled->executables[*next].file));
    json_object_set_new(one, "bytes", json_integer((json_int_t)c->compiled->executables[*next].size_bytes));
    json_array_append_new(list, one);
  }
  json_object_set_new(object, "executables", list);
  json_object_set_new(object, "reason", partition->reason != NULL ? cli_json_text(partition->reason) : json_null());
  return object;
}

static clv_status print_json(const compiling *c, clv_error *error) {
  json_t *root = json_object(), *list = json_array(), *timings = json_object();
  uint32_t next = 0;
  json_object_set_new(root, "directory", cli_json_text(c->directory));
  json_object_set_new(root, "model", cli_json_text(c->job.model_path));
  for (uint32_t p = 0; p < c->compiled->partition_count; ++p) json_array_append_new(list, partition_json(c, p, &next));
  json_object_set_new(root, "partitions", list);
  json_object_set_new(root, "bytes", json_integer((json_int_t)total_bytes(c->compiled)));
  json_object_set_new(timings, "load", cli_json_real(c->job.load_ms));
  json_object_set_new(timings, "plan", cli_json_real(c->job.plan_ms));
  json_object_set_new(timings, "compile", cli_json_real(c->compile_ms));
  json_object_set_new(root, "timings_ms", timings);
  return cli_json_print(c->cli, root, error);
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
