/* The libFuzzer entry point of fuzz_opencl(), and a mutator that usually changes only one part of an input (see sealed.h). */
#include "target_opencl.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size_bytes, size_t max_bytes, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size_bytes, size_t max_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes) {
  fuzz_opencl(data, size_bytes);
  return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size_bytes, size_t max_bytes, unsigned seed) {
  return fuzz_sealed_mutate(data, size_bytes, max_bytes, seed, FUZZ_OPENCL_CPU | FUZZ_OPENCL_PLAIN | FUZZ_OPENCL_PROGRAMS,
                            LLVMFuzzerMutate);
}
