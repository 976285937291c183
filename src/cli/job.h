/* The first steps of most commands: opens the devices, loads the model, and makes or reads the plan. */
#ifndef CLEAVE_CLI_JOB_H
#define CLEAVE_CLI_JOB_H

#include "cleave/compiled.h"
#include "cleave/tensors.h"
#include "cli/options/options.h"

/* The inputs of a run, in graph input order. */
typedef struct cli_inputs {
  uint32_t count;
  clv_tensor *tensors; /* dtype none: not given yet, or the input has its default */
  bool *is_given;
  void **made;        /* the memory of random inputs, by input; NULL: not random */
  clv_arrays **files; /* the open files, which own the memory of the other inputs */
  uint32_t file_count;
} cli_inputs;

/* A device's entry in a plan file. */
typedef struct cli_planned_device {
  const char *name, *fingerprint; /* NULL if the file does not have it */
} cli_planned_device;

typedef struct cli_job {
  const char *path;       /* as the user gave it; for a compiled folder, its plan file */
  const char *model_path; /* the model's path; differs from `path` only for plan files */
  bool from_plan_file;
  clv_compiled *compiled;      /* NULL: not a compiled folder */
  cli_planned_device *planned; /* the devices of a plan file */
  size_t planned_count;
  const char *profile; /* the file of measured costs that a plan file names; NULL if it names none or the file does not exist */
  clv_devices *devices;
  clv_graph *graph;
  cli_inputs inputs;
  clv_plan_options options; /* the options that the plan was made with; unused for plan files */
  clv_plan *plan;
  clv_size *sizes; /* if the plan leaves sizes open: the sizes in the runs, which are 1 where none was given */
  uint32_t size_count;
  double load_ms, plan_ms;
} cli_job;

/* Opens the devices of --devices or, without this option, those of the list `fallback`, which may be NULL. */
clv_status cli_devices_open(cli_invocation *cli, const char *fallback, clv_devices **devices, clv_error *error);

/* Finds a device by its name. Sets `index` (may be NULL) if there is one. */
bool cli_devices_find(const clv_devices *devices, const char *name, uint32_t *index);

/* Returns the device options from the arguments, so that devices can be reopened. The list is NULL without --devices. */
clv_devices_options cli_devices_options(const cli_invocation *cli);

/* Loads a model, with the weights of --params. */
clv_status cli_graph_load(cli_invocation *cli, const char *path, clv_graph **graph, clv_error *error);
/* Loads the model `path`, or the model that the plan file or compiled folder `path` refers to. Opens the devices and reads the
 * --input files. */
clv_status cli_job_load(cli_invocation *cli, const char *path, cli_job *job, clv_error *error);
/* Makes the plan, or reads the plan file. With `to_run`, sizes that are not given become 1, with a note. With --bucket, and for
 * a plan file with open sizes, the sizes apply to the runs and not to the plan. The plan keeps the values of --dump. */
clv_status cli_job_plan(cli_invocation *cli, cli_job *job, bool to_run, clv_error *error);
/* Sets a session's options from the arguments. Options that are not given keep the value that the folder was compiled with. */
void cli_job_session_options(cli_invocation *cli, const cli_job *job, clv_session_options *options);
/* Reports which parts of a compiled folder could not be used, and why. */
void cli_job_note_compiled(cli_invocation *cli, const cli_job *job, clv_session *session);
/* Adds "did you mean …?" to an error that rejects one of `items`, the arguments of `option`. Returns the error's status. */
clv_status cli_suggest(cli_invocation *cli, const cli_job *job, cli_option_id option, const clv_assignment *items, uint32_t count,
                       clv_error *error);
/* Rejects an output file that is also an input: the model or, for any option but --output, the plan file that was given
 * (outputs.c). */
clv_status cli_job_check_target(cli_invocation *cli, const cli_job *job, cli_option_id option, clv_error *error);
/* Accepts a zeroed job. */
void cli_job_finish(cli_invocation *cli, cli_job *job);

/* ---- inputs.c ---- */

/* Reads the --input files into `inputs`. */
clv_status cli_inputs_read(cli_invocation *cli, const clv_graph *graph, cli_inputs *inputs, clv_error *error);
/* Collects the sizes from --shape, --dim and the given inputs, in the arena. With `static_sizes`, sizes that are still open
 * become 1. */
clv_status cli_inputs_sizes(cli_invocation *cli, const clv_graph *graph, const cli_inputs *inputs, bool static_sizes,
                            clv_size **sizes, uint32_t *count, clv_error *error);
/* batch.c: appends the sizes of --batch: one for each input whose first dimension is a symbol. Fails if there is none, unless the
 * model is made for this batch. */
clv_status cli_batch_sizes(cli_invocation *cli, const clv_graph *graph, clv_size *sizes, uint32_t *count, clv_error *error);
/* Fills missing inputs with seeded random numbers: floats in [-1, 1), integers 0 to 9, bools. Inputs with a default keep it.
 * Prints a note with the sizes to which fixed-shape devices pad open sizes. */
clv_status cli_inputs_fill(cli_invocation *cli, cli_job *job, uint64_t seed, clv_error *error);
void cli_inputs_finish(cli_inputs *inputs);

#endif
