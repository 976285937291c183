/* Devices that were removed while they were working. Of such a device's functions, only close() may still be called. This file
 * alone ensures that: the library calls a device through its `backend`, which clv__device_lose() replaces by a table whose
 * functions do not call the device. They do nothing, answer no, or fail. close() frees what the device still holds. */
#include "device/device.h"

#define TEXT "the device was removed earlier, because it did not answer in time"

/* Each function has the parameters of its slot, and uses none of them but `error` and `verdict`. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

static clv_status fail(clv_error *error) {
  return clv__error_set(error, CLV_DEVICE_ERROR, TEXT);
}

/* Define the function for the slot `name`. The other arguments are its parameters, without the device, which comes first, and
 * in FAILS without the error, which comes last. */
#define FAILS(name, ...)                                                      \
  static clv_status name(clv_device *device, __VA_ARGS__, clv_error *error) { \
    return fail(error);                                                       \
  }
#define DOES_NOTHING(name, ...) \
  static void name(clv_device *device, __VA_ARGS__) {}

/* ---- Devices and capability ---- */

static clv_status open_device(void *self, const clv_host *host, const clv_device_config *config, clv_device **device,
                              clv_error *error) {
  return fail(error);
}
static void close_device(clv_device *device) {}
static clv_status list(void *self, const clv_host *host, const clv_option *options, uint32_t option_count, clv_found_fn found,
                       void *cookie, clv_error *error) {
  return fail(error);
}
DOES_NOTHING(info, clv_device_info *info)

static void supports(clv_device *device, const clv_graph_view *graph, uint32_t node, clv_verdict *verdict) {
  *verdict = (clv_verdict){.reason = CLV__LOST_REASON};
}
static bool prefers(clv_device *device, const clv_graph_view *graph, uint32_t node) {
  return false;
}
FAILS(claim, const clv_graph_view *graph, const bool *is_free, clv_claim_fn add, void *cookie)

/* A negative time means: no estimate. */
static double node_seconds(clv_device *device, const clv_graph_view *graph, uint32_t node) {
  return -1;
}
static double copy_seconds(clv_device *device, uint64_t size_bytes) {
  return -1;
}
static double launch_seconds(clv_device *device) {
  return -1;
}

/* ---- Memory ---- */

FAILS(buffer_alloc, uint64_t size_bytes, clv_buffer **buffer)
DOES_NOTHING(buffer_free, clv_buffer *buffer)
static void *buffer_host_pointer(clv_device *device, clv_buffer *buffer) {
  return NULL;
}
DOES_NOTHING(buffer_discard, clv_buffer *buffer)

/* ---- Order ---- */

FAILS(stream_create, clv_stream **stream)
DOES_NOTHING(stream_destroy, clv_stream *stream)
FAILS(stream_synchronize, clv_stream *stream)
FAILS(stream_stop, clv_stream *stream)
FAILS(event_create, clv_event **event)
DOES_NOTHING(event_destroy, clv_event *event)
FAILS(event_record, clv_event *event, clv_stream *stream)
FAILS(event_wait, clv_stream *stream, clv_event *event)
FAILS(event_synchronize, clv_event *event)
FAILS(event_notify, clv_event *event, clv_notify_fn notify, void *cookie)
FAILS(copy_in, clv_stream *stream, clv_buffer *to, uint64_t to_offset, const void *from, uint64_t size_bytes)
FAILS(copy_out, clv_stream *stream, void *to, clv_buffer *from, uint64_t from_offset, uint64_t size_bytes)

/* ---- Weights, executables and instances ---- */

FAILS(weight_upload, const char *id, const clv_tensor *data, clv_weight **weight)
DOES_NOTHING(weight_release, clv_weight *weight)
FAILS(compile, const clv_graph_view *graph, const clv_compile_options *options, clv_executable **executable)
FAILS(finish, clv_executable *const *executables, uint32_t count)
DOES_NOTHING(executable_destroy, clv_executable *executable)
DOES_NOTHING(executable_info, clv_executable *executable, clv_executable_info *info)
FAILS(instance_create, clv_executable *executable, const clv_tensor *inputs, uint32_t input_count, clv_weight *const *weights,
      uint32_t weight_count, clv_instance **instance)
DOES_NOTHING(instance_destroy, clv_instance *instance)
FAILS(instance_resize, clv_instance *instance, const clv_tensor *inputs, uint32_t input_count)
FAILS(execute, clv_instance *instance, clv_stream *stream, clv_execute_args *args)

/* ---- Groups ---- */

