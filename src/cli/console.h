/* User-visible output: notes, progress and errors on standard error, colours, and text on standard output. */
#ifndef CLEAVE_CLI_CONSOLE_H
#define CLEAVE_CLI_CONSOLE_H

#include "cli/command.h"

typedef enum cli_style { CLI_PLAIN, CLI_BOLD, CLI_RED, CLI_GREEN, CLI_YELLOW, CLI_DIM } cli_style;

/* Returns the escape sequence that starts a style on standard output, or "" without colours. cli_reset() ends the style. */
const char *cli_begin(const cli_invocation *cli, cli_style style);
const char *cli_reset(const cli_invocation *cli);

/* Prints one line on standard error, unless --quiet. */
void cli_note(cli_invocation *cli, const char *format, ...) CLV_PRINTF(2, 3);
/* Replaces the progress line on standard error, if this is a terminal. Calls with the same `format` pointer print at most ten
 * lines per second; the rest is dropped. */
void cli_progress(cli_invocation *cli, const char *format, ...) CLV_PRINTF(2, 3);
/* Removes the progress line. Call it before printing anything else. */
void cli_progress_end(cli_invocation *cli);
/* Prints `cleave: message` on a single line, whatever the message contains. */
void cli_print_error(cli_invocation *cli, const clv_error *error);
/* Prints the text and frees it. Fails if memory ran out while building it, or if standard output cannot be written. */
clv_status cli_print(cli_invocation *cli, cli_buffer *text, clv_error *error);
/* Prints a document that the library made. Fails if standard output cannot be written. The caller keeps the document. */
clv_status cli_print_document(cli_invocation *cli, const char *document, clv_error *error);
/* Returns the form in which this invocation prints documents. */
static inline clv_form cli_form(const cli_invocation *cli) {
  return cli->json ? CLV_FORM_JSON : cli->color_out ? CLV_FORM_TERMINAL : CLV_FORM_TEXT;
}
/* Flushes standard output. Fails if it cannot be written. */
clv_status cli_flush(clv_error *error);
/* The log function of the context: prints the library's errors and, with --verbose, its other messages. */
void cli_log(void *user_data, int level, const char *text);

#endif
