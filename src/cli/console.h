/* What people see: notes, progress and errors on standard error, colours, and text on standard output. */
#ifndef CLEAVE_CLI_CONSOLE_H
#define CLEAVE_CLI_CONSOLE_H

#include "base/text.h"
#include "cli/command.h"

typedef enum cli_style { CLI_PLAIN, CLI_BOLD, CLI_RED, CLI_GREEN, CLI_YELLOW, CLI_DIM } cli_style;

/* The escape sequence that begins a style on standard output, "" without colours; cli_reset() ends it. */
const char *cli_begin(const cli_invocation *cli, cli_style style);
const char *cli_reset(const cli_invocation *cli);

/* One line on standard error, unless --quiet. */
void cli_note(cli_invocation *cli, const char *format, ...) CLV_PRINTF(2, 3);
/* A line on standard error that the next one replaces, where that is a terminal; of one kind (`format`, a literal) at most ten a
 * second. */
void cli_progress(cli_invocation *cli, const char *format, ...) CLV_PRINTF(2, 3);
/* Takes the line of progress away. Needed before anything else is printed. */
void cli_progress_end(cli_invocation *cli);
/* `cleave: message`, in one line whatever the message holds. */
void cli_print_error(cli_invocation *cli, const clv_error *error);
/* Prints the text and frees it. Fails where memory was out or standard output cannot be written. */
clv_status cli_print(cli_invocation *cli, clv__text *text, clv_error *error);
/* Writes what is left of standard output; fails where it cannot be written. */
clv_status cli_flush(clv_error *error);
/* The library's messages, shown with --verbose. */
void cli_log(void *user_data, int level, const char *text);

/* The most memory that this process has had, or 0 where the system does not tell. */
uint64_t cli_peak_rss_bytes(void);
static inline double cli_ms(uint64_t from_ns, uint64_t to_ns) {
  return (double)(to_ns - from_ns) / 1e6;
}

#endif
