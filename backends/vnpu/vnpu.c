/* The virtual NPU's table of plugin ABI functions. Most of them only call functions of the other files in this folder. */
#include "vnpu.h"

#include <string.h>

#include "backends/common/host.h"
#include "base/error.h"
#include "captured.h"
#include "device.h"
#include "supports.h"

static void supports(clv_device *device, const clv_graph_view *graph, uint32_t node, clv_verdict *verdict) {
  (void)clv__vnpu_supports(device, graph, node, verdict); /* if the check fails, the verdict is no */
}

/* ---- Buffers, streams, events, copies ---- */

static clv_status stream_create(clv_device *device, clv_stream **stream, clv_error *error) {
  return clv__vnpu_stream_create(&device->queue, stream, error);
}
static void stream_destroy(clv_device *device, clv_stream *stream) {
  if (stream != NULL && clv__vnpu_stream_capture(stream) != NULL) (void)clv__vnpu_capture_end(device, stream, NULL, NULL);
  clv__vnpu_stream_destroy(&device->queue, stream);
}
static clv_status stream_synchronize(clv_device *device, clv_stream *stream, clv_error *error) {
  return clv__vnpu_stream_synchronize(&device->queue, stream, error);
}
static clv_status event_create(clv_device *device, clv_event **event, clv_error *error) {
  return clv__vnpu_event_create(&device->queue, event, error);
}
static void event_destroy(clv_device *device, clv_event *event) {
  clv__vnpu_event_destroy(&device->queue, event);
}
static clv_status event_record(clv_device *device, clv_event *event, clv_stream *stream, clv_error *error) {
  return clv__vnpu_event_record(&device->queue, event, stream, error);
}
static clv_status event_wait(clv_device *device, clv_stream *stream, clv_event *event, clv_error *error) {
  return clv__vnpu_event_wait(&device->queue, stream, event, error);
}
static clv_status event_synchronize(clv_device *device, clv_event *event, clv_error *error) {
  return clv__vnpu_event_synchronize(&device->queue, event, error);
}
static clv_status stream_stop(clv_device *device, clv_stream *stream, clv_error *error) {
  (void)error;
  clv__vnpu_stream_stop(&device->queue, stream);
  return CLV_OK;
}

static clv_status event_notify(clv_device *device, clv_event *event, clv_notify_fn notify, void *cookie, clv_error *error) {
  return clv__vnpu_event_notify(&device->queue, event, notify, cookie, error);
}

static clv_status copy_in(clv_device *device, clv_stream *stream, clv_buffer *to, uint64_t to_offset, const void *from,
                          uint64_t size_bytes, clv_error *error) {
  CLV__TRY(clv__host_check_range(to->size_bytes, to_offset, size_bytes, error));
  return clv__vnpu_stream_copy_in(&device->queue, stream, to->address + to_offset, from, size_bytes, error);
}

static clv_status copy_out(clv_device *device, clv_stream *stream, void *to, clv_buffer *from, uint64_t from_offset,
                           uint64_t size_bytes, clv_error *error) {
  CLV__TRY(clv__host_check_range(from->size_bytes, from_offset, size_bytes, error));
  return clv__vnpu_stream_copy_out(&device->queue, stream, to, from->address + from_offset, size_bytes, error);
}

/* ---- Executables and instances ---- */

static clv_status compile(clv_device *device, const clv_graph_view *graph, const clv_compile_options *options,
                          clv_executable **executable, clv_error *error) {
  (void)options; /* the options have no effect: execution is always deterministic */
  CLV__TRY(clv__vnpu_compile(device, graph, executable, error));
  clv__vnpu_live_add(device, &device->executables, &(*executable)->live);
  return CLV_OK;
}

static void executable_info(clv_device *device, clv_executable *executable, clv_executable_info *info) {
  (void)device;
  clv_executable_info filled = {
      .struct_size = info->struct_size,
      .weight_count = executable->weight_count,
      .weights = executable->weight_names,
      .resident_bytes = executable->constant_bytes,
      .scratch_bytes = executable->scratch_bytes,
  };
  memcpy(info, &filled, info->struct_size < sizeof filled ? info->struct_size : sizeof filled);
}

static clv_status executable_save(clv_device *device, clv_executable *executable, clv_write_fn write, void *cookie,
                                  clv_error *error) {
  (void)device;
  return clv__vnpu_npubin_save(executable, write, cookie, error);
}

static clv_status executable_load(clv_device *device, const void *data, size_t size_bytes, clv_executable **executable,
                                  clv_error *error) {
  CLV__TRY(clv__vnpu_npubin_load(device, data, size_bytes, executable, error));
  clv__vnpu_live_add(device, &device->executables, &(*executable)->live);
  return CLV_OK;
}

static const clv_graph_view *executable_graph(clv_device *device, const clv_executable *executable, size_t *inline_limit_bytes) {
  (void)device;
  *inline_limit_bytes = CLV__VNPU_INLINE_BYTES;
  return executable->view;
}

static clv_status instance_create(clv_device *device, clv_executable *executable, const clv_tensor *inputs, uint32_t input_count,
                                  clv_weight *const *weights, uint32_t weight_count, clv_instance **instance, clv_error *error) {
  CLV__TRY(clv__vnpu_instance_create(device, executable, inputs, input_count, weights, weight_count, instance, error));
  clv__vnpu_live_add(device, &device->instances, &(*instance)->live);
  return CLV_OK;
}

