/* Reads the environment variables that describe the terminal. The library reads all other variables (device/settings.h). The help
 * text lists both kinds from one table (base/environment.h). Options take precedence over variables. */
#ifndef CLEAVE_CLI_ENVIRONMENT_H
#define CLEAVE_CLI_ENVIRONMENT_H

#include <stdbool.h>

typedef struct cli_environment {
  bool no_color;      /* NO_COLOR is set and not empty */
  bool dumb_terminal; /* TERM is absent or "dumb": no colours, no progress line */
} cli_environment;

void cli_environment_read(cli_environment *environment);

#endif
