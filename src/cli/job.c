/* See job.h. */
#include "cli/job.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cleave/graph_contents.h"
#include "cleave/program.h"
#include "cleave/report.h"
#include "cleave/session_info.h"
#include "cli/console.h"

clv_devices_options cli_devices_options(const cli_invocation *cli) {
  clv_devices_options options = CLV_DEVICES_OPTIONS_INIT;
  options.list = cli_text(cli, OPTION_DEVICES, NULL);
  options.npu_spec_count = cli->options->given[OPTION_NPU_SPEC].count;
  options.npu_specs = cli->options->given[OPTION_NPU_SPEC].values;
  options.device_option_count = cli->options->given[OPTION_DEVICE_OPTION].count;
  options.device_options = cli->options->given[OPTION_DEVICE_OPTION].values;
  options.thread_count = (uint32_t)cli_number(cli, OPTION_THREADS, 0);
  return options;
}

/* Sets the options that are not on the command line to the values that the folder was compiled with. Puts the folder's
 * --device-option values before those of the command line, because later ones take precedence. */
static clv_status complete_devices(cli_invocation *cli, const clv_compiled *compiled, clv_devices_options *options,
                                   clv_error *error) {
  const clv_devices_options *kept = clv_compiled_devices_options(compiled);
  if (options->npu_spec_count == 0) {
    options->npu_spec_count = kept->npu_spec_count;
    options->npu_specs = kept->npu_specs;
  }
  uint32_t count = kept->device_option_count + options->device_option_count;
  const char **settings = cli_arena_allocate_zero(&cli->arena, count, sizeof *settings);
  if (settings == NULL) return cli_error_memory(error, count * sizeof *settings);
  for (uint32_t i = 0; i < count; ++i) {
    settings[i] =
        i < kept->device_option_count ? kept->device_options[i] : options->device_options[i - kept->device_option_count];
  }
  options->device_options = settings;
  options->device_option_count = count;
  return CLV_OK;
}

bool cli_devices_find(const clv_devices *devices, const char *name, uint32_t *index) {
  for (uint32_t d = 0; d < clv_devices_count(devices); ++d) {
    if (strcmp(clv_devices_name(devices, d), name) != 0) continue;
    if (index != NULL) *index = d;
    return true;
  }
  return false;
}

/* Prints which devices of the list are not used. */
static void note_left_out(cli_invocation *cli, const clv_devices *devices, const char *list) {
  const char *reason;
  if (list == NULL || strcmp(list, "auto") == 0 || cli->verbose) return; /* with --verbose, the log lists them */
  for (uint32_t i = 0; clv_devices_left_out(devices, i, &reason) != NULL; ++i)
    cli_note(cli, "%s; continuing without this device", reason);
}

static clv_status open_devices(cli_invocation *cli, const char *fallback, const clv_compiled *compiled, bool no_fallback,
                               clv_devices **devices, clv_error *error) {
  clv_devices_options options = cli_devices_options(cli);
  if (options.list == NULL) options.list = fallback;
  if (compiled != NULL) CLI_TRY(complete_devices(cli, compiled, &options, error));
  options.no_fallback = no_fallback;
  clv_status status = clv_devices_open(cli->context, &options, devices, error);
  if (status == CLV_INVALID_ARGUMENT || status == CLV_NOT_FOUND) cli->exit_status = CLI_EXIT_USAGE;
  if (status != CLV_OK) return status;
  uint32_t virtual_count = 0;
  for (uint32_t d = 0; d < clv_devices_count(*devices); ++d)
    virtual_count += strcmp(clv_devices_backend(*devices, d), "vnpu") == 0;
  note_left_out(cli, *devices, options.list);
  if (options.npu_spec_count <= virtual_count || cli->has_other_devices) return CLV_OK;
  clv_devices_close(*devices);
  *devices = NULL;
  return cli_usage(cli, error, "option '--npu-spec' is given %u time%s, but the devices are %s, with %u virtual NPU%s",
                   options.npu_spec_count, options.npu_spec_count == 1 ? "" : "s", options.list != NULL ? options.list : "cpu",
                   virtual_count, virtual_count == 1 ? "" : "s");
}

clv_status cli_devices_open(cli_invocation *cli, const char *fallback, clv_devices **devices, clv_error *error) {
  return open_devices(cli, fallback, NULL, true, devices, error);
}

/* ---- Plan files ---- */

static const char *text_of(cli_invocation *cli, const json_t *object, const char *key) {
  const char *text = json_string_value(json_object_get(object, key));
  return text == NULL ? NULL : cli_arena_string(&cli->arena, text, strlen(text));
}

