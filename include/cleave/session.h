/* A session makes a plan runnable: its partitions are compiled, its weights are resident, its memory is planned. */
#ifndef CLEAVE_SESSION_H
#define CLEAVE_SESSION_H

#include "plan.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clv_session clv_session;
typedef struct clv_run clv_run;           /* a run in progress */
typedef struct clv_compiled clv_compiled; /* compiled.h */

#define CLV_MAX_IN_FLIGHT 16

typedef struct clv_session_options {
  uint32_t struct_size;
  bool deterministic;         /* exclude faster algorithms that round differently, such as Winograd convolution */
  bool tune;                  /* choose algorithms by measuring, or reuse earlier measurements; ignored if deterministic */
  uint32_t in_flight;         /* concurrent requests, each with its own instances and memory for values: 1 to 16; 0: 1 */
  uint32_t prepared_shapes;   /* sets of input shapes kept ready; the least recently used is evicted first, and devices that
                                 can resize reuse its instances. Sets with captures are kept even beyond this limit. 0: 16 */
  double device_time_limit_s; /* a device that does not answer within this time is stopped or abandoned, and removed from the
                                 session; 0: no limit */
  bool no_fallback;           /* if a device fails, return its error; do not move its partitions to other devices */
  uint32_t bucket_multiple;   /* for fixed-shape devices, pad open sizes to multiples of this; 0: 64; 1: never pad */
  clv_dtype precision; /* CLV_BF16: capable devices may multiply f32 values in bf16 and accumulate in f32; values that cross
                          a partition boundary stay f32. CLV_F32, CLV_DTYPE_NONE: compute as the model says */
  const clv_compiled *compiled; /* the first place to look for executables; must outlive the session. NULL: none */
  /* Called in a thread of the session if a call of a device has not returned although device_time_limit_s passed and the device
   * was asked to stop. Nothing can interrupt such a call, so its run never ends: the program can only report `message`, which
   * names the device and the partition, and exit. NULL: the message is logged at level 0. */
  void (*stuck)(void *user_data, const char *message);
  void *user_data;
} clv_session_options;
#define CLV_SESSION_OPTIONS_INIT \
  { sizeof(clv_session_options), false, false, 1, 0, 0, false, 0, CLV_DTYPE_NONE, NULL, NULL, NULL }

/* Compiles every partition and uploads the weights. `options` may be NULL. `plan` must outlive the session.
 *
 * If a device fails, now or during a run, the session removes it, moves its partitions to the other devices, and logs this at
 * level 1. Set no_fallback to get an error instead. If the remaining devices cannot run the model, the error is that of the
 * first device that failed, followed by what was tried.
 *
 * A device that does not answer within device_time_limit_s is abandoned by all sessions of this set of devices. Once any session
 * of the set has such a limit, all of them copy their callers' memory and never expose it to a device.
 *
 * If a device's memory does not suffice for the plan with `in_flight` requests at a time, the call fails with CLV_TOO_LARGE, and
 * the error says how many requests fit.
 *
 * Errors: CLV_OUT_OF_MEMORY, CLV_DEVICE_ERROR, CLV_TOO_LARGE, each prefixed with the partition and the device;
 * CLV_NOT_SUPPORTED if the model has no weights (IR JSON). */
CLV_API CLV_MUST_USE clv_status clv_session_create(const clv_plan *plan, const clv_session_options *options,
                                                   clv_session **session, clv_error *error);

/* How clv_session_open() creates each object. NULL: the defaults of its type. */
typedef struct clv_open_options {
  uint32_t struct_size;
  const clv_context_options *context;
  const clv_devices_options *devices;
  const clv_plan_options *plan;
  const clv_session_options *session;
  const char *const *params; /* files of weights for IR JSON: see clv_graph_load_params() */
  uint32_t param_count;
  const void *model; /* a model in memory, if no path is given; see clv_graph_load_memory() */
  size_t model_bytes;
  clv_ownership ownership; /* of `model` */
} clv_open_options;
#define CLV_OPEN_OPTIONS_INIT \
  { sizeof(clv_open_options), NULL, NULL, NULL, NULL, NULL, 0, NULL, 0, CLV_COPY }

