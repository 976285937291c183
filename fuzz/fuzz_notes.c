/* The libFuzzer entry point of fuzz_notes(). */
#include "target_notes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes) {
  fuzz_notes(data, size_bytes);
  return 0;
}
