/* The function table of the CPU backend: the device, and host memory as buffers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include "backends/cpu/run/executable.h"
#include "backends/cpu/run/stream.h"
#include "backends/cpu/tune/tune.h"
#include "base/isa.h"
#include "base/threads.h"
#include "cpu.h"

struct clv_buffer {
  void *data;
  uint64_t size_bytes;
};

struct clv_weight {
  clv_device *device;
};

/* ---- Threads. ---- */

#ifdef _OPENMP
/* Logs, once per device, that the device runs on fewer threads than were requested. */
static void tell_refused(clv_device *device, int wanted, int available) {
  char line[160];
  if (atomic_exchange(&device->told_refused, true)) return;
  snprintf(line, sizeof line, "%s: only %d of %d threads can be created (%s): continuing with %d", device->name, available,
           wanted, strerror(clv__threads_refused(wanted)), available);
  device->host->log(device->host->self, 0, line);
}
#endif

uint32_t clv__cpu_threads_team(void) {
#ifdef _OPENMP
  return omp_in_parallel() ? 1 : (uint32_t)omp_get_max_threads();
#else
  return 1;
#endif
}

/* Binds the calling thread to the device's cores and sets OpenMP's number of threads to the device's number or, if available()
 * returns less, to that. Returns the previous number. */
static int enter(clv_device *device, int (*available)(void)) {
  int before = 0;
#ifdef _OPENMP
  before = omp_get_max_threads();
  const int wanted = device->thread_count > 0 ? device->thread_count : before;
  if (wanted != before) omp_set_num_threads(wanted);
#endif
  clv__cpu_cores_enter(device->cores); /* before available() starts threads: a thread inherits the cores of its creator */
#ifdef _OPENMP
  const int count = available();
  if (count < wanted) {
    tell_refused(device, wanted, count);
    omp_set_num_threads(count);
  }
#else
  (void)available;
#endif
  return before;
}

int clv__cpu_threads_enter_compiling(clv_device *device) {
  const int before = enter(device, clv__threads_available_later);
  const uint32_t team = clv__cpu_threads_team();
  uint32_t most = atomic_load_explicit(&device->compiled_threads, memory_order_relaxed);
  while (most < team && !atomic_compare_exchange_weak(&device->compiled_threads, &most, team)) continue;
  return before;
}

clv_status clv__cpu_threads_enter(clv_device *device, int *before, clv_error *error) {
  *before = enter(device, clv__threads_available);
  const uint32_t needed = atomic_load_explicit(&device->compiled_threads, memory_order_relaxed);
  if (!device->onednn || clv__threads_refused((int)needed) == 0) return CLV_OK;
  const uint32_t team = clv__cpu_threads_team();
  clv__cpu_threads_leave(*before);
  return clv__error_set(error, CLV_OUT_OF_MEMORY,
                        "only %u of the %u threads that the model was compiled for can be created (%s): allow the user more "
                        "processes (ulimit -u), or compile for one thread (--threads 1)",
                        team, needed, strerror(clv__threads_refused((int)needed)));
}

int clv__cpu_threads_enter_one(void) {
#ifdef _OPENMP
  const int before = omp_get_max_threads();
  if (before != 1) omp_set_num_threads(1);
  return before;
#else
  return 0;
#endif
}

/* Constants below this size are packed on one thread, which takes a few milliseconds at most. A parallel region waits for the
 * other threads twice. Each wait takes microseconds if the threads are awake on free cores, and milliseconds if another process
 * occupies the cores. */
enum { MANY_THREADS_BYTES = 4 << 20 };

int clv__cpu_threads_enter_packing(size_t size_bytes) {
#ifdef _OPENMP
  if (size_bytes < MANY_THREADS_BYTES) return clv__cpu_threads_enter_one();
  const int before = omp_get_max_threads(), available = clv__threads_available();
  if (available < before) omp_set_num_threads(available);
  return before;
#else
  (void)size_bytes;
  return 0;
#endif
}

void clv__cpu_threads_leave(int before) {
  clv__cpu_cores_leave();
  clv__cpu_threads_leave_one(before);
}

void clv__cpu_threads_leave_one(int before) {
#ifdef _OPENMP
  if (before != omp_get_max_threads()) omp_set_num_threads(before);
#else
  (void)before;
#endif
}

