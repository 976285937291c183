/* Executables and instances. An instance runs in one of two ways: planned, if every shape is known in advance, or node by node.
 */
#ifndef CLEAVE_BACKENDS_CPU_RUN_EXECUTABLE_H
#define CLEAVE_BACKENDS_CPU_RUN_EXECUTABLE_H

#include "backends/cpu/passes/variant.h"

typedef struct clv__cpu_list clv__cpu_list; /* list.h */

struct clv_executable {
  clv_device *device;
  clv__cpu_program program;
  clv__cpu_constants constants;
  clv__cpu_variant *variant; /* for the shapes of compile(); NULL if some were unknown */
};

/* The state of a planned instance (run.c). */
typedef struct clv__cpu_run {
  const clv__cpu_variant *variant;
  clv__cpu_list *list;
  void *memory;     /* holds scratch and the values between steps; NULL: not assigned yet */
  void *own_memory; /* memory that the instance owns, if the host provides none; otherwise NULL */
  uint64_t placed;  /* counts assignments of memory; a captured list moves to the new memory when it sees another count */
  uint64_t executions;
  uint64_t *step_ns; /* times per step, to which its lists add; NULL: it was never timed */
} clv__cpu_run;

struct clv_instance {
  clv_executable *executable;
  clv__cpu_variant *own; /* a variant for shapes other than the executable's; NULL otherwise */
  clv__cpu_run *run;     /* the launch list and its memory; NULL: the instance runs node by node */
  uint64_t prepared;     /* counts resizes; captures made before the last resize belong to another variant */
  bool is_timed;         /* only node by node: whether executions add their times to node_ns */
  uint64_t *node_ns;     /* one time per node, then the number of executions; NULL: never timed */
};

clv_status clv__cpu_run_create(const clv__cpu_variant *variant, clv__cpu_run **run, clv_error *error);
void clv__cpu_run_destroy(clv__cpu_run *run); /* accepts NULL; logs the profile if the device keeps one */
clv_status clv__cpu_run_time(clv__cpu_run *run, bool on, clv_error *error); /* `on` also resets the times */
uint64_t clv__cpu_run_bytes(const clv__cpu_run *run); /* size of the memory for place(); align it to CLV__ALIGNMENT */
clv_status clv__cpu_run_place(clv__cpu_run *run, void *memory, clv_error *error);
clv_status clv__cpu_run_ready(clv__cpu_run *run, clv_error *error); /* allocates memory if place() has provided none */
clv_status clv__cpu_run_execute(clv__cpu_run *run, clv_execute_args *args, const clv__stop *stop, clv_error *error);

/* Runs node by node and infers shapes as they become known (dynamic.c). Adds the time of each node to `node_ns`, which may be
 * NULL. */
clv_status clv__cpu_dynamic_execute(clv_executable *executable, clv_execute_args *args, uint64_t *node_ns, const clv__stop *stop,
                                    clv_error *error);
/* times.c: clv__cpu_instance_walk() runs node by node, and adds the times of the nodes if timing is on. The other functions
 * switch timing on or off, and report the times of the steps. */
clv_status clv__cpu_instance_walk(clv_instance *instance, clv_execute_args *args, const clv__stop *stop, clv_error *error);
clv_status clv__cpu_instance_time_steps(clv_device *device, clv_instance *instance, bool on, clv_error *error);
clv_status clv__cpu_instance_steps(clv_device *device, clv_instance *instance, clv_step_fn found, void *cookie, clv_error *error);

/* compile.c */
clv_status clv__cpu_compile(clv_device *device, const clv_graph_view *graph, const clv_compile_options *options,
                            clv_executable **executable, clv_error *error);
void clv__cpu_executable_destroy(clv_device *device, clv_executable *executable);
void clv__cpu_executable_info(clv_device *device, clv_executable *executable, clv_executable_info *info);
clv_status clv__cpu_instance_create(clv_device *device, clv_executable *executable, const clv_tensor *inputs,
                                    uint32_t input_count, clv_weight *const *weights, uint32_t weight_count,
                                    clv_instance **instance, clv_error *error);
void clv__cpu_instance_destroy(clv_device *device, clv_instance *instance);
clv_status clv__cpu_instance_resize(clv_device *device, clv_instance *instance, const clv_tensor *inputs, uint32_t input_count,
                                    clv_error *error);
uint64_t clv__cpu_instance_scratch_bytes(clv_device *device, clv_instance *instance);
clv_status clv__cpu_instance_bind_scratch(clv_device *device, clv_instance *instance, clv_buffer *buffer, uint64_t offset_bytes,
                                          clv_error *error);
clv_status clv__cpu_execute(clv_device *device, clv_instance *instance, clv_stream *stream, clv_execute_args *args,
                            clv_error *error);

/* The host address of a binding. */
void *clv__cpu_address(const clv_binding *binding);
/* The address of `size_bytes` bytes of a buffer from `offset_bytes` on; NULL if they are not entirely within the buffer. */
void *clv__cpu_buffer_part(const clv_buffer *buffer, uint64_t offset_bytes, uint64_t size_bytes);
/* Requests memory for output `index` from the host if the host bound none because it did not know the type. Then checks that
 * the output is bound as `type`. */
clv_status clv__cpu_output_place(clv_execute_args *args, uint32_t index, const clv_tensor *type, clv_error *error);

#endif
