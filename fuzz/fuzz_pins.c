/* The libFuzzer entry point of fuzz_pins(). */
#include "target_pins.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes) {
  fuzz_pins(data, size_bytes);
  return 0;
}
