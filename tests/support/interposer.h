/* A backend that wraps another one. It has the same slots, but each call is first passed to a hook, which can inspect it, make it
 * fail, delay it, corrupt its results, or make the device hang. The interposer has its own name, so that a list of devices can
 * contain wrapped and plain devices: `--devices logged,cpu`. Single optional slots, or whole groups of slots, can be left out.
 *
 * It also tracks the objects that the host creates. It detects objects that still exist when their device is closed, and objects
 * that are destroyed twice or while the device may still use them. Closing a device destroys its remaining objects, as drivers
 * do. */
#ifndef CLEAVE_TESTS_INTERPOSER_H
#define CLEAVE_TESTS_INTERPOSER_H

#include "cleave/plugin/backend.h"

/* X(slot, whether it returns a status) */
/* clang-format is off, because each run would change these lines again. */
/* clang-format off */
#define INTERPOSER_SLOTS(X) \
  X(open, 1) X(close, 0) X(info, 0) X(supports, 0) X(prefers, 0) X(buffer_alloc, 1) X(buffer_free, 0) \
  X(buffer_host_pointer, 0) X(stream_create, 1) X(stream_destroy, 0) X(stream_synchronize, 1) X(event_create, 1) \
  X(event_destroy, 0) X(event_record, 1) X(event_wait, 1) X(event_synchronize, 1) X(copy_in, 1) X(copy_out, 1) \
  X(weight_upload, 1) X(weight_release, 0) X(compile, 1) X(executable_destroy, 0) X(executable_info, 0) \
  X(executable_save, 1) X(executable_load, 1) X(instance_create, 1) X(instance_destroy, 0) X(instance_resize, 1) \
  X(execute, 1) X(node_seconds, 0) X(copy_seconds, 0) X(launch_seconds, 0) X(claim, 1) X(event_notify, 1) \
  X(stream_stop, 1) \
  X(instance_scratch_bytes, 0) X(instance_bind_scratch, 1) X(capture_begin, 1) X(capture_end, 1) \
  X(captured_launch, 1) X(captured_bind, 1) X(captured_destroy, 0) X(captured_bytes, 0) X(finish, 1) \
  X(instance_time_steps, 1) X(instance_steps, 1) X(buffer_discard, 0)
/* clang-format on */

typedef enum interposer_slot {
#define INTERPOSER_ENUM(name, fails) INTERPOSER_##name,
  INTERPOSER_SLOTS(INTERPOSER_ENUM)
#undef INTERPOSER_ENUM
      INTERPOSER_SLOT_COUNT
} interposer_slot;

#define INTERPOSER_BIT(slot) (UINT64_C(1) << INTERPOSER_##slot)
/* Groups of slots for the option `without`. */
#define INTERPOSER_CAPTURE                                                                         \
  (INTERPOSER_BIT(capture_begin) | INTERPOSER_BIT(capture_end) | INTERPOSER_BIT(captured_launch) | \
   INTERPOSER_BIT(captured_bind) | INTERPOSER_BIT(captured_destroy) | INTERPOSER_BIT(captured_bytes))
#define INTERPOSER_SCRATCH (INTERPOSER_BIT(instance_scratch_bytes) | INTERPOSER_BIT(instance_bind_scratch))
#define INTERPOSER_BLOBS (INTERPOSER_BIT(executable_save) | INTERPOSER_BIT(executable_load))
#define INTERPOSER_TIMING (INTERPOSER_BIT(instance_time_steps) | INTERPOSER_BIT(instance_steps))
#define INTERPOSER_SPEED (INTERPOSER_BIT(node_seconds) | INTERPOSER_BIT(copy_seconds) | INTERPOSER_BIT(launch_seconds))

const char *interposer_slot_name(interposer_slot slot);
bool interposer_slot_fails(interposer_slot slot); /* whether the slot returns a status */
/* Whether the slot enqueues work. If a device hangs in such a slot, the call returns, and later calls that wait for the work
 * hang. In other slots the call itself hangs. */
bool interposer_slot_enqueues(interposer_slot slot);