/* Finds the profile that the plan was priced with, relative to the plan's folder. If the file is missing, prints a note that
 * prices are nominal. */
static clv_status find_profile(cli_invocation *cli, cli_job *job, const char *name, clv_error *error) {
  if (name == NULL || name[0] == '\0' || cli_is_given(cli, OPTION_PROFILE)) return CLV_OK;
  char *found = cli_path_beside(job->path, name);
  clv_status status = found == NULL ? cli_error_memory(error, strlen(name)) : CLV_OK;
  if (status == CLV_OK && access(found, R_OK) == 0) {
    job->profile = cli_arena_string(&cli->arena, found, strlen(found));
    if (job->profile == NULL) status = cli_error_memory(error, strlen(found));
  } else if (status == CLV_OK) {
    cli_note(cli, "%s: its profile '%s' does not exist, so prices are nominal; give its path with --profile", job->path, name);
  }
  free(found);
  return status;
}

/* Returns NULL for the plan of a model. For any other JSON file, returns an error message that says what the file is, if its
 * keys show that, and which command or option accepts it. */
static const char *other_file(const json_t *root) {
  if (json_object_get(root, "cleave_plan") != NULL) return NULL;
  const char *format = json_string_value(json_object_get(root, "format"));
  if (json_object_get(root, "cleave_gnn_plan") != NULL) return "this is a GNN plan: use it with 'cleave gnn run --plan'";
  if (format != NULL && strcmp(format, "cleave-profile") == 0) return "this is a profile, not a model: use it with --profile";
  if (format != NULL && strcmp(format, "cleave-gnn-tables") == 0)
    return "this is a file of GNN costs, not a model: use it with 'cleave gnn plan --profile'";
  if (json_is_object(json_object_get(root, "operators")))
    return "this is a device description, not a model: use it with --npu-spec";
  if (json_is_array(json_object_get(root, "layers"))) return "this is a GNN model: use it with 'cleave gnn run --model'";
  return "neither a plan (\"cleave_plan\" is missing) nor a model (\"graph_inputs\" is missing)";
}

/* Reads the model's path, the profile's path and the devices from a plan file, if present. clv_plan_read() validates them later.
 */
static clv_status peek_plan(cli_invocation *cli, cli_job *job, const char **device_list, clv_error *error) {
  json_error_t where;
  json_t *root = json_load_file(job->path, 0, &where);
  if (root == NULL) {
    return cli_error_set(error, CLV_INVALID_MODEL, "%s: line %d, column %d: %s", job->path, where.line, where.column, where.text);
  }
  clv_status status = CLV_OK;
  const char *model = json_string_value(json_object_get(root, "model"));
  job->model_path = cli_text(cli, OPTION_MODEL, NULL);
  const char *other = other_file(root);
  if (other != NULL) {
    status = cli_error_set(error, CLV_INVALID_MODEL, "%s: %s", job->path, other);
  } else if (job->model_path == NULL && (model == NULL || model[0] == '\0')) {
    status = cli_error_set(error, CLV_INVALID_MODEL, "%s: the plan names no model: give it with --model FILE", job->path);
  } else if (job->model_path == NULL) {
    char *found = cli_path_beside(job->path, model);
    job->model_path = found == NULL ? NULL : cli_arena_string(&cli->arena, found, strlen(found));
    free(found);
    if (job->model_path == NULL) status = cli_error_memory(error, strlen(model));
  }
  if (status == CLV_OK) status = find_profile(cli, job, json_string_value(json_object_get(root, "profile_file")), error);
  cli_buffer list;
  cli_buffer_init(&list);
  const json_t *devices = json_object_get(root, "devices");
  job->planned = cli_arena_allocate_zero(&cli->arena, json_array_size(devices), sizeof *job->planned);
  for (size_t i = 0; job->planned != NULL && i < json_array_size(devices); ++i) {
    const json_t *device = json_array_get(devices, i);
    const char *name = text_of(cli, device, "name");
    job->planned[job->planned_count++] = (cli_planned_device){name, text_of(cli, device, "fingerprint")};
    if (name != NULL) cli_buffer_append(&list, "%s%s", list.size_bytes > 0 ? "," : "", name);
  }
  *device_list = list.size_bytes > 0 ? cli_arena_string(&cli->arena, list.data, list.size_bytes) : NULL;
  cli_buffer_finish(&list);
  json_decref(root);
  return status;
}

/* Prints a note if a device's fingerprint differs from that in the plan file. The file does not contain the options of its
 * devices, so the user must repeat them. A different CPU needs no note. */
