/* Runs a GNN over a generated graph on several devices, and compares the result with a run on one device. Builds against the
 * installed library:
 *   cc gnn.c $(pkg-config --cflags --libs cleave) -o gnn && ./gnn sage.onnx npu,cpu */
#include <cleave/cleave.h>
#include <stdio.h>

static clv_status run(const char *path, const char *list, clv_error *error) {
  clv_context *context = NULL;
  clv_devices *devices = NULL;
  clv_gnn_model *model = NULL;
  clv_gnn_graph *graph = NULL;
  clv_gnn_plan *plan = NULL;
  clv_gnn_run *run = NULL;
  clv_devices_options opened = CLV_DEVICES_OPTIONS_INIT;
  clv_gnn_generate_options generated = CLV_GNN_GENERATE_OPTIONS_INIT;
  clv_gnn_model_info about = {.struct_size = sizeof about};
  clv_gnn_plan_info planned = {.struct_size = sizeof planned};
  clv_tensor output = {.data = NULL}; /* the run gives its own memory */
  double difference = 0;
  opened.list = list;
  clv_status status = clv_context_create(NULL, &context, error);
  if (status == CLV_OK) status = clv_devices_open(context, &opened, &devices, error);
  if (status == CLV_OK) status = clv_gnn_model_read(context, path, &model, error);
  if (status == CLV_OK) clv_gnn_model_get_info(model, &about);
  generated.feature_count = about.feature_count; /* 1024 vertices with as many features as the model reads */
  if (status == CLV_OK) status = clv_gnn_graph_generate(context, &generated, &graph, error);
  if (status == CLV_OK) status = clv_gnn_plan_make(model, graph, devices, NULL, &plan, error);
  if (status == CLV_OK) clv_gnn_plan_get_info(plan, &planned);
  if (status == CLV_OK) status = clv_gnn_run_create(plan, &run, error);
  if (status == CLV_OK) status = clv_gnn_run_execute(run, NULL, &output, NULL, error);
  if (status == CLV_OK) status = clv_gnn_run_verify(run, NULL, &output, CLV_GNN_TOLERANCE, &difference, error);
  if (status == CLV_OK)
    printf("out [%lld,%lld] from %u subgraphs; the largest difference from one device is %.1e of the largest value\n",
           (long long)output.dims[0], (long long)output.dims[1], planned.k, difference);
  clv_gnn_run_destroy(run); /* in the reverse order of creation; all of these functions accept NULL */
  clv_gnn_plan_destroy(plan);
  clv_gnn_graph_destroy(graph);
  clv_gnn_model_destroy(model);
  clv_devices_close(devices);
  clv_context_destroy(context);
  return status;
}

int main(int argc, char **argv) {
  clv_error error = {0};
  if (argc < 2) {
    fprintf(stderr, "usage: gnn MODEL [DEVICES]\n");
    return 2;
  }
  if (run(argv[1], argc > 2 ? argv[2] : "npu,cpu", &error) == CLV_OK) return 0;
  fprintf(stderr, "gnn: %s\n", error.message);
  return 1;
}
