/* Notifies the board that a step completed: by the backend's own notification, or otherwise by a waiting thread. */
#include <sched.h>
#include <string.h>

#include "base/clock.h"
#include "execute/session_own.h"

/* How often a waiting driver wakes up to check whether another session has marked a device as lost. */
enum { LOOK_EVERY_NS = 50000000 };

/* Called when the mark's step completed. Signals only after it has released the lock, because the woken thread needs the lock.
 * `tellers` keeps the board from being freed meanwhile: see clv__board_drain(). */
void clv__board_tell(void *cookie) {
  clv__mark *mark = cookie;
  clv__board *board = &mark->request->board;
  atomic_fetch_add(&board->tellers, 1);
  pthread_mutex_lock(&board->lock);
  if (mark->is_traced) mark->over_ns = clv__clock_ns();
  mark->is_told = true;
  if (!mark->is_aside && board->completed[mark->lane] <= mark->position) board->completed[mark->lane] = mark->position + 1;
  --board->watched[mark->device];
  ++board->news;
  pthread_mutex_unlock(&board->lock);
  pthread_cond_signal(&board->changed);
  atomic_fetch_sub(&board->tellers, 1);
}

void clv__board_drain(clv__board *board) {
  while (atomic_load(&board->tellers) > 0) sched_yield();
}

static bool is_forsaken(clv__request *request) {
  const clv_devices *devices = request->session->devices;
  uint32_t lost = 0;
  for (uint32_t d = 0; d < devices->count; ++d) {
    if (request->board.watched[d] > 0 && clv__device_is_lost(&devices->items[d])) lost |= 1u << d;
  }
  lost &= ~request->known_lost;
  request->known_lost |= lost;
  return lost != 0;
}

bool clv__board_wait(clv__request *request, uint64_t seen, uint64_t until_ns) {
  clv__board *board = &request->board;
  bool is_over = false, is_new = false;
  pthread_mutex_lock(&board->lock);
  while (board->news == seen && !is_over && !is_new) {
    uint64_t now_ns = clv__clock_ns(), next_ns = now_ns + LOOK_EVERY_NS;
    if (until_ns < next_ns) next_ns = until_ns;
    if (clv__condition_wait(&board->changed, &board->lock, next_ns)) continue;
    is_over = next_ns == until_ns;
    is_new = is_forsaken(request);
  }
  is_new = is_new || board->news != seen;
  pthread_mutex_unlock(&board->lock);
  return is_new;
}

uint64_t clv__request_device_deadline_ns(const clv__request *request) {
  double limit_s = request->session->options.device_time_limit_s;
  return limit_s > 0 ? clv__clock_ns() + (uint64_t)(limit_s * 1e9) : UINT64_MAX;
}

clv_status clv__request_lose(clv__request *request, uint32_t index, clv_error *error) {
  clv_session *session = request->session;
  clv__device *device = &session->devices->items[index];
  request->known_lost |= 1u << index;
  if (clv__device_lose(device)) {
    clv__context_log(session->devices->context, 1, "%s: it did not answer within %g s", device->name,
                     session->options.device_time_limit_s);
  }
  return clv__request_blame(
      request, index,
      clv__error_set(error, CLV_DEVICE_ERROR, "it did not answer within %g s", session->options.device_time_limit_s));
}

/* A thread that waits for the events of one device, one after the other. On each stream, events complete in the order in which
 * they were recorded, and the run waits for all of them. So one thread can wait for the events of several streams; at worst,
 * some notifications are late. */
struct clv__watcher {
  clv__request *request;
  const clv__device *device;
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t work;
  bool is_closing;
  uint32_t first, count, capacity;
  clv__mark **marks; /* a ring buffer with room for all marks of the request */
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
    /* The thread that drives the run calls event_synchronize() again to get the error text. */
    (void)watcher->device->backend->event_synchronize(watcher->device->handle, mark->event, NULL);
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
                               : clv__error_set(error, CLV_DEVICE_ERROR, "cannot create a waiting thread: %s", strerror(code));
  pthread_cond_destroy(&watcher->work);
  pthread_mutex_destroy(&watcher->lock);
  clv__release(allocator, (void *)watcher->marks);
  clv__release(allocator, watcher);
  return status;
}

void clv__watcher_destroy(clv__watcher *watcher) {
  if (watcher == NULL) return;
  const clv_allocator *allocator = watcher->request->allocator;
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

static clv_status begin_watching(clv__request *request, clv__mark *mark, clv_error *error) {
  const clv__device *device = clv__request_device(request, mark->device);
  pthread_mutex_lock(&request->board.lock);
  ++request->board.watched[mark->device];
  mark->is_told = false;
  mark->is_traced = request->session->is_traced;
  pthread_mutex_unlock(&request->board.lock);
  clv_status status = device->backend->event_notify != NULL
                          ? CLV__CALL(device, error, event_notify, mark->event, clv__board_tell, mark)
                          : watch_in_thread(request, mark, error);
  if (status == CLV_OK) return status;
  pthread_mutex_lock(&request->board.lock);
  --request->board.watched[mark->device];
  pthread_mutex_unlock(&request->board.lock);
  return status;
}

clv_status clv__request_watch(clv__request *request, clv__mark *mark, clv_error *error) {
  return clv__request_blame(request, mark->device, begin_watching(request, mark, error));
}

/* ---- The end of a lane ---- */

static bool is_told(clv__request *request, const clv__mark *mark, uint64_t *news) {
  pthread_mutex_lock(&request->board.lock);
  bool told = mark->is_told;
  *news = request->board.news;
  pthread_mutex_unlock(&request->board.lock);
  return told;
}

clv_status clv__request_await(clv__request *request, uint32_t lane, clv_error *error) {
  uint32_t d = clv__lane_device(lane);
  const clv__device *device = clv__request_device(request, d);
  if (!(request->session->options.device_time_limit_s > 0) || device->info.is_synchronous) return CLV_OK;
  clv__mark *mark = &request->marks[clv__request_plan(request)->step_count + lane];
  mark->request = request;
  mark->lane = lane;
  mark->device = d;
  mark->is_aside = true;
  clv_status status = CLV_OK;
  if (mark->event == NULL) status = device->backend->event_create(device->handle, &mark->event, NULL);
  if (status == CLV_OK) status = device->backend->event_record(device->handle, mark->event, request->streams[lane], NULL);
  if (status == CLV_OK) status = begin_watching(request, mark, NULL);
  if (status != CLV_OK) return CLV_OK; /* the backend call that follows waits instead */
  uint64_t news;
  while (!is_told(request, mark, &news)) {
    CLV__TRY(clv__request_blame(request, d, clv__device_check(device, error)));
    if (!clv__board_wait(request, news, clv__request_device_deadline_ns(request))) return clv__request_lose(request, d, error);
  }
  return CLV_OK;
}
