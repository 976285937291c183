/* Structs of the public interface, with options or with results. Each begins with `struct_size`, which is its version. */
#ifndef CLEAVE_BASE_OPTIONS_H
#define CLEAVE_BASE_OPTIONS_H

#include "cleave/types.h"

/* Copies `given` (NULL: nothing) over `options`, which holds the defaults and has `size_bytes`. Copies only as many bytes as the
 * struct_size of `given` says. Fields missing from the caller's version keep their defaults; fields that only a later version has
 * are ignored. CLV_INVALID_ARGUMENT if struct_size is impossible: the caller did not start from `initializer`. */
clv_status clv__options_read(void *options, size_t size_bytes, const void *given, const char *initializer, clv_error *error);

/* Checks a list in an options struct: CLV_INVALID_ARGUMENT if `count` is positive but `items` is NULL. */
clv_status clv__options_list(const void *items, uint32_t count, const char *what, clv_error *error);
/* Checks a list of texts like clv__options_list(); also CLV_INVALID_ARGUMENT if one of the texts is NULL. */
clv_status clv__options_texts(const char *const *items, uint32_t count, const char *what, clv_error *error);

/* Copies `filled` to `info`, a struct of the caller, as many bytes as its struct_size says and at most `size_bytes`. Both begin
 * with a struct_size; that of `info` stays as it is. */
void clv__info_fill(void *info, const void *filled, uint32_t size_bytes);

#endif
