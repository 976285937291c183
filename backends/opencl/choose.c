/* Finds the OpenCL devices of all platforms, and chooses one. */
#include <stdio.h>

#include "device.h"

enum { MAX_PLATFORMS = 16, MAX_DEVICES = 64 };

typedef struct found {
  cl_platform_id platform;
  cl_device_id device;
  cl_device_type type;
} found;

int clv__opencl_rank(cl_device_type type) {
  return (type & CL_DEVICE_TYPE_GPU) != 0 ? 0 : (type & CL_DEVICE_TYPE_CPU) != 0 ? 2 : 1;
}

/* Lists the devices of all platforms, GPUs first and CPUs last, otherwise in the loader's order. */
static uint32_t list_devices(const clv__opencl_icd *cl, found *list) {
  cl_platform_id platforms[MAX_PLATFORMS];
  cl_uint platform_count = 0;
  uint32_t count = 0;
  if (cl->clGetPlatformIDs(MAX_PLATFORMS, platforms, &platform_count) != CL_SUCCESS) return 0;
  if (platform_count > MAX_PLATFORMS) platform_count = MAX_PLATFORMS;
  for (int rank = 0; rank < 3; ++rank) {
    for (cl_uint p = 0; p < platform_count; ++p) {
      cl_device_id devices[MAX_DEVICES];
      cl_uint device_count = 0;
      if (cl->clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, MAX_DEVICES, devices, &device_count) != CL_SUCCESS) continue;
      for (cl_uint d = 0; d < device_count && d < MAX_DEVICES && count < MAX_DEVICES; ++d) {
        cl_device_type type = 0;
        cl_bool available = CL_FALSE;
        cl->clGetDeviceInfo(devices[d], CL_DEVICE_TYPE, sizeof type, &type, NULL);
        cl->clGetDeviceInfo(devices[d], CL_DEVICE_AVAILABLE, sizeof available, &available, NULL);
        if (available && clv__opencl_rank(type) == rank) list[count++] = (found){platforms[p], devices[d], type};
      }
    }
  }
  return count;
}

/* "gpu" and "gpu:1" select only GPUs; every other name selects any device. */
static bool wants_gpu(const char *name) {
  return strncmp(name, "gpu", 3) == 0 && (name[3] == '\0' || name[3] == ':');
}

static clv_status no_device(clv_error *error) {
  return clv__error_set(error, CLV_NOT_SUPPORTED,
                        "the OpenCL loader finds no device: install a driver (for the CPU: pocl-opencl-icd)");
}

clv_status clv__opencl_choose(clv_device *device, uint32_t ordinal, clv_error *error) {
  found list[MAX_DEVICES];
  uint32_t count = list_devices(device->cl, list), gpus = 0;
  while (gpus < count && clv__opencl_rank(list[gpus].type) == 0) ++gpus;
  if (count == 0) return no_device(error);
  bool gpu = wants_gpu(device->name);
  if (ordinal >= (gpu ? gpus : count)) {
    return clv__error_set(error, CLV_NOT_SUPPORTED,
                          "%s %u does not exist: OpenCL has %u device%s, %u of them GPUs, and numbers start at 0",
                          gpu ? "GPU" : "device", ordinal, count, count == 1 ? "" : "s", gpus);
  }
  device->platform = list[ordinal].platform;
  device->id = list[ordinal].device;
  device->type = list[ordinal].type;
  return CLV_OK;
}

clv_status clv__opencl_list(void *self, const clv_host *host, const clv_option *options, uint32_t option_count,
                            clv_found_fn report, void *cookie, clv_error *error) {
  const clv__opencl_icd *cl;
  found list[MAX_DEVICES];
  (void)self;
  (void)host;
  (void)options;
  (void)option_count;
  CLV__TRY(clv__opencl_icd_open(&cl, error));
  uint32_t count = list_devices(cl, list);
  if (count == 0) return no_device(error);
  if (clv__opencl_rank(list[0].type) == 2) {
    return clv__error_set(error, CLV_NOT_SUPPORTED,
                          "OpenCL has only CPU devices, which the cpu device uses already; 'opencl:0' opens the first anyway");
  }
  for (uint32_t i = 0; i < count && clv__opencl_rank(list[i].type) < 2; ++i) {
    char name[16];
    snprintf(name, sizeof name, "%u", i);
    CLV__TRY(report(cookie, name, clv__opencl_rank(list[i].type) == 0 ? "gpu" : "npu"));
  }
  return CLV_OK;
}
