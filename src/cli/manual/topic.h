/* The topics of the manual: the commands, and the verbs of commands that have some. Man pages (man.c) and completions
 * (completion.c) are made from them, and so from the tables that parse arguments and print help. */
#ifndef CLEAVE_CLI_MANUAL_TOPIC_H
#define CLEAVE_CLI_MANUAL_TOPIC_H

#include <stdio.h>

#include "cli/options/options.h"

typedef struct cli_topic {
  char name[48]; /* as typed after "cleave": "plan", "gnn plan" */
  const cli_command *command;
  const char *verb;     /* NULL: the topic is the command itself */
  const char *operands; /* as in the usage line */
  const char *wanted;   /* required options, as in the usage line; "" if there are none */
  const char *summary, *description, *examples;
  uint32_t option_count;
  cli_option options[OPTION_COUNT]; /* with the help texts of this topic */
} cli_topic;

/* Gets topic `index`: each command, followed by its verbs. Returns false if there are fewer. */
bool cli_topic_get(uint32_t index, cli_topic *topic);

/* What a word on the command line is. */
typedef enum cli_word_kind {
  CLI_WORD_NONE, /* a number, a name in the model, …: cannot be completed */
  CLI_WORD_CHOICE,
  CLI_WORD_STRATEGY,
  CLI_WORD_DEVICE,
  CLI_WORD_DEVICES, /* separated by commas */
  CLI_WORD_FILE,
  CLI_WORD_DIRECTORY,
  CLI_WORD_SPEC,       /* "default", "all" or a file */
  CLI_WORD_TO_DEVICE,  /* PATTERN=DEV */
  CLI_WORD_NAMED_FILE, /* NAME=FILE, or FILE */
  CLI_WORD_DEVICE_OR_FILE
} cli_word_kind;

cli_word_kind cli_option_word(const cli_option *option);
cli_word_kind cli_operand_word(const cli_topic *topic);
/* Copies word `index` of a list such as "auto|on|off". Returns false if there are fewer. */
bool cli_choice(const char *list, uint32_t index, char *word, size_t size_bytes);
/* The first clause of the option's help text, without markup: for lists, which should be short. */
void cli_option_summary(const cli_option *option, char *text, size_t size_bytes);
/* The names of built-in devices that --devices takes, separated by '|'. */
extern const char cli_device_names[];

/* man.c: writes the man page of a topic; of `cleave` itself if `topic` is NULL. */
void cli_man_write(const cli_topic *topic, FILE *out);
/* `cleave help --man [COMMAND [VERB]]` prints a page; `cleave help --man-pages DIR` writes all pages as DIR/cleave-COMMAND.1. */
clv_status cli_man_print(cli_invocation *cli, const char *command, const char *verb, clv_error *error);
clv_status cli_man_write_all(cli_invocation *cli, const char *directory, clv_error *error);

/* completion.c: prints the words of a choice, of the strategies or of the devices, separated by blanks. */
void cli_print_choices(cli_word_kind kind, const char *choices);
/* bash.c, zsh.c, fish.c: print the script. */
void cli_completion_bash(void);
void cli_completion_zsh(void);
void cli_completion_fish(void);

#endif
