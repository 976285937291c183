/* Ctrl-C, and other requests to end: SIGINT, SIGTERM and SIGHUP. A command ends within 100 ms and leaves no temporary files. A
 * command that has something to keep asks for the time to do so; the second signal then ends it. The exit status is 128 + the
 * number of the signal. */
#ifndef CLEAVE_CLI_INTERRUPT_H
#define CLEAVE_CLI_INTERRUPT_H

#include <stdbool.h>

#include "base/stop.h"

/* Handles the signals, except those that are ignored now (as under nohup). Child processes have the default handling. */
void cli_interrupt_begin(void);
/* From now on, the command ends by itself after the first signal and keeps what it has. The flag is set by the signal. */
const clv__stop *cli_interrupt_keep(void);
/* Ends what cli_interrupt_keep() began. */
void cli_interrupt_keep_end(void);
bool cli_is_interrupted(void);
/* Removes temporary files, prints a line and exits, from any thread, while the command itself cannot end. */
_Noreturn void cli_interrupt_exit(const char *message, int status);
/* The exit status for the signal that came. */
int cli_interrupt_status(void);

#endif
