/* The libFuzzer entry point of fuzz_safetensors(). */
#include "target_safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes) {
  fuzz_safetensors(data, size_bytes);
  return 0;
}
