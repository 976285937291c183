/* The sources of kernels/, converted to arrays when the library is built. */
#ifndef CLEAVE_BACKENDS_OPENCL_SOURCES_H
#define CLEAVE_BACKENDS_OPENCL_SOURCES_H

#include <stddef.h>

typedef struct clv__opencl_source {
  const char *name; /* file name without extension; "clv_kernel" is the header that precedes all others */
  const char *text;
  size_t size_bytes; /* without the terminator */
} clv__opencl_source;
extern const clv__opencl_source clv__opencl_sources[]; /* ends with a NULL name */

#endif
