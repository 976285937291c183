/* A session's state, shared by the files of this folder.
 *
 *   session   a plan made runnable; has one engine at a time and up to CLV_MAX_IN_FLIGHT requests
 *   engine    a plan, its executables and weights; replaced when a device is removed
 *   request   the resources of one run at a time: streams, events, memory, and one prepared set for each set of shapes
 *   prepared  the types, the locations of boundary values, a schedule and instances for these shapes */
#ifndef CLEAVE_EXECUTE_SESSION_OWN_H
#define CLEAVE_EXECUTE_SESSION_OWN_H

#include "compile/bucket.h"
#include "compile/compile.h"
#include "device/memory_pool.h"
#include "execute/capture/issue.h"
#include "execute/schedule.h"
#include "execute/session.h"

typedef struct clv__request clv__request;
typedef struct clv__prepared clv__prepared;
typedef struct clv__capture clv__capture; /* capture/capture.c */

enum { CLV__HELD_SCRATCH = 16 };

/* A boundary value in one memory space: its location, and the steps during which it must be kept. */
typedef struct clv__slot {
  clv_value_id value;
  uint32_t space;
  uint32_t first, last; /* the first and last step during which it must be kept; `last` UINT32_MAX: until the run ends */
  uint32_t *touched; /* indexed by lane of the schedule: how many of the lane's steps must complete before the bytes are free */
  bool is_streamed;  /* a weight, copied again before each partition that reads it */
  bool size_known;   /* at the time of memory planning */
  bool is_external;  /* a graph input in host memory: the caller's pointer in every run */
  bool is_padded;    /* all its readers and writers in this space use its bucket's size, and so does the slot */
  size_t size_bytes;
  size_t offset;             /* in the space's arena, if size_known and not external */
  void *bound;               /* the caller's memory in this run; NULL: the session's memory is used */
  clv__memory_block own;     /* for sizes known only at run time; kept between runs, grown when needed */
  clv__memory_block staging; /* host memory for padding or cutting its bytes */
} clv__slot;

/* A bucketed partition's own copy of a value that other partitions have at its exact size in the same memory. */
typedef struct clv__staged {
  clv__memory_block host;   /* the device's copy if it works in host memory; otherwise the staging copy on the way to it */
  clv__memory_block device; /* the device's copy if it does not work in host memory */
  bool is_used;             /* used in this run; if not, the value is as large as its bucket, and is accessed in place */
} clv__staged;

typedef struct clv__partition_state {
  clv__prepared *prepared;
  uint32_t index;
  clv__compiled own; /* another executable, if these shapes need one because they differ from the plan's */
  clv__arena own_arena;
  clv_instance *instance;
  uint64_t scratch_generation; /* generation of the block that the instance is bound to; 0: none */
  clv_tensor *instance_inputs; /* types that the instance was created for */
  clv_binding *inputs, *outputs;
  clv__staged *staged; /* padded copies, by input, then by output; NULL: never needed */
  uint32_t step;       /* its step in the plan */
  bool is_staged;      /* bucketed, in memory shared with partitions that use exact sizes */
  bool is_fixed;       /* its launches are the same in every run, so it may be captured */
  uint32_t first;      /* the first partition of the capture that includes this one */
  uint32_t next;       /* the next one in the capture, or CLV__NO_ID */
  clv__issue issue;    /* how it was issued in the last run by clv__request_drive() */
  const char *why;     /* for CLV__ISSUE_EAGER: the reason, if it is specific to that run */
} clv__partition_state;

