/* Reads OpenCL executables, up to the first driver call: the file, its graph, types, fusion, launches and their memory. It needs
 * the whole library, but no OpenCL.
 *
 * The first byte of an input is its mode. FUZZ_OPENCL_RAW: a complete file follows. Otherwise the payload of a file (blob.c)
 * follows, without the fingerprint. Header, checksum and fingerprint are added here, because a reader would reject every mutated
 * file with the wrong checksum. Without FUZZ_OPENCL_PROGRAMS, only the types and the graph of the payload are used, so the seeds
 * of fuzz_npubin are seeds for this target too. */
#ifndef CLEAVE_FUZZ_TARGET_OPENCL_H
#define CLEAVE_FUZZ_TARGET_OPENCL_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/opencl/variant.h"
#include "base/hash.h"
#include "base/text.h"
#include "cleave/cleave.h"
#include "device/device.h"
#include "sealed.h"

enum { FUZZ_OPENCL_CPU = 2, FUZZ_OPENCL_PLAIN = 4, FUZZ_OPENCL_RAW = 8, FUZZ_OPENCL_PROGRAMS = 16 };

/* Fills in the fields of a device that the reader uses. */
static inline void fuzz_opencl_device(clv_device *device, uint8_t mode) {
  static clv_context *context; /* created once and never destroyed */
  if (context == NULL && clv_context_create(NULL, &context, NULL) != CLV_OK) abort();
  const clv_host *host = clv__context_host(context);
  *device = (clv_device){.host = host, .allocator = host->allocator};
  clv__objects_init(&device->objects, host->allocator, device);
  device->traits = (clv__opencl_traits){.is_cpu = (mode & FUZZ_OPENCL_CPU) != 0,
                                        .has_double = true,
                                        .compute_units = 16,
                                        .max_group = 256,
                                        .group_1d = 128,
                                        .local_bytes = 32 << 10,
                                        .max_buffer_bytes = 64 << 20};
  device->fuse = (mode & FUZZ_OPENCL_PLAIN) == 0;
  device->half = device->binaries = true;
  device->alignment_bytes = 128;
  snprintf(device->fingerprint, sizeof device->fingerprint, "fuzzed");
  pthread_mutex_init(&device->lock, NULL);
  pthread_mutex_init(&device->build_lock, NULL);
}

static inline void fuzz_opencl_finish(clv_device *device) {
  clv__objects_finish(&device->objects);
  clv__opencl_programs_finish(device);
  pthread_mutex_destroy(&device->build_lock);
  pthread_mutex_destroy(&device->lock);
}

static inline void fuzz_opencl_wrap(const clv_device *device, const uint8_t *data, size_t size_bytes, bool programs,
                                    clv__text *file) {
  size_t at = fuzz_sealed_graph(data, size_bytes);
  uint64_t graph_bytes = at > 0 ? fuzz_sealed_number(data + at - 8, 8) : 0;
  clv__text payload;
  clv__text_init(&payload, clv__allocator_default());
  if (!programs && at > 0 && graph_bytes <= size_bytes - at) size_bytes = at + (size_t)graph_bytes;
  clv__text_append_bytes(&payload, data, size_bytes);
  if (!programs) clv__sealed_put(&payload, 0, 4);
  fuzz_sealed_wrap(&clv__opencl_executable_kind, device->fingerprint, payload.data, payload.size_bytes, file);
  clv__text_finish(&payload);
}

/* Returns the status of reading. */
static inline clv_status fuzz_opencl_status(const uint8_t *data, size_t size_bytes, clv_error *error) {
  if (size_bytes == 0) return CLV_INVALID_MODEL;
  clv_device device;
  clv_executable *executable = NULL;
  clv__text file;
  fuzz_opencl_device(&device, data[0]);
  clv__text_init(&file, clv__allocator_default());
  if (data[0] & FUZZ_OPENCL_RAW)
    clv__text_append_bytes(&file, data + 1, size_bytes - 1);
  else
    fuzz_opencl_wrap(&device, data + 1, size_bytes - 1, (data[0] & FUZZ_OPENCL_PROGRAMS) != 0, &file);
  clv_status status = clv__opencl_executable_read(&device, file.data, file.size_bytes, &executable, error);
  if (status == CLV_OK) clv__opencl_executable_destroy(&device, executable);
  if (status == CLV_INTERNAL_ERROR) abort(); /* a lowering failed although its accepts() returned true */
  clv__text_finish(&file);
  fuzz_opencl_finish(&device);
  return status;
}

static inline void fuzz_opencl(const uint8_t *data, size_t size_bytes) {
  clv_error error = {0};
  (void)fuzz_opencl_status(data, size_bytes, &error);
}

#endif
