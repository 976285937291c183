/* A session's state, shared by the files of this folder. */
#ifndef CLEAVE_EXECUTE_INTERNAL_H
#define CLEAVE_EXECUTE_INTERNAL_H

#include "compile/compile.h"
#include "execute/session.h"

/* A boundary value in one memory space: where it lies, and from which step to which it must be kept. */
typedef struct clv__slot {
  clv_value_id value;
  uint32_t space;
  uint32_t first, last; /* steps; UINT32_MAX: until the run ends */
  bool size_known;      /* when memory was planned */
  bool is_external;     /* a graph input in host memory: the caller's pointer, every run */
  size_t size_bytes;
  size_t offset;   /* in the space's arena, when size_known and not external */
  void *bound;     /* host memory of this run where it is the caller's */
  clv_buffer *own; /* for sizes known only at run time; kept from run to run, grown when needed */
  void *own_host;
  size_t own_capacity;
} clv__slot;

typedef struct clv__space_memory {
  clv_buffer *buffer; /* of a device */
  void *host;         /* of CLV__SPACE_HOST */
  size_t size_bytes;
} clv__space_memory;

typedef struct clv__partition_state {
  clv_session *session;
  uint32_t index;
  clv__compiled own; /* an executable of its own where other shapes than the plan's needed one */
  clv__arena own_arena;
  clv_instance *instance;
  clv_tensor *instance_inputs; /* types the instance was made for */
  clv_binding *inputs, *outputs;
} clv__partition_state;

struct clv_session {
  const clv_plan *plan;
  const clv_allocator *allocator;
  clv__program program;
  clv__arena arena;    /* dies with the session */
  clv__arena prepared; /* what depends on shapes; dies when they change */
  clv__shapes *shapes; /* for the actual input shapes where the plan left some open; else NULL */
  bool is_prepared;
  clv_tensor *types;      /* by value: the actual type of this run; `data` as in the plan's shapes */
  const void **defaults;  /* by input: its initializer's bytes, aligned to their element; NULL where there is none */
  const void **constants; /* by output, kept ones after the others: the same of those known when planning */
  clv_stream *streams[CLV__MAX_DEVICES];
  uint32_t pending_first, pending_last; /* partitions that a device was given since the last wait; none: first is CLV__NO_ID */
  uint32_t slot_count;
  clv__slot *slots;
  uint32_t *slot_of; /* [value * space_count + space] -> slot or CLV__NO_ID */
  clv__space_memory memory[CLV__MAX_DEVICES + 1];
  clv__partition_state *partitions;
  bool time_steps;
  uint64_t *step_times_ns;
  double compile_ms;
  uint64_t boundary_bytes, boundary_bound_bytes;
};

/* memory.c: slots for every boundary value, their life, and one arena a memory space with reuse. */
clv_status clv__session_plan_memory(clv_session *session, clv_error *error);
void clv__session_release_memory(clv_session *session);
/* arrange.c: sets the offsets of `slots` (reordering them); `total` is where the last one ends. */
clv_status clv__slots_arrange(clv__slot **slots, size_t count, const clv_allocator *allocator, size_t *total, clv_error *error);

static inline clv__slot *clv__session_slot(clv_session *session, clv_value_id value, uint32_t space) {
  uint32_t index = session->slot_of[(size_t)value * session->plan->devices->space_count + space];
  return index == CLV__NO_ID ? NULL : &session->slots[index];
}
/* Where a slot's value is now. */
clv_binding clv__session_binding(clv_session *session, const clv__slot *slot);
/* Makes room for a value whose size is only known now. */
clv_status clv__session_grow_slot(clv_session *session, clv__slot *slot, size_t size_bytes, clv_error *error);

/* bind.c: checks the caller's inputs, prepares the session for their shapes and binds them; outputs where they can be written in
 * place; and what is handed over after a run. */
clv_status clv__session_bind_inputs(clv_session *session, const clv_tensor *inputs, uint32_t input_count, clv_error *error);
clv_status clv__session_bind_outputs(clv_session *session, const clv_tensor *inputs, const clv_tensor *outputs,
                                     uint32_t output_count, clv_error *error);
clv_status clv__session_hand_over(clv_session *session, const clv_tensor *inputs, clv_tensor *outputs, uint32_t output_count,
                                  clv_error *error);
/* Fills session->defaults and session->constants. */
clv_status clv__session_align_constants(clv_session *session, clv_error *error);
bool clv__session_same_dims(const clv_tensor *a, const clv_tensor *b);

/* run.c: one partition, with its boundary values in their slots; does not wait. */
clv_status clv__session_execute_partition(clv_session *session, uint32_t partition, clv_error *error);
clv_status clv__session_wait(clv_session *session, uint32_t device, clv_error *error);
/* session.c: makes the session ready for inputs of these types. */
clv_status clv__session_prepare(clv_session *session, const clv_tensor *inputs, clv_error *error);
clv_status clv__session_make_instance(clv_session *session, uint32_t partition, clv_error *error);

#endif
