/* Giving back memory that was needed to get ready, and is not needed to go on. It concerns the whole process, so it is for
 * programs to decide: the library does not call it. */
#ifndef CLEAVE_BASE_TRIM_H
#define CLEAVE_BASE_TRIM_H

#include <stddef.h>

/* Free pages of the heap go back to the system, and pages of files that were only read (code and tables of libraries above all,
 * of which getting ready reads ten times what running does) leave the process; they stay in the system's cache and come back when
 * they are touched. Returns how many bytes of files were mapped there. Where the system does not tell what is mapped, that is
 * left as it is. */
size_t clv__memory_trim(void);

#endif