struct clv__prepared {
  clv__request *request;
  clv__prepared *next; /* in the request's list, the most recently used first */
  clv__arena arena;
  bool is_tight;      /* shares memory as if steps ran one after the other; devices wait until shared bytes are free */
  bool is_whole;      /* made for given inputs, or all sizes are known; otherwise it only serves to size the memory */
  clv_tensor *inputs; /* indexed by graph input: the types that it was made for */
  clv_tensor *types;  /* indexed by value: the actual type of this run; `data` as in the plan's shapes */
  clv_tensor *placed; /* indexed by value: the type at its bucket's sizes, for devices with fixed shapes. If the engine has no
                         buckets, it is the same array as `types` */
  uint32_t slot_count;
  clv__slot *slots;
  uint32_t *slot_of; /* [value * space_count + space] -> slot or CLV__NO_ID; of a hosted view: that of its source */
  size_t space_bytes[CLV__MAX_DEVICES + 1];
  uint64_t space_bound_bytes[CLV__MAX_DEVICES + 1];
  uint64_t moves; /* incremented whenever a value's own memory is replaced */
  clv__schedule schedule;
  clv__partition_state *partitions;
  clv__capture *captures[CLV__MAX_DEVICES]; /* indexed by device; NULL: nothing on the device is captured */
  bool is_prefill;
};

/* Weights from clv_session_load_weights(). Engines share them. */
typedef struct clv__loaded {
  uint32_t users;   /* the engines that use them, and the call that loads them; protected by the session's lock */
  clv_graph *graph; /* that of session->plan with these weights */
  clv_plan *plan;   /* session->plan for this graph */
} clv__loaded;

typedef struct clv__engine {
  uint32_t users; /* how many use it: the session and its requests; protected by the session's lock */
  const clv_plan *plan;
  clv_plan *own_plan;  /* NULL: the caller or `loaded` owns the plan */
  clv__loaded *loaded; /* NULL: the weights are those of the model */
  clv__executables executables;
  atomic_bool is_empty;      /* the executables were released to make room, and must be made again before a run */
  clv__bucket_rule *buckets; /* NULL: nothing is padded */
  clv__arena arena;
  uint64_t *step_times_ns; /* indexed by step: its time in the last timed run */
  const void **defaults;   /* indexed by input: the bytes of its initializer, aligned to their element; NULL if there is none */
  const void **constants;  /* indexed by output, then kept value: its bytes, if known at planning time, or NULL */
  bool reads_files;        /* runs read constants in the model's files: streamed weights, or some of `defaults` and `constants` */
} clv__engine;

/* A step's event, and the data for its notification. */
typedef struct clv__mark {
  clv__request *request;
  uint32_t lane, position; /* of the current run */
  clv_event *event;        /* created on first use */
  uint32_t device;
  bool is_uncut;               /* in this run: the padding of its output has not been cut yet */
  bool is_aside;               /* not a step, but the end of a lane: clv__request_await() */
  bool is_told, is_traced;     /* notified, and traced, since the event was recorded; protected by the board's lock */
  uint64_t issued_ns, over_ns; /* while the session is traced */
} clv__mark;

/* Where devices report completed steps to the driver. */
typedef struct clv__board {
  pthread_mutex_t lock;
  pthread_cond_t changed;             /* by CLOCK_MONOTONIC */
  uint64_t news;                      /* counts notifications */
  uint32_t watched[CLV__MAX_DEVICES]; /* indexed by device: pending notifications */
  uint32_t completed[CLV__MAX_LANES]; /* indexed by lane: completed steps in this run */
  atomic_uint tellers;                /* threads inside clv__board_tell() */
} clv__board;

typedef struct clv__watcher clv__watcher; /* watch.c: one thread for a device without event_notify() */

/* The arguments of a run. */
typedef struct clv__order {
  const clv_tensor *inputs;
  clv_tensor *outputs;
  uint32_t input_count, output_count;
  clv_run_options options;
  const atomic_bool *is_cancelled; /* NULL: the run cannot be cancelled */
  uint64_t deadline_ns;            /* UINT64_MAX: none */
} clv__order;

/* The state for ending a request's run early (stop.c). The lock protects the other fields, and the creation of the request's
 * streams. */
typedef struct clv__stopping {
  pthread_mutex_t lock;
  const clv__order *order; /* of the run in progress; NULL: none */
  bool is_stopped;         /* its streams were stopped */
  bool is_late;            /* its streams were stopped because a device exceeded its time limit */
} clv__stopping;

