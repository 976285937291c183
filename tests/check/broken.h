/* A backend that wraps a correct one and breaks one promise, which the conformance kit must find. Its handles are those of the
 * wrapped backend; what a fault must know about executables and instances is in `broken_things`. The headings in lower case
 * name the sections of the kit that must find the faults. */
#ifndef CLEAVE_TESTS_CHECK_BROKEN_H
#define CLEAVE_TESTS_CHECK_BROKEN_H

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "backends/cpu/cpu.h"
#include "backends/vnpu/vnpu.h"
#include "base/error.h"
#include "base/tensor/tensor.h"

/* X(fault, the section that must find it, 1 if the wrapped backend is the virtual NPU, 0 if it is the CPU) */
/* clang-format off */
#define BROKEN_FAULTS(X)                    \
  X(nothing, "", 0)                         \
  X(nothing_npu, "", 1)                     \
  X(fingerprint_changes, "life", 0)         \
  X(any_option, "life", 0)                  \
  X(wrong_element, "operators", 0)          \
  X(no_reason, "operators", 0)              \
  X(yes_and_no, "operators", 0)             \
  X(changes_its_mind, "operators", 0)       \
  X(forgets_inner, "boundaries", 0)         \
  X(ignores_offsets, "aliasing", 0)         \
  X(one_input_twice, "aliasing", 0)         \
  X(loses_tail, "shapes", 0)                \
  X(shared_scratch, "concurrency", 0)       \
  X(last_bindings, "concurrency", 0)        \
  X(event_never_waits, "order", 1)          \
  X(early_notice, "order", 1)               \
  X(two_notices, "order", 0)                \
  X(even_copies, "order", 0)                \
  X(failure_untold, "order", 0)             \
  X(stop_untold, "stop", 0)                 \
  X(stays_stopped, "stop", 0)               \
  X(misaligned, "memory", 0)                \
  X(writes_input, "memory", 0)              \
  X(writes_beside, "memory", 0)             \
  X(endless_memory, "memory", 0)            \
  X(discards_others, "memory", 1)           \
  X(overlapping_buffers, "memory", 0)       \
  X(loads_anything, "executables", 1)       \
  X(breaks_twin, "executables", 0)          \
  X(ignores_bind, "capture", 0)             \
  X(old_data, "capture", 0)                 \
  X(keeps_shape, "resize", 0)               \
  X(one_node_in_all, "timing", 0)           \
  X(too_much_time, "timing", 0)             \
  X(counts_on, "timing", 0)                 \
  X(no_text, "errors", 0)                   \
  X(counts_ignored, "errors", 0)            \
  X(no_number, "planning", 0)               \
  X(crashes, "capture", 0)                  \
  X(hangs, "capture", 0)                    \
  X(exits, "capture", 0)
/* clang-format on */

typedef enum broken_fault {
#define BROKEN_ENUM(name, section, npu) BROKEN_##name,
  BROKEN_FAULTS(BROKEN_ENUM)
#undef BROKEN_ENUM
      BROKEN_COUNT
} broken_fault;

static broken_fault broken_now;
static const clv_backend *broken_inner;
static clv_backend broken_table;
static pthread_t broken_main;

/* ---- Facts about executables and instances ---- */

typedef struct broken_thing {
  const void *pointer, *of; /* an executable or an instance; `of`: the executable of an instance, otherwise NULL */
  uint32_t nodes, outputs;
  char op[64]; /* the operator of the executable's node, if it has only one node; otherwise empty */
  bool is_rotten;
} broken_thing;

enum { BROKEN_THINGS = 4096 };
static broken_thing broken_things[BROKEN_THINGS];
static pthread_mutex_t broken_lock = PTHREAD_MUTEX_INITIALIZER;

static broken_thing broken_find(const void *pointer) {
  broken_thing found = {0};
  pthread_mutex_lock(&broken_lock);
  for (uint32_t i = 0; i < BROKEN_THINGS; ++i) {
    if (broken_things[i].pointer == pointer) found = broken_things[i];
  }
  pthread_mutex_unlock(&broken_lock);
  return found;
}

