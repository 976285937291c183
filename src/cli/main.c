/* `cleave`: finds the command, parses its options, creates the context, and converts the result to an exit status. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/console.h"
#include "cli/interrupt.h"
#include "cli/manual/topic.h"
#include "cli/options/options.h"

#define CLI_DECLARE(verb) extern const cli_command cli_command_##verb;
CLI_COMMANDS(CLI_DECLARE)
#undef CLI_DECLARE
#define CLI_ENTRY(verb) &cli_command_##verb,
const cli_command *const cli_commands[CLI_COMMAND_COUNT] = {CLI_COMMANDS(CLI_ENTRY)};
#undef CLI_ENTRY

clv_status cli_usage(cli_invocation *cli, clv_error *error, const char *format, ...) {
  va_list arguments;
  cli->exit_status = CLI_EXIT_USAGE;
  error->status = CLV_INVALID_ARGUMENT;
  va_start(arguments, format);
  vsnprintf(error->message, sizeof error->message, format, arguments);
  va_end(arguments);
  return CLV_INVALID_ARGUMENT;
}

static clv_status find_command(cli_invocation *cli, const char *name, const cli_command **command, clv_error *error) {
  const char *names[CLI_COMMAND_COUNT];
  *command = NULL;
  for (uint32_t i = 0; i < CLI_COMMAND_COUNT; ++i) {
    names[i] = cli_commands[i]->name;
    if (strcmp(names[i], name) == 0) *command = cli_commands[i];
  }
  if (*command != NULL) return CLV_OK;
  const char *nearest = cli_nearest(name, names, CLI_COMMAND_COUNT);
  if (nearest != NULL) return cli_usage(cli, error, "unknown command '%s'; did you mean '%s'?", name, nearest);
  return cli_usage(cli, error, "unknown command '%s'; 'cleave --help' lists the commands", name);
}

static bool wants_color(const cli_invocation *cli, const char *choice, int file) {
  if (strcmp(choice, "auto") != 0) return strcmp(choice, "always") == 0;
  return isatty(file) != 0 && !cli->environment.no_color && !cli->environment.dumb_terminal;
}

static void take_general_options(cli_invocation *cli) {
  const char *color = cli_text(cli, OPTION_COLOR, "auto");
  cli->json = cli_is_given(cli, OPTION_JSON);
  cli->verbose = cli_is_given(cli, OPTION_VERBOSE);
  cli->quiet = cli_is_given(cli, OPTION_QUIET);
  cli->color_out = wants_color(cli, color, STDOUT_FILENO) && !cli->json;
  cli->color_err = wants_color(cli, color, STDERR_FILENO);
}

static clv_status load_plugins(cli_invocation *cli, clv_error *error) {
  const cli_given *plugins = &cli->options->given[OPTION_PLUGIN];
  for (uint32_t i = 0; i < plugins->count; ++i) {
    clv_status status = clv_context_load_plugin(cli->context, plugins->values[i], error);
    if (status == CLV_INVALID_ARGUMENT || status == CLV_NOT_FOUND) cli->exit_status = CLI_EXIT_USAGE;
    CLI_TRY(status);
  }
  return CLV_OK;
}

static clv_status help_command(cli_invocation *cli, const cli_command *command, const char *verb, clv_error *error) {
  if (command->help != NULL) return command->help(cli, verb, error);
  cli_help_command(cli, command);
  return CLV_OK;
}

static clv_status run_command(cli_invocation *cli, const cli_command *command, int count, char **arguments, clv_error *error) {
  cli_options options;
  CLI_TRY(cli_options_parse(cli, command, count, arguments, &options, error));
  cli->options = &options;
  take_general_options(cli);
  clv_status status = CLV_OK;
  if (cli_is_given(cli, OPTION_HELP)) {
    status = help_command(cli, command, options.operand_count > 0 ? options.operands[0] : NULL, error);
  } else {
    clv_context_options context_options;
    cli_context_options(cli, &context_options);
    status = clv_context_create(&context_options, &cli->context, error);
    if (status == CLV_OK) status = load_plugins(cli, error);
    if (status == CLV_OK) status = cli_outputs_check(cli, error);
    if (status == CLV_OK) status = cli_options_settle(cli, &options, error);
    if (status == CLV_OK) status = command->execute(cli, error);
    clv_context_destroy(cli->context);
  }
  cli->options = NULL;
  return status;
}

/* Handles --help, --version and help VERB, then runs the command. */
static clv_status dispatch(cli_invocation *cli, int count, char **arguments, clv_error *error) {
  const cli_command *command;
  if (count < 2) return cli_usage(cli, error, "a command is missing; 'cleave --help' lists the commands");
  const char *first = arguments[1];
  cli->color_out = wants_color(cli, "auto", STDOUT_FILENO);
  if (strcmp(first, "--version") == 0 || strcmp(first, "-V") == 0 || (strcmp(first, "version") == 0 && count == 2)) {
    printf("cleave %s\n", clv_version());
    return CLV_OK;
  }
  if (strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0 || (strcmp(first, "help") == 0 && count == 2)) {
    cli_help(cli);
    return CLV_OK;
  }
  if (strcmp(first, "help") == 0 && strcmp(arguments[2], "--man") == 0)
    return cli_man_print(cli, count > 3 ? arguments[3] : NULL, count > 4 ? arguments[4] : NULL, error);
  if (strcmp(first, "help") == 0 && strcmp(arguments[2], "--man-pages") == 0 && count == 4)
    return cli_man_write_all(cli, arguments[3], error);
  if (strcmp(first, "help") == 0) {
    CLI_TRY(find_command(cli, arguments[2], &command, error));
    return help_command(cli, command, count > 3 ? arguments[3] : NULL, error);
  }
  if (first[0] == '-') return cli_usage(cli, error, "options come after the command: cleave COMMAND %s ...", first);
  CLI_TRY(find_command(cli, first, &command, error));
  return run_command(cli, command, count - 2, arguments + 2, error);
}

int main(int count, char **arguments) {
  cli_invocation cli = {0};
  clv_error error = {0};
  cli_interrupt_begin();
  cli_environment_read(&cli.environment);
  cli.color_err = wants_color(&cli, "auto", STDERR_FILENO);
  clv_status status = dispatch(&cli, count, arguments, &error);
  cli_progress_end(&cli);
  if (status == CLV_OK) status = cli_flush(&error);
  if (status != CLV_OK) {
    cli_print_error(&cli, &error);
    if (cli.exit_status == CLI_EXIT_DONE) cli.exit_status = CLI_EXIT_FAILED;
  }
  cli_arena_finish(&cli.arena);
  return cli.exit_status;
}