struct clv__request {
  clv_session *session;
  const clv_allocator *allocator;
  clv__engine *engine;
  uint32_t index;
  clv__prepared *prepared; /* a list, with the current set first */
  uint32_t prepared_count;
  clv_stream *streams[CLV__MAX_LANES]; /* created on first use */
  clv__mark *marks;                    /* one per step, then one per lane */
  clv__memory_block arenas[CLV__MAX_DEVICES + 1];
  clv__memory_block scratch[CLV__MAX_DEVICES];
  clv__memory_block held_scratch[CLV__HELD_SCRATCH]; /* previous scratch blocks that captures still use; unordered */
  clv__watcher *watchers[CLV__MAX_DEVICES];
  clv__board board;
  clv__stopping stopping;
  uint32_t issued[CLV__MAX_LANES];      /* indexed by lane: steps issued in this run */
  uint32_t leap;                        /* how many later steps of the lane were issued together with the current one */
  bool is_driven;                       /* true inside clv__request_drive(): launches may be captured and replayed */
  atomic_uint failed_device;            /* the device whose call failed in this run, or CLV__NO_ID */
  uint32_t known_lost;                  /* bits of the removed devices that the driver has already noticed */
  uint32_t pending_first, pending_last; /* partitions enqueued on a device since the last wait for it, for messages */
  atomic_uint callers;                  /* number of device threads inside a callback */
  atomic_bool refuses_callbacks;        /* no further callback may enter */
  clv__request *next_abandoned;
};

typedef struct clv__async clv__async; /* async.c */
typedef struct clv__alarm clv__alarm; /* alarm.c */

/* The objects that clv_session_open() created for a session. All NULL: the caller owns them. */
typedef struct clv__owned {
  clv_context *context;
  clv_devices *devices;
  clv_graph *graph;
  clv_plan *plan;
} clv__owned;

/* Destroys the objects; the session must be destroyed already. */
void clv__owned_destroy(clv__owned *owned);

struct clv_session {
  const clv_plan *plan; /* the plan that the session was made from */
  clv__owned owned;
  clv_devices *devices;
  const clv_allocator *allocator;
  clv_session_options options;
  pthread_mutex_t lock;
  pthread_cond_t freed;
  pthread_mutex_t replacing; /* held by the thread that makes another engine; taken before `lock` */
  clv__engine *engine;
  clv__request *requests[CLV_MAX_IN_FLIGHT];
  bool is_busy[CLV_MAX_IN_FLIGHT];
  pthread_mutex_t turn_lock;
  pthread_cond_t turn_ended;
  bool has_turn[CLV__MAX_DEVICES]; /* by device: a request has its turn; only for devices that work in a caller's thread */
  clv__async *async;               /* created on first use */
  clv__alarm *alarm;               /* created on first use */
  uint32_t last_request;           /* the request of the last run that ended */
  bool time_steps;
  double compile_ms;
  uint32_t incident_count;
  clv__incident incidents[CLV__MAX_DEVICES]; /* each device is removed at most once */
  bool is_traced;
  clv__trace_event *trace;
  size_t trace_count, trace_capacity;
  clv__partition_check *checks; /* of the last verification */
};

static inline const clv_plan *clv__request_plan(const clv__request *request) {
  return request->engine->plan;
}
static inline const clv__device *clv__request_device(const clv__request *request, uint32_t device) {
  return &request->session->devices->items[device];
}
/* Records the device whose call failed. */
static inline clv_status clv__request_blame(clv__request *request, uint32_t device, clv_status status) {
  uint32_t none = CLV__NO_ID; /* atomic, because a device may request memory for an output from its own thread */
  if (status != CLV_OK) (void)atomic_compare_exchange_strong(&request->failed_device, &none, device);
  return status;
}
/* Returns whether devices must not get the caller's memory or the model's memory: with time limits, a device may be removed while
 * it still accesses memory. */
static inline bool clv__request_is_careful(const clv__request *request) {
  return request->session->devices->is_timed;
}

