/* The virtual NPU's slots of the plugin ABI: devices and buffers. What is behind each is in the files beside this one. */
#include "vnpu.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/host.h"
#include "captured.h"
#include "device.h"
#include "speed.h"
#include "supports.h"

/* ---- Devices ---- */

static void describe(clv_device *device) {
  clv__hasher hasher;
  clv__hash hash;
  char text[2 * CLV__HASH_BYTES + 1];
  clv__hasher_init(&hasher);
  clv__hasher_string(&hasher, CLV__VNPU_VERSION);
  clv__hasher_string(&hasher, device->spec.canonical);
  clv__hasher_finish(&hasher, &hash);
  clv__hash_text(&hash, text);
  snprintf(device->fingerprint, sizeof device->fingerprint, "vnpu-%s-%s", CLV__VNPU_VERSION, text);
  char memory[32] = "any";
  if (device->spec.memory_bytes > 0) clv__vnpu_bytes_text(device->spec.memory_bytes, memory);
  snprintf(device->description, sizeof device->description, "%.100s, %s memory", device->spec.description, memory);
}

static clv_status device_open(void *self, const clv_host *host, const clv_device_config *config, clv_device **out,
                              clv_error *error) {
  (void)self;
  *out = NULL;
  const clv_allocator *allocator = host->allocator;
  clv_device *device = clv__allocate_zero(allocator, sizeof *device);
  if (device == NULL) return clv__error_memory(error, sizeof *device);
  device->host = host;
  device->allocator = allocator;
  clv_status status = clv__vnpu_spec_open(allocator, config->spec, config->options, config->option_count, &device->spec, error);
  if (status != CLV_OK) {
    clv__release(allocator, device);
    return status;
  }
  const char *name = config->name != NULL && config->name[0] != '\0' ? config->name : "npu";
  bool named = device->spec.memory_space[0] != '\0';
  bool shared = named && strcmp(device->spec.memory_space, "host") != 0; /* the host's memory is everybody's already */
  const char *space = named ? device->spec.memory_space : strcmp(name, "host") == 0 ? "npu" : name; /* "host" means the host's */
  device->memory_space = clv__arena_string(&device->spec.arena, space, strlen(space));
  if (device->memory_space == NULL) status = clv__error_memory(error, strlen(space));
  if (status == CLV_OK) {
    status =
        clv__vnpu_space_open(host, space, shared, device->spec.memory_bytes, device->spec.alignment_bytes, &device->space, error);
  }
  if (status != CLV_OK) {
    clv__vnpu_spec_finish(&device->spec);
    clv__release(allocator, device);
    return status;
  }
  clv__vnpu_queue_init(&device->queue, allocator, device->space, &device->spec.speed, config->thread_count);
  device->queue.hang_at = device->spec.hang_at;
  device->queue.fail_at = device->spec.fail_at;
  pthread_mutex_init(&device->live_lock, NULL);
  describe(device);
  *out = device;
  return CLV_OK;
}

static void buffer_free(clv_device *device, clv_buffer *buffer);
static void executable_destroy(clv_device *device, clv_executable *executable);
static void instance_destroy(clv_device *device, clv_instance *instance);

/* A device that hung is closed with everything still there: nobody may give it back any more. */
static void device_close(clv_device *device) {
  if (device == NULL) return;
  clv__vnpu_queue_stop(&device->queue);
  while (device->captured != NULL) clv__vnpu_captured_destroy((clv_captured *)device->captured);
  while (device->instances != NULL) instance_destroy(device, (clv_instance *)device->instances);
  while (device->executables != NULL) executable_destroy(device, (clv_executable *)device->executables);
  while (device->buffers != NULL) buffer_free(device, (clv_buffer *)device->buffers);
  clv__vnpu_weights_finish(device);
  clv__vnpu_queue_finish(&device->queue);
  clv__vnpu_space_close(device->space);
  clv__vnpu_spec_finish(&device->spec);
  pthread_mutex_destroy(&device->live_lock);
  clv__release(device->allocator, device);
}

