/* `cleave gnn inspect`: shows a graph's statistics and its partitioning for each k. */
#include "cli/console.h"
#include "cli/gnn/gnn.h"
#include "cli/json.h"
#include "device/device.h"
#include "gnn/data/figures.h"
#include "report/label.h"
#include "report/table.h"

static const cli_gnn_option options[] = {
    {OPTION_KSET, "partition the graph with METIS into each of these numbers of subgraphs, such as 1,2,10..20", ""},
    {OPTION_SEED, CLI_GNN_SEED_HELP, NULL},
    {OPTION_CACHE_DIR, CLI_GNN_CACHE_HELP, NULL},
};

typedef struct cut {
  uint32_t k;
  double metis_seconds;
  bool from_cache;
  clv__cut_figures figures;
  json_t *subgraphs; /* NULL unless --json and -v are given */
} cut;

typedef struct inspection {
  cli_invocation *cli;
  const char *path;
  clv__gnn_graph *graph;
  clv__graph_figures figures;
  cut *cuts;
  uint32_t cut_count;
} inspection;

static json_t *subgraphs_json(const clv__partitioned *partitioned) {
  json_t *list = json_array();
  for (uint32_t p = 0; p < partitioned->k; ++p) {
    const clv__subgraph *sub = &partitioned->subgraphs[p];
    json_t *object = json_object();
    json_object_set_new(object, "owned", json_integer(sub->owned_count));
    json_object_set_new(object, "halo", json_integer(sub->halo_count));
    json_object_set_new(object, "in_edges", json_integer((json_int_t)sub->edge_count));
    json_object_set_new(object, "cut_edges", json_integer((json_int_t)sub->cut_edge_count));
    json_array_append_new(list, object);
  }
  return list;
}

static clv_status make_cut(inspection *in, uint32_t k, cut *made, clv_error *error) {
  cli_invocation *cli = in->cli;
  const char *reason;
  clv__cache *cache = clv__context_cache(cli->context, &reason);
  clv__membership membership;
  clv__partitioned partitioned;
  CLV__TRY(clv__membership_make(cli->allocator, in->graph, k, cli_number(cli, OPTION_SEED, 0), cache, &membership, error));
  clv_status status = clv__partitioned_make(cli->allocator, in->graph, &membership, &partitioned, error);
  if (status == CLV_OK) {
    *made = (cut){.k = k, .metis_seconds = membership.metis_seconds, .from_cache = membership.from_cache};
    clv__cut_figures_make(&partitioned, &made->figures);
    if (cli->json && cli->verbose) made->subgraphs = subgraphs_json(&partitioned);
    clv__partitioned_finish(&partitioned);
  }
  clv__membership_finish(cli->allocator, &membership);
  return status;
}

static clv_status make_cuts(inspection *in, clv_error *error) {
  const char *text = cli_text(in->cli, OPTION_KSET, NULL);
  uint32_t *ks, count;
  if (text == NULL) return CLV_OK;
  CLV__TRY(cli_kset_parse(in->cli, text, &ks, &count, error));
  in->cuts = clv__arena_allocate_zero(&in->cli->arena, count, sizeof *in->cuts);
  if (in->cuts == NULL) return clv__error_memory(error, count * sizeof *in->cuts);
  for (uint32_t i = 0; i < count; ++i) {
    cli_progress(in->cli, "partitioning into %u subgraphs (%u of %u)", ks[i], i + 1, count);
    clv_status status = make_cut(in, ks[i], &in->cuts[i], error);
    if (status != CLV_OK) return clv__error_prefix(error, status, "%s", in->path);
    in->cut_count = i + 1;
  }
  return CLV_OK;
}

/* ---- JSON ---- */

static json_t *range_json(const clv__range *range) {
  json_t *object = json_object();
  json_object_set_new(object, "min", json_integer((json_int_t)range->least));
  json_object_set_new(object, "max", json_integer((json_int_t)range->most));
  return object;
}

static json_t *cut_json(cut *c) {
  json_t *object = json_object();
  json_object_set_new(object, "k", json_integer(c->k));
  json_object_set_new(object, "owned", range_json(&c->figures.owned));
  json_object_set_new(object, "halo", range_json(&c->figures.halo));
  json_object_set_new(object, "in_edges", range_json(&c->figures.in_edges));
  json_object_set_new(object, "cut_edges", json_integer((json_int_t)c->figures.cut_edges));
  json_object_set_new(object, "communication_volume", json_integer((json_int_t)c->figures.communication_volume));
  json_object_set_new(object, "empty_parts", json_integer(c->figures.empty));
  json_object_set_new(object, "metis_seconds", cli_json_real(c->metis_seconds));
  json_object_set_new(object, "cached", json_boolean(c->from_cache));
  if (c->subgraphs != NULL) json_object_set_new(object, "subgraphs", c->subgraphs);
  c->subgraphs = NULL;
  return object;
}

