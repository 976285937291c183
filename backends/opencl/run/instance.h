/* An instance is a variant with its own memory, and one kernel object per launch with its arguments set. An execution sets only
 * the arguments of changed bindings, and enqueues the launches. If the bindings are unchanged, it allocates nothing. */
#ifndef CLEAVE_BACKENDS_OPENCL_RUN_INSTANCE_H
#define CLEAVE_BACKENDS_OPENCL_RUN_INSTANCE_H

#include "backends/opencl/variant.h"
#include "faults.h"
#include "stream.h"

/* The location of a binding, and the cl_mem created for it. */
typedef struct clv__opencl_bound {
  uint64_t buffer_id; /* 0: host memory at `host` */
  const void *host;
  uint64_t offset_bytes, size_bytes;
  cl_mem memory;         /* the memory that kernels use */
  bool is_owned;         /* `memory` was created for this binding, and must be released with it */
  cl_mem source;         /* the buffer's cl_mem, if kernels use a copy because no sub-buffer can start at the offset; or NULL */
  uint32_t first, count; /* the kernel arguments that refer to this binding: a range of clv_instance.users */
} clv__opencl_bound;

typedef struct clv__opencl_user {
  uint32_t step, argument;
} clv__opencl_user;

struct clv_instance {
  clv__object object;
  clv_executable *executable;
  clv__opencl_variant *variant;
  bool owns_variant;
  clv__arena arena;
  cl_kernel *kernels;    /* one kernel object per step; NULL for copies */
  cl_mem *scratch;       /* one per scratch region of the variant */
  cl_mem scratch_memory; /* scratch memory that the instance owns; NULL if the host provided scratch */
  bool has_scratch;
  cl_mem *kept;
  clv_weight **weights;
  clv__opencl_bound *inputs, *outputs;
  clv__opencl_user *users;
  clv__opencl_faults *faults; /* NULL if no launch checks its input */
};

clv_status clv__opencl_instance_create(clv_device *device, clv_executable *executable, const clv_tensor *inputs,
                                       uint32_t input_count, clv_weight *const *weights, uint32_t weight_count,
                                       clv_instance **instance, clv_error *error);
void clv__opencl_instance_destroy(clv_device *device, clv_instance *instance);
uint64_t clv__opencl_instance_scratch_bytes(clv_device *device, clv_instance *instance);
clv_status clv__opencl_instance_bind_scratch(clv_device *device, clv_instance *instance, clv_buffer *buffer,
                                             uint64_t offset_bytes, clv_error *error);

/* Allocates scratch for the instance if the host provided none. */
clv_status clv__opencl_scratch_own(clv_device *device, clv_instance *instance, clv_error *error);

/* ---- Steps (step.c) ---- */

/* Whether the operand's memory can change between executions, or when other scratch is bound. */
bool clv__opencl_is_bound_later(const clv__opencl_operand *operand);
clv_status clv__opencl_step_argument(clv_device *device, const clv_instance *instance, const clv__opencl_step *step,
                                     cl_kernel kernel, uint32_t index, clv_error *error);
/* Creates a kernel object and sets its constant arguments or, with `bound`, all of them. */
clv_status clv__opencl_step_kernel(clv_device *device, const clv_instance *instance, const clv__opencl_step *step, bool bound,
                                   cl_kernel *kernel, clv_error *error);
clv_status clv__opencl_step_enqueue(clv_device *device, const clv_instance *instance, const clv__opencl_step *step,
                                    cl_kernel kernel, cl_command_queue queue, clv_error *error);
/* Records the step into a command buffer. Unless the step is a copy, creates a kernel object for it and stores it in *kernel. */
clv_status clv__opencl_step_record(clv_device *device, const clv_instance *instance, const clv__opencl_step *step,
                                   cl_command_buffer_khr commands, cl_kernel *kernel, clv_error *error);

/* ---- Executions (bind.c) ---- */

void clv__opencl_bound_release(clv_device *device, clv__opencl_bound *bound);
/* Checks that the bindings fit the instance's shapes. */
clv_status clv__opencl_instance_check(const clv_instance *instance, const clv_execute_args *args, clv_error *error);
/* Sets the arguments that changed since the last call. */
clv_status clv__opencl_instance_bind(clv_device *device, clv_instance *instance, const clv_binding *inputs,
                                     const clv_binding *outputs, clv_error *error);
/* Enqueues every step with the current bindings. If the stream is stopped meanwhile, returns CLV_CANCELLED. */
clv_status clv__opencl_instance_enqueue(clv_device *device, clv_instance *instance, clv_stream *stream, clv_error *error);
/* Records every step into a command buffer, which the caller finalizes. *fits becomes false if some step cannot be recorded. Each
 * launch has its own kernel object, stored in `kernels` (by step; the caller releases them), because some drivers read the
 * arguments when a command buffer is enqueued, not when it is recorded. */
clv_status clv__opencl_instance_record(clv_device *device, clv_instance *instance, cl_command_buffer_khr commands,
                                       cl_kernel *kernels, bool *fits, clv_error *error);

clv_status clv__opencl_execute(clv_device *device, clv_instance *instance, clv_stream *stream, clv_execute_args *args,
                               clv_error *error);

#endif
