/* The libFuzzer entry point of fuzz_gnn_plan(). */
#include "target_gnn_plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes) {
  fuzz_gnn_plan(data, size_bytes);
  return 0;
}