static clv_status print_json(inspection *in, clv_error *error) {
  const clv__gnn_graph *graph = in->graph;
  char hash[2 * CLV__HASH_BYTES + 1];
  clv__hash_text(&graph->hash, hash);
  json_t *root = json_object();
  json_object_set_new(root, "graph", cli_json_text(in->path));
  json_object_set_new(root, "hash", cli_json_text(hash));
  json_object_set_new(root, "vertices", json_integer(graph->csr.vertex_count));
  json_object_set_new(root, "edges", json_integer((json_int_t)graph->csr.edge_count));
  json_object_set_new(root, "in_degree", range_json(&in->figures.in_degree));
  json_object_set_new(root, "out_degree", range_json(&in->figures.out_degree));
  json_object_set_new(root, "without_in_edges", json_integer((json_int_t)in->figures.sourceless));
  json_object_set_new(root, "isolated", json_integer((json_int_t)in->figures.isolated));
  json_object_set_new(root, "self_loops", json_integer((json_int_t)in->figures.loops));
  json_object_set_new(root, "repeated_edges", json_integer((json_int_t)in->figures.repeated));
  json_object_set_new(root, "rows_bytes", json_integer((json_int_t)in->figures.rows_bytes));
  json_object_set_new(root, "features", json_integer(graph->features.dtype != CLV_DTYPE_NONE ? graph->features.dims[1] : 0));
  json_object_set_new(root, "has_labels", json_boolean(graph->labels.dtype != CLV_DTYPE_NONE));
  json_t *per_k = json_array();
  for (uint32_t i = 0; i < in->cut_count; ++i) json_array_append_new(per_k, cut_json(&in->cuts[i]));
  json_object_set_new(root, "per_k", per_k);
  return cli_json_print(in->cli, root, error);
}

/* ---- Text ---- */

static void write_graph(const inspection *in, clv__text *text) {
  const clv__csr *csr = &in->graph->csr;
  const clv__graph_figures *f = &in->figures;
  char first[CLV__LABEL_BYTES], second[CLV__LABEL_BYTES];
  double mean = csr->vertex_count > 0 ? (double)csr->edge_count / csr->vertex_count : 0;
  clv__label_name(text, in->path);
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

static void write_cuts(const inspection *in, clv__text *text) {
  static const char *const titles[] = {"k",    "least owned", "most",  "least halo", "most", "least in-edges",
                                       "most", "cut edges",   "share", "volume",     "METIS"};
  clv__table table;
  char label[CLV__LABEL_BYTES];
  clv__table_init(&table, in->cli->allocator, "rrrrrrrrrrr", true);
  for (size_t i = 0; i < sizeof titles / sizeof *titles; ++i) clv__table_cell(&table, "%s", titles[i]);
  for (uint32_t i = 0; i < in->cut_count; ++i) {
    const cut *c = &in->cuts[i];
    double share = in->graph->csr.edge_count > 0 ? 100.0 * (double)c->figures.cut_edges / (double)in->graph->csr.edge_count : 0;
    clv__table_cell(&table, "%u", c->k);
    range_cell(&table, &c->figures.owned);
    range_cell(&table, &c->figures.halo);
    range_cell(&table, &c->figures.in_edges);
    clv__table_cell(&table, "%s", clv__label_grouped(c->figures.cut_edges, label));
    clv__table_cell(&table, "%.1f %%", share);
    clv__table_cell(&table, "%s", clv__label_grouped(c->figures.communication_volume, label));
    if (c->metis_seconds > 0)
      clv__table_cell(&table, "%s", clv__label_time((uint64_t)(1e9 * c->metis_seconds), label));
    else
      clv__table_cell(&table, "%s", c->from_cache ? "cached" : "not used");
  }
  clv__text_append(text, "\n");
  clv__table_write(&table, 0, in->cli->color_out, text);
  clv__table_finish(&table);
}

static clv_status print_text(inspection *in, clv_error *error) {
  clv__text text;
  clv__text_init(&text, in->cli->allocator);
  write_graph(in, &text);
  if (in->cut_count > 0) write_cuts(in, &text);
  return cli_print(in->cli, &text, error);
}

static clv_status execute(cli_invocation *cli, clv_error *error) {
  inspection in = {.cli = cli, .path = cli->options->operands[1]};
  cli_progress(cli, "reading %s", in.path);
  CLV__TRY(clv__gnn_graph_read(cli->allocator, in.path, &in.graph, error));
  clv_status status = clv__graph_figures_make(cli->allocator, &in.graph->csr, &in.figures, error);
  if (status == CLV_OK) status = make_cuts(&in, error);
  if (status == CLV_OK) status = cli->json ? print_json(&in, error) : print_text(&in, error);
  for (uint32_t i = 0; i < in.cut_count; ++i) json_decref(in.cuts[i].subgraphs);
  clv__gnn_graph_destroy(in.graph);
  return status;
}

const cli_gnn_verb cli_gnn_verb_inspect = {
    .name = "inspect",
    .operands = "GRAPH",
    .wanted = "",
    .summary = "describe a graph, and its partitioning by METIS",
    .description =
        "With --kset, also shows for each number of subgraphs: the least and the most owned vertices, halo vertices and\n"
        "in-edges of a subgraph; the cut edges, the sum of all halo sizes (volume), and METIS's time. The partitioning is\n"
        "kept in the cache, where plan and run find it.",
    .examples =
        "  cleave gnn inspect g.npz                            # describe the graph\n"
        "  cleave gnn inspect cora.npz --kset 1,2,4,10..20     # compare these numbers of subgraphs\n"
        "  cleave gnn inspect web.txt.gz --kset 8 --json -v    # list every subgraph\n",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .execute = execute,
};
