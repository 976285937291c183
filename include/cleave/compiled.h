/* Ahead-of-time compilation: a folder that holds everything a plan needs to run. It can be copied to any machine that has the
 * same devices.
 *
 *   DIR/compiled.json        the list of contents, and the options that the partitions were compiled with
 *   DIR/plan.json            the plan
 *   DIR/model.onnx           the whole model, without its weights
 *   DIR/weights.data         the bytes of the weights, stored once; all models of the folder refer to it
 *   DIR/partition-N.onnx     each partition as a model of its own
 *   DIR/partition-N.clvx     the partition's executable, if its backend can save executables
 *   DIR/npu-N.json           descriptions of virtual NPUs, if they came from files
 *   DIR/profile.json         the measured costs that the plan was priced with, if any
 *
 * To run a folder, open its devices, load its model, read its plan, and create a session with its options. Nothing is then
 * placed or measured. A partition is compiled only if its backend cannot save executables, or if its saved executable cannot be
 * used: the driver differs, a file is damaged or missing, or the plan was edited by hand. In the second case, the reason is
 * logged at level 1.
 *
 * An executable may hold code for its device. Trust such a folder only as far as you would trust a program from the same
 * source.
 *
 * Unstable: may change until 1.0. */
#ifndef CLEAVE_COMPILED_H
#define CLEAVE_COMPILED_H

#include "session.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clv_compiled_options {
  uint32_t struct_size;
  const clv_session_options *session; /* used to compile the partitions; saved in the folder. NULL: the defaults */
  const clv_devices_options *devices; /* what the devices were opened with. Its device_options and the text of its npu_specs are
                                         saved in the folder. NULL: saves neither */
  const clv_tensor *inputs; /* if the plan leaves sizes open: the types of a run's inputs, one per graph input. Executables
                               for these sizes, padded as in such a run, are saved too. Data is ignored. NULL: none */
  uint32_t input_count;
} clv_compiled_options;
#define CLV_COMPILED_OPTIONS_INIT \
  { sizeof(clv_compiled_options), NULL, NULL, NULL, 0 }

/* Checks, before the work starts, that clv_compiled_write() can write the folder. Errors: as there. */
CLV_API CLV_MUST_USE clv_status clv_compiled_check(const char *directory, clv_error *error);

/* Writes the folder atomically. `directory` must not exist, or be empty, or be an earlier folder of this kind, which is
 * replaced. Compiles all partitions from the model in the folder, so that a session created from the folder finds every
 * executable. `options` may be NULL. Like clv_session_create(), it makes other plans and sessions of the same devices wait
 * while it compiles. Errors: CLV_INVALID_ARGUMENT if the directory holds other files; CLV_NOT_SUPPORTED for a model without
 * weights; CLV_IO_ERROR; the errors of clv_session_create(). */
CLV_API CLV_MUST_USE clv_status clv_compiled_write(const clv_plan *plan, const clv_compiled_options *options,
                                                   const char *directory, clv_error *error);

/* Opens a folder. Errors: CLV_NOT_FOUND; CLV_IO_ERROR; CLV_INVALID_MODEL if the folder is incomplete or not of this kind;
 * CLV_NOT_SUPPORTED for a later version of the format. Any thread may call it. */
CLV_API CLV_MUST_USE clv_status clv_compiled_open(clv_context *context, const char *directory, clv_compiled **compiled,
                                                  clv_error *error);
/* Destroy all sessions created with the folder's options first. Accepts NULL. */
CLV_API void clv_compiled_close(clv_compiled *compiled);

/* The results are valid as long as `compiled` is. */
CLV_API const char *clv_compiled_directory(const clv_compiled *compiled);
CLV_API const char *clv_compiled_model_path(const clv_compiled *compiled); /* for clv_graph_load() */
CLV_API const char *clv_compiled_plan_path(const clv_compiled *compiled);  /* for clv_plan_read() */
CLV_API const clv_devices_options *clv_compiled_devices_options(const clv_compiled *compiled);
CLV_API const clv_session_options *clv_compiled_session_options(const clv_compiled *compiled);

/* Returns whether `path` is a folder of this kind, which may be damaged. Any thread may call it. */
CLV_API bool clv_compiled_recognise(const char *path);

/* Lists the partitions with their models and executables, or why they have none. As text, `brief` leaves out the table, and keeps
 * the line with the totals. Free the text with clv_text_free(). Errors: CLV_INVALID_ARGUMENT; CLV_OUT_OF_MEMORY. */
CLV_API CLV_MUST_USE clv_status clv_compiled_text(const clv_compiled *compiled, bool brief, clv_form form, char **text,
                                                  clv_error *error);

#ifdef __cplusplus
}
#endif
#endif