/* A call as the hook sees it. Fields that a slot does not have are NULL or 0. */
typedef struct interposer_call {
  interposer_slot slot;
  uint32_t device;      /* index among the devices opened through this interposer */
  uint64_t number;      /* number of the call among all calls, from 1 */
  uint64_t slot_number; /* number of the call among the calls of its slot, from 1 */
  const void *object;   /* the stream, buffer, event, weight, executable, instance or capture */
  const void *stream;
  uint64_t size_bytes; /* bytes of a new buffer, of a copy or of a saved executable; finish(): number of executables */
  const char *text;    /* open(): the device's name; weight_upload(): the id */
  const clv_graph_view *graph;
  const clv_execute_args *args;
} interposer_call;

typedef enum interposer_action {
  INTERPOSER_PASS,
  INTERPOSER_FAIL,       /* do nothing and return `status`; supports() rejects; slots without a status pass */
  INTERPOSER_FAIL_LATER, /* slots that enqueue return CLV_OK, but the stream fails; other slots fail */
  INTERPOSER_HANG,       /* the stream (or the call) hangs until interposer_release() or close() */
  INTERPOSER_CORRUPT,    /* execute() writes wrong values to its outputs. Other slots pass */
  INTERPOSER_SKIP        /* slots that enqueue do nothing and return CLV_OK; other slots pass */
} interposer_action;

typedef struct interposer_fate {
  interposer_action action;
  clv_status status;   /* the status of a call that fails; CLV_OK stands for CLV_DEVICE_ERROR */
  const char *message; /* NULL: a message that names the slot */
  double delay_s;      /* delay at the beginning of the call */
} interposer_fate;

/* The hook. It is called in the thread of the call, while the interposer holds no lock. */
typedef interposer_fate (*interposer_hook)(void *user_data, const interposer_call *call);

typedef enum interposer_order { INTERPOSER_AS_IT_IS, INTERPOSER_SYNCHRONOUS, INTERPOSER_ASYNCHRONOUS } interposer_order;

typedef struct interposer_options {
  const char *name; /* name of the interposer as a backend: "faulty" */
  clv_backend_query_fn query;
  void *query_user_data;
  const char *spec; /* option `spec` for a virtual NPU; NULL: none is added */
  /* Replaces the device's memory space, so that a device in host memory needs copies. NULL: unchanged. */
  const char *memory_space;
  /* Overrides is_synchronous. If this makes an asynchronous device synchronous, each call waits for its work. */
  interposer_order order;
  uint64_t without; /* slots (INTERPOSER_BIT) that the interposer leaves NULL */
  /* Slots (INTERPOSER_BIT of claim or finish) that the interposer adds if the backend lacks them: claim() then claims each run
   * of consecutive free nodes, and finish() does nothing. */
  uint64_t with;
  bool finish_on_close; /* when a hung device is closed, it finishes its work instead of abandoning it */
  interposer_hook hook; /* may be NULL */
  void *user_data;
} interposer_options;

typedef struct interposer interposer;

interposer *interposer_create(const interposer_options *options);
/* Call after the context is destroyed. */
void interposer_destroy(interposer *self);
/* The query function: pass it to clv_context_add_backend(context, interposer_query, self). */
clv_status interposer_query(const clv_host *host, void *self, const clv_backend **backend, clv_error *error);

/* Sets the hook for later calls. Calls in progress keep the hook that they began with. */
void interposer_set_hook(interposer *self, interposer_hook hook, void *user_data);
/* Lets all devices that hang continue. */
void interposer_release(interposer *self);

uint64_t interposer_calls(interposer *self);                       /* calls of all slots so far */
uint64_t interposer_count(interposer *self, interposer_slot slot); /* calls of the slot so far */
uint64_t interposer_live(interposer *self);                        /* objects not yet destroyed */
uint64_t interposer_left(interposer *self);                        /* objects that existed when their device was closed */
/* Returns whether the host destroyed an object twice, or one that a hung device still needs. `text` receives a description of the
 * first such call. */
bool interposer_misused(interposer *self, char *text, size_t bytes);

/* The log. interposer_log_text() writes the calls since interposer_log_clear() of the slots in `slots` (bits), in order:
 * "execute*3 captured_launch". */
void interposer_log_clear(interposer *self);
void interposer_log_text(interposer *self, uint64_t slots, char *text, size_t bytes);

#endif
