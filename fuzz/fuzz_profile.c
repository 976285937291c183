/* The libFuzzer entry point of fuzz_profile(). */
#include "target_profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes) {
  fuzz_profile(data, size_bytes);
  return 0;
}
