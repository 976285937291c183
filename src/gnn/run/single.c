/* See single.h. */
#include "gnn/run/single.h"

#include <string.h>

#include "gnn/run/sweep.h"

/* A layer: one block or, for a large graph, a block of the stages that compute all rows, and then a sweep (sweep.h) over the
 * other stages. */
typedef struct single_layer {
  clv__block_run whole;   /* unused if its session is NULL */
  clv__block_sweep sweep; /* unused if its run's session is NULL */
} single_layer;

struct clv__gnn_single {
  const clv_allocator *allocator;
  const clv__gnn_model *model;
  const clv__gnn_graph *graph; /* provides the features */
  clv__gnn_graph *looped;      /* for GCN and GAT: the graph with self loops; otherwise NULL */
  const clv__csr *csr;         /* the rows that are aggregated over */
  float *degrees;              /* in-edges of each vertex; NULL unless the model is a GCN */
  float *between[2];           /* the results of all layers but the last; consecutive layers alternate between the two buffers */
  single_layer *layers;
};

clv_status clv__gnn_check_fit(const clv__gnn_model *model, const clv__gnn_graph *graph, clv_error *error) {
  if (graph->features.dtype == CLV_DTYPE_NONE)
    return clv__error_set(
        error, CLV_INVALID_ARGUMENT,
        "the graph has no features, but the model reads %u per vertex: add an array 'x' [%u, %u], or use --x FILE "
        "or --features %u",
        model->layers[0].in, graph->csr.vertex_count, model->layers[0].in, model->layers[0].in);
  if (graph->features.dims[1] != model->layers[0].in)
    return clv__error_set(error, CLV_INVALID_ARGUMENT,
                          "the graph has %lld features per vertex, but layer 0 of the model reads %u",
                          (long long)graph->features.dims[1], model->layers[0].in);
  return CLV_OK;
}

static clv_status make_degrees(clv__gnn_single *single, clv_error *error) {
  const clv__csr *csr = single->csr;
  single->degrees = clv__allocate(single->allocator, (size_t)csr->vertex_count * sizeof *single->degrees);
  if (single->degrees == NULL) return clv__error_memory(error, (size_t)csr->vertex_count * sizeof *single->degrees);
  for (uint32_t v = 0; v < csr->vertex_count; ++v) single->degrees[v] = (float)(csr->offsets[v + 1] - csr->offsets[v]);
  return CLV_OK;
}

static clv_status make_between(clv__gnn_single *single, clv_error *error) {
  size_t widest = 0, count, size_bytes;
  for (uint32_t i = 0; i + 1 < single->model->layer_count; ++i) {
    uint32_t width = clv__gnn_layer_width(&single->model->layers[i]);
    if (width > widest) widest = width;
  }
  if (!clv__multiply(single->csr->vertex_count, widest, &count) || !clv__multiply(count, sizeof(float), &size_bytes))
    return clv__error_memory(error, SIZE_MAX);
  for (uint32_t i = 0; i < 2 && i + 1 < single->model->layer_count; ++i) {
    single->between[i] = clv__allocate(single->allocator, size_bytes);
    if (single->between[i] == NULL) return clv__error_memory(error, size_bytes);
  }
  return CLV_OK;
}

static clv_status open_layer(clv__gnn_single *single, clv_devices *devices, uint32_t device, const clv__stages *stages,
                             single_layer *layer, clv_error *error) {
  const clv__csr *csr = single->csr;
  const clv__block_form form = clv__block_form_fixed((clv__layer_sizes){csr->vertex_count, csr->vertex_count, csr->edge_count});
  uint32_t swept_from = clv__stages_sweep_from(stages);
  clv__sweep sweep = {0, 0};
  if (swept_from < stages->count) sweep = clv__sweep_find(stages, swept_from, stages->count, csr);
  if (sweep.piece == 0) swept_from = stages->count;
  clv__block block;
  if (swept_from > 0) {
    clv_status status = clv__block_make(single->allocator, stages, 0, swept_from, &form, &block, error);
    if (status != CLV_OK) return status;
    CLV__TRY(clv__block_open(devices, device, &block, NULL, &layer->whole, error));
  }
  if (swept_from == stages->count) return CLV_OK;
  return clv__block_sweep_open(devices, device, stages, swept_from, stages->count, csr, &sweep, &layer->sweep, error);
}

