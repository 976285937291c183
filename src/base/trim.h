/* Returns memory that was needed only during setup to the system. This affects the whole process, so only programs call it, never
 * the library. */
#ifndef CLEAVE_BASE_TRIM_H
#define CLEAVE_BASE_TRIM_H

#include <stddef.h>

/* Returns free heap pages to the system. Also drops pages of mapped files that the process only reads, mainly code and tables
 * of libraries: setup reads ten times more of them than running does. They stay in the system's cache and return when
 * accessed. Returns the number of file bytes dropped. If the system does not list the mappings, file pages stay as they
 * are. */
size_t clv__memory_trim(void);

#endif
