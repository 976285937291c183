/* Telling the board that a step is over: by the backend's own notification, or, where it has none, by a thread that waits. */
#include <sched.h>
#include <string.h>

#include "execute/internal.h"

/* Signals when the lock is free again: who wakes up needs it. Nobody frees the board meanwhile: clv__board_settle(). */
void clv__board_tell(void *cookie) {
  clv__mark *mark = cookie;
  clv__board *board = &mark->request->board;
  if (mark->request->session->is_traced) mark->over_ns = clv__now_ns();
  atomic_fetch_add(&board->tellers, 1);
  pthread_mutex_lock(&board->lock);
  if (board->completed[mark->lane] <= mark->position) board->completed[mark->lane] = mark->position + 1;
  --board->watched[mark->device];
  ++board->news;
  pthread_mutex_unlock(&board->lock);
  pthread_cond_signal(&board->changed);
  atomic_fetch_sub(&board->tellers, 1);
}

void clv__board_settle(clv__board *board) {
  while (atomic_load(&board->tellers) > 0) sched_yield();
}

/* A thread that waits for one event after the other. Events of one device come in the order in which they were recorded on each
 * stream, and the run waits for all of them: which of two streams is waited for first costs time, not more. */
struct clv__watcher {
  clv__request *request;
  const clv__device *device;
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t work;
  bool is_closing;
  uint32_t first, count, capacity;
  clv__mark **marks; /* a ring of as many as there are steps */
};

static void *watch(void *cookie) {
  clv__watcher *watcher = cookie;
  pthread_mutex_lock(&watcher->lock);
  for (;;) {
    while (watcher->count == 0 && !watcher->is_closing) pthread_cond_wait(&watcher->work, &watcher->lock);
    if (watcher->count == 0) break;
    clv__mark *mark = watcher->marks[watcher->first];
    watcher->first = (watcher->first + 1) % watcher->capacity;
    --watcher->count;
    pthread_mutex_unlock(&watcher->lock);
    (void)watcher->device->backend->event_synchronize(watcher->device->handle, mark->event,
                                                      NULL); /* asked again, with its text */
    clv__board_tell(mark);
    pthread_mutex_lock(&watcher->lock);
  }
  pthread_mutex_unlock(&watcher->lock);
  return NULL;
}

static clv_status create(clv__request *request, uint32_t device, clv__watcher **out, clv_error *error) {
  const clv_allocator *allocator = request->session->allocator;
  clv__watcher *watcher = clv__allocate_zero(allocator, sizeof *watcher);
  if (watcher == NULL) return clv__error_memory(error, sizeof *watcher);
  watcher->request = request;
  watcher->device = clv__request_device(request, device);
  watcher->capacity = clv__request_plan(request)->step_count + CLV__MAX_LANES;
  watcher->marks = clv__allocate_zero(allocator, watcher->capacity * sizeof(clv__mark *));
  pthread_mutex_init(&watcher->lock, NULL);
  pthread_cond_init(&watcher->work, NULL);
  int code = watcher->marks == NULL ? -1 : pthread_create(&watcher->thread, NULL, watch, watcher);
  if (code == 0) {
    *out = watcher;
    return CLV_OK;
  }
  clv_status status = code < 0 ? clv__error_memory(error, watcher->capacity * sizeof(clv__mark *))
                               : clv__error_set(error, CLV_DEVICE_ERROR, "%s: pthread_create for a thread that waits: %s",
                                                watcher->device->name, strerror(code));
  pthread_cond_destroy(&watcher->work);
  pthread_mutex_destroy(&watcher->lock);
  clv__release(allocator, (void *)watcher->marks);
  clv__release(allocator, watcher);
  return status;
}

void clv__watcher_destroy(clv__watcher *watcher) {
  if (watcher == NULL) return;
  const clv_allocator *allocator = watcher->request->session->allocator;
  pthread_mutex_lock(&watcher->lock);
  watcher->is_closing = true;
  pthread_cond_signal(&watcher->work);
  pthread_mutex_unlock(&watcher->lock);
  pthread_join(watcher->thread, NULL);
  pthread_cond_destroy(&watcher->work);
  pthread_mutex_destroy(&watcher->lock);
  clv__release(allocator, (void *)watcher->marks);
  clv__release(allocator, watcher);
}

static clv_status watch_in_thread(clv__request *request, clv__mark *mark, clv_error *error) {
  clv__watcher **watcher = &request->watchers[mark->device];
  if (*watcher == NULL) CLV__TRY(create(request, mark->device, watcher, error));
  clv__watcher *w = *watcher;
  pthread_mutex_lock(&w->lock);
  w->marks[(w->first + w->count) % w->capacity] = mark;
  ++w->count;
  pthread_cond_signal(&w->work);
  pthread_mutex_unlock(&w->lock);
  return CLV_OK;
}

clv_status clv__request_watch(clv__request *request, clv__mark *mark, clv_error *error) {
  const clv__device *device = clv__request_device(request, mark->device);
  pthread_mutex_lock(&request->board.lock);
  ++request->board.watched[mark->device];
  pthread_mutex_unlock(&request->board.lock);
  clv__error_clear(error);
  clv_status status = device->backend->event_notify != NULL
                          ? device->backend->event_notify(device->handle, mark->event, clv__board_tell, mark, error)
                          : watch_in_thread(request, mark, error);
  if (status == CLV_OK) return status;
  pthread_mutex_lock(&request->board.lock);
  --request->board.watched[mark->device];
  pthread_mutex_unlock(&request->board.lock);
  clv__request_blame(request, mark->device, status);
  return clv__error_prefix(error, status, "%s: event", device->name);
}
