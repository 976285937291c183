/* The completion script for zsh: a function in its own file, or a text to source after compinit. */
#include <string.h>

#include "cli/manual/topic.h"

/* Prints text inside '…', where `special` characters get a backslash. */
static void print_quoted(const char *text, const char *special) {
  for (; *text != '\0'; ++text) {
    if (*text == '\'')
      fputs("'\\''", stdout);
    else
      printf("%s%c", strchr(special, *text) != NULL ? "\\" : "", *text);
  }
}

static void print_action(cli_word_kind kind, const char *choices) {
  switch (kind) {
    case CLI_WORD_CHOICE:
    case CLI_WORD_STRATEGY:
      printf("(");
      cli_print_choices(kind, choices);
      printf(")");
      break;
    case CLI_WORD_DEVICE:
      printf("_cleave_device");
      break;
    case CLI_WORD_DEVICES:
      printf("_cleave_devices");
      break;
    case CLI_WORD_FILE:
      printf("_files");
      break;
    case CLI_WORD_DIRECTORY:
      printf("_directories");
      break;
    case CLI_WORD_SPEC:
      printf("_cleave_spec");
      break;
    case CLI_WORD_TO_DEVICE:
      printf("_cleave_to_device");
      break;
    case CLI_WORD_NAMED_FILE:
      printf("_cleave_named_file");
      break;
    case CLI_WORD_DEVICE_OR_FILE:
      printf("_cleave_device_or_file");
      break;
    case CLI_WORD_NONE:
      printf(" ");
      break;
  }
}

static void print_option(const cli_option *option) {
  const char *repeats = option->repeats ? "*" : "";
  bool has_value = option->kind != CLI_FLAG;
  char summary[80];
  printf(" \\\n    ");
  if (option->letter != 0 && option->repeats)
    printf("'*'{-%c%s,--%s%s}'", option->letter, has_value ? "+" : "", option->name, has_value ? "=" : "");
  else if (option->letter != 0)
    printf("'(-%c --%s)'{-%c%s,--%s%s}'", option->letter, option->name, option->letter, has_value ? "+" : "", option->name,
           has_value ? "=" : "");
  else
    printf("'%s--%s%s", repeats, option->name, option->kind == CLI_MAYBE_TEXT ? "=-" : has_value ? "=" : "");
  printf("[");
  cli_option_summary(option, summary, sizeof summary);
  print_quoted(summary, "[]:\\");
  printf("]");
  if (has_value) {
    printf(option->kind == CLI_MAYBE_TEXT ? "::" : ":");
    print_quoted(option->value, ":\\");
    printf(":");
    print_action(cli_option_word(option), option->value);
  }
  printf("'");
}

static void print_topic(uint32_t index, const cli_topic *topic) {
  printf("_cleave_topic_%u() { # %s\n  _arguments -s -S", index, topic->name);
  for (uint32_t i = 0; i < topic->option_count; ++i) print_option(&topic->options[i]);
  if (topic->operands[0] != '\0') {
    printf(" \\\n    '*:");
    print_quoted(topic->operands, ":\\");
    printf(":");
    print_action(cli_operand_word(topic), topic->operands);
    printf("'");
  }
  printf("\n}\n\n");
}

static void print_descriptions(const cli_command *command) {
  cli_topic topic;
  for (uint32_t i = 0; cli_topic_get(i, &topic); ++i) {
    if (command == NULL ? topic.verb != NULL : topic.command != command || topic.verb == NULL) continue;
    printf("    '%s:", command == NULL ? topic.name : topic.verb);
    print_quoted(topic.summary, ":\\");
    printf("'\n");
  }
}

static void print_cases(const cli_command *command, const char *indent) {
  cli_topic topic;
  for (uint32_t i = 0; cli_topic_get(i, &topic); ++i) {
    if (command == NULL ? topic.verb != NULL : topic.command != command || topic.verb == NULL) continue;
    printf("%s%s) ", indent, command == NULL ? topic.name : topic.verb);
    if (command == NULL && topic.command->describe_verb != NULL)
      printf("_cleave_%s ;;\n", topic.name);
    else
      printf("_cleave_topic_%u ;;\n", i);
  }
}

/* A function that completes the verb of a command with verbs, and then calls the verb's function. */
static void print_verbs(const cli_command *command) {
  printf("_cleave_%s() {\n  local curcontext=$curcontext state line\n  local -a verbs\n  verbs=(\n", command->name);
  print_descriptions(command);
  printf(
      "  )\n  _arguments -C -S '(-h --help)'{-h,--help}'[show this help]' '1:verb:->verb' '*::argument:->rest'\n"
      "  case $state in\n    verb) _describe verb verbs ;;\n    rest)\n      case $words[1] in\n");
  print_cases(command, "        ");
  printf("      esac\n      ;;\n  esac\n}\n\n");
}

void cli_completion_zsh(void) {
  cli_topic topic;
  printf("#compdef cleave\n# Completion of `cleave` for zsh, made by 'cleave completion zsh'.\n\n");
  printf("_cleave_device() { compadd \"$@\" - ");
  cli_print_choices(CLI_WORD_DEVICE, NULL);
  printf(
      "; }\n_cleave_devices() { _sequence _cleave_device; }\n"
      "_cleave_spec() { _alternative 'specs:built-in description:(default all)' 'files:file:_files'; }\n"
      "_cleave_device_or_file() { _alternative 'devices:device:_cleave_device' 'files:file:_files'; }\n"
      "_cleave_to_device() { if compset -P '*='; then _cleave_device; else _message 'PATTERN=DEV'; fi; }\n"
      "_cleave_named_file() { compset -P '*='; _files; }\n\n");
  for (uint32_t i = 0; cli_topic_get(i, &topic); ++i) {
    if (topic.verb != NULL || topic.command->describe_verb == NULL) print_topic(i, &topic);
  }
  for (uint32_t c = 0; c < CLI_COMMAND_COUNT; ++c) {
    if (cli_commands[c]->describe_verb != NULL) print_verbs(cli_commands[c]);
  }
  printf("_cleave() {\n  local curcontext=$curcontext state line\n  local -a commands\n  commands=(\n");
  print_descriptions(NULL);
  printf(
      "    'help:show the help of a command'\n  )\n"
      "  _arguments -C -S '(-h --help)'{-h,--help}'[list the commands]' '(-V --version)'{-V,--version}'[show the version]' \\\n"
      "    '1:command:->command' '*::argument:->rest'\n"
      "  case $state in\n    command) _describe command commands ;;\n    rest)\n      case $words[1] in\n");
  print_cases(NULL, "        ");
  printf(
      "        help) ((CURRENT == 2)) && _describe command commands ;;\n      esac\n      ;;\n  esac\n}\n\n"
      "if [[ $funcstack[1] == _cleave ]]; then\n  _cleave \"$@\"\nelse\n  compdef _cleave cleave\nfi\n");
}
