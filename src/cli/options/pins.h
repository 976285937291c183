/* Parses pins: "PATTERN=DEV", and files with one pin per line. Pure text processing, independent of the command. */
#ifndef CLEAVE_CLI_OPTIONS_PINS_H
#define CLEAVE_CLI_OPTIONS_PINS_H

#include "cli/support.h"

/* A parsed pin. The pattern and the device point into the text. */
typedef struct cli_pin {
  const char *pattern, *device;
  size_t pattern_length, device_length;
} cli_pin;

/* Splits the text at the last `=`, because node names may contain `=` and device names do not. Ignores surrounding blanks.
 * Returns false if either part is empty or contains a zero byte. */
bool cli_pin_read(const char *text, size_t length, cli_pin *pin);

/* Calls `found` for every non-empty line of a file, without surrounding blanks and without comments. A comment starts with #
 * at the beginning of a line or after a blank. If `found` fails, stops and returns its error, prefixed with "NAME, line N". */
clv_status cli_pins_each(const char *name, const char *text, size_t size_bytes,
                         clv_status (*found)(void *self, const char *line, size_t length, clv_error *error), void *self,
                         clv_error *error);

#endif
