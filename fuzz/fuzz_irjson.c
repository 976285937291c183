/* The libFuzzer entry point of fuzz_irjson(). */
#include "target_irjson.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes) {
  fuzz_irjson(data, size_bytes);
  return 0;
}
