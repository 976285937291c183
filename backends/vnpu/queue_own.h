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
  uint64_t enqueued_ns; /* set for launches and copies if there is a speed model */
  union {
    struct {
      void *host; /* host memory: the source of COPY_IN, the destination of COPY_OUT */
      uint64_t address;
      uint64_t size_bytes;
    } copy;
    clv__vnpu_launch *launch;
    struct {
      clv_event *event;
      uint64_t ticket; /* number of the record that is recorded or waited for */
      uint64_t waits;  /* RECORD: number of waits for the event that were enqueued before it */
    } mark;
  };
} clv__vnpu_command;

struct clv_stream {
  clv__vnpu_queue *queue;
  clv_stream *next;
  uint64_t enqueued, finished; /* numbers of commands so far; the ring contains those from `finished` to `enqueued` - 1 */
  bool busy;                   /* an engine is executing its first command */
  uint64_t ready_ns;           /* when its last command ended, according to the model */
  clv_captured *captured;
  clv_error failure; /* the failure of the stream; status CLV_OK: none */
  clv__stop stop;    /* set by clv__vnpu_stream_stop(), until the stream is synchronised */
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
  uint64_t recorded, reached; /* numbers of the last record that was enqueued, and of the last that was executed */
  uint64_t waits, waited;     /* number of waits for this event that were enqueued, and that were executed */
  uint64_t reached_ns;
  uint32_t pending; /* number of enqueued commands that refer to this event */
  clv__vnpu_notice *notices;
  clv_error failure; /* the stream's failure when the last record was executed */
};

/* Call all functions below with the queue's lock held. */

/* Whether the stream skips its launches and copies, because it has failed or was stopped. */
bool clv__vnpu_stream_skips(clv_stream *stream);
/* Finishes all commands that need no engine, and wakes the threads that can go on. */
void clv__vnpu_advance(clv__vnpu_queue *queue);
/* Sends all notifications in `due`. Releases the lock during each. */
void clv__vnpu_notify_due(clv__vnpu_queue *queue);
/* Starts the threads that a command may need, if they are not running. */
clv_status clv__vnpu_engines_start(clv__vnpu_queue *queue, const clv__vnpu_command *command, clv_error *error);
/* clv__vnpu_stream_head() returns the stream's next command, or NULL. clv__vnpu_stream_work() returns it only if it is a copy or
 * launch that can start now, otherwise NULL. */
clv__vnpu_command *clv__vnpu_stream_head(clv_stream *stream);
const clv__vnpu_command *clv__vnpu_stream_work(clv_stream *stream);
/* Whether a copy takes less time than waking a thread for it. */
bool clv__vnpu_copy_is_small(const clv__vnpu_queue *queue, const clv__vnpu_command *command);
/* Marks the sleeping engines for which there is work. clv__vnpu_queue_unlock() signals them after it releases the lock, because a
 * woken thread needs the lock. */
void clv__vnpu_rouse(clv__vnpu_queue *queue);
/* If the wait of any caller is over, makes clv__vnpu_queue_unlock() wake the waiting callers. */
void clv__vnpu_stir(clv__vnpu_queue *queue);
/* Whether clv__vnpu_queue_unlock() has a thread to wake. */
bool clv__vnpu_queue_is_owing(const clv__vnpu_queue *queue);
void clv__vnpu_queue_unlock(clv__vnpu_queue *queue);
/* The engine that runs a command; NULL for marks (RECORD and WAIT), which take no time. */
clv__vnpu_engine *clv__vnpu_engine_of(clv__vnpu_queue *queue, const clv__vnpu_command *command);
/* Whether a record or a wait can be executed now on this stream. */
bool clv__vnpu_mark_is_ready(const clv_stream *stream, const clv__vnpu_command *command);
void clv__vnpu_mark_execute(clv_stream *stream, const clv__vnpu_command *command);

#endif
