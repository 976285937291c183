/* libFuzzer's way into fuzz_opencl(), and changes that keep the parts of an executable where they are: most go to its graph
 * alone, whose size is put right. */
#include "target_opencl.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size_bytes, size_t max_bytes, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size_bytes, size_t max_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes) {
  fuzz_opencl(data, size_bytes);
  return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size_bytes, size_t max_bytes, unsigned seed) {
  size_t at = size_bytes > 0 ? fuzz_opencl_graph(data + 1, size_bytes - 1) + 1 : 1;
  uint64_t graph_bytes = at > 1 ? fuzz_opencl_number(data + at - 8, 8) : UINT64_MAX;
  if (seed % 8 == 0 || graph_bytes > size_bytes - at) return LLVMFuzzerMutate(data, size_bytes, max_bytes);
  if (seed % 8 == 1) { /* what the bytes mean */
    data[0] = (uint8_t)(seed >> 8) & (FUZZ_OPENCL_CPU | FUZZ_OPENCL_PLAIN | FUZZ_OPENCL_PROGRAMS);
    return size_bytes;
  }
  size_t rest = size_bytes - at - graph_bytes;
  uint8_t *tail = malloc(rest + 1);
  if (tail == NULL) return size_bytes;
  memcpy(tail, data + at + graph_bytes, rest);
  if (seed % 8 == 2) { /* the programs */
    size_t room = max_bytes - (size_bytes - rest);
    rest = LLVMFuzzerMutate(data + at + graph_bytes, rest, room);
    free(tail);
    return at + graph_bytes + rest;
  }
  graph_bytes = LLVMFuzzerMutate(data + at, graph_bytes, max_bytes - at - rest);
  for (size_t i = 0; i < 8; ++i) data[at - 8 + i] = (uint8_t)(graph_bytes >> (8 * i));
  memcpy(data + at + graph_bytes, tail, rest);
  free(tail);
  return at + graph_bytes + rest;
}
