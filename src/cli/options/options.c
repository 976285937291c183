/* Parses arguments with the option table. See options.h. */
#include "cli/options/options.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t index_of(const cli_command *command) {
  uint32_t index = 0;
  while (cli_commands[index] != command) ++index;
  return index;
}

static bool takes(const cli_command *command, const cli_option *option) {
  return (option->commands >> index_of(command) & 1) != 0;
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

static bool parse_duration(const char *text, double *seconds) {
  static const struct {
    const char *unit;
    double seconds;
  } units[] = {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"m", 60}, {"min", 60}, {"h", 3600}};
  char *end;
  if (text[0] < '0' || text[0] > '9') return false;
  const double number = strtod(text, &end);
  for (size_t i = 0; i < sizeof units / sizeof *units; ++i) {
    if (strcmp(end, units[i].unit) != 0) continue;
    *seconds = number * units[i].seconds;
    return *seconds > 0 && *seconds <= 1e9;
  }
  return false;
}

/* Copies the element of a list that starts at `at`, without its comma, into `element`. Returns the start of the next element,
 * or NULL if there is none. */
static const char *next_element(const char *at, char *element, size_t size_bytes) {
  const size_t length = strcspn(at, ",");
  snprintf(element, size_bytes, "%.*s", (int)(length < size_bytes ? length : size_bytes - 1), at);
  return at[length] == ',' ? at + length + 1 : NULL;
}

static clv_status check_number(cli_invocation *cli, const cli_option *option, const char *value, clv_error *error) {
  uint64_t number;
  if (parse_number(value, &number) && number >= option->least && number <= UINT32_MAX) return CLV_OK;
  return cli_usage(cli, error, "option '--%s': '%s' is not a whole number from %llu to %u", option->name, value,
                   (unsigned long long)option->least, UINT32_MAX);
}

static clv_status check_real(cli_invocation *cli, const cli_option *option, const char *value, clv_error *error) {
  double real;
  if (parse_real(value, &real)) return CLV_OK;
  return cli_usage(cli, error, "option '--%s': '%s' is not a number of 0 or more", option->name, value);
}

static clv_status check_list(cli_invocation *cli, const cli_option *option, const char *value, clv_error *error) {
  char element[64];
  for (const char *at = value; at != NULL;) {
    at = next_element(at, element, sizeof element);
    CLI_TRY(option->kind == CLI_NUMBERS ? check_number(cli, option, element, error) : check_real(cli, option, element, error));
  }
  return CLV_OK;
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
  double seconds;
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
      return check_number(cli, option, value, error);
    case CLI_REAL:
      return check_real(cli, option, value, error);
    case CLI_NUMBERS:
    case CLI_REALS:
      return check_list(cli, option, value, error);
    case CLI_DURATION:
      if (parse_duration(value, &seconds)) return CLV_OK;
      return cli_usage(cli, error, "option '--%s': '%s' is not a duration, such as 10s, 500ms or 2m", option->name, value);
    case CLI_CHOICE:
      if (is_choice(option->value, value)) return CLV_OK;
      return cli_usage(cli, error, "option '--%s': '%s' is not one of %s", option->name, value, option->value);
  }
  return CLV_OK;
}

cli_option cli_option_for(uint32_t command, cli_option_id id) {
  cli_option option = cli_option_table[id];
  for (uint32_t i = 0; i < cli_option_words_count; ++i) {
    const cli_option_words *words = &cli_option_words_table[i];
    if (words->command != command || words->id != id) continue;
    if (words->help != NULL) option.help = words->help;
    if (words->fallback != NULL) option.fallback = words->fallback;
    if (!words->is_list) continue;
    option.repeats = option.kind != CLI_NUMBER;
    if (option.repeats) continue;
    option.kind = CLI_NUMBERS;
    option.value = "N,N,...";
  }
  return option;
}

/* Returns OPTION_COUNT if the command has no such option. */
static cli_option_id find_option(const cli_command *command, const char *argument, size_t length) {
  for (uint32_t i = 0; i < OPTION_COUNT; ++i) {
    const cli_option *option = &cli_option_table[i];
    if (!takes(command, option)) continue;
    if (length == 2 && argument[1] != '-' && option->letter == argument[1]) return i;
    if (length > 2 && argument[1] == '-' && strlen(option->name) == length - 2 &&
        strncmp(option->name, argument + 2, length - 2) == 0) {
      return i;
    }
  }
  return OPTION_COUNT;
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
  const cli_option_id id = find_option(p->command, argument, length);
  if (id == OPTION_COUNT) return unknown_option(p->cli, p->command, argument, length, error);
  const cli_option option = cli_option_for(index_of(p->command), id);
  const char *value = "";
  if (option.kind == CLI_FLAG) {
    if (equals != NULL) return cli_usage(p->cli, error, "option '%.*s' takes no value", (int)length, argument);
  } else if (equals != NULL) {
    value = equals + 1;
  } else if (option.kind == CLI_MAYBE_TEXT) {
    bool complete = p->options->operand_count >= p->command->max_operands;
    if (complete && p->at < p->count && p->arguments[p->at][0] != '-') value = p->arguments[p->at++];
  } else if (p->at < p->count) {
    value = p->arguments[p->at++];
  } else {
    return cli_usage(p->cli, error, "option '%s' needs a value: %s %s", argument, argument, option.value);
  }
  CLI_TRY(check_value(p->cli, &option, value, error));
  cli_given *given = &p->options->given[id];
  if (given->values == NULL) {
    given->values = cli_arena_allocate_zero(&p->cli->arena, (size_t)p->count + 1, sizeof *given->values);
    if (given->values == NULL) return cli_error_memory(error, (size_t)p->count * sizeof *given->values);
  }
  if (!option.repeats) given->count = 0;
  given->values[given->count++] = value;
  return CLV_OK;
}

clv_status cli_options_parse(cli_invocation *cli, const cli_command *command, int count, char **arguments, cli_options *options,
                             clv_error *error) {
  *options = (cli_options){.command = command};
  options->operands = cli_arena_allocate_zero(&cli->arena, (size_t)count + 1, sizeof *options->operands);
  if (options->operands == NULL) return cli_error_memory(error, (size_t)count * sizeof *options->operands);
  parser p = {cli, command, options, 0, count, arguments};
  bool only_operands = false;
  while (p.at < count) {
    const char *argument = arguments[p.at];
    if (!only_operands && strcmp(argument, "--") == 0) {
      only_operands = true;
      ++p.at;
    } else if (!only_operands && argument[0] == '-' && argument[1] != '\0') {
      CLI_TRY(parse_option(&p, error));
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

double cli_seconds(const cli_invocation *cli, cli_option_id id, double fallback) {
  double seconds;
  const char *text = cli_text(cli, id, NULL);
  return text != NULL && parse_duration(text, &seconds) ? seconds : fallback;
}

const char **cli_split(cli_invocation *cli, const char *text, uint32_t *count) {
  size_t most = 1;
  for (const char *at = text; *at != '\0'; ++at) most += *at == ',';
  const char **parts = cli_arena_allocate_zero(&cli->arena, most, sizeof *parts);
  for (*count = 0; parts != NULL && *count < most; ++*count) {
    const size_t length = strcspn(text, ",");
    parts[*count] = cli_arena_string(&cli->arena, text, length);
    if (parts[*count] == NULL) return NULL;
    text += length + (text[length] == ',');
  }
  return parts;
}
