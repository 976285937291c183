/* The peak memory of this process. */
#ifndef CLEAVE_BASE_PEAK_H
#define CLEAVE_BASE_PEAK_H

#include <stdint.h>

/* Returns the largest resident size so far, or 0 if the system does not report it. Reads it from /proc, because getrusage() would
 * report the peak of the parent process if it was higher. */
uint64_t clv__peak_rss_bytes(void);

#endif