static void note_other_devices(cli_invocation *cli, const cli_job *job) {
  for (size_t i = 0; i < job->planned_count; ++i) {
    const cli_planned_device *planned = &job->planned[i];
    uint32_t d;
    if (planned->name == NULL || planned->fingerprint == NULL || !cli_devices_find(job->devices, planned->name, &d)) continue;
    clv_device_info info = {.struct_size = sizeof info};
    clv_devices_info(job->devices, d, &info);
    if (strcmp(info.kind, "cpu") == 0 || strcmp(info.fingerprint, planned->fingerprint) == 0) continue;
    cli_note(
        cli,
        "%s: device '%s' differs from the one that the plan was made for; set --npu-spec and --device-option as for the plan",
        job->path, planned->name);
  }
}

static clv_status refuse_decided(cli_invocation *cli, cli_option_id option, clv_error *error) {
  if (!cli_is_given(cli, option)) return CLV_OK;
  return cli_usage(cli, error, "option '--%s' has no effect on a finished plan: give the model instead of the plan file",
                   cli_option_table[option].name);
}

/* Rejects options that a plan file has already decided. Sizes may still be open; see complete_sizes(). */
static clv_status refuse_planning_options(cli_invocation *cli, clv_error *error) {
  static const cli_option_id decided[] = {OPTION_STRATEGY, OPTION_SPLIT, OPTION_OBJECTIVE,     OPTION_PIN,
                                          OPTION_PINS,     OPTION_FORCE, OPTION_WEIGHTS,       OPTION_VALUE,
                                          OPTION_OFFLOAD,  OPTION_DUMP,  OPTION_EXPLAIN_PASSES};
  for (size_t i = 0; i < sizeof decided / sizeof *decided; ++i) CLI_TRY(refuse_decided(cli, decided[i], error));
  return CLV_OK;
}

/* ---- The job ---- */

clv_status cli_graph_load(cli_invocation *cli, const char *path, clv_graph **graph, clv_error *error) {
  const cli_given *params = &cli->options->given[OPTION_PARAMS];
  return clv_graph_load_params(cli->context, path, params->values, params->count, graph, error);
}

/* If the path is a compiled folder, opens it and replaces the path by that of its plan file. */
static clv_status open_path(cli_invocation *cli, cli_job *job, clv_error *error) {
  clv_file_kind kind;
  const char *foreign;
  CLI_TRY(clv_file_recognise(job->path, &kind, &foreign, error));
  job->from_plan_file = kind == CLV_FILE_PLAN || kind == CLV_FILE_COMPILED;
  if (kind == CLV_FILE_FOLDER && foreign != NULL)
    return cli_error_set(error, CLV_INVALID_ARGUMENT,
                         "%s: not an ONNX model: it is %s (a directory written by 'cleave compile' contains 'compiled.json')",
                         job->path, foreign);
  if (kind == CLV_FILE_FOLDER)
    return cli_error_set(error, CLV_INVALID_ARGUMENT,
                         "%s: neither a regular file nor a directory written by 'cleave compile', which contains 'compiled.json'",
                         job->path);
  if (kind != CLV_FILE_COMPILED) return CLV_OK;
  if (cli_is_given(cli, OPTION_MODEL))
    return cli_usage(cli, error, "option '--model' is for plan files; %s contains its model", job->path);
  CLI_TRY(clv_compiled_open(cli->context, job->path, &job->compiled, error));
  job->path = clv_compiled_plan_path(job->compiled);
  return CLV_OK;
}

clv_status cli_job_load(cli_invocation *cli, const char *path, cli_job *job, clv_error *error) {
  *job = (cli_job){0};
  job->path = job->model_path = path;
  const char *device_list = NULL;
  CLI_TRY(open_path(cli, job, error));
  path = job->path;
  if (job->from_plan_file) {
    CLI_TRY(refuse_planning_options(cli, error));
    CLI_TRY(peek_plan(cli, job, &device_list, error));
  } else if (cli_is_given(cli, OPTION_MODEL)) {
    return cli_usage(cli, error, "option '--model' is for plan files; %s is a model", path);
  }
  const bool no_fallback = cli_is_given(cli, OPTION_NO_FALLBACK);
  CLI_TRY(open_devices(cli, device_list, job->compiled, no_fallback, &job->devices, error));
  note_other_devices(cli, job);
  cli_progress(cli, "loading %s", job->model_path);
  uint64_t start = cli_now_ns();
  clv_status status = cli_graph_load(cli, job->model_path, &job->graph, error);
  if (status != CLV_OK) return job->from_plan_file ? cli_error_prefix(error, status, "%s", path) : status;
  job->load_ms = cli_ms(start, cli_now_ns());
  return cli_inputs_read(cli, job->graph, &job->inputs, error);
}