/* Returns whether the alignment suffices for kernels. Never requires more than a pointer's alignment. */
static inline bool clv__is_aligned(const void *data, clv_dtype dtype) {
  size_t element = clv_dtype_size_bytes(dtype);
  if (element > sizeof(void *)) element = sizeof(void *);
  return element == 0 || (uintptr_t)data % element == 0;
}

/* What made clv__engine_create() fail; CLV__NO_ID: unknown. */
typedef struct clv__engine_failure {
  uint32_t device;    /* the device whose call failed */
  uint32_t partition; /* the partition that the device could not compile */
} clv__engine_failure;

/* engine.c */
clv_status clv__engine_create(clv_session *session, const clv_plan *plan, clv_plan *own_plan, clv__loaded *loaded,
                              clv__engine **engine, clv__engine_failure *failure, clv_error *error);
void clv__engine_release(clv_session *session, clv__engine *engine); /* accepts NULL; takes the session's lock */
/* clv__engine_empty() releases the executables and weights of an engine that no request uses. clv__engine_refill() gets them
 * again; it does nothing if the engine is not empty. The caller of clv__engine_empty() holds session->replacing;
 * clv__engine_refill() takes it. */
void clv__engine_empty(clv_session *session, clv__engine *engine);
clv_status clv__engine_refill(clv_session *session, clv__engine *engine, clv_error *error);

/* request.c: acquires a request for a run (creates it if necessary, or waits until one is free), and releases it. `wanted` is its
 * index, or CLV__NO_ID for any. The wait fails when `order` is cancelled or its time limit passes; `order` may be NULL. */
clv_status clv__request_acquire(clv_session *session, uint32_t wanted, const clv__order *order, clv__request **request,
                                clv_error *error);
void clv__request_release(clv__request *request);
/* Accepts NULL. Nothing of the request may still run, except on devices that were removed. Memory that these could still access
 * is kept until the devices are closed (abandoned.c). */
void clv__request_destroy(clv__request *request);
clv_status clv__request_stream(clv__request *request, uint32_t lane, clv_stream **stream, clv_error *error);
/* clv__request_reserve() enlarges the arena of a space, clv__request_reserve_scratch() the scratch of a device, if it is
 * smaller than `size_bytes`. The memory may move and then gets a new generation, so nothing of the request may be running
 * there. A scratch block that captures use is kept in addition to the new one. */
clv_status clv__request_reserve(clv__request *request, uint32_t space, size_t size_bytes, clv_error *error);
/* Releases all prepared sets and the memory of the request. */
void clv__request_free_memory(clv__request *request);
clv_status clv__request_reserve_scratch(clv__request *request, uint32_t device, uint64_t size_bytes, clv_error *error);

/* prepare.c: prepares the request for inputs of these types; the result is request->prepared. If `inputs` is NULL, uses the sizes
 * that the plan knows. */
clv_status clv__request_prepare(clv__request *request, const clv_tensor *inputs, clv_error *error);
/* Works like clv__request_prepare(), but if that would add a set, the new set replaces the current one, and takes over its
 * instances where the device can resize them. */
clv_status clv__request_resize(clv__request *request, const clv_tensor *inputs, clv_error *error);
/* The type of a value as seen by a partition: at the bucket's sizes if the partition is bucketed. */
static inline const clv_tensor *clv__prepared_type(const clv__prepared *prepared, const clv__partition *partition,
                                                   clv_value_id value) {
  return partition->is_bucketed ? &prepared->placed[value] : &prepared->types[value];
}
void clv__prepared_destroy(clv__prepared *prepared);
/* clv__prepared_destroy() in two parts: clv__prepared_close() releases everything except the set's own arrays, which
 * clv__prepared_free() releases. */
void clv__prepared_close(clv__prepared *prepared);
void clv__prepared_free(clv__prepared *prepared);
bool clv__same_dims(const clv_tensor *a, const clv_tensor *b);

