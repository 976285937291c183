/* Capture: each recorded execution becomes a separate launch list, bound to the recorded arguments. The calls of all lists
 * form one block, which a launch walks from start to end.
 *
 * If an instance gets other memory (instance_bind_scratch), the next launch updates its lists. A launch is rejected if an
 * instance was resized after the capture. Partitions that run node by node are recorded as ordinary calls, which is correct but
 * no faster. */
#include "list.h"
#include "stream.h"

typedef struct execution {
  clv_instance *instance;
  uint64_t prepared, placed; /* clv_instance.prepared when the list was created; clv__cpu_run.placed when it got its memory */
  clv__cpu_list *list;       /* NULL: the execution runs node by node, with the following bindings */
  uint32_t input_count, output_count;
  clv_binding *bindings; /* the recorded bindings: inputs, then outputs */
} execution;

struct clv_captured {
  const clv_allocator *allocator;
  execution *executions;
  size_t count, capacity;
  bool failed;    /* some execution could not be recorded */
  uint8_t *block; /* all calls, if every execution has a list; NULL otherwise */
  size_t size_bytes;
  bool is_plain;    /* a launch only runs the calls of `block` */
  uint64_t changes; /* the device's `changes` when all executions were last checked against their instances */
};

static void clear(const clv_captured *captured, execution *recorded) {
  clv__cpu_list_destroy(recorded->list);
  clv__release(captured->allocator, recorded->bindings);
}

void clv__cpu_captured_destroy(clv_device *device, clv_captured *captured) {
  (void)device;
  if (captured == NULL) return;
  for (size_t i = 0; i < captured->count; ++i) clear(captured, &captured->executions[i]);
  clv__release(captured->allocator, captured->executions);
  clv__release(captured->allocator, captured->block);
  clv__release(captured->allocator, captured);
}

/* ---- Recording. ---- */

clv_status clv__cpu_capture_begin(clv_device *device, clv_stream *stream, clv_capture_mode mode, clv_error *error) {
  (void)mode; /* the mode does not matter: a stream records into its own list, so other threads are not affected */
  if (stream->recording != NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "the stream is already capturing");
  stream->recording = clv__allocate_zero(device->allocator, sizeof *stream->recording);
  if (stream->recording == NULL) return clv__error_memory(error, sizeof *stream->recording);
  stream->recording->allocator = device->allocator;
  return CLV_OK;
}

static clv_status check_outputs(const clv_execute_args *args, clv_error *error) {
  for (uint32_t i = 0; i < args->output_count; ++i) {
    if (args->outputs[i].type.rank != CLV_RANK_UNKNOWN) continue;
    return clv__error_set(error, CLV_NOT_SUPPORTED, "the size of output %u depends on data, so the execution cannot be captured",
                          i);
  }
  return CLV_OK;
}

static clv_status record_list(execution *recorded, const clv_execute_args *args, clv_error *error) {
  clv__cpu_run *run = recorded->instance->run;
  clv_execute_args given = *args;
  CLV__TRY(clv__cpu_run_ready(run, error));
  CLV__TRY(clv__cpu_list_create(run->variant, run->list, &recorded->list, error));
  recorded->list->step_ns = run->list->step_ns;
  recorded->placed = run->placed;
  CLV__TRY(clv__cpu_list_place(recorded->list, run->memory, error));
  return clv__cpu_list_bind(recorded->list, &given, error);
}

static clv_status record_bindings(const clv_captured *captured, execution *recorded, const clv_execute_args *args,
                                  clv_error *error) {
  const clv__cpu_program *program = &recorded->instance->executable->program;
  if (args->input_count != program->input_count || args->output_count != program->output_count) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "%u inputs and %u outputs are bound, but the partition has %u and %u",
                          args->input_count, args->output_count, program->input_count, program->output_count);
  }
  const size_t count = (size_t)args->input_count + args->output_count;
  if (recorded->bindings == NULL) recorded->bindings = clv__allocate(captured->allocator, count * sizeof(clv_binding));
  if (recorded->bindings == NULL) return clv__error_memory(error, count * sizeof(clv_binding));
  recorded->input_count = args->input_count;
  recorded->output_count = args->output_count;
  for (uint32_t i = 0; i < args->input_count; ++i) recorded->bindings[i] = args->inputs[i];
  for (uint32_t i = 0; i < args->output_count; ++i) recorded->bindings[args->input_count + i] = args->outputs[i];
  return CLV_OK;
}

