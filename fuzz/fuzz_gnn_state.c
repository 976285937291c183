/* The libFuzzer entry point of fuzz_gnn_state(). */
#include "target_gnn_state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes) {
  fuzz_gnn_state(data, size_bytes);
  return 0;
}
