/* A session's state, shared by the files of this folder.
 *
 *   session   a plan made runnable; has one engine at a time and up to CLV_MAX_IN_FLIGHT requests
 *   engine    a plan, its executables and weights; replaced when a device is taken out
 *   request   what one run at a time needs for itself: streams, events, memory, and for each set of shapes met a
 *   prepared  which has types, places of boundary values, a schedule and instances */
#ifndef CLEAVE_EXECUTE_SESSION_OWN_H
#define CLEAVE_EXECUTE_SESSION_OWN_H

#include "compile/bucket.h"
#include "compile/compile.h"
#include "device/pool.h"
#include "execute/capture/issue.h"
#include "execute/schedule.h"
#include "execute/session.h"

typedef struct clv__request clv__request;
typedef struct clv__prepared clv__prepared;
typedef struct clv__capture clv__capture; /* capture.c */

enum { CLV__HELD_SCRATCH = 16 };

/* A boundary value in one memory space: where it lies, and from which step to which it must be kept. */
typedef struct clv__slot {
  clv_value_id value;
  uint32_t space;
  uint32_t first, last; /* steps; UINT32_MAX: until the run ends */
  uint32_t *touched;    /* by lane of the schedule: how many of its steps must be over before the bytes are free */
  bool is_streamed;     /* a weight, copied again before each partition that reads it */
  bool size_known;      /* when memory was planned */
  bool is_external;     /* a graph input in host memory: the caller's pointer, every run */
  bool is_padded;       /* all that read or write it here have it at its bucket's size: so long it is */
  size_t size_bytes;
  size_t offset;      /* in the space's arena, when size_known and not external */
  void *bound;        /* host memory of this run where it is the caller's */
  clv__block own;     /* for sizes known only at run time; kept from run to run, grown when needed */
  clv__block staging; /* host memory in which its bytes are padded or cut */
} clv__slot;

/* A bucketed partition's own copy of a value that others have at its exact size in the same memory. */
typedef struct clv__staged {
  clv__block host;   /* what the device has where it works in host memory, else on the way there */
  clv__block device; /* where it does not */
  bool is_used;      /* in this run: else the value is as long as its bucket, and is read or written where it is */
} clv__staged;

typedef struct clv__partition_state {
  clv__prepared *prepared;
  uint32_t index;
  clv__compiled own; /* an executable of its own where other shapes than the plan's needed one */
  clv__arena own_arena;
  clv_instance *instance;
  uint64_t scratch_generation; /* of the block the instance is bound to; 0: none */
  clv_tensor *instance_inputs; /* types the instance was made for */
  clv_binding *inputs, *outputs;
  clv__staged *staged; /* of inputs, then outputs; NULL: none may need it */
  uint32_t step;       /* of the plan */
  bool is_staged;      /* it shares memory with partitions that have exact sizes there */
  bool is_fixed;       /* launches are the same every run: may be captured */
  uint32_t first;      /* the partitions of which this is one are captured as one graph, which is known by the first of them */
  uint32_t next;       /* the one after it, or CLV__NO_ID */
  clv__issue issue;    /* in the last run that was driven */
  const char *why;     /* EAGER, where the reason is one of that run */
} clv__partition_state;

struct clv__prepared {
  clv__request *request;
  clv__prepared *next; /* in the request's list, the one used last first */
  clv__arena arena;
  bool is_tight;      /* as little memory as steps one after the other need: devices wait for each other's bytes */
  bool is_whole;      /* made for given inputs, or all sizes are known: otherwise only good for its memory's size */
  clv_tensor *inputs; /* by graph input: the types it was made for */
  clv_tensor *types;  /* by value: the actual type of this run; `data` as in the plan's shapes */
  clv_tensor
      *placed; /* by value: the same at the bucket's sizes, as devices of fixed shapes have it; `types` where there are none */
  uint32_t slot_count;
  clv__slot *slots;
  uint32_t *slot_of; /* [value * space_count + space] -> slot or CLV__NO_ID */
  size_t space_bytes[CLV__MAX_DEVICES + 1];
  uint64_t space_bound_bytes[CLV__MAX_DEVICES + 1];
  uint64_t moves; /* counted up whenever a value gets other memory of its own */
  clv__schedule schedule;
  clv__partition_state *partitions;
  clv__capture *captures[CLV__MAX_DEVICES]; /* NULL: nothing of the device's is captured */
  bool is_prefill;
};

