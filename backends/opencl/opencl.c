/* The OpenCL backend's table of functions for the plugin ABI. Most of the functions are in the other files of this folder. */
#include "opencl.h"

#include "backends/opencl/run/capture.h"

static void device_info(clv_device *device, clv_device_info *info) {
  clv_device_info filled = {
      .struct_size = info->struct_size,
      .kind = (device->type & CL_DEVICE_TYPE_GPU) != 0   ? "gpu"
              : (device->type & CL_DEVICE_TYPE_CPU) != 0 ? "cpu"
                                                         : "npu",
      .description = device->description,
      .fingerprint = device->fingerprint,
      .memory_space = device->space,
      .memory_limit_bytes = device->shares_host ? 0 : device->memory_bytes,
      .alignment_bytes = (uint32_t)device->alignment_bytes,
      .silicon = (device->type & CL_DEVICE_TYPE_CPU) != 0 ? "cpu" : NULL,
  };
  memcpy(info, &filled, info->struct_size < sizeof filled ? info->struct_size : sizeof filled);
}

/* Ignores the compile options: this backend has only one set of kernels, and they give the same results in every run. */
static clv_status compile(clv_device *device, const clv_graph_view *graph, const clv_compile_options *options,
                          clv_executable **executable, clv_error *error) {
  (void)options;
  return clv__opencl_compile(device, graph, executable, error);
}

static clv_status instance_resize(clv_device *device, clv_instance *instance, const clv_tensor *inputs, uint32_t input_count,
                                  clv_error *error) {
  (void)device;
  (void)instance;
  (void)inputs;
  (void)input_count;
  return clv__error_set(error, CLV_NOT_SUPPORTED, "an instance cannot change its shapes: create another one");
}

clv_status clv__opencl_execute(clv_device *device, clv_instance *instance, clv_stream *stream, clv_execute_args *args,
                               clv_error *error) {
  CLV__TRY(clv__opencl_instance_check(instance, args, error));
  if (stream->recording != NULL) return clv__opencl_capture_add(device, stream->recording, instance, args, error);
  cl_command_queue queue;
  CLV__TRY(clv__opencl_pace_check(&stream->pace, error));
  CLV__TRY(clv__opencl_stream_queue(device, stream, &queue, error));
  CLV__TRY(clv__opencl_instance_bind(device, instance, args->inputs, args->outputs, error));
  CLV__TRY(clv__opencl_faults_watch(device, instance->faults, &stream->watch, error));
  CLV__TRY(clv__opencl_instance_enqueue(device, instance, stream, error));
  return clv__opencl_faults_read(device, instance->faults, queue, error);
}

static const clv_save_slots save_slots = {
    .struct_size = sizeof save_slots,
    .save = clv__opencl_executable_save,
    .load = clv__opencl_executable_load,
    .graph = clv__opencl_executable_graph,
};

static const clv_scratch_slots scratch_slots = {
    .struct_size = sizeof scratch_slots,
    .size_bytes = clv__opencl_instance_scratch_bytes,
    .bind = clv__opencl_instance_bind_scratch,
};

static const clv_capture_slots capture_slots = {
    .struct_size = sizeof capture_slots,
    .begin = clv__opencl_capture_begin,
    .end = clv__opencl_capture_end,
    .launch = clv__opencl_captured_launch,
    .bind = clv__opencl_captured_bind,
    .destroy = clv__opencl_captured_destroy,
    .size_bytes = clv__opencl_captured_bytes,
};

clv_status clv__opencl_backend_query(const clv_host *host, void *user_data, const clv_backend **backend, clv_error *error) {
  static const clv_backend table = {
      .abi_version = CLV_ABI_VERSION,
      .struct_size = sizeof table,
      .name = "opencl",
      .version = CLV__OPENCL_VERSION,
      .open = clv__opencl_open,
      .close = clv__opencl_close,
      .info = device_info,
      .supports = clv__opencl_supports,
      .prefers = clv__opencl_prefers,
      .buffer_alloc = clv__opencl_buffer_alloc,
      .buffer_free = clv__opencl_buffer_free,
      .buffer_host_pointer = clv__opencl_buffer_host_pointer,
      .stream_create = clv__opencl_stream_create,
      .stream_destroy = clv__opencl_stream_destroy,
      .stream_synchronize = clv__opencl_stream_synchronize,
      .event_create = clv__opencl_event_create,
      .event_destroy = clv__opencl_event_destroy,
      .event_record = clv__opencl_event_record,
      .event_wait = clv__opencl_event_wait,
      .event_synchronize = clv__opencl_event_synchronize,
      .copy_in = clv__opencl_copy_in,
      .copy_out = clv__opencl_copy_out,
      .weight_upload = clv__opencl_weight_upload,
      .weight_release = clv__opencl_weight_release,
      .compile = compile,
      .executable_destroy = clv__opencl_executable_destroy,
      .executable_info = clv__opencl_executable_info,
      .instance_create = clv__opencl_instance_create,
      .instance_destroy = clv__opencl_instance_destroy,
      .instance_resize = instance_resize,
      .execute = clv__opencl_execute,
      .node_seconds = clv__opencl_node_seconds,
      .copy_seconds = clv__opencl_copy_seconds,
      .launch_seconds = clv__opencl_launch_seconds,
      .event_notify = clv__opencl_event_notify,
      .options = clv__opencl_options,
      .option_count = CLV__OPENCL_OPTION_COUNT,
      .list = clv__opencl_list,
      .save = &save_slots,
      .scratch = &scratch_slots,
      .capture = &capture_slots,
      .stream_stop = clv__opencl_stream_stop,
  };
  (void)host;
  (void)user_data;
  (void)error;
  *backend = &table;
  return CLV_OK;
}
