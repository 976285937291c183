/* The libFuzzer entry point of fuzz_gnn_model(). */
#include "target_gnn_model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes) {
  fuzz_gnn_model(data, size_bytes);
  return 0;
}
