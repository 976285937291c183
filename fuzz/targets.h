/* Fuzz targets. Each function reads untrusted bytes as a program would. It must return, whatever the bytes are: a crash or a hang
 * is a bug. The libFuzzer programs in this folder and the test that replays the corpus call them. */
#ifndef CLEAVE_FUZZ_TARGETS_H
#define CLEAVE_FUZZ_TARGETS_H

#include "base/memory.h"
#include "formats/arrays/npy.h"
#include "formats/arrays/npz.h"
#include "formats/onnx/onnx.h"

/* Loads a model, writes it, and loads the result. */
static inline void fuzz_onnx(const uint8_t *data, size_t size_bytes) {
  const clv_allocator *allocator = clv__allocator_default();
  clv_error error = {0};
  clv_graph *graph = NULL, *again = NULL;
  if (clv__onnx_load_memory(allocator, data, size_bytes, false, &graph, &error) != CLV_OK) return;
  void *written;
  size_t written_bytes;
  if (clv__onnx_write(graph->whole, SIZE_MAX, allocator, &written, &written_bytes, &error) == CLV_OK) {
    if (clv__onnx_load_memory(allocator, written, written_bytes, true, &again, &error) == CLV_OK) clv__graph_destroy(again);
    clv__release(allocator, written);
  }
  clv__graph_destroy(graph);
}

static inline void fuzz_npy(const uint8_t *data, size_t size_bytes) {
  const clv_allocator *allocator = clv__allocator_default();
  clv_error error = {0};
  clv_tensor tensor, again;
  if (clv__npy_read_memory(allocator, data, size_bytes, &tensor, &error) != CLV_OK) return;
  clv__text out;
  clv__text_init(&out, allocator);
  if (clv__npy_append(&out, &tensor, &error) == CLV_OK &&
      clv__npy_read_memory(allocator, out.data, out.size_bytes, &again, &error) == CLV_OK) {
    clv__release(allocator, again.data);
  }
  clv__text_finish(&out);
  clv__release(allocator, tensor.data);
}

static inline void fuzz_npz(const uint8_t *data, size_t size_bytes) {
  const clv_allocator *allocator = clv__allocator_default();
  clv_error error = {0};
  clv__npz *npz;
  if (clv__npz_open_memory(allocator, data, size_bytes, &npz, &error) != CLV_OK) return;
  for (size_t i = 0; i < clv__npz_count(npz) && i < 16; ++i) {
    clv_tensor tensor;
    if (clv__npz_read(npz, clv__npz_name(npz, i), &tensor, &error) == CLV_OK) clv__release(allocator, tensor.data);
  }
  clv__npz_close(npz);
}

static inline void fuzz_tensor(const uint8_t *data, size_t size_bytes) {
  const clv_allocator *allocator = clv__allocator_default();
  clv_error error = {0};
  clv_tensor tensor;
  char *name;
  if (clv__onnx_tensor_read(allocator, data, size_bytes, &tensor, &name, &error) != CLV_OK) return;
  void *written;
  size_t written_bytes;
  if (clv__onnx_tensor_write(&tensor, name, allocator, &written, &written_bytes, &error) == CLV_OK)
    clv__release(allocator, written);
  clv__release(allocator, name);
  clv__release(allocator, tensor.data);
}

#endif