/* Creates a session together with a context, devices, a graph and a plan of its own, for programs that need no other access to
 * these. clv_session_destroy() destroys them all. The model is the file `path`, or options->model if `path` is NULL. `options`
 * may be NULL. What its fields point to need be valid only during the call. Exceptions, which must outlive the session: a
 * borrowed model, an allocator, a clv_compiled, and functions with their `user_data`.
 *
 * Errors: those of clv_context_create(), clv_devices_open(), clv_graph_load_params() or clv_graph_load_memory(),
 * clv_plan_make() and clv_session_create(); CLV_INVALID_ARGUMENT unless exactly one of `path` and options->model is given. Any
 * thread may call it. */
CLV_API CLV_MUST_USE clv_status clv_session_open(const char *path, const clv_open_options *options, clv_session **session,
                                                 clv_error *error);

/* The graph that the session runs, with the names and types of its inputs and outputs, and the plan that it was made from. Valid
 * as long as the session. */
CLV_API const clv_graph *clv_session_graph(const clv_session *session);
CLV_API const clv_plan *clv_session_plan(const clv_session *session);

/* Call clv_run_wait() for every started run first. Accepts NULL. */
CLV_API void clv_session_destroy(clv_session *session);

/* Runs once.
 *
 * `inputs` are in the order of the graph's inputs. An input with dtype CLV_DTYPE_NONE takes its default value, an initializer of
 * the model. `outputs` are in the order of the graph's outputs, followed by the plan's kept values.
 *
 * If an output has `data` NULL, the session points it at its own memory, which is valid until the next run. This is not allowed
 * if in_flight is above 1. If the output is also a graph input, or known at plan time, it points at that value's memory, which is
 * read-only. If an output has `data`, its dtype and dims must match, and the result is written there. Memory may be unaligned. An
 * output may overlap an input: the input is read first. See also clv_run_options.allocate.
 *
 * Any thread may call this. Up to `in_flight` runs proceed at a time, and further calls wait. Sessions of one set of devices may
 * run in several threads. If the shapes are those of the previous run, the run takes no lock that another session holds. It also
 * allocates nothing from the context's allocator, unless an output's size depends on data.
 *
 * Errors: CLV_INVALID_ARGUMENT, with the input, its type and the expected type; CLV_DEVICE_ERROR. */
CLV_API CLV_MUST_USE clv_status clv_session_run(clv_session *session, const clv_tensor *inputs, uint32_t input_count,
                                                clv_tensor *outputs, uint32_t output_count, clv_error *error);

/* Prepares the session for inputs of other shapes, as the next run with such inputs would, but changes what the last run used
 * instead of preparing another set of shapes. The device of each partition is asked to resize its instance. If it cannot, the
 * instance is created again, if necessary after compiling, which the log records at level 2; if the device fails, its partitions
 * move to other devices, as in clv_session_create(). Captures for the last run's shapes are released.
 *
 * `inputs` are as for clv_session_run(); `data` is ignored. Outputs in the session's own memory become invalid. Any thread may
 * call this. It waits for the runs in progress. With several requests (in_flight), it waits for and resizes one after the other.
 *
 * Errors: CLV_INVALID_ARGUMENT, with the input, its type and the expected type; CLV_OUT_OF_MEMORY; CLV_DEVICE_ERROR. After an
 * error the session can still run. */
CLV_API CLV_MUST_USE clv_status clv_session_resize(clv_session *session, const clv_tensor *inputs, uint32_t input_count,
                                                   clv_error *error);

