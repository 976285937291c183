/* The libFuzzer entry point of fuzz_compiled(). */
#include "target_compiled.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes) {
  fuzz_compiled(data, size_bytes);
  return 0;
}