/* ---- The device. ---- */

static bool read_switch(const char *text, bool *on) {
  static const char *const yes[] = {"1", "on", "true", "yes"}, *const no[] = {"0", "off", "false", "no"};
  for (int i = 0; i < 4; ++i) {
    if (strcmp(text, yes[i]) == 0) return *on = true, true;
    if (strcmp(text, no[i]) == 0) return *on = false, true;
  }
  return false;
}

#define ON_OFF "on or off"
static const clv_option_info option_list[] = {
    {"profile", ON_OFF, "log the time of each step when an instance is destroyed (default: off)"},
    {"fuse", ON_OFF, "fuse several nodes into one step (default: on)"},
    {"onednn", ON_OFF, "use the kernels of oneDNN; off: use only the portable kernels (default: on)"},
    {"winograd", ON_OFF, "use Winograd's algorithm for convolutions if it is faster (default: on)"},
    {"cores", "numbers and ranges, such as 0-3,8",
     "the cores to run on, with one thread per core unless --threads is given (default: any)"},
    {"node", "the number of a NUMA node", "run on the cores of this NUMA node (default: any)"},
};

/* The host has already checked that all keys are in `option_list`. */
static clv_status read_options(clv_device *device, const clv_device_config *config, clv_error *error) {
  bool *const switches[] = {&device->profile, &device->fuse, &device->onednn, &device->winograd};
  const char *cores = NULL, *node = NULL;
  for (uint32_t i = 0; i < config->option_count; ++i) {
    const clv_option *option = &config->options[i];
    if (strcmp(option->key, "cores") == 0) cores = option->value;
    if (strcmp(option->key, "node") == 0) node = option->value;
    for (size_t k = 0; k < sizeof switches / sizeof switches[0]; ++k) {
      if (strcmp(option->key, option_list[k].key) != 0 || read_switch(option->value, switches[k])) continue;
      return clv__error_set(error, CLV_INVALID_ARGUMENT, "option %s=%.80s: expected " ON_OFF, option->key, option->value);
    }
  }
  if (cores == NULL && node == NULL) return CLV_OK;
  CLV__TRY(clv__cpu_cores_create(device->allocator, cores, node, &device->cores, error));
  if (device->thread_count == 0) device->thread_count = clv__cpu_cores_count(device->cores);
  return CLV_OK;
}

/* Opens the stored choices of --tune. Their key includes everything that affects how long a step takes. */
static clv_status open_notes(clv_device *device, clv_error *error) {
  char model[96], key[256];
  clv__cpu_model(model, sizeof model);
  snprintf(key, sizeof key, "%.96s, %.150s", model, device->fingerprint);
  return clv__cpu_notes_create(device->host, device->name, key, &device->notes, error);
}

static void describe(clv_device *device) {
  char library[96], cores[96] = "", on[112] = "";
  int threads = device->thread_count;
#ifdef _OPENMP
  if (threads == 0) threads = omp_get_max_threads();
#endif
  if (device->cores != NULL) {
    clv__cpu_cores_text(device->cores, cores, sizeof cores);
    snprintf(on, sizeof on, " on cores %s", cores);
  }
  clv__dnn_describe(library, sizeof library);
  const size_t used = strlen(library);
  snprintf(library + used, sizeof library - used, ", kernels %s", clv__isa_name(clv__isa_used()));
  snprintf(device->description, sizeof device->description, "%s, %d thread%s%.48s", library, threads, threads == 1 ? "" : "s",
           on);
  snprintf(device->fingerprint, sizeof device->fingerprint, "cpu:%s:%d:%d%d%d%s%s", library, threads, device->fuse,
           device->onednn, device->winograd, device->cores != NULL ? ":" : "", cores);
}

static void cpu_close(clv_device *device) {
  if (device == NULL) return;
  clv__cpu_notes_destroy(device->notes);
  clv__cpu_packs_destroy(device->packs);
  clv__cpu_cores_destroy(device->allocator, device->cores);
  clv__dnn_close(device->dnn);
  clv__release(device->allocator, device);
}

