/* The libFuzzer entry point of fuzz_tensor(). */
#include "targets.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes) {
  fuzz_tensor(data, size_bytes);
  return 0;
}
