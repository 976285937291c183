/* A backend that wraps another one: the same slots, but every call first goes to a hook, which may inspect it, let it * fail,
 * delay it, corrupt its results, or make the device hang. It has its own name, so that one list of devices can contain * both:
 * `--devices logged,cpu`. Optional slots can be left out one by * one, and groups of slots whole.
 *
 * It also tracks the objects that the host creates and destroys: those left when a device is closed, and those destroyed twice
 * or while the device could still use them. Objects that are left are then destroyed, as drivers do. */
#ifndef CLEAVE_TESTS_INTERPOSER_H
#define CLEAVE_TESTS_INTERPOSER_H

#include "cleave/plugin/backend.h"

/* X(slot, whether it returns a status) */
/* clang-format is not stable on these lines. */
/* clang-format off */
#define INTERPOSER_SLOTS(X) \
  X(open, 1) X(close, 0) X(info, 0) X(supports, 0) X(prefers, 0) X(buffer_alloc, 1) X(buffer_free, 0) \
  X(buffer_host_pointer, 0) X(stream_create, 1) X(stream_destroy, 0) X(stream_synchronize, 1) X(event_create, 1) \
  X(event_destroy, 0) X(event_record, 1) X(event_wait, 1) X(event_synchronize, 1) X(copy_in, 1) X(copy_out, 1) \
  X(weight_upload, 1) X(weight_release, 0) X(compile, 1) X(executable_destroy, 0) X(executable_info, 0) \
  X(executable_save, 1) X(executable_load, 1) X(instance_create, 1) X(instance_destroy, 0) X(instance_resize, 1) \
  X(execute, 1) X(node_seconds, 0) X(copy_seconds, 0) X(launch_seconds, 0) X(claim, 1) X(event_notify, 1) \
  X(instance_scratch_bytes, 0) X(instance_bind_scratch, 1) X(capture_begin, 1) X(capture_end, 1) \
  X(captured_launch, 1) X(captured_bind, 1) X(captured_destroy, 0) X(captured_bytes, 0) X(finish, 1) \
  X(instance_time_steps, 1) X(instance_steps, 1)
/* clang-format on */

typedef enum interposer_slot {
#define INTERPOSER_ENUM(name, fails) INTERPOSER_##name,
  INTERPOSER_SLOTS(INTERPOSER_ENUM)
#undef INTERPOSER_ENUM
      INTERPOSER_SLOT_COUNT
} interposer_slot;

#define INTERPOSER_BIT(slot) (UINT64_C(1) << INTERPOSER_##slot)
/* For `without`. */
#define INTERPOSER_CAPTURE                                                                         \
  (INTERPOSER_BIT(capture_begin) | INTERPOSER_BIT(capture_end) | INTERPOSER_BIT(captured_launch) | \
   INTERPOSER_BIT(captured_bind) | INTERPOSER_BIT(captured_destroy) | INTERPOSER_BIT(captured_bytes))
#define INTERPOSER_SCRATCH (INTERPOSER_BIT(instance_scratch_bytes) | INTERPOSER_BIT(instance_bind_scratch))
#define INTERPOSER_BLOBS (INTERPOSER_BIT(executable_save) | INTERPOSER_BIT(executable_load))
#define INTERPOSER_TIMING (INTERPOSER_BIT(instance_time_steps) | INTERPOSER_BIT(instance_steps))
#define INTERPOSER_SPEED (INTERPOSER_BIT(node_seconds) | INTERPOSER_BIT(copy_seconds) | INTERPOSER_BIT(launch_seconds))

const char *interposer_slot_name(interposer_slot slot);
bool interposer_slot_fails(interposer_slot slot); /* it returns a status */
/* The slot enqueues: a device that hangs there hangs later, in the calls that wait. Other slots hang in the call itself. */
bool interposer_slot_enqueues(interposer_slot slot);

/* A call as the hook sees it. Fields that a slot does not have are NULL or 0. */
typedef struct interposer_call {
  interposer_slot slot;
  uint32_t device;      /* index among the devices opened through this interposer */
  uint64_t number;      /* of the call, from 1 */
  uint64_t slot_number; /* of the call among those of its slot, from 1 */
  const void *object;   /* the buffer, event, weight, executable, instance or capture */
  const void *stream;
  uint64_t size_bytes; /* of buffer_alloc() and copies */
  const char *text;    /* open(): the device's name; weight_upload(): the id */
  const clv_graph_view *graph;
  const clv_execute_args *args;
} interposer_call;

typedef enum interposer_action {
  INTERPOSER_PASS,
  INTERPOSER_FAIL,       /* it returns `status` and the message, and does nothing; supports() rejects. Other slots pass */
  INTERPOSER_FAIL_LATER, /* slots that enqueue: it returns CLV_OK, but the stream fails. Others fail */
  INTERPOSER_HANG,       /* the stream (or the call) stays there until interposer_release() or close() */
  INTERPOSER_CORRUPT     /* execute() writes wrong values to its outputs. Other slots pass */
} interposer_action;

typedef struct interposer_fate {
  interposer_action action;
  clv_status status;   /* CLV_OK: CLV_DEVICE_ERROR */
  const char *message; /* NULL: a message that names the slot */
  double delay_s;      /* spent in the call before anything else */
} interposer_fate;

/* Called in the thread of the call, without locks. */
typedef interposer_fate (*interposer_hook)(void *user_data, const interposer_call *call);

typedef enum interposer_order { INTERPOSER_AS_IT_IS, INTERPOSER_SYNCHRONOUS, INTERPOSER_ASYNCHRONOUS } interposer_order;

typedef struct interposer_options {
  const char *name; /* of the backend: "faulty" */
  clv_backend_query_fn query;
  void *query_user_data;
  const char *spec;         /* of a virtual NPU; NULL: the device's own */
  const char *memory_space; /* NULL: the device's own. Makes a device in host memory need copies */
  interposer_order order;   /* sets is_synchronous; an asynchronous device then waits for each call */
  uint64_t without;         /* slots (INTERPOSER_BIT) that are NULL */
  bool finish_on_close;     /* a device that hangs finishes its work when it is closed, instead of abandoning it */
  interposer_hook hook;     /* may be NULL */
  void *user_data;
} interposer_options;

typedef struct interposer interposer;

interposer *interposer_create(const interposer_options *options);
/* After the context is gone. */
void interposer_destroy(interposer *self);
/* For clv_context_add_backend(context, interposer_query, self). */
clv_status interposer_query(const clv_host *host, void *self, const clv_backend **backend, clv_error *error);

/* Applies to later calls, not to calls in progress. */
void interposer_set_hook(interposer *self, interposer_hook hook, void *user_data);
/* Devices that hang continue. */
void interposer_release(interposer *self);

uint64_t interposer_calls(interposer *self);                         /* so far */
uint64_t interposer_count(interposer *self, interposer_slot slot);   /* calls of the slot so far */
uint64_t interposer_live(interposer *self);                          /* objects not yet destroyed */
uint64_t interposer_left(interposer *self);                          /* objects that existed when their device was closed */
bool interposer_misused(interposer *self, char *text, size_t bytes); /* whether there was misuse, and the first one */

/* The log: the slots in `slots` (bits) that were called since interposer_log_clear(), in order, as "execute*3 captured_launch".
 */
void interposer_log_clear(interposer *self);
void interposer_log_text(interposer *self, uint64_t slots, char *text, size_t bytes);

#endif
