/* The completion script for bash. It needs no package: bash-completion only finds the installed script. */
#include "cli/manual/topic.h"

/* Prints the action that completes a word, as a call of a function of the script. */
static void print_action(cli_word_kind kind, const char *choices) {
  switch (kind) {
    case CLI_WORD_CHOICE:
    case CLI_WORD_STRATEGY:
      printf("_cleave_words '");
      cli_print_choices(kind, choices);
      printf("'");
      break;
    case CLI_WORD_DEVICE:
      printf("_cleave_words \"$_cleave_devices\"");
      break;
    case CLI_WORD_DEVICES:
      printf("_cleave_list \"$_cleave_devices\"");
      break;
    case CLI_WORD_FILE:
      printf("_cleave_files");
      break;
    case CLI_WORD_DIRECTORY:
      printf("_cleave_folders");
      break;
    case CLI_WORD_SPEC:
      printf("_cleave_files 'default all'");
      break;
    case CLI_WORD_TO_DEVICE:
      printf("[[ $second ]] && _cleave_words \"$_cleave_devices\"");
      break;
    case CLI_WORD_NAMED_FILE:
      printf("_cleave_files");
      break;
    case CLI_WORD_DEVICE_OR_FILE:
      printf("_cleave_files \"$_cleave_devices\"");
      break;
    case CLI_WORD_NONE:
      printf(":");
      break;
  }
}

/* One function per topic: $option is the option whose value is completed; empty: an operand or an option. Returns 1 if $option
 * takes no value. */
static void print_topic(uint32_t index, const cli_topic *topic) {
  printf("_cleave_topic_%u() { # %s\n  case $option in\n", index, topic->name);
  for (uint32_t i = 0; i < topic->option_count; ++i) {
    const cli_option *option = &topic->options[i];
    if (option->kind == CLI_FLAG) continue;
    if (option->kind == CLI_MAYBE_TEXT) printf("    --%s) [[ $joined ]] || return 1 ;;\n", option->name);
    if (option->kind == CLI_MAYBE_TEXT) continue;
    printf("    ");
    if (option->letter != 0) printf("-%c | ", option->letter);
    printf("--%s) ", option->name);
    print_action(cli_option_word(option), option->value);
    printf(" ;;\n");
  }
  printf("    '')\n      if [[ $value == -* ]]; then\n        _cleave_words '");
  for (uint32_t i = 0; i < topic->option_count; ++i) {
    if (topic->options[i].letter != 0) printf("-%c ", topic->options[i].letter);
    printf("--%s%s", topic->options[i].name, i + 1 < topic->option_count ? " " : "");
  }
  printf("'\n      else\n        ");
  print_action(cli_operand_word(topic), topic->operands);
  printf("\n      fi\n      ;;\n    *) return 1 ;;\n  esac\n  return 0\n}\n\n");
}

static void print_names(const cli_command *command) {
  cli_topic topic;
  for (uint32_t i = 0, count = 0; cli_topic_get(i, &topic); ++i) {
    if (command == NULL ? topic.verb == NULL : topic.command == command && topic.verb != NULL)
      printf("%s%s", count++ > 0 ? " " : "", command == NULL ? topic.name : topic.verb);
  }
}

static const char head[] =
    "# Completion of `cleave` for bash, made by 'cleave completion bash'.\n"
    "\n"
    "# Adds the words of $1 that begin with $value.\n"
    "_cleave_words() {\n"
    "  local word\n"
    "  for word in $1; do [[ $word == \"$value\"* ]] && COMPREPLY+=(\"$prefix$word\"); done\n"
    "}\n"
    "\n"
    "# The same for the last word of a list with commas.\n"
    "_cleave_list() {\n"
    "  if [[ $value == *,* ]]; then\n"
    "    prefix+=${value%,*},\n"
    "    value=${value##*,}\n"
    "  fi\n"
    "  compopt -o nospace 2>/dev/null\n"
    "  _cleave_words \"$1\"\n"
    "}\n"
    "\n"
    "# Adds files and folders, and the words of $1.\n"
    "_cleave_files() {\n"
    "  local file\n"
    "  while IFS= read -r file; do COMPREPLY+=(\"$prefix$file\"); done < <(compgen -f -- \"$value\")\n"
    "  compopt -o filenames 2>/dev/null\n"
    "  [[ $1 ]] && _cleave_words \"$1\"\n"
    "}\n"
    "\n"
    "_cleave_folders() {\n"
    "  local file\n"
    "  while IFS= read -r file; do COMPREPLY+=(\"$prefix$file\"); done < <(compgen -d -- \"$value\")\n"
    "  compopt -o filenames 2>/dev/null\n"
    "}\n"
    "\n";

