/* The libFuzzer entry point of fuzz_npu_spec(). */
#include "target_npu_spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes) {
  fuzz_npu_spec(data, size_bytes);
  return 0;
}
