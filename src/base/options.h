/* Options structs of the public interface: versioned by the `struct_size` that each begins with. */
#ifndef CLEAVE_BASE_OPTIONS_H
#define CLEAVE_BASE_OPTIONS_H

#include "cleave/types.h"

/* Copies `given` (NULL: nothing) over `options`, which holds the defaults and has `size_bytes`: as much of it as its struct_size
 * says there is. Fields that the caller's version lacks keep their defaults; fields of a later version than ours are not seen.
 * CLV_INVALID_ARGUMENT for a struct_size that cannot be: the caller did not begin with `initializer`. */
clv_status clv__options_read(void *options, size_t size_bytes, const void *given, const char *initializer, clv_error *error);

/* For an options' list: CLV_INVALID_ARGUMENT when it says `count` and has no items. */
clv_status clv__options_list(const void *items, uint32_t count, const char *what, clv_error *error);
/* And when one of its texts is NULL. */
clv_status clv__options_texts(const char *const *items, uint32_t count, const char *what, clv_error *error);

#endif