typedef struct clv__engine {
  uint32_t users; /* the session and its requests; under the session's lock */
  const clv_plan *plan;
  clv_plan *own_plan; /* NULL: it is the caller's */
  clv__program program;
  clv__bucket_rule *buckets; /* NULL: nothing is padded */
  clv__arena arena;
  uint64_t *step_times_ns; /* of the last timed run */
  const void **defaults;   /* by input: its initializer's bytes, aligned to their element; NULL where there is none */
  const void **constants;  /* by output, kept ones after the others: the same of those known when planning */
} clv__engine;

/* A step's event, and who is told of it. */
typedef struct clv__mark {
  clv__request *request;
  uint32_t lane, position; /* of the run that goes on */
  clv_event *event;        /* made when first used */
  uint32_t device;
  bool is_uncut;               /* in this run: padding of what it wrote is still to be cut */
  bool is_aside;               /* no step, but the end of a lane: clv__request_await() */
  bool is_told, is_traced;     /* since it was recorded; under the board's lock */
  uint64_t issued_ns, over_ns; /* while the session is traced */
} clv__mark;

/* What the driver has been told. */
typedef struct clv__board {
  pthread_mutex_t lock;
  pthread_cond_t changed; /* by CLOCK_MONOTONIC */
  uint64_t news;
  uint32_t watched[CLV__MAX_DEVICES]; /* notifications still to come */
  uint32_t completed[CLV__MAX_LANES]; /* steps over, in this run */
  atomic_uint tellers;                /* threads inside clv__board_tell() */
} clv__board;

typedef struct clv__watcher clv__watcher; /* watch.c: a thread for a device without event_notify() */

/* What a run is asked for. */
typedef struct clv__order {
  const clv_tensor *inputs;
  clv_tensor *outputs;
  uint32_t input_count, output_count;
  clv_run_options options;
  const atomic_bool *is_cancelled; /* NULL: nobody can */
  uint64_t deadline_ns;            /* UINT64_MAX: none */
} clv__order;

struct clv__request {
  clv_session *session;
  const clv_allocator *allocator;
  clv__engine *engine;
  uint32_t index;
  clv__prepared *prepared; /* the current one first */
  uint32_t prepared_count;
  clv_stream *streams[CLV__MAX_LANES]; /* made when first used */
  clv__mark *marks;                    /* by step, then by lane */
  clv__block arenas[CLV__MAX_DEVICES + 1];
  clv__block scratch[CLV__MAX_DEVICES];
  clv__block held_scratch[CLV__HELD_SCRATCH]; /* what was scratch before it grew, while captured graphs use it; in no order */
  clv__watcher *watchers[CLV__MAX_DEVICES];
  clv__board board;
  uint32_t issued[CLV__MAX_LANES];      /* steps, in this run */
  uint32_t leap;                        /* steps of the lane that were issued together with the one that was to be issued */
  bool is_driven;                       /* by clv__request_drive(): graphs may be captured and replayed */
  atomic_uint failed_device;            /* whose call failed in this run, or CLV__NO_ID */
  uint32_t known_lost;                  /* bits of devices that were given up, and the driver knows */
  uint32_t pending_first, pending_last; /* partitions given to a device since the last wait for it, for messages */
  atomic_uint callers;                  /* threads of devices inside a callback */
  atomic_bool refuses_callbacks;        /* none may come in any more */
  clv__request *next_abandoned;
};

typedef struct clv__async clv__async; /* async.c */

struct clv_session {
  const clv_plan *plan; /* it was made from */
  clv_devices *devices;
  const clv_allocator *allocator;
  clv_session_options options;
  pthread_mutex_t lock;
  pthread_cond_t freed;
  pthread_mutex_t replacing; /* held by who makes another engine; taken before `lock` */
  clv__engine *engine;
  clv__request *requests[CLV_MAX_IN_FLIGHT];
  bool is_busy[CLV_MAX_IN_FLIGHT];
  pthread_mutex_t turns[CLV__MAX_DEVICES]; /* a device that works in its caller's thread works for one request at a time */
  clv__async *async;                       /* made when first used */
  uint32_t last_request;                   /* that a run has ended on */
  bool time_steps;
  double compile_ms;
  uint32_t incident_count;
  clv__incident incidents[CLV__MAX_DEVICES]; /* a device is taken out once */
  bool is_traced;
  clv__trace_event *trace;
  size_t trace_count, trace_capacity;
};

