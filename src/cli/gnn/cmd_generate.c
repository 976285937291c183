/* `cleave gnn generate`: writes a seeded random graph as npz. */
#include <cleave/gnn.h>
#include <stdio.h>
#include <time.h>

#include "cli/console.h"
#include "cli/gnn/gnn.h"
#include "cli/json.h"

static const cli_gnn_option options[] = {
    {OPTION_RMAT, NULL, NULL},
    {OPTION_EDGES_PER_VERTEX, NULL, NULL},
    {OPTION_FEATURES, NULL, NULL},
    {OPTION_SEED, "seed of the random numbers; the same seed gives the same graph", NULL},
    {OPTION_OUTPUT, "write the graph to FILE, as npz", NULL},
};

/* Writes a number with separators: "1,234,567". */
static const char *grouped(uint64_t number, char text[32]) {
  char digits[24];
  size_t count = (size_t)snprintf(digits, sizeof digits, "%llu", (unsigned long long)number), used = 0;
  for (size_t i = 0; i < count; ++i) {
    if (i > 0 && (count - i) % 3 == 0) text[used++] = ',';
    text[used++] = digits[i];
  }
  text[used] = '\0';
  return text;
}

static clv_status print_graph(cli_invocation *cli, const clv_gnn_graph *graph, const char *path, double seconds,
                              clv_error *error) {
  clv_gnn_graph_info info = {.struct_size = sizeof info};
  char vertices[32], edges[32];
  clv_gnn_graph_get_info(graph, &info);
  if (cli->json) {
    json_t *root = json_object();
    json_object_set_new(root, "file", cli_json_text(path));
    json_object_set_new(root, "hash", cli_json_text(info.hash));
    json_object_set_new(root, "vertices", json_integer(info.vertex_count));
    json_object_set_new(root, "edges", json_integer((json_int_t)info.edge_count));
    json_object_set_new(root, "features", json_integer((json_int_t)info.feature_count));
    json_object_set_new(root, "seconds", cli_json_real(seconds));
    return cli_json_print(cli, root, error);
  }
  if (cli->quiet) return CLV_OK;
  cli_progress_end(cli);
  printf("%s: %s vertices, %s edge%s", path, grouped(info.vertex_count, vertices), grouped(info.edge_count, edges),
         info.edge_count == 1 ? "" : "s");
  if (info.feature_count > 0) printf(", %llu features per vertex", (unsigned long long)info.feature_count);
  printf(", in %.1f s\n", seconds);
  return cli_flush(error);
}

static clv_status execute(cli_invocation *cli, clv_error *error) {
  const char *path = cli_text(cli, OPTION_OUTPUT, NULL);
  clv_gnn_generate_options how = CLV_GNN_GENERATE_OPTIONS_INIT;
  clv_gnn_graph *graph;
  struct timespec begin, end;
  if (!cli_is_given(cli, OPTION_RMAT)) {
    return cli_usage(cli, error, "option '--rmat SCALE' is missing; the graph will have 2^SCALE vertices");
  }
  if (path == NULL) return cli_usage(cli, error, "option '-o FILE' is missing; it names the file to write the graph to");
  uint64_t scale = cli_number(cli, OPTION_RMAT, 0);
  if (scale > 31)
    return cli_usage(cli, error, "option '--rmat': scale %llu is above the maximum of 31", (unsigned long long)scale);
  how.scale = (uint32_t)scale;
  how.edges_per_vertex = (uint32_t)cli_number(cli, OPTION_EDGES_PER_VERTEX, 16);
  how.feature_count = (uint32_t)cli_number(cli, OPTION_FEATURES, 0);
  how.seed = cli_number(cli, OPTION_SEED, 0);
  clock_gettime(CLOCK_MONOTONIC, &begin);
  cli_progress(cli, "generating %llu edges", (unsigned long long)how.edges_per_vertex << scale);
  CLI_TRY(clv_gnn_graph_generate(cli->context, &how, &graph, error));
  cli_progress(cli, "writing %s", path);
  clv_status status = clv_gnn_graph_write(graph, path, error);
  clock_gettime(CLOCK_MONOTONIC, &end);
  const double seconds = (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
  if (status == CLV_OK) status = print_graph(cli, graph, path, seconds, error);
  clv_gnn_graph_destroy(graph);
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