static void broken_note(broken_thing thing) {
  pthread_mutex_lock(&broken_lock);
  for (uint32_t i = 0; i < BROKEN_THINGS; ++i) {
    if (broken_things[i].pointer != NULL && broken_things[i].pointer != thing.pointer) continue;
    broken_things[i] = thing;
    break;
  }
  pthread_mutex_unlock(&broken_lock);
}

static void broken_drop(const void *pointer) {
  pthread_mutex_lock(&broken_lock);
  for (uint32_t i = 0; i < BROKEN_THINGS; ++i) {
    if (broken_things[i].pointer == pointer) broken_things[i] = (broken_thing){0};
  }
  pthread_mutex_unlock(&broken_lock);
}

/* ---- life ---- */

static clv_status broken_open(void *self, const clv_host *host, const clv_device_config *config, clv_device **device,
                              clv_error *error) {
  clv_device_config given = *config;
  (void)self;
  /* Makes launches slow, so that the kit notices a wait that returns too early. */
  const bool is_late = broken_now == BROKEN_event_never_waits || broken_now == BROKEN_early_notice;
  const char *spec = is_late ? "{\"operators\": \"all\", \"speed\": {\"launch_overhead_us\": 2000}}" : "all";
  const clv_option with_spec = {"spec", spec};
  given.ordinal = 0;
  if (broken_now == BROKEN_any_option) given.option_count = 0;
  if (broken_inner->name[0] == 'v' && given.option_count == 0) {
    given.options = &with_spec;
    given.option_count = 1;
  }
  return broken_inner->open(broken_inner->self, host, &given, device, error);
}

static void broken_info(clv_device *device, clv_device_info *info) {
  static char fingerprints[64][32];
  static uint32_t count;
  broken_inner->info(device, info);
  if (broken_now == BROKEN_misaligned) info->alignment_bytes = 1u << 16;
  if (broken_now != BROKEN_fingerprint_changes) return;
  uint32_t i = ++count % 64;
  snprintf(fingerprints[i], sizeof fingerprints[i], "device %u", i);
  info->fingerprint = fingerprints[i];
}

/* ---- operators ---- */

static void broken_supports(clv_device *device, const clv_graph_view *graph, uint32_t node, clv_verdict *verdict);
static const clv_host *broken_host;

static bool broken_is_op(const clv_graph_view *graph, uint32_t node, const char *op) {
  clv_node_info info = {.struct_size = sizeof info};
  broken_host->graph_node(graph, node, &info);
  return strcmp(info.op, op) == 0;
}

static void broken_supports(clv_device *device, const clv_graph_view *graph, uint32_t node, clv_verdict *verdict) {
  static uint32_t asked;
  broken_inner->supports(device, graph, node, verdict);
  if (broken_now == BROKEN_no_reason && broken_is_op(graph, node, "Concat")) *verdict = (clv_verdict){0};
  if (broken_now == BROKEN_changes_its_mind && broken_is_op(graph, node, "Concat")) {
    verdict->supported = ++asked % 2 == 0;
    strcpy(verdict->reason, verdict->supported ? "" : "not now");
  }
}

static clv_status broken_compile(clv_device *device, const clv_graph_view *graph, const clv_compile_options *options,
                                 clv_executable **executable, clv_error *error) {
  clv_node_info info = {.struct_size = sizeof info};
  uint32_t nodes = broken_host->graph_node_count(graph);
  if (nodes > 0) broken_host->graph_node(graph, 0, &info);
  if (broken_now == BROKEN_yes_and_no && nodes == 1 && strcmp(info.op, "Concat") == 0) {
    return clv__error_set(error, CLV_NOT_SUPPORTED, "no such kernel after all");
  }
  clv_status status = broken_inner->compile(device, graph, options, executable, error);
  if (status != CLV_OK) {
    if (broken_now == BROKEN_no_text && error != NULL) *error = (clv_error){0};
    return status;
  }
  broken_thing thing = {.pointer = *executable, .nodes = nodes, .outputs = broken_host->graph_output_count(graph)};
  if (nodes == 1) snprintf(thing.op, sizeof thing.op, "%s", info.op);
  broken_note(thing);
  return CLV_OK;
}

