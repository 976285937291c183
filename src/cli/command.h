/* Defines a command of `cleave` and its arguments. To add a command, add a file cmd_<verb>.c and a line in CLI_COMMANDS. */
#ifndef CLEAVE_CLI_COMMAND_H
#define CLEAVE_CLI_COMMAND_H

#include "cleave/context.h"
#include "cli/environment.h"
#include "cli/support.h"

/* In the order in which the help text lists them. */
#define CLI_COMMANDS(X) \
  X(devices)            \
  X(inspect)            \
  X(plan)               \
  X(run)                \
  X(compile)            \
  X(bench)              \
  X(test)               \
  X(profile)            \
  X(gnn)                \
  X(cache)              \
  X(check_backend)      \
  X(completion)

/* CLI_IN(plan) is the bit of `cleave plan` in cli_option.commands. */
#define CLI_COMMAND_INDEX(verb) CLI_INDEX_##verb,
enum { CLI_COMMANDS(CLI_COMMAND_INDEX) CLI_COMMAND_COUNT };
#undef CLI_COMMAND_INDEX
#define CLI_IN(verb) (1u << CLI_INDEX_##verb)
#define CLI_IN_ALL ((1u << CLI_COMMAND_COUNT) - 1)

enum { CLI_EXIT_DONE = 0, CLI_EXIT_FAILED = 1, CLI_EXIT_USAGE = 2 };

typedef struct cli_options cli_options;
struct cli_topic; /* manual/topic.h */

/* One invocation of the command. */
typedef struct cli_invocation {
  cli_arena arena; /* lives until the program ends */
  cli_environment environment;
  const cli_options *options;
  clv_context *context;
  bool json, verbose, quiet;
  bool color_out, color_err; /* whether to color standard output and standard error */
  bool has_other_devices;    /* the command opens several device lists, so an --npu-spec may be for a device of another list */
  bool progress_shown;       /* a progress line is visible on standard error */
  int exit_status;           /* the result of main(); an error turns CLI_EXIT_DONE into CLI_EXIT_FAILED */
} cli_invocation;

typedef struct cli_command {
  const char *name;
  const char *operands; /* as in the usage line: "MODEL|PLAN" */
  uint32_t min_operands, max_operands;
  const char *summary;     /* one line */
  const char *description; /* paragraphs; see cli_help_text() */
  const char *examples;    /* command lines, each ending with a newline */
  clv_status (*execute)(cli_invocation *cli, clv_error *error);
  /* For a command with verbs: prints the help of one verb, or of the whole command if `verb` is NULL. NULL for other commands,
   * whose help cli_help_command() prints. */
  clv_status (*help)(cli_invocation *cli, const char *verb, clv_error *error);
  /* For a command with verbs: describes verb `index`, except the fields `name` and `command`. Returns false if there are fewer
   * verbs. NULL for other commands. */
  bool (*describe_verb)(uint32_t index, struct cli_topic *topic);
} cli_command;

extern const cli_command *const cli_commands[CLI_COMMAND_COUNT];

/* Sets the error message and exit status 2. Returns CLV_INVALID_ARGUMENT, so that callers can write `return cli_usage(…)`. */
clv_status cli_usage(cli_invocation *cli, clv_error *error, const char *format, ...) CLV_PRINTF(3, 4);

/* Returns the name that is nearest to a misspelt name, or NULL if none is near. */
const char *cli_nearest(const char *wrong, const char *const *names, size_t count);

#endif