FAILS(save, clv_executable *executable, clv_write_fn write, void *cookie)
FAILS(load, const void *data, size_t size_bytes, clv_executable **executable)
static const clv_graph_view *saved_graph(clv_device *device, const clv_executable *executable, size_t *inline_limit_bytes) {
  return NULL;
}
static const clv_save_slots save_slots = {.struct_size = sizeof save_slots, .save = save, .load = load, .graph = saved_graph};

static uint64_t scratch_bytes(clv_device *device, clv_instance *instance) {
  return 0;
}
FAILS(bind_scratch, clv_instance *instance, clv_buffer *buffer, uint64_t offset_bytes)
static const clv_scratch_slots scratch_slots = {
    .struct_size = sizeof scratch_slots, .size_bytes = scratch_bytes, .bind = bind_scratch};

FAILS(capture_begin, clv_stream *stream, clv_capture_mode mode)
FAILS(capture_end, clv_stream *stream, clv_captured **captured)
FAILS(capture_launch, clv_captured *captured, clv_stream *stream)
FAILS(capture_bind, clv_captured *captured, uint32_t index, const clv_execute_args *args)
DOES_NOTHING(capture_destroy, clv_captured *captured)
static uint64_t captured_bytes(clv_device *device, const clv_captured *captured) {
  return 0;
}
static const clv_capture_slots capture_slots = {.struct_size = sizeof capture_slots,
                                                .begin = capture_begin,
                                                .end = capture_end,
                                                .launch = capture_launch,
                                                .bind = capture_bind,
                                                .destroy = capture_destroy,
                                                .size_bytes = captured_bytes};

/* Return CLV_NOT_SUPPORTED, as for an instance that cannot be timed, because no run fails for that. */
static clv_status timing_enable(clv_device *device, clv_instance *instance, bool on, clv_error *error) {
  return clv__error_set(error, CLV_NOT_SUPPORTED, TEXT);
}
static clv_status timing_steps(clv_device *device, clv_instance *instance, clv_step_fn found, void *cookie, clv_error *error) {
  return clv__error_set(error, CLV_NOT_SUPPORTED, TEXT);
}
static const clv_timing_slots timing_slots = {.struct_size = sizeof timing_slots, .enable = timing_enable, .steps = timing_steps};

/* ---- The table ---- */

/* The table has an optional slot or group if the backend has it. So code may look for a slot before the loss, and call it after
 * the loss. */
#define IF_THERE(slot, replacement) .slot = backend->slot != NULL ? (replacement) : NULL

clv_backend clv__lost_backend(const clv_backend *backend) {
  return (clv_backend){
      .abi_version = backend->abi_version,
      .struct_size = sizeof *backend,
      .name = backend->name,
      .version = backend->version,
      .open = open_device,
      .close = close_device,
      .info = info,
      .supports = supports,
      IF_THERE(prefers, prefers),
      .buffer_alloc = buffer_alloc,
      .buffer_free = buffer_free,
      .buffer_host_pointer = buffer_host_pointer,
      .stream_create = stream_create,
      .stream_destroy = stream_destroy,
      .stream_synchronize = stream_synchronize,
      .event_create = event_create,
      .event_destroy = event_destroy,
      .event_record = event_record,
      .event_wait = event_wait,
      .event_synchronize = event_synchronize,
      .copy_in = copy_in,
      .copy_out = copy_out,
      .weight_upload = weight_upload,
      .weight_release = weight_release,
      .compile = compile,
      .executable_destroy = executable_destroy,
      .executable_info = executable_info,
      .instance_create = instance_create,
      .instance_destroy = instance_destroy,
      IF_THERE(instance_resize, instance_resize),
      .execute = execute,
      IF_THERE(node_seconds, node_seconds),
      IF_THERE(copy_seconds, copy_seconds),
      IF_THERE(launch_seconds, launch_seconds),
      IF_THERE(claim, claim),
      IF_THERE(event_notify, event_notify),
      .options = backend->options,
      .option_count = backend->option_count,
      IF_THERE(list, list),
      IF_THERE(finish, finish),
      IF_THERE(stream_stop, stream_stop),
      IF_THERE(save, &save_slots),
      IF_THERE(scratch, &scratch_slots),
      IF_THERE(capture, &capture_slots),
      IF_THERE(timing, &timing_slots),
      IF_THERE(buffer_discard, buffer_discard),
  };
}

/* ---- Losing a device ---- */

bool clv__device_lose(clv__device *device) {
  return atomic_exchange(&device->backend, &device->lost) != &device->lost;
}

clv_status clv__device_check(const clv__device *device, clv_error *error) {
  if (!clv__device_is_lost(device)) return CLV_OK;
  return clv__error_set(error, CLV_DEVICE_ERROR, "%s: " TEXT, device->name);
}