static clv_status record(clv_captured *captured, clv_instance *instance, const clv_execute_args *args, clv_error *error) {
  execution recorded = {.instance = instance, .prepared = instance->prepared};
  void *executions = captured->executions;
  CLV__TRY(check_outputs(args, error));
  const bool room = clv__array_reserve(captured->allocator, &executions, &captured->capacity, captured->count + 1,
                                       sizeof recorded, captured->count);
  captured->executions = executions;
  if (!room) return clv__error_memory(error, sizeof recorded);
  const clv_status status =
      instance->run != NULL ? record_list(&recorded, args, error) : record_bindings(captured, &recorded, args, error);
  if (status != CLV_OK) {
    clear(captured, &recorded);
    return status;
  }
  captured->executions[captured->count++] = recorded;
  return CLV_OK;
}

clv_status clv__cpu_record(clv_captured *captured, clv_instance *instance, const clv_execute_args *args, clv_error *error) {
  const clv_status status = record(captured, instance, args, error);
  if (status != CLV_OK) captured->failed = true;
  return status;
}

static void note_plain(clv_captured *captured) {
  captured->is_plain = captured->block != NULL;
  for (size_t i = 0; i < captured->count && captured->is_plain; ++i) {
    captured->is_plain = clv__cpu_list_is_plain(captured->executions[i].list);
  }
}

static clv_status join(clv_captured *captured, clv_error *error) {
  size_t total = 0, at = 0;
  for (size_t i = 0; i < captured->count; ++i) {
    if (captured->executions[i].list == NULL) return CLV_OK;
    total += captured->executions[i].list->size_bytes;
  }
  captured->block = clv__allocate(captured->allocator, total);
  if (captured->block == NULL) return clv__error_memory(error, total);
  captured->size_bytes = total;
  for (size_t i = 0; i < captured->count; ++i) {
    clv__cpu_list *list = captured->executions[i].list;
    CLV__TRY(clv__cpu_list_lodge(list, captured->block + at, error));
    at += list->size_bytes;
  }
  note_plain(captured);
  return CLV_OK;
}

clv_status clv__cpu_capture_end(clv_device *device, clv_stream *stream, clv_captured **captured, clv_error *error) {
  clv_captured *recording = stream->recording;
  if (captured != NULL) *captured = NULL;
  if (recording == NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "the stream is not capturing");
  stream->recording = NULL;
  clv_status status = CLV_OK;
  if (captured != NULL && recording->failed) {
    status = clv__error_set(error, CLV_NOT_SUPPORTED, "an execution could not be captured");
  } else if (captured != NULL) {
    status = join(recording, error);
    if (status == CLV_OK) *captured = recording;
  }
  if (captured == NULL || status != CLV_OK) clv__cpu_captured_destroy(device, recording);
  return status;
}

/* ---- Launching. ---- */

static clv_status check(const execution *recorded, size_t index, clv_error *error) {
  if (recorded->prepared == recorded->instance->prepared) return CLV_OK;
  return clv__error_set(error, CLV_INVALID_ARGUMENT, "execution %zu was captured before its instance was resized", index);
}

/* Moves the list to the current memory of its instance. */
static clv_status follow(execution *recorded, size_t index, clv_error *error) {
  CLV__TRY(check(recorded, index, error));
  clv__cpu_run *run = recorded->instance->run;
  if (recorded->list == NULL || recorded->placed == run->placed) return CLV_OK;
  CLV__TRY(clv__cpu_run_ready(run, error));
  CLV__TRY(clv__cpu_list_place(recorded->list, run->memory, error));
  recorded->placed = run->placed;
  return CLV_OK;
}

