/* `cleave gnn inspect`: shows a graph's statistics and its partitioning for each k. */
#include <cleave/gnn.h>
#include <stdlib.h>

#include "cli/console.h"
#include "cli/gnn/gnn.h"

static const cli_gnn_option options[] = {
    {OPTION_KSET, "partition the graph with METIS into each of these numbers of subgraphs, such as 1,2,10..20", ""},
    {OPTION_SEED, CLI_GNN_SEED_HELP, NULL},
    {OPTION_CACHE_DIR, CLI_GNN_CACHE_HELP, NULL},
};

typedef struct inspection {
  cli_invocation *cli;
  clv_gnn_graph *graph;
  uint32_t *ks, k_count, part_count;
  clv_gnn_parts **parts;
} inspection;

static clv_status make_parts(inspection *in, clv_error *error) {
  const char *text = cli_text(in->cli, OPTION_KSET, NULL);
  if (text == NULL) return CLV_OK;
  CLI_TRY(cli_kset_parse(in->cli, text, &in->ks, &in->k_count, error));
  in->parts = calloc(in->k_count, sizeof *in->parts);
  if (in->parts == NULL) return cli_no_memory(error);
  for (; in->part_count < in->k_count; ++in->part_count) {
    uint32_t k = in->ks[in->part_count];
    cli_progress(in->cli, "partitioning into %u subgraphs (%u of %u)", k, in->part_count + 1, in->k_count);
    CLI_TRY(clv_gnn_parts_make(in->graph, k, cli_number(in->cli, OPTION_SEED, 0), &in->parts[in->part_count], error));
  }
  return CLV_OK;
}

static clv_status print(inspection *in, clv_error *error) {
  clv_gnn_graph_report_options how = CLV_GNN_GRAPH_REPORT_OPTIONS_INIT;
  char *document;
  how.parts = (const clv_gnn_parts *const *)in->parts;
  how.part_count = in->part_count;
  how.list_subgraphs = in->cli->verbose;
  CLI_TRY(clv_gnn_graph_report(in->graph, &how, cli_form(in->cli), &document, error));
  clv_status status = cli_print_document(in->cli, document, error);
  clv_text_free(document);
  return status;
}

static clv_status execute(cli_invocation *cli, clv_error *error) {
  inspection in = {.cli = cli};
  const char *path = cli->options->operands[1];
  cli_progress(cli, "reading %s", path);
  clv_status status = clv_gnn_graph_read(cli->context, path, &in.graph, error);
  if (status == CLV_OK) status = make_parts(&in, error);
  if (status == CLV_OK) status = print(&in, error);
  for (uint32_t i = 0; i < in.part_count; ++i) clv_gnn_parts_destroy(in.parts[i]);
  free(in.parts);
  free(in.ks);
  clv_gnn_graph_destroy(in.graph);
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
