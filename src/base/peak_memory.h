/* The peak memory of this process. */
#ifndef CLEAVE_BASE_PEAK_MEMORY_H
#define CLEAVE_BASE_PEAK_MEMORY_H

#include <stdint.h>

/* Returns the most memory that this process has had in RAM, or 0 if the system does not report it. */
uint64_t clv__peak_memory_bytes(void);

#endif
