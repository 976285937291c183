/* A plan made runnable: partitions compiled, weights resident, memory planned. */
#ifndef CLEAVE_SESSION_H
#define CLEAVE_SESSION_H

#include "plan.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clv_session clv_session;
typedef struct clv_run clv_run;           /* a request under way */
typedef struct clv_compiled clv_compiled; /* compiled.h */

#define CLV_MAX_IN_FLIGHT 4

typedef struct clv_session_options {
  uint32_t struct_size;
  bool deterministic;         /* exclude algorithms that change rounding */
  bool tune;                  /* measure to choose algorithms, or take what was measured before; not where deterministic */
  uint32_t in_flight;         /* requests at the same time, each with its own boundary memory and instances: 1 (also 0) to 4 */
  uint32_t prepared_shapes;   /* shapes of inputs kept ready, beside those whose captured graphs are; the least recently used
                                 goes first; 0: 16 */
  double device_time_limit_s; /* a device that keeps a request waiting for longer is taken out; 0: none */
  bool no_fallback;           /* a device that fails is an error, not taken out of the plan */
  uint32_t bucket_multiple;   /* open sizes are padded to multiples of it for devices of fixed shapes; 0: 64, 1: never */
  clv_dtype precision;        /* CLV_BF16: products of f32 values may be made in bf16, with sums in f32, by devices that can; what
                                 crosses a partition's boundary stays f32. CLV_F32 and CLV_DTYPE_NONE: as the model says */
  const clv_compiled *compiled; /* where executables are looked for first; outlives the session. NULL: nowhere */
} clv_session_options;
#define CLV_SESSION_OPTIONS_INIT \
  { sizeof(clv_session_options), false, false, 1, 0, 0, false, 0, CLV_DTYPE_NONE, NULL }

/* Compiles every partition and uploads weights. `options` may be NULL; `plan` must outlive the session. A device that fails, now
 * or in a run, is taken out of the session and its partitions are placed again on the others, unless no_fallback; that is logged
 * at level 1. Where no plan is left, the error is that of the first device that failed, followed by what was tried. A device
 * that does not answer within device_time_limit_s is given up for all sessions of these devices; once a session has such a
 * limit, none of them shows its caller's memory to devices (it is copied).
 * Errors: CLV_OUT_OF_MEMORY, CLV_DEVICE_ERROR, CLV_TOO_LARGE, with the partition and device in front; CLV_NOT_SUPPORTED where the
 * model's file has no weights (IR JSON). */
CLV_API CLV_MUST_USE clv_status clv_session_create(const clv_plan *plan, const clv_session_options *options,
                                                   clv_session **session, clv_error *error);

/* Runs that were started must have been waited for. Accepts NULL. */
CLV_API void clv_session_destroy(clv_session *session);

/* Runs once. `inputs` in the order of the graph's inputs; one with dtype CLV_DTYPE_NONE takes its default (an initializer).
 * `outputs` in the order of the graph's outputs, then the plan's kept values. An output that comes with `data` NULL is given the
 * session's own memory, valid until the next run (where it is an input, or known when planning, that one's: read only; not
 * allowed where several requests may be in flight); otherwise its dtype and dims must be right, and it is written there. Memory
 * may be unaligned, and an output's may be an input's: the input is read first. Up to `in_flight` runs at a time, from any
 * threads; a further one waits. Sessions of one set of devices may run in several threads. A run with the shapes of the one
 * before takes nothing from the context's allocator (unless an output's size depends on data), and no lock that another session
 * holds. Errors: CLV_INVALID_ARGUMENT names the input, what it is and what it should be; CLV_DEVICE_ERROR. */
CLV_API CLV_MUST_USE clv_status clv_session_run(clv_session *session, const clv_tensor *inputs, uint32_t input_count,
                                                clv_tensor *outputs, uint32_t output_count, clv_error *error);

typedef struct clv_run_options {
  uint32_t struct_size;
  double time_limit_s; /* CLV_TIMED_OUT when it is over; 0: none */
  /* Called in the thread that runs, after each step; false cancels the run. */
  bool (*progress)(void *user_data, uint32_t steps_done, uint32_t step_count);
  /* Of clv_session_start(): called once when the run is over, in a thread of the session, before clv_run_wait() returns. It may
   * start runs; it must not wait for one. */
  void (*done)(void *user_data, clv_status status);
  void *user_data;
} clv_run_options;
#define CLV_RUN_OPTIONS_INIT \
  { sizeof(clv_run_options), 0, NULL, NULL, NULL }

/* clv_session_run() with options, which may be NULL. */
CLV_API CLV_MUST_USE clv_status clv_session_run_with(clv_session *session, const clv_tensor *inputs, uint32_t input_count,
                                                     clv_tensor *outputs, uint32_t output_count, const clv_run_options *options,
                                                     clv_error *error);

/* Begins a run and returns. The tensors are copied; what they point to, and `outputs` itself, stay valid until clv_run_wait(),
 * which must be called once. More runs than `in_flight` wait for their turn, in order. */
CLV_API CLV_MUST_USE clv_status clv_session_start(clv_session *session, const clv_tensor *inputs, uint32_t input_count,
                                                  clv_tensor *outputs, uint32_t output_count, const clv_run_options *options,
                                                  clv_run **run, clv_error *error);
CLV_API bool clv_run_is_done(const clv_run *run);
/* The run ends soon with CLV_CANCELLED, unless it is over. What devices have begun is waited for: outputs are then unspecified,
 * and nobody writes there any more. Any thread, until clv_run_wait(). */
CLV_API void clv_run_cancel(clv_run *run);
/* Waits, gives what the run came to, and frees it. */
CLV_API CLV_MUST_USE clv_status clv_run_wait(clv_run *run, clv_error *error);

#ifdef __cplusplus
}
#endif
#endif
