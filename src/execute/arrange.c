/* Assigns each slot its offset in the arena of its memory space. Slots that are never alive at the same time may share bytes
 * (base/arrange.h). */
#include "base/arrange.h"

#include "execute/session_own.h"

static bool meet_in_steps(const clv__slot *a, const clv__slot *b) {
  return a->first <= b->last && b->first <= a->last;
}

/* Returns whether all users of `a` complete before `b` begins, in whatever order the devices work. */
static bool is_over(const clv__schedule *schedule, const clv__slot *a, const clv__slot *b) {
  const uint32_t *clock = &schedule->clocks[(size_t)b->first * schedule->lane_count];
  for (uint32_t i = 0; i < schedule->lane_count; ++i) {
    if (a->touched[i] > clock[i]) return false;
  }
  return true;
}

static bool meet(const void *cookie, const clv__interval *x, const clv__interval *y) {
  const clv__schedule *schedule = cookie;
  const clv__slot *a = x->owner, *b = y->owner;
  if (meet_in_steps(a, b)) return true;
  if (a->is_streamed || b->is_streamed) return false;
  return a->last < b->first ? !is_over(schedule, a, b) : !is_over(schedule, b, a);
}

clv_status clv__slots_arrange(clv__slot **slots, size_t count, const clv__schedule *schedule, const clv_allocator *allocator,
                              size_t *total, clv_error *error) {
  *total = 0;
  clv__interval *intervals = clv__allocate(allocator, count * sizeof *intervals);
  clv__interval **order = clv__allocate(allocator, count * sizeof *order);
  clv_status status = intervals != NULL && order != NULL ? CLV_OK : clv__error_memory(error, count * sizeof *intervals);
  for (size_t i = 0; i < count && status == CLV_OK; ++i) {
    intervals[i] = (clv__interval){slots[i]->value, slots[i]->first, slots[i]->last, slots[i]->size_bytes, 0, slots[i]};
    order[i] = &intervals[i];
  }
  if (status == CLV_OK) {
    status = schedule != NULL ? clv__intervals_arrange_by(order, count, meet, schedule, allocator, total, error)
                              : clv__intervals_arrange(order, count, allocator, total, error);
  }
  for (size_t i = 0; i < count && status == CLV_OK; ++i) slots[i]->offset = intervals[i].offset;
  clv__release(allocator, order);
  clv__release(allocator, intervals);
  return status;
}
