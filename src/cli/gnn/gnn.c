/* `cleave gnn`: finds the verb and prints each verb's help. */
#include <stdio.h>
#include <string.h>

#include "cli/console.h"
#include "cli/gnn/gnn.h"
#include "cli/manual/topic.h"

#define CLI_DECLARE(verb) extern const cli_gnn_verb cli_gnn_verb_##verb;
CLI_GNN_VERBS(CLI_DECLARE)
#undef CLI_DECLARE

#define CLI_ENTRY(verb) &cli_gnn_verb_##verb,
static const cli_gnn_verb *const verbs[] = {CLI_GNN_VERBS(CLI_ENTRY)};
#undef CLI_ENTRY
extern const cli_command cli_command_gnn;

clv_status cli_no_memory(clv_error *error) {
  error->status = CLV_OUT_OF_MEMORY;
  snprintf(error->message, sizeof error->message, "out of memory");
  return CLV_OUT_OF_MEMORY;
}

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
  return cli_usage(cli, error, "'%s' is not a verb of 'gnn'; the verbs are: %s", name, list);
}

static const cli_option_id of_all[] = {OPTION_JSON, OPTION_VERBOSE, OPTION_QUIET, OPTION_COLOR, OPTION_HELP};
enum { OF_ALL_COUNT = sizeof of_all / sizeof *of_all };

static bool verb_takes(const cli_gnn_verb *verb, cli_option_id id) {
  for (size_t i = 0; i < OF_ALL_COUNT; ++i) {
    if (of_all[i] == id) return true;
  }
  for (size_t i = 0; i < verb->option_count; ++i) {
    if (verb->options[i].id == id) return true;
  }
  return false;
}

/* Rejects options that this verb does not accept. */
static clv_status check_options(cli_invocation *cli, const cli_gnn_verb *verb, clv_error *error) {
  for (int id = 0; id < OPTION_COUNT; ++id) {
    if (!cli_is_given(cli, (cli_option_id)id) || verb_takes(verb, (cli_option_id)id)) continue;
    for (size_t i = 0; i < VERB_COUNT; ++i) {
      if (!verb_takes(verbs[i], (cli_option_id)id)) continue;
      return cli_usage(cli, error, "option '--%s' belongs to 'cleave gnn %s', not to '%s'", cli_option_table[id].name,
                       verbs[i]->name, verb->name);
    }
    return cli_usage(cli, error, "'gnn %s' takes no option '--%s'", verb->name, cli_option_table[id].name);
  }
  return CLV_OK;
}

static clv_status execute(cli_invocation *cli, clv_error *error) {
  const cli_gnn_verb *verb;
  if (strcmp(cli->options->operands[0], "help") == 0)
    return cli_command_gnn.help(cli, cli->options->operand_count > 1 ? cli->options->operands[1] : NULL, error);
  CLI_TRY(find_verb(cli, cli->options->operands[0], &verb, error));
  CLI_TRY(check_options(cli, verb, error));
  bool takes_operand = verb->operands[0] != '\0';
  if (takes_operand && cli->options->operand_count < 2) {
    return cli_usage(cli, error, "%s is missing; usage: cleave gnn %s %s", verb->operands, verb->name, verb->operands);
  }
  if (!takes_operand && cli->options->operand_count > 1) {
    return cli_usage(cli, error, "'%s' is one argument too many: 'gnn %s' takes only options", cli->options->operands[1],
                     verb->name);
  }
  return verb->execute(cli, error);
}

/* ---- Help ---- */

static void print_title(const cli_invocation *cli, const char *title) {
  printf("\n%s%s%s\n", cli_begin(cli, CLI_BOLD), title, cli_reset(cli));
}

