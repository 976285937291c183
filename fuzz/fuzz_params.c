/* The libFuzzer entry point of fuzz_params(). */
#include "target_params.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes) {
  fuzz_params(data, size_bytes);
  return 0;
}
