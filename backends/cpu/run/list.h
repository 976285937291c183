/* The launch list: a variant resolved once into calls. Each call is a function with its arguments, including addresses. The calls
 * are stored contiguously in one block, which an execution walks from start to end. Patches record the addresses that may move
 * (bindings, the instance's memory). Binding other memory rewrites only the addresses that changed. An instance runs its own
 * list. A capture has one list per recorded execution. */
#ifndef CLEAVE_BACKENDS_CPU_RUN_LIST_H
#define CLEAVE_BACKENDS_CPU_RUN_LIST_H

#include "backends/cpu/passes/variant.h"
#include "operators/common/broadcast.h"

typedef struct clv__cpu_list clv__cpu_list;
typedef struct clv__cpu_call clv__cpu_call;

struct clv__cpu_call {
  union {
    clv__row_fn row; /* cannot fail; receives `arguments` as a clv__row */
    clv_status (*run)(const clv__cpu_call *call, const clv__stop *stop, clv_error *error);
  } function;
  uint32_t size_bytes; /* number of bytes from this call to the next */
  uint32_t is_row : 1, step : 25;
  uint64_t arguments[]; /* arguments of the function: calls.c */
};

/* The bases of the addresses in a list. */
enum {
  CLV__CPU_BASE_MEMORY,  /* the instance's memory */
  CLV__CPU_BASE_LIST,    /* the block itself */
  CLV__CPU_BASE_BINDINGS /* the inputs, then the outputs */
};

/* A location in the block, or a oneDNN memory, in which the address base + addend must be stored. */
typedef struct clv__cpu_patch {
  uint32_t base;
  uint32_t place; /* offset in the block; unused if `memory` is not NULL */
  clv__dnn_memory *memory;
  size_t addend;
} clv__cpu_patch;

typedef struct clv__cpu_bound {
  const clv_tensor *type;
  size_t size_bytes, element_bytes;
  void *address;   /* the address of the input or output that the patches have stored */
  void *staging;   /* used in place of a caller's address that is not aligned to the element size; allocated on first use */
  void *unaligned; /* the caller's address if it is not aligned; otherwise NULL */
  uint32_t first_patch, end_patch;
} clv__cpu_bound;

struct clv__cpu_list {
  const clv_allocator *allocator;
  const clv__cpu_variant *variant; /* may be destroyed before the list; then call only clv__cpu_list_destroy() */
  const clv__cpu_list *like;
  uint8_t *block;
  size_t size_bytes, capacity_bytes;
  bool is_lodger;          /* the block is in memory that the list does not own */
  clv__cpu_patch *patches; /* sorted by base once the list is complete */
  size_t patch_count, patch_capacity;
  uint32_t memory_end, own_end; /* the end of the patches of CLV__CPU_BASE_MEMORY, and of those of CLV__CPU_BASE_LIST */
  clv__dnn_memory **memories;   /* the oneDNN memories that the list owns */
  size_t memory_count, memory_capacity;
  const void *memory; /* current address of CLV__CPU_BASE_MEMORY */
  clv__cpu_bound *bound;
  uint32_t bound_count;
  uint64_t *step_ns; /* time spent per step; not owned; NULL: the steps are not timed */
};

/* ---- The block, its patches and its bindings (list.c) ---- */

void clv__cpu_list_destroy(clv__cpu_list *list); /* accepts NULL */
/* Makes the calls use `memory` as the memory of the instance. It must have the variant's memory_bytes and be aligned to
 * CLV__ALIGNMENT. */
clv_status clv__cpu_list_place(clv__cpu_list *list, void *memory, clv_error *error);
/* Updates the bindings that changed. After an error, some may have been updated: bind again before running. */
clv_status clv__cpu_list_bind(clv__cpu_list *list, clv_execute_args *args, clv_error *error);
/* Whether a run consists of its calls alone: no binding needs copying to aligned memory, and no step is timed. */
bool clv__cpu_list_is_plain(const clv__cpu_list *list);
/* Moves the calls to `block`, which must have room for size_bytes, be aligned to 8 bytes and outlive the list. Lists that run one
 * after the other can thus share one block. */
clv_status clv__cpu_list_lodge(clv__cpu_list *list, void *block, clv_error *error);
size_t clv__cpu_list_bytes(const clv__cpu_list *list); /* approximate memory that the list holds */

/* Appends a call with room for `argument_bytes` of arguments. Returns NULL if memory runs out. The pointer is valid until the
 * next append. */
clv__cpu_call *clv__cpu_list_append(clv__cpu_list *list, uint32_t step, size_t argument_bytes);
/* Sets *memory to a new oneDNN memory of `layout` (NULL: of `size_bytes` bytes), at `data` or, if that is NULL, at `base` +
 * `addend`. The list owns the oneDNN memory, but not the bytes. */
clv_status clv__cpu_list_memory(clv__cpu_list *list, const clv__dnn_layout *layout, size_t size_bytes, uint32_t base,
                                size_t addend, void *data, clv__dnn_memory **memory, clv_error *error);
/* Records that the address at `place`, within the call appended last, is `base` + `addend`. */
clv_status clv__cpu_list_patch(clv__cpu_list *list, const void *place, uint32_t base, size_t addend, clv_error *error);

/* Completes the list: sorts its patches by base, and records for each base which patches are its own. No call or patch may be
 * appended after that. */
clv_status clv__cpu_list_seal(clv__cpu_list *list, clv_error *error);

/* ---- A complete list (list.c) ---- */

/* Creates the list of a variant's steps. Its addresses are invalid before place() and bind(). `like` may be NULL; otherwise it is
 * another list of the variant and must outlive this one. The new list reuses the oneDNN memories of `like` that contain no
 * binding. These point to the memory in which `like` was placed. */
clv_status clv__cpu_list_create(const clv__cpu_variant *variant, const clv__cpu_list *like, clv__cpu_list **list,
                                clv_error *error);
/* Appends the calls of one step to the list (calls.c). */
clv_status clv__cpu_calls_add(clv__cpu_list *list, uint32_t step, clv_error *error);

/* ---- Running (list_run.c) ---- */

/* Runs the calls in order. Allocates nothing. Once `stop` is set, ends with CLV_CANCELLED. */
clv_status clv__cpu_list_run(clv__cpu_list *list, const clv__stop *stop, clv_error *error);
/* Runs the calls of a block in the same way. If a call fails, or is not run because of `stop`, *failed is set to that call.
 * clv__cpu_list_explain() then adds the node of that call to the error; pass it the list that contains the call. */
clv_status clv__cpu_calls_run(const void *block, size_t size_bytes, const clv__stop *stop, const clv__cpu_call **failed,
                              clv_error *error);
clv_status clv__cpu_list_explain(const clv__cpu_list *list, const clv__cpu_call *failed, clv_status status, clv_error *error);

#endif
