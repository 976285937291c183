/* Fills a caller's clv_error: where it failed, what failed, the values, and how to fix it. */
#ifndef CLEAVE_BASE_ERROR_H
#define CLEAVE_BASE_ERROR_H

#include "cleave/types.h"

/* Writes `format` into `error` (may be NULL) and returns `status`. Typical use: `return clv__error_set(…)`. */
clv_status clv__error_set(clv_error *error, clv_status status, const char *format, ...) CLV_PRINTF(3, 4);

/* Puts context in front of the text of `error`: "prefix: old". If a plugin failed without a text, "old" is the name of the
 * status. Sets the status of `error` and returns it. */
clv_status clv__error_prefix(clv_error *error, clv_status status, const char *format, ...) CLV_PRINTF(3, 4);

/* Clears `error` before a call into a plugin. A plugin may fail without a message, and an earlier message must not be taken
 * for its own. */
void clv__error_clear(clv_error *error);

/* Reports a failed allocation. */
clv_status clv__error_memory(clv_error *error, size_t size_bytes);

/* Returns the status of `call` unless it is CLV_OK. For functions without cleanup. */
#define CLV__TRY(call)                                     \
  do {                                                     \
    clv_status clv__try_status = (call);                   \
    if (clv__try_status != CLV_OK) return clv__try_status; \
  } while (0)

/* Stores the status of `call` in `status` and goes to `cleanup:` unless it is CLV_OK. */
#define CLV__TRY_GOTO(call)             \
  do {                                  \
    status = (call);                    \
    if (status != CLV_OK) goto cleanup; \
  } while (0)

/* The ending of a noun after a count, for the `%s` of "%u output%s". */
#define CLV__S(count) ((count) == 1 ? "" : "s")

#endif
