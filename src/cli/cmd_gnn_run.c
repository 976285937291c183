/* `cleave gnn run`: a model over a graph, layer by layer on the devices given. */
#include "cli/console.h"
#include "cli/gnn.h"
#include "cli/job.h"
#include "cli/json.h"
#include "formats/npz.h"
#include "gnn/single.h"
#include "report/label.h"

static const cli_option_id options[] = {OPTION_MODEL,         OPTION_GNN_GRAPH, OPTION_OUTPUT,  OPTION_DEVICES,  OPTION_NPU_SPEC,
                                        OPTION_DEVICE_OPTION, OPTION_PLUGIN,    OPTION_THREADS, OPTION_CACHE_DIR};

typedef struct running {
  cli_invocation *cli;
  const char *model_path, *graph_path, *output;
  clv__gnn_model *model;
  clv__gnn_graph *graph;
  clv_devices *devices;
  clv_tensor out;
  double load_ms, compile_ms, measured_ms;
} running;

static clv_status load(running *r, clv_error *error) {
  cli_invocation *cli = r->cli;
  uint64_t begin_ns = cli_now_ns();
  const clv_allocator *allocator = clv__context_allocator(cli->context);
  cli_progress(cli, "reading %s", r->model_path);
  CLV__TRY(clv__gnn_model_read(allocator, r->model_path, &r->model, error));
  cli_progress(cli, "reading %s", r->graph_path);
  CLV__TRY(clv__gnn_graph_read(allocator, r->graph_path, &r->graph, error));
  clv_status status = clv__gnn_check_fit(r->model, r->graph, error);
  if (status != CLV_OK) return clv__error_prefix(error, status, "%s", r->graph_path);
  r->load_ms = cli_ms(begin_ns, cli_now_ns());
  return cli_devices_open(cli, NULL, &r->devices, error);
}

static clv_status make_out(running *r, clv_error *error) {
  const int64_t dims[] = {r->graph->csr.vertex_count, clv__gnn_layer_width(&r->model->layers[r->model->layer_count - 1])};
  size_t size_bytes;
  r->out = clv__tensor_make(CLV_F32, 2, dims, NULL);
  if (!clv__tensor_size_bytes(&r->out, &size_bytes)) return clv__error_memory(error, SIZE_MAX);
  r->out.data = clv__allocate(r->cli->allocator, size_bytes);
  return r->out.data != NULL ? CLV_OK : clv__error_memory(error, size_bytes);
}

static clv_status compute(running *r, clv_error *error) {
  clv__gnn_single *single;
  uint64_t begin_ns = cli_now_ns();
  CLV__TRY(make_out(r, error));
  cli_progress(r->cli, "compiling %u layers", r->model->layer_count);
  CLV__TRY(clv__gnn_single_create(r->devices, CLV__NO_ID, r->model, r->graph, &single, error));
  r->compile_ms = cli_ms(begin_ns, cli_now_ns());
  cli_progress(r->cli, "running");
  begin_ns = cli_now_ns();
  clv_status status = clv__gnn_single_run(single, NULL, &r->out, error);
  r->measured_ms = cli_ms(begin_ns, cli_now_ns());
  clv__gnn_single_destroy(single);
  return status;
}

static clv_status tell(const running *r, clv_error *error) {
  cli_invocation *cli = r->cli;
  uint64_t peak_bytes = cli_peak_rss_bytes();
  if (cli->json) {
    json_t *root = json_object(), *devices = json_array();
    for (uint32_t d = 0; d < r->devices->count; ++d) json_array_append_new(devices, cli_json_text(r->devices->items[d].name));
    json_object_set_new(root, "model", cli_json_text(r->model_path));
    json_object_set_new(root, "graph", cli_json_text(r->graph_path));
    json_object_set_new(root, "devices", devices);
    json_object_set_new(root, "layers", json_integer(r->model->layer_count));
    json_object_set_new(root, "vertices", json_integer(r->graph->csr.vertex_count));
    json_object_set_new(root, "edges", json_integer((json_int_t)r->graph->csr.edge_count));
    json_object_set_new(root, "load_ms", cli_json_real(r->load_ms));
    json_object_set_new(root, "compile_ms", cli_json_real(r->compile_ms));
    json_object_set_new(root, "measured_ms", cli_json_real(r->measured_ms));
    json_object_set_new(root, "peak_rss_bytes", json_integer((json_int_t)peak_bytes));
    return cli_json_print(cli, root, error);
  }
  if (cli->quiet) return CLV_OK;
  clv__text text;
  char first[CLV__LABEL_BYTES], second[CLV__LABEL_BYTES], third[CLV__LABEL_BYTES];
  clv__text_init(&text, cli->allocator);
  clv__label_name(&text, r->model_path);
  clv__text_append(&text, " over ");
  clv__label_name(&text, r->graph_path);
  clv__text_append(&text, ": loaded in %s, compiled in %s, run in %s; ", clv__label_time((uint64_t)(1e6 * r->load_ms), first),
                   clv__label_time((uint64_t)(1e6 * r->compile_ms), second),
                   clv__label_time((uint64_t)(1e6 * r->measured_ms), third));
  clv__text_append(&text, "peak memory %s\n", clv__label_size(peak_bytes, first));
  return cli_print(cli, &text, error);
}

static clv_status run(running *r, clv_error *error) {
  static const char *const names[] = {"out"};
  CLV__TRY(load(r, error));
  CLV__TRY(compute(r, error));
  if (r->output != NULL) {
    cli_progress(r->cli, "writing %s", r->output);
    CLV__TRY(clv__npz_write(r->cli->allocator, r->output, names, &r->out, 1, false, error));
  }
  return tell(r, error);
}

static clv_status execute(cli_invocation *cli, clv_error *error) {
  running r = {.cli = cli,
               .model_path = cli_text(cli, OPTION_MODEL, NULL),
               .graph_path = cli_text(cli, OPTION_GNN_GRAPH, NULL),
               .output = cli_text(cli, OPTION_OUTPUT, NULL)};
  if (r.model_path == NULL) return cli_usage(cli, error, "--model FILE is missing: JSON or ONNX");
  if (r.graph_path == NULL) return cli_usage(cli, error, "--graph FILE is missing: npz, METIS's .graph or a list of edges");
  clv_status status = run(&r, error);
  clv__release(cli->allocator, r.out.data);
  clv_devices_close(r.devices);
  clv__gnn_graph_destroy(r.graph);
  clv__gnn_model_destroy(r.model);
  return status;
}

const cli_gnn_verb cli_gnn_verb_run = {"run", "", options, sizeof options / sizeof *options, execute};
