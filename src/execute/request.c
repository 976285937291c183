/* Creates and destroys requests, with their streams, events and memory. Gives each run a free request. */
#include <string.h>
#include <time.h>

#include "execute/session_own.h"

/* ---- Streams and memory ---- */

clv_status clv__request_stream(clv__request *request, uint32_t lane, clv_stream **stream, clv_error *error) {
  const clv__device *device = clv__request_device(request, clv__lane_device(lane));
  CLV__TRY(clv__request_blame(request, clv__lane_device(lane), clv__device_check(device, error)));
  if (request->streams[lane] == NULL) {
    clv_stream *made = NULL;
    clv__devices_lock(request->session->devices);
    clv_status status = CLV__CALL(device, error, stream_create, &made);
    clv__devices_unlock(request->session->devices);
    CLV__TRY(clv__request_blame(request, clv__lane_device(lane), status));
    clv__stopping_add(request, lane, made);
  }
  *stream = request->streams[lane];
  return CLV_OK;
}

/* Replaces the block if it has fewer than `size_bytes` bytes. */
static clv_status reserve(clv__request *request, uint32_t device, clv__memory_block *block, uint64_t size_bytes,
                          clv_error *error) {
  if (size_bytes <= block->size_bytes) return CLV_OK;
  clv_devices *devices = request->session->devices;
  clv__memory_pool_free(devices, block);
  clv_status status = clv__memory_pool_allocate(devices, device, size_bytes, block, error);
  if (status != CLV_OK && device != CLV__NO_ID) clv__request_blame(request, device, status);
  return status;
}

clv_status clv__request_reserve(clv__request *request, uint32_t space, size_t size_bytes, clv_error *error) {
  uint32_t device = clv__space_owner(clv__request_plan(request), space);
  clv_status status = reserve(request, device, &request->arenas[space], size_bytes, error);
  return status == CLV_OK ? status : clv__error_prefix(error, status, "memory for values between partitions");
}

/* Keeps the block for as long as captures use it. If too many blocks are kept already, releases the captures that use this
 * one. */
static void hold_scratch(clv__request *request, uint32_t device) {
  clv__memory_block *block = &request->scratch[device];
  if (block->generation == 0 || !clv__scratch_is_held(request, block)) return;
  for (uint32_t i = 0; i < CLV__HELD_SCRATCH; ++i) {
    if (request->held_scratch[i].generation != 0) continue;
    request->held_scratch[i] = *block;
    *block = (clv__memory_block){0};
    return;
  }
  const clv_plan *plan = clv__request_plan(request);
  for (clv__prepared *prepared = request->prepared; prepared != NULL; prepared = prepared->next) {
    for (uint32_t p = 0; p < plan->partition_count; ++p) {
      if (prepared->partitions[p].scratch_generation == block->generation) clv__capture_forget(prepared, p);
    }
  }
}

clv_status clv__request_reserve_scratch(clv__request *request, uint32_t device, uint64_t size_bytes, clv_error *error) {
  if (size_bytes > request->scratch[device].size_bytes) hold_scratch(request, device);
  clv_status status = reserve(request, device, &request->scratch[device], size_bytes, error);
  return status == CLV_OK ? status : clv__error_prefix(error, status, "scratch");
}

static void give_memory(clv__request *request) {
  clv_devices *devices = request->session->devices;
  for (uint32_t d = 0; d < devices->count; ++d) clv__memory_pool_free(devices, &request->scratch[d]);
  for (uint32_t i = 0; i < CLV__HELD_SCRATCH; ++i) clv__memory_pool_free(devices, &request->held_scratch[i]);
  for (uint32_t s = 0; s < devices->space_count; ++s) clv__memory_pool_free(devices, &request->arenas[s]);
}

void clv__request_free_memory(clv__request *request) {
  while (request->prepared != NULL) {
    clv__prepared *prepared = request->prepared;
    request->prepared = prepared->next;
    clv__prepared_destroy(prepared);
  }
  request->prepared_count = 0;
  give_memory(request);
}

/* ---- Creating and destroying ---- */

static clv_status create(clv_session *session, uint32_t index, clv__engine *engine, clv__request **out, clv_error *error) {
  clv__request *request = clv__allocate_zero(session->allocator, sizeof *request);
  if (request == NULL) return clv__error_memory(error, sizeof *request);
  *request = (clv__request){
      .session = session, .allocator = session->allocator, .engine = engine, .index = index, .failed_device = CLV__NO_ID};
  request->pending_first = CLV__NO_ID;
  size_t size_bytes = ((size_t)engine->plan->step_count + CLV__MAX_LANES) * sizeof *request->marks;
  request->marks = clv__allocate_zero(session->allocator, size_bytes);
  if (request->marks == NULL) {
    clv__release(session->allocator, request);
    return clv__error_memory(error, size_bytes);
  }
  pthread_mutex_init(&request->board.lock, NULL);
  clv__condition_init(&request->board.changed);
  pthread_mutex_init(&request->stopping.lock, NULL);
  *out = request;
  return CLV_OK;
}

