/* The sources of kernels/, made into arrays when the library is built. */
#ifndef CLEAVE_BACKENDS_OPENCL_SOURCES_H
#define CLEAVE_BACKENDS_OPENCL_SOURCES_H

#include <stddef.h>

typedef struct clv__opencl_source {
  const char *name; /* of the file, without its ending; "clv_kernel" is the header before each */
  const char *text;
  size_t size_bytes; /* without the terminator */
} clv__opencl_source;
extern const clv__opencl_source clv__opencl_sources[]; /* the last has name NULL */

#endif
