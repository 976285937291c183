/* Opens a device from its description, and closes it with all objects that still exist. Also allocates its buffers. */
#include "device.h"

#include <stdio.h>
#include <string.h>

#include "backends/common/host.h"
#include "base/error.h"
#include "base/hash.h"
#include "captured.h"
#include "instance.h"
#include "program.h"
#include "vnpu.h"

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

clv_status clv__vnpu_device_open(void *self, const clv_host *host, const clv_device_config *config, clv_device **out,
                                 clv_error *error) {
  (void)self;
  *out = NULL;
  const clv_allocator *allocator = host->allocator;
  clv_device *device = clv__allocate_zero(allocator, sizeof *device);
  if (device == NULL) return clv__error_memory(error, sizeof *device);
  device->host = host;
  device->allocator = allocator;
  clv_status status = clv__vnpu_spec_open(allocator, clv__vnpu_option_spec(config->options, config->option_count),
                                          config->options, config->option_count, &device->spec, error);
  if (status != CLV_OK) {
    clv__release(allocator, device);
    return status;
  }
  const char *name = config->name != NULL && config->name[0] != '\0' ? config->name : "npu";
  bool named = device->spec.memory_space[0] != '\0';
  bool shared = named && strcmp(device->spec.memory_space, "host") != 0; /* host memory is shared without this flag */
  /* The space "host" is host memory, which a device that is merely named "host" must not get. */
  const char *space = named ? device->spec.memory_space : strcmp(name, "host") == 0 ? "npu" : name;
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
  if (device->spec.is_guarded) clv__vnpu_space_guard(device->space);
  clv__vnpu_queue_init(&device->queue, allocator, device->space, &device->spec.speed, config->thread_count);
  device->queue.hang_at = device->spec.hang_at;
  device->queue.fail_at = device->spec.fail_at;
  pthread_mutex_init(&device->live_lock, NULL);
  describe(device);
  *out = device;
  return CLV_OK;
}

void clv__vnpu_device_info(clv_device *device, clv_device_info *info) {
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
      .silicon = spec->speed.given ? NULL : "cpu", /* with a speed model it simulates a chip other than the CPU */
      .computes_views = spec->computes_views,
  };
  memcpy(info, &filled, info->struct_size < sizeof filled ? info->struct_size : sizeof filled);
}

/* ---- Objects of a device ---- */

clv_status clv__vnpu_buffer_alloc(clv_device *device, uint64_t size_bytes, clv_buffer **out, clv_error *error) {
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

void clv__vnpu_buffer_free(clv_device *device, clv_buffer *buffer) {
  if (buffer == NULL) return;
  clv__vnpu_live_remove(device, &buffer->live);
  clv__vnpu_space_free(device->space, buffer->address, buffer->size_bytes);
  clv__release(device->allocator, buffer);
}

void clv__vnpu_buffer_discard(clv_device *device, clv_buffer *buffer) {
  clv__vnpu_space_discard(device->space, buffer->address, buffer->size_bytes);
}

void *clv__vnpu_buffer_host_pointer(clv_device *device, clv_buffer *buffer) {
  return clv__vnpu_space_is_host(device->space) ? (void *)(uintptr_t)buffer->address : NULL;
}

void clv__vnpu_executable_free(clv_device *device, clv_executable *executable) {
  if (executable == NULL) return;
  clv__vnpu_live_remove(device, &executable->live);
  clv__vnpu_program_destroy(executable);
}

void clv__vnpu_instance_free(clv_device *device, clv_instance *instance) {
  if (instance == NULL) return;
  clv__vnpu_live_remove(device, &instance->live);
  clv__vnpu_instance_destroy(instance);
}

/* Destroys all objects that still exist. If the device hung, the host has not destroyed them, and must not do so later. */
void clv__vnpu_device_close(clv_device *device) {
  if (device == NULL) return;
  clv__vnpu_queue_stop(&device->queue);
  while (device->captured != NULL) clv__vnpu_captured_destroy((clv_captured *)device->captured);
  while (device->instances != NULL) clv__vnpu_instance_free(device, (clv_instance *)device->instances);
  while (device->executables != NULL) clv__vnpu_executable_free(device, (clv_executable *)device->executables);
  while (device->buffers != NULL) clv__vnpu_buffer_free(device, (clv_buffer *)device->buffers);
  clv__vnpu_weights_finish(device);
  clv__vnpu_queue_finish(&device->queue);
  clv__vnpu_space_close(device->space);
  clv__vnpu_spec_finish(&device->spec);
  pthread_mutex_destroy(&device->live_lock);
  clv__release(device->allocator, device);
}
