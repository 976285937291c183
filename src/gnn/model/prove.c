/* Checks a model that was recognised in an ONNX graph: on a random input graph, the model and the ONNX graph must compute the
 * same results. */
#include <math.h>

#include "analysis/evaluate.h"
#include "gnn/data/graph.h"
#include "gnn/model/block.h"
#include "gnn/model/find.h"

enum { FEW_VERTICES = 13, FEW_EDGES = 40, MOST_VERTICES = 100000, MOST_EDGES = 1000000 };
#define TOLERANCE 1e-4

typedef struct proof {
  const clv__finder *f;
  uint32_t n;
  int64_t m;
  clv_tensor features, edges;
  uint32_t *sources, *destinations;
  clv__gnn_graph *graph, *looped;
  float *degrees;
} proof;

/* Chooses the sizes of the random graph: those that the model was exported for, or small ones if its sizes are open. */
static clv_status choose_sizes(proof *p) {
  const clv_tensor *x = &p->f->shapes->types[p->f->features], *edges = &p->f->shapes->types[p->f->edges];
  int64_t n = x->dims[0] >= 0 ? x->dims[0] : FEW_VERTICES;
  p->m = edges->dims[1] >= 0 ? edges->dims[1] : FEW_EDGES;
  if (n < 1 || n > MOST_VERTICES || p->m > MOST_EDGES || (edges->dims[0] >= 0 && edges->dims[0] != 2))
    return clv__error_set(
        p->f->error, CLV_NOT_SUPPORTED,
        "it was exported for %lld vertices and [%lld,%lld] edges, which are too many or not valid: export it with dynamic sizes",
        (long long)n, (long long)edges->dims[0], (long long)p->m);
  p->n = (uint32_t)n;
  return CLV_OK;
}

/* Creates one self loop, at vertex 0. If there are more than two vertices, the last one has no edges. */
static void fill_edges(proof *p) {
  uint32_t connected = p->n > 2 ? p->n - 1 : p->n;
  for (int64_t e = 0; e < p->m; ++e) {
    uint64_t bits = clv__mix64((uint64_t)e);
    uint32_t from = (uint32_t)(bits % connected), to = (uint32_t)((bits >> 32) % connected);
    if (from == to) to = (to + 1) % connected;
    if (e == 0) from = to = 0;
    p->sources[e] = e % 8 == 7 ? p->sources[e - 1] : from; /* repeats some edges */
    p->destinations[e] = e % 8 == 7 ? p->destinations[e - 1] : to;
    clv__tensor_put(&p->edges, (size_t)e, 0, p->sources[e], false);
    clv__tensor_put(&p->edges, (size_t)(p->m + e), 0, p->destinations[e], false);
  }
}

static clv_status make_inputs(proof *p, uint32_t feature_count) {
  const clv__finder *f = p->f;
  const int64_t x[] = {p->n, feature_count}, e[] = {2, p->m};
  size_t x_count = (size_t)p->n * feature_count, e_count = (size_t)p->m;
  p->features = clv__tensor_make(CLV_F32, 2, x, clv__allocate(f->allocator, x_count * sizeof(float)));
  p->edges = clv__tensor_make(f->shapes->types[f->edges].dtype, 2, e, clv__allocate(f->allocator, 2 * e_count * sizeof(int64_t)));
  p->sources = clv__allocate(f->allocator, e_count * sizeof *p->sources);
  p->destinations = clv__allocate(f->allocator, e_count * sizeof *p->destinations);
  p->degrees = clv__allocate(f->allocator, p->n * sizeof *p->degrees);
  if (p->features.data == NULL || p->edges.data == NULL || p->sources == NULL || p->destinations == NULL || p->degrees == NULL)
    return clv__error_memory(f->error, x_count * sizeof(float));
  for (size_t i = 0; i < x_count; ++i) ((float *)p->features.data)[i] = (float)(clv__mix64(i) >> 40) * 0x1p-23f - 1;
  fill_edges(p);
  CLV__TRY(clv__gnn_graph_make(f->allocator, p->n, (uint64_t)p->m, p->sources, p->destinations, NULL, NULL, &p->graph, f->error));
  CLV__TRY(clv__gnn_graph_with_loops(p->graph, &p->looped, f->error));
  const uint64_t *offsets = p->looped->csr.offsets;
  for (uint32_t v = 0; v < p->n; ++v) p->degrees[v] = (float)(offsets[v + 1] - offsets[v]);
  return CLV_OK;
}

static clv_tensor index_of(clv_dtype dtype, int64_t count, const void *data) {
  return clv__tensor_make(dtype, 1, &count, (void *)(uintptr_t)data);
}

