/* Instances: a plan with memory of its own and a kernel object for every launch, its arguments set. An execution sets what its
 * bindings have changed and enqueues the launches; nothing is allocated in between. */
#ifndef CLEAVE_BACKENDS_OPENCL_RUN_INSTANCE_H
#define CLEAVE_BACKENDS_OPENCL_RUN_INSTANCE_H

#include "backends/opencl/plan.h"
#include "faults.h"
#include "stream.h"

/* Where a binding is, and the cl_mem made for it. */
typedef struct clv__opencl_bound {
  uint64_t buffer_id; /* 0: host memory at `host` */
  const void *host;
  uint64_t offset_bytes, size_bytes;
  cl_mem memory;         /* what kernels see */
  bool is_owned;         /* a part or wrapper made for it, and not the buffer's own */
  cl_mem source;         /* where kernels see a copy, for offsets that no part can begin at: the buffer's own memory */
  uint32_t first, count; /* arguments that refer to it: in clv_instance.users */
} clv__opencl_bound;

typedef struct clv__opencl_user {
  uint32_t step, argument;
} clv__opencl_user;

struct clv_instance {
  clv__object object;
  clv_executable *executable;
  clv__opencl_plan *plan;
  bool owns_plan;
  clv__arena arena;
  cl_kernel *kernels;    /* by step; NULL for copies */
  cl_mem *scratch;       /* by piece */
  cl_mem scratch_memory; /* its own; NULL where the host gave some */
  bool has_scratch;
  cl_mem *kept;
  clv_weight **weights;
  clv__opencl_bound *inputs, *outputs;
  clv__opencl_user *users;
  clv__opencl_faults *faults; /* NULL where no launch looks for any */
};

clv_status clv__opencl_instance_create(clv_device *device, clv_executable *executable, const clv_tensor *inputs,
                                       uint32_t input_count, clv_weight *const *weights, uint32_t weight_count,
                                       clv_instance **instance, clv_error *error);
void clv__opencl_instance_destroy(clv_device *device, clv_instance *instance);
uint64_t clv__opencl_instance_scratch_bytes(clv_device *device, clv_instance *instance);
clv_status clv__opencl_instance_bind_scratch(clv_device *device, clv_instance *instance, clv_buffer *buffer,
                                             uint64_t offset_bytes, clv_error *error);

/* Memory of the instance's own, where the host gave none. */
clv_status clv__opencl_scratch_own(clv_device *device, clv_instance *instance, clv_error *error);

/* ---- Steps (step.c) ---- */

/* Whether it changes from one execution, or one scratch, to another. */
bool clv__opencl_is_bound_later(const clv__opencl_operand *operand);
clv_status clv__opencl_step_argument(clv_device *device, const clv_instance *instance, const clv__opencl_step *step,
                                     cl_kernel kernel, uint32_t index, clv_error *error);
/* A kernel object with the arguments that stay, or, `bound`, with all of them. */
clv_status clv__opencl_step_kernel(clv_device *device, const clv_instance *instance, const clv__opencl_step *step, bool bound,
                                   cl_kernel *kernel, clv_error *error);
clv_status clv__opencl_step_enqueue(clv_device *device, const clv_instance *instance, const clv__opencl_step *step,
                                    cl_kernel kernel, cl_command_queue queue, clv_error *error);
/* Into a command buffer, with a kernel object of its own in *kernel. */
clv_status clv__opencl_step_record(clv_device *device, const clv_instance *instance, const clv__opencl_step *step,
                                   cl_command_buffer_khr commands, cl_kernel *kernel, clv_error *error);

/* ---- Executions (bind.c) ---- */

void clv__opencl_bound_release(clv_device *device, clv__opencl_bound *bound);
/* Checks that the bindings fit the instance's shapes. */
clv_status clv__opencl_instance_check(const clv_instance *instance, const clv_execute_args *args, clv_error *error);
/* Sets what has changed since the last time. */
clv_status clv__opencl_instance_bind(clv_device *device, clv_instance *instance, const clv_binding *inputs,
                                     const clv_binding *outputs, clv_error *error);
/* Enqueues every step, as bound last. */
clv_status clv__opencl_instance_enqueue(clv_device *device, clv_instance *instance, cl_command_queue queue, clv_error *error);
/* The same into a command buffer, which is finalized by the caller. False in *fits: not all of it can be recorded. Each launch is
 * of a kernel object of its own, put into `kernels` (by step; for the caller to release): there are drivers that read arguments
 * when a command buffer is enqueued, not when it is recorded. */
clv_status clv__opencl_instance_record(clv_device *device, clv_instance *instance, cl_command_buffer_khr commands,
                                       cl_kernel *kernels, bool *fits, clv_error *error);

clv_status clv__opencl_execute(clv_device *device, clv_instance *instance, clv_stream *stream, clv_execute_args *args,
                               clv_error *error);

#endif
