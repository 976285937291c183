/* Describes a graph and its parts for programs: see cleave/gnn.h. */
#include "base/document.h"
#include "base/error.h"
#include "base/options.h"
#include "device/device.h"
#include "gnn/data/figures.h"
#include "report/gnn/own.h"
#include "report/json.h"
#include "report/label.h"
#include "report/table.h"

/* The figures of one partitioning. */
typedef struct cut {
  const clv__membership *membership;
  clv__cut_figures figures;
  json_t *subgraphs; /* NULL unless they are listed */
} cut;

typedef struct inspection {
  const clv_allocator *allocator;
  const char *name;
  const clv__gnn_graph *graph;
  clv__graph_figures figures;
  cut *cuts;
  uint32_t cut_count;
} inspection;

static json_t *count(uint64_t number) {
  return json_integer((json_int_t)number);
}

static json_t *subgraphs_json(const clv__partitioned *partitioned) {
  json_t *list = json_array();
  for (uint32_t p = 0; p < partitioned->k; ++p) {
    const clv__subgraph *sub = &partitioned->subgraphs[p];
    json_t *object = json_object();
    json_object_set_new(object, "owned", json_integer(sub->owned_count));
    json_object_set_new(object, "halo", json_integer(sub->halo_count));
    json_object_set_new(object, "in_edges", count(sub->edge_count));
    json_object_set_new(object, "cut_edges", count(sub->cut_edge_count));
    json_array_append_new(list, object);
  }
  return list;
}

static clv_status make_cut(const inspection *in, const clv_gnn_parts *parts, bool lists, cut *made, clv_error *error) {
  clv__partitioned partitioned;
  CLV__TRY(clv__partitioned_make(in->allocator, in->graph, &parts->membership, &partitioned, error));
  made->membership = &parts->membership;
  clv__cut_figures_make(&partitioned, &made->figures);
  if (lists) made->subgraphs = subgraphs_json(&partitioned);
  clv__partitioned_finish(&partitioned);
  return CLV_OK;
}

/* ---- JSON ---- */

static json_t *range_json(const clv__range *range) {
  json_t *object = json_object();
  json_object_set_new(object, "min", count(range->least));
  json_object_set_new(object, "max", count(range->most));
  return object;
}

static json_t *cut_json(cut *c) {
  json_t *object = json_object();
  json_object_set_new(object, "k", json_integer(c->membership->k));
  json_object_set_new(object, "owned", range_json(&c->figures.owned));
  json_object_set_new(object, "halo", range_json(&c->figures.halo));
  json_object_set_new(object, "in_edges", range_json(&c->figures.in_edges));
  json_object_set_new(object, "cut_edges", count(c->figures.cut_edges));
  json_object_set_new(object, "communication_volume", count(c->figures.communication_volume));
  json_object_set_new(object, "empty_parts", json_integer(c->figures.empty));
  json_object_set_new(object, "metis_seconds", clv__json_real(c->membership->metis_seconds));
  json_object_set_new(object, "cached", json_boolean(c->membership->from_cache));
  if (c->subgraphs != NULL) json_object_set_new(object, "subgraphs", c->subgraphs);
  c->subgraphs = NULL;
  return object;
}

static json_t *make_json(inspection *in, const char *hash) {
  const clv__gnn_graph *graph = in->graph;
  json_t *root = json_object();
  json_object_set_new(root, "graph", clv__json_text(in->name));
  json_object_set_new(root, "hash", clv__json_text(hash));
  json_object_set_new(root, "vertices", json_integer(graph->csr.vertex_count));
  json_object_set_new(root, "edges", count(graph->csr.edge_count));
  json_object_set_new(root, "in_degree", range_json(&in->figures.in_degree));
  json_object_set_new(root, "out_degree", range_json(&in->figures.out_degree));
  json_object_set_new(root, "without_in_edges", count(in->figures.sourceless));
  json_object_set_new(root, "isolated", count(in->figures.isolated));
  json_object_set_new(root, "self_loops", count(in->figures.loops));
  json_object_set_new(root, "repeated_edges", count(in->figures.repeated));
  json_object_set_new(root, "rows_bytes", count(in->figures.rows_bytes));
  json_object_set_new(root, "features", json_integer(graph->features.dtype != CLV_DTYPE_NONE ? graph->features.dims[1] : 0));
  json_object_set_new(root, "has_labels", json_boolean(graph->labels.dtype != CLV_DTYPE_NONE));
  json_t *per_k = json_array();
  for (uint32_t i = 0; i < in->cut_count; ++i) json_array_append_new(per_k, cut_json(&in->cuts[i]));
  json_object_set_new(root, "per_k", per_k);
  return root;
}

/* ---- Text ---- */