/* instance.c: creates a partition's instance for the current shapes of its inputs, or takes and resizes that of `from`, a set
 * without captures that will be evicted. `from` is NULL if there is no such set. */
clv_status clv__instance_make(clv__partition_state *state, clv__prepared *from, clv_error *error);
/* If the instance is not for the current shapes, resizes it, or makes another one. The caller adds the partition to an
 * error. */
clv_status clv__instance_fit(clv__partition_state *state, clv_error *error);
/* Binds the request's scratch, growing it if necessary. */
clv_status clv__instance_bind_scratch(clv__partition_state *state, clv_error *error);
/* Rebinds instances of the set whose scratch has moved, except where captures are kept. */
clv_status clv__scratch_follow(clv__prepared *prepared, clv_error *error);
/* Between runs: releases scratch that no capture uses any more. */
void clv__scratch_sweep(clv__request *request);
/* Returns whether a capture of the request uses the block. */
bool clv__scratch_is_held(const clv__request *request, const clv__memory_block *block);
void clv__instance_drop(clv__partition_state *state);

/* pad.c: copies between a slot of a device and host memory of exact size, enqueued on `stream`. `is_constant`: the bytes belong
 * to the model. */
clv_status clv__slot_copy_in(clv__request *request, uint32_t device, clv_stream *stream, clv__slot *to, const clv_tensor *from,
                             bool is_constant, clv_error *error);
/* Sets `is_uncut` if clv__slot_cut() must cut the slot's padding after the copy completes. */
clv_status clv__slot_copy_out(clv__request *request, uint32_t device, clv_stream *stream, const clv_tensor *to, clv__slot *from,
                              bool *is_uncut, clv_error *error);
void clv__slot_cut(const clv__prepared *prepared, const clv__slot *from, const clv_tensor *to);
/* If the partition is staged: binds its padded copies instead of the inputs and outputs that are shorter than their bucket, and
 * fills those of inputs. The host must have seen the completion of all earlier steps. */
clv_status clv__stage_bindings(clv__partition_state *state, clv_error *error);
bool clv__stage_is_uncut(const clv__partition_state *state);
/* After the partition completes: copies outputs to where other partitions expect them. */
clv_status clv__stage_finish(clv__partition_state *state, clv_error *error);
void clv__stage_release(clv__partition_state *state);

/* memory.c: creates the slots of all boundary values, with their lifetimes and locations, and a schedule in which slots that
 * share bytes are never in use at the same time. */
clv_status clv__prepared_plan_memory(clv__prepared *prepared, clv_error *error);
void clv__prepared_release_memory(clv__prepared *prepared);
static inline clv__slot *clv__prepared_slot(const clv__prepared *prepared, clv_value_id value, uint32_t space) {
  value = clv__plan_storage(clv__request_plan(prepared->request), value, space);
  uint32_t index = prepared->slot_of[(size_t)value * prepared->request->session->devices->space_count + space];
  return index == CLV__NO_ID ? NULL : &prepared->slots[index];
}
/* At the beginning of a run, while nothing uses the request's memory: tells the devices that they may discard the values of the
 * last run. */
void clv__prepared_discard(const clv__prepared *prepared);
/* The current location of a value in a memory space, with its own type: a hosted view has the location of its source. */
clv_binding clv__prepared_operand(const clv__prepared *prepared, clv_value_id value, uint32_t space);
/* The current location of a slot's value. */
clv_binding clv__prepared_binding(const clv__prepared *prepared, const clv__slot *slot);
/* Makes room for a value whose size has only just become known. */
clv_status clv__prepared_grow_slot(clv__prepared *prepared, clv__slot *slot, size_t size_bytes, clv_error *error);
/* The device that allocates memory in the space, among those that the plan may use; CLV__NO_ID for host memory. */
uint32_t clv__space_owner(const clv_plan *plan, uint32_t space);

/* in_flight.c: the bytes of a space that the values of one request may take if every request in flight is to fit; UINT64_MAX: any
 * number. */
