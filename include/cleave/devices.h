/* A set of open devices in priority order. Plans consider them in this order. */
#ifndef CLEAVE_DEVICES_H
#define CLEAVE_DEVICES_H

#include "context.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CLV_MAX_THREADS 1024 /* the most threads that the cpu device may use */

typedef struct clv_devices clv_devices;

typedef struct clv_devices_options {
  uint32_t struct_size;
  const char *list;        /* names in priority order, "npu,openvino:GPU,cpu"; or "auto"; NULL: "cpu" */
  uint32_t npu_spec_count; /* descriptions of virtual NPUs: "default", "all", the path of a JSON file, or JSON text; 0: one,
                              "default" */
  const char *const *npu_specs;
  uint32_t device_option_count; /* options as "DEVICE:KEY=VALUE", such as "npu:frequency=3" */
  const char *const *device_options;
  uint32_t thread_count; /* for the cpu device, at most CLV_MAX_THREADS; 0: one per core */
  bool no_fallback;      /* a device of the list that is not available is an error */
} clv_devices_options;
#define CLV_DEVICES_OPTIONS_INIT \
  { sizeof(clv_devices_options), NULL, 0, NULL, 0, NULL, 0, false }

/* Opens the devices of options->list.
 *
 * A name is one of:
 *   - a backend: "cpu"
 *   - a backend, a colon, and the backend's own name for the device, or its number: "openvino:GPU.0", "opencl:1"
 *   - "npu", "npu1": the first and the second virtual NPU
 *   - "gpu": the first OpenCL GPU
 * If no loaded backend has the name, the plugins are searched (context.h).
 *
 * If a device of a list reports that it is not supported here, for example because its driver or hardware is missing, the list is
 * used without it, and a line with the reason is logged at level 1. This is an error if no device is left, or if `no_fallback` is
 * set.
 *
 * "auto" opens every real device that backends and plugins find, each under the name that opens it alone. Devices that are not
 * CPUs come first, then the cpu device, then other devices that run on the CPU, as a last resort. Virtual devices and OpenCL's
 * CPU devices are opened only by name. A device that cannot be opened is skipped and the reason is logged. If an option names
 * such a device, the call fails instead.
 *
 * Errors: CLV_NOT_FOUND for a name that no backend and no plugin has (the message lists the known names); CLV_NOT_SUPPORTED for a
 * plugin that cannot be loaded, and for a device whose driver is unusable (see above); CLV_INVALID_ARGUMENT for an unknown option
 * or key (the message lists the keys that the device accepts). */
CLV_API CLV_MUST_USE clv_status clv_devices_open(clv_context *context, const clv_devices_options *options, clv_devices **devices,
                                                 clv_error *error);
/* Destroy all plans and sessions that use the set first. Accepts NULL. */
CLV_API void clv_devices_close(clv_devices *devices);

CLV_API uint32_t clv_devices_count(const clv_devices *devices);
/* The name that the device was opened by. Valid as long as the set. NULL for an index beyond the count. */
CLV_API const char *clv_devices_name(const clv_devices *devices, uint32_t index);
/* Fills `info`. Its strings are valid as long as the set. */
CLV_API void clv_devices_info(const clv_devices *devices, uint32_t index, clv_device_info *info);

#ifdef __cplusplus
}
#endif
#endif
