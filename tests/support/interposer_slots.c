/* The interposer's table: each slot calls the hook, then the same slot of the wrapped backend. Streams, events and devices are
 * objects of the interposer; all other objects are those of the wrapped backend. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interposer_own.h"

enum { MOST_OPTIONS = 16 };

#define INNER(device) ((device)->owner->inner)
/* ASK calls the hook and stores its decision in `fate`. ASK_OR_FAIL also hangs or returns
 * the failure, if the hook has decided so. */
#define ASK(device, slot_, ...) \
  interposer_fate fate =        \
      interposer_ask((device)->owner, (interposer_call){.slot = INTERPOSER_##slot_, .device = (device)->index, ##__VA_ARGS__})
#define ASK_OR_FAIL(device, slot_, ...)                                       \
  ASK(device, slot_, ##__VA_ARGS__);                                          \
  if (fate.action == INTERPOSER_HANG) CLV__TRY(hang_here(device, error));     \
  if (fate.action == INTERPOSER_FAIL || fate.action == INTERPOSER_FAIL_LATER) \
  return interposer_fail(&fate, INTERPOSER_##slot_, error)

static clv_status hang_here(clv_device *device, clv_error *error) {
  pthread_mutex_lock(&device->lock);
  clv_status status = interposer_hang(device, error);
  pthread_mutex_unlock(&device->lock);
  return status;
}

/* ---- Devices ---- */

static clv_status open_device(void *user_data, const clv_host *host, const clv_device_config *config, clv_device **out,
                              clv_error *error) {
  interposer *self = user_data;
  *out = NULL;
  interposer_fate fate = interposer_ask(self, (interposer_call){.slot = INTERPOSER_open, .text = config->name});
  if (fate.action == INTERPOSER_FAIL || fate.action == INTERPOSER_FAIL_LATER)
    return interposer_fail(&fate, INTERPOSER_open, error);
  clv_device_config inner_config = *config;
  clv_option options[MOST_OPTIONS];
  if (self->options.spec != NULL) {
    if (config->option_count >= MOST_OPTIONS) {
      return clv__error_set(error, CLV_INVALID_ARGUMENT, "%u options are given, but at most %d can be passed on",
                            config->option_count, MOST_OPTIONS - 1);
    }
    for (uint32_t i = 0; i < config->option_count; ++i) options[i] = config->options[i];
    options[inner_config.option_count++] = (clv_option){"spec", self->options.spec};
    inner_config.options = options;
  }
  clv_device *device = calloc(1, sizeof *device);
  if (device == NULL) return clv__error_memory(error, sizeof *device);
  clv_status status = self->inner->open(self->inner->self, host, &inner_config, &device->inner, error);
  if (status != CLV_OK) {
    free(device);
    return status;
  }
  clv_device_info info = {.struct_size = sizeof info};
  self->inner->info(device->inner, &info);
  device->owner = self;
  device->is_synchronous =
      self->options.order == INTERPOSER_AS_IT_IS ? info.is_synchronous : self->options.order == INTERPOSER_SYNCHRONOUS;
  device->wait_for_calls = device->is_synchronous && !info.is_synchronous;
  device->last = &device->first;
  pthread_mutex_init(&device->lock, NULL);
  pthread_cond_init(&device->changed, NULL);
  pthread_mutex_lock(&self->lock);
  device->index = self->device_count;
  if (self->device_count < sizeof self->devices / sizeof *self->devices) self->devices[self->device_count++] = device;
  pthread_mutex_unlock(&self->lock);
  *out = device;
  return CLV_OK;
}

static void close_device(clv_device *device) {
  if (device == NULL) return;
  interposer *self = device->owner;
  ASK(device, close);
  (void)fate;
  pthread_mutex_lock(&device->lock);
  device->is_closing = true;
  if (self->options.finish_on_close) interposer_replay(device);
  (void)interposer_forget(device, NULL);
  pthread_cond_broadcast(&device->changed);
  while (device->waiters > 0) pthread_cond_wait(&device->changed, &device->lock);
  pthread_mutex_unlock(&device->lock);
  interposer_clear(device);
  self->inner->close(device->inner);
  pthread_mutex_lock(&self->lock);
  if (device->index < self->device_count && self->devices[device->index] == device) self->devices[device->index] = NULL;
  pthread_mutex_unlock(&self->lock);
  pthread_cond_destroy(&device->changed);
  pthread_mutex_destroy(&device->lock);
  free(device);
}

static void device_info(clv_device *device, clv_device_info *info) {
  ASK(device, info);
  (void)fate;
  clv_device_info filled = {.struct_size = sizeof filled};
  INNER(device)->info(device->inner, &filled);
  filled.is_synchronous = device->is_synchronous;
  if (device->owner->options.memory_space != NULL) filled.memory_space = device->owner->options.memory_space;
  uint32_t size = info->struct_size < sizeof filled ? info->struct_size : (uint32_t)sizeof filled;
  memcpy(info, &filled, size);
  info->struct_size = size;
}

static void supports(clv_device *device, const clv_graph_view *graph, uint32_t node, clv_verdict *verdict) {
  ASK(device, supports, .graph = graph);
  INNER(device)->supports(device->inner, graph, node, verdict);
  if (fate.action != INTERPOSER_FAIL) return;
  verdict->supported = false;
  snprintf(verdict->reason, sizeof verdict->reason, "%s", fate.message != NULL ? fate.message : "made to say no");
}

static bool prefers(clv_device *device, const clv_graph_view *graph, uint32_t node) {
  ASK(device, prefers, .graph = graph);
  (void)fate;
  return INNER(device)->prefers(device->inner, graph, node);
}

/* ---- Memory ---- */

static clv_status buffer_alloc(clv_device *device, uint64_t size_bytes, clv_buffer **buffer, clv_error *error) {
  *buffer = NULL;
  ASK_OR_FAIL(device, buffer_alloc, .size_bytes = size_bytes);
  CLV__TRY(INNER(device)->buffer_alloc(device->inner, size_bytes, buffer, error));
  interposer_made(device, OBJECT_BUFFER, *buffer);
  return CLV_OK;
}

static void buffer_free(clv_device *device, clv_buffer *buffer) {
  ASK(device, buffer_free, .object = buffer);
  (void)fate;
  interposer_gone(device, OBJECT_BUFFER, buffer);
  INNER(device)->buffer_free(device->inner, buffer);
}

static void buffer_discard(clv_device *device, clv_buffer *buffer) {
  ASK(device, buffer_discard, .object = buffer);
  (void)fate;
  INNER(device)->buffer_discard(device->inner, buffer);
}

/* Returns NULL if the interposer replaces the memory space, because the device's buffers then do not count as host memory. */
static void *buffer_host_pointer(clv_device *device, clv_buffer *buffer) {
  ASK(device, buffer_host_pointer, .object = buffer);
  (void)fate;
  return device->owner->options.memory_space != NULL ? NULL : INNER(device)->buffer_host_pointer(device->inner, buffer);
}

/* ---- Streams ---- */

static clv_status stream_create(clv_device *device, clv_stream **out, clv_error *error) {
  *out = NULL;
  ASK_OR_FAIL(device, stream_create);
  clv_stream *stream = calloc(1, sizeof *stream);
  if (stream == NULL) return clv__error_memory(error, sizeof *stream);
  clv_status status = INNER(device)->stream_create(device->inner, &stream->inner, error);
  if (status != CLV_OK) {
    free(stream);
    return status;
  }
  interposer_made(device, OBJECT_STREAM, stream);
  *out = stream;
  return CLV_OK;
}

static void stream_destroy(clv_device *device, clv_stream *stream) {
  ASK(device, stream_destroy, .object = stream, .stream = stream);
  (void)fate;
  if (stream == NULL) return;
  interposer_gone(device, OBJECT_STREAM, stream);
  INNER(device)->stream_destroy(device->inner, stream->inner);
  free(stream);
}

/* Decides about a call that enqueues `work`. Returns true if the call must not be passed on to the wrapped backend: the work
 * was deferred because the stream hangs, or is skipped, by the hook or because the stream has failed. */
static bool put_off(clv_device *device, const interposer_fate *fate, interposer_slot slot, const deferred *work) {
  clv_stream *stream = work->stream;
  bool is_off = true;
  pthread_mutex_lock(&device->lock);
  if (fate->action == INTERPOSER_HANG || (work->kind == DEFERRED_WAIT && work->event->is_hung)) stream->is_hung = true;
  if (stream->is_hung) {
    if (work->kind == DEFERRED_RECORD) work->event->is_hung = true;
    interposer_defer(device, work);
  } else if (stream->failed == CLV_OK && fate->action == INTERPOSER_FAIL_LATER) {
    clv_error why = {0};
    stream->failed = interposer_fail(fate, slot, &why);
    snprintf(stream->message, sizeof stream->message, "%.150s", why.message);
  } else if (work->kind == DEFERRED_WAIT && work->event->failed != CLV_OK && stream->failed == CLV_OK) {
    stream->failed = work->event->failed;
    memcpy(stream->message, work->event->message, sizeof stream->message);
  } else {
    is_off = stream->failed != CLV_OK || fate->action == INTERPOSER_SKIP;
  }
  if (work->kind == DEFERRED_RECORD && !stream->is_hung) {
    work->event->is_hung = false;
    work->event->failed = stream->failed;
    memcpy(work->event->message, stream->message, sizeof stream->message);
  }
  pthread_mutex_unlock(&device->lock);
  return is_off;
}

/* Applies a fate of hanging or failing. A synchronous device hangs or fails in the call itself. */
static clv_status apply_fate(clv_device *device, interposer_fate *fate, interposer_slot slot, clv_error *error) {
  if (fate->action == INTERPOSER_HANG && device->is_synchronous) {
    CLV__TRY(hang_here(device, error));
    fate->action = INTERPOSER_PASS;
  }
  if (fate->action == INTERPOSER_FAIL_LATER && device->is_synchronous) fate->action = INTERPOSER_FAIL;
  return fate->action == INTERPOSER_FAIL ? interposer_fail(fate, slot, error) : CLV_OK;
}

/* If an asynchronous device is presented as synchronous, waits for the work that the call enqueued. */
static clv_status finish_call(clv_device *device, clv_stream *stream, clv_error *error) {
  return device->wait_for_calls ? INNER(device)->stream_synchronize(device->inner, stream->inner, error) : CLV_OK;
}

/* Waits for the wrapped stream even if this function then reports a failure, because after a failure the caller assumes that
 * nothing runs any more. */
static clv_status stream_synchronize(clv_device *device, clv_stream *stream, clv_error *error) {
  ASK(device, stream_synchronize, .object = stream, .stream = stream);
  clv_status status = CLV_OK, failed;
  pthread_mutex_lock(&device->lock);
  if (fate.action == INTERPOSER_HANG) status = interposer_hang(device, error);
  while (status == CLV_OK && stream->is_hung) status = interposer_hang(device, error);
  pthread_mutex_unlock(&device->lock);
  CLV__TRY(status);
  status = INNER(device)->stream_synchronize(device->inner, stream->inner, error);
  pthread_mutex_lock(&device->lock);
  failed = stream->failed;
  stream->failed = CLV_OK;
  pthread_mutex_unlock(&device->lock);
  if (fate.action == INTERPOSER_FAIL || fate.action == INTERPOSER_FAIL_LATER)
    return interposer_fail(&fate, INTERPOSER_stream_synchronize, error);
  if (status == CLV_OK && failed != CLV_OK) status = clv__error_set(error, failed, "%s", stream->message);
  return status;
}

/* ---- Events ---- */

static clv_status event_create(clv_device *device, clv_event **out, clv_error *error) {
  *out = NULL;
  ASK_OR_FAIL(device, event_create);
  clv_event *event = calloc(1, sizeof *event);
  if (event == NULL) return clv__error_memory(error, sizeof *event);
  clv_status status = INNER(device)->event_create(device->inner, &event->inner, error);
  if (status != CLV_OK) {
    free(event);
    return status;
  }
  interposer_made(device, OBJECT_EVENT, event);
  *out = event;
  return CLV_OK;
}

static void event_destroy(clv_device *device, clv_event *event) {
  ASK(device, event_destroy, .object = event);
  (void)fate;
  if (event == NULL) return;
  interposer_gone(device, OBJECT_EVENT, event);
  INNER(device)->event_destroy(device->inner, event->inner);
  free(event);
}

static clv_status event_record(clv_device *device, clv_event *event, clv_stream *stream, clv_error *error) {
  ASK(device, event_record, .object = event, .stream = stream);
  CLV__TRY(apply_fate(device, &fate, INTERPOSER_event_record, error));
  deferred work = {.kind = DEFERRED_RECORD, .stream = stream, .event = event};
  if (put_off(device, &fate, INTERPOSER_event_record, &work)) return CLV_OK;
  return INNER(device)->event_record(device->inner, event->inner, stream->inner, error);
}

static clv_status event_wait(clv_device *device, clv_stream *stream, clv_event *event, clv_error *error) {
  ASK(device, event_wait, .object = event, .stream = stream);
  CLV__TRY(apply_fate(device, &fate, INTERPOSER_event_wait, error));
  deferred work = {.kind = DEFERRED_WAIT, .stream = stream, .event = event};
  if (put_off(device, &fate, INTERPOSER_event_wait, &work)) return CLV_OK;
  return INNER(device)->event_wait(device->inner, stream->inner, event->inner, error);
}

/* Counts the threads inside event_synchronize(). A thread may still wait for a device that is being closed after a hang:
 * close_device() waits until it has left. */
static void count_waiter(clv_device *device, int change) {
  pthread_mutex_lock(&device->lock);
  device->waiters += (uint32_t)change;
  pthread_cond_broadcast(&device->changed);
  pthread_mutex_unlock(&device->lock);
}

static clv_status wait_for_event(clv_device *device, clv_event *event, clv_error *error) {
  ASK(device, event_synchronize, .object = event);
  clv_status status = CLV_OK, failed;
  pthread_mutex_lock(&device->lock);
  if (fate.action == INTERPOSER_HANG) status = interposer_hang(device, error);
  while (status == CLV_OK && event->is_hung) status = interposer_hang(device, error);
  failed = event->failed;
  pthread_mutex_unlock(&device->lock);
  CLV__TRY(status);
  if (failed == CLV_OK) status = INNER(device)->event_synchronize(device->inner, event->inner, error);
  if (fate.action == INTERPOSER_FAIL || fate.action == INTERPOSER_FAIL_LATER)
    return interposer_fail(&fate, INTERPOSER_event_synchronize, error);
  return failed == CLV_OK ? status : clv__error_set(error, failed, "%s", event->message);
}

static clv_status event_synchronize(clv_device *device, clv_event *event, clv_error *error) {
  count_waiter(device, 1);
  clv_status status = wait_for_event(device, event, error);
  count_waiter(device, -1);
  return status;
}

static clv_status stream_stop(clv_device *device, clv_stream *stream, clv_error *error) {
  ASK_OR_FAIL(device, stream_stop, .object = stream);
  return INNER(device)->stream_stop(device->inner, stream->inner, error);
}

static clv_status event_notify(clv_device *device, clv_event *event, clv_notify_fn notify, void *cookie, clv_error *error) {
  ASK_OR_FAIL(device, event_notify, .object = event);
  pthread_mutex_lock(&device->lock);
  bool is_hung = event->is_hung, has_failed = event->failed != CLV_OK;
  if (is_hung) {
    interposer_defer(device, &(deferred){.kind = DEFERRED_NOTIFY, .event = event, .notify = notify, .cookie = cookie});
  }
  pthread_mutex_unlock(&device->lock);
  if (is_hung) return CLV_OK;
  if (!has_failed) return INNER(device)->event_notify(device->inner, event->inner, notify, cookie, error);
  notify(cookie);
  return CLV_OK;
}

/* ---- Copies ---- */

static clv_status copy_in(clv_device *device, clv_stream *stream, clv_buffer *to, uint64_t offset, const void *from,
                          uint64_t size_bytes, clv_error *error) {
  ASK(device, copy_in, .object = to, .stream = stream, .size_bytes = size_bytes);
  CLV__TRY(apply_fate(device, &fate, INTERPOSER_copy_in, error));
  deferred work = {
      .kind = DEFERRED_COPY_IN, .stream = stream, .buffer = to, .offset = offset, .size_bytes = size_bytes, .host = (void *)from};
  if (put_off(device, &fate, INTERPOSER_copy_in, &work)) return CLV_OK;
  CLV__TRY(INNER(device)->copy_in(device->inner, stream->inner, to, offset, from, size_bytes, error));
  return finish_call(device, stream, error);
}

static clv_status copy_out(clv_device *device, clv_stream *stream, void *to, clv_buffer *from, uint64_t offset,
                           uint64_t size_bytes, clv_error *error) {
  ASK(device, copy_out, .object = from, .stream = stream, .size_bytes = size_bytes);
  CLV__TRY(apply_fate(device, &fate, INTERPOSER_copy_out, error));
  deferred work = {
      .kind = DEFERRED_COPY_OUT, .stream = stream, .buffer = from, .offset = offset, .size_bytes = size_bytes, .host = to};
  if (put_off(device, &fate, INTERPOSER_copy_out, &work)) return CLV_OK;
  CLV__TRY(INNER(device)->copy_out(device->inner, stream->inner, to, from, offset, size_bytes, error));
  return finish_call(device, stream, error);
}

/* ---- Weights and executables ---- */

static clv_status weight_upload(clv_device *device, const char *id, const clv_tensor *data, clv_weight **weight,
                                clv_error *error) {
  *weight = NULL;
  ASK_OR_FAIL(device, weight_upload, .text = id);
  CLV__TRY(INNER(device)->weight_upload(device->inner, id, data, weight, error));
  interposer_made(device, OBJECT_WEIGHT, *weight);
  return CLV_OK;
}

static void weight_release(clv_device *device, clv_weight *weight) {
  ASK(device, weight_release, .object = weight);
  (void)fate;
  interposer_gone(device, OBJECT_WEIGHT, weight);
  INNER(device)->weight_release(device->inner, weight);
}

static clv_status compile(clv_device *device, const clv_graph_view *graph, const clv_compile_options *options,
                          clv_executable **executable, clv_error *error) {
  *executable = NULL;
  ASK_OR_FAIL(device, compile, .graph = graph);
  CLV__TRY(INNER(device)->compile(device->inner, graph, options, executable, error));
  interposer_made(device, OBJECT_EXECUTABLE, *executable);
  return CLV_OK;
}

static void executable_destroy(clv_device *device, clv_executable *executable) {
  ASK(device, executable_destroy, .object = executable);
  (void)fate;
  interposer_gone(device, OBJECT_EXECUTABLE, executable);
  INNER(device)->executable_destroy(device->inner, executable);
}

static void executable_info(clv_device *device, clv_executable *executable, clv_executable_info *info) {
  ASK(device, executable_info, .object = executable);
  (void)fate;
  INNER(device)->executable_info(device->inner, executable, info);
}

static clv_status executable_save(clv_device *device, clv_executable *executable, clv_write_fn write, void *cookie,
                                  clv_error *error) {
  ASK_OR_FAIL(device, executable_save, .object = executable);
  return INNER(device)->save->save(device->inner, executable, write, cookie, error);
}

static clv_status executable_load(clv_device *device, const void *data, size_t size_bytes, clv_executable **executable,
                                  clv_error *error) {
  *executable = NULL;
  ASK_OR_FAIL(device, executable_load, .size_bytes = size_bytes);
  CLV__TRY(INNER(device)->save->load(device->inner, data, size_bytes, executable, error));
  interposer_made(device, OBJECT_EXECUTABLE, *executable);
  return CLV_OK;
}

static const clv_graph_view *executable_graph(clv_device *device, const clv_executable *executable, size_t *inline_limit_bytes) {
  const clv_save_slots *save = INNER(device)->save;
  return save->graph != NULL ? save->graph(device->inner, executable, inline_limit_bytes) : NULL;
}

/* ---- Instances ---- */

static clv_status instance_create(clv_device *device, clv_executable *executable, const clv_tensor *inputs, uint32_t input_count,
                                  clv_weight *const *weights, uint32_t weight_count, clv_instance **instance, clv_error *error) {
  *instance = NULL;
  ASK_OR_FAIL(device, instance_create, .object = executable);
  CLV__TRY(
      INNER(device)->instance_create(device->inner, executable, inputs, input_count, weights, weight_count, instance, error));
  interposer_made(device, OBJECT_INSTANCE, *instance);
  return CLV_OK;
}

static void instance_destroy(clv_device *device, clv_instance *instance) {
  ASK(device, instance_destroy, .object = instance);
  (void)fate;
  interposer_gone(device, OBJECT_INSTANCE, instance);
  INNER(device)->instance_destroy(device->inner, instance);
}

static clv_status instance_resize(clv_device *device, clv_instance *instance, const clv_tensor *inputs, uint32_t input_count,
                                  clv_error *error) {
  ASK_OR_FAIL(device, instance_resize, .object = instance);
  return INNER(device)->instance_resize(device->inner, instance, inputs, input_count, error);
}

static clv_status instance_time_steps(clv_device *device, clv_instance *instance, bool on, clv_error *error) {
  ASK_OR_FAIL(device, instance_time_steps, .object = instance);
  return INNER(device)->timing->enable(device->inner, instance, on, error);
}

static clv_status instance_steps(clv_device *device, clv_instance *instance, clv_step_fn found, void *cookie, clv_error *error) {
  ASK_OR_FAIL(device, instance_steps, .object = instance);
  return INNER(device)->timing->steps(device->inner, instance, found, cookie, error);
}

static uint64_t instance_scratch_bytes(clv_device *device, clv_instance *instance) {
  ASK(device, instance_scratch_bytes, .object = instance);
  (void)fate;
  return INNER(device)->scratch->size_bytes(device->inner, instance);
}

static clv_status instance_bind_scratch(clv_device *device, clv_instance *instance, clv_buffer *buffer, uint64_t offset,
                                        clv_error *error) {
  ASK_OR_FAIL(device, instance_bind_scratch, .object = instance);
  return INNER(device)->scratch->bind(device->inner, instance, buffer, offset, error);
}

/* Overwrites the beginning of each output, after it is computed, with a value that no test computes: 12.08 in f32. */
static clv_status spoil(clv_device *device, clv_stream *stream, const clv_execute_args *args, clv_error *error) {
  static const uint8_t nonsense[64] = {[0 ... 63] = 0x41};
  for (uint32_t i = 0; i < args->output_count; ++i) {
    const clv_binding *output = &args->outputs[i];
    size_t size_bytes;
    if (output->type.rank == CLV_RANK_UNKNOWN || output->type.dtype == CLV_STRING) continue;
    if (!clv__tensor_size_bytes(&output->type, &size_bytes) || size_bytes == 0) continue;
    if (size_bytes > sizeof nonsense) size_bytes = sizeof nonsense;
    if (output->buffer == NULL)
      memcpy((char *)output->type.data + output->offset_bytes, nonsense, size_bytes);
    else
      CLV__TRY(INNER(device)->copy_in(device->inner, stream->inner, output->buffer, output->offset_bytes, nonsense, size_bytes,
                                      error));
  }
  return CLV_OK;
}

static clv_status execute(clv_device *device, clv_instance *instance, clv_stream *stream, clv_execute_args *args,
                          clv_error *error) {
  ASK(device, execute, .object = instance, .stream = stream, .args = args);
  CLV__TRY(apply_fate(device, &fate, INTERPOSER_execute, error));
  deferred work = {.kind = DEFERRED_EXECUTE, .stream = stream, .instance = instance, .args = *args};
  if (put_off(device, &fate, INTERPOSER_execute, &work)) return CLV_OK;
  CLV__TRY(INNER(device)->execute(device->inner, instance, stream->inner, args, error));
  if (fate.action == INTERPOSER_CORRUPT) CLV__TRY(spoil(device, stream, args, error));
  return finish_call(device, stream, error);
}

/* ---- Speed and claims ---- */

static double node_seconds(clv_device *device, const clv_graph_view *graph, uint32_t node) {
  ASK(device, node_seconds, .graph = graph);
  (void)fate;
  return INNER(device)->node_seconds(device->inner, graph, node);
}

static double copy_seconds(clv_device *device, uint64_t size_bytes) {
  ASK(device, copy_seconds, .size_bytes = size_bytes);
  (void)fate;
  return INNER(device)->copy_seconds(device->inner, size_bytes);
}

static double launch_seconds(clv_device *device) {
  ASK(device, launch_seconds);
  (void)fate;
  return INNER(device)->launch_seconds(device->inner);
}

/* Claims the free nodes, each run of consecutive nodes as one group. */
static clv_status claim_runs(const clv_device *device, const clv_graph_view *graph, const bool *is_free, clv_claim_fn add,
                             void *cookie) {
  uint32_t count = device->owner->host->graph_node_count(graph), size = 0;
  uint32_t *nodes = malloc((count + 1) * sizeof *nodes);
  clv_status status = nodes == NULL ? CLV_OUT_OF_MEMORY : CLV_OK;
  for (uint32_t n = 0; n <= count && status == CLV_OK; ++n) {
    if (n < count && is_free[n]) {
      nodes[size++] = n;
    } else if (size > 0) {
      status = add(cookie, nodes, size);
      size = 0;
    }
  }
  free(nodes);
  return status;
}

static clv_status claim(clv_device *device, const clv_graph_view *graph, const bool *is_free, clv_claim_fn add, void *cookie,
                        clv_error *error) {
  ASK_OR_FAIL(device, claim, .graph = graph);
  if (INNER(device)->claim == NULL) return claim_runs(device, graph, is_free, add, cookie);
  return INNER(device)->claim(device->inner, graph, is_free, add, cookie, error);
}

/* ---- Capture ---- */

static clv_status capture_begin(clv_device *device, clv_stream *stream, clv_capture_mode mode, clv_error *error) {
  ASK_OR_FAIL(device, capture_begin, .stream = stream);
  pthread_mutex_lock(&device->lock);
  bool is_free = !stream->is_hung && stream->failed == CLV_OK;
  pthread_mutex_unlock(&device->lock);
  if (!is_free) return clv__error_set(error, CLV_DEVICE_ERROR, "the stream hangs or has failed");
  return INNER(device)->capture->begin(device->inner, stream->inner, mode, error);
}

static clv_status capture_end(clv_device *device, clv_stream *stream, clv_captured **captured, clv_error *error) {
  ASK(device, capture_end, .stream = stream);
  if (captured != NULL) *captured = NULL;
  if (fate.action == INTERPOSER_FAIL || fate.action == INTERPOSER_FAIL_LATER) {
    (void)INNER(device)->capture->end(device->inner, stream->inner, NULL, NULL); /* discards the recording anyway */
    return interposer_fail(&fate, INTERPOSER_capture_end, error);
  }
  if (fate.action == INTERPOSER_HANG) CLV__TRY(hang_here(device, error));
  CLV__TRY(INNER(device)->capture->end(device->inner, stream->inner, captured, error));
  if (captured != NULL && *captured != NULL) interposer_made(device, OBJECT_CAPTURED, *captured);
  return CLV_OK;
}

static clv_status captured_launch(clv_device *device, clv_captured *captured, clv_stream *stream, clv_error *error) {
  ASK(device, captured_launch, .object = captured, .stream = stream);
  CLV__TRY(apply_fate(device, &fate, INTERPOSER_captured_launch, error));
  deferred work = {.kind = DEFERRED_LAUNCH, .stream = stream, .captured = captured};
  if (put_off(device, &fate, INTERPOSER_captured_launch, &work)) return CLV_OK;
  CLV__TRY(INNER(device)->capture->launch(device->inner, captured, stream->inner, error));
  return finish_call(device, stream, error);
}

static clv_status captured_bind(clv_device *device, clv_captured *captured, uint32_t index, const clv_execute_args *args,
                                clv_error *error) {
  ASK_OR_FAIL(device, captured_bind, .object = captured, .args = args);
  return INNER(device)->capture->bind(device->inner, captured, index, args, error);
}

static void captured_destroy(clv_device *device, clv_captured *captured) {
  ASK(device, captured_destroy, .object = captured);
  (void)fate;
  interposer_gone(device, OBJECT_CAPTURED, captured);
  INNER(device)->capture->destroy(device->inner, captured);
}

static uint64_t captured_bytes(clv_device *device, const clv_captured *captured) {
  ASK(device, captured_bytes, .object = captured);
  (void)fate;
  return INNER(device)->capture->size_bytes(device->inner, captured);
}

/* ---- Optional slots ---- */

static clv_status finish(clv_device *device, clv_executable *const *executables, uint32_t count, clv_error *error) {
  ASK_OR_FAIL(device, finish, .size_bytes = count);
  if (INNER(device)->finish == NULL) return CLV_OK;
  return INNER(device)->finish(device->inner, executables, count, error);
}

static clv_status list_devices(void *self, const clv_host *host, const clv_option *options, uint32_t option_count,
                               clv_found_fn found, void *cookie, clv_error *error) {
  const clv_backend *inner = ((interposer *)self)->inner;
  return inner->list(inner->self, host, options, option_count, found, cookie, error);
}

/* ---- The table ---- */

static const clv_save_slots save_slots = {
    .struct_size = sizeof save_slots, .save = executable_save, .load = executable_load, .graph = executable_graph};
static const clv_scratch_slots scratch_slots = {
    .struct_size = sizeof scratch_slots, .size_bytes = instance_scratch_bytes, .bind = instance_bind_scratch};
static const clv_capture_slots capture_slots = {.struct_size = sizeof capture_slots,
                                                .begin = capture_begin,
                                                .end = capture_end,
                                                .launch = captured_launch,
                                                .bind = captured_bind,
                                                .destroy = captured_destroy,
                                                .size_bytes = captured_bytes};
static const clv_timing_slots timing_slots = {
    .struct_size = sizeof timing_slots, .enable = instance_time_steps, .steps = instance_steps};

void interposer_fill(interposer *self) {
  const clv_backend *inner = self->inner;
  size_t has = inner->struct_size < sizeof *inner ? inner->struct_size : sizeof *inner;
  clv_backend behind = {0};
  memcpy(&behind, inner, has);
  self->table = (clv_backend){
      .abi_version = inner->abi_version,
      .struct_size = sizeof self->table,
      .name = self->options.name,
      .version = inner->version,
      .self = self,
      .open = open_device,
      .close = close_device,
      .info = device_info,
  };
  /* Offer each slot that the backend has, unless the options leave it out. */
#define PUT(slot) \
  if (behind.slot != NULL && (self->options.without & INTERPOSER_BIT(slot)) == 0) self->table.slot = slot
  PUT(supports);
  PUT(prefers);
  PUT(buffer_alloc);
  PUT(buffer_free);
  PUT(buffer_host_pointer);
  PUT(stream_create);
  PUT(stream_destroy);
  PUT(stream_synchronize);
  PUT(event_create);
  PUT(event_destroy);
  PUT(event_record);
  PUT(event_wait);
  PUT(event_synchronize);
  PUT(copy_in);
  PUT(copy_out);
  PUT(weight_upload);
  PUT(weight_release);
  PUT(compile);
  PUT(executable_destroy);
  PUT(executable_info);
  PUT(instance_create);
  PUT(instance_destroy);
  PUT(instance_resize);
  PUT(execute);
  PUT(node_seconds);
  PUT(copy_seconds);
  PUT(launch_seconds);
  PUT(claim);
  PUT(event_notify);
  PUT(stream_stop);
  PUT(finish);
  PUT(buffer_discard);
#undef PUT
  if ((self->options.with & INTERPOSER_BIT(claim)) != 0) self->table.claim = claim;
  if ((self->options.with & INTERPOSER_BIT(finish)) != 0) self->table.finish = finish;
    /* Offer each group of slots that the backend has, unless the options leave out one of its slots. */
#define PUT_GROUP(group, bits) \
  if (behind.group != NULL && (self->options.without & (bits)) == 0) self->table.group = &group##_slots
  PUT_GROUP(save, INTERPOSER_BLOBS);
  PUT_GROUP(scratch, INTERPOSER_SCRATCH);
  PUT_GROUP(timing, INTERPOSER_TIMING);
#undef PUT_GROUP
  const uint64_t capture = INTERPOSER_CAPTURE & ~INTERPOSER_BIT(captured_bind);
  if (behind.capture != NULL && (self->options.without & capture) == 0) {
    self->capture = capture_slots;
    if (behind.capture->bind == NULL || (self->options.without & INTERPOSER_BIT(captured_bind)) != 0) self->capture.bind = NULL;
    self->table.capture = &self->capture;
  }
  self->table.options = behind.options;
  self->table.option_count = behind.option_count;
  if (behind.list != NULL) self->table.list = list_devices;
}
