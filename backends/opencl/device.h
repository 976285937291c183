/* The device, buffers and weights, and the functions that all files of the backend share. */
#ifndef CLEAVE_BACKENDS_OPENCL_DEVICE_H
#define CLEAVE_BACKENDS_OPENCL_DEVICE_H

#include <pthread.h>

#include "backends/common/objects.h"
#include "backends/opencl/lower/operator.h"
#include "base/memory.h"
#include "base/tensor/tensor.h"
#include "cleave/plugin/backend.h"
#include "icd.h"

#define CLV__OPENCL_VERSION "1"
#define CLV__OPENCL_NONE UINT32_MAX

typedef enum clv__opencl_capture {
  CLV__OPENCL_CAPTURE_AUTO,
  CLV__OPENCL_CAPTURE_BUFFER,
  CLV__OPENCL_CAPTURE_LIST
} clv__opencl_capture;

/* The functions of cl_khr_command_buffer. All are NULL if the driver lacks this extension, or does not support it for in-order
 * queues. */
typedef struct clv__opencl_commands {
  clCreateCommandBufferKHR_fn create;
  clFinalizeCommandBufferKHR_fn finalize;
  clReleaseCommandBufferKHR_fn release;
  clEnqueueCommandBufferKHR_fn enqueue;
  clCommandNDRangeKernelKHR_fn kernel;
  clCommandCopyBufferKHR_fn copy;
} clv__opencl_commands;

typedef struct clv__opencl_program clv__opencl_program; /* programs.h */
typedef struct clv__opencl_notice clv__opencl_notice;   /* run/stream.c */
typedef struct clv__opencl_staging clv__opencl_staging; /* run/staging.h */

struct clv_device {
  const clv_host *host;
  const clv_allocator *allocator;
  const clv__opencl_icd *cl;
  cl_platform_id platform;
  cl_device_id id;
  cl_context context;
  cl_command_queue service; /* queue for work outside streams, such as writing weights; service_lock is held during its use */
  cl_device_type type;
  clv__opencl_traits traits;
  clv__opencl_commands commands;
  bool shares_host; /* the device's memory space is the host's: bindings may be host addresses */
  bool is_unified;  /* host and device use the same DRAM (CL_DEVICE_HOST_UNIFIED_MEMORY) */
  bool stages;      /* large copies go through pinned host memory */
  bool fuse, half, binaries;
  uint64_t memory_bytes;
  size_t alignment_bytes; /* alignment of buffers, and of the offsets of sub-buffers */
  double flops_per_second, bytes_per_second, launch_seconds, copy_latency_seconds, copy_bytes_per_second;
  pthread_mutex_t lock;          /* guards programs, notices, next_id and the state in faults.c */
  pthread_mutex_t service_lock;  /* guards the service queue and `measured` */
  pthread_mutex_t build_lock;    /* held while a program is built */
  pthread_mutex_t staging_lock;  /* guards `stagings` and the records of their pending writes to host memory */
  clv__opencl_staging *stagings; /* list of the stagings of all streams; NULL if empty */
  clv__objects objects;
  clv__opencl_program *programs;
  clv__opencl_notice *notices;  /* list of unused notices (pending notifications), kept for reuse */
  uint64_t next_id;             /* the next buffer id; unlike addresses, ids are never reused */
  clv__opencl_capture capture;  /* value of the option `capture` */
  clv__opencl_capture measured; /* the kind of capture that was measured to be faster; AUTO until it is measured */
  bool can_capture;
  char name[64];
  char space[80];
  char description[256];
  char fingerprint[256];
};

struct clv_buffer {
  clv__object object;
  uint64_t id;
  uint64_t size_bytes;
  cl_mem memory;
  void *host; /* its host address on devices that share host memory, otherwise NULL */
};

struct clv_weight {
  clv__object object;
  uint32_t users;
  char *id;
  clv_tensor type;
  uint64_t size_bytes;
  cl_mem memory;
};

