/* The libFuzzer entry point of fuzz_plan(). */
#include "target_plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes) {
  fuzz_plan(data, size_bytes);
  return 0;
}
