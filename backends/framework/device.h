/* Shared by the files of this folder: a framework's device, its objects, its verdicts. The frameworks themselves use only
 * framework.h. */
#ifndef CLEAVE_BACKENDS_FRAMEWORK_DEVICE_H
#define CLEAVE_BACKENDS_FRAMEWORK_DEVICE_H

#include <pthread.h>

#include "backends/common/objects.h"
#include "framework.h"
#include "verdicts.h"

/* State shared by the streams of an asynchronous device (queue.h). */
typedef struct clv__framework_queue {
  pthread_mutex_t lock;   /* guards everything below, and the contents of streams and events */
  pthread_cond_t changed; /* signalled after each command, and when the device is closed */
  bool closing;
  bool abandoned;   /* the device is closed: no further command runs, and callers that still wait return an error */
  uint32_t waiting; /* number of callers that wait for `changed` */
  uint32_t working; /* number of threads of streams that are running */
  struct clv__framework_notice *unused;
} clv__framework_queue;

struct clv_device {
  const clv__framework *framework;
  const clv_host *host;
  const clv_allocator *allocator;
  void *handle; /* the device as the framework's device_open() returned it */
  clv__framework_device_info info;
  bool is_async;
  clv__objects objects;
  clv__framework_queue queue;
  clv__verdicts verdicts;
  char verdicts_key[512]; /* Cleave's version, the framework's name and version, and the fingerprint */
};

/* ---- Devices (open.c). `library` is what the framework's load() returned. ---- */
clv_status clv__framework_open(const clv__framework *framework, void *library, const clv_host *host,
                               const clv_device_config *config, clv_device **device, clv_error *error);
void clv__framework_close(clv_device *device);
void clv__framework_info(clv_device *device, clv_device_info *info);

/* ---- Memory (memory.c) ---- */
clv_status clv__framework_buffer_alloc(clv_device *device, uint64_t size_bytes, clv_buffer **buffer, clv_error *error);
void clv__framework_buffer_free(clv_device *device, clv_buffer *buffer);
void *clv__framework_buffer_host_pointer(clv_device *device, clv_buffer *buffer);
clv_status clv__framework_copy_in(clv_device *device, clv_stream *stream, clv_buffer *to, uint64_t to_offset, const void *from,
                                  uint64_t size_bytes, clv_error *error);
clv_status clv__framework_copy_out(clv_device *device, clv_stream *stream, void *to, clv_buffer *from, uint64_t from_offset,
                                   uint64_t size_bytes, clv_error *error);
clv_status clv__framework_weight_upload(clv_device *device, const char *id, const clv_tensor *data, clv_weight **weight,
                                        clv_error *error);
void clv__framework_weight_release(clv_device *device, clv_weight *weight);
/* Copies `binding` to `resolved`, but with the value's address in type.data instead of a buffer. Returns CLV_INVALID_ARGUMENT
 * if the value does not fit the buffer, or has no memory. */
clv_status clv__framework_binding_resolve(const clv_binding *binding, clv_binding *resolved, clv_error *error);

/* ---- Executables and instances (model.c) ---- */
clv_status clv__framework_compile(clv_device *device, const clv_graph_view *graph, const clv_compile_options *options,
                                  clv_executable **executable, clv_error *error);
void clv__framework_executable_destroy(clv_device *device, clv_executable *executable);
void clv__framework_executable_info(clv_device *device, clv_executable *executable, clv_executable_info *info);
clv_status clv__framework_executable_save(clv_device *device, clv_executable *executable, clv_write_fn write, void *cookie,
                                          clv_error *error);
clv_status clv__framework_executable_load(clv_device *device, const void *data, size_t size_bytes, clv_executable **executable,
                                          clv_error *error);
clv_status clv__framework_instance_create(clv_device *device, clv_executable *executable, const clv_tensor *inputs,
                                          uint32_t input_count, clv_weight *const *weights, uint32_t weight_count,
                                          clv_instance **instance, clv_error *error);
void clv__framework_instance_destroy(clv_device *device, clv_instance *instance);
clv_status clv__framework_instance_resize(clv_device *device, clv_instance *instance, const clv_tensor *inputs,
                                          uint32_t input_count, clv_error *error);
clv_status clv__framework_execute(clv_device *device, clv_instance *instance, clv_stream *stream, clv_execute_args *args,
                                  clv_error *error);

/* ---- Verdicts (supports.c) ---- */
void clv__framework_supports(clv_device *device, const clv_graph_view *graph, uint32_t node, clv_verdict *verdict);

#endif
