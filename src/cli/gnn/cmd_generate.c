/* `cleave gnn generate`: writes a seeded random graph as npz. */
#include "base/clock.h"
#include "cli/console.h"
#include "cli/gnn/gnn.h"
#include "cli/json.h"
#include "gnn/data/graph.h"
#include "report/label.h"

static const cli_gnn_option options[] = {
    {OPTION_RMAT, NULL, NULL},
    {OPTION_EDGES_PER_VERTEX, NULL, NULL},
    {OPTION_FEATURES, NULL, NULL},
    {OPTION_SEED, "seed of the random numbers; the same seed gives the same graph", NULL},
    {OPTION_OUTPUT, "write the graph to FILE, as npz", NULL},
};

static clv_status print_graph(cli_invocation *cli, const clv__gnn_graph *graph, const char *path, double seconds,
                              clv_error *error) {
  const clv__csr *csr = &graph->csr;
  bool has_features = graph->features.dtype != CLV_DTYPE_NONE;
  if (cli->json) {
    char hash[2 * CLV__HASH_BYTES + 1];
    clv__hash_text(&graph->hash, hash);
    json_t *root = json_object();
    json_object_set_new(root, "file", cli_json_text(path));
    json_object_set_new(root, "hash", cli_json_text(hash));
    json_object_set_new(root, "vertices", json_integer(csr->vertex_count));
    json_object_set_new(root, "edges", json_integer((json_int_t)csr->edge_count));
    json_object_set_new(root, "features", json_integer(has_features ? graph->features.dims[1] : 0));
    json_object_set_new(root, "seconds", cli_json_real(seconds));
    return cli_json_print(cli, root, error);
  }
  if (cli->quiet) return CLV_OK;
  clv__text text;
  char number[CLV__LABEL_BYTES];
  clv__text_init(&text, cli->allocator);
  clv__label_name(&text, path);
  clv__text_append(&text, ": %s vertices, ", clv__label_grouped(csr->vertex_count, number));
  clv__label_plural(&text, csr->edge_count, "edge");
  if (has_features) clv__text_append(&text, ", %lld features per vertex", (long long)graph->features.dims[1]);
  clv__text_append(&text, ", in %.1f s\n", seconds);
  return cli_print(cli, &text, error);
}

static clv_status execute(cli_invocation *cli, clv_error *error) {
  const char *path = cli_text(cli, OPTION_OUTPUT, NULL);
  if (!cli_is_given(cli, OPTION_RMAT)) {
    return cli_usage(cli, error, "option '--rmat SCALE' is missing; the graph will have 2^SCALE vertices");
  }
  if (path == NULL) return cli_usage(cli, error, "option '-o FILE' is missing; it names the file to write the graph to");
  uint64_t scale = cli_number(cli, OPTION_RMAT, 0), begin_ns = clv__clock_ns();
  if (scale > 31)
    return cli_usage(cli, error, "option '--rmat': scale %llu is above the maximum of 31", (unsigned long long)scale);
  uint32_t edges = (uint32_t)cli_number(cli, OPTION_EDGES_PER_VERTEX, 16);
  clv__gnn_graph *graph;
  cli_progress(cli, "generating %llu edges", (unsigned long long)edges << scale);
  CLV__TRY(clv__gnn_graph_generate(cli->allocator, (uint32_t)scale, edges, (uint32_t)cli_number(cli, OPTION_FEATURES, 0),
                                   cli_number(cli, OPTION_SEED, 0), &graph, error));
  cli_progress(cli, "writing %s", path);
  clv_status status = clv__gnn_graph_write(graph, path, error);
  if (status == CLV_OK) status = print_graph(cli, graph, path, cli_ms(begin_ns, clv__clock_ns()) / 1e3, error);
  clv__gnn_graph_destroy(graph);
  return status;
}

const cli_gnn_verb cli_gnn_verb_generate = {
    .name = "generate",
    .operands = "",
    .wanted = "--rmat SCALE -o FILE",
    .summary = "write a random graph (R-MAT model)",
    .description = "The degrees are as uneven as in social networks. Edges may repeat, and some vertices may have no edges.",
    .examples =
        "  cleave gnn generate --rmat 20 --edges-per-vertex 16 --features 128 -o g.npz    # a million vertices\n"
        "  cleave gnn generate --rmat 10 --seed 7 -o small.npz                            # 1024 vertices, without features\n",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .execute = execute,
};
