/* The shortest program that runs a model: it runs the model on zeros and prints the output's first number. The model must have
 * one input, of fixed shape and at most 4 MiB, and an f32 output. run_model.c runs any model.
 *   cc minimal.c $(pkg-config --cflags --libs cleave) -o minimal && ./minimal model.onnx */
#include <cleave/cleave.h>
#include <stdio.h>

int main(int argc, char **argv) {
  static float zeros[1 << 20];
  clv_session *session = NULL;
  clv_error error = {0};
  clv_tensor input, output = {0};
  clv_status failed = clv_session_open(argc > 1 ? argv[1] : "model.onnx", NULL, &session, &error);
  if (!failed) input = *clv_graph_input_type(clv_session_graph(session), 0), input.data = zeros;
  if (!failed) failed = clv_session_run(session, &input, 1, &output, 1, &error);
  if (failed)
    fprintf(stderr, "%s\n", error.message);
  else
    printf("%s: %g\n", clv_graph_output_name(clv_session_graph(session), 0), (double)*(const float *)output.data);
  clv_session_destroy(session);
  return failed != CLV_OK;
}
