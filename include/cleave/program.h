/* What programs with a command line need: lists for their help texts, names of devices, and a way to end at once.
 *
 * Unstable: may change until 1.0. Any thread may call these functions. */
#ifndef CLEAVE_PROGRAM_H
#define CLEAVE_PROGRAM_H

#include "devices.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The strategies of planning (clv_plan_options.strategy), and what each does, in one line. NULL beyond the last. Static
 * storage. */
CLV_API const char *clv_strategy_name(uint32_t index);
CLV_API const char *clv_strategy_summary(uint32_t index);

/* An environment variable that Cleave reads. */
typedef struct clv_variable_info {
  uint32_t struct_size;
  const char *name;
  const char *values; /* the values that it accepts; NULL: any */
  const char *help;   /* one line; NULL: it is not meant for users of Cleave */
} clv_variable_info;
/* Fills as many bytes of `info` as its struct_size says. Returns false, and fills it with zeros, beyond the last. Static
 * storage. */
CLV_API bool clv_variable(uint32_t index, clv_variable_info *info);

/* Returns whether a loaded backend has this name, or devices of this name, as in clv_devices_options.list. Whether the device
 * exists is known only when it is opened. */
CLV_API bool clv_context_knows_device(clv_context *context, const char *name);
/* The name of the backend that opened a device. NULL for an index beyond the count. Valid as long as the set. */
CLV_API const char *clv_devices_backend(const clv_devices *devices, uint32_t index);
/* The devices that were left out when the set was opened: the name, and the reason. NULL for an index beyond their count. Valid
 * as long as the set. */
CLV_API const char *clv_devices_left_out(const clv_devices *devices, uint32_t index, const char **reason);

typedef enum clv_file_kind {
  CLV_FILE_MODEL = 0,    /* a model, or any file that is none of the following */
  CLV_FILE_PLAN = 1,     /* JSON, but not a model: a plan or another file of Cleave */
  CLV_FILE_COMPILED = 2, /* a folder that was compiled ahead of time */
  CLV_FILE_FOLDER = 3    /* another folder */
} clv_file_kind;
/* Tells what a path names, by its content. For CLV_FILE_FOLDER, sets `other` (may be NULL) to a description of a known format of
 * another program, such as "a TensorFlow SavedModel", in static storage; otherwise to NULL.
 * Errors: CLV_INVALID_ARGUMENT; CLV_NOT_FOUND; CLV_IO_ERROR. */
CLV_API CLV_MUST_USE clv_status clv_file_recognise(const char *path, clv_file_kind *kind, const char **other, clv_error *error);

/* Checks, before the work starts, that a file can be written at `path`, by creating and removing a temporary file beside it. A
 * special file that exists, such as a pipe, is not opened. Errors: CLV_INVALID_ARGUMENT; CLV_IO_ERROR, with the path. */
CLV_API CLV_MUST_USE clv_status clv_file_check_writable(const char *path, clv_error *error);

/* Removes the temporary files and folders of this process, for a program that must end at once and calls _exit() next: threads
 * that write files wait forever afterwards. Do not call it in a signal handler. */
CLV_API void clv_temporaries_remove(void);

#ifdef __cplusplus
}
#endif
#endif