static clv_status cpu_open(void *self, const clv_host *host, const clv_device_config *config, clv_device **device,
                           clv_error *error) {
  (void)self;
  *device = NULL;
  if (config->ordinal != 0) {
    return clv__error_set(error, CLV_NOT_FOUND, "there is only one CPU device, so number %u does not exist", config->ordinal);
  }
  const char *rest = config->name != NULL ? strchr(config->name, ':') : NULL;
  if (rest != NULL && (rest[1] == '\0' || strspn(rest + 1, "0") != strlen(rest + 1))) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT,
                          "'%.80s' is not a device number; give options separately (--device-option cpu:KEY=VALUE)", rest + 1);
  }
  clv_device *made = clv__allocate_zero(host->allocator, sizeof *made);
  if (made == NULL) return clv__error_memory(error, sizeof *made);
  made->host = host;
  made->allocator = host->allocator;
  made->fuse = made->onednn = made->winograd = true;
  made->thread_count = config->thread_count <= 4096 ? (int)config->thread_count : 4096;
  snprintf(made->name, sizeof made->name, "%s", config->name != NULL ? config->name : "cpu");
  clv_status status = read_options(made, config, error);
  if (status == CLV_OK) status = clv__dnn_open(made->allocator, &made->dnn, error);
  if (status == CLV_OK) status = clv__cpu_packs_create(made->allocator, &made->packs, error);
  if (status == CLV_OK) {
    describe(made);
    status = open_notes(made, error);
  }
  if (status != CLV_OK) {
    cpu_close(made);
    return status;
  }
  *device = made;
  return CLV_OK;
}

static void cpu_info(clv_device *device, clv_device_info *info) {
  const uint32_t size = info->struct_size;
  memset(info, 0, sizeof *info);
  info->struct_size = size;
  info->kind = "cpu";
  info->description = device->description;
  info->fingerprint = device->fingerprint;
  info->memory_space = "host";
  info->alignment_bytes = CLV__ALIGNMENT;
  info->is_synchronous = true;
  info->keeps_quantised = device->onednn && device->fuse && clv__dnn_sums_integers();
  info->silicon = "cpu";
}

/* ---- Memory. ---- */

static clv_status buffer_alloc(clv_device *device, uint64_t size_bytes, clv_buffer **buffer, clv_error *error) {
  *buffer = NULL;
  if (size_bytes > SIZE_MAX / 2) return clv__error_memory(error, SIZE_MAX);
  clv_buffer *made = clv__allocate_zero(device->allocator, sizeof *made);
  if (made == NULL) return clv__error_memory(error, sizeof *made);
  made->data = clv__allocate(device->allocator, (size_t)size_bytes);
  made->size_bytes = size_bytes;
  if (made->data == NULL) {
    clv__release(device->allocator, made);
    return clv__error_memory(error, (size_t)size_bytes);
  }
  clv__memory_sparse(made->data, (size_t)size_bytes); /* no huge pages: oneDNN requests more scratch than it touches */
  *buffer = made;
  return CLV_OK;
}

static void buffer_free(clv_device *device, clv_buffer *buffer) {
  if (buffer == NULL) return;
  clv__release(device->allocator, buffer->data);
  clv__release(device->allocator, buffer);
}

static void *buffer_host_pointer(clv_device *device, clv_buffer *buffer) {
  (void)device;
  return buffer->data;
}

void *clv__cpu_address(const clv_binding *binding) {
  if (binding->buffer == NULL) return binding->type.data;
  return (uint8_t *)binding->buffer->data + binding->offset_bytes;
}

void *clv__cpu_buffer_part(const clv_buffer *buffer, uint64_t offset_bytes, uint64_t size_bytes) {
  if (offset_bytes > buffer->size_bytes || size_bytes > buffer->size_bytes - offset_bytes) return NULL;
  return (uint8_t *)buffer->data + offset_bytes;
}

static clv_status copy_in(clv_device *device, clv_stream *stream, clv_buffer *to, uint64_t to_offset, const void *from,
                          uint64_t size_bytes, clv_error *error) {
  (void)device;
  (void)stream;
  void *part = clv__cpu_buffer_part(to, to_offset, size_bytes);
  if (part == NULL) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT,
                          "a copy of %llu bytes at offset %llu does not fit the buffer of %llu bytes",
                          (unsigned long long)size_bytes, (unsigned long long)to_offset, (unsigned long long)to->size_bytes);
  }
  if (size_bytes > 0) memcpy(part, from, (size_t)size_bytes);
  return CLV_OK;
}

