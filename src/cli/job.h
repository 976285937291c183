/* What most commands begin with: the devices opened, the model loaded, the plan made or read. */
#ifndef CLEAVE_CLI_JOB_H
#define CLEAVE_CLI_JOB_H

#include "cleave/compiled.h"
#include "cli/options/options.h"
#include "plan/plan.h"

/* The inputs of a run, in the order of the graph's inputs. */
typedef struct cli_inputs {
  uint32_t count;
  clv_tensor *tensors; /* dtype none: not given (yet), or left to its default */
  bool *is_given;
} cli_inputs;

/* A device as a plan file names it. */
typedef struct cli_planned_device {
  const char *name, *fingerprint; /* NULL where the file does not say it */
} cli_planned_device;

typedef struct cli_job {
  const char *path;       /* as the user gave it; of a compiled folder its plan file */
  const char *model_path; /* of the model; the same but for plan files */
  bool from_plan_file;
  clv_compiled *compiled;      /* NULL: it is no compiled folder */
  cli_planned_device *planned; /* the devices of a plan file */
  size_t planned_count;
  const char *profile; /* the file of measured costs that a plan file names; NULL where it names none or it is not there */
  clv_devices *devices;
  clv_graph *graph;
  cli_inputs inputs;
  clv_plan_options options; /* that the plan was made with; not of a plan file */
  clv_plan *plan;
  clv_size *sizes; /* of runs, where they are to be completed: what was said, and 1 for what nobody said */
  uint32_t size_count;
  double load_ms, plan_ms;
} cli_job;

/* Opens the devices of --devices; of `fallback` (may be NULL) where it is not given. */
clv_status cli_devices_open(cli_invocation *cli, const char *fallback, clv_devices **devices, clv_error *error);

/* What the arguments say of devices, for them to be opened again; --devices may be NULL. */
clv_devices_options cli_devices_options(const cli_invocation *cli);

/* Loads a model, with the weights of --params. */
clv_status cli_graph_load(cli_invocation *cli, const char *path, clv_graph **graph, clv_error *error);
/* Loads the model `path`, or the model of the plan file or compiled folder `path`, and opens the devices; reads the --input
 * files. */
clv_status cli_job_load(cli_invocation *cli, const char *path, cli_job *job, clv_error *error);
/* Plans (or reads the plan file). `to_run`: sizes that nobody gave become 1, which is noted; with --bucket, and of a plan file
 * that leaves sizes open, they are those of the runs alone. `keeps`: --dump. */
clv_status cli_job_plan(cli_invocation *cli, cli_job *job, bool to_run, clv_error *error);
/* The options of a session, as the arguments say them; what they do not say is as the folder was compiled. */
void cli_job_session_options(cli_invocation *cli, const cli_job *job, clv_session_options *options);
/* Says what of a compiled folder was of no use here, and why. */
void cli_job_note_compiled(cli_invocation *cli, const cli_job *job, const clv_session *session);
/* Adds "did you mean …?" to the refusal of one of `items`, which `option` has said. Returns the error's status. */
clv_status cli_suggest(cli_invocation *cli, const cli_job *job, cli_option_id option, const clv_assignment *items, uint32_t count,
                       clv_error *error);
/* Accepts a zeroed job. */
void cli_job_finish(cli_invocation *cli, cli_job *job);

/* ---- inputs.c ---- */

/* Reads the --input files into `inputs`. */
clv_status cli_inputs_read(cli_invocation *cli, const clv_graph *graph, cli_inputs *inputs, clv_error *error);
/* The sizes that --shape, --dim and the given inputs say, and, with `static_sizes`, 1 for what is then still open; in the arena.
 */
clv_status cli_inputs_sizes(cli_invocation *cli, const clv_graph *graph, const cli_inputs *inputs, bool static_sizes,
                            clv_size **sizes, uint32_t *count, clv_error *error);
/* Checks the job's sizes against what the model declares, where no plan is made for them. */
clv_status cli_inputs_check_sizes(cli_invocation *cli, const cli_job *job, clv_error *error);
/* Fills what is missing with seeded random numbers: floats in [-1, 1), integers 0 to 9, bools. Inputs with a default keep it.
 * Says what sizes are padded to. */
clv_status cli_inputs_fill(cli_invocation *cli, cli_job *job, uint64_t seed, clv_error *error);
void cli_inputs_finish(cli_invocation *cli, cli_inputs *inputs);

#endif
