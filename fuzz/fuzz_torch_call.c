/* The libFuzzer entry point of fuzz_torch_call(). */
#include "target_torch_call.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes) {
  fuzz_torch_call(data, size_bytes);
  return 0;
}