/* For a plan file: if the plan leaves sizes open and a run follows, completes the sizes. Otherwise rejects --shape and --dim. */
static clv_status complete_sizes(cli_invocation *cli, cli_job *job, bool to_run, clv_error *error) {
  if (to_run && clv_plan_has_open_inputs(job->plan)) {
    CLI_TRY(cli_inputs_sizes(cli, job->graph, &job->inputs, true, &job->sizes, &job->size_count, error));
    return clv_graph_check_sizes(job->graph, job->sizes, job->size_count, error);
  }
  CLI_TRY(refuse_decided(cli, OPTION_BATCH, error));
  CLI_TRY(refuse_decided(cli, OPTION_SHAPE, error));
  return refuse_decided(cli, OPTION_DIM, error);
}

clv_status cli_job_plan(cli_invocation *cli, cli_job *job, bool to_run, clv_error *error) {
  uint64_t start = cli_now_ns();
  clv_status status;
  cli_progress(cli, "planning %s", job->model_path);
  if (job->from_plan_file) {
    status = clv_plan_read(job->graph, job->devices, job->path, cli_text(cli, OPTION_PROFILE, job->profile), &job->plan, error);
    if (status == CLV_OK) status = complete_sizes(cli, job, to_run, error);
  } else {
    clv_plan_options *options = &job->options;
    *options = (clv_plan_options)CLV_PLAN_OPTIONS_INIT;
    CLI_TRY(cli_plan_options(cli, options, error));
    CLI_TRY(cli_inputs_sizes(cli, job->graph, &job->inputs, to_run, &job->sizes, &job->size_count, error));
    if (cli_is_given(cli, OPTION_BUCKET))
      CLI_TRY(clv_graph_check_sizes(job->graph, job->sizes, job->size_count, error));
    else
      options->sizes = job->sizes, options->size_count = job->size_count;
    options->keep_count = cli->options->given[OPTION_DUMP].count;
    options->keeps = cli->options->given[OPTION_DUMP].values;
    options->record_passes = cli_is_given(cli, OPTION_EXPLAIN_PASSES);
    options->name_others = true;
    status = clv_plan_make(job->graph, job->devices, options, &job->plan, error);
    if (status != CLV_OK) {
      cli_suggest(cli, job, OPTION_FORCE, options->forces, options->force_count, error);
      cli_suggest(cli, job, OPTION_PIN, options->pins, options->pin_count, error);
      cli_suggest(cli, job, OPTION_WEIGHTS, options->weights, options->weight_count, error);
      cli_suggest(cli, job, OPTION_VALUE, options->values, options->value_count, error);
      cli_error_prefix(error, status, "%s", job->path);
    }
  }
  job->plan_ms = cli_ms(start, cli_now_ns());
  return status;
}

void cli_job_session_options(cli_invocation *cli, const cli_job *job, clv_session_options *options) {
  cli_session_options(cli, options);
  if (job->compiled == NULL) return;
  const clv_session_options *kept = clv_compiled_session_options(job->compiled);
  options->compiled = job->compiled;
  options->deterministic = options->deterministic || kept->deterministic;
  options->tune = options->tune || kept->tune;
  if (!cli_is_given(cli, OPTION_PRECISION)) options->precision = kept->precision;
  if (!cli_is_given(cli, OPTION_BUCKET)) options->bucket_multiple = kept->bucket_multiple;
}

void cli_job_note_compiled(cli_invocation *cli, const cli_job *job, clv_session *session) {
  if (job->compiled == NULL) return;
  clv_executable_origin origin = {.struct_size = sizeof origin}, first = {.struct_size = sizeof first};
  uint32_t missed = 0, partition = 0;
  for (uint32_t p = 0; clv_session_executable(session, p, &origin); ++p) {
    if (!origin.is_missed) continue;
    if (missed++ > 0) continue;
    first = origin;
    partition = p;
  }
  if (missed == 0) return;
  cli_note(cli, "%s: the executable of partition %u%s cannot be used here; %s. Reason: %s", clv_compiled_directory(job->compiled),
           partition, missed == 1 ? "" : " and others",
           first.source == CLV_EXECUTABLE_FROM_DISK ? "one from the cache is used" : "it is compiled again", first.reason);
}

void cli_job_finish(cli_invocation *cli, cli_job *job) {
  (void)cli;
  clv_plan_destroy(job->plan);
  cli_inputs_finish(&job->inputs);
  clv_graph_destroy(job->graph);
  clv_devices_close(job->devices);
  clv_compiled_close(job->compiled);
  *job = (cli_job){0};
}
