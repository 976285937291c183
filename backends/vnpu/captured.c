/* Records, launches and rebinds captures: see captured.h. */
#include "captured.h"

#include "backends/vnpu/spec/speed.h"
#include "base/error.h"

/* Executes all recorded lists. Called on the compute engine. */
static clv_status run(clv__vnpu_launch *launch, double *seconds, clv_error *error) {
  const clv_captured *captured = (const clv_captured *)((const char *)launch - offsetof(clv_captured, launch));
  *seconds = captured->seconds;
  for (size_t i = 0; i < captured->count; ++i) CLV__TRY(clv__vnpu_run_list(&captured->lists[i], launch->stop, error));
  return CLV_OK;
}

/* ---- Recording ---- */

clv_status clv__vnpu_capture_begin(clv_device *device, clv_stream *stream, clv_capture_mode mode, clv_error *error) {
  (void)mode; /* no mode is needed: the capture belongs to the stream and affects no other thread */
  if (clv__vnpu_stream_capture(stream) != NULL)
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "the stream is already capturing");
  clv_captured *captured = clv__allocate_zero(device->allocator, sizeof *captured);
  if (captured == NULL) return clv__error_memory(error, sizeof *captured);
  captured->device = device;
  captured->launch.run = run;
  captured->size_bytes = sizeof *captured;
  clv__arena_init(&captured->arena, device->allocator);
  clv__vnpu_live_add(device, &device->captured, &captured->live);
  clv__vnpu_stream_set_capture(&device->queue, stream, captured);
  return CLV_OK;
}

static clv_status add_execution(clv_captured *captured, clv_instance *instance, const clv_execute_args *args, clv_error *error) {
  const clv_executable *p = instance->program;
  if (!p->is_static) {
    return clv__error_set(error, CLV_NOT_SUPPORTED,
                          "a program whose shapes depend on data cannot be captured: run it without capture");
  }
  void *lists = captured->lists;
  if (!clv__array_reserve(captured->device->allocator, &lists, &captured->capacity, captured->count + 1, sizeof *captured->lists,
                          captured->count)) {
    return clv__error_memory(error, captured->count * sizeof *captured->lists);
  }
  captured->lists = lists;
  clv__vnpu_list *list = &captured->lists[captured->count];
  CLV__TRY(clv__vnpu_instance_need_scratch(instance, error));
  CLV__TRY(clv__vnpu_instance_list_init(instance, &captured->arena, list, error));
  CLV__TRY(clv__vnpu_list_bind(list, args, error));
  CLV__TRY(clv__vnpu_list_write(list, instance->scratch, error));
  captured->size_bytes += sizeof *list + p->operand_count * sizeof *list->addresses +
                          ((uint64_t)p->input_count + p->output_count) * sizeof *list->bindings;
  captured->seconds += p->seconds;
  if (captured->count++ > 0) captured->seconds -= clv__vnpu_launch_seconds(&captured->device->spec.speed);
  return CLV_OK;
}

clv_status clv__vnpu_capture_record(clv_captured *captured, clv_instance *instance, const clv_execute_args *args,
                                    clv_error *error) {
  clv_error failure = {0};
  clv_status status = add_execution(captured, instance, args, &failure);
  if (status == CLV_OK) return status;
  failure.status = status;
  if (error != NULL) *error = failure;
  if (captured->failure.status == CLV_OK) captured->failure = failure;
  return status;
}

clv_status clv__vnpu_capture_end(clv_device *device, clv_stream *stream, clv_captured **out, clv_error *error) {
  clv_captured *captured = clv__vnpu_stream_capture(stream);
  if (out != NULL) *out = NULL;
  if (captured == NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "the stream is not capturing");
  clv__vnpu_stream_set_capture(&device->queue, stream, NULL);
  clv_status status = CLV_OK;
  if (out != NULL && captured->failure.status != CLV_OK) { /* an incomplete recording must not be returned */
    status = captured->failure.status;
    if (error != NULL) *error = captured->failure;
  }
  if (out != NULL && status == CLV_OK)
    *out = captured;
  else
    clv__vnpu_captured_destroy(captured);
  return status;
}

/* ---- Launching ---- */

clv_status clv__vnpu_captured_launch(clv_captured *captured, clv_stream *stream, clv_error *error) {
  for (size_t i = 0; i < captured->count; ++i) { /* rewrite a list if the address of its instance's scratch has changed */
    clv__vnpu_list *list = &captured->lists[i];
    const uint64_t scratch = list->instance->scratch;
    if (list->scratch != scratch) CLV__TRY(clv__vnpu_list_write(list, scratch, error));
  }
  return clv__vnpu_stream_launch(&captured->device->queue, stream, &captured->launch, error);
}

clv_status clv__vnpu_captured_bind(clv_captured *captured, uint32_t index, const clv_execute_args *args, clv_error *error) {
  if (index >= captured->count) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "execution %u does not exist: %zu executions were captured", index,
                          captured->count);
  }
  clv__vnpu_queue *queue = &captured->device->queue;
  pthread_mutex_lock(&queue->lock);
  bool runs = captured->launch.in_flight > 0;
  pthread_mutex_unlock(&queue->lock);
  if (runs) return clv__error_set(error, CLV_INVALID_ARGUMENT, "the bindings of a capture cannot change while it runs");
  return clv__vnpu_list_patch(&captured->lists[index], args, error);
}

void clv__vnpu_captured_destroy(clv_captured *captured) {
  if (captured == NULL) return;
  clv_device *device = captured->device;
  clv__vnpu_queue *queue = &device->queue;
  pthread_mutex_lock(&queue->lock);
  while (captured->launch.in_flight > 0 && clv__vnpu_queue_wait(queue, NULL, 0)) continue;
  pthread_mutex_unlock(&queue->lock);
  clv__vnpu_live_remove(device, &captured->live);
  clv__arena_finish(&captured->arena);
  clv__release(device->allocator, captured->lists);
  clv__release(device->allocator, captured);
}

uint64_t clv__vnpu_captured_bytes(const clv_captured *captured) {
  return captured->size_bytes;
}
