/* Recognises files and folders of other formats that were passed as ONNX models, for example a wrong file or a failed download.
 */
#ifndef CLEAVE_FORMATS_FOREIGN_H
#define CLEAVE_FORMATS_FOREIGN_H

#include <stddef.h>

/* Returns a description with advice, such as "a NumPy array: ...", or NULL if the bytes match no known format. */
const char *clv__foreign_format(const void *data, size_t size_bytes);

/* The same for a folder, by the names of its files. */
const char *clv__foreign_folder(const char *path);

#endif
