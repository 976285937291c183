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

/* Another way to end work early: between its steps the work calls go_on(), which its caller provides, and ends if that returns
 * false. */
typedef struct clv__poll {
  bool (*go_on)(void *user_data); /* NULL: the work cannot be stopped */
  void *user_data;
  bool is_stopped; /* go_on() has returned false; it is not called again */
} clv__poll;

/* Whether the work should end. Calls go_on(), unless it has returned false before. `poll` may be NULL. */
static inline bool clv__poll_stops(clv__poll *poll) {
  if (poll == NULL || poll->go_on == NULL) return false;
  if (!poll->is_stopped) poll->is_stopped = !poll->go_on(poll->user_data);
  return poll->is_stopped;
}

#endif
