/* What a verb of `cleave gnn` is. A new one is a file cmd_gnn_<verb>.c that ends with its cli_gnn_verb, a word in CLI_GNN_VERBS,
 * and a line in the help text of cmd_gnn.c. */
#ifndef CLEAVE_CLI_GNN_H
#define CLEAVE_CLI_GNN_H

#include "cli/options.h"

/* In the order of the help text. */
#define CLI_GNN_VERBS(X) \
  X(generate)            \
  X(inspect)             \
  X(profile)             \
  X(plan)                \
  X(run)

typedef struct cli_gnn_verb {
  const char *name;
  const char *operands; /* "GRAPH"; "" where there is none: operands[0] of the options is the verb itself */
  const cli_option_id *options;
  size_t option_count; /* beside those that all commands take */
  clv_status (*execute)(cli_invocation *cli, clv_error *error);
} cli_gnn_verb;

/* kset.c: "1,2,10..20" as ascending numbers without repetition, in the arena. A usage error where it is none. */
clv_status cli_kset_parse(cli_invocation *cli, const char *text, uint32_t **ks, uint32_t *count, clv_error *error);

#endif
