/* Runs the calls of a launch list, timed or not. */
#include "base/clock.h"
#include "list.h"

clv_status clv__cpu_list_explain(const clv__cpu_list *list, const clv__cpu_call *failed, clv_status status, clv_error *error) {
  const clv__cpu_step *step = &list->variant->steps[failed->step];
  return clv__error_prefix(error, status, "node '%s' (%s)", step->node != NULL ? step->node->name : "", step->what);
}

static clv_status refuse_stopped(clv_error *error) {
  return clv__error_set(error, CLV_CANCELLED, "the execution was stopped");
}

clv_status clv__cpu_calls_run(const void *block, size_t size_bytes, const clv__stop *stop, const clv__cpu_call **failed,
                              clv_error *error) {
  if (size_bytes == 0) return CLV_OK;
  const uint8_t *at = block, *end = at + size_bytes;
  while (at != end) {
    const clv__cpu_call *call = (const clv__cpu_call *)(const void *)at;
    at += call->size_bytes;
    *failed = call;
    if (clv__is_stopped(stop)) return refuse_stopped(error);
    if (call->is_row) {
      call->function.row((const clv__row *)(const void *)call->arguments);
      continue;
    }
    const clv_status status = call->function.run(call, stop, error);
    /* Once stopped, ignore the call's status: it may have failed because its inputs are incomplete. */
    if (status != CLV_OK) return clv__is_stopped(stop) ? refuse_stopped(error) : status;
  }
  return clv__is_stopped(stop) ? refuse_stopped(error) : CLV_OK; /* once stopped, the last call may be incomplete */
}

static clv_status run_calls(const clv__cpu_list *list, const clv__stop *stop, clv_error *error) {
  const clv__cpu_call *failed = NULL;
  const clv_status status = clv__cpu_calls_run(list->block, list->size_bytes, stop, &failed, error);
  return status == CLV_OK ? CLV_OK : clv__cpu_list_explain(list, failed, status, error);
}

static clv_status run_timed(const clv__cpu_list *list, const clv__stop *stop, clv_error *error) {
  for (size_t at = 0; at < list->size_bytes;) {
    const clv__cpu_call *call = (const clv__cpu_call *)(const void *)(list->block + at);
    clv_status status = CLV_OK;
    if (clv__is_stopped(stop)) return clv__cpu_list_explain(list, call, refuse_stopped(error), error);
    at += call->size_bytes;
    const uint64_t begin = clv__clock_ns();
    if (call->is_row)
      call->function.row((const clv__row *)(const void *)call->arguments);
    else
      status = call->function.run(call, stop, error);
    list->step_ns[call->step] += clv__clock_ns() - begin;
    if (status != CLV_OK) return clv__cpu_list_explain(list, call, status, error);
  }
  return clv__is_stopped(stop) ? refuse_stopped(error) : CLV_OK;
}

clv_status clv__cpu_list_run(clv__cpu_list *list, const clv__stop *stop, clv_error *error) {
  const uint32_t input_count = list->variant->program->input_count;
  for (uint32_t i = 0; i < input_count; ++i) {
    const clv__cpu_bound *bound = &list->bound[i];
    if (bound->unaligned != NULL) memcpy(bound->staging, bound->unaligned, bound->size_bytes);
  }
  CLV__TRY(list->step_ns != NULL ? run_timed(list, stop, error) : run_calls(list, stop, error));
  for (uint32_t i = input_count; i < list->bound_count; ++i) {
    const clv__cpu_bound *bound = &list->bound[i];
    if (bound->unaligned != NULL) memcpy(bound->unaligned, bound->staging, bound->size_bytes);
  }
  return CLV_OK;
}
