/* What streams and events are made of: shared by queue.c, which fills them, engine.c, which works them off, and wake.c, which
 * says who is woken for what. */
#ifndef CLEAVE_BACKENDS_VNPU_QUEUE_OWN_H
#define CLEAVE_BACKENDS_VNPU_QUEUE_OWN_H

#include "queue.h"

enum { CLV__VNPU_RING = 1024 }; /* commands a stream holds before its caller waits */

typedef enum clv__vnpu_command_kind {
  CLV__VNPU_COPY_IN,
  CLV__VNPU_COPY_OUT,
  CLV__VNPU_LAUNCH,
  CLV__VNPU_RECORD,
  CLV__VNPU_WAIT
} clv__vnpu_command_kind;

typedef struct clv__vnpu_command {
  clv__vnpu_command_kind kind;
  uint64_t enqueued_ns; /* work, with a speed model */
  union {
    struct {
      void *host; /* only read by COPY_IN */
      uint64_t address;
      uint64_t size_bytes;
    } copy;
    clv__vnpu_launch *launch;
    struct {
      clv_event *event;
      uint64_t ticket; /* which record of the event */
      uint64_t waits;  /* RECORD: waits of the event that were enqueued before it */
    } mark;
  };
} clv__vnpu_command;

struct clv_stream {
  clv__vnpu_queue *queue;
  clv_stream *next;
  uint64_t enqueued, finished; /* commands so far; the ring holds those between */
  bool busy;                   /* an engine works at the first of them */
  uint64_t ready_ns;           /* when what it did last ended, by the model */
  clv_captured *captured;
  clv_error failure; /* status CLV_OK: none */
  clv__vnpu_command ring[CLV__VNPU_RING];
};

/* A caller that waits: see clv__vnpu_queue_wait(). */
typedef struct clv__vnpu_waiter {
  struct clv__vnpu_waiter *next;
  const uint64_t *count;
  uint64_t target;
} clv__vnpu_waiter;

/* A call that was asked for. */
typedef struct clv__vnpu_notice {
  struct clv__vnpu_notice *next;
  uint64_t ticket;
  clv_notify_fn notify;
  void *cookie;
} clv__vnpu_notice;

struct clv_event {
  clv__vnpu_queue *queue;
  clv_event *next, **link;
  uint64_t recorded, reached; /* tickets: the last enqueued, the last executed */
  uint64_t waits, waited;     /* waits enqueued, and executed */
  uint64_t reached_ns;
  uint32_t pending; /* commands that name it */
  clv__vnpu_notice *notices;
  clv_error failure; /* of the stream at the last record executed */
};

/* All with the queue's lock held. */

/* Starts the threads that a command may need, unless they run. */
clv_status clv__vnpu_engines_start(clv__vnpu_queue *queue, const clv__vnpu_command *command, clv_error *error);
/* The stream's next command; NULL: none. And where that is work which can be begun. */
clv__vnpu_command *clv__vnpu_stream_head(clv_stream *stream);
const clv__vnpu_command *clv__vnpu_stream_work(clv_stream *stream);
/* A copy that takes less time than waking somebody for it. */
bool clv__vnpu_copy_is_small(const clv__vnpu_queue *queue, const clv__vnpu_command *command);
/* Has engines woken for what can be begun, as soon as clv__vnpu_queue_unlock() gives up the lock: who wakes up needs it. */
void clv__vnpu_rouse(clv__vnpu_queue *queue);
/* Has callers woken whose wait is over. */
void clv__vnpu_stir(clv__vnpu_queue *queue);
/* Somebody is to be woken. */
bool clv__vnpu_queue_is_owing(const clv__vnpu_queue *queue);
void clv__vnpu_queue_unlock(clv__vnpu_queue *queue);
/* The engine that a command is for; NULL for marks, which take no time. */
clv__vnpu_engine *clv__vnpu_engine_of(clv__vnpu_queue *queue, const clv__vnpu_command *command);
/* Whether a record (its ticket, the waits before it) or a wait can be executed now on this stream. */
bool clv__vnpu_mark_is_ready(const clv_stream *stream, const clv__vnpu_command *command);
void clv__vnpu_mark_execute(clv_stream *stream, const clv__vnpu_command *command);

#endif
