/* Reads a file of pins as --pins does, one pin per line. Matches each pattern with a name, prints the pins, and reads the
 * result. */
#ifndef CLEAVE_FUZZ_TARGET_PINS_H
#define CLEAVE_FUZZ_TARGET_PINS_H

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "cli/options/pins.c" /* these files are part of the command, not of the library */
#include "cli/support.c"

typedef struct fuzz_pins_found {
  clv__text text; /* the pins that were read, one per line */
  uint32_t count;
} fuzz_pins_found;

static inline clv_status fuzz_pins_add(void *self, const char *line, size_t length, clv_error *error) {
  fuzz_pins_found *found = self;
  cli_pin pin;
  if (length == 0) abort();
  if (!cli_pin_read(line, length, &pin))
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "'%.*s' is not a pin", (int)length, line);
  if (pin.pattern_length == 0 || pin.device_length == 0 || pin.pattern < line || pin.device + pin.device_length != line + length)
    abort();
  char *pattern = malloc(pin.pattern_length + 1);
  if (pattern == NULL) abort();
  memcpy(pattern, pin.pattern, pin.pattern_length);
  pattern[pin.pattern_length] = '\0';
  (void)clv__pattern_match(pattern, "layers.0/attention/query");
  if (strpbrk(pattern, "*?[\\") == NULL && !clv__pattern_match(pattern, pattern)) abort();
  free(pattern);
  clv__text_append_bytes(&found->text, pin.pattern, pin.pattern_length);
  clv__text_append_bytes(&found->text, "=", 1);
  clv__text_append_bytes(&found->text, pin.device, pin.device_length);
  clv__text_append_bytes(&found->text, "\n", 1);
  ++found->count;
  return CLV_OK;
}

static inline clv_status fuzz_pins_status(const uint8_t *data, size_t size_bytes, clv_error *error) {
  fuzz_pins_found found = {.count = 0}, again = {.count = 0};
  clv__text_init(&found.text, clv__allocator_default());
  clv__text_init(&again.text, clv__allocator_default());
  clv_status status = cli_pins_each("fuzz", (const char *)data, size_bytes, fuzz_pins_add, &found, error);
  if (status == CLV_OK) {
    if (cli_pins_each("again", found.text.data, found.text.size_bytes, fuzz_pins_add, &again, error) != CLV_OK) abort();
    if (again.count != found.count || again.text.size_bytes != found.text.size_bytes ||
        (found.count > 0 && memcmp(again.text.data, found.text.data, found.text.size_bytes) != 0))
      abort();
  }
  clv__text_finish(&again.text);
  clv__text_finish(&found.text);
  return status;
}

static inline void fuzz_pins(const uint8_t *data, size_t size_bytes) {
  clv_error error = {0};
  (void)fuzz_pins_status(data, size_bytes, &error);
}

#endif