static void broken_executable_destroy(clv_device *device, clv_executable *executable) {
  broken_thing thing = broken_find(executable);
  broken_drop(executable);
  for (uint32_t i = 0; broken_now == BROKEN_breaks_twin && i < BROKEN_THINGS;
       ++i) { /* as if all executables with this number of nodes shared their memory */
    if (broken_things[i].of != NULL && broken_things[i].nodes == thing.nodes) broken_things[i].is_rotten = true;
  }
  broken_inner->executable_destroy(device, executable);
}

static clv_status broken_instance_create(clv_device *device, clv_executable *executable, const clv_tensor *inputs,
                                         uint32_t input_count, clv_weight *const *weights, uint32_t weight_count,
                                         clv_instance **instance, clv_error *error) {
  broken_thing thing = broken_find(executable);
  if (broken_now == BROKEN_counts_ignored && input_count == 0) {
    static int nothing;
    *instance = (clv_instance *)&nothing;
    return CLV_OK;
  }
  clv_status status =
      broken_inner->instance_create(device, executable, inputs, input_count, weights, weight_count, instance, error);
  if (status != CLV_OK) return status;
  thing.pointer = *instance;
  thing.of = executable;
  broken_note(thing);
  return status;
}

static void broken_instance_destroy(clv_device *device, clv_instance *instance) {
  if (broken_now == BROKEN_counts_ignored && broken_find(instance).pointer == NULL) return;
  broken_drop(instance);
  broken_inner->instance_destroy(device, instance);
}

/* ---- Execution ---- */

static char *broken_address(clv_device *device, const clv_binding *binding) {
  if (binding->buffer == NULL) return binding->type.data;
  return (char *)broken_inner->buffer_host_pointer(device, binding->buffer) + binding->offset_bytes;
}

static bool broken_has_dims(const clv_tensor *type, int64_t rows, int64_t columns) {
  return type->rank == 2 && type->dims[0] == rows && type->dims[1] == columns;
}

/* Fault shared_scratch: executions of all instances copy their first input through the same static buffer. */
static clv_status broken_execute_shared(clv_device *device, clv_instance *instance, clv_stream *stream, clv_execute_args *args,
                                        clv_error *error) {
  enum { BYTES = 1 << 16 };
  static _Atomic unsigned char scratch[BYTES];
  static unsigned char own[64][BYTES];
  static atomic_uint entered;
  clv_binding inputs[8];
  size_t size_bytes;
  if (args->input_count == 0 || args->input_count > 8 || !clv__tensor_size_bytes(&args->inputs[0].type, &size_bytes) ||
      size_bytes > BYTES) {
    return broken_inner->execute(device, instance, stream, args, error);
  }
  const unsigned char *from = (const unsigned char *)broken_address(device, &args->inputs[0]);
  for (size_t i = 0; i < size_bytes; ++i) atomic_store_explicit(&scratch[i], from[i], memory_order_relaxed);
  unsigned turn = ++entered;
  for (uint32_t wait = 0; wait < 20 && atomic_load(&entered) == turn; ++wait) nanosleep(&(struct timespec){0, 100000}, NULL);
  unsigned char *mine = own[turn % 64];
  for (size_t i = 0; i < size_bytes; ++i) mine[i] = atomic_load_explicit(&scratch[i], memory_order_relaxed);
  memcpy(inputs, args->inputs, args->input_count * sizeof *inputs);
  inputs[0].buffer = NULL;
  inputs[0].type.data = mine;
  clv_execute_args given = *args;
  given.inputs = inputs;
  return broken_inner->execute(device, instance, stream, &given, error);
}

