/* See staging.h.
 *
 * Copies into the device: the call copies the bytes to a piece of pinned memory, and the transfer continues from there. If an
 * earlier copy out of the device has not written the host memory yet, the call must not read it. The driver then does the copy,
 * in the order of the queue.
 *
 * Copies out of the device: a callback copies the bytes from the piece to the destination and then completes a user event, the
 * gate. The queue waits for the gate. So the bytes have arrived when a wait for the stream returns. */
#include "staging.h"

#include "backends/opencl/device.h"

/* Whether the command has finished, with or without an error. */
static bool is_over(const clv__opencl_icd *cl, cl_event event) {
  cl_int status = CL_QUEUED;
  return cl->clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL) == CL_SUCCESS &&
         status <= CL_COMPLETE;
}

static void let_go(const clv__opencl_icd *cl, cl_event *event) {
  if (*event != NULL) cl->clReleaseEvent(*event);
  *event = NULL;
}

/* ---- Creation and destruction ---- */

void clv__opencl_staging_init(clv_device *device, clv__opencl_staging *s) {
  if (!device->stages) return;
  pthread_mutex_lock(&device->staging_lock);
  s->next = device->stagings;
  if (s->next != NULL) s->next->previous = s;
  device->stagings = s;
  s->is_listed = true;
  pthread_mutex_unlock(&device->staging_lock);
}

void clv__opencl_staging_settle(clv_device *device, clv__opencl_staging *s) {
  for (int i = 0; i < CLV__OPENCL_PINNED; ++i) {
    clv__opencl_pinned *p = &s->pieces[i];
    if (atomic_load_explicit(&p->is_landing, memory_order_acquire)) device->cl->clWaitForEvents(1, &p->gate);
  }
}

static void piece_finish(clv_device *device, clv__opencl_pinned *p) {
  const clv__opencl_icd *cl = device->cl;
  if (p->memory == NULL) return;
  let_go(cl, &p->gate);
  let_go(cl, &p->busy);
  if (p->host != NULL) {
    pthread_mutex_lock(&device->service_lock);
    if (cl->clEnqueueUnmapMemObject(device->service, p->memory, p->host, 0, NULL, NULL) == CL_SUCCESS) {
      cl->clFinish(device->service);
    }
    pthread_mutex_unlock(&device->service_lock);
  }
  cl->clReleaseMemObject(p->memory);
  p->memory = NULL;
  p->host = NULL;
}

void clv__opencl_staging_finish(clv_device *device, clv__opencl_staging *s) {
  if (!s->is_listed) return;
  pthread_mutex_lock(&device->staging_lock);
  *(s->previous != NULL ? &s->previous->next : &device->stagings) = s->next;
  if (s->next != NULL) s->next->previous = s->previous;
  let_go(device->cl, &s->last_out);
  pthread_mutex_unlock(&device->staging_lock);
  clv__opencl_staging_settle(device, s);
  for (int i = 0; i < CLV__OPENCL_PINNED; ++i) piece_finish(device, &s->pieces[i]);
}

static bool piece_make(clv_device *device, clv__opencl_pinned *p) {
  const clv__opencl_icd *cl = device->cl;
  cl_int code;
  p->cl = cl;
  p->memory =
      cl->clCreateBuffer(device->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, CLV__OPENCL_PINNED_BYTES, NULL, &code);
  if (p->memory == NULL) return false;
  pthread_mutex_lock(&device->service_lock);
  p->host = cl->clEnqueueMapBuffer(device->service, p->memory, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, CLV__OPENCL_PINNED_BYTES,
                                   0, NULL, NULL, &code);
  pthread_mutex_unlock(&device->service_lock);
  if (p->host == NULL) piece_finish(device, p);
  return p->host != NULL;
}

