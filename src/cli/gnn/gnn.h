/* Defines a verb of `cleave gnn`. To add a verb, add a file cmd_<verb>.c that ends with its cli_gnn_verb, and a word in
 * CLI_GNN_VERBS. The help text comes from these definitions. */
#ifndef CLEAVE_CLI_GNN_GNN_H
#define CLEAVE_CLI_GNN_GNN_H

#include "cli/options/options.h"

/* In the order in which the help text lists them. */
#define CLI_GNN_VERBS(X) \
  X(generate)            \
  X(inspect)             \
  X(profile)             \
  X(plan)                \
  X(run)

#define CLI_GNN_SEED_HELP "seed of METIS; the same seed gives the same subgraphs"
#define CLI_GNN_CACHE_HELP "where subgraphs and compiled blocks are kept; empty: do not keep them"

/* A verb's use of an option. */
typedef struct cli_gnn_option {
  cli_option_id id;
  const char *help, *fallback; /* NULL: as in the option table */
} cli_gnn_option;

typedef struct cli_gnn_verb {
  const char *name;
  const char *operands;    /* "GRAPH", or "" if the verb has none; cli_options.operands[0] is the verb itself */
  const char *wanted;      /* required options, as in the usage line */
  const char *summary;     /* one line */
  const char *description; /* paragraphs; see cli_help_text() */
  const char *examples;    /* command lines, each ending with a newline */
  const cli_gnn_option *options;
  size_t option_count; /* besides the options of all commands */
  clv_status (*execute)(cli_invocation *cli, clv_error *error);
} cli_gnn_verb;

/* kset.c: parses a text such as "1,2,10..20" into ascending numbers without repetition, which the caller frees. A text that
 * cannot be parsed is a usage error. */
clv_status cli_kset_parse(cli_invocation *cli, const char *text, uint32_t **ks, uint32_t *count, clv_error *error);
/* Sets the error for memory that malloc() refused. */
clv_status cli_no_memory(clv_error *error);

#endif