static clv_status run_layer(const proof *p, const clv__gnn_model *model, uint32_t number, const clv_tensor *x, clv_tensor *out) {
  const clv__csr *csr = model->type == CLV__GNN_SAGE ? &p->graph->csr : &p->looped->csr;
  const clv__block_form form = clv__block_form_fixed((clv__layer_sizes){p->n, p->n, csr->edge_count});
  clv__layer_values values = {0};
  clv_tensor inputs[CLV__LAYER_VALUES];
  clv__stages stages;
  clv__block block;
  clv__stages_of(model->type, &model->layers[number], CLV_F32, &stages);
  values.items[CLV__VALUE_ROWS] = *x;
  values.items[CLV__VALUE_OFFSETS] = index_of(CLV_I64, (int64_t)p->n + 1, csr->offsets);
  values.items[CLV__VALUE_SOURCES] = index_of(CLV_I32, (int64_t)csr->edge_count, csr->sources);
  values.items[CLV__VALUE_DEGREES] = clv__tensor_make(CLV_F32, 2, (const int64_t[]){p->n, 1}, p->degrees);
  clv_status status = clv__block_make(p->f->allocator, &stages, 0, stages.count, &form, &block, p->f->error);
  for (uint32_t i = 0; status == CLV_OK && i < block.input_count; ++i) inputs[i] = values.items[block.inputs[i]];
  if (status == CLV_OK) status = clv__graph_evaluate(block.graph, inputs, NULL, out, NULL, NULL, p->f->allocator, p->f->error);
  clv__block_finish(&block);
  return status;
}

static clv_status run_model(const proof *p, const clv__gnn_model *model, clv_tensor *out) {
  *out = p->features;
  for (uint32_t i = 0; i < model->layer_count; ++i) {
    clv_tensor next = {0};
    clv_status status = run_layer(p, model, i, out, &next);
    if (out->data != p->features.data) clv__release(p->f->allocator, out->data);
    *out = next;
    if (status != CLV_OK) {
      out->data = NULL;
      return clv__error_prefix(p->f->error, status, "layer %u", i);
    }
  }
  return CLV_OK;
}

static clv_status run_graph(const proof *p, clv_tensor *out) {
  const clv_graph *graph = p->f->graph;
  clv_tensor *inputs = clv__allocate_zero(p->f->allocator, (graph->input_count + 1) * sizeof *inputs);
  if (inputs == NULL) return clv__error_memory(p->f->error, graph->input_count * sizeof *inputs);
  for (uint32_t i = 0; i < graph->input_count; ++i) {
    if (graph->inputs[i] == p->f->features) inputs[i] = p->features;
    if (graph->inputs[i] == p->f->edges) inputs[i] = p->edges;
  }
  clv_status status = clv__graph_evaluate(graph, inputs, NULL, out, NULL, NULL, p->f->allocator, p->f->error);
  clv__release(p->f->allocator, inputs);
  return status;
}

static clv_status compare(const proof *p, const clv__gnn_model *model, const clv_tensor *wanted, const clv_tensor *made) {
  static const char *const types[] = {[CLV__GNN_SAGE] = "GraphSAGE", [CLV__GNN_GCN] = "GCN", [CLV__GNN_GAT] = "GAT"};
  size_t count, worst = 0;
  double largest = 1e-3, off = 0;
  if (wanted->dtype != CLV_F32 || !clv__tensor_same_type(wanted, made) || !clv__tensor_count(made, &count)) {
    char is[96], found[96];
    clv__tensor_text(wanted, is, sizeof is);
    clv__tensor_text(made, found, sizeof found);
    return clv__error_set(p->f->error, CLV_NOT_SUPPORTED, "its output is %s, but the %u layers of %s found in it produce %s", is,
                          model->layer_count, types[model->type], found);
  }
  const float *a = wanted->data, *b = made->data;
  for (size_t i = 0; i < count; ++i) {
    double by = isfinite(a[i]) && isfinite(b[i]) ? fabs((double)a[i] - (double)b[i]) : INFINITY;
    if (isfinite(a[i])) largest = fmax(largest, fabs((double)a[i]));
    if (by > off) worst = i;
    off = fmax(off, by);
  }
  if (off <= TOLERANCE * largest) return CLV_OK;
  return clv__error_set(p->f->error, CLV_NOT_SUPPORTED,
                        "it looks like %u layers of %s, but computes %g instead of %g on a random graph: it may lack self loops, "
                        "compute another mean, or use edge weights",
                        model->layer_count, types[model->type], (double)a[worst], (double)b[worst]);
}

clv_status clv__gnn_model_prove(const clv__finder *f, const clv__gnn_model *model) {
  proof p = {.f = f};
  clv_tensor wanted = {0}, made = {0};
  clv_status status;
  CLV__TRY_GOTO(choose_sizes(&p));
  CLV__TRY_GOTO(make_inputs(&p, model->layers[0].in));
  status = run_graph(&p, &wanted);
  if (status != CLV_OK) {
    clv__error_prefix(f->error, status, "on a random graph with %u vertices", p.n);
    goto cleanup;
  }
  CLV__TRY_GOTO(run_model(&p, model, &made));
  status = compare(&p, model, &wanted, &made);
cleanup:
  clv__release(f->allocator, wanted.data);
  clv__release(f->allocator, made.data);
  clv__gnn_graph_destroy(p.looped);
  clv__gnn_graph_destroy(p.graph);
  clv__release(f->allocator, p.degrees);
  clv__release(f->allocator, p.destinations);
  clv__release(f->allocator, p.sources);
  clv__release(f->allocator, p.edges.data);
  clv__release(f->allocator, p.features.data);
  return status;
}
