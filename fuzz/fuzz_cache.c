/* The libFuzzer entry point of fuzz_cache(). */
#include "target_cache.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes) {
  fuzz_cache(data, size_bytes);
  return 0;
}
