/* A program is the source of a family of kernels with a set of defines. It is built once per device, when it is first needed, or
 * created from a binary. */
#ifndef CLEAVE_BACKENDS_OPENCL_PROGRAMS_H
#define CLEAVE_BACKENDS_OPENCL_PROGRAMS_H

#include "device.h"
#include "sources.h"

struct clv__opencl_program {
  clv__opencl_program *next;
  uint64_t hash;
  const clv__opencl_source *family;
  char *defines;      /* #define lines, which precede the header clv_kernel.h */
  char *functions;    /* text between the header and the source */
  cl_program program; /* NULL: not built yet */
  void *binary;       /* the binary from a file; NULL if there is none or once the program is built */
  size_t binary_bytes;
};

/* Returns the program with this family, these defines and these functions (OpenCL C), without building it. `functions` is "" if
 * there are none. Calls with the same texts return the same program, which lives as long as the device. */
clv_status clv__opencl_program_get(clv_device *device, const char *family, const char *defines, const char *functions,
                                   clv__opencl_program **program, clv_error *error);
/* Builds the program if it is not built. The error contains the first lines of the compiler's log. */
clv_status clv__opencl_program_build(clv_device *device, clv__opencl_program *program, clv_error *error);
/* Supplies a binary for the program; the bytes are copied. Does nothing if the program is built or already has a binary. */
clv_status clv__opencl_program_offer(clv_device *device, clv__opencl_program *program, const void *binary, size_t size_bytes,
                                     clv_error *error);
/* Returns the binary of a built program in allocated memory; NULL and 0 if the driver provides none. */
clv_status clv__opencl_program_binary(clv_device *device, const clv__opencl_program *program, void **binary, size_t *size_bytes,
                                      clv_error *error);
void clv__opencl_programs_finish(clv_device *device);

/* Builds a program from `count` texts; `what` names it in errors. */
clv_status clv__opencl_program_make(clv_device *device, uint32_t count, const char *const *texts, const size_t *sizes,
                                    const char *what, cl_program *program, clv_error *error);

#endif
