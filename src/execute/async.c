/* Asynchronous runs: a queue of runs, and threads that execute them. The queue is created when the first run is started.
 * Starting a run adds a thread if too few threads are idle. A session has at most as many of these threads as requests in
 * flight. */
#include <string.h>

#include "base/clock.h"
#include "execute/session_own.h"

struct clv_run {
  clv__async *async;
  clv_run *next;
  clv__order order;
  atomic_bool is_cancelled;
  bool is_done; /* protected by the async's lock */
  clv_error result;
  clv_tensor inputs[]; /* the caller's tensors; their data is not copied */
};

struct clv__async {
  clv_session *session;
  pthread_mutex_t lock;
  pthread_cond_t work, done;
  clv_run *first, *last; /* the queue of runs that no thread has begun */
  uint32_t thread_count, idle_count;
  pthread_t threads[CLV_MAX_IN_FLIGHT];
  bool is_closing;
};

static void finish(clv_run *run, clv_status status) {
  clv__async *async = run->async;
  run->result.status = status;
  if (run->order.options.done != NULL) run->order.options.done(run->order.options.user_data, status);
  pthread_mutex_lock(&async->lock);
  run->is_done = true;
  pthread_cond_broadcast(&async->done);
  pthread_mutex_unlock(&async->lock);
}

static void *serve(void *cookie) {
  clv__async *async = cookie;
  pthread_mutex_lock(&async->lock);
  for (;;) {
    ++async->idle_count;
    while (async->first == NULL && !async->is_closing) pthread_cond_wait(&async->work, &async->lock);
    --async->idle_count;
    clv_run *run = async->first;
    if (run == NULL) break;
    async->first = run->next;
    if (async->first == NULL) async->last = NULL;
    pthread_mutex_unlock(&async->lock);
    finish(run, clv__session_run(async->session, &run->order, &run->result));
    pthread_mutex_lock(&async->lock);
  }
  pthread_mutex_unlock(&async->lock);
  return NULL;
}

static clv_status create(clv_session *session, clv__async **out, clv_error *error) {
  clv__async *async = clv__allocate_zero(session->allocator, sizeof *async);
  if (async == NULL) return clv__error_memory(error, sizeof *async);
  async->session = session;
  pthread_mutex_init(&async->lock, NULL);
  pthread_cond_init(&async->work, NULL);
  pthread_cond_init(&async->done, NULL);
  *out = async;
  return CLV_OK;
}

void clv__async_destroy(clv__async *async) {
  if (async == NULL) return;
  pthread_mutex_lock(&async->lock);
  async->is_closing = true;
  pthread_cond_broadcast(&async->work);
  pthread_mutex_unlock(&async->lock);
  for (uint32_t i = 0; i < async->thread_count; ++i) pthread_join(async->threads[i], NULL);
  pthread_cond_destroy(&async->done);
  pthread_cond_destroy(&async->work);
  pthread_mutex_destroy(&async->lock);
  clv__release(async->session->allocator, async);
}

/* The caller holds the lock. Adds a thread for one more run, unless there are enough idle threads, or already as many threads
 * as requests in flight. */
static clv_status add_thread(clv__async *async, clv_error *error) {
  uint32_t waiting = 0;
  for (const clv_run *run = async->first; run != NULL; run = run->next) ++waiting;
  if (waiting < async->idle_count || async->thread_count == async->session->options.in_flight) return CLV_OK;
  int code = pthread_create(&async->threads[async->thread_count], NULL, serve, async);
  if (code == 0) ++async->thread_count;
  if (code == 0 || async->thread_count > 0) return CLV_OK; /* the existing threads will execute the run, only later */
  return clv__error_set(error, CLV_OUT_OF_MEMORY, "cannot create a thread for a run: %s", strerror(code));
}

/* Removes a run from the queue. Returns false if it is not there. The caller holds the lock. */
static bool leave_queue(clv__async *async, clv_run *run) {
  clv_run *previous = NULL, *at = async->first;
  for (; at != NULL && at != run; at = at->next) previous = at;
  if (at == NULL) return false;
  if (previous != NULL)
    previous->next = run->next;
  else
    async->first = run->next;
  if (async->last == run) async->last = previous;
  run->next = NULL;
  return true;
}

