/* Memory sharing: assigns sized time intervals to offsets in one arena. Intervals that do not overlap in time may share
 * memory. */
#ifndef CLEAVE_BASE_ARRANGE_H
#define CLEAVE_BASE_ARRANGE_H

#include "base/memory.h"

typedef struct clv__interval {
  uint32_t id;          /* the last tie-breaker: the same set always gets the same arrangement */
  uint32_t first, last; /* first and last step, both inclusive; last UINT32_MAX: never ends */
  size_t size_bytes;    /* already rounded up by the caller to the required alignment of offsets */
  size_t offset;        /* the result */
  const void *owner;    /* for the caller's `meet` */
} clv__interval;

/* Up to this many intervals are compared pair by pair: at most 8 million pairs, which take milliseconds. */
#define CLV__ARRANGE_PAIRS 4096

/* Sets the offsets so that no two intervals that overlap in time share a byte. Reorders the pointers. `total` is the highest
 * end of an interval in memory. It is close to the peak of live bytes but not always minimal. Errors: CLV_OUT_OF_MEMORY, also
 * if the sum of the sizes overflows. */
clv_status clv__intervals_arrange(clv__interval **intervals, size_t count, const clv_allocator *allocator, size_t *total,
                                  clv_error *error);
/* Like clv__intervals_arrange(), for lifetimes that are not intervals on one time line: `meet` returns true if two intervals must
 * not share a byte. For at most CLV__ARRANGE_PAIRS intervals. */
clv_status clv__intervals_arrange_by(clv__interval **intervals, size_t count,
                                     bool (*meet)(const void *cookie, const clv__interval *a, const clv__interval *b),
                                     const void *cookie, const clv_allocator *allocator, size_t *total, clv_error *error);

#endif
