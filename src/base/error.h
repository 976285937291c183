/* Filling a caller's clv_error: where, what, the values, the way out. */
#ifndef CLEAVE_BASE_ERROR_H
#define CLEAVE_BASE_ERROR_H

#include "cleave/types.h"

/* Writes `format` into `error` (may be NULL) and returns `status`, so that `return clv__error_set(…)` is the usual use. */
clv_status clv__error_set(clv_error *error, clv_status status, const char *format, ...) CLV_PRINTF(3, 4);

/* Puts context in front of what `error` already says: "prefix: old", or the status' name where a plugin failed without a text.
 * Returns `status`, and makes it error's. */
clv_status clv__error_prefix(clv_error *error, clv_status status, const char *format, ...) CLV_PRINTF(3, 4);

/* Before calls into plugins, which may fail and say nothing: what an earlier call left in `error` is not theirs. */
void clv__error_clear(clv_error *error);

/* The message for an allocation of ours that failed. */
clv_status clv__error_memory(clv_error *error, size_t size_bytes);

/* Returns what `call` came to unless it is CLV_OK. For functions without anything to clean up. */
#define CLV__TRY(call)                                     \
  do {                                                     \
    clv_status clv__try_status = (call);                   \
    if (clv__try_status != CLV_OK) return clv__try_status; \
  } while (0)

/* Goes to `cleanup:` with `status` set unless `call` came to CLV_OK. */
#define CLV__TRY_GOTO(call)             \
  do {                                  \
    status = (call);                    \
    if (status != CLV_OK) goto cleanup; \
  } while (0)

#endif