uint64_t clv__request_value_room(const clv__request *request, uint32_t space);
/* in_flight.c: fails if the memory of a device does not suffice for all requests that may be in flight, if each takes as much
 * as this one, which must be prepared. */
clv_status clv__request_check_share(const clv__request *request, clv_error *error);

/* arrange.c: sets the offsets of `slots`, and `total` to the size of the arena. With a schedule, two slots may share bytes if the
 * schedule completes all uses of one before the other begins. Without a schedule, and for streamed slots, it suffices that their
 * ranges of steps do not overlap. */
clv_status clv__slots_arrange(clv__slot **slots, size_t count, const clv__schedule *schedule, const clv_allocator *allocator,
                              size_t *total, clv_error *error);

/* bind.c: checks the number and types of a run's inputs and, if `has_data`, that they have data. */
clv_status clv__inputs_check(const clv_plan *plan, const clv_tensor *inputs, uint32_t input_count, bool has_data,
                             clv_error *error);
/* bind.c: clv__request_bind_inputs() checks the caller's inputs, prepares the request for their shapes and binds them.
 * clv__request_bind_outputs() checks the caller's outputs, and binds those that can be written in place.
 * clv__request_hand_over() gives the caller the results after the run, and copies those that were not written in place. */
clv_status clv__request_bind_inputs(clv__request *request, const clv_tensor *inputs, uint32_t input_count, clv_error *error);
clv_status clv__request_bind_outputs(clv__request *request, const clv__order *order, clv_error *error);
clv_status clv__request_hand_over(clv__request *request, const clv__order *order, clv_error *error);

/* steps.c: enqueues one step on its lane's stream without waiting. `is_uncut`: after the step completes,
 * clv__request_finish_step() must run before anything reads its output. */
clv_status clv__request_step(clv__request *request, uint32_t step, uint32_t lane, bool *is_uncut, clv_error *error);
clv_status clv__request_partition(clv__request *request, uint32_t partition, clv_error *error);
/* Prefixes the error of a failed step with its device and either its partition and nodes, or the value that it copies. `steps`
 * are in the order of their lane. The failed step is the last one or, if there are several, possibly an earlier one. */
clv_status clv__request_steps_failed(const clv__request *request, const uint32_t *steps, uint32_t count, clv_status status,
                                     clv_error *error);
clv_status clv__request_step_failed(const clv__request *request, uint32_t step, clv_status status, clv_error *error);
clv_status clv__partition_failed(const clv__request *request, uint32_t partition, clv_status status, clv_error *error);
/* The same for work that a device accepted, and that then failed or did not end: also names the backend call that gave the
 * device this work. */
clv_status clv__request_steps_failed_later(const clv__request *request, const uint32_t *steps, uint32_t count, clv_status status,
                                           clv_error *error);
/* Prepares the instance for its inputs, and binds inputs and outputs. clv__request_args() then returns the arguments of
 * execute(). */
clv_status clv__request_bind(clv__request *request, uint32_t partition, clv_error *error);
clv_execute_args clv__request_args(clv__request *request, uint32_t partition);
clv_status clv__request_finish_step(clv__request *request, uint32_t step, clv_error *error);
/* Waits for a lane's stream, within the device's time limit. An error names the partitions that failed. */
clv_status clv__request_synchronize(clv__request *request, uint32_t lane, clv_error *error);

/* watch.c: requests that the board be notified when a recorded step completes. */
clv_status clv__request_watch(clv__request *request, clv__mark *mark, clv_error *error);
void clv__watcher_destroy(clv__watcher *watcher); /* accepts NULL; waits for its thread */
/* Reports that the mark's step completed. */
void clv__board_tell(void *mark);
/* Waits until no notifying thread touches the board any more. Call it before freeing the board. */
void clv__board_drain(clv__board *board);
/* Waits until the board has news since `seen`, or until a device is removed that is not in request->known_lost yet (the call
 * then adds it there). Returns false if `until_ns` passes first. */