static inline const clv_plan *clv__request_plan(const clv__request *request) {
  return request->engine->plan;
}
static inline const clv__device *clv__request_device(const clv__request *request, uint32_t device) {
  return &request->session->devices->items[device];
}
/* Notes whose call it was that failed. */
static inline clv_status clv__request_blame(clv__request *request, uint32_t device, clv_status status) {
  uint32_t none = CLV__NO_ID; /* outputs sized by data are asked for in threads of devices */
  if (status != CLV_OK) (void)atomic_compare_exchange_strong(&request->failed_device, &none, device);
  return status;
}
/* A device may be given up while it works: it is not shown the caller's memory, nor the model's. */
static inline bool clv__request_is_careful(const clv__request *request) {
  return request->session->devices->is_timed;
}

/* As kernels need it; more than a pointer's is never asked for. */
static inline bool clv__is_aligned(const void *data, clv_dtype dtype) {
  size_t element = clv_dtype_size_bytes(dtype);
  if (element > sizeof(void *)) element = sizeof(void *);
  return element == 0 || (uintptr_t)data % element == 0;
}

/* engine.c */
clv_status clv__engine_create(clv_session *session, const clv_plan *plan, clv_plan *own_plan, clv__engine **engine,
                              uint32_t *failed_device, clv_error *error);
void clv__engine_release(clv_session *session, clv__engine *engine); /* accepts NULL; takes the session's lock */

/* request.c: life; taking one for a run (waits until one is free) and giving it back. */
clv_status clv__request_acquire(clv_session *session, clv__request **request, clv_error *error);
void clv__request_release(clv__request *request);
/* Accepts NULL. Nothing of it runs but on devices that were given up: what they could still come upon is kept until they are
 * closed (abandoned.c). */
void clv__request_destroy(clv__request *request);
clv_status clv__request_stream(clv__request *request, uint32_t lane, clv_stream **stream, clv_error *error);
/* Makes room in the arena of a space, and of a device's scratch: what was there may move (another generation). Nothing of the
 * request runs there; but scratch that captured graphs use stays. */
clv_status clv__request_reserve(clv__request *request, uint32_t space, size_t size_bytes, clv_error *error);
/* Lets go of all prepared sets and memory. */
void clv__request_free_memory(clv__request *request);
clv_status clv__request_reserve_scratch(clv__request *request, uint32_t device, uint64_t size_bytes, clv_error *error);

/* prepare.c: makes the request ready for inputs of these types: request->prepared is it. NULL: whatever the plan knows. */
clv_status clv__request_prepare(clv__request *request, const clv_tensor *inputs, clv_error *error);
/* The type that a value has for a partition: at the bucket's sizes where the partition is bucketed. */
static inline const clv_tensor *clv__prepared_type(const clv__prepared *prepared, const clv__partition *partition,
                                                   clv_value_id value) {
  return partition->is_bucketed ? &prepared->placed[value] : &prepared->types[value];
}
void clv__prepared_destroy(clv__prepared *prepared);
/* Both parts of that: everything but the set's own memory; then that. */
void clv__prepared_close(clv__prepared *prepared);
void clv__prepared_free(clv__prepared *prepared);
bool clv__same_dims(const clv_tensor *a, const clv_tensor *b);

/* instance.c: a partition's instance for the shapes that its inputs have now. */
clv_status clv__instance_make(clv__partition_state *state, clv_error *error);
/* In a run: where the one there is does not fit. */
clv_status clv__instance_fit(clv__partition_state *state, clv_error *error);
/* The request's scratch, made larger where it must be. */
clv_status clv__instance_bind_scratch(clv__partition_state *state, clv_error *error);
/* Gives instances of the set scratch that has moved since they were given it, but where captured graphs are kept. */
clv_status clv__scratch_follow(clv__prepared *prepared, clv_error *error);
/* Between runs: gives back scratch that no captured graph uses any more. */
void clv__scratch_sweep(clv__request *request);
/* A captured graph of the request's uses the block. */
bool clv__scratch_is_held(const clv__request *request, const clv__block *block);
void clv__instance_drop(clv__partition_state *state);

