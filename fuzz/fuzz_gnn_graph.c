/* The libFuzzer entry point of fuzz_gnn_graph(). */
#include "target_gnn_graph.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes) {
  fuzz_gnn_graph(data, size_bytes);
  return 0;
}
