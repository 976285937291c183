/* Parses arguments with the option table. See options.h. */
#include "cli/options/options.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool takes(const cli_command *command, const cli_option *option) {
  for (uint32_t i = 0; i < CLI_COMMAND_COUNT; ++i) {
    if (cli_commands[i] == command) return (option->commands >> i & 1) != 0;
  }
  return false;
}

/* Lists the commands that accept an option. */
static void list_takers(const cli_option *option, char *list, size_t size_bytes) {
  list[0] = '\0';
  for (uint32_t i = 0; i < CLI_COMMAND_COUNT; ++i) {
    if ((option->commands >> i & 1) == 0) continue;
    size_t used = strlen(list);
    if (used > 0) strncat(list, ", ", size_bytes - used - 1);
    strncat(list, cli_commands[i]->name, size_bytes - strlen(list) - 1);
  }
}

static clv_status unknown_option(cli_invocation *cli, const cli_command *command, const char *argument, size_t length,
                                 clv_error *error) {
  const char *names[OPTION_COUNT];
  char wrong[64], takers[128];
  size_t count = 0;
  for (uint32_t i = 0; i < OPTION_COUNT; ++i) {
    const cli_option *option = &cli_option_table[i];
    if (takes(command, option)) {
      names[count++] = option->name;
    } else if (length > 2 && strlen(option->name) == length - 2 && strncmp(option->name, argument + 2, length - 2) == 0) {
      list_takers(option, takers, sizeof takers);
      return cli_usage(cli, error, "'%s' has no option '%.*s'; it belongs to: %s", command->name, (int)length, argument, takers);
    }
  }
  size_t start = argument[1] == '-' ? 2 : 1, size = length - start < sizeof wrong ? length - start : sizeof wrong - 1;
  memcpy(wrong, argument + start, size);
  wrong[size] = '\0';
  const char *nearest = start == 2 ? cli_nearest(wrong, names, count) : NULL;
  if (nearest != NULL) {
    return cli_usage(cli, error, "unknown option '%.*s'; did you mean '--%s'?", (int)length, argument, nearest);
  }
  return cli_usage(cli, error, "unknown option '%.*s'; 'cleave help %s' lists the options", (int)length, argument, command->name);
}

static bool parse_number(const char *text, uint64_t *number) {
  char *end;
  if (text[0] < '0' || text[0] > '9') return false;
  errno = 0;
  *number = strtoull(text, &end, 10);
  return errno == 0 && *end == '\0';
}

static bool parse_real(const char *text, double *number) {
  char *end;
  if (text[0] == '\0') return false;
  *number = strtod(text, &end);
  return *end == '\0' && *number >= 0 && isfinite(*number);
}

static bool is_choice(const char *choices, const char *value) {
  size_t length = strlen(value);
  for (const char *at = choices;; ++at) {
    size_t span = strcspn(at, "|");
    if (span == length && strncmp(at, value, span) == 0) return true;
    at += span;
    if (*at == '\0') return false;
  }
}

static clv_status check_value(cli_invocation *cli, const cli_option *option, const char *value, clv_error *error) {
  uint64_t number;
  double real;
  switch (option->kind) {
    case CLI_FLAG:
    case CLI_MAYBE_TEXT:
    case CLI_ANY_TEXT:
      return CLV_OK;
    case CLI_TEXT:
      if (value[0] != '\0') return CLV_OK;
      return cli_usage(cli, error, "option '--%s': %s must not be empty", option->name, option->value);
    case CLI_PAIR:
      if (strchr(value, '=') != NULL && value[0] != '=') return CLV_OK;
      return cli_usage(cli, error, "option '--%s': '%s' is not of the form %s", option->name, value, option->value);
    case CLI_NUMBER:
      if (parse_number(value, &number) && number >= option->least && number <= UINT32_MAX) return CLV_OK;
      return cli_usage(cli, error, "option '--%s': '%s' is not a whole number from %llu to %u", option->name, value,
                       (unsigned long long)option->least, UINT32_MAX);
    case CLI_REAL:
      if (parse_real(value, &real)) return CLV_OK;
      return cli_usage(cli, error, "option '--%s': '%s' is not a number of 0 or more", option->name, value);
    case CLI_CHOICE:
      if (is_choice(option->value, value)) return CLV_OK;
      return cli_usage(cli, error, "option '--%s': '%s' is not one of %s", option->name, value, option->value);
  }
  return CLV_OK;
}

