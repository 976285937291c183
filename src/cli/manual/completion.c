/* `cleave completion`: prints a script that completes commands, options and their values in a shell. */
#include <string.h>

#include "cli/console.h"
#include "cli/manual/topic.h"

void cli_print_choices(cli_word_kind kind, const char *choices) {
  const char *name, *summary;
  char word[64];
  if (kind == CLI_WORD_STRATEGY) {
    for (uint32_t i = 0; (name = cli_strategy(i, &summary)) != NULL; ++i) printf("%s%s", i > 0 ? " " : "", name);
    return;
  }
  if (kind == CLI_WORD_DEVICE) choices = cli_device_names;
  for (uint32_t i = 0; cli_choice(choices, i, word, sizeof word); ++i) printf("%s%s", i > 0 ? " " : "", word);
}

static clv_status execute(cli_invocation *cli, clv_error *error) {
  const char *shell = cli->options->operands[0];
  static const struct {
    const char *name;
    void (*print)(void);
  } shells[] = {{"bash", cli_completion_bash}, {"zsh", cli_completion_zsh}, {"fish", cli_completion_fish}};
  for (size_t i = 0; i < sizeof shells / sizeof *shells; ++i) {
    if (strcmp(shells[i].name, shell) != 0) continue;
    shells[i].print();
    return CLV_OK;
  }
  return cli_usage(cli, error, "there is no completion for '%s'; the shells are: bash, zsh, fish", shell);
}

const cli_command cli_command_completion = {
    .name = "completion",
    .operands = "bash|zsh|fish",
    .min_operands = 1,
    .max_operands = 1,
    .summary = "print a script that completes commands in a shell",
    .description =
        "Completes commands, options, their values, device names and files. An installation has these scripts where shells look\n"
        "for them. Without one, put a line into the shell's start file that loads the script: source <(cleave completion bash)\n"
        "in ~/.bashrc, source <(cleave completion zsh) in ~/.zshrc after compinit, or cleave completion fish | source in\n"
        "~/.config/fish/config.fish.",
    .examples =
        "  cleave completion bash > cleave.bash    # read by 'source cleave.bash'\n"
        "  cleave completion zsh > _cleave    # for a folder of $fpath\n"
        "  cleave completion fish > cleave.fish    # for ~/.config/fish/completions\n",
    .execute = execute,
};
