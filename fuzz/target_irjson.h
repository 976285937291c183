/* A fuzz target for IR JSON files: see targets.h. */
#ifndef CLEAVE_FUZZ_TARGET_IRJSON_H
#define CLEAVE_FUZZ_TARGET_IRJSON_H

#include "base/memory.h"
#include "formats/irjson/irjson.h"
#include "formats/onnx/onnx.h"

/* Loads a model (which infers all shapes), hashes it, writes it as ONNX, and loads the result. */
static inline void fuzz_irjson(const uint8_t *data, size_t size_bytes) {
  const clv_allocator *allocator = clv__allocator_default();
  clv_error error = {0};
  clv_graph *graph = NULL, *again = NULL;
  if (clv__irjson_load(allocator, NULL, data, size_bytes, NULL, &graph, &error) != CLV_OK) return;
  clv__hash hash;
  clv__graph_hash(graph, &hash);
  void *written;
  size_t written_bytes;
  if (clv__onnx_write(graph->whole, SIZE_MAX, allocator, &written, &written_bytes, &error) == CLV_OK) {
    if (clv__onnx_load_memory(allocator, written, written_bytes, true, &again, &error) == CLV_OK) clv__graph_destroy(again);
    clv__release(allocator, written);
  }
  clv__graph_destroy(graph);
}

#endif