/* Creates a cl_mem of `size_bytes` bytes on the device, or of one byte if that is 0. */
clv_status clv__opencl_memory_create(clv_device *device, uint64_t size_bytes, cl_mem *memory, clv_error *error);
/* Creates a sub-buffer of `whole`. The offset must be a multiple of alignment_bytes. */
clv_status clv__opencl_memory_part(clv_device *device, cl_mem whole, uint64_t offset, uint64_t size_bytes, cl_mem *memory,
                                   clv_error *error);
/* Wraps host memory as a cl_mem, for devices that use the host's memory. */
clv_status clv__opencl_memory_wrap(clv_device *device, void *host, uint64_t size_bytes, cl_mem *memory, clv_error *error);
void clv__opencl_memory_release(clv_device *device, cl_mem memory); /* accepts NULL */
/* Writes `data` to `memory` on the service queue, and waits until that is done. */
clv_status clv__opencl_memory_write(clv_device *device, cl_mem memory, uint64_t offset, const void *data, uint64_t size_bytes,
                                    clv_error *error);

/* Buffers and weights (memory.c). */
clv_status clv__opencl_buffer_alloc(clv_device *device, uint64_t size_bytes, clv_buffer **buffer, clv_error *error);
void clv__opencl_buffer_free(clv_device *device, clv_buffer *buffer);
void *clv__opencl_buffer_host_pointer(clv_device *device, clv_buffer *buffer);
clv_status clv__opencl_weight_upload(clv_device *device, const char *id, const clv_tensor *data, clv_weight **weight,
                                     clv_error *error);
void clv__opencl_weight_release(clv_device *device, clv_weight *weight);

/* Chooses the device (choose.c): number `ordinal` of all devices, or of the GPUs if device->name is "gpu" or "gpu:N". Sets
 * platform, id and type. */
clv_status clv__opencl_choose(clv_device *device, uint32_t ordinal, clv_error *error);
int clv__opencl_rank(cl_device_type type); /* the order in lists of devices: 0 for GPUs, 2 for CPUs, 1 for all other types */
/* Lists all devices except CPUs, which the cpu device already covers. An OpenCL CPU device must be requested by name. */
clv_status clv__opencl_list(void *self, const clv_host *host, const clv_option *options, uint32_t option_count,
                            clv_found_fn found, void *cookie, clv_error *error);

/* Opening and closing (open.c). */
enum { CLV__OPENCL_OPTION_COUNT = 7 };
extern const clv_option_info clv__opencl_options[CLV__OPENCL_OPTION_COUNT];
clv_status clv__opencl_open(void *self, const clv_host *host, const clv_device_config *config, clv_device **device,
                            clv_error *error);
void clv__opencl_close(clv_device *device);

/* The verdict on a node (supports.c). */
void clv__opencl_supports(clv_device *device, const clv_graph_view *graph, uint32_t node, clv_verdict *verdict);
bool clv__opencl_prefers(clv_device *device, const clv_graph_view *graph, uint32_t node);
/* Describes a node whose operands have these `types`: inputs, then outputs. `constant` has one flag per input. */
clv__opencl_node clv__opencl_node_of(const clv_node_info *info, const clv_tensor *types, const bool *constant);
bool clv__opencl_accepts(const clv_device *device, const clv_node_info *info, const clv__opencl_node *node, char reason[160]);
/* Whether the operator's output is its first input with another shape (supports.c). */
bool clv__opencl_is_view(const char *domain, const char *op, int32_t opset);

/* Estimates times in seconds with a roofline model (the longer of arithmetic and memory traffic), from what the driver reports
 * about the device (speed.c). */
void clv__opencl_speed_init(clv_device *device);
double clv__opencl_node_seconds(clv_device *device, const clv_graph_view *graph, uint32_t node);
double clv__opencl_copy_seconds(clv_device *device, uint64_t size_bytes);
double clv__opencl_launch_seconds(clv_device *device);

#endif
