/* Reads a file of weights (npz or safetensors) as --params does, and binds values of a model to the tensors with the same
 * names. */
#ifndef CLEAVE_FUZZ_TARGET_PARAMS_H
#define CLEAVE_FUZZ_TARGET_PARAMS_H

#include <stdlib.h>

#include "formats/params.h"
#include "in_memory.h"

/* Returns how many of the values "w", "b", "h" and "n" were bound. */
static inline uint32_t fuzz_params_bound(const uint8_t *data, size_t size_bytes, clv_error *error) {
  static const struct {
    const char *name;
    clv_dtype dtype;
    int32_t rank;
    int64_t dims[2];
  } wanted[] = {{"w", CLV_F32, 2, {2, 3}}, {"b", CLV_I64, 1, {3}}, {"h", CLV_BF16, 1, {2}}, {"n", CLV_F32, 0, {0}}};
  const clv_allocator *allocator = clv__allocator_default();
  clv__params *params = NULL;
  clv__builder *builder = NULL;
  fuzz_in_memory file;
  uint32_t bound = 0;
  fuzz_in_memory_open(data, size_bytes, &file);
  const char *const paths[] = {file.path};
  if (clv__builder_create(allocator, &builder, error) != CLV_OK) abort();
  if (clv__params_open(allocator, paths, 1, &params, error) == CLV_OK) {
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; ++i) {
      clv_tensor type = clv__tensor_make(wanted[i].dtype, wanted[i].rank, wanted[i].dims, NULL), tensor;
      size_t type_bytes;
      clv_status status = clv__params_bind(params, builder, wanted[i].name, &type, &tensor, error);
      if (status == CLV_OK && !clv__params_has(params, wanted[i].name)) abort();
      if (status != CLV_OK) continue;
      if (!clv__tensor_same_type(&tensor, &type) || tensor.data == NULL || !clv__tensor_size_bytes(&tensor, &type_bytes)) abort();
      volatile uint8_t sum = 0; /* all bytes must be readable */
      for (size_t b = 0; b < type_bytes; ++b) sum = (uint8_t)(sum + ((const uint8_t *)tensor.data)[b]);
      ++bound;
    }
  } else if (params != NULL || error->message[0] == '\0') {
    abort();
  }
  clv__params_close(params);
  clv__builder_destroy(builder);
  fuzz_in_memory_close(&file);
  return bound;
}

static inline void fuzz_params(const uint8_t *data, size_t size_bytes) {
  clv_error error = {0};
  (void)fuzz_params_bound(data, size_bytes, &error);
}

#endif
