/* Documents that functions of the public interface make: texts that the caller frees, and texts written to a file or a
 * callback. */
#ifndef CLEAVE_BASE_DOCUMENT_H
#define CLEAVE_BASE_DOCUMENT_H

#include "base/text.h"

/* Checks the arguments of a function that makes a document: CLV_INVALID_ARGUMENT if `form` is unknown or `out` is NULL. Sets
 * `*out` to NULL. */
clv_status clv__document_check(clv_form form, char **out, clv_error *error);

/* Finishes `text` and gives a copy of it to the caller, who frees it with clv_text_free(). CLV_OUT_OF_MEMORY, also if memory ran
 * out while the text was built. */
clv_status clv__document_give(clv__text *text, char **out, clv_error *error);

/* Checks the target of a document: CLV_INVALID_ARGUMENT unless exactly one of `path` and `write` is given. */
clv_status clv__document_check_target(const char *path, clv_emit_fn write, clv_error *error);

/* Finishes `text`, and writes it to the file `path`, completely or not at all, or to `write`. Exactly one of them must be given,
 * otherwise returns CLV_INVALID_ARGUMENT. CLV_CANCELLED if `write` returned false. */
clv_status clv__document_write(clv__text *text, const char *path, clv_emit_fn write, void *user_data, clv_error *error);

#endif
