/* `cleave gnn`: finds the verb. */
#include <string.h>

#include "cli/gnn.h"

#define CLI_DECLARE(verb) extern const cli_gnn_verb cli_gnn_verb_##verb;
CLI_GNN_VERBS(CLI_DECLARE)
#undef CLI_DECLARE

#define CLI_ENTRY(verb) &cli_gnn_verb_##verb,
static const cli_gnn_verb *const verbs[] = {CLI_GNN_VERBS(CLI_ENTRY)};
#undef CLI_ENTRY

enum { VERB_COUNT = sizeof verbs / sizeof *verbs };

static clv_status find_verb(cli_invocation *cli, const char *name, const cli_gnn_verb **verb, clv_error *error) {
  const char *names[VERB_COUNT];
  char list[256] = "";
  for (size_t i = 0; i < VERB_COUNT; ++i) {
    *verb = verbs[i];
    if (strcmp(verbs[i]->name, name) == 0) return CLV_OK;
    names[i] = verbs[i]->name;
    if (i > 0) strncat(list, ", ", sizeof list - strlen(list) - 1);
    strncat(list, names[i], sizeof list - strlen(list) - 1);
  }
  const char *nearest = cli_nearest(name, names, VERB_COUNT);
  if (nearest != NULL) return cli_usage(cli, error, "unknown verb '%s' of 'gnn'; did you mean '%s'?", name, nearest);
  return cli_usage(cli, error, "'%s' is not one of %s", name, list);
}

static bool verb_takes(const cli_gnn_verb *verb, cli_option_id id) {
  static const cli_option_id of_all[] = {OPTION_JSON, OPTION_VERBOSE, OPTION_QUIET, OPTION_COLOR, OPTION_HELP};
  for (size_t i = 0; i < sizeof of_all / sizeof *of_all; ++i) {
    if (of_all[i] == id) return true;
  }
  for (size_t i = 0; i < verb->option_count; ++i) {
    if (verb->options[i] == id) return true;
  }
  return false;
}

/* Options that another verb takes are no options of this one. */
static clv_status check_options(cli_invocation *cli, const cli_gnn_verb *verb, clv_error *error) {
  for (int id = 0; id < OPTION_COUNT; ++id) {
    if (!cli_is_given(cli, (cli_option_id)id) || verb_takes(verb, (cli_option_id)id)) continue;
    for (size_t i = 0; i < VERB_COUNT; ++i) {
      if (!verb_takes(verbs[i], (cli_option_id)id)) continue;
      return cli_usage(cli, error, "option '--%s' is of 'cleave gnn %s', not of '%s'", cli_option_table[id].name, verbs[i]->name,
                       verb->name);
    }
    return cli_usage(cli, error, "'gnn %s' takes no option '--%s'", verb->name, cli_option_table[id].name);
  }
  return CLV_OK;
}

static clv_status execute(cli_invocation *cli, clv_error *error) {
  const cli_gnn_verb *verb;
  CLV__TRY(find_verb(cli, cli->options->operands[0], &verb, error));
  CLV__TRY(check_options(cli, verb, error));
  bool takes_operand = verb->operands[0] != '\0';
  if (takes_operand && cli->options->operand_count < 2) {
    return cli_usage(cli, error, "%s is missing: cleave gnn %s %s", verb->operands, verb->name, verb->operands);
  }
  if (!takes_operand && cli->options->operand_count > 1) {
    return cli_usage(cli, error, "'%s' is one argument too many: 'gnn %s' takes options alone", cli->options->operands[1],
                     verb->name);
  }
  return verb->execute(cli, error);
}

const cli_command cli_command_gnn = {
    .name = "gnn",
    .operands = "VERB [GRAPH]",
    .min_operands = 1,
    .max_operands = 2,
    .summary = "graph neural networks over large graphs",
    .description =
        "  generate  writes a random graph by the R-MAT model as npz; the same --seed gives the same graph\n"
        "  inspect   what a graph is like; with --kset what METIS cuts it into, which is kept in the cache\n"
        "  profile   measures the blocks of a model's layers on the devices, over the sizes that --kset cuts the graph into; a\n"
        "            file that is there is extended\n"
        "  plan      which k, and for every subgraph and layer which device does what; by measured costs alone\n"
        "  run       a model over a graph, layer by layer; --output has 'out' [n, classes] in the graph's order. By --plan, or\n"
        "            planned now with --profile; without either in one piece on the devices together\n"
        "GRAPH is npz (edge_index [2,m]; x [n,F], y [n], num_nodes where they are), METIS's .graph, or text with\n"
        "'source destination' a line (# and % begin comments); the latter two may be packed by gzip.",
    .examples =
        "  cleave gnn generate --rmat 20 --edges-per-vertex 16 --features 128 -o g.npz\n"
        "  cleave gnn inspect g.npz\n"
        "  cleave gnn inspect cora.npz --kset 1,2,4,10..20\n"
        "  cleave gnn profile --model sage.json --graph cora.npz --devices npu,cpu --kset 1,2,4 -o costs.json\n"
        "  cleave gnn plan --model sage.json --graph cora.npz --devices npu,cpu --kset 1,2,4 --profile costs.json -o plan.json\n"
        "  cleave gnn run --model sage.json --graph cora.npz --devices npu,cpu --plan plan.json --output out.npz\n"
        "  cleave gnn inspect web.txt.gz --kset 8 --json -v\n",
    .execute = execute,
};
