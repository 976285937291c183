/* Ctrl-C, and other requests to end: SIGINT, SIGTERM and SIGHUP. A command ends within 100 ms and leaves no temporary files. A
 * command that has results to save calls cli_interrupt_keep(), and then only the second signal ends it at once. The exit status
 * is 128 + the number of the signal. */
#ifndef CLEAVE_CLI_INTERRUPT_H
#define CLEAVE_CLI_INTERRUPT_H

#include <stdbool.h>

/* Handles the signals, except those that are ignored now (as under nohup). Child processes have the default handling. */
void cli_interrupt_begin(void);
/* Declares that from now on the command saves its results and ends by itself after the first signal: cli_is_interrupted() is then
 * true. */
void cli_interrupt_keep(void);
/* Declares that the results are saved: from now on, a signal again ends the command within 100 ms. */
void cli_interrupt_keep_end(void);
bool cli_is_interrupted(void);
/* Removes temporary files, prints a line and exits, from any thread, for use when the command cannot end by itself. */
_Noreturn void cli_interrupt_exit(const char *message, int status);
/* Returns the exit status for the signal that was received. */
int cli_interrupt_status(void);

#endif
