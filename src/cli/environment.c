/* See environment.h. */
#include "cli/environment.h"

#include <stdlib.h>
#include <string.h>

void cli_environment_read(cli_environment *environment) {
  const char *no_color = getenv("NO_COLOR");
  const char *terminal = getenv("TERM");
  environment->no_color = no_color != NULL && no_color[0] != '\0';
  environment->dumb_terminal = terminal == NULL || strcmp(terminal, "dumb") == 0;
}