static void device_info(clv_device *device, clv_device_info *info) {
  const clv__vnpu_spec *spec = &device->spec;
  clv_device_info filled = {
      .struct_size = info->struct_size,
      .static_shapes_only = spec->static_shapes,
      .kind = "npu",
      .description = device->description,
      .fingerprint = device->fingerprint,
      .memory_space = device->memory_space,
      .memory_limit_bytes = spec->memory_bytes,
      .alignment_bytes = spec->alignment_bytes,
      .max_partition_inputs = spec->max_partition_inputs,
      .max_partition_nodes = spec->max_partition_nodes,
  };
  memcpy(info, &filled, info->struct_size < sizeof filled ? info->struct_size : sizeof filled);
}

static void supports(clv_device *device, const clv_graph_view *graph, uint32_t node, clv_verdict *verdict) {
  (void)clv__vnpu_supports(device, graph, node, verdict); /* the verdict says it too */
}

/* ---- Buffers, order, copies ---- */

static clv_status buffer_alloc(clv_device *device, uint64_t size_bytes, clv_buffer **out, clv_error *error) {
  *out = NULL;
  clv_buffer *buffer = clv__allocate_zero(device->allocator, sizeof *buffer);
  if (buffer == NULL) return clv__error_memory(error, sizeof *buffer);
  buffer->size_bytes = size_bytes;
  clv_status status = clv__vnpu_space_allocate(device->space, size_bytes, &buffer->address, error);
  if (status != CLV_OK) {
    clv__release(device->allocator, buffer);
    return status;
  }
  clv__vnpu_live_add(device, &device->buffers, &buffer->live);
  *out = buffer;
  return CLV_OK;
}

static void buffer_free(clv_device *device, clv_buffer *buffer) {
  if (buffer == NULL) return;
  clv__vnpu_live_remove(device, &buffer->live);
  clv__vnpu_space_free(device->space, buffer->address, buffer->size_bytes);
  clv__release(device->allocator, buffer);
}

static void *buffer_host_pointer(clv_device *device, clv_buffer *buffer) {
  return clv__vnpu_space_is_host(device->space) ? (void *)(uintptr_t)buffer->address : NULL;
}

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
  (void)options; /* nothing to choose: always deterministic */
  CLV__TRY(clv__vnpu_compile(device, graph, executable, error));
  clv__vnpu_live_add(device, &device->executables, &(*executable)->live);
  return CLV_OK;
}