static clv_status launch_one(execution *recorded, const clv__stop *stop, clv_error *error) {
  if (recorded->list != NULL) {
    recorded->instance->run->executions++;
    return clv__cpu_list_run(recorded->list, stop, error);
  }
  clv_execute_args args = {.struct_size = sizeof args,
                           .input_count = recorded->input_count,
                           .output_count = recorded->output_count,
                           .inputs = recorded->bindings,
                           .outputs = recorded->bindings + recorded->input_count};
  return clv__cpu_dynamic_execute(recorded->instance->executable, &args, NULL, stop, error);
}

static clv_status launch_block(const clv_captured *captured, const clv__stop *stop, clv_error *error) {
  const clv__cpu_call *failed = NULL;
  const clv_status status = clv__cpu_calls_run(captured->block, captured->size_bytes, stop, &failed, error);
  for (size_t i = 0; i < captured->count && status != CLV_OK; ++i) {
    const clv__cpu_list *list = captured->executions[i].list;
    const uint8_t *at = (const uint8_t *)failed;
    if (at < list->block || at >= list->block + list->size_bytes) continue;
    return clv__cpu_list_explain(list, failed, status, error);
  }
  return status;
}

static clv_status launch(clv_device *device, clv_captured *captured, const clv__stop *stop, clv_error *error) {
  const uint64_t changes = atomic_load_explicit(&device->changes, memory_order_acquire);
  if (captured->changes != changes) {
    for (size_t i = 0; i < captured->count; ++i) CLV__TRY(follow(&captured->executions[i], i, error));
    captured->changes = changes;
  }
  if (captured->is_plain) return launch_block(captured, stop, error);
  for (size_t i = 0; i < captured->count; ++i) CLV__TRY(launch_one(&captured->executions[i], stop, error));
  return CLV_OK;
}

clv_status clv__cpu_captured_launch(clv_device *device, clv_captured *captured, clv_stream *stream, clv_error *error) {
  if (stream != NULL && stream->recording != NULL) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "a capture cannot be launched on a stream that is capturing");
  }
  int threads = 0;
  CLV__TRY(clv__cpu_threads_enter(device, &threads, error));
  const clv_status status = launch(device, captured, stream != NULL ? &stream->stop : NULL, error);
  clv__cpu_threads_leave(threads);
  return clv__cpu_stream_note(stream, status);
}

clv_status clv__cpu_captured_bind(clv_device *device, clv_captured *captured, uint32_t index, const clv_execute_args *args,
                                  clv_error *error) {
  (void)device;
  if (index >= captured->count) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "execution %u does not exist: the capture has %zu executions", index,
                          captured->count);
  }
  execution *recorded = &captured->executions[index];
  CLV__TRY(check(recorded, index, error));
  CLV__TRY(check_outputs(args, error));
  clv_execute_args given = *args;
  if (recorded->list == NULL) return record_bindings(captured, recorded, args, error);
  CLV__TRY(clv__cpu_list_bind(recorded->list, &given, error));
  if (!clv__cpu_list_is_plain(recorded->list))
    captured->is_plain = false;
  else if (!captured->is_plain)
    note_plain(captured);
  return CLV_OK;
}

uint64_t clv__cpu_captured_bytes(clv_device *device, const clv_captured *captured) {
  (void)device;
  uint64_t total = sizeof *captured + captured->capacity * sizeof *captured->executions + captured->size_bytes;
  for (size_t i = 0; i < captured->count; ++i) {
    const execution *recorded = &captured->executions[i];
    if (recorded->list != NULL) total += clv__cpu_list_bytes(recorded->list);
    total += (uint64_t)(recorded->input_count + recorded->output_count) * sizeof(clv_binding);
  }
  return total;
}
