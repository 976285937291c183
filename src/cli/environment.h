/* Environment variables about the terminal. The library reads all others (device/settings.h); the help text lists them from
 * the same table (base/environment.h). Options take precedence. */
#ifndef CLEAVE_CLI_ENVIRONMENT_H
#define CLEAVE_CLI_ENVIRONMENT_H

#include <stdbool.h>

typedef struct cli_environment {
  bool no_color;      /* NO_COLOR is set and not empty */
  bool dumb_terminal; /* TERM is absent or "dumb": no colours, no progress line */
} cli_environment;

void cli_environment_read(cli_environment *environment);

#endif