static clv_status copy_out(clv_device *device, clv_stream *stream, void *to, clv_buffer *from, uint64_t from_offset,
                           uint64_t size_bytes, clv_error *error) {
  (void)device;
  (void)stream;
  const void *part = clv__cpu_buffer_part(from, from_offset, size_bytes);
  if (part == NULL) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT,
                          "a copy of %llu bytes at offset %llu does not fit the buffer of %llu bytes",
                          (unsigned long long)size_bytes, (unsigned long long)from_offset, (unsigned long long)from->size_bytes);
  }
  if (size_bytes > 0) memcpy(to, part, (size_t)size_bytes);
  return CLV_OK;
}

/* ---- Weights. Executables contain their packed constants, so weight objects are empty. ---- */

static clv_status weight_upload(clv_device *device, const char *id, const clv_tensor *data, clv_weight **weight,
                                clv_error *error) {
  (void)id;
  (void)data;
  *weight = clv__allocate_zero(device->allocator, sizeof **weight);
  if (*weight == NULL) return clv__error_memory(error, sizeof **weight);
  (*weight)->device = device;
  return CLV_OK;
}

static void weight_release(clv_device *device, clv_weight *weight) {
  clv__release(device->allocator, weight);
}

static const clv_scratch_slots scratch_slots = {
    .struct_size = sizeof scratch_slots,
    .size_bytes = clv__cpu_instance_scratch_bytes,
    .bind = clv__cpu_instance_bind_scratch,
};

static const clv_capture_slots capture_slots = {
    .struct_size = sizeof capture_slots,
    .begin = clv__cpu_capture_begin,
    .end = clv__cpu_capture_end,
    .launch = clv__cpu_captured_launch,
    .bind = clv__cpu_captured_bind,
    .destroy = clv__cpu_captured_destroy,
    .size_bytes = clv__cpu_captured_bytes,
};

static const clv_timing_slots timing_slots = {
    .struct_size = sizeof timing_slots,
    .enable = clv__cpu_instance_time_steps,
    .steps = clv__cpu_instance_steps,
};

static const clv_backend cpu_backend = {
    .abi_version = CLV_ABI_VERSION,
    .struct_size = sizeof(clv_backend),
    .name = "cpu",
    .version = "1",
    .open = cpu_open,
    .close = cpu_close,
    .info = cpu_info,
    .supports = clv__cpu_supports,
    .buffer_alloc = buffer_alloc,
    .buffer_free = buffer_free,
    .buffer_host_pointer = buffer_host_pointer,
    .stream_create = clv__cpu_stream_create,
    .stream_destroy = clv__cpu_stream_destroy,
    .stream_synchronize = clv__cpu_stream_synchronize,
    .event_create = clv__cpu_event_create,
    .event_destroy = clv__cpu_event_destroy,
    .event_record = clv__cpu_event_record,
    .event_wait = clv__cpu_event_wait,
    .event_synchronize = clv__cpu_event_synchronize,
    .copy_in = copy_in,
    .copy_out = copy_out,
    .weight_upload = weight_upload,
    .weight_release = weight_release,
    .compile = clv__cpu_compile,
    .executable_destroy = clv__cpu_executable_destroy,
    .executable_info = clv__cpu_executable_info,
    .instance_create = clv__cpu_instance_create,
    .instance_destroy = clv__cpu_instance_destroy,
    .instance_resize = clv__cpu_instance_resize,
    .execute = clv__cpu_execute,
    .event_notify = clv__cpu_event_notify,
    .stream_stop = clv__cpu_stream_stop,
    .options = option_list,
    .option_count = sizeof option_list / sizeof *option_list,
    .scratch = &scratch_slots,
    .capture = &capture_slots,
    .timing = &timing_slots,
};

clv_status clv__cpu_backend_query(const clv_host *host, void *user_data, const clv_backend **backend, clv_error *error) {
  (void)user_data;
  *backend = NULL;
  if (host->abi_version != CLV_ABI_VERSION) {
    return clv__error_set(error, CLV_NOT_SUPPORTED, "the CPU backend has plugin ABI version %u, but the host has version %u",
                          CLV_ABI_VERSION, host->abi_version);
  }
  *backend = &cpu_backend;
  return CLV_OK;
}
