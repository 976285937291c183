/* The libFuzzer entry point of fuzz_gnn_tables(). */
#include "target_gnn_tables.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes) {
  fuzz_gnn_tables(data, size_bytes);
  return 0;
}