/* Changes the outputs or inputs after an execution, as the fault requires. */
static void broken_spoil(clv_device *device, const broken_thing *thing, clv_execute_args *args) {
  for (uint32_t i = 0; i < args->output_count; ++i) {
    clv_binding *output = &args->outputs[i];
    size_t size_bytes = 0;
    if (!clv__tensor_size_bytes(&output->type, &size_bytes) || size_bytes == 0) continue;
    char *bytes = broken_address(device, output);
    if (broken_now == BROKEN_wrong_element && strcmp(thing->op, "Concat") == 0) bytes[size_bytes - 1] ^= 0x40;
    if (broken_now == BROKEN_forgets_inner && thing->nodes >= 7 && i == 0 && args->output_count > 1) {
      memset(bytes, 0xff, size_bytes);
    }
    if (broken_now == BROKEN_loses_tail && thing->nodes > 1 && broken_has_dims(&output->type, 17, 8))
      bytes[size_bytes - 1] ^= 0x40;
    if (broken_now == BROKEN_writes_beside && broken_has_dims(&output->type, 7, 33)) bytes[size_bytes] ^= 1;
  }
  for (uint32_t i = 0; i < args->input_count; ++i) {
    if (broken_now == BROKEN_writes_input && broken_has_dims(&args->inputs[i].type, 7, 33)) {
      broken_address(device, &args->inputs[i])[5] ^= 1;
    }
  }
}

static clv_status broken_refused_room(void *cookie, uint32_t index, const clv_tensor *type, clv_binding *binding,
                                      clv_error *error) {
  clv_execute_args *args = cookie;
  static uint64_t anywhere[64];
  if (args->allocate_output(args->cookie, index, type, binding, error) == CLV_OK) return CLV_OK;
  *binding = (clv_binding){.type = *type};
  binding->type.data = anywhere;
  return CLV_OK;
}

static const clv_stream *broken_last_stream; /* stream of the last execution; NULL: it was synchronized since */

/* Fault last_bindings: executions that are enqueued before the stream is synchronized all use the first input of the first one.
 */
static clv_status broken_execute_last(clv_device *device, clv_instance *instance, clv_stream *stream, clv_execute_args *args,
                                      clv_error *error) {
  static clv_binding first_inputs[8];
  static uint32_t since;
  clv_execute_args given = *args;
  clv_binding inputs[8];
  since = broken_last_stream == stream ? since + 1 : 0;
  broken_last_stream = stream;
  if (since > 0 && args->input_count <= 8 && args->input_count > 0) {
    memcpy(inputs, args->inputs, args->input_count * sizeof *inputs);
    inputs[0] = first_inputs[0];
    given.inputs = inputs;
  } else if (args->input_count > 0) {
    first_inputs[0] = args->inputs[0];
  }
  return broken_inner->execute(device, instance, stream, &given, error);
}

/* Fault stop_untold: waiting for a stopped stream that skipped work returns CLV_OK instead of CLV_CANCELLED. */
static clv_status broken_after_stop(clv_status status) {
  return status == CLV_CANCELLED && broken_now == BROKEN_stop_untold ? CLV_OK : status;
}

