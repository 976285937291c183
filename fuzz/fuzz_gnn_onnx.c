/* The libFuzzer entry point of fuzz_gnn_onnx(). */
#include "target_gnn_onnx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes) {
  fuzz_gnn_onnx(data, size_bytes);
  return 0;
}
