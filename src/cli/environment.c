/* See environment.h. */
#include "cli/environment.h"

#include <string.h>

#include "base/environment.h"

void cli_environment_read(cli_environment *environment) {
  const char *no_color = clv__environment_get(CLV__VARIABLE_NO_COLOR);
  const char *terminal = clv__environment_get(CLV__VARIABLE_TERM);
  environment->no_color = no_color != NULL && no_color[0] != '\0';
  environment->dumb_terminal = terminal == NULL || strcmp(terminal, "dumb") == 0;
}
