/* The launch list: a plan resolved into calls, once. Each call is a function and its arguments, addresses included, one after the
 * other in one block that an execution walks from end to end. What may move (bindings, the instance's memory) is known by
 * patches: binding other memory costs as much as there are patches of what moved. An instance runs a list of its own; a captured
 * graph has one for each execution recorded. */
#ifndef CLEAVE_BACKENDS_CPU_RUN_LIST_H
#define CLEAVE_BACKENDS_CPU_RUN_LIST_H

#include "backends/cpu/passes/plan.h"
#include "operators/common/broadcast.h"

typedef struct clv__cpu_list clv__cpu_list;
typedef struct clv__cpu_call clv__cpu_call;

struct clv__cpu_call {
  union {
    clv__row_fn row; /* cannot fail; given `arguments` as a clv__row */
    clv_status (*run)(const clv__cpu_call *call, clv_error *error);
  } function;
  uint32_t size_bytes;                                                   /* to the next call */
  uint32_t is_row : 1, is_stretch : 1, is_wait : 1, lane : 4, step : 25; /* stretches: stretch.h */
  uint64_t arguments[];                                                  /* what the function wants: calls.c */
};

/* Where a list's addresses come from. */
enum {
  CLV__CPU_BASE_MEMORY,  /* the instance's */
  CLV__CPU_BASE_LIST,    /* the block itself */
  CLV__CPU_BASE_BINDINGS /* the inputs, then the outputs */
};

/* A place in the block (or a memory of oneDNN's) that holds base + addend. */
typedef struct clv__cpu_patch {
  uint32_t base;
  uint32_t place; /* offset in the block; where `memory` is not NULL, nothing */
  clv__dnn_memory *memory;
  size_t addend;
} clv__cpu_patch;

typedef struct clv__cpu_bound {
  const clv_tensor *type;
  size_t size_bytes, element_bytes;
  void *address; /* what the patches hold */
  void *staging; /* a copy for addresses that are not aligned to their element; made when first needed */
  void *unaligned;
  uint32_t first_patch, end_patch;
} clv__cpu_bound;

struct clv__cpu_list {
  const clv_allocator *allocator;
  const clv__cpu_plan *plan; /* may be gone before the list is destroyed */
  const clv__cpu_list *like;
  uint8_t *block;
  size_t size_bytes, capacity_bytes;
  bool is_lodger;          /* the block is in memory of somebody else's */
  clv__cpu_patch *patches; /* sorted by base once the list is made */
  size_t patch_count, patch_capacity;
  uint32_t memory_end, own_end; /* patches of the first two bases */
  clv__dnn_memory **memories;   /* owned */
  size_t memory_count, memory_capacity;
  const void *memory; /* where that base is */
  clv__cpu_bound *bound;
  uint32_t bound_count;
  uint32_t lane;     /* of calls that are appended, while the list is made */
  uint64_t *step_ns; /* time spent by step, where it is timed; behind it as much room for a run's own; not owned */
};

/* ---- The block, its patches and its bindings (list.c) ---- */

void clv__cpu_list_destroy(clv__cpu_list *list); /* accepts NULL */
/* Memory of the plan's memory_bytes, aligned to CLV__ALIGNMENT. */
clv_status clv__cpu_list_place(clv__cpu_list *list, void *memory, clv_error *error);
/* Moves the bindings that changed. On an error some may have moved: bind again before running. */
clv_status clv__cpu_list_bind(clv__cpu_list *list, clv_execute_args *args, clv_error *error);
/* Whether a run has nothing to do but its calls: no binding is copied to where it is aligned. */
bool clv__cpu_list_is_plain(const clv__cpu_list *list);
/* Moves the calls to `block`, which has room for size_bytes, is aligned to 8 bytes and outlives the list: the calls
 * of lists that run one after the other can so be one block. */
clv_status clv__cpu_list_lodge(clv__cpu_list *list, void *block, clv_error *error);
size_t clv__cpu_list_bytes(const clv__cpu_list *list); /* what it holds, about */

/* Room at the end for a call with so many bytes of arguments; NULL when memory is out. Valid until the next one. */
clv__cpu_call *clv__cpu_list_append(clv__cpu_list *list, uint32_t step, size_t argument_bytes);
/* A memory of oneDNN's, of `layout` (NULL: of `size_bytes`), at `data`, or, where that is NULL, at `base` + `addend`. */
clv_status clv__cpu_list_memory(clv__cpu_list *list, const clv__dnn_layout *layout, size_t size_bytes, uint32_t base,
                                size_t addend, void *data, clv__dnn_memory **memory, clv_error *error);
/* The address at `place`, within the call appended last, is that of `base` + `addend`. */
clv_status clv__cpu_list_patch(clv__cpu_list *list, const void *place, uint32_t base, size_t addend, clv_error *error);

/* Sorts the patches and notes where those of each base are; the block does not grow any more. */
clv_status clv__cpu_list_seal(clv__cpu_list *list, clv_error *error);

/* ---- Making (list_make.c) ---- */

/* Addresses are not valid before place() and bind(). `like`, which may be NULL and outlives the list, is another list of the
 * plan, whose oneDNN memories serve where no binding is in them: they follow that list's place. */
clv_status clv__cpu_list_create(const clv__cpu_plan *plan, const clv__cpu_list *like, clv__cpu_list **list, clv_error *error);
/* The calls of one step, at the end of the list (calls.c). */
clv_status clv__cpu_calls_add(clv__cpu_list *list, uint32_t step, clv_error *error);

/* ---- Running (list_run.c) ---- */

/* Runs the calls in order. Allocates nothing. */
clv_status clv__cpu_list_run(clv__cpu_list *list, clv_error *error);
/* Runs the calls of a block. Where one fails, *failed is that one; clv__cpu_list_explain() of the list that it belongs to puts
 * the node in front of the error. */
clv_status clv__cpu_calls_run(const void *block, size_t size_bytes, const clv__cpu_call **failed, clv_error *error);
clv_status clv__cpu_list_explain(const clv__cpu_list *list, const clv__cpu_call *failed, clv_status status, clv_error *error);

#endif
