/* Prints the help texts from the command table and the option table. */
#include <stdio.h>
#include <string.h>

#include "cleave/program.h"
#include "cli/console.h"
#include "cli/options/options.h"

enum {
  HELP_COLUMN = 27,
  LINE_END = 80,
  FULL_LINE = 90 /* a line of a description with fewer bytes ends its paragraph; a longer one is joined with the next line */
};

/* Prints the first `length` bytes of `text` as lines indented by `indent` columns. `used` columns of the current line have been
 * printed already; if that is `indent` or more, starts a new line. */
static void print_words(const char *text, size_t length, int used, int indent) {
  const char *end = text + length;
  if (used > 0 && used >= indent) {
    putchar('\n');
    used = 0;
  }
  printf("%*s", indent - used, "");
  int column = indent;
  while (text < end) {
    int word = 0;
    while (text + word < end && text[word] != ' ') ++word;
    if (column > indent && column + 1 + word > LINE_END) {
      printf("\n%*s", indent, "");
      column = indent;
    } else if (column > indent) {
      putchar(' ');
      ++column;
    }
    printf("%.*s", word, text);
    column += word;
    text += word;
    while (text < end && *text == ' ') ++text;
  }
  putchar('\n');
}

static void print_wrapped(const char *text, int used) {
  print_words(text, strlen(text), used, HELP_COLUMN);
}

/* The column where the text of a list entry ("  word   text") starts. */
static size_t entry_indent(const char *line) {
  size_t begin = strspn(line, " "), word = strcspn(line + begin, " \n");
  return begin + word + strspn(line + begin + word, " ");
}

const char *cli_paragraph_next(const char *text, char *word, size_t word_bytes, char *paragraph, size_t paragraph_bytes) {
  if (*text == '\0') return NULL;
  word[0] = paragraph[0] = '\0';
  size_t used = 0, length = strcspn(text, "\n");
  if (*text == ' ') {
    size_t begin = strspn(text, " "), indent = entry_indent(text);
    snprintf(word, word_bytes, "%.*s", (int)strcspn(text + begin, " \n"), text + begin);
    snprintf(paragraph, paragraph_bytes, "%.*s", (int)(length - indent), text + indent);
    return text + length + (text[length] == '\n');
  }
  do {
    length = strcspn(text, "\n");
    int written = snprintf(paragraph + used, paragraph_bytes - used, "%s%.*s", used > 0 ? " " : "", (int)length, text);
    used += written < 0 ? 0 : (size_t)written;
    if (used >= paragraph_bytes) used = paragraph_bytes - 1;
    text += length + (text[length] == '\n');
  } while (length >= FULL_LINE && *text != '\0' && *text != ' ');
  return text;
}

void cli_help_text(const char *text) {
  char word[64], paragraph[2048];
  for (const char *next; (next = cli_paragraph_next(text, word, sizeof word, paragraph, sizeof paragraph)) != NULL; text = next) {
    size_t indent = word[0] != '\0' ? entry_indent(text) : 0;
    int lead = indent > 0 ? (int)indent - 1 : 0;
    printf("%.*s", lead, text);
    print_words(paragraph, strlen(paragraph), lead, (int)indent);
  }
}

const char *cli_variable(uint32_t index, const char **help, const char **values) {
  clv_variable_info variable = {.struct_size = sizeof variable};
  for (uint32_t i = 0; clv_variable(i, &variable); ++i) {
    if (variable.help == NULL || index-- > 0) continue;
    *help = variable.help;
    *values = variable.values;
    return variable.name;
  }
  return NULL;
}

void cli_help(const cli_invocation *cli) {
  printf(
      "cleave %s: run one neural network on all the devices of a machine\n"
      "\n"
      "%sUsage%s\n"
      "  cleave COMMAND [OPTIONS] ...\n"
      "\n"
      "%sCommands%s\n",
      clv_version(), cli_begin(cli, CLI_BOLD), cli_reset(cli), cli_begin(cli, CLI_BOLD), cli_reset(cli));
  for (uint32_t i = 0; i < CLI_COMMAND_COUNT; ++i) {
    const cli_command *command = cli_commands[i];
    int used = printf("  %-13s %-15s", command->name, command->operands);
    print_words(command->summary, strlen(command->summary), used, used + 1);
  }
  printf("\n%sEnvironment%s (options take precedence)\n", cli_begin(cli, CLI_BOLD), cli_reset(cli));
  const char *name, *help, *values;
  for (uint32_t i = 0; (name = cli_variable(i, &help, &values)) != NULL; ++i) {
    char text[256];
    int length = snprintf(text, sizeof text, "%s%s%s", help, values != NULL ? ": " : "", values != NULL ? values : "");
    int used = printf("  %-20s", name);
    if (length > 0) print_words(text, strlen(text), used, used + 1);
  }
  printf(
      "\n"
      "%sGetting started%s\n"
      "  cleave devices --devices npu,cpu                    list devices and operators\n"
      "  cleave plan model.onnx --devices npu,cpu            show how a model is split\n"
      "  cleave run model.onnx --devices npu,cpu --verify    run it, check the results\n"
      "\n"
      "'cleave help COMMAND' shows the options of a command.\n"
      "Exit status: 0 success, 1 failure, 2 wrong usage, 130 interrupted (Ctrl-C).\n",
      cli_begin(cli, CLI_BOLD), cli_reset(cli));
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

void cli_help_command(const cli_invocation *cli, const cli_command *command) {
  uint32_t index = 0;
  while (cli_commands[index] != command) ++index;
  const char *bold = cli_begin(cli, CLI_BOLD), *reset = cli_reset(cli);
  printf("cleave %s: %s\n\n%sUsage%s\n  cleave %s%s%s [OPTIONS]\n\n", command->name, command->summary, bold, reset, command->name,
         command->operands[0] != '\0' ? " " : "", command->operands);
  cli_help_text(command->description);
  printf("\n%sOptions%s\n", bold, reset);
  for (uint32_t i = 0; i < OPTION_COUNT; ++i) {
    if ((cli_option_table[i].commands >> index & 1) == 0) continue;
    const cli_option option = cli_option_for(index, (cli_option_id)i);
    cli_help_option(&option);
  }
  if ((cli_option_table[OPTION_STRATEGY].commands >> index & 1) != 0) {
    printf("\n%sStrategies%s\n", bold, reset);
    const char *name, *summary;
    for (uint32_t i = 0; (name = cli_strategy(i, &summary)) != NULL; ++i) print_wrapped(summary, printf("  %s", name));
  }
  printf("\n%sExamples%s\n%s", bold, reset, command->examples);
}