/* Returns the first unused piece from number `*next` on, and sets `*next` to the number after it. NULL if there is none. */
static clv__opencl_pinned *piece_take(clv_device *device, clv__opencl_staging *s, int *next) {
  while (*next < CLV__OPENCL_PINNED && !s->is_off) {
    clv__opencl_pinned *p = &s->pieces[(*next)++];
    if (atomic_load_explicit(&p->is_landing, memory_order_acquire)) continue;
    if (p->busy != NULL && !is_over(device->cl, p->busy)) continue;
    let_go(device->cl, &p->busy);
    let_go(device->cl, &p->gate);
    if (p->memory != NULL || piece_make(device, p)) return p;
    s->is_off = true;
  }
  return NULL;
}

static size_t piece_bytes(uint64_t left) {
  return left < CLV__OPENCL_PINNED_BYTES ? (size_t)left : CLV__OPENCL_PINNED_BYTES;
}

/* ---- Pending writes to host memory ---- */

/* Records that `size_bytes` at `to` will be written until `event` completes. Takes ownership of `event`. */
static void note_out(clv_device *device, clv__opencl_staging *s, cl_event event, const void *to, uint64_t size_bytes) {
  const uintptr_t from = (uintptr_t)to, end = from + (uintptr_t)size_bytes;
  pthread_mutex_lock(&device->staging_lock);
  const bool is_first = s->last_out == NULL || is_over(device->cl, s->last_out);
  if (is_first || from < s->out_from) s->out_from = from;
  if (is_first || end > s->out_to) s->out_to = end;
  let_go(device->cl, &s->last_out); /* the queue is in order, so the new event implies the old one */
  s->last_out = event;
  pthread_mutex_unlock(&device->staging_lock);
}

/* Whether a pending copy out of the device, on any stream, may still write to the `size_bytes` at `data`. */
static bool is_awaited(clv_device *device, const void *data, uint64_t size_bytes) {
  const uintptr_t from = (uintptr_t)data, end = from + (uintptr_t)size_bytes;
  bool awaited = false;
  pthread_mutex_lock(&device->staging_lock);
  for (const clv__opencl_staging *s = device->stagings; s != NULL && !awaited; s = s->next) {
    awaited = s->last_out != NULL && from < s->out_to && s->out_from < end && !is_over(device->cl, s->last_out);
  }
  pthread_mutex_unlock(&device->staging_lock);
  return awaited;
}

/* ---- Copies into the device ---- */

clv_status clv__opencl_stage_in(clv_device *device, clv__opencl_staging *s, cl_command_queue queue, cl_mem to, uint64_t to_offset,
                                const void *from, uint64_t size_bytes, clv_error *error) {
  const clv__opencl_icd *cl = device->cl;
  const uint8_t *bytes = from;
  uint64_t at = 0;
  int next = 0;
  if (s->is_listed && size_bytes >= CLV__OPENCL_STAGED_BYTES && !is_awaited(device, from, size_bytes)) {
    for (clv__opencl_pinned *p; at < size_bytes && (p = piece_take(device, s, &next)) != NULL;) {
      const size_t count = piece_bytes(size_bytes - at);
      memcpy(p->host, bytes + at, count);
      CLV__OPENCL_TRY(error, "clEnqueueWriteBuffer",
                      cl->clEnqueueWriteBuffer(queue, to, CL_FALSE, to_offset + at, count, p->host, 0, NULL, &p->busy));
      at += count;
    }
  }
  if (at == size_bytes) return CLV_OK;
  CLV__OPENCL_TRY(error, "clEnqueueWriteBuffer",
                  cl->clEnqueueWriteBuffer(queue, to, CL_FALSE, to_offset + at, size_bytes - at, bytes + at, 0, NULL, NULL));
  return CLV_OK;
}

/* ---- Copies out of the device ---- */

/* Called when the read into a piece is complete. After it sets `is_landing` to false, the piece may be reused, or its stream
 * destroyed. */
static void CL_CALLBACK landed(cl_event event, cl_int status, void *user_data) {
  clv__opencl_pinned *p = user_data;
  const clv__opencl_icd *cl = p->cl;
  cl_event gate = p->gate;
  (void)event;
  if (status == CL_COMPLETE) memcpy(p->to, p->host, p->size_bytes);
  atomic_store_explicit(&p->is_landing, false, memory_order_release);
  cl->clSetUserEventStatus(gate, status < 0 ? status : CL_COMPLETE);
  cl->clReleaseEvent(gate);
}

