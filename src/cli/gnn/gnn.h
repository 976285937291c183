/* What a verb of `cleave gnn` is. A new one is a file cmd_gnn_<verb>.c that ends with its cli_gnn_verb, and a word in
 * CLI_GNN_VERBS: its help text is made of what stands there. */
#ifndef CLEAVE_CLI_GNN_GNN_H
#define CLEAVE_CLI_GNN_GNN_H

#include "cli/options/options.h"

/* In the order of the help text. */
#define CLI_GNN_VERBS(X) \
  X(generate)            \
  X(inspect)             \
  X(profile)             \
  X(plan)                \
  X(run)

#define CLI_GNN_SEED_HELP "of METIS: the same one gives the same cut"
#define CLI_GNN_CACHE_HELP "where cuts are kept, and compiled blocks; empty: nowhere"

/* An option as a verb takes it. */
typedef struct cli_gnn_option {
  cli_option_id id;
  const char *help, *fallback; /* NULL: as the table of options says */
} cli_gnn_option;

typedef struct cli_gnn_verb {
  const char *name;
  const char *operands;    /* "GRAPH"; "" where there is none: operands[0] of the options is the verb itself */
  const char *wanted;      /* options that it cannot do without, as the usage line has them */
  const char *summary;     /* one line */
  const char *description; /* paragraphs, wrapped */
  const char *examples;    /* lines */
  const cli_gnn_option *options;
  size_t option_count; /* beside those that all commands take */
  clv_status (*execute)(cli_invocation *cli, clv_error *error);
} cli_gnn_verb;

/* kset.c: "1,2,10..20" as ascending numbers without repetition, in the arena. A usage error where it is none. */
clv_status cli_kset_parse(cli_invocation *cli, const char *text, uint32_t **ks, uint32_t *count, clv_error *error);

#endif