/* Releases the request's memory, events and streams on all devices, except those that a removed device may still use. */
static void close_down(clv__request *request, bool has_lost_device) {
  clv_devices *devices = request->session->devices;
  uint32_t mark_count = request->engine->plan->step_count + CLV__MAX_LANES;
  clv__devices_lock(devices);
  for (uint32_t lane = 0; lane < CLV__MAX_LANES; ++lane) {
    const clv__device *device = &devices->items[clv__lane_device(lane)];
    if (request->streams[lane] == NULL) continue;
    (void)device->backend->stream_synchronize(device->handle, request->streams[lane], NULL);
  }
  for (uint32_t d = 0; d < devices->count; ++d) {
    if (has_lost_device && clv__device_is_lost(&devices->items[d])) continue;
    clv__watcher_destroy(request->watchers[d]);
    request->watchers[d] = NULL;
  }
  for (clv__prepared *prepared = request->prepared; prepared != NULL; prepared = prepared->next) clv__prepared_close(prepared);
  give_memory(request);
  for (uint32_t s = 0; s < mark_count; ++s) {
    const clv__mark *mark = &request->marks[s];
    const clv__device *device = &devices->items[mark->device];
    if (mark->event != NULL) device->backend->event_destroy(device->handle, mark->event);
  }
  for (uint32_t lane = 0; lane < CLV__MAX_LANES; ++lane) {
    const clv__device *device = &devices->items[clv__lane_device(lane)];
    if (request->streams[lane] != NULL) device->backend->stream_destroy(device->handle, request->streams[lane]);
  }
  clv__devices_unlock(devices);
}

void clv__request_free(clv__request *request) {
  clv__board_drain(&request->board);
  while (request->prepared != NULL) {
    clv__prepared *prepared = request->prepared;
    request->prepared = prepared->next;
    clv__prepared_free(prepared);
  }
  pthread_cond_destroy(&request->board.changed);
  pthread_mutex_destroy(&request->board.lock);
  pthread_mutex_destroy(&request->stopping.lock);
  clv__release(request->allocator, request->marks);
  clv__release(request->allocator, request);
}

void clv__request_destroy(clv__request *request) {
  if (request == NULL) return;
  bool has_lost_device = clv__request_has_lost_device(request);
  if (has_lost_device) clv__request_stop_callbacks(request);
  close_down(request, has_lost_device);
  clv__engine_release(request->session, request->engine);
  if (has_lost_device)
    clv__request_abandon(request);
  else
    clv__request_free(request);
}

/* ---- Assigning requests to runs ---- */

/* Returns request `wanted` if it is free, or any free one if `wanted` is CLV__NO_ID; otherwise CLV__NO_ID. */
static uint32_t find_free(const clv_session *session, uint32_t wanted) {
  if (wanted != CLV__NO_ID) return session->is_busy[wanted] ? CLV__NO_ID : wanted;
  for (uint32_t i = 0; i < session->options.in_flight; ++i) {
    if (!session->is_busy[i]) return i;
  }
  return CLV__NO_ID;
}

/* Waits for a free request and marks it busy. The caller holds the lock. */
static clv_status wait_for_free(clv_session *session, uint32_t wanted, const clv__order *order, uint32_t *index,
                                clv_error *error) {
  for (*index = find_free(session, wanted); *index == CLV__NO_ID; *index = find_free(session, wanted)) {
    CLV__TRY(clv__order_wait(order, &session->freed, &session->lock, error));
  }
  session->is_busy[*index] = true;
  return CLV_OK;
}

clv_status clv__request_acquire(clv_session *session, uint32_t wanted, const clv__order *order, clv__request **out,
                                clv_error *error) {
  uint32_t index;
  pthread_mutex_lock(&session->lock);
  clv_status status = wait_for_free(session, wanted, order, &index, error);
  if (status != CLV_OK) {
    pthread_mutex_unlock(&session->lock);
    return status;
  }
  clv__request *request = session->requests[index];
  clv__engine *engine = session->engine;
  bool is_fresh = request != NULL && request->engine == engine && !clv__request_has_lost_device(request);
  if (!is_fresh) ++engine->users;
  pthread_mutex_unlock(&session->lock);
  if (!is_fresh) {
    pthread_mutex_lock(&session->lock);
    session->requests[index] = NULL;
    pthread_mutex_unlock(&session->lock);
    clv__request_destroy(request);
    status = create(session, index, engine, &request, error);
  }
  pthread_mutex_lock(&session->lock);
  if (status == CLV_OK) {
    session->requests[index] = request;
    pthread_mutex_unlock(&session->lock);
    request->failed_device = CLV__NO_ID;
    *out = request;
    return status;
  }
  session->is_busy[index] = false;
  pthread_cond_broadcast(&session->freed);
  pthread_mutex_unlock(&session->lock);
  clv__engine_release(session, engine);
  return status;
}

void clv__session_sweep(clv_session *session) {
  for (uint32_t i = 0; i < CLV_MAX_IN_FLIGHT; ++i) {
    pthread_mutex_lock(&session->lock);
    clv__request *request = session->requests[i];
    bool is_stale = request != NULL && !session->is_busy[i] && request->engine != session->engine;
    if (is_stale) {
      session->requests[i] = NULL;
      session->is_busy[i] = true;
    }
    pthread_mutex_unlock(&session->lock);
    if (!is_stale) continue;
    clv__request_destroy(request);
    pthread_mutex_lock(&session->lock);
    session->is_busy[i] = false;
    pthread_cond_broadcast(&session->freed);
    pthread_mutex_unlock(&session->lock);
  }
}

void clv__request_release(clv__request *request) {
  clv_session *session = request->session;
  pthread_mutex_lock(&session->lock);
  session->is_busy[request->index] = false;
  session->last_request = request->index;
  pthread_cond_broadcast(&session->freed);
  pthread_mutex_unlock(&session->lock);
}
