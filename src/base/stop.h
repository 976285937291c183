/* A flag that asks running work to end early. Another thread sets it; the work looks at it between its steps. */
#ifndef CLEAVE_BASE_STOP_H
#define CLEAVE_BASE_STOP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

typedef atomic_bool clv__stop;

/* Whether the work should end. `stop` may be NULL: the work cannot be stopped. */
static inline bool clv__is_stopped(const clv__stop *stop) {
  return stop != NULL && atomic_load_explicit(stop, memory_order_relaxed);
}

#endif
