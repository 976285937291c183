/* A set of open devices: its queries and its lifetime. open.c decides which devices it contains. */
#include <string.h>

#include "base/options.h"
#include "device/open.h"

uint32_t clv_devices_count(const clv_devices *devices) {
  return devices == NULL ? 0 : devices->count;
}
const char *clv_devices_name(const clv_devices *devices, uint32_t index) {
  return index < clv_devices_count(devices) ? devices->items[index].name : NULL;
}

void clv_devices_info(const clv_devices *devices, uint32_t index, clv_device_info *info) {
  const clv_device_info none = {0};
  uint32_t struct_size = info->struct_size < sizeof *info ? info->struct_size : (uint32_t)sizeof *info;
  memcpy(info, index < clv_devices_count(devices) ? &devices->items[index].info : &none, struct_size);
  info->struct_size = struct_size;
}

void clv__devices_lock(clv_devices *devices) {
  pthread_mutex_lock(&devices->lock);
}
void clv__devices_unlock(clv_devices *devices) {
  pthread_mutex_unlock(&devices->lock);
}

uint32_t clv__devices_alignment(const clv_devices *devices, uint32_t space) {
  uint32_t most = CLV__ALIGNMENT;
  for (uint32_t d = 0; d < devices->count; ++d) {
    uint32_t alignment = devices->items[d].info.alignment_bytes;
    bool is_power = alignment > 0 && (alignment & (alignment - 1)) == 0;
    if (devices->items[d].space == space && is_power && alignment > most) most = alignment;
  }
  return most;
}

uint32_t clv__devices_find(const clv_devices *devices, const char *name) {
  for (uint32_t i = 0; i < devices->count; ++i) {
    if (strcmp(devices->items[i].name, name) == 0) return i;
  }
  return CLV__NO_ID;
}

static void init_lock(clv_devices *devices) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_init(&devices->lock, &attributes);
  pthread_mutexattr_destroy(&attributes);
}

clv_status clv_devices_open(clv_context *context, const clv_devices_options *given, clv_devices **out, clv_error *error) {
  if (context == NULL || out == NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "context and devices must not be NULL");
  *out = NULL;
  clv_devices_options options = CLV_DEVICES_OPTIONS_INIT;
  CLV__TRY(clv__options_read(&options, sizeof options, given, "CLV_DEVICES_OPTIONS_INIT", error));
  CLV__TRY(clv__options_texts(options.npu_specs, options.npu_spec_count, "descriptions of virtual NPUs", error));
  CLV__TRY(clv__options_texts(options.device_options, options.device_option_count, "device options", error));
  if (options.thread_count > CLV_MAX_THREADS) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "thread_count is %u; the most is %d", options.thread_count,
                          CLV_MAX_THREADS);
  }
  const clv_allocator *allocator = clv__context_allocator(context);
  clv_devices *devices = clv__allocate_zero(allocator, sizeof *devices);
  if (devices == NULL) return clv__error_memory(error, sizeof *devices);
  devices->context = context;
  init_lock(devices);
  clv__arena_init(&devices->arena, allocator);
  devices->spaces[0] = "host";
  devices->space_count = 1;
  clv_status status = clv__devices_open_all(devices, &options, error);
  if (status != CLV_OK) {
    clv_devices_close(devices);
    return status;
  }
  *out = devices;
  return CLV_OK;
}

static void finish_attachment(clv__attachment *attachment) {
  if (attachment->self != NULL) attachment->finish(attachment->self);
  *attachment = (clv__attachment){0};
}

static void close_devices(clv_devices *devices, bool lost) {
  for (uint32_t i = devices->count; i-- > 0;) {
    clv__device *device = &devices->items[i];
    if (clv__device_is_lost(device) == lost) device->opened_by->close(device->handle);
  }
}

void clv_devices_close(clv_devices *devices) {
  if (devices == NULL) return;
  close_devices(devices, true); /* lost devices first: they may still write to memory of the others */
  for (uint32_t k = CLV__ATTACHED_ABANDONED; k-- > 0;) finish_attachment(&devices->attachments[k]);
  close_devices(devices, false);
  for (uint32_t k = CLV__ATTACHMENT_COUNT; k-- > CLV__ATTACHED_ABANDONED;) finish_attachment(&devices->attachments[k]);
  const clv_allocator *allocator = devices->arena.allocator;
  clv__release(allocator, devices->left_out);
  pthread_mutex_destroy(&devices->lock);
  clv__arena_finish(&devices->arena);
  clv__release(allocator, devices);
}
