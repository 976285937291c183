/* Names for people, as the library's documents show them. Unstable: may change until 1.0. */
#ifndef CLEAVE_LABEL_H
#define CLEAVE_LABEL_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Writes a name to `text`, with characters that control terminals, and bytes that are not UTF-8, as escapes: names come from
 * files, and must not control a terminal or break a line. With `columns` above 0, "…" replaces the middle of a name that needs
 * more columns of a terminal. The text is terminated, and cut at a character if it needs more than `size_bytes`. Returns the
 * number of bytes that it needs, without the terminator. `text` may be NULL if `size_bytes` is 0. Any thread may call it. */
CLV_API size_t clv_label_name(const char *name, uint32_t columns, char *text, size_t size_bytes);

#ifdef __cplusplus
}
#endif
#endif
