/* Writes the cases of the conformance kit to a file, for tests/python/test_cases.py: `write_cases F [SEED]`. For each case it
 * writes the name, the model (ONNX), the number of inputs and the inputs, the number of outputs and the outputs of the reference
 * evaluator (TensorProto). The name, the model and each tensor are blocks: the size in bytes as a 64-bit number, then the bytes.
 */
#include <stdio.h>
#include <stdlib.h>

#include "analysis/evaluate.h"
#include "analysis/shapes.h"
#include "check/check.h"
#include "formats/onnx/onnx.h"
#include "graph/view.h"

enum { MAX_OUTPUTS = 16 };

static void write_number(FILE *file, uint64_t number) {
  fwrite(&number, sizeof number, 1, file);
}

static void write_block(FILE *file, const void *data, size_t size_bytes) {
  write_number(file, size_bytes);
  fwrite(data, 1, size_bytes, file);
}

static clv_status write_tensors(FILE *file, const clv_graph *graph, const clv_tensor *tensors, const clv_value_id *values,
                                uint32_t count, clv_error *error) {
  write_number(file, count);
  for (uint32_t i = 0; i < count; ++i) {
    void *data;
    size_t size_bytes;
    CLV__TRY(
        clv__onnx_tensor_write(&tensors[i], graph->values[values[i]].name, clv__allocator_default(), &data, &size_bytes, error));
    write_block(file, data, size_bytes);
    clv__release(clv__allocator_default(), data);
  }
  return CLV_OK;
}

/* Writes the model. Its values have the types that inference finds; outputs have the types of the evaluated `outputs`. */
static clv_status write_model(FILE *file, const clv_graph *graph, const clv_tensor *outputs, clv_error *error) {
  clv__shapes *shapes;
  void *data;
  size_t size_bytes;
  CLV__TRY(clv__shapes_infer(graph, NULL, 0, 0, &shapes, error));
  for (clv_value_id v = 0; v < graph->value_count; ++v) shapes->types[v].data = graph->values[v].type.data;
  for (uint32_t i = 0; i < graph->output_count; ++i) {
    clv_tensor *type = &shapes->types[graph->outputs[i]];
    const void *constant = type->data;
    *type = outputs[i];
    type->data = (void *)constant;
  }
  clv_graph_view view = *graph->whole;
  view.types = shapes->types;
  clv_status status = clv__onnx_write(&view, SIZE_MAX, clv__allocator_default(), &data, &size_bytes, error);
  if (status == CLV_OK) {
    write_block(file, data, size_bytes);
    clv__release(clv__allocator_default(), data);
  }
  clv__shapes_destroy(shapes);
  return status;
}

static clv_status write_case(FILE *file, uint32_t index, uint64_t seed, clv_error *error) {
  clv__check_case made;
  clv_tensor outputs[MAX_OUTPUTS] = {0};
  CLV__TRY(clv__check_case_make(clv__allocator_default(), index, seed, &made, error));
  const clv_graph *graph = made.graph;
  clv_status status = CLV_INTERNAL_ERROR;
  if (graph->output_count <= MAX_OUTPUTS) {
    status = clv__graph_evaluate(graph, made.inputs, NULL, outputs, NULL, NULL, clv__allocator_default(), error);
  }
  if (status == CLV_OK) {
    write_block(file, made.what, strlen(made.what));
    status = write_model(file, graph, outputs, error);
    if (status == CLV_OK) status = write_tensors(file, graph, made.inputs, graph->inputs, made.input_count, error);
    if (status == CLV_OK) status = write_tensors(file, graph, outputs, graph->outputs, graph->output_count, error);
    for (uint32_t i = 0; i < graph->output_count; ++i) clv__release(clv__allocator_default(), outputs[i].data);
  }
  clv__check_case_finish(&made);
  return status;
}

int main(int argc, char **argv) {
  FILE *file = argc > 1 ? fopen(argv[1], "wb") : NULL;
  if (file == NULL) {
    fprintf(stderr, "usage: write_cases F [SEED]\n");
    return 2;
  }
  const uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
  clv_error error = {0};
  clv_status status = CLV_OK;
  for (uint32_t i = 0; status == CLV_OK && i < clv__check_case_count(); ++i) status = write_case(file, i, seed, &error);
  if (status != CLV_OK) fprintf(stderr, "%s\n", error.message);
  const bool is_written = ferror(file) == 0;
  return fclose(file) == 0 && is_written && status == CLV_OK ? 0 : 1;
}