static void help_all(const cli_invocation *cli) {
  const cli_command *command = &cli_command_gnn;
  printf("cleave %s: %s\n", command->name, command->summary);
  print_title(cli, "Usage");
  printf("  cleave %s %s [OPTIONS]\n", command->name, command->operands);
  print_title(cli, "Verbs");
  for (size_t i = 0; i < VERB_COUNT; ++i) printf("  %-9s %-6s %s\n", verbs[i]->name, verbs[i]->operands, verbs[i]->summary);
  printf("\n");
  cli_help_text(command->description);
  print_title(cli, "Example: from a graph to a plan and a result");
  printf("%s\n'cleave gnn VERB --help' shows the options of a verb.\n", command->examples);
}

/* The option with the verb's help texts. */
static cli_option option_of(const cli_gnn_option *used) {
  cli_option option = cli_option_table[used->id];
  if (used->help != NULL) option.help = used->help;
  if (used->fallback != NULL) option.fallback = used->fallback[0] != '\0' ? used->fallback : NULL;
  return option;
}

static void help_verb(const cli_invocation *cli, const cli_gnn_verb *verb) {
  printf("cleave gnn %s: %s\n", verb->name, verb->summary);
  print_title(cli, "Usage");
  printf("  cleave gnn %s%s%s%s%s [OPTIONS]\n\n", verb->name, verb->operands[0] != '\0' ? " " : "", verb->operands,
         verb->wanted[0] != '\0' ? " " : "", verb->wanted);
  cli_help_text(verb->description);
  print_title(cli, "Options");
  for (size_t i = 0; i < verb->option_count; ++i) {
    const cli_option option = option_of(&verb->options[i]);
    cli_help_option(&option);
  }
  print_title(cli, "Options of all verbs");
  for (size_t i = 0; i < OF_ALL_COUNT; ++i) cli_help_option(&cli_option_table[of_all[i]]);
  print_title(cli, "Examples");
  printf("%s", verb->examples);
}

static clv_status help(cli_invocation *cli, const char *name, clv_error *error) {
  const cli_gnn_verb *verb;
  if (name == NULL) {
    help_all(cli);
    return CLV_OK;
  }
  CLI_TRY(find_verb(cli, name, &verb, error));
  help_verb(cli, verb);
  return CLV_OK;
}

static bool describe_verb(uint32_t index, cli_topic *topic) {
  if (index >= VERB_COUNT) return false;
  const cli_gnn_verb *verb = verbs[index];
  topic->verb = verb->name;
  topic->operands = verb->operands;
  topic->wanted = verb->wanted;
  topic->summary = verb->summary;
  topic->description = verb->description;
  topic->examples = verb->examples;
  topic->option_count = 0;
  for (size_t i = 0; i < verb->option_count; ++i) topic->options[topic->option_count++] = option_of(&verb->options[i]);
  for (size_t i = 0; i < OF_ALL_COUNT; ++i) topic->options[topic->option_count++] = cli_option_table[of_all[i]];
  return true;
}

const cli_command cli_command_gnn = {
    .name = "gnn",
    .operands = "VERB [GRAPH]",
    .min_operands = 1,
    .max_operands = 2,
    .summary = "run graph neural networks on large graphs",
    .description =
        "Graph formats: npz (edge_index [2,m]; optionally x [n,F], y [n] and num_nodes), METIS's .graph, or text with one\n"
        "'source destination' pair per line (# and % start comments). The last two may be compressed with gzip. Model formats:\n"
        "JSON with a file of weights (npz or safetensors) in the same folder, or ONNX.",
    .examples =
        "  cleave gnn generate --rmat 20 --features 128 -o g.npz    # create a graph\n"
        "  cleave gnn profile --model sage.json --graph g.npz --devices cpu,npu --kset 1,4,8 -o costs.json    # measure costs\n"
        "  cleave gnn plan --model sage.json --graph g.npz --devices cpu,npu --kset 1,4,8 --profile costs.json -o plan.json"
        "    # make a plan\n"
        "  cleave gnn run --model sage.json --graph g.npz --devices cpu,npu --plan plan.json --output out.npz"
        "    # run the plan\n",
    .execute = execute,
    .help = help,
    .describe_verb = describe_verb,
};