static clv_status broken_execute(clv_device *device, clv_instance *instance, clv_stream *stream, clv_execute_args *args,
                                 clv_error *error) {
  broken_thing thing = broken_find(instance);
  clv_binding inputs[16], outputs[16];
  clv_execute_args given = *args;
  if (thing.is_rotten) return CLV_OK;
  if (broken_now == BROKEN_counts_ignored && args->input_count == 0) return CLV_OK;
  if (broken_now == BROKEN_shared_scratch && !pthread_equal(pthread_self(), broken_main))
    return broken_execute_shared(device, instance, stream, args, error);
  if (broken_now == BROKEN_failure_untold) {
    given.cookie = args;
    given.allocate_output = broken_refused_room;
    return broken_inner->execute(device, instance, stream, &given, error);
  }
  bool moves = broken_now == BROKEN_ignores_offsets || broken_now == BROKEN_one_input_twice;
  if (!moves || args->input_count > 16 || args->output_count > 16) {
    clv_status status = broken_after_stop(broken_inner->execute(device, instance, stream, args, error));
    if (status == CLV_OK && broken_inner->name[0] == 'c') broken_spoil(device, &thing, args);
    return status;
  }
  static float zeros[4096];
  if (args->input_count > 0) memcpy(inputs, args->inputs, args->input_count * sizeof *inputs);
  if (args->output_count > 0) memcpy(outputs, args->outputs, args->output_count * sizeof *outputs);
  for (uint32_t i = 0; i < args->input_count + args->output_count && broken_now == BROKEN_ignores_offsets; ++i) {
    clv_binding *binding = i < args->input_count ? &inputs[i] : &outputs[i - args->input_count];
    if (binding->buffer != NULL) binding->offset_bytes = 0;
  }
  if (broken_now == BROKEN_one_input_twice && args->input_count == 2 && inputs[0].type.data == inputs[1].type.data &&
      inputs[0].type.data != NULL) {
    inputs[1].type.data = zeros;
  }
  given.inputs = inputs;
  given.outputs = outputs;
  return broken_inner->execute(device, instance, stream, &given, error);
}

/* ---- order ---- */

static clv_status broken_synchronize(clv_device *device, clv_stream *stream, clv_error *error) {
  broken_last_stream = NULL;
  clv_status status = broken_inner->stream_synchronize(device, stream, error);
  if (broken_now == BROKEN_stays_stopped && status == CLV_CANCELLED) (void)broken_inner->stream_stop(device, stream, NULL);
  return broken_after_stop(status);
}

static clv_status broken_event_synchronize(clv_device *device, clv_event *event, clv_error *error) {
  return broken_after_stop(broken_inner->event_synchronize(device, event, error));
}

static clv_status broken_event_wait(clv_device *device, clv_stream *stream, clv_event *event, clv_error *error) {
  return broken_now == BROKEN_event_never_waits ? CLV_OK : broken_inner->event_wait(device, stream, event, error);
}

static clv_status broken_event_notify(clv_device *device, clv_event *event, clv_notify_fn notify, void *cookie,
                                      clv_error *error) {
  if (broken_now == BROKEN_early_notice) {
    notify(cookie);
    return CLV_OK;
  }
  if (broken_now == BROKEN_two_notices) notify(cookie);
  return broken_inner->event_notify(device, event, notify, cookie, error);
}

static clv_buffer *broken_earlier, *broken_later; /* two buffers of the same size, allocated one after the other */
static uint64_t broken_earlier_bytes;

static clv_status broken_copy_in(clv_device *device, clv_stream *stream, clv_buffer *to, uint64_t to_offset, const void *from,
                                 uint64_t size_bytes, clv_error *error) {
  if (broken_now == BROKEN_even_copies) to_offset &= ~UINT64_C(1);
  /* As if byte 0 of both buffers were the same. */
  if (broken_now == BROKEN_overlapping_buffers && to == broken_later && size_bytes > 0) {
    CLV__TRY(broken_inner->copy_in(device, stream, broken_earlier, 0, from, 1, error));
  }
  return broken_inner->copy_in(device, stream, to, to_offset, from, size_bytes, error);
}

/* ---- memory ---- */

static clv_status broken_buffer_alloc(clv_device *device, uint64_t size_bytes, clv_buffer **buffer, clv_error *error) {
  if (broken_now == BROKEN_endless_memory && size_bytes > UINT64_C(1) << 50) size_bytes = 64;
  CLV__TRY(broken_inner->buffer_alloc(device, size_bytes, buffer, error));
  if (broken_now == BROKEN_overlapping_buffers && broken_later == NULL) {
    broken_later = broken_earlier != NULL && size_bytes == broken_earlier_bytes ? *buffer : NULL;
    if (broken_later == NULL) broken_earlier = *buffer, broken_earlier_bytes = size_bytes;
  }
  return CLV_OK;
}

