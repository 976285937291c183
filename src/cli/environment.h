/* What the environment says of the terminal. The rest of it is the library's (device/settings.h), which the help text lists from
 * the same table (base/environment.h). Options win over it. */
#ifndef CLEAVE_CLI_ENVIRONMENT_H
#define CLEAVE_CLI_ENVIRONMENT_H

#include <stdbool.h>

typedef struct cli_environment {
  bool no_color;      /* NO_COLOR is set and not empty */
  bool dumb_terminal; /* TERM is absent or "dumb": no colours, no line of progress */
} cli_environment;

void cli_environment_read(cli_environment *environment);

#endif