bool clv__board_wait(clv__request *request, uint64_t seen, uint64_t until_ns);
/* The deadline for a device call that starts now. */
uint64_t clv__request_device_deadline_ns(const clv__request *request);
/* Waits until everything enqueued on the lane completes. Does nothing if devices have no time limit: the backend call that the
 * caller makes next then waits by itself. */
clv_status clv__request_await(clv__request *request, uint32_t lane, clv_error *error);
/* Marks the device as lost, because it did not answer in time. Returns an error that says so; the caller adds the device's name,
 * or the step's. */
clv_status clv__request_lose(clv__request *request, uint32_t device, clv_error *error);

/* abandoned.c. clv__request_has_lost_device(): a device that was removed may still work for the request.
 * clv__request_stop_callbacks(): callbacks from such devices are ignored from now on. clv__request_abandon(): keeps the rest of
 * the request until the devices are closed, and then calls clv__request_free(). */
bool clv__request_has_lost_device(const clv__request *request);
void clv__request_stop_callbacks(clv__request *request);
void clv__request_abandon(clv__request *request);
void clv__request_free(clv__request *request); /* request.c */

/* capture/capture.c: clv__capture_prepare() determines what a prepared set can capture. clv__capture_begin_run() decides per
 * device whether to capture or replay in this run, clv__capture_execute() does so for one partition, and clv__capture_end_run()
 * keeps new captures after all steps have completed; it returns whether to repeat the run without the captures that may have
 * caused its failure. clv__capture_drop(), between runs, releases a device's captures. clv__capture_forget(), also during a run,
 * releases the capture of a partition at once, because memory that the capture refers to will be freed. clv__capture_holds()
 * returns whether captures of the set on the device are kept. */
clv_status clv__capture_prepare(clv__prepared *prepared, clv_error *error);
void clv__capture_drop(clv__prepared *prepared, uint32_t device);
void clv__capture_forget(clv__prepared *prepared, uint32_t partition);
bool clv__capture_holds(const clv__prepared *prepared, uint32_t device);
/* Updates captures that depend on the exact shapes, in a set that serves several shapes. */
clv_status clv__capture_refit(clv__prepared *prepared, clv_error *error);
void clv__capture_finish(clv__prepared *prepared, uint32_t device); /* when the set is destroyed */
void clv__capture_begin_run(clv__request *request);
clv_status clv__capture_execute(clv__request *request, uint32_t partition, clv_stream *stream, clv_error *error);
bool clv__capture_end_run(clv__request *request, clv_status status, const clv_error *error);

/* trace.c: add one event, or the steps of the run that just ended. They do nothing unless the session is traced. */
void clv__trace_add(clv__request *request, clv__trace_event event);
void clv__trace_steps(clv__request *request);

/* drive.c: runs all steps in a valid order, with devices working at the same time. */
clv_status clv__request_drive(clv__request *request, const clv__order *order, clv_error *error);
/* Runs the steps one after the other, and measures the time of each, including a wait for its completion. */
clv_status clv__request_drive_timed(clv__request *request, uint64_t *times_ns, clv_error *error);

/* stop.c. Conditions that wait by CLOCK_MONOTONIC. clv__condition_wait() returns false once the time `until_ns` has come;
 * UINT64_MAX: never. */
void clv__condition_init(pthread_cond_t *condition);
bool clv__condition_wait(pthread_cond_t *condition, pthread_mutex_t *lock, uint64_t until_ns);
/* clv__order_check(): CLV_CANCELLED or CLV_TIMED_OUT if the run is to end. clv__order_wait(): waits once for the condition, or
 * until the run is to end; `order` may be NULL. */
clv_status clv__order_check(const clv__order *order, clv_error *error);
clv_status clv__order_wait(const clv__order *order, pthread_cond_t *condition, pthread_mutex_t *lock, clv_error *error);
/* Turns on a device that works in its caller's thread. clv__turn_begin() waits until no other request of the session has its
 * turn on the device, and then gives the turn to `request`; it fails when `order` is cancelled or its time limit passes.
 * clv__turn_end() ends the turn. */