static void append_graph(const inspection *in, clv__text *text) {
  const clv__csr *csr = &in->graph->csr;
  const clv__graph_figures *f = &in->figures;
  char first[CLV__LABEL_BYTES], second[CLV__LABEL_BYTES];
  double mean = csr->vertex_count > 0 ? (double)csr->edge_count / csr->vertex_count : 0;
  clv__label_name(text, in->name);
  clv__text_append(text, "\n  vertices     %s\n", clv__label_grouped(csr->vertex_count, first));
  clv__text_append(text, "  edges        %s (%.3g per vertex), %s in memory\n", clv__label_grouped(csr->edge_count, first), mean,
                   clv__label_size(f->rows_bytes, second));
  clv__text_append(text, "  in-degree    %s to %s", clv__label_grouped(f->in_degree.least, first),
                   clv__label_grouped(f->in_degree.most, second));
  clv__text_append(text, "; %s without in-edges\n", clv__label_grouped(f->sourceless, first));
  clv__text_append(text, "  out-degree   %s to %s\n", clv__label_grouped(f->out_degree.least, first),
                   clv__label_grouped(f->out_degree.most, second));
  clv__text_append(text, "  isolated     %s of the vertices\n", clv__label_grouped(f->isolated, first));
  clv__text_append(text, "  self loops   %s of the edges\n", clv__label_grouped(f->loops, first));
  clv__text_append(text, "  repeated     %s of the edges\n", clv__label_grouped(f->repeated, first));
  if (in->graph->features.dtype == CLV_DTYPE_NONE) {
    clv__text_append(text, "  features     none\n");
  } else {
    uint64_t columns = (uint64_t)in->graph->features.dims[1];
    clv__text_append(text, "  features     %s per vertex, %s\n", clv__label_grouped(columns, first),
                     clv__label_size(columns * csr->vertex_count * sizeof(float), second));
  }
  clv__text_append(text, "  labels       %s\n", in->graph->labels.dtype == CLV_DTYPE_NONE ? "none" : "one per vertex");
}

static void range_cell(clv__table *table, const clv__range *range) {
  char first[CLV__LABEL_BYTES], second[CLV__LABEL_BYTES];
  clv__table_cell(table, "%s", clv__label_grouped(range->least, first));
  clv__table_cell(table, "%s", clv__label_grouped(range->most, second));
}

static void append_cuts(const inspection *in, bool bold, clv__text *text) {
  static const char *const titles[] = {"k",    "least owned", "most",  "least halo", "most", "least in-edges",
                                       "most", "cut edges",   "share", "volume",     "METIS"};
  clv__table table;
  char label[CLV__LABEL_BYTES];
  clv__table_init(&table, in->allocator, "rrrrrrrrrrr", true);
  for (size_t i = 0; i < sizeof titles / sizeof *titles; ++i) clv__table_cell(&table, "%s", titles[i]);
  for (uint32_t i = 0; i < in->cut_count; ++i) {
    const cut *c = &in->cuts[i];
    double share = in->graph->csr.edge_count > 0 ? 100.0 * (double)c->figures.cut_edges / (double)in->graph->csr.edge_count : 0;
    clv__table_cell(&table, "%u", c->membership->k);
    range_cell(&table, &c->figures.owned);
    range_cell(&table, &c->figures.halo);
    range_cell(&table, &c->figures.in_edges);
    clv__table_cell(&table, "%s", clv__label_grouped(c->figures.cut_edges, label));
    clv__table_cell(&table, "%.1f %%", share);
    clv__table_cell(&table, "%s", clv__label_grouped(c->figures.communication_volume, label));
    if (c->membership->metis_seconds > 0)
      clv__table_cell(&table, "%s", clv__label_time((uint64_t)(1e9 * c->membership->metis_seconds), label));
    else
      clv__table_cell(&table, "%s", c->membership->from_cache ? "cached" : "not used");
  }
  clv__text_append(text, "\n");
  clv__table_write(&table, 0, bold, text);
  clv__table_finish(&table);
}

/* ---- The function ---- */

static clv_status inspect(inspection *in, const clv_gnn_graph_report_options *how, clv_form form, clv_error *error) {
  CLV__TRY(clv__graph_figures_make(in->allocator, &in->graph->csr, &in->figures, error));
  for (; in->cut_count < how->part_count; ++in->cut_count) {
    const clv_gnn_parts *parts = how->parts[in->cut_count];
    if (parts == NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "parts[%u] is NULL", in->cut_count);
    CLV__TRY(make_cut(in, parts, how->list_subgraphs && form == CLV_FORM_JSON, &in->cuts[in->cut_count], error));
  }
  return CLV_OK;
}

static clv_status give(inspection *in, const char *hash, clv_form form, char **text, clv_error *error) {
  clv__text written;
  if (form == CLV_FORM_JSON) return clv__json_give(make_json(in, hash), in->allocator, text, error);
  clv__text_init(&written, in->allocator);
  append_graph(in, &written);
  if (in->cut_count > 0) append_cuts(in, form == CLV_FORM_TERMINAL, &written);
  return clv__document_give(&written, text, error);
}

clv_status clv_gnn_graph_report(const clv_gnn_graph *graph, const clv_gnn_graph_report_options *options, clv_form form,
                                char **text, clv_error *error) {
  clv_gnn_graph_report_options how = CLV_GNN_GRAPH_REPORT_OPTIONS_INIT;
  CLV__TRY(clv__document_check(form, text, error));
  CLV__TRY(clv__argument_check(graph, "graph", error));
  CLV__TRY(clv__options_read(&how, sizeof how, options, "CLV_GNN_GRAPH_REPORT_OPTIONS_INIT", error));
  CLV__TRY(clv__options_list(how.parts, how.part_count, "parts", error));
  inspection in = {.allocator = clv__context_allocator(graph->context), .name = graph->name, .graph = graph->graph};
  in.cuts = clv__allocate_zero(in.allocator, ((size_t)how.part_count + 1) * sizeof *in.cuts);
  if (in.cuts == NULL) return clv__error_memory(error, ((size_t)how.part_count + 1) * sizeof *in.cuts);
  clv_status status = inspect(&in, &how, form, error);
  if (status != CLV_OK) clv__error_prefix(error, status, "%s", graph->name);
  if (status == CLV_OK) status = give(&in, graph->hash, form, text, error);
  for (uint32_t i = 0; i < in.cut_count; ++i) json_decref(in.cuts[i].subgraphs);
  clv__release(in.allocator, in.cuts);
  return status;
}
