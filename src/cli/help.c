/* The help texts: from the table of commands and the table of options. */
#include <stdio.h>
#include <string.h>

#include "base/environment.h"
#include "cli/console.h"
#include "cli/options.h"
#include "place/place.h"

enum { HELP_COLUMN = 34, LINE_END = 100 };

void cli_help(const cli_invocation *cli) {
  printf(
      "cleave %s: runs one neural network on all the devices of a machine\n\n%sUsage%s\n  cleave COMMAND [OPTIONS] ...\n\n"
      "%sCommands%s\n",
      clv_version(), cli_begin(cli, CLI_BOLD), cli_reset(cli), cli_begin(cli, CLI_BOLD), cli_reset(cli));
  for (uint32_t i = 0; i < CLI_COMMAND_COUNT; ++i) {
    printf("  %-13s %-15s %s\n", cli_commands[i]->name, cli_commands[i]->operands, cli_commands[i]->summary);
  }
  printf("\n%sEnvironment%s (options win)\n", cli_begin(cli, CLI_BOLD), cli_reset(cli));
  for (uint32_t i = 0; i < CLV__VARIABLE_COUNT; ++i) {
    const clv__variable_info *variable = &clv__variables[i];
    if (variable->help == NULL) continue;
    printf("  %-20s %s%s%s\n", variable->name, variable->help, variable->values != NULL ? ": " : "",
           variable->values != NULL ? variable->values : "");
  }
  printf(
      "\n%sBegin with%s\n"
      "  cleave devices --devices npu,cpu             what is here, and what each can do\n"
      "  cleave plan model.onnx --devices npu,cpu     how a model would be split between them\n"
      "  cleave run model.onnx --devices npu,cpu --verify\n\n"
      "'cleave help COMMAND' tells the options. Exit status: 0 done, 1 failed, 2 wrong usage.\n",
      cli_begin(cli, CLI_BOLD), cli_reset(cli));
}

/* Words from `text` in lines that begin at HELP_COLUMN; the first continues a line of `used` columns. */
static void print_wrapped(const char *text, int used) {
  int column = used;
  if (column >= HELP_COLUMN) {
    putchar('\n');
    column = 0;
  }
  printf("%*s", HELP_COLUMN - column, "");
  column = HELP_COLUMN;
  while (*text != '\0') {
    int length = (int)strcspn(text, " ");
    if (column > HELP_COLUMN && column + 1 + length > LINE_END) {
      printf("\n%*s", HELP_COLUMN, "");
      column = HELP_COLUMN;
    } else if (column > HELP_COLUMN) {
      putchar(' ');
      ++column;
    }
    printf("%.*s", length, text);
    column += length;
    text += length;
    while (*text == ' ') ++text;
  }
  putchar('\n');
}

void cli_help_option(const cli_option *option) {
  char head[96], text[512];
  const char *equals = option->kind == CLI_MAYBE_TEXT ? "[=" : " ", *close = option->kind == CLI_MAYBE_TEXT ? "]" : "";
  int used;
  if (option->letter != 0) {
    used = snprintf(head, sizeof head, "  -%c, --%s", option->letter, option->name);
  } else {
    used = snprintf(head, sizeof head, "  --%s", option->name);
  }
  if (option->value != NULL) used += snprintf(head + used, sizeof head - (size_t)used, "%s%s%s", equals, option->value, close);
  snprintf(text, sizeof text, "%s%s%s%s%s", option->help, option->repeats ? " (repeatable)" : "",
           option->fallback != NULL ? " [default: " : "", option->fallback != NULL ? option->fallback : "",
           option->fallback != NULL ? "]" : "");
  printf("%s", head);
  print_wrapped(text, used);
}

/* An option as one command takes it. */
static void help_option_of(uint32_t command, cli_option_id id) {
  cli_option option = cli_option_table[id];
  for (uint32_t i = 0; i < cli_option_words_count; ++i) {
    const cli_option_words *words = &cli_option_words_table[i];
    if (words->command != command || words->id != id) continue;
    option.help = words->help;
    if (words->fallback != NULL) option.fallback = words->fallback;
  }
  cli_help_option(&option);
}

void cli_help_command(const cli_invocation *cli, const cli_command *command) {
  uint32_t index = 0;
  while (cli_commands[index] != command) ++index;
  const char *bold = cli_begin(cli, CLI_BOLD), *reset = cli_reset(cli);
  printf("cleave %s: %s\n\n%sUsage%s\n  cleave %s%s%s [OPTIONS]\n\n%s\n\n%sOptions%s\n", command->name, command->summary, bold,
         reset, command->name, command->operands[0] != '\0' ? " " : "", command->operands, command->description, bold, reset);
  for (uint32_t i = 0; i < OPTION_COUNT; ++i) {
    if ((cli_option_table[i].commands >> index & 1) != 0) help_option_of(index, (cli_option_id)i);
  }
  if ((cli_option_table[OPTION_STRATEGY].commands >> index & 1) != 0) {
    printf("\n%sStrategies%s\n", bold, reset);
    for (const clv__strategy *strategy = clv__strategies; strategy->name != NULL; ++strategy) {
      print_wrapped(strategy->summary, printf("  %s", strategy->name));
    }
  }
  printf("\n%sExamples%s\n%s", bold, reset, command->examples);
}