static clv_status get_async(clv_session *session, clv__async **async, clv_error *error) {
  pthread_mutex_lock(&session->lock);
  clv_status status = session->async != NULL ? CLV_OK : create(session, &session->async, error);
  *async = session->async;
  pthread_mutex_unlock(&session->lock);
  return status;
}

clv_status clv_session_start(clv_session *session, const clv_tensor *inputs, uint32_t input_count, clv_tensor *outputs,
                             uint32_t output_count, const clv_run_options *options, clv_run **out, clv_error *error) {
  if (out == NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "the pointer that receives the run must not be NULL");
  *out = NULL;
  clv__order order;
  clv__async *async;
  CLV__TRY(clv__order_make(session, inputs, input_count, outputs, output_count, options, &order, error));
  CLV__TRY(get_async(session, &async, error));
  size_t size_bytes;
  clv_run *run = NULL;
  if (clv__multiply(input_count, sizeof *inputs, &size_bytes) && clv__add(size_bytes, sizeof *run, &size_bytes)) {
    run = clv__allocate_zero(session->allocator, size_bytes);
  }
  if (run == NULL) return clv__error_memory(error, size_bytes);
  run->async = async;
  run->order = order;
  run->order.inputs = run->inputs;
  run->order.is_cancelled = &run->is_cancelled;
  if (input_count > 0) memcpy(run->inputs, inputs, input_count * sizeof *inputs);
  pthread_mutex_lock(&async->lock);
  clv_status status = add_thread(async, error);
  if (status == CLV_OK) {
    if (async->last != NULL)
      async->last->next = run;
    else
      async->first = run;
    async->last = run;
    pthread_cond_signal(&async->work);
  }
  pthread_mutex_unlock(&async->lock);
  if (status != CLV_OK) {
    clv__release(session->allocator, run);
    return status;
  }
  *out = run;
  if (order.deadline_ns != UINT64_MAX) clv__alarm_set_queue(session, order.deadline_ns);
  return CLV_OK;
}

bool clv_run_is_done(const clv_run *run) {
  if (run == NULL) return true;
  pthread_mutex_lock(&run->async->lock);
  bool is_done = run->is_done;
  pthread_mutex_unlock(&run->async->lock);
  return is_done;
}

void clv_run_cancel(clv_run *run) {
  if (run == NULL) return;
  clv__async *async = run->async;
  atomic_store(&run->is_cancelled, true);
  pthread_mutex_lock(&async->lock);
  bool was_queued = leave_queue(async, run);
  pthread_mutex_unlock(&async->lock);
  if (was_queued)
    finish(run, clv__order_check(&run->order, &run->result));
  else
    clv__session_stop(async->session, &run->order);
}

uint64_t clv__async_expire(clv_session *session) {
  clv__async *async;
  uint64_t next_ns;
  if (get_async(session, &async, NULL) != CLV_OK) return UINT64_MAX;
  for (;;) {
    clv_run *late = NULL;
    next_ns = UINT64_MAX;
    pthread_mutex_lock(&async->lock);
    for (clv_run *run = async->first; run != NULL && late == NULL; run = run->next) {
      if (run->order.deadline_ns <= clv__clock_ns()) late = run;
      if (run->order.deadline_ns < next_ns) next_ns = run->order.deadline_ns;
    }
    if (late != NULL) (void)leave_queue(async, late);
    pthread_mutex_unlock(&async->lock);
    if (late == NULL) return next_ns;
    finish(late, clv__order_check(&late->order, &late->result));
  }
}

clv_status clv_run_wait(clv_run *run, clv_error *error) {
  if (run == NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "run must not be NULL");
  clv__async *async = run->async;
  pthread_mutex_lock(&async->lock);
  while (!run->is_done) pthread_cond_wait(&async->done, &async->lock);
  pthread_mutex_unlock(&async->lock);
  clv_status status = run->result.status;
  if (status != CLV_OK && error != NULL) *error = run->result;
  clv__release(async->session->allocator, run);
  return status;
}
