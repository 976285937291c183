/* Pins as text: "PATTERN=DEV", and files with one a line. Plain text in, pieces of it out: nothing of the command is here. */
#ifndef CLEAVE_CLI_OPTIONS_PINS_H
#define CLEAVE_CLI_OPTIONS_PINS_H

#include "base/error.h"

/* Both parts point into the text. */
typedef struct cli_pin {
  const char *pattern, *device;
  size_t pattern_length, device_length;
} cli_pin;

/* The last `=` parts them, as names of nodes may hold one and names of devices do not. Blanks around it do not count. False where
 * one of them is empty, or where a zero byte is among them. */
bool cli_pin_read(const char *text, size_t length, cli_pin *pin);

/* Calls `found` with every line of a file that holds something: without blanks around it, and without a comment, from a # at its
 * begin or after a blank. Ends with what `found` fails with, "NAME, line N" in front. */
clv_status cli_pins_each(const char *name, const char *text, size_t size_bytes,
                         clv_status (*found)(void *self, const char *line, size_t length, clv_error *error), void *self,
                         clv_error *error);

#endif