/* Fault discards_others: buffer_discard() also discards the buffer of the call before. */
static void broken_buffer_discard(clv_device *device, clv_buffer *buffer) {
  if (broken_earlier != NULL) broken_inner->buffer_discard(device, broken_earlier);
  broken_inner->buffer_discard(device, broken_earlier = buffer);
}

static void broken_buffer_free(clv_device *device, clv_buffer *buffer) {
  if (buffer == broken_earlier || buffer == broken_later) broken_earlier = broken_later = NULL;
  broken_inner->buffer_free(device, buffer);
}

/* ---- executables ---- */

static unsigned char *broken_blob;
static size_t broken_blob_bytes;

typedef struct broken_writer {
  clv_write_fn write;
  void *cookie;
} broken_writer;

static clv_status broken_write(void *cookie, const void *data, size_t size_bytes) {
  broken_writer *writer = cookie;
  unsigned char *grown = realloc(broken_blob, broken_blob_bytes + size_bytes);
  if (grown == NULL) return CLV_OUT_OF_MEMORY;
  broken_blob = grown;
  memcpy(broken_blob + broken_blob_bytes, data, size_bytes);
  broken_blob_bytes += size_bytes;
  return writer->write(writer->cookie, data, size_bytes);
}

static clv_status broken_save(clv_device *device, clv_executable *executable, clv_write_fn write, void *cookie,
                              clv_error *error) {
  broken_writer writer = {write, cookie};
  unsigned char *before = broken_blob;
  size_t before_bytes = broken_blob_bytes;
  broken_blob = NULL;
  broken_blob_bytes = 0;
  clv_status status = broken_inner->save->save(device, executable, broken_write, &writer, error);
  if (status == CLV_OK) {
    free(before);
  } else {
    free(broken_blob);
    broken_blob = before;
    broken_blob_bytes = before_bytes;
  }
  return status;
}

static clv_status broken_load(clv_device *device, const void *data, size_t size_bytes, clv_executable **executable,
                              clv_error *error) {
  clv_status status = broken_inner->save->load(device, data, size_bytes, executable, error);
  if (status == CLV_OK || broken_now != BROKEN_loads_anything || broken_blob == NULL) return status;
  status = broken_inner->save->load(device, broken_blob, broken_blob_bytes, executable, error);
  if (status == CLV_OK) broken_note((broken_thing){.pointer = *executable, .is_rotten = true});
  return status;
}

/* ---- capture ---- */

static clv_status broken_captured_bind(clv_device *device, clv_captured *captured, uint32_t index, const clv_execute_args *args,
                                       clv_error *error) {
  if (broken_now == BROKEN_ignores_bind) return CLV_OK;
  return broken_inner->capture->bind(device, captured, index, args, error);
}

static clv_status broken_captured_launch(clv_device *device, clv_captured *captured, clv_stream *stream, clv_error *error) {
  static const clv_captured *last;
  if (broken_now == BROKEN_crashes) raise(SIGSEGV);
  if (broken_now == BROKEN_exits) _exit(3);
  while (broken_now == BROKEN_hangs) pause();
  /* Fault old_data: if the same capture is launched again, nothing runs, and the outputs keep the old data. */
  if (broken_now == BROKEN_old_data && last == captured) return CLV_OK;
  last = captured;
  return broken_inner->capture->launch(device, captured, stream, error);
}

/* ---- resize, timing, planning ---- */

static clv_status broken_resize(clv_device *device, clv_instance *instance, const clv_tensor *inputs, uint32_t input_count,
                                clv_error *error) {
  if (broken_now == BROKEN_keeps_shape && input_count > 0) return CLV_OK;
  return broken_inner->instance_resize(device, instance, inputs, input_count, error);
}

