/* Opens a device: reads its options and its capabilities. */
#include <stdio.h>

#include "backends/opencl/run/stream.h"
#include "base/hash.h"
#include "device.h"
#include "programs.h"

/* ---- Queries to the driver ---- */

/* Reads a string that describes the device, or the platform if `device` is NULL. The string is terminated, and empty if the
 * driver returns none or it does not fit. */
static void ask_text(const clv__opencl_icd *cl, cl_platform_id platform, cl_device_id device, cl_uint what, char *text,
                     size_t size_bytes) {
  size_t length = 0;
  text[0] = '\0';
  cl_int code = device == NULL ? cl->clGetPlatformInfo(platform, what, size_bytes - 1, text, &length)
                               : cl->clGetDeviceInfo(device, what, size_bytes - 1, text, &length);
  if (code != CL_SUCCESS || length >= size_bytes) length = 0;
  text[length] = '\0';
}

static uint64_t ask_number(const clv_device *device, cl_device_info what, size_t size_bytes) {
  uint8_t bytes[8] = {0};
  uint32_t small;
  uint64_t large;
  if (device->cl->clGetDeviceInfo(device->id, what, size_bytes, bytes, NULL) != CL_SUCCESS) return 0;
  memcpy(&small, bytes, sizeof small);
  memcpy(&large, bytes, sizeof large);
  return size_bytes == 4 ? small : large;
}

