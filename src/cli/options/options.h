/* The options of all commands. One table defines each option's syntax, its commands and its effect. Parsing and the help texts
 * both use it. */
#ifndef CLEAVE_CLI_OPTIONS_OPTIONS_H
#define CLEAVE_CLI_OPTIONS_OPTIONS_H

#include "cleave/session.h"
#include "cli/command.h"

typedef enum cli_option_id {
  OPTION_DEVICES,
  OPTION_NPU_SPEC,
  OPTION_DEVICE_OPTION,
  OPTION_PLUGIN,
  OPTION_THREADS,
  OPTION_STRATEGY,
  OPTION_SPLIT,
  OPTION_OBJECTIVE,
  OPTION_PROFILE,
  OPTION_PIN,
  OPTION_PINS,
  OPTION_FORCE,
  OPTION_WEIGHTS,
  OPTION_VALUE,
  OPTION_OFFLOAD,
  OPTION_SHAPE,
  OPTION_DIM,
  OPTION_MODEL,
  OPTION_PARAMS,
  OPTION_FOLD_LIMIT,
  OPTION_NODES,
  OPTION_OUTPUT,
  OPTION_FOLDER,
  OPTION_SVG,
  OPTION_DOT,
  OPTION_HTML,
  OPTION_EXPLAIN,
  OPTION_EXPLAIN_PASSES,
  OPTION_COMPARE,
  OPTION_WHAT_IF,
  OPTION_INPUT,
  OPTION_OUTPUT_DIR,
  OPTION_DUMP,
  OPTION_VERIFY,
  OPTION_TRACE,
  OPTION_SEED,
  OPTION_RUNS,
  OPTION_WARMUP,
  OPTION_DURATION,
  OPTION_BATCH,
  OPTION_PERCENTILES,
  OPTION_COMPARE_WITH,
  OPTION_CSV,
  OPTION_MARKDOWN,
  OPTION_OPERATORS,
  OPTION_CONTINUE,
  OPTION_GRAPH,
  OPTION_GRAPH_CACHE,
  OPTION_PREFILL_GRAPH,
  OPTION_BUCKET,
  OPTION_IN_FLIGHT,
  OPTION_DEVICE_TIME_LIMIT,
  OPTION_NO_FALLBACK,
  OPTION_CACHE_DIR,
  OPTION_MAX_SIZE,
  OPTION_MAX_AGE,
  OPTION_ALL,
  OPTION_DETERMINISTIC,
  OPTION_TUNE,
  OPTION_PRECISION,
  OPTION_RTOL,
  OPTION_ATOL,
  OPTION_PLACEMENTS,
  OPTION_SECTION,
  OPTION_EVERY,
  OPTION_RMAT,
  OPTION_EDGES_PER_VERTEX,
  OPTION_FEATURES,
  OPTION_GNN_X,
  OPTION_KSET,
  OPTION_SECONDS,
  OPTION_GNN_PARTS,
  OPTION_GNN_GRAPH,
  OPTION_GNN_PLAN,
  OPTION_EFFORT,
  OPTION_TOP_K,
  OPTION_LIST_PEPS,
  OPTION_PAD,
  OPTION_EXPORT_DIR,
  OPTION_INLINE,
  OPTION_RESUME,
  OPTION_IMPORT,
  OPTION_STAGES,
  OPTION_JSON,
  OPTION_VERBOSE,
  OPTION_QUIET,
  OPTION_COLOR,
  OPTION_HELP,
  OPTION_COUNT
} cli_option_id;

typedef enum cli_option_kind {
  CLI_FLAG,
  CLI_TEXT,
  CLI_ANY_TEXT,   /* may be empty */
  CLI_MAYBE_TEXT, /* an optional value: after `=`, or the next argument if all operands came before the option */
  CLI_PAIR,       /* TEXT=TEXT */
  CLI_NUMBER,     /* an integer of at least `least` */
  CLI_NUMBERS,    /* one or several such integers, separated by commas */
  CLI_REAL,       /* a number of at least 0 */
  CLI_REALS,      /* one or several such numbers, separated by commas */
  CLI_DURATION,   /* a time above 0: 10s, 500ms, 2m; without a unit, seconds */
  CLI_CHOICE      /* one of the words in `value`, which are separated by '|' */
} cli_option_kind;