typedef struct broken_listing {
  clv_step_fn found;
  void *cookie;
} broken_listing;

static clv_status broken_step(void *cookie, const clv_step_info *info) {
  static const uint32_t first[] = {0};
  const broken_listing *listing = cookie;
  clv_step_info told = *info;
  if (broken_now == BROKEN_one_node_in_all) {
    told.node_count = 1;
    told.nodes = first;
  }
  if (broken_now == BROKEN_too_much_time) told.time_ns += UINT64_C(3600000000000);
  return listing->found(listing->cookie, &told);
}

static clv_status broken_instance_steps(clv_device *device, clv_instance *instance, clv_step_fn found, void *cookie,
                                        clv_error *error) {
  broken_listing listing = {found, cookie};
  return broken_inner->timing->steps(device, instance, broken_step, &listing, error);
}

/* Fault counts_on: starting the timing of an instance again does not reset its times. */
static clv_status broken_time_steps(clv_device *device, clv_instance *instance, bool on, clv_error *error) {
  static const void *last;
  if (broken_now == BROKEN_counts_on && on && last == instance) return CLV_OK;
  last = instance;
  return broken_inner->timing->enable(device, instance, on, error);
}

static double broken_node_seconds(clv_device *device, const clv_graph_view *graph, uint32_t node) {
  (void)device;
  (void)graph;
  (void)node;
  return NAN;
}

/* ---- The table ---- */

static clv_capture_slots broken_capture;
static const clv_save_slots broken_save_slots = {
    .struct_size = sizeof broken_save_slots, .save = broken_save, .load = broken_load};
static const clv_timing_slots broken_timing = {
    .struct_size = sizeof broken_timing, .enable = broken_time_steps, .steps = broken_instance_steps};

static clv_status broken_query(const clv_host *host, void *user_data, const clv_backend **backend, clv_error *error) {
  const bool is_npu = *(const bool *)user_data;
  broken_host = host;
  broken_main = pthread_self();
  CLV__TRY(is_npu ? clv__vnpu_backend_query(host, NULL, &broken_inner, error)
                  : clv__cpu_backend_query(host, NULL, &broken_inner, error));
  broken_table = *broken_inner;
  broken_table.name = "broken";
  broken_table.options = broken_now == BROKEN_any_option ? NULL : broken_inner->options;
  if (broken_now == BROKEN_any_option) broken_table.option_count = 0;
  broken_table.open = broken_open;
  broken_table.info = broken_info;
  broken_table.supports = broken_supports;
  broken_table.compile = broken_compile;
  broken_table.executable_destroy = broken_executable_destroy;
  broken_table.instance_create = broken_instance_create;
  broken_table.instance_destroy = broken_instance_destroy;
  broken_table.instance_resize = broken_resize;
  if (broken_inner->timing != NULL) broken_table.timing = &broken_timing;
  broken_table.execute = broken_now == BROKEN_last_bindings ? broken_execute_last : broken_execute;
  broken_table.stream_synchronize = broken_synchronize;
  broken_table.event_synchronize = broken_event_synchronize;
  broken_table.event_wait = broken_event_wait;
  broken_table.event_notify = broken_event_notify;
  broken_table.copy_in = broken_copy_in;
  broken_table.buffer_alloc = broken_buffer_alloc;
  if (broken_now == BROKEN_overlapping_buffers || broken_now == BROKEN_discards_others)
    broken_table.buffer_free = broken_buffer_free;
  if (broken_now == BROKEN_discards_others) broken_table.buffer_discard = broken_buffer_discard;
  if (broken_inner->save != NULL) broken_table.save = &broken_save_slots;
  broken_capture = *broken_inner->capture;
  broken_capture.bind = broken_captured_bind;
  broken_capture.launch = broken_captured_launch;
  broken_table.capture = &broken_capture;
  if (broken_now == BROKEN_no_number) broken_table.node_seconds = broken_node_seconds;
  *backend = &broken_table;
  return CLV_OK;
}

#endif