/* Arranges that landed() is called when the read into a piece is complete. Returns false if that fails: the bytes must then be
 * read in another way. */
static bool piece_lands(clv_device *device, clv__opencl_pinned *p, cl_event read, void *to, size_t size_bytes) {
  const clv__opencl_icd *cl = device->cl;
  cl_int code;
  p->to = to;
  p->size_bytes = size_bytes;
  p->gate = cl->clCreateUserEvent(device->context, &code);
  if (p->gate == NULL) return false;
  cl->clRetainEvent(p->gate); /* a second reference, which the callback releases */
  atomic_store_explicit(&p->is_landing, true, memory_order_release);
  if (cl->clSetEventCallback(read, CL_COMPLETE, landed, p) == CL_SUCCESS) return true;
  atomic_store_explicit(&p->is_landing, false, memory_order_relaxed);
  cl->clReleaseEvent(p->gate);
  let_go(cl, &p->gate);
  return false;
}

/* Enqueues reads of as many bytes as fit into the unused pieces, and adds their number to *at. The `gates` are complete when
 * the bytes are at their destination. */
static clv_status read_pieces(clv_device *device, clv__opencl_staging *s, cl_command_queue queue, uint8_t *to, cl_mem from,
                              uint64_t from_offset, uint64_t size_bytes, uint64_t *at, cl_event *gates, cl_uint *gate_count,
                              clv_error *error) {
  int next = 0;
  for (clv__opencl_pinned *p; *at < size_bytes && (p = piece_take(device, s, &next)) != NULL;) {
    const size_t count = piece_bytes(size_bytes - *at);
    cl_event read;
    CLV__OPENCL_TRY(error, "clEnqueueReadBuffer",
                    device->cl->clEnqueueReadBuffer(queue, from, CL_FALSE, from_offset + *at, count, p->host, 0, NULL, &read));
    if (!piece_lands(device, p, read, to + *at, count)) {
      p->busy = read;
      break;
    }
    device->cl->clReleaseEvent(read);
    gates[(*gate_count)++] = p->gate;
    *at += count;
  }
  return CLV_OK;
}

clv_status clv__opencl_stage_out(clv_device *device, clv__opencl_staging *s, cl_command_queue queue, void *to, cl_mem from,
                                 uint64_t from_offset, uint64_t size_bytes, clv_error *error) {
  const clv__opencl_icd *cl = device->cl;
  const bool is_noted = s->is_listed;
  cl_event gates[CLV__OPENCL_PINNED], done = NULL;
  cl_uint gate_count = 0;
  uint64_t at = 0;
  cl_int code = CL_SUCCESS;
  clv_status status = CLV_OK;
  if (is_noted && size_bytes >= CLV__OPENCL_STAGED_BYTES) {
    status = read_pieces(device, s, queue, to, from, from_offset, size_bytes, &at, gates, &gate_count, error);
  }
  if (status == CLV_OK && at < size_bytes) {
    code = cl->clEnqueueReadBuffer(queue, from, CL_FALSE, from_offset + at, size_bytes - at, (uint8_t *)to + at, 0, NULL,
                                   is_noted && gate_count == 0 ? &done : NULL);
    if (code != CL_SUCCESS) status = clv__opencl_failed(error, "clEnqueueReadBuffer", code);
  }
  if (status == CLV_OK && gate_count > 0) {
    code = cl->clEnqueueBarrierWithWaitList(queue, gate_count, gates, &done);
    if (code != CL_SUCCESS) status = clv__opencl_failed(error, "clEnqueueBarrierWithWaitList", code);
  }
  if (status != CLV_OK && gate_count > 0) { /* wait: once this call has failed, no callback may write to `to` */
    cl->clFlush(queue);
    cl->clWaitForEvents(gate_count, gates);
  }
  if (done != NULL) note_out(device, s, done, to, size_bytes);
  return status;
}
