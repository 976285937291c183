/* See compare.h. Compares a plan with those of all strategies and of all single devices. */
#include "plan/compare.h"

#include <string.h>

#include "plan/make.h"

/* Fills a row with the figures of `other`, and with its gap to the lower bound of `plan`. */
static void fill(const clv_plan *plan, const clv_plan *other, clv__comparison *row) {
  const clv__problem *problem = other->problem;
  row->partitions = other->partition_count - other->hosted_count;
  for (uint32_t i = 0; i < other->copies.count; ++i) {
    const clv__copy *copy = &other->copies.items[i];
    if (copy->is_weight || copy->before == other->cut.count || problem->producers[copy->value] == CLV__NONE) continue;
    ++row->transfers;
    row->transfer_bytes += problem->value_bytes[copy->value];
  }
  row->serial_ns = other->price.serial_ns;
  row->overlapped_ns = other->price.overlapped_ns;
  row->throughput_ns = other->price.throughput_ns;
  row->predicted_ns = other->predicted_ns;
  uint64_t bound = plan->lower_bound_ns;
  row->gap = bound > 0 ? ((double)row->predicted_ns - (double)bound) / (double)bound : row->predicted_ns == 0 ? 0 : -1;
}

/* Fills the row of a strategy or device that cannot run the graph: with the reason. Running out of memory is an error. */
static clv_status refuse(clv__arena *arena, clv__comparison *row, clv_status status, const clv_error *why, clv_error *error) {
  if (status == CLV_OUT_OF_MEMORY) return clv__error_memory(error, sizeof *row);
  row->refusal = clv__arena_string(arena, why->message, strlen(why->message));
  return row->refusal == NULL ? clv__error_memory(error, strlen(why->message)) : CLV_OK;
}

static clv_status compare_one(const clv_plan *plan, const clv__strategy *strategy, uint32_t only, clv__poll *poll,
                              clv__arena *arena, clv__comparison *row, clv_error *error) {
  clv_plan *other;
  clv_error why = {0};
  clv_status status = clv__plan_with_strategy(plan, strategy, only, poll, &other, &why);
  if (clv__poll_stops(poll)) {
    clv_plan_destroy(other);
    return clv__error_set(error, CLV_CANCELLED, "comparing was cancelled");
  }
  if (status != CLV_OK) return refuse(arena, row, status, &why, error);
  fill(plan, other, row);
  clv_plan_destroy(other);
  return CLV_OK;
}

clv_status clv__plan_compare(const clv_plan *plan, clv__poll *poll, clv__arena *arena, clv__comparison **out, uint32_t *out_count,
                             clv_error *error) {
  uint32_t count = 0;
  while (clv__strategies[count] != NULL) ++count;
  clv__comparison *rows = clv__arena_allocate_zero(arena, count + plan->devices->count, sizeof *rows);
  if (rows == NULL) return clv__error_memory(error, count * sizeof *rows);
  for (uint32_t i = 0; i < count; ++i) {
    rows[i].name = clv__strategies[i]->name;
    rows[i].is_plan = strcmp(rows[i].name, plan->placement.strategy) == 0;
    if (rows[i].is_plan) /* not made again: it might change, because its file may have been edited, or devices removed */
      fill(plan, plan, &rows[i]);
    else
      CLV__TRY(compare_one(plan, clv__strategies[i], CLV__NONE, poll, arena, &rows[i], error));
  }
  for (uint32_t d = 0; d < plan->devices->count; ++d, ++count) {
    rows[count].name = plan->devices->items[d].name;
    rows[count].is_single = true;
    CLV__TRY(compare_one(plan, &clv__strategy_contiguous, d, poll, arena, &rows[count], error));
  }
  *out = rows;
  *out_count = count;
  return CLV_OK;
}
