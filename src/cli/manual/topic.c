/* See topic.h. */
#include "cli/manual/topic.h"

#include <string.h>

const char cli_device_names[] = "auto|cpu|npu|gpu|opencl|openvino|onnxruntime|torch";

static void describe_command(uint32_t index, cli_topic *topic) {
  const cli_command *command = cli_commands[index];
  topic->command = command;
  topic->verb = NULL;
  topic->operands = command->operands;
  topic->wanted = "";
  topic->summary = command->summary;
  topic->description = command->description;
  topic->examples = command->examples;
  topic->option_count = 0;
  for (uint32_t i = 0; i < OPTION_COUNT; ++i) {
    bool is_shared = cli_option_table[i].commands == cli_option_table[OPTION_HELP].commands ||
                     cli_option_table[i].commands == cli_option_table[OPTION_JSON].commands;
    if ((cli_option_table[i].commands >> index & 1) == 0) continue;
    if (command->describe_verb != NULL && !is_shared) continue; /* it belongs to some of the verbs */
    topic->options[topic->option_count++] = cli_option_for(index, (cli_option_id)i);
  }
  snprintf(topic->name, sizeof topic->name, "%s", command->name);
}

bool cli_topic_get(uint32_t index, cli_topic *topic) {
  for (uint32_t c = 0; c < CLI_COMMAND_COUNT; ++c) {
    if (index-- == 0) {
      describe_command(c, topic);
      return true;
    }
    for (uint32_t v = 0; cli_commands[c]->describe_verb != NULL && cli_commands[c]->describe_verb(v, topic); ++v) {
      if (index-- > 0) continue;
      topic->command = cli_commands[c];
      snprintf(topic->name, sizeof topic->name, "%s %s", cli_commands[c]->name, topic->verb);
      return true;
    }
  }
  return false;
}

/* The names of values in help texts say what the values are. */
cli_word_kind cli_option_word(const cli_option *option) {
  static const struct {
    const char *value;
    cli_word_kind kind;
  } kinds[] = {{"FILE", CLI_WORD_FILE},
               {"CSV", CLI_WORD_FILE},
               {"DIR", CLI_WORD_DIRECTORY},
               {"SPEC", CLI_WORD_SPEC},
               {"NAME=FILE", CLI_WORD_NAMED_FILE},
               {"PATTERN=DEV", CLI_WORD_TO_DEVICE},
               {"OP=DEV", CLI_WORD_TO_DEVICE},
               {"NAME=DEV", CLI_WORD_TO_DEVICE},
               {"DEV,DEV,...", CLI_WORD_DEVICES}};
  if (option->kind == CLI_FLAG || option->value == NULL) return CLI_WORD_NONE;
  if (option->kind == CLI_CHOICE) return CLI_WORD_CHOICE;
  if (strcmp(option->name, cli_option_table[OPTION_DEVICES].name) == 0) return CLI_WORD_DEVICES;
  if (strcmp(option->name, cli_option_table[OPTION_STRATEGY].name) == 0) return CLI_WORD_STRATEGY;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
    if (strcmp(kinds[i].value, option->value) == 0) return kinds[i].kind;
  }
  return CLI_WORD_NONE;
}

cli_word_kind cli_operand_word(const cli_topic *topic) {
  const char *operands = topic->operands;
  if (topic->command->describe_verb != NULL && topic->verb == NULL) return CLI_WORD_NONE; /* the verb is a word of its own */
  if (operands[0] == '\0') return CLI_WORD_NONE;
  if (operands[0] >= 'a' && operands[0] <= 'z') return CLI_WORD_CHOICE;
  if (strstr(operands, "DEVICE") != NULL) return CLI_WORD_DEVICE_OR_FILE;
  return strncmp(operands, "DIR", 3) == 0 ? CLI_WORD_DIRECTORY : CLI_WORD_FILE;
}

bool cli_choice(const char *list, uint32_t index, char *word, size_t size_bytes) {
  for (; index > 0; --index) {
    list += strcspn(list, "|");
    if (*list++ == '\0') return false;
  }
  snprintf(word, size_bytes, "%.*s", (int)strcspn(list, "|"), list);
  return true;
}

void cli_option_summary(const cli_option *option, char *text, size_t size_bytes) {
  snprintf(text, size_bytes, "%s", option->help);
  char *end = strpbrk(text, ";:.(");
  while (end != NULL && *end != '(' && end[1] != ' ') end = strpbrk(end + 1, ";:.(");
  if (end == NULL && strlen(option->help) >= size_bytes) end = strrchr(text, ' ');
  if (end != NULL) *end = '\0';
  for (size_t length = strlen(text); length > 0 && text[length - 1] == ' ';) text[--length] = '\0';
}
