/* What a file is that was given as an ONNX model and is none: people mix up files, and a download may be something else. */
#ifndef CLEAVE_FORMATS_FOREIGN_H
#define CLEAVE_FORMATS_FOREIGN_H

#include <stddef.h>

/* "a NumPy array: ..." with what to do about it, or NULL where the first bytes are of no format that is known here. */
const char *clv__foreign_format(const void *data, size_t size_bytes);

#endif