/* pad.c: copies between a slot of a device and host memory of exact size, enqueued on `stream`. `is_constant`: the bytes are the
 * model's. */
clv_status clv__slot_copy_in(clv__request *request, uint32_t device, clv_stream *stream, clv__slot *to, const clv_tensor *from,
                             bool is_constant, clv_error *error);
/* Where the slot's padding has to be cut out, `is_uncut` says so: clv__slot_cut() does it when the copy is over. */
clv_status clv__slot_copy_out(clv__request *request, uint32_t device, clv_stream *stream, const clv_tensor *to, clv__slot *from,
                              bool *is_uncut, clv_error *error);
void clv__slot_cut(const clv__prepared *prepared, const clv__slot *from, const clv_tensor *to);
/* Where bucketed partitions share memory with others: copies of inputs, padded, and room for outputs, in place of `inputs` and
 * `outputs` that are shorter than their bucket. The host has to have seen that what was before is over. */
clv_status clv__stage_bindings(clv__partition_state *state, clv_error *error);
bool clv__stage_is_uncut(const clv__partition_state *state);
/* When the partition is over: outputs to where others expect them. */
clv_status clv__stage_finish(clv__partition_state *state, clv_error *error);
void clv__stage_release(clv__partition_state *state);

/* memory.c: slots for every boundary value, their life, where they lie, and the schedule that keeps them apart. */
clv_status clv__prepared_plan_memory(clv__prepared *prepared, clv_error *error);
void clv__prepared_release_memory(clv__prepared *prepared);
static inline clv__slot *clv__prepared_slot(const clv__prepared *prepared, clv_value_id value, uint32_t space) {
  uint32_t index = prepared->slot_of[(size_t)value * prepared->request->session->devices->space_count + space];
  return index == CLV__NO_ID ? NULL : &prepared->slots[index];
}
/* Where a slot's value is now. */
clv_binding clv__prepared_binding(const clv__prepared *prepared, const clv__slot *slot);
/* Makes room for a value whose size is only known now. */
clv_status clv__prepared_grow_slot(clv__prepared *prepared, clv__slot *slot, size_t size_bytes, clv_error *error);
/* The device that gives out memory of the space: one of those that the plan may use; CLV__NO_ID for the host's. */
uint32_t clv__space_owner(const clv_plan *plan, uint32_t space);

/* arrange.c: sets the offsets of `slots`; `total` is where the last one ends. With a schedule, slots share bytes where it says
 * that one is done with before the other begins (streamed ones where their steps say so); without one, where their steps say so.
 */
clv_status clv__slots_arrange(clv__slot **slots, size_t count, const clv__schedule *schedule, const clv_allocator *allocator,
                              size_t *total, clv_error *error);

/* bind.c: checks the caller's inputs, prepares the request for their shapes and binds them; outputs where they can be written in
 * place; and what is handed over after a run. */
clv_status clv__request_bind_inputs(clv__request *request, const clv_tensor *inputs, uint32_t input_count, clv_error *error);
clv_status clv__request_bind_outputs(clv__request *request, const clv__order *order, clv_error *error);
clv_status clv__request_hand_over(clv__request *request, const clv__order *order, clv_error *error);

/* steps.c: one step, enqueued on its lane's stream; does not wait. `is_uncut`: when it is over, clv__request_finish_step() has to
 * follow before anybody reads what it wrote. */
clv_status clv__request_step(clv__request *request, uint32_t step, uint32_t lane, bool *is_uncut, clv_error *error);
clv_status clv__request_partition(clv__request *request, uint32_t partition, clv_error *error);
/* The instance for its inputs, and where they and the outputs are; then what execute() is given. */
clv_status clv__request_bind(clv__request *request, uint32_t partition, clv_error *error);
clv_execute_args clv__request_args(clv__request *request, uint32_t partition);
clv_status clv__request_finish_step(clv__request *request, uint32_t step, clv_error *error);
/* Waits for a lane's stream, within the device's time limit, and says which partitions failed. */
clv_status clv__request_synchronize(clv__request *request, uint32_t lane, clv_error *error);

