/* Writes the seven-node example as an ONNX file: a model for tests of the command and of the installed library. */
#include <stdio.h>

#include "formats/onnx.h"
#include "models.h"
#include "support.h"

int main(int argc, char **argv) {
  clv_error error = {0};
  void *data;
  size_t size_bytes;
  clv_graph *graph = test_seven_nodes(clv__allocator_default());
  clv_status status = clv__onnx_write(graph->whole, SIZE_MAX, clv__allocator_default(), &data, &size_bytes, &error);
  if (status == CLV_OK && argc > 1) status = clv__file_write(argv[1], data, size_bytes, &error);
  if (status != CLV_OK) fprintf(stderr, "%s\n", error.message);
  clv__release(clv__allocator_default(), data);
  clv__graph_destroy(graph);
  return status != CLV_OK;
}