static clv_status instance_resize(clv_device *device, clv_instance *instance, const clv_tensor *inputs, uint32_t input_count,
                                  clv_error *error) {
  (void)device;
  (void)instance;
  (void)inputs;
  (void)input_count;
  return clv__error_set(error, CLV_NOT_SUPPORTED, "a program's shapes are fixed: create another instance, or compile again");
}

static clv_status execute(clv_device *device, clv_instance *instance, clv_stream *stream, clv_execute_args *args,
                          clv_error *error) {
  (void)device;
  clv_captured *captured = clv__vnpu_stream_capture(stream);
  if (captured != NULL) return clv__vnpu_capture_record(captured, instance, args, error);
  return clv__vnpu_instance_execute(instance, stream, args, error);
}

static uint64_t instance_scratch_bytes(clv_device *device, clv_instance *instance) {
  (void)device;
  return clv__vnpu_instance_scratch_bytes(instance);
}

static clv_status instance_bind_scratch(clv_device *device, clv_instance *instance, clv_buffer *buffer, uint64_t offset_bytes,
                                        clv_error *error) {
  (void)device;
  return clv__vnpu_instance_bind_scratch(instance, buffer, offset_bytes, error);
}

static clv_status captured_launch(clv_device *device, clv_captured *captured, clv_stream *stream, clv_error *error) {
  (void)device;
  return clv__vnpu_captured_launch(captured, stream, error);
}

static clv_status captured_bind(clv_device *device, clv_captured *captured, uint32_t index, const clv_execute_args *args,
                                clv_error *error) {
  (void)device;
  return clv__vnpu_captured_bind(captured, index, args, error);
}

static void captured_destroy(clv_device *device, clv_captured *captured) {
  (void)device;
  clv__vnpu_captured_destroy(captured);
}

static uint64_t captured_bytes(clv_device *device, const clv_captured *captured) {
  (void)device;
  return clv__vnpu_captured_bytes(captured);
}

static clv_status list_devices(void *self, const clv_host *host, const clv_option *options, uint32_t option_count,
                               clv_found_fn found, void *cookie, clv_error *error) {
  (void)self;
  const char *text = clv__vnpu_option_spec(options, option_count);
  if (text == NULL) {
    return clv__error_set(error, CLV_NOT_SUPPORTED, "its devices are virtual and cannot be listed: request one by name ('npu')");
  }
  clv__vnpu_spec spec;
  CLV__TRY(clv__vnpu_spec_open(host->allocator, text, NULL, 0, &spec, error));
  const clv_status status = found(cookie, spec.name, "npu");
  clv__vnpu_spec_finish(&spec);
  return status;
}

static const clv_save_slots save_slots = {
    .struct_size = sizeof save_slots,
    .save = executable_save,
    .load = executable_load,
    .graph = executable_graph,
};

static const clv_scratch_slots scratch_slots = {
    .struct_size = sizeof scratch_slots,
    .size_bytes = instance_scratch_bytes,
    .bind = instance_bind_scratch,
};

static const clv_capture_slots capture_slots = {
    .struct_size = sizeof capture_slots,
    .begin = clv__vnpu_capture_begin,
    .end = clv__vnpu_capture_end,
    .launch = captured_launch,
    .bind = captured_bind,
    .destroy = captured_destroy,
    .size_bytes = captured_bytes,
};

static const clv_backend backend_table = {
    .abi_version = CLV_ABI_VERSION,
    .struct_size = sizeof backend_table,
    .name = "vnpu",
    .version = CLV__VNPU_VERSION,
    .open = clv__vnpu_device_open,
    .close = clv__vnpu_device_close,
    .info = clv__vnpu_device_info,
    .supports = supports,
    .prefers = clv__vnpu_hint_prefers,
    .buffer_alloc = clv__vnpu_buffer_alloc,
    .buffer_free = clv__vnpu_buffer_free,
    .buffer_host_pointer = clv__vnpu_buffer_host_pointer,
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
    .weight_upload = clv__vnpu_weight_upload,
    .weight_release = clv__vnpu_weight_release,
    .compile = compile,
    .executable_destroy = clv__vnpu_executable_free,
    .executable_info = executable_info,
    .instance_create = instance_create,
    .instance_destroy = clv__vnpu_instance_free,
    .instance_resize = instance_resize,
    .execute = execute,
    .node_seconds = clv__vnpu_hint_node_seconds,
    .copy_seconds = clv__vnpu_hint_copy_seconds,
    .launch_seconds = clv__vnpu_hint_launch_seconds,
    .event_notify = event_notify,
    .stream_stop = stream_stop,
    .options = clv__vnpu_options,
    .option_count = CLV__VNPU_OPTION_COUNT,
    .list = list_devices,
    .save = &save_slots,
    .scratch = &scratch_slots,
    .capture = &capture_slots,
    .buffer_discard = clv__vnpu_buffer_discard,
};

clv_status clv__vnpu_backend_query(const clv_host *host, void *user_data, const clv_backend **backend, clv_error *error) {
  (void)user_data;
  *backend = NULL;
  if (host->abi_version != CLV_ABI_VERSION) {
    return clv__error_set(error, CLV_NOT_SUPPORTED, "the host has plugin ABI version %u, but the virtual NPU has version %u",
                          host->abi_version, CLV_ABI_VERSION);
  }
  *backend = &backend_table;
  return CLV_OK;
}