static void executable_destroy(clv_device *device, clv_executable *executable) {
  if (executable == NULL) return;
  clv__vnpu_live_remove(device, &executable->live);
  clv__vnpu_program_destroy(executable);
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

static clv_status instance_create(clv_device *device, clv_executable *executable, const clv_tensor *inputs, uint32_t input_count,
                                  clv_weight *const *weights, uint32_t weight_count, clv_instance **instance, clv_error *error) {
  CLV__TRY(clv__vnpu_instance_create(device, executable, inputs, input_count, weights, weight_count, instance, error));
  clv__vnpu_live_add(device, &device->instances, &(*instance)->live);
  return CLV_OK;
}

static void instance_destroy(clv_device *device, clv_instance *instance) {
  if (instance == NULL) return;
  clv__vnpu_live_remove(device, &instance->live);
  clv__vnpu_instance_destroy(instance);
}

static clv_status instance_resize(clv_device *device, clv_instance *instance, const clv_tensor *inputs, uint32_t input_count,
                                  clv_error *error) {
  (void)device;
  (void)instance;
  (void)inputs;
  (void)input_count;
  return clv__error_set(error, CLV_NOT_SUPPORTED, "a program's shapes are fixed: make another instance, or compile again");
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

/* ---- What the speed model says, for planning ---- */

static double node_seconds(clv_device *device, const clv_graph_view *graph, uint32_t node) {
  clv_node_info info = {.struct_size = sizeof info};
  device->host->graph_node(graph, node, &info);
  clv_tensor few[16], *types = few;
  size_t count = (size_t)info.input_count + info.output_count;
  if (!device->spec.speed.given) return -1;
  if (count > sizeof few / sizeof *few) types = clv__allocate(device->allocator, count * sizeof *types);
  if (types == NULL) return -1;
  bool known = true;
  for (size_t i = 0; i < count; ++i) {
    uint32_t value = i < info.input_count ? info.inputs[i] : info.outputs[i - info.input_count];
    clv_value_info value_info = {.struct_size = sizeof value_info};
    types[i] = (clv_tensor){.rank = CLV_RANK_UNKNOWN};
    if (value == CLV_NO_VALUE) continue;
    device->host->graph_value(graph, value, &value_info);
    types[i] = value_info.type;
    known = known && clv__tensor_is_static(&types[i]);
  }
  double seconds = known ? clv__vnpu_node_seconds(&device->spec.speed, &info, types, types + info.input_count) : -1;
  if (types != few) clv__release(device->allocator, types);
  return seconds;
}

/* What an NPU is for: enough arithmetic a byte to repay bringing the weights. */
static bool prefers(clv_device *device, const clv_graph_view *graph, uint32_t node) {
  static const char *const wanted[] = {"Conv", "ConvTranspose", "Gemm", "MatMul"};
  clv_node_info info = {.struct_size = sizeof info};
  device->host->graph_node(graph, node, &info);
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; ++i) {
    if (info.domain[0] == '\0' && strcmp(info.op, wanted[i]) == 0) return true;
  }
  return false;
}

static double copy_seconds(clv_device *device, uint64_t size_bytes) {
  return device->spec.speed.given ? clv__vnpu_copy_seconds(&device->spec.speed, size_bytes) : -1;
}

static double launch_seconds(clv_device *device) {
  return device->spec.speed.given ? clv__vnpu_launch_seconds(&device->spec.speed) : -1;
}

static clv_status list_devices(void *self, const clv_host *host, clv_found_fn found, void *cookie, clv_error *error) {
  (void)self;
  (void)host;
  (void)found;
  (void)cookie;
  return clv__error_set(error, CLV_NOT_SUPPORTED, "its devices are virtual: they come only by name ('npu')");
}

static const clv_backend backend_table = {
    .abi_version = CLV_ABI_VERSION,
    .struct_size = sizeof backend_table,
    .name = "vnpu",
    .version = CLV__VNPU_VERSION,
    .open = device_open,
    .close = device_close,
    .info = device_info,
    .supports = supports,
    .prefers = prefers,
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
    .weight_upload = clv__vnpu_weight_upload,
    .weight_release = clv__vnpu_weight_release,
    .compile = compile,
    .executable_destroy = executable_destroy,
    .executable_info = executable_info,
    .executable_save = executable_save,
    .executable_load = executable_load,
    .instance_create = instance_create,
    .instance_destroy = instance_destroy,
    .instance_resize = instance_resize,
    .execute = execute,
    .node_seconds = node_seconds,
    .copy_seconds = copy_seconds,
    .launch_seconds = launch_seconds,
    .event_notify = event_notify,
    .instance_scratch_bytes = instance_scratch_bytes,
    .instance_bind_scratch = instance_bind_scratch,
    .capture_begin = clv__vnpu_capture_begin,
    .capture_end = clv__vnpu_capture_end,
    .captured_launch = captured_launch,
    .captured_bind = captured_bind,
    .captured_destroy = captured_destroy,
    .captured_bytes = captured_bytes,
    .options = clv__vnpu_options,
    .option_count = CLV__VNPU_OPTION_COUNT,
    .list = list_devices,
};

clv_status clv__vnpu_backend_query(const clv_host *host, void *user_data, const clv_backend **backend, clv_error *error) {
  (void)user_data;
  *backend = NULL;
  if (host->abi_version != CLV_ABI_VERSION) {
    return clv__error_set(error, CLV_NOT_SUPPORTED, "the host speaks plugin ABI %u, the virtual NPU %u", host->abi_version,
                          CLV_ABI_VERSION);
  }
  *backend = &backend_table;
  return CLV_OK;
}

clv_status clv__vnpu_spec_name(const clv_allocator *allocator, const char *text, char *name, size_t size_bytes,
                               clv_error *error) {
  clv__vnpu_spec spec;
  CLV__TRY(clv__vnpu_spec_open(allocator, text, NULL, 0, &spec, error));
  size_t length = strlen(spec.name);
  clv_status status = CLV_OK;
  if (length >= size_bytes) {
    status =
        clv__error_set(error, CLV_INVALID_ARGUMENT, "device name of %zu characters is longer than %zu", length, size_bytes - 1);
  } else {
    memcpy(name, spec.name, length + 1);
  }
  clv__vnpu_spec_finish(&spec);
  return status;
}
