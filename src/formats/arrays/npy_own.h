/* Strings in .npy files (npy_text.c): fixed width, U as UTF-32 or S as bytes, padded with zeros. */
#ifndef CLEAVE_FORMATS_ARRAYS_NPY_OWN_H
#define CLEAVE_FORMATS_ARRAYS_NPY_OWN_H

#include "formats/arrays/npy.h"

/* Sets `*block` to one allocation: the array of clv_string, followed by their text as UTF-8. */
clv_status clv__npy_strings_decode(const clv_allocator *allocator, const clv__npy_header *header, const uint8_t *from,
                                   void **block, clv_error *error);
/* Counts the characters of the longest string; at least 1. */
clv_status clv__npy_strings_measure(const clv_tensor *tensor, size_t *characters, clv_error *error);
void clv__npy_strings_append(clv__text *out, const clv_tensor *tensor, size_t characters);

#endif
