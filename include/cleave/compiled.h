/* Compiled ahead of time: a folder with all that a plan needs to run, to be copied to any machine that has the same devices.
 *
 *   DIR/compiled.json        what is here, and the options that it was compiled with
 *   DIR/plan.json            the plan
 *   DIR/model.onnx           the whole model, without its weights
 *   DIR/weights.data         the bytes of the weights, once: all models here refer to it
 *   DIR/partition-N.onnx     each partition as a model of its own
 *   DIR/partition-N.clvx     its executable, where its backend can save one
 *   DIR/npu-N.json           descriptions of virtual NPUs that came from files
 *   DIR/profile.json         the measured costs that the plan was priced with, where there were any
 *
 * Whoever runs it opens its devices, loads its model, reads its plan, and makes a session with its options: nothing is placed,
 * measured or compiled then but partitions of backends that keep no executables. What does not fit (another driver, a file that
 * is damaged or gone, a plan edited by hand) is compiled again, and the reason logged at level 1.
 *
 * An executable may hold code for its device: run folders of those whose programs you would run. */
#ifndef CLEAVE_COMPILED_H
#define CLEAVE_COMPILED_H

#include "session.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clv_compiled_options {
  uint32_t struct_size;
  const clv_session_options *session; /* what partitions are compiled with; kept in the folder. NULL: the defaults */
  const clv_devices_options *devices; /* what the devices were opened with: device_options, and the text of npu_specs, are kept in
                                         the folder. NULL: nothing is */
  const clv_tensor *inputs; /* types of the inputs of a run, by input of the graph, where the plan leaves sizes open: its
                               buckets are compiled as well; data is not looked at. NULL: none */
  uint32_t input_count;
} clv_compiled_options;
#define CLV_COMPILED_OPTIONS_INIT \
  { sizeof(clv_compiled_options), NULL, NULL, NULL, 0 }

/* Writes the folder: whole, or not at all. `directory` is not there yet, is empty, or is such a folder, which is replaced.
 * Compiles the plan once more, from the model as it was written. `options` may be NULL. Takes the locks that a session takes.
 * Errors: CLV_INVALID_ARGUMENT for a directory that has other files; CLV_NOT_SUPPORTED for a model without weights; CLV_IO_ERROR;
 * what clv_session_create() says. */
CLV_API CLV_MUST_USE clv_status clv_compiled_write(const clv_plan *plan, const clv_compiled_options *options,
                                                   const char *directory, clv_error *error);

/* Opens a folder. Errors: CLV_NOT_FOUND, CLV_IO_ERROR, CLV_INVALID_MODEL for one that is not whole or not such a folder,
 * CLV_NOT_SUPPORTED for a later version of the format. Any thread. */
CLV_API CLV_MUST_USE clv_status clv_compiled_open(clv_context *context, const char *directory, clv_compiled **compiled,
                                                  clv_error *error);
/* Sessions made with its options must have been destroyed before. Accepts NULL. */
CLV_API void clv_compiled_close(clv_compiled *compiled);

/* All of these live as long as `compiled`. */
CLV_API const char *clv_compiled_model_path(const clv_compiled *compiled); /* for clv_graph_load() */
CLV_API const char *clv_compiled_plan_path(const clv_compiled *compiled);  /* for clv_plan_read() */
CLV_API const clv_devices_options *clv_compiled_devices_options(const clv_compiled *compiled);
CLV_API const clv_session_options *clv_compiled_session_options(const clv_compiled *compiled);

#ifdef __cplusplus
}
#endif
#endif