/* Replaces the bytes of weights, without planning again: nodes stay on their devices and in their partitions.
 *
 * `names[i]` is a constant of the model, such as an initializer, also one that is the default of an input, and `tensors[i]` has
 * its dtype, its dims and the new bytes, which are copied. Other weights stay as they are. Values that follow from constants are
 * computed again. Partitions with new weights are compiled again, and captures are made again in the next runs, as in a new
 * session; the other partitions' executables stay.
 *
 * A run uses either all old or all new weights: a run in progress ends with the old ones, and every run that begins after the
 * call uses the new ones. A run that clv_session_start() queued begins when it leaves the queue. Outputs in the session's own
 * memory become invalid. If a device's memory does not suffice for the old and the new weights, the old ones are released first,
 * which needs a session without runs in progress. Any thread may call this.
 *
 * After an error the session has its previous weights. Errors: CLV_NOT_FOUND and CLV_INVALID_ARGUMENT, with the name, and both
 * types if they differ; CLV_NOT_SUPPORTED if the plan does not hold for these weights: because the weight decides the size of a
 * value (such as the shape of a Reshape), or because a device rejects its new value; CLV_OUT_OF_MEMORY; CLV_DEVICE_ERROR. */
CLV_API CLV_MUST_USE clv_status clv_session_load_weights(clv_session *session, const char *const *names,
                                                         const clv_tensor *tensors, uint32_t count, clv_error *error);

typedef struct clv_run_options {
  uint32_t struct_size;
  double time_limit_s; /* a longer run, its waits included, is stopped and ends with CLV_TIMED_OUT; 0: no limit */
  /* Called after each step, in the thread that drives the run. Return false to cancel the run. */
  bool (*progress)(void *user_data, uint32_t steps_done, uint32_t step_count);
  /* Only for clv_session_start(). Called once when the run ends, before clv_run_wait() returns: in a thread of the session or, if
   * the run was cancelled in the queue, inside clv_run_cancel(). It may start runs, but must not wait for one. */
  void (*done)(void *user_data, clv_status status);
  void *user_data;
  /* Called in the thread that drives the run for each output without memory (`data` NULL), once its type is known: before the
   * first step or, if its sizes depend on data, after the last. Returns memory for the output, aligned to the size of its
   * elements, which then becomes the output's `data`, also if the run fails later. NULL: the output stays in the session's own
   * memory, as if there were no allocate(). `type` is valid during the call. Must not call functions of the session. */
  void *(*allocate)(void *user_data, uint32_t output, const clv_tensor *type);
} clv_run_options;
#define CLV_RUN_OPTIONS_INIT \
  { sizeof(clv_run_options), 0, NULL, NULL, NULL, NULL }

/* clv_session_run() with options, which may be NULL. */
CLV_API CLV_MUST_USE clv_status clv_session_run_with(clv_session *session, const clv_tensor *inputs, uint32_t input_count,
                                                     clv_tensor *outputs, uint32_t output_count, const clv_run_options *options,
                                                     clv_error *error);

/* Starts a run and returns at once. Call clv_run_wait() exactly once for each run. The `inputs` array is copied. The memory that
 * the tensors point to, and the `outputs` array, must stay valid until clv_run_wait(). Runs beyond `in_flight` are queued in
 * order. */
CLV_API CLV_MUST_USE clv_status clv_session_start(clv_session *session, const clv_tensor *inputs, uint32_t input_count,
                                                  clv_tensor *outputs, uint32_t output_count, const clv_run_options *options,
                                                  clv_run **run, clv_error *error);
CLV_API bool clv_run_is_done(const clv_run *run);
/* Ends the run early with CLV_CANCELLED, unless it has already finished. Devices stop its work at the next opportunity, and the
 * run waits for that. A run that is still queued ends at once, inside this call. The outputs are unspecified, but nothing
 * writes to them once clv_run_is_done() returns true. Any thread may call this until clv_run_wait(). */
CLV_API void clv_run_cancel(clv_run *run);
/* Waits for the run, returns its status, and frees the run. */
CLV_API CLV_MUST_USE clv_status clv_run_wait(clv_run *run, clv_error *error);

#ifdef __cplusplus
}
#endif
#endif