clv_status clv__turn_begin(clv__request *request, uint32_t device, const clv__order *order, clv_error *error);
void clv__turn_end(clv__request *request, uint32_t device);
/* Between clv__stopping_begin() and clv__stopping_end(), other threads may stop the request's streams. clv__stopping_end()
 * returns whether they were stopped. They must then be synchronised before the next run. clv__stopping_add() adds a new
 * stream. */
void clv__stopping_begin(clv__request *request, const clv__order *order);
bool clv__stopping_end(clv__request *request);
void clv__stopping_add(clv__request *request, uint32_t lane, clv_stream *stream);
/* Stops the streams of a request if it is running `order`, or whatever it is running if `order` is NULL. `is_late`: the reason
 * is that a device exceeded its time limit. */
void clv__request_stop(clv__request *request, const clv__order *order, bool is_late);
/* Ends the run of `order`: stops its streams and ends its waits. */
void clv__session_stop(clv_session *session, const clv__order *order);

/* alarm.c: clv__alarm_start() creates the alarm of a session, if there is none. clv__alarm_set() tells the alarm that the
 * driver is about to call the device of `step`. If `is_stoppable`, the alarm stops the request at `until_ns`. If the call does
 * not return even then, and devices have a limit, the program is told. `is_of_device`: the time is the device's limit.
 * clv__alarm_set_queue() sets the time at which the alarm ends the queued runs whose limits are over. */
clv_status clv__alarm_start(clv_session *session, clv_error *error);
void clv__alarm_set(clv__request *request, uint32_t step, uint64_t until_ns, bool is_of_device, bool is_stoppable);
void clv__alarm_clear(clv__request *request); /* the call has returned */
void clv__alarm_set_queue(clv_session *session, uint64_t until_ns);
void clv__alarm_destroy(clv__alarm *alarm); /* accepts NULL */

/* fallback.c: calls `go` with a request, for example for a run. If a device fails, it is removed, its partitions are placed
 * again, and `go` is called again from the start. So `go` may be called several times. */
typedef clv_status (*clv__attempt_fn)(clv__request *request, const void *cookie, clv_error *error);
clv_status clv__session_attempt(clv_session *session, clv__attempt_fn go, const void *cookie, clv_error *error);
/* The same with the request of this index (CLV__NO_ID: any). The wait for the request fails when `order` is cancelled or its
 * time limit passes; `order` may be NULL. */
clv_status clv__session_attempt_at(clv_session *session, uint32_t index, const clv__order *order, clv__attempt_fn go,
                                   const void *cookie, clv_error *error);
/* Creates the first engine. */
clv_status clv__session_begin(clv_session *session, clv_error *error);
/* Divides the partition if its device finds it too large, down to single nodes. Returns false if it cannot be divided. */
bool clv__session_divide(const clv_session *session, const clv_plan *plan, const clv__engine_failure *failure, clv_status status,
                         const clv_error *error, clv_plan **next);
/* load_weights.c: ends a use of the weights; accepts NULL. Takes the session's lock. */
void clv__loaded_release(clv_session *session, clv__loaded *loaded);
/* Releases requests that are not in use and belong to a replaced engine. (request.c) */
void clv__session_sweep(clv_session *session);

/* session.c: clv__order_make() checks the arguments of a run and makes `order` of them. clv__session_run() makes the run, from
 * binding inputs to returning outputs, and removes devices that fail. */
clv_status clv__order_make(clv_session *session, const clv_tensor *inputs, uint32_t input_count, clv_tensor *outputs,
                           uint32_t output_count, const clv_run_options *options, clv__order *order, clv_error *error);
clv_status clv__session_run(clv_session *session, const clv__order *order, clv_error *error);
/* async.c */
void clv__async_destroy(clv__async *async); /* waits for runs; accepts NULL */
/* Ends the queued runs whose time limit has passed. Returns the earliest time limit of the remaining queued runs, or
 * UINT64_MAX. */
uint64_t clv__async_expire(clv_session *session);

#endif
