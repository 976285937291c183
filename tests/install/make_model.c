/* Writes a model of the tests as an ONNX file: `make_model F.onnx [seven|decoder-fixed|decoder-growing]`. */
#include <stdio.h>
#include <string.h>

#include "decoder.h"
#include "formats/onnx/onnx.h"
#include "models.h"
#include "support.h"

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    clv_graph *(*make)(const clv_allocator *allocator);
  } models[] = {{"seven", test_seven_nodes}, {"decoder-fixed", test_decoder_fixed}, {"decoder-growing", test_decoder_growing}};
  clv_error error = {0};
  void *data = NULL;
  size_t size_bytes, which = 0, count = sizeof models / sizeof *models;
  while (argc > 2 && which < count && strcmp(models[which].name, argv[2]) != 0) ++which;
  if (argc < 2 || which == count) {
    fprintf(stderr, "usage: make_model F.onnx [seven|decoder-fixed|decoder-growing]\n");
    return 2;
  }
  clv_graph *graph = models[which].make(clv__allocator_default());
  clv_status status = clv__onnx_write(graph->whole, SIZE_MAX, clv__allocator_default(), &data, &size_bytes, &error);
  if (status == CLV_OK) status = clv__file_write(argv[1], data, size_bytes, &error);
  if (status != CLV_OK) fprintf(stderr, "%s\n", error.message);
  clv__release(clv__allocator_default(), data);
  clv__graph_destroy(graph);
  return status != CLV_OK;
}
