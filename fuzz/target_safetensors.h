/* A fuzz target for safetensors files: see targets.h. It needs jansson. */
#ifndef CLEAVE_FUZZ_TARGET_SAFETENSORS_H
#define CLEAVE_FUZZ_TARGET_SAFETENSORS_H

#include "base/memory.h"
#include "base/tensor/tensor.h"
#include "formats/arrays/safetensors.h"

/* Opens a file and reads every byte of every tensor, which must lie inside the file. */
static inline void fuzz_safetensors(const uint8_t *data, size_t size_bytes) {
  const clv_allocator *allocator = clv__allocator_default();
  clv_error error = {0};
  clv__safetensors *file;
  if (clv__safetensors_open_memory(allocator, data, size_bytes, &file, &error) != CLV_OK) return;
  volatile uint8_t sum = 0;
  for (size_t i = 0; i < clv__safetensors_count(file); ++i) {
    clv_tensor tensor;
    size_t tensor_bytes;
    if (clv__safetensors_read(file, clv__safetensors_name(file, i), &tensor, &error) != CLV_OK) continue;
    if (!clv__tensor_size_bytes(&tensor, &tensor_bytes)) continue;
    for (size_t k = 0; k < tensor_bytes; ++k) sum = (uint8_t)(sum + ((const uint8_t *)tensor.data)[k]);
  }
  clv__safetensors_close(file);
}

#endif