static const cli_option *find_option(const cli_command *command, const char *argument, size_t length) {
  for (uint32_t i = 0; i < OPTION_COUNT; ++i) {
    const cli_option *option = &cli_option_table[i];
    if (!takes(command, option)) continue;
    if (length == 2 && argument[1] != '-' && option->letter == argument[1]) return option;
    if (length > 2 && argument[1] == '-' && strlen(option->name) == length - 2 &&
        strncmp(option->name, argument + 2, length - 2) == 0) {
      return option;
    }
  }
  return NULL;
}

typedef struct parser {
  cli_invocation *cli;
  const cli_command *command;
  cli_options *options;
  int at, count;
  char **arguments;
} parser;

/* Parses an argument that starts with a dash, and its value. */
static clv_status parse_option(parser *p, clv_error *error) {
  const char *argument = p->arguments[p->at++], *equals = argument[1] == '-' ? strchr(argument, '=') : NULL;
  size_t length = equals != NULL ? (size_t)(equals - argument) : strlen(argument);
  const cli_option *option = find_option(p->command, argument, length);
  if (option == NULL) return unknown_option(p->cli, p->command, argument, length, error);
  const char *value = "";
  if (option->kind == CLI_FLAG) {
    if (equals != NULL) return cli_usage(p->cli, error, "option '%.*s' takes no value", (int)length, argument);
  } else if (equals != NULL) {
    value = equals + 1;
  } else if (option->kind == CLI_MAYBE_TEXT) {
    bool complete = p->options->operand_count >= p->command->max_operands;
    if (complete && p->at < p->count && p->arguments[p->at][0] != '-') value = p->arguments[p->at++];
  } else if (p->at < p->count) {
    value = p->arguments[p->at++];
  } else {
    return cli_usage(p->cli, error, "option '%s' needs a value: %s %s", argument, argument, option->value);
  }
  CLV__TRY(check_value(p->cli, option, value, error));
  cli_given *given = &p->options->given[option - cli_option_table];
  if (given->values == NULL) {
    given->values = clv__arena_allocate_zero(&p->cli->arena, (size_t)p->count + 1, sizeof *given->values);
    if (given->values == NULL) return clv__error_memory(error, (size_t)p->count * sizeof *given->values);
  }
  if (!option->repeats) given->count = 0;
  given->values[given->count++] = value;
  return CLV_OK;
}

clv_status cli_options_parse(cli_invocation *cli, const cli_command *command, int count, char **arguments, cli_options *options,
                             clv_error *error) {
  *options = (cli_options){.command = command};
  options->operands = clv__arena_allocate_zero(&cli->arena, (size_t)count + 1, sizeof *options->operands);
  if (options->operands == NULL) return clv__error_memory(error, (size_t)count * sizeof *options->operands);
  parser p = {cli, command, options, 0, count, arguments};
  bool only_operands = false;
  while (p.at < count) {
    const char *argument = arguments[p.at];
    if (!only_operands && strcmp(argument, "--") == 0) {
      only_operands = true;
      ++p.at;
    } else if (!only_operands && argument[0] == '-' && argument[1] != '\0') {
      CLV__TRY(parse_option(&p, error));
    } else {
      options->operands[options->operand_count++] = argument;
      ++p.at;
    }
  }
  if (options->given[OPTION_HELP].count > 0) return CLV_OK;
  if (options->operand_count < command->min_operands) {
    return cli_usage(cli, error, "%s is missing; usage: cleave %s %s", command->operands, command->name, command->operands);
  }
  if (options->operand_count > command->max_operands) {
    return cli_usage(cli, error, "'%s' is one argument too many; usage: cleave %s%s%s", options->operands[command->max_operands],
                     command->name, command->operands[0] != '\0' ? " " : "", command->operands);
  }
  return CLV_OK;
}

const char *cli_text(const cli_invocation *cli, cli_option_id id, const char *fallback) {
  const cli_given *given = &cli->options->given[id];
  return given->count > 0 ? given->values[given->count - 1] : fallback;
}

uint64_t cli_number(const cli_invocation *cli, cli_option_id id, uint64_t fallback) {
  uint64_t number;
  const char *text = cli_text(cli, id, NULL);
  return text != NULL && parse_number(text, &number) ? number : fallback;
}

double cli_real(const cli_invocation *cli, cli_option_id id, double fallback) {
  double number;
  const char *text = cli_text(cli, id, NULL);
  return text != NULL && parse_real(text, &number) ? number : fallback;
}
