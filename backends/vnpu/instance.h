/* An executable's state in one session, and its launches. */
#ifndef CLEAVE_BACKENDS_VNPU_INSTANCE_H
#define CLEAVE_BACKENDS_VNPU_INSTANCE_H

#include "list.h"
#include "queue.h"

enum { CLV__VNPU_LAUNCHES = 4 }; /* maximum number of launches of one instance in flight; further calls of execute() wait */

typedef struct clv__vnpu_run {
  clv__vnpu_launch launch; /* must be first: a pointer to it is cast to the run */
  struct clv__vnpu_run *next;
  clv__vnpu_list list;
  clv_execute_args args; /* the arguments of the execution, kept for outputs whose memory the host allocates during the run */
} clv__vnpu_run;

struct clv_instance {
  clv__vnpu_live live;
  clv_device *device;
  clv_executable *program;
  clv_executable *own; /* the program, if it was made for this instance; otherwise NULL */
  clv__arena arena;
  uint64_t *weights;    /* device address of each weight */
  uint64_t scratch;     /* device address of the scratch; 0: none yet */
  uint64_t own_scratch; /* scratch that the instance allocated itself, because the host had bound none; 0: none */
  uint32_t run_count, idle_count;
  clv__vnpu_run *idle; /* guarded by the queue's lock, as is idle_count */
  /* Used only by the compute engine: */
  clv_tensor *inputs, *outputs;   /* operands of the current instruction */
  clv_tensor *values;             /* dynamic programs: the type and data of each computed value */
  uint64_t *blocks, *block_bytes; /* dynamic programs: address and size of the memory of each value */
};

clv_status clv__vnpu_instance_create(clv_device *device, clv_executable *program, const clv_tensor *inputs, uint32_t input_count,
                                     clv_weight *const *weights, uint32_t weight_count, clv_instance **instance,
                                     clv_error *error);
void clv__vnpu_instance_destroy(clv_instance *instance); /* waits for its launches first; accepts NULL */
clv_status clv__vnpu_instance_execute(clv_instance *instance, clv_stream *stream, clv_execute_args *args, clv_error *error);

/* scratch_bytes() returns the size of the scratch that the instance needs (0 for a dynamic program). bind_scratch() makes the
 * instance use scratch memory that the host provides; call it only while no launch of the instance is in flight. */
uint64_t clv__vnpu_instance_scratch_bytes(const clv_instance *instance);
clv_status clv__vnpu_instance_bind_scratch(clv_instance *instance, const clv_buffer *buffer, uint64_t offset_bytes,
                                           clv_error *error);
/* Allocates scratch for the instance if it has none. */
clv_status clv__vnpu_instance_need_scratch(clv_instance *instance, clv_error *error);

/* Creates a list for one execution of the instance, without bindings. The arena owns its arrays. */
clv_status clv__vnpu_instance_list_init(clv_instance *instance, clv__arena *arena, clv__vnpu_list *list, clv_error *error);

/* Runs one launch on the compute engine (run.c, run_dynamic.c). `seconds` receives its duration according to the speed model. */
clv_status clv__vnpu_run_launch(clv__vnpu_launch *launch, double *seconds, clv_error *error);
/* Run the instructions of a static program, or of a dynamic one. */
clv_status clv__vnpu_run_list(const clv__vnpu_list *list, const clv__stop *stop, clv_error *error);
clv_status clv__vnpu_run_dynamic(clv__vnpu_run *run, double *seconds, clv_error *error);

/* Runs a node's kernel on typed operands that have data, and rounds the results to the compute dtype (run.c). */
clv_status clv__vnpu_run_kernel(const clv_instance *instance, const clv__vnpu_instruction *instruction, void *scratch,
                                const clv__stop *stop, clv_error *error);
/* Returns CLV_CANCELLED if `stop` is set, otherwise CLV_OK. `stop` may be NULL. */
clv_status clv__vnpu_check_stop(const clv__stop *stop, clv_error *error);

#endif