/* watch.c: tells the board when a step that was recorded is over. */
clv_status clv__request_watch(clv__request *request, clv__mark *mark, clv_error *error);
void clv__watcher_destroy(clv__watcher *watcher); /* accepts NULL; waits for its thread */
/* The mark's step is over. */
void clv__board_tell(void *mark);
/* Waits until nobody touches the board any more who told it of the last step; before it is freed. */
void clv__board_drain(clv__board *board);
/* Waits until the board has news since `seen`, or a device was given up of which it has yet to hear (request->known_lost then has
 * it), at most until `until_ns`: false when that is past. */
bool clv__board_wait(clv__request *request, uint64_t seen, uint64_t until_ns);
/* What a device that is asked now may take. */
uint64_t clv__request_device_deadline_ns(const clv__request *request);
/* Waits until all that was enqueued on the lane is over. Where devices have no time limit it does nothing: slots wait as well. */
clv_status clv__request_await(clv__request *request, uint32_t lane, clv_error *error);
/* Gives the device up. */
clv_status clv__request_lose(clv__request *request, uint32_t device, clv_error *error);

/* abandoned.c. clv__request_has_lost_device(): a device that was given up may still work for it. clv__request_stop_callbacks():
 * from now on its callbacks find nobody. clv__request_abandon(): what is left of it waits for the devices to be closed, then
 * clv__request_free() is called. */
bool clv__request_has_lost_device(const clv__request *request);
void clv__request_stop_callbacks(clv__request *request);
void clv__request_abandon(clv__request *request);
void clv__request_free(clv__request *request); /* request.c */

/* capture.c: what a prepared set can capture, decided at the beginning of a run, done partition by partition, kept at its end,
 * when nothing runs; the end tells whether the run is to be repeated, without the graphs that it may have failed with. Between
 * runs clv__capture_drop() lets go of a device's graphs; clv__capture_forget() also during one, of the partition's at once, when
 * what it refers to is to go. clv__capture_holds(): captured graphs of the set on the device are kept. */
clv_status clv__capture_prepare(clv__prepared *prepared, clv_error *error);
void clv__capture_drop(clv__prepared *prepared, uint32_t device);
void clv__capture_forget(clv__prepared *prepared, uint32_t partition);
bool clv__capture_holds(const clv__prepared *prepared, uint32_t device);
/* What of the set's graphs depends on the very shapes, in a set that serves several. */
clv_status clv__capture_refit(clv__prepared *prepared, clv_error *error);
void clv__capture_finish(clv__prepared *prepared, uint32_t device); /* with the set */
void clv__capture_begin_run(clv__request *request);
clv_status clv__capture_execute(clv__request *request, uint32_t partition, clv_stream *stream, clv_error *error);
bool clv__capture_end_run(clv__request *request, clv_status status);

/* trace.c: nothing where the session is not traced. */
void clv__trace_add(clv__request *request, clv__trace_event event);
void clv__trace_steps(clv__request *request); /* those of the run that is over */

/* drive.c: all steps, with their order kept and devices at work at the same time. */
clv_status clv__request_drive(clv__request *request, const clv__order *order, clv_error *error);
/* One after the other, each timed with a wait after it. */
clv_status clv__request_drive_timed(clv__request *request, uint64_t *times_ns, clv_error *error);

/* Drivers that wait look again. (request.c) */
void clv__session_wake(clv_session *session);
/* fallback.c: does something with a request, such as a run; where a device fails it is taken out, its partitions are placed
 * again, and it is done again from the start. `go` may be called several times. */
typedef clv_status (*clv__attempt_fn)(clv__request *request, const void *cookie, clv_error *error);
clv_status clv__session_attempt(clv_session *session, clv__attempt_fn go, const void *cookie, clv_error *error);
/* The first engine. */
clv_status clv__session_begin(clv_session *session, clv_error *error);
/* Requests that are not in use and are of an engine that was replaced are let go of. (request.c) */
void clv__session_sweep(clv_session *session);

/* session.c: one run from bind to hand-over, with devices that fail taken out. */
clv_status clv__order_make(const clv_session *session, const clv_tensor *inputs, uint32_t input_count, clv_tensor *outputs,
                           uint32_t output_count, const clv_run_options *options, clv__order *order, clv_error *error);
clv_status clv__session_run(clv_session *session, const clv__order *order, clv_error *error);
/* async.c */
void clv__async_destroy(clv__async *async); /* waits for runs; accepts NULL */

#endif