static clv_status open_layers(clv__gnn_single *single, clv_devices *devices, uint32_t device, clv_error *error) {
  const clv__gnn_model *model = single->model;
  single->layers = clv__allocate_zero(single->allocator, model->layer_count * sizeof *single->layers);
  if (single->layers == NULL) return clv__error_memory(error, model->layer_count * sizeof *single->layers);
  for (uint32_t i = 0; i < model->layer_count; ++i) {
    clv__stages stages;
    clv__stages_of(model->type, &model->layers[i], CLV_F32, &stages);
    clv_status status = open_layer(single, devices, device, &stages, &single->layers[i], error);
    if (status != CLV_OK) return clv__error_prefix(error, status, "layer %u", i);
  }
  return CLV_OK;
}

clv_status clv__gnn_single_create(clv_devices *devices, uint32_t device, const clv__gnn_model *model, const clv__gnn_graph *graph,
                                  clv__gnn_single **out, clv_error *error) {
  const clv_allocator *allocator = clv__context_allocator(devices->context);
  *out = NULL;
  CLV__TRY(clv__gnn_check_fit(model, graph, error));
  clv__gnn_single *single = clv__allocate_zero(allocator, sizeof *single);
  if (single == NULL) return clv__error_memory(error, sizeof *single);
  *single = (clv__gnn_single){.allocator = allocator, .model = model, .graph = graph, .csr = &graph->csr};
  clv_status status = CLV_OK;
  if (model->type != CLV__GNN_SAGE) {
    CLV__TRY_GOTO(clv__gnn_graph_with_loops(graph, &single->looped, error));
    single->csr = &single->looped->csr;
  }
  if (model->type == CLV__GNN_GCN) CLV__TRY_GOTO(make_degrees(single, error));
  CLV__TRY_GOTO(make_between(single, error));
  CLV__TRY_GOTO(open_layers(single, devices, device, error));
  *out = single;
  return CLV_OK;
cleanup:
  clv__gnn_single_destroy(single);
  return status;
}

void clv__gnn_single_destroy(clv__gnn_single *single) {
  if (single == NULL) return;
  for (uint32_t i = 0; single->layers != NULL && i < single->model->layer_count; ++i) {
    clv__block_sweep_close(&single->layers[i].sweep);
    clv__block_close(&single->layers[i].whole);
  }
  clv__release(single->allocator, single->layers);
  for (uint32_t i = 0; i < 2; ++i) clv__release(single->allocator, single->between[i]);
  clv__release(single->allocator, single->degrees);
  clv__gnn_graph_destroy(single->looped);
  clv__release(single->allocator, single);
}

/* Casting away const is safe: the session only reads its inputs. */
static clv_tensor given(clv_dtype dtype, int64_t count, const void *data) {
  return clv__tensor_make(dtype, 1, &count, (void *)(uintptr_t)data);
}

static clv_tensor rows_of(const clv__csr *csr, uint32_t columns, void *data) {
  return clv__tensor_make(CLV_F32, 2, (const int64_t[]){csr->vertex_count, columns}, data);
}

clv_status clv__gnn_single_run(clv__gnn_single *single, const clv_tensor *features, clv_tensor *out, clv_error *error) {
  const clv__gnn_model *model = single->model;
  const clv__csr *csr = single->csr;
  clv_tensor rows = features != NULL ? *features : single->graph->features;
  for (uint32_t i = 0; i < model->layer_count; ++i) {
    clv__layer_values values = {0};
    clv_tensor *result = &values.items[CLV__VALUE_RESULT];
    values.items[CLV__VALUE_ROWS] = values.items[CLV__VALUE_OWN] = rows;
    values.items[CLV__VALUE_OFFSETS] = given(CLV_I64, (int64_t)csr->vertex_count + 1, csr->offsets);
    values.items[CLV__VALUE_SOURCES] = given(CLV_I32, (int64_t)csr->edge_count, csr->sources);
    if (single->degrees != NULL) values.items[CLV__VALUE_DEGREES] = rows_of(csr, 1, single->degrees);
    *result = rows_of(csr, clv__gnn_layer_width(&model->layers[i]), single->between[i % 2]);
    if (i + 1 == model->layer_count) *result = *out;
    single_layer *layer = &single->layers[i];
    clv_status status = layer->whole.session != NULL ? clv__block_execute(&layer->whole, &values, error) : CLV_OK;
    if (status == CLV_OK && layer->sweep.run.session != NULL) status = clv__block_sweep_execute(&layer->sweep, &values, error);
    if (status != CLV_OK) return clv__error_prefix(error, status, "layer %u", i);
    rows = *result;
  }
  return CLV_OK;
}
