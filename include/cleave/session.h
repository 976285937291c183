/* A plan made runnable: partitions compiled, weights resident, memory planned. */
#ifndef CLEAVE_SESSION_H
#define CLEAVE_SESSION_H

#include "plan.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clv_session clv_session;

typedef struct clv_session_options {
  uint32_t struct_size;
  bool deterministic; /* exclude algorithms that change rounding */
  bool tune;          /* measure to choose algorithms */
} clv_session_options;
#define CLV_SESSION_OPTIONS_INIT \
  { sizeof(clv_session_options), false, false }

/* Compiles every partition and uploads weights. `options` may be NULL; `plan` must outlive the session.
 * Errors: CLV_OUT_OF_MEMORY, CLV_DEVICE_ERROR, CLV_TOO_LARGE, with the partition and device in front; CLV_NOT_SUPPORTED where the
 * model's file has no weights (IR JSON). */
CLV_API CLV_MUST_USE clv_status clv_session_create(const clv_plan *plan, const clv_session_options *options,
                                                   clv_session **session, clv_error *error);

/* Accepts NULL. */
CLV_API void clv_session_destroy(clv_session *session);

/* Runs once. `inputs` in the order of the graph's inputs; one with dtype CLV_DTYPE_NONE takes its default (an initializer).
 * `outputs` in the order of the graph's outputs, then the plan's kept values. An output that comes with `data` NULL is given the
 * session's own memory, valid until the next run (where it is an input, or known when planning, that one's: read only); otherwise
 * its dtype and dims must be right, and it is written there. Memory may be unaligned, and an output's may be an input's: the
 * input is read first. One run at a time on a session; sessions of one set of devices may run in several threads. A run with the
 * shapes of the one before takes nothing from the context's allocator (unless an output's size depends on data). Errors:
 * CLV_INVALID_ARGUMENT names the input, what it is and what it should be; CLV_DEVICE_ERROR. */
CLV_API CLV_MUST_USE clv_status clv_session_run(clv_session *session, const clv_tensor *inputs, uint32_t input_count,
                                                clv_tensor *outputs, uint32_t output_count, clv_error *error);

#ifdef __cplusplus
}
#endif
#endif
