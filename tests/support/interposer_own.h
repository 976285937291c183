/* Shared by interposer.c (lifetime, hook, tracking) and interposer_slots.c (the table). */
#ifndef CLEAVE_TESTS_INTERPOSER_OWN_H
#define CLEAVE_TESTS_INTERPOSER_OWN_H

#include <pthread.h>

#include "base/error.h"
#include "base/tensor/tensor.h"
#include "interposer.h"

typedef enum object_kind {
  OBJECT_CAPTURED, /* the order of the kinds is the order in which closing a device destroys them */
  OBJECT_INSTANCE,
  OBJECT_EXECUTABLE,
  OBJECT_WEIGHT,
  OBJECT_EVENT,
  OBJECT_STREAM,
  OBJECT_BUFFER,
  OBJECT_KIND_COUNT
} object_kind;

typedef struct object {
  object_kind kind;
  clv_device *device;
  void *pointer; /* the pointer that the host has */
} object;

/* Work that was enqueued on a stream after the stream began to hang. */
typedef enum deferred_kind {
  DEFERRED_EXECUTE,
  DEFERRED_COPY_IN,
  DEFERRED_COPY_OUT,
  DEFERRED_RECORD,
  DEFERRED_WAIT,
  DEFERRED_LAUNCH,
  DEFERRED_NOTIFY
} deferred_kind;

typedef struct deferred {
  struct deferred *next;
  deferred_kind kind;
  clv_stream *stream; /* NULL for DEFERRED_NOTIFY */
  clv_event *event;
  clv_instance *instance;
  clv_captured *captured;
  clv_execute_args args; /* its arrays follow this struct */
  clv_buffer *buffer;
  uint64_t offset, size_bytes;
  void *host;
  clv_notify_fn notify;
  void *cookie;
} deferred;

struct clv_stream {
  clv_stream *inner;
  bool is_hung;
  clv_status failed; /* CLV_OK, or the status that stream_synchronize() must report */
  char message[160];
};

struct clv_event {
  clv_event *inner;
  bool is_hung;
  clv_status failed;
  char message[160];
};

struct clv_device {
  interposer *owner;
  clv_device *inner;
  uint32_t index;
  bool is_synchronous, wait_for_calls;
  pthread_mutex_t lock; /* protects the states of streams and events, and the fields below */
  pthread_cond_t changed;
  bool is_closing;
  uint64_t releases; /* number of calls of interposer_release() */
  uint32_t waiters;  /* threads inside event_synchronize() or a call that hangs */
  deferred *first, **last;
};

struct interposer {
  interposer_options options;
  const clv_host *host;
  const clv_backend *inner;
  clv_backend table;
  clv_capture_slots capture; /* the interposer's capture slots; `bind` is NULL if it is left out */
  pthread_mutex_t lock;      /* guards everything below */
  interposer_hook hook;
  void *user_data;
  uint64_t calls, counts[INTERPOSER_SLOT_COUNT];
  clv_device *devices[16];
  uint32_t device_count;
  object *objects;
  size_t object_count, object_capacity;
  uint64_t left;
  char misuse[200];
  uint8_t *log;
  size_t log_count, log_capacity;
};

/* Counts and logs the call, calls the hook, waits for the delay. */
interposer_fate interposer_ask(interposer *self, interposer_call call);
/* Sets the error that the fate demands, and returns the error's status. */
clv_status interposer_fail(const interposer_fate *fate, interposer_slot slot, clv_error *error);

void interposer_made(clv_device *device, object_kind kind, void *pointer);
void interposer_gone(clv_device *device, object_kind kind, const void *pointer);
void interposer_misuse(interposer *self, const char *format, ...) CLV_PRINTF(2, 3);

/* Blocks until the device is released (returns CLV_OK) or closed (CLV_DEVICE_ERROR). Called with the device's lock held. */
clv_status interposer_hang(clv_device *device, clv_error *error);
/* Appends a copy of `work` to the deferred work. Called with the device's lock held. */
void interposer_defer(clv_device *device, const deferred *work);
/* Performs the deferred work. Called with the device's lock held. */
void interposer_replay(clv_device *device);
/* Discards the deferred work that refers to the object `thing` (NULL: all). Returns whether there was any. Called with the
 * device's lock held. */
bool interposer_forget(clv_device *device, const void *thing);
/* Whether deferred work refers to the object. */
bool interposer_refers(const deferred *work, const void *thing);
/* Destroys all objects of the device that still exist, including streams and events, and counts them in `left`. Called when the
 * device is closed. */
void interposer_clear(clv_device *device);

void interposer_fill(interposer *self); /* fills the table of slots (interposer_slots.c) */

#endif
