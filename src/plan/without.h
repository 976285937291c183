/* Taking devices out of a plan: what without.c, which places again, and without_begin.c, which copies the rest, share. */
#ifndef CLEAVE_PLAN_WITHOUT_H
#define CLEAVE_PLAN_WITHOUT_H

#include "plan/make.h"

typedef struct clv__leaving {
  clv_plan *plan;      /* the new one: its origin and what is gone are set */
  const clv_plan *old; /* where nodes are now */
  const clv__strategy *strategy;
  uint32_t lost; /* bits of devices that nodes leave now */
  clv__placing placing;
} clv__leaving;

static inline bool clv__is_bit(uint32_t bits, uint32_t device) {
  return (bits >> device & 1u) != 0;
}

/* A copy in the arena; NULL for NULL. */
clv_status clv__leaving_text(clv__arena *arena, const char *text, const char **copy, clv_error *error);
/* Everything that comes before placing: verdicts, prices, what the user said. Refuses what cannot be without the devices. */
clv_status clv__leaving_begin(clv__leaving *l, const char *reason, clv_error *error);

#endif
