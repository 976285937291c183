/* Runs a model on zeros and prints the shape and the first number of each output; sizes that the model leaves open are 1. Builds
 * against the installed library:
 *   cc run_model.c $(pkg-config --cflags --libs cleave) -o run_model && ./run_model model.onnx npu,cpu */
#include <cleave/cleave.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct program {
  clv_context *context;
  clv_devices *devices;
  clv_graph *graph;
  clv_plan *plan;
  clv_session *session;
  uint32_t input_count, output_count;
  clv_tensor *inputs, *outputs;
} program;

/* Stores an error that this program itself found: `what`, then the quoted name. Returns the error's status. */
static clv_status fail(clv_error *error, const char *what, const char *name) {
  error->status = CLV_INVALID_ARGUMENT;
  snprintf(error->message, sizeof error->message, "%s '%s'", what, name);
  return error->status;
}

/* Allocates zeros for every input that has no default value, and lists the shapes of these inputs for the plan. */
static clv_status make_inputs(program *p, clv_size *sizes, uint32_t *size_count, clv_error *error) {
  for (uint32_t i = 0; i < p->input_count; ++i) {
    const clv_tensor *declared = clv_graph_input_type(p->graph, i);
    if (declared->data != NULL) continue; /* the dtype stays none, so the run takes the default */
    const char *name = clv_graph_input_name(p->graph, i);
    size_t size_bytes = clv_dtype_size_bytes(declared->dtype);
    if (declared->rank < 0 || size_bytes == 0)
      return fail(error, "unknown rank, or several elements per byte: cannot create zeros for input", name);
    clv_size *size = &sizes[(*size_count)++];
    size->name = name;
    size->rank = declared->rank;
    p->inputs[i] = *declared;
    for (int32_t d = 0; d < declared->rank; ++d) {
      if (declared->dims[d] < 0) p->inputs[i].dims[d] = 1;
      size->dims[d] = p->inputs[i].dims[d];
      size_bytes *= (size_t)size->dims[d];
    }
    p->inputs[i].data = calloc(size_bytes > 0 ? size_bytes : 1, 1);
    if (p->inputs[i].data == NULL) return fail(error, "not enough memory for input", name);
  }
  return CLV_OK;
}

static clv_status run(program *p, const char *path, const char *device_list, clv_error *error) {
  clv_devices_options devices = CLV_DEVICES_OPTIONS_INIT;
  clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
  clv_status status = clv_context_create(NULL, &p->context, error);
  devices.list = device_list;
  if (status == CLV_OK) status = clv_devices_open(p->context, &devices, &p->devices, error);
  if (status == CLV_OK) status = clv_graph_load(p->context, path, &p->graph, error);
  if (status != CLV_OK) return status;
  p->input_count = clv_graph_input_count(p->graph);
  p->output_count = clv_graph_output_count(p->graph);
  p->inputs = calloc(p->input_count + 1, sizeof *p->inputs);
  p->outputs = calloc(p->output_count + 1, sizeof *p->outputs);
  clv_size *sizes = calloc(p->input_count + 1, sizeof *sizes);
  if (p->inputs == NULL || p->outputs == NULL || sizes == NULL)
    status = fail(error, "not enough memory for the inputs of", path);
  else
    status = make_inputs(p, sizes, &options.size_count, error);
  options.sizes = sizes;
  if (status == CLV_OK) status = clv_plan_make(p->graph, p->devices, &options, &p->plan, error);
  free(sizes);
  if (status == CLV_OK) status = clv_session_create(p->plan, NULL, &p->session, error);
  if (status == CLV_OK) status = clv_session_run(p->session, p->inputs, p->input_count, p->outputs, p->output_count, error);
  return status;
}

static void print_output(const char *name, const clv_tensor *output) {
  size_t count = 1;
  printf("%s %s[", name, clv_dtype_name(output->dtype));
  for (int32_t d = 0; d < output->rank; ++d) {
    printf("%s%" PRId64, d > 0 ? "," : "", output->dims[d]);
    count *= (size_t)output->dims[d];
  }
  printf("]");
  if (count > 0 && output->dtype == CLV_F32) printf(" first %g", (double)*(const float *)output->data);
  if (count > 0 && output->dtype == CLV_I64) printf(" first %" PRId64, *(const int64_t *)output->data);
  printf("\n");
}

int main(int argc, char **argv) {
  program p = {0};
  clv_error error = {0};
  if (argc < 2) {
    fprintf(stderr, "usage: run_model MODEL.onnx [DEVICES]\n");
    return 2;
  }
  clv_status status = run(&p, argv[1], argc > 2 ? argv[2] : "cpu", &error);
  for (uint32_t i = 0; status == CLV_OK && i < p.output_count; ++i) {
    print_output(clv_graph_output_name(p.graph, i), &p.outputs[i]); /* the data is the session's memory: nothing to free */
  }
  if (status != CLV_OK) fprintf(stderr, "run_model: %s\n", error.message);
  for (uint32_t i = 0; p.inputs != NULL && i < p.input_count; ++i) free(p.inputs[i].data);
  free(p.inputs);
  free(p.outputs);
  clv_session_destroy(p.session); /* in the reverse order of creation; all of these functions accept NULL */
  clv_plan_destroy(p.plan);
  clv_graph_destroy(p.graph);
  clv_devices_close(p.devices);
  clv_context_destroy(p.context);
  return status == CLV_OK ? 0 : 1;
}
