/* The completion script for fish. */
#include "cli/manual/topic.h"

/* Prints text inside '…'. */
static void print_quoted(const char *text) {
  for (; *text != '\0'; ++text) printf("%s%c", *text == '\'' || *text == '\\' ? "\\" : "", *text);
}

/* Prints the arguments of `complete` for a word: -x takes only the words of -a, -F also files. */
static void print_action(cli_word_kind kind, const char *choices) {
  switch (kind) {
    case CLI_WORD_CHOICE:
    case CLI_WORD_STRATEGY:
    case CLI_WORD_DEVICE:
      printf(" -x -a '");
      cli_print_choices(kind, choices);
      printf("'");
      break;
    case CLI_WORD_DEVICES:
      printf(" -x -a '(__cleave_devices)'");
      break;
    case CLI_WORD_TO_DEVICE:
      printf(" -x -a '(__cleave_to_device)'");
      break;
    case CLI_WORD_DIRECTORY:
      printf(" -x -a '(__fish_complete_directories)'");
      break;
    case CLI_WORD_SPEC:
      printf(" -r -F -a 'default all'");
      break;
    case CLI_WORD_NAMED_FILE:
    case CLI_WORD_FILE:
      printf(" -r -F");
      break;
    case CLI_WORD_DEVICE_OR_FILE:
      printf(" -F -a '");
      cli_print_choices(CLI_WORD_DEVICE, NULL);
      printf("'");
      break;
    case CLI_WORD_NONE:
      printf(" -x");
      break;
  }
}

static void print_topic(const cli_topic *topic) {
  char summary[80];
  printf("\n");
  for (uint32_t i = 0; i < topic->option_count; ++i) {
    const cli_option *option = &topic->options[i];
    printf("complete -c cleave -n '__cleave_is %s' -l %s", topic->name, option->name);
    if (option->letter != 0) printf(" -s %c", option->letter);
    if (option->kind != CLI_FLAG && option->kind != CLI_MAYBE_TEXT) print_action(cli_option_word(option), option->value);
    cli_option_summary(option, summary, sizeof summary);
    printf(" -d '");
    print_quoted(summary);
    printf("'\n");
  }
  cli_word_kind operand = cli_operand_word(topic);
  if (operand == CLI_WORD_NONE) return;
  printf("complete -c cleave -n '__cleave_is %s'", topic->name);
  if (operand == CLI_WORD_FILE)
    printf(" -F\n");
  else if (operand == CLI_WORD_DIRECTORY)
    printf(" -a '(__fish_complete_directories)'\n");
  else if (operand == CLI_WORD_DEVICE_OR_FILE)
    print_action(operand, NULL), printf("\n");
  else
    printf(" -a '"), cli_print_choices(operand, topic->operands), printf("'\n");
}

static const char functions[] =
    "# Completion of `cleave` for fish, made by 'cleave completion fish'.\n"
    "\n"
    "# The command before the cursor: 'plan', 'gnn plan', or nothing.\n"
    "function __cleave_topic\n"
    "    set -l words (commandline -opc)\n"
    "    set -e words[1]\n"
    "    test (count $words) -gt 0; and test \"$words[1]\" = help; and set -e words[1]; and set -a words help\n"
    "    if test (count $words) -gt 1; and contains -- \"$words[1]\" $__cleave_with_verbs; and not string match -q -- '-*' "
    "\"$words[2]\"\n"
    "        echo \"$words[1] $words[2]\"\n"
    "    else if test (count $words) -gt 0\n"
    "        echo \"$words[1]\"\n"
    "    end\n"
    "end\n"
    "function __cleave_is\n"
    "    set -l topic (__cleave_topic)\n"
    "    test \"$topic\" = \"$argv\"\n"
    "end\n"
    "# Device names for the last word of a list with commas.\n"
    "function __cleave_devices\n"
    "    set -l value (string replace -r '^--[^=]*=' '' -- (commandline -ct))\n"
    "    set -l before (string match -r '^.*,' -- $value)\n"
    "    for device in $__cleave_device_names\n"
    "        echo \"$before$device\"\n"
    "    end\n"
    "end\n"
    "# Device names after PATTERN=.\n"
    "function __cleave_to_device\n"
    "    set -l value (string replace -r '^--[^=]*=' '' -- (commandline -ct))\n"
    "    set -l before (string match -r '^.*=' -- $value)\n"
    "    test -n \"$before\"; or return\n"
    "    for device in $__cleave_device_names\n"
    "        echo \"$before$device\"\n"
    "    end\n"
    "end\n"
    "\n";

/* The commands, after `cleave` and after `cleave help`; and the verbs of each command that has some. */
static void print_names(void) {
  cli_topic topic;
  for (uint32_t i = 0; cli_topic_get(i, &topic); ++i) {
    if (topic.verb == NULL)
      printf("complete -c cleave -n '__cleave_is; or __cleave_is help' -a %s -d '", topic.name);
    else
      printf("complete -c cleave -n '__cleave_is %s' -a %s -d '", topic.command->name, topic.verb);
    print_quoted(topic.summary);
    printf("'\n");
  }
  printf(
      "complete -c cleave -n __cleave_is -a help -d 'show the help of a command'\n"
      "complete -c cleave -n __cleave_is -s h -l help -d 'list the commands'\n"
      "complete -c cleave -n __cleave_is -s V -l version -d 'show the version'\n");
}

void cli_completion_fish(void) {
  cli_topic topic;
  fputs(functions, stdout);
  printf("set -g __cleave_device_names ");
  cli_print_choices(CLI_WORD_DEVICE, NULL);
  printf("\nset -g __cleave_with_verbs");
  for (uint32_t c = 0; c < CLI_COMMAND_COUNT; ++c) {
    if (cli_commands[c]->describe_verb != NULL) printf(" %s", cli_commands[c]->name);
  }
  printf("\n\ncomplete -c cleave -f\n");
  print_names();
  for (uint32_t i = 0; cli_topic_get(i, &topic); ++i) print_topic(&topic);
}
