/* Memory shared by things that do not live at the same time: offsets in one arena for intervals of time that have a size. */
#ifndef CLEAVE_BASE_ARRANGE_H
#define CLEAVE_BASE_ARRANGE_H

#include "base/memory.h"

typedef struct clv__interval {
  uint32_t id;          /* decides where all else is equal, so that one arrangement comes of one set */
  uint32_t first, last; /* both belong to its life; UINT32_MAX: for ever */
  size_t size_bytes;    /* rounded by the caller to what offsets must be multiples of */
  size_t offset;        /* the answer */
  const void *owner;    /* the caller's; for `meet` */
} clv__interval;

/* The most that are compared in pairs (8 million pairs: milliseconds). */
#define CLV__ARRANGE_PAIRS 4096

/* Sets the offsets, so that no two whose lives meet share a byte. Reorders the pointers. `total` is where the last one ends; it
 * is near the most that lives at once, not the least possible. Errors: CLV_OUT_OF_MEMORY, also for sizes beyond counting. */
clv_status clv__intervals_arrange(clv__interval **intervals, size_t count, const clv_allocator *allocator, size_t *total,
                                  clv_error *error);
/* The same where lives are not intervals of one time: `meet` says which two must not share a byte. At most CLV__ARRANGE_PAIRS. */
clv_status clv__intervals_arrange_by(clv__interval **intervals, size_t count,
                                     bool (*meet)(const void *cookie, const clv__interval *a, const clv__interval *b),
                                     const void *cookie, const clv_allocator *allocator, size_t *total, clv_error *error);

#endif
