/* The internals of streams and events. queue.c enqueues commands, engine.c executes them, and wake.c decides which threads to
 * wake. */
#ifndef CLEAVE_BACKENDS_VNPU_QUEUE_OWN_H
#define CLEAVE_BACKENDS_VNPU_QUEUE_OWN_H

#include "queue.h"

enum { CLV__VNPU_RING = 1024 }; /* capacity of a stream's ring; a full ring blocks its caller */

typedef enum clv__vnpu_command_kind {
  CLV__VNPU_COPY_IN,
  CLV__VNPU_COPY_OUT,
  CLV__VNPU_LAUNCH,
  CLV__VNPU_RECORD,
  CLV__VNPU_WAIT
} clv__vnpu_command_kind;

typedef struct clv__vnpu_command {
  clv__vnpu_command_kind kind;
  uint64_t enqueued_ns; /* for launches and copies, with a speed model */
  union {
    struct {
      void *host; /* COPY_IN only reads it */
      uint64_t address;
      uint64_t size_bytes;
    } copy;
    clv__vnpu_launch *launch;
    struct {
      clv_event *event;
      uint64_t ticket; /* number of the event's record */
      uint64_t waits;  /* RECORD: number of waits for the event that were enqueued before it */
    } mark;
  };
} clv__vnpu_command;

struct clv_stream {
  clv__vnpu_queue *queue;
  clv_stream *next;
  uint64_t enqueued, finished; /* commands so far; the ring holds those in between */
  bool busy;                   /* an engine is executing its first command */
  uint64_t ready_ns;           /* when its last command ended, according to the model */
  clv_captured *captured;
  clv_error failure; /* status CLV_OK: none */
  clv__vnpu_command ring[CLV__VNPU_RING];
};

/* A waiting caller: see clv__vnpu_queue_wait(). */
typedef struct clv__vnpu_waiter {
  struct clv__vnpu_waiter *next;
  const uint64_t *count;
  uint64_t target;
} clv__vnpu_waiter;

/* A notification that was requested. */
typedef struct clv__vnpu_notice {
  struct clv__vnpu_notice *next;
  uint64_t ticket;
  clv_notify_fn notify;
  void *cookie;
} clv__vnpu_notice;

struct clv_event {
  clv__vnpu_queue *queue;
  clv_event *next, **link;
  uint64_t recorded, reached; /* tickets: the last one enqueued, the last one executed */
  uint64_t waits, waited;     /* waits enqueued, waits executed */
  uint64_t reached_ns;
  uint32_t pending; /* commands in streams that refer to it */
  clv__vnpu_notice *notices;
  clv_error failure; /* of the stream, at the last record executed */
};

/* Call all of these with the queue's lock held. */

/* Starts the threads that a command may need, if they are not running. */
clv_status clv__vnpu_engines_start(clv__vnpu_queue *queue, const clv__vnpu_command *command, clv_error *error);
/* The first returns the stream's next command, or NULL. The second returns it only if it is a copy or launch that can start
 * now. */
clv__vnpu_command *clv__vnpu_stream_head(clv_stream *stream);
const clv__vnpu_command *clv__vnpu_stream_work(clv_stream *stream);
/* Whether a copy takes less time than waking a thread for it. */
bool clv__vnpu_copy_is_small(const clv__vnpu_queue *queue, const clv__vnpu_command *command);
/* Marks the engines that have work to start. clv__vnpu_queue_unlock() signals them after it releases the lock, because a woken
 * thread needs the lock. */
void clv__vnpu_rouse(clv__vnpu_queue *queue);
/* Marks the callers whose wait is over, so that clv__vnpu_queue_unlock() wakes them. */
void clv__vnpu_stir(clv__vnpu_queue *queue);
/* Whether a marked thread has not been woken yet. */
bool clv__vnpu_queue_is_owing(const clv__vnpu_queue *queue);
void clv__vnpu_queue_unlock(clv__vnpu_queue *queue);
/* The engine that runs a command; NULL for marks (RECORD and WAIT), which take no time. */
clv__vnpu_engine *clv__vnpu_engine_of(clv__vnpu_queue *queue, const clv__vnpu_command *command);
/* Whether a record (given its ticket and the waits before it) or a wait can be executed now on this stream. */
bool clv__vnpu_mark_is_ready(const clv_stream *stream, const clv__vnpu_command *command);
void clv__vnpu_mark_execute(clv_stream *stream, const clv__vnpu_command *command);

#endif
