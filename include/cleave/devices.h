/* A set of open devices, in the order of priority in which plans consider them. */
#ifndef CLEAVE_DEVICES_H
#define CLEAVE_DEVICES_H

#include "context.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clv_devices clv_devices;

typedef struct clv_devices_options {
  uint32_t struct_size;
  const char *list;        /* names in the order of priority: "npu,openvino:GPU,cpu"; or "auto"; NULL: "cpu" */
  uint32_t npu_spec_count; /* virtual NPUs by description: "default", "all" or a file; none: "default" */
  const char *const *npu_specs;
  uint32_t device_option_count; /* "npu:frequency=3" */
  const char *const *device_options;
  uint32_t thread_count; /* of the cpu device; 0: as many as there are cores */
} clv_devices_options;
#define CLV_DEVICES_OPTIONS_INIT \
  { sizeof(clv_devices_options), NULL, 0, NULL, 0, NULL, 0 }

/* Opens the devices of options->list.
 *
 * A name is a backend's ("cpu"), or a backend's and what it calls its device, or its number, behind a colon ("openvino:GPU.0",
 * "opencl:1"); "npu" is the first virtual NPU, "npu1" the second, "gpu" the first GPU of OpenCL. A backend that is not there is
 * looked for among the plugins (context.h).
 *
 * "auto" is every real device that backends and plugins find, each by the name that opens it alone: those that are no CPU, then
 * the cpu device, then what else runs on the CPU, as the last resort. Virtual devices, and OpenCL's of the CPU, come only by
 * name. What cannot be opened is left out, and the reason logged, but for a device that one of the options names.
 *
 * Errors: CLV_NOT_FOUND for a name that no backend and no plugin has (the message lists those there are), CLV_NOT_SUPPORTED for a
 * device whose driver is not usable, and for a plugin that cannot be loaded, CLV_INVALID_ARGUMENT for an unknown option or key
 * (the message lists what the device knows). */
CLV_API CLV_MUST_USE clv_status clv_devices_open(clv_context *context, const clv_devices_options *options, clv_devices **devices,
                                                 clv_error *error);
/* Plans and sessions made with the set must have been destroyed before. Accepts NULL. */
CLV_API void clv_devices_close(clv_devices *devices);

CLV_API uint32_t clv_devices_count(const clv_devices *devices);
/* The name it was opened by. Lives as long as the set. NULL for an index beyond the count. */
CLV_API const char *clv_devices_name(const clv_devices *devices, uint32_t index);
/* Fills `info`; strings live as long as the set. */
CLV_API void clv_devices_info(const clv_devices *devices, uint32_t index, clv_device_info *info);

#ifdef __cplusplus
}
#endif
#endif