typedef struct cli_option {
  const char *name; /* without the dashes */
  char letter;      /* the short form (-o), or 0 */
  cli_option_kind kind;
  bool repeats;      /* may be given several times; otherwise the last one wins */
  uint32_t commands; /* bits from CLI_IN() */
  uint64_t least;
  const char *value;    /* the value's name in help texts; for CLI_CHOICE also the allowed values */
  const char *fallback; /* the value if the option is not given; NULL: the help does not state it */
  const char *help;
} cli_option;

extern const cli_option cli_option_table[OPTION_COUNT];

/* Changes to an option of the table for one command: its help texts, if those of the table describe several commands, and
 * whether the option takes a list of values. */
typedef struct cli_option_words {
  uint32_t command; /* index in cli_commands */
  cli_option_id id;
  const char *help, *fallback; /* NULL: as in the table */
  bool is_list;                /* a number may be several numbers, separated by commas; any other option may be repeated */
} cli_option_words;
extern const cli_option_words cli_option_words_table[];
extern const uint32_t cli_option_words_count;

/* Returns the option with the changes for the command. `command` is an index in cli_commands. */
cli_option cli_option_for(uint32_t command, cli_option_id id);

typedef struct cli_given {
  uint32_t count;
  const char **values; /* "" for a flag */
} cli_given;

struct cli_options {
  const cli_command *command;
  uint32_t operand_count;
  const char **operands;
  cli_given given[OPTION_COUNT];
};

/* Parses the arguments after the verb. All errors are usage errors. */
clv_status cli_options_parse(cli_invocation *cli, const cli_command *command, int count, char **arguments, cli_options *options,
                             clv_error *error);

/* pipes.c: replaces every pipe among the files, and a model "-", by a copy in memory that can be opened several times. */
clv_status cli_options_settle(cli_invocation *cli, cli_options *options, clv_error *error);

static inline bool cli_is_given(const cli_invocation *cli, cli_option_id id) {
  return cli->options->given[id].count > 0;
}
/* Return the last value given for the option, or `fallback` if the option is not given. */
const char *cli_text(const cli_invocation *cli, cli_option_id id, const char *fallback);
uint64_t cli_number(const cli_invocation *cli, cli_option_id id, uint64_t fallback);
double cli_real(const cli_invocation *cli, cli_option_id id, double fallback);
/* The seconds of a CLI_DURATION. */
double cli_seconds(const cli_invocation *cli, cli_option_id id, double fallback);
/* Splits `text` at its commas, in the arena. Returns NULL if out of memory. */
const char **cli_split(cli_invocation *cli, const char *text, uint32_t *count);

/* Collects the plan options from the arguments (pins, pin files, forces, strategy), in the arena. The caller sets `sizes` and
 * `keeps`. */
clv_status cli_plan_options(cli_invocation *cli, clv_plan_options *options, clv_error *error);

/* run.c: set the options of the context and of sessions from the arguments. Options that are not given keep the value from the
 * environment or the library's default. */
void cli_context_options(cli_invocation *cli, clv_context_options *options);
void cli_session_options(cli_invocation *cli, clv_session_options *options);

/* outputs.c: fails if an output file named by the arguments cannot be written. */
clv_status cli_outputs_check(const cli_invocation *cli, clv_error *error);

/* plan.c: the name and the summary of strategy `index`. Returns NULL if there are fewer. */
const char *cli_strategy(uint32_t index, const char **summary);

/* help.c: environment variable `index` that the help lists, with its values (NULL: any). Returns NULL if there are fewer. */
const char *cli_variable(uint32_t index, const char **help, const char **values);
/* help.c: takes the next paragraph, or entry of a list, of a description. A line that starts with a blank is an entry: "  word
 * text". Sets `word` to the word of an entry, which then is not part of `paragraph`, or to "". Returns the rest of the text, or
 * NULL at its end. */
const char *cli_paragraph_next(const char *text, char *word, size_t word_bytes, char *paragraph, size_t paragraph_bytes);

/* help.c: prints texts on standard output. */
void cli_help(const cli_invocation *cli);
void cli_help_command(const cli_invocation *cli, const cli_command *command);
/* Prints a description, wrapped to the terminal's 80 columns. A line that starts with a blank is a list entry. */
void cli_help_text(const char *text);
void cli_help_option(const cli_option *option);

#endif