/* bash divides words at '=' (COMP_WORDBREAKS): "--pin conv=cpu" is "--pin" "conv" "=" "cpu". */
static const char tail[] =
    "  local value=$2 prefix= option= second= joined= at=$COMP_CWORD\n"
    "  COMPREPLY=()\n"
    "  if [[ $value == -*=* ]]; then # '=' does not divide words\n"
    "    option=${value%%=*} prefix=${value%%=*}= value=${value#*=} joined=yes\n"
    "  elif [[ ${COMP_WORDS[at]} == = || ${COMP_WORDS[at - 1]} == = ]]; then\n"
    "    [[ ${COMP_WORDS[at]} == = ]] && value= || ((--at))\n"
    "    option=${COMP_WORDS[at - 1]} joined=yes\n"
    "    if [[ $option != -* ]]; then # NAME=VALUE\n"
    "      second=yes\n"
    "      ((at -= 2))\n"
    "      [[ ${COMP_WORDS[at]} == = ]] && ((--at))\n"
    "      option=${COMP_WORDS[at]}\n"
    "    fi\n"
    "  elif ((at > 1)) && [[ ${COMP_WORDS[at - 1]} == -* ]]; then\n"
    "    option=${COMP_WORDS[at - 1]}\n"
    "  fi\n"
    "  if [[ $option && $value == *=* ]]; then # NAME=VALUE in one word\n"
    "    second=yes prefix+=${value%=*}= value=${value##*=}\n"
    "  fi\n"
    "  local topic=${COMP_WORDS[1]} word=1\n"
    "  if [[ $topic == help ]]; then topic=${COMP_WORDS[2]} word=2; fi\n"
    "  if ((COMP_CWORD <= word)); then\n"
    "    option=\n"
    "    _cleave_words \"$_cleave_commands\"\n"
    "    return\n"
    "  fi\n";

void cli_completion_bash(void) {
  cli_topic topic;
  fputs(head, stdout);
  printf("_cleave_devices='");
  cli_print_choices(CLI_WORD_DEVICE, NULL);
  printf("'\n_cleave_commands='");
  print_names(NULL);
  printf(" help --help --version'\n\n");
  for (uint32_t i = 0; cli_topic_get(i, &topic); ++i) print_topic(i, &topic);
  printf("_cleave() {\n");
  fputs(tail, stdout);
  for (uint32_t c = 0; c < CLI_COMMAND_COUNT; ++c) {
    if (cli_commands[c]->describe_verb == NULL) continue;
    printf("  if [[ $topic == %s ]] && ((COMP_CWORD == word + 1)); then\n    _cleave_words '", cli_commands[c]->name);
    print_names(cli_commands[c]);
    printf(" help --help'\n    return\n  fi\n  [[ $topic == %s ]] && topic+=\" ${COMP_WORDS[word + 1]}\"\n",
           cli_commands[c]->name);
  }
  printf("  ((word == 2)) && return # after 'help COMMAND'\n  local function=\n  case $topic in\n");
  for (uint32_t i = 0; cli_topic_get(i, &topic); ++i) printf("    '%s') function=_cleave_topic_%u ;;\n", topic.name, i);
  printf(
      "    *) return ;;\n  esac\n  if ! $function && [[ ! $joined ]]; then # the word before is a flag\n    option=\n    "
      "$function\n  fi\n"
      "  return 0\n}\n\ncomplete -F _cleave cleave\n");
}