/* Finds a whole word in a list separated by spaces. */
static bool has_word(const char *list, const char *word) {
  size_t length = strlen(word);
  for (const char *at = list; (at = strstr(at, word)) != NULL; at += length) {
    if ((at == list || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0')) return true;
  }
  return false;
}

static bool has_extension(const clv_device *device, const char *name) {
  size_t size_bytes = 0;
  if (device->cl->clGetDeviceInfo(device->id, CL_DEVICE_EXTENSIONS, 0, NULL, &size_bytes) != CL_SUCCESS) return false;
  char *list = clv__allocate_zero(device->allocator, size_bytes + 1);
  if (list == NULL) return false;
  ask_text(device->cl, device->platform, device->id, CL_DEVICE_EXTENSIONS, list, size_bytes + 1);
  bool has = has_word(list, name);
  clv__release(device->allocator, list);
  return has;
}

/* ---- Options ---- */

#define ON_OFF "on or off"
const clv_option_info clv__opencl_options[CLV__OPENCL_OPTION_COUNT] = {
    {"capture", "auto, buffer, list or off",
     "buffer: capture launches in the driver's command buffers; list: in a list kept by Cleave; auto: in the faster of the two; "
     "off: do not capture (default: auto)"},
    {"memory", "auto or own", "own: copy data to the device even if it could use the host's memory (default: auto)"},
    {"staging", "auto, on or off",
     "make large copies through pinned host memory; auto: if the device has its own memory (default: auto)"},
    {"kernels", "auto or gpu", "gpu: use the kernels for GPUs even on a CPU (default: auto)"},
    {"f16", ON_OFF, "accept tensors of f16 (default: on)"},
    {"fuse", ON_OFF, "fuse several nodes into one kernel (default: on)"},
    {"binaries", ON_OFF, "include the driver's binaries in saved executables (default: on)"},
};

static clv_status wrong_value(const clv_option *option, const char *values, clv_error *error) {
  return clv__error_set(error, CLV_INVALID_ARGUMENT, "option %s=%.80s: expected %s", option->key, option->value, values);
}

static clv_status read_switch(const clv_option *option, bool *value, clv_error *error) {
  if (strcmp(option->value, "on") == 0 || strcmp(option->value, "1") == 0)
    *value = true;
  else if (strcmp(option->value, "off") == 0 || strcmp(option->value, "0") == 0)
    *value = false;
  else
    return wrong_value(option, ON_OFF, error);
  return CLV_OK;
}

typedef struct choices {
  bool capture, own_memory, gpu_kernels;
  bool staging, says_staging;
} choices;

/* Sets `value` to true if the option is `word`, and to false if it is "auto". Fails otherwise. */
static clv_status read_choice(const clv_option *option, const char *word, bool *value, clv_error *error) {
  *value = strcmp(option->value, word) == 0;
  if (*value || strcmp(option->value, "auto") == 0) return CLV_OK;
  char values[32];
  snprintf(values, sizeof values, "auto or %s", word);
  return wrong_value(option, values, error);
}

/* Reads one device option. The host has already checked that its key is one of the keys that the backend declares. */
static clv_status read_option(clv_device *device, const clv_option *option, choices *chosen, clv_error *error) {
  const char *key = option->key, *value = option->value;
  if (strcmp(key, "f16") == 0) return read_switch(option, &device->half, error);
  if (strcmp(key, "fuse") == 0) return read_switch(option, &device->fuse, error);
  if (strcmp(key, "binaries") == 0) return read_switch(option, &device->binaries, error);
  if (strcmp(key, "memory") == 0) return read_choice(option, "own", &chosen->own_memory, error);
  if (strcmp(key, "staging") == 0) {
    chosen->says_staging = strcmp(value, "auto") != 0;
    return chosen->says_staging && read_switch(option, &chosen->staging, NULL) != CLV_OK
               ? wrong_value(option, "auto, on or off", error)
               : CLV_OK;
  }
  if (strcmp(key, "kernels") == 0) return read_choice(option, "gpu", &chosen->gpu_kernels, error);
  static const char *const words[] = {"auto", "buffer", "list"};
  chosen->capture = strcmp(value, "off") != 0;
  if (!chosen->capture) return CLV_OK;
  for (uint32_t i = 0; i < 3; ++i) {
    if (strcmp(value, words[i]) != 0) continue;
    device->capture = (clv__opencl_capture)i;
    return CLV_OK;
  }
  return wrong_value(option, clv__opencl_options[0].values, error);
}

/* ---- Capabilities ---- */

static void find_commands(clv_device *device) {
  if (!has_extension(device, "cl_khr_command_buffer")) return;
  cl_command_queue_properties required = 0;
  device->cl->clGetDeviceInfo(device->id, CL_DEVICE_COMMAND_BUFFER_REQUIRED_QUEUE_PROPERTIES_KHR, sizeof required, &required,
                              NULL);
  if (required != 0) return; /* this backend's queues have no properties: they are in order */
  clv__opencl_commands found_commands;
#define FIND(field, name)                                                                                          \
  found_commands.field = (name##_fn)device->cl->clGetExtensionFunctionAddressForPlatform(device->platform, #name); \
  if (found_commands.field == NULL) return;
  FIND(create, clCreateCommandBufferKHR)
  FIND(finalize, clFinalizeCommandBufferKHR)
  FIND(release, clReleaseCommandBufferKHR)
  FIND(enqueue, clEnqueueCommandBufferKHR)
  FIND(kernel, clCommandNDRangeKernelKHR)
  FIND(copy, clCommandCopyBufferKHR)
#undef FIND
  device->commands = found_commands;
}

static void ask_traits(clv_device *device, const choices *chosen) {
  clv__opencl_traits *traits = &device->traits;
  traits->is_cpu = clv__opencl_rank(device->type) == 2 && !chosen->gpu_kernels;
  traits->has_half = has_extension(device, "cl_khr_fp16");
  traits->has_double = has_extension(device, "cl_khr_fp64");
  traits->compute_units = (uint32_t)ask_number(device, CL_DEVICE_MAX_COMPUTE_UNITS, 4);
  traits->max_group = (uint32_t)ask_number(device, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof(size_t));
  if (traits->max_group == 0) traits->max_group = 1;
  uint32_t group = traits->is_cpu ? 256 : 128;
  while (group > traits->max_group) group /= 2;
  traits->group_1d = group;
  traits->local_bytes = ask_number(device, CL_DEVICE_LOCAL_MEM_SIZE, 8);
  traits->max_buffer_bytes = ask_number(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, 8);
  device->memory_bytes = ask_number(device, CL_DEVICE_GLOBAL_MEM_SIZE, 8);
  device->is_unified = ask_number(device, CL_DEVICE_HOST_UNIFIED_MEMORY, 4) != 0;
  device->alignment_bytes = (size_t)ask_number(device, CL_DEVICE_MEM_BASE_ADDR_ALIGN, 4) / 8;
  if (device->alignment_bytes < CLV__ALIGNMENT) device->alignment_bytes = CLV__ALIGNMENT;
  size_t power = CLV__ALIGNMENT; /* force a power of two, whatever the driver reports */
  while (power < device->alignment_bytes && power < 65536) power *= 2;
  device->alignment_bytes = power;
}

/* A hash of all kernel sources. Executables saved with other sources are rejected, even if the version is the same. */
static uint64_t sources_hash(void) {
  uint64_t hash = UINT64_C(14695981039346656037);
  for (const clv__opencl_source *s = clv__opencl_sources; s->name != NULL; ++s) {
    for (size_t i = 0; i < s->size_bytes; ++i) hash = (hash ^ (uint8_t)s->text[i]) * UINT64_C(1099511628211);
  }
  return hash;
}

static const char *switch_text(bool on) {
  return on ? "on" : "off";
}

/* Adds one of the driver's texts to a digest. The text is not truncated, because two drivers may differ only at its end. */
static clv_status digest(const clv_device *device, cl_platform_id platform, cl_device_id id, cl_uint what, clv__hasher *hasher,
                         clv_error *error) {
  size_t size_bytes = 0;
  cl_int code = id == NULL ? device->cl->clGetPlatformInfo(platform, what, 0, NULL, &size_bytes)
                           : device->cl->clGetDeviceInfo(id, what, 0, NULL, &size_bytes);
  if (code != CL_SUCCESS) size_bytes = 0;
  char *text = clv__allocate_zero(device->allocator, size_bytes + 1);
  if (text == NULL) return clv__error_memory(error, size_bytes + 1);
  ask_text(device->cl, platform, id, what, text, size_bytes + 1);
  clv__hasher_string(hasher, text);
  clv__release(device->allocator, text);
  return CLV_OK;
}

/* Devices with the same fingerprint share saved executables. So the fingerprint contains everything that executables depend on.
 * The driver's texts are included as a digest. */
static clv_status fingerprint(clv_device *device, const choices *chosen, clv_error *error) {
  static const cl_device_info asked[] = {CL_DEVICE_NAME, CL_DEVICE_VENDOR, CL_DEVICE_VERSION, CL_DRIVER_VERSION};
  clv__hasher hasher;
  clv__hash hash;
  char name[64], text[2 * CLV__HASH_BYTES + 1];
  clv__hasher_init(&hasher);
  CLV__TRY(digest(device, device->platform, NULL, CL_PLATFORM_VERSION, &hasher, error));
  for (size_t i = 0; i < sizeof asked / sizeof *asked; ++i)
    CLV__TRY(digest(device, device->platform, device->id, asked[i], &hasher, error));
  clv__hasher_finish(&hasher, &hash);
  clv__hash_text(&hash, text);
  ask_text(device->cl, device->platform, device->id, CL_DEVICE_NAME, name, sizeof name);
  snprintf(device->fingerprint, sizeof device->fingerprint,
           "opencl-" CLV__OPENCL_VERSION "|%s|%s|f16=%s fuse=%s binaries=%s memory=%s kernels=%s sources=%016llx", name, text,
           switch_text(device->half), switch_text(device->fuse), switch_text(device->binaries),
           chosen->own_memory ? "own" : "auto", device->traits.is_cpu ? "cpu" : "gpu", (unsigned long long)sources_hash());
  return CLV_OK;
}

static void describe(clv_device *device) {
  char name[128], driver[96];
  ask_text(device->cl, device->platform, device->id, CL_DEVICE_NAME, name, sizeof name);
  ask_text(device->cl, device->platform, device->id, CL_DRIVER_VERSION, driver, sizeof driver);
  snprintf(device->description, sizeof device->description, "%s, %u units, %.1f GiB (%s)", name, device->traits.compute_units,
           (double)device->memory_bytes / (1024.0 * 1024 * 1024), driver);
  /* All devices that use host memory are in the memory space "host". Every other open device has its own context, and so a memory
   * space of its own. That space has the device's name, unless the name is "host". */
  if (device->shares_host)
    snprintf(device->space, sizeof device->space, "host");
  else
    snprintf(device->space, sizeof device->space, "%s", strcmp(device->name, "host") == 0 ? "opencl" : device->name);
}

static clv_status open_context(clv_device *device, clv_error *error) {
  cl_int code;
  const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM, (cl_context_properties)device->platform, 0};
  device->context = device->cl->clCreateContext(properties, 1, &device->id, NULL, NULL, &code);
  if (device->context == NULL) return clv__opencl_failed(error, "clCreateContext", code);
  device->service = device->cl->clCreateCommandQueue(device->context, device->id, 0, &code);
  return device->service == NULL ? clv__opencl_failed(error, "clCreateCommandQueue", code) : CLV_OK;
}

static clv_status open_device(clv_device *device, const clv_device_config *config, clv_error *error) {
  choices chosen = {.capture = true};
  for (uint32_t i = 0; i < config->option_count; ++i) CLV__TRY(read_option(device, &config->options[i], &chosen, error));
  CLV__TRY(clv__opencl_icd_open(&device->cl, error));
  CLV__TRY(clv__opencl_choose(device, config->ordinal, error));
  if (ask_number(device, CL_DEVICE_COMPILER_AVAILABLE, 4) == 0) {
    return clv__error_set(error, CLV_NOT_SUPPORTED, "the driver cannot compile OpenCL C (CL_DEVICE_COMPILER_AVAILABLE)");
  }
  ask_traits(device, &chosen);
  device->shares_host = device->is_unified && device->traits.is_cpu && !chosen.own_memory;
  device->stages = !device->shares_host && (chosen.says_staging ? chosen.staging : !device->is_unified);
  device->can_capture = chosen.capture;
  find_commands(device);
  if (device->capture == CLV__OPENCL_CAPTURE_BUFFER && device->commands.create == NULL) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT,
                          "option capture=buffer: the driver has no cl_khr_command_buffer for in-order queues");
  }
  describe(device);
  CLV__TRY(fingerprint(device, &chosen, error));
  clv__opencl_speed_init(device);
  return open_context(device, error);
}

