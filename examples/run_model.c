/* Runs a model on zeros and prints the first number of each output. Builds against the installed library:
 *   cc run_model.c $(pkg-config --cflags --libs cleave) -o run_model && ./run_model model.onnx npu,cpu */
#include <cleave/cleave.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  clv_context *context = NULL;
  clv_devices *devices = NULL;
  clv_graph *graph = NULL;
  clv_plan *plan = NULL;
  clv_session *session = NULL;
  clv_error error = {0};
  clv_devices_options options = CLV_DEVICES_OPTIONS_INIT;
  options.list = argc > 2 ? argv[2] : "cpu";
  clv_tensor inputs[8] = {{0}}, outputs[8] = {{0}};
  int failed = argc < 2 || clv_context_create(NULL, &context, &error) || clv_devices_open(context, &options, &devices, &error) ||
               clv_graph_load(context, argv[1], &graph, &error) || clv_plan_make(graph, devices, NULL, &plan, &error) ||
               clv_session_create(plan, NULL, &session, &error);
  for (uint32_t i = 0; !failed && i < clv_graph_input_count(graph) && i < 8; ++i) {
    inputs[i] = *clv_graph_input_type(graph, i);
    size_t bytes = clv_dtype_size_bytes(inputs[i].dtype);
    for (int32_t k = 0; k < inputs[i].rank; ++k) bytes *= (size_t)inputs[i].dims[k];
    inputs[i].data = calloc(bytes, 1);
  }
  failed =
      failed || clv_session_run(session, inputs, clv_graph_input_count(graph), outputs, clv_graph_output_count(graph), &error);
  for (uint32_t i = 0; !failed && i < clv_graph_output_count(graph); ++i) {
    printf("%s[0] = %g\n", clv_graph_output_name(graph, i), (double)*(float *)outputs[i].data);
  }
  if (failed) fprintf(stderr, "%s\n", argc < 2 ? "usage: run_model MODEL.onnx [DEVICES]" : error.message);
  for (int i = 0; i < 8; ++i) free(inputs[i].data);
  clv_session_destroy(session);
  clv_plan_destroy(plan);
  clv_graph_destroy(graph);
  clv_devices_close(devices);
  clv_context_destroy(context);
  return failed != 0;
}