clv_status clv__opencl_open(void *self, const clv_host *host, const clv_device_config *config, clv_device **out,
                            clv_error *error) {
  (void)self;
  *out = NULL;
  clv_device *device = clv__allocate_zero(host->allocator, sizeof *device);
  if (device == NULL) return clv__error_memory(error, sizeof *device);
  device->host = host;
  device->allocator = host->allocator;
  device->fuse = device->half = device->binaries = true;
  clv__objects_init(&device->objects, host->allocator, device);
  snprintf(device->name, sizeof device->name, "%s", config->name != NULL && config->name[0] != '\0' ? config->name : "opencl");
  pthread_mutex_init(&device->lock, NULL);
  pthread_mutex_init(&device->service_lock, NULL);
  pthread_mutex_init(&device->build_lock, NULL);
  pthread_mutex_init(&device->staging_lock, NULL);
  clv_status status = open_device(device, config, error);
  if (status != CLV_OK) {
    clv__opencl_close(device);
    return status;
  }
  *out = device;
  return CLV_OK;
}

void clv__opencl_close(clv_device *device) {
  if (device == NULL) return;
  const clv__opencl_icd *cl = device->cl;
  clv__objects_finish(&device->objects); /* destroys what the host has not destroyed, newest first */
  clv__opencl_programs_finish(device);
  clv__opencl_notices_finish(device);
  if (device->service != NULL) cl->clReleaseCommandQueue(device->service);
  if (device->context != NULL) cl->clReleaseContext(device->context);
  pthread_mutex_destroy(&device->staging_lock);
  pthread_mutex_destroy(&device->build_lock);
  pthread_mutex_destroy(&device->service_lock);
  pthread_mutex_destroy(&device->lock);
  clv__release(device->allocator, device);
}
