/* From an operator to launches: what a file lower_*.c writes against.
 *
 * A family is a table of clv__opencl_operator (ended by an entry with op NULL), named in families.h, and the sources
 * kernels/<family>.cl it launches. For a node, with every shape known, its lower() appends launches to the lowering, in order:
 *
 *   clv__opencl_launch(l, "elementwise", "binary");        family (the file's name) and kernel (the function's)
 *   clv__opencl_define_dtype(l, "T", CLV_F32);             #define lines before the source: a program of its own each
 *   clv__opencl_define(l, "OPERATION(a, b)", "a + b");
 *   clv__opencl_pass_input(l, 0);                          arguments, in the kernel's order
 *   clv__opencl_pass_input(l, 1);
 *   clv__opencl_pass_output(l, 0);
 *   clv__opencl_pass_index(l, count);
 *   return clv__opencl_enqueue_1d(l, count);               ends the launch
 *
 * What fails in between (memory, a name too long) is remembered and said by the enqueue. Nothing is launched for tensors without
 * elements: begin with clv__opencl_is_empty(). Views (Reshape, Identity, …), folding of small constants and outputs that are also
 * inputs are the program's business: they never come here. See kernels/clv_kernel.h for the kernels' side. */
#ifndef CLEAVE_BACKENDS_OPENCL_LOWER_LOWER_H
#define CLEAVE_BACKENDS_OPENCL_LOWER_LOWER_H

#include "base/error.h"
#include "base/memory.h"
#include "base/tensor/attribute.h"
#include "base/tensor/tensor.h"

/* What a choice of kernels may depend on. */
typedef struct clv__opencl_traits {
  bool is_cpu;     /* work items of a group run one after the other in one thread: no gain from local memory or small tiles */
  bool has_half;   /* arithmetic in half; loads and stores of it are there always */
  bool has_double; /* f64 */
  uint32_t compute_units;
  uint32_t max_group;   /* work items of a group */
  uint32_t group_1d;    /* a good size for one-dimensional kernels; a power of two */
  uint64_t local_bytes; /* local memory of a group */
  uint64_t max_buffer_bytes;
} clv__opencl_traits;

typedef struct clv__opencl_node {
  const char *name, *op, *domain;
  int32_t opset;
  clv__attributes attributes; /* bodies left out */
  uint32_t input_count, output_count;
  /* An absent operand has dtype CLV_DTYPE_NONE. In lower() all are static. `data`: the value is known (small ones: axes, shapes,
   * pads, scales; aligned), NULL for what is only on the device. */
  const clv_tensor *inputs;
  const clv_tensor *outputs;
  const bool *is_constant; /* by input: it will have `data` in lower() if it is small, though it may have none yet in accepts() */
} clv__opencl_node;

typedef struct clv__opencl_lowering clv__opencl_lowering;

typedef struct clv__opencl_operator {
  const char *domain; /* "" is ONNX's */
  const char *op;
  uint32_t dtypes;  /* CLV__DTYPE_BIT of what input 0 may be (of output 0 for operators without inputs) */
  bool takes_posts; /* its last launch ends with clv__opencl_pass_posts(), see there */
  /* Optional. False, with the reason, for what `dtypes` cannot say. Dims and ranks may be unknown, data absent. What this takes
   * must lower, whatever the shapes turn out to be. */
  bool (*accepts)(const clv__opencl_traits *traits, const clv__opencl_node *node, char reason[160]);
  clv_status (*lower)(clv__opencl_lowering *l, const clv__opencl_node *node, clv_error *error);
} clv__opencl_operator;

/* NULL when there is none (operators.c). Any thread. f64 is only taken where the device has it: accepts() need not ask. */
const clv__opencl_operator *clv__opencl_operator_find(const char *domain, const char *op);

/* For accepts(): false, with the reason, when input `index` is there and not a constant ("input 1 (axes) is not a constant"). */
bool clv__opencl_accepts_constant(const clv__opencl_node *node, uint32_t index, const char *what, char reason[160]);
/* For accepts(): false, with the reason, when input `index` is there and its dtype is none of `dtypes` (bits). */
bool clv__opencl_accepts_dtype(const clv__opencl_node *node, uint32_t index, uint32_t dtypes, char reason[160]);

/* ---- Building launches ---- */

const clv__opencl_traits *clv__opencl_lowering_traits(const clv__opencl_lowering *l);
/* Memory that lives as long as the launches. */
clv__arena *clv__opencl_lowering_arena(clv__opencl_lowering *l);

static inline bool clv__opencl_has_input(const clv__opencl_node *node, uint32_t index) {
  return index < node->input_count && node->inputs[index].dtype != CLV_DTYPE_NONE;
}
static inline bool clv__opencl_has_output(const clv__opencl_node *node, uint32_t index) {
  return index < node->output_count && node->outputs[index].dtype != CLV_DTYPE_NONE;
}
/* For static types, which lower() is given. A product of dims can be beyond any number where another is 0: begin with this. */
static inline int64_t clv__opencl_count(const clv_tensor *type) {
  size_t count = 0;
  return clv__tensor_count(type, &count) ? (int64_t)count : 0;
}
static inline bool clv__opencl_is_empty(const clv_tensor *type) {
  return clv__opencl_count(type) == 0;
}

void clv__opencl_launch(clv__opencl_lowering *l, const char *family, const char *kernel);

/* "#define NAME VALUE"; NAME may have parameters. The same defines in the same order are the same program. */
void clv__opencl_define(clv__opencl_lowering *l, const char *name, const char *format, ...) CLV_PRINTF(3, 4);
/* "#define NAME f32": for STORAGE(), REAL(), LOAD() and STORE() of clv_kernel.h. */
void clv__opencl_define_dtype(clv__opencl_lowering *l, const char *name, clv_dtype dtype);

/* Tensors; an input or output of the node that is there. In the kernel: GLOBAL const STORAGE(T) *x. */
void clv__opencl_pass_input(clv__opencl_lowering *l, uint32_t index);
void clv__opencl_pass_output(clv__opencl_lowering *l, uint32_t index);
/* Memory of the node's own while its launches run; of the size asked for. */
uint32_t clv__opencl_scratch(clv__opencl_lowering *l, uint64_t size_bytes);
void clv__opencl_pass_scratch(clv__opencl_lowering *l, uint32_t scratch);
/* Bytes made at lowering (a table of offsets, say), copied now and uploaded once an instance. */
uint32_t clv__opencl_table(clv__opencl_lowering *l, const void *data, uint64_t size_bytes);
void clv__opencl_pass_table(clv__opencl_lowering *l, uint32_t table);
/* What a launch found wrong with the numbers it was given: fault_t of clv_kernel.h, which has clv_say() for it. `kind`, `at`,
 * `value` and `limit` are for the family's own words. */
typedef struct clv__opencl_fault {
  int32_t said, kind;
  int64_t at, value, limit;
} clv__opencl_fault;
typedef void (*clv__opencl_explain_fn)(const clv__opencl_fault *fault, char text[160]);
/* Where it says so: GLOBAL fault_t *faults, int fault. The execution then fails, when somebody waits for it, with the text. */
void clv__opencl_pass_fault(clv__opencl_lowering *l, clv__opencl_explain_fn explain);

void clv__opencl_pass_int(clv__opencl_lowering *l, int32_t value);   /* int */
void clv__opencl_pass_index(clv__opencl_lowering *l, int64_t value); /* index_t: int, or long where the node's tensors are huge */
void clv__opencl_pass_float(clv__opencl_lowering *l, float value);   /* float */
void clv__opencl_pass_long(clv__opencl_lowering *l, int64_t value);  /* long */
/* dims_t: an array of CLV_MAX_RANK index_t in a struct, by value; what is not given is 0. */
void clv__opencl_pass_dims(clv__opencl_lowering *l, const int64_t *values, uint32_t count);

/* Of an operator that `takes_posts`: elementwise nodes that follow it alone are computed where it stores. Its last kernel ends
 * its parameters with POST_PARAMETERS and stores POST(value, at), `at` the index in the (dense) output 0, value in REAL(T); this
 * call passes their arguments, last of all. Without such nodes POST(value, at) is value. The defines need T to be defined as the
 * output's dtype. Where several launches store output 0, each its own part, each does so. */
void clv__opencl_pass_posts(clv__opencl_lowering *l);

/* Ends the launch. `local` NULL: a good choice. Global sizes are rounded up to multiples of the local ones, so kernels check
 * their bounds. Rounded sizes of 0 are an error of the caller. */
clv_status clv__opencl_enqueue(clv__opencl_lowering *l, uint32_t dimensions, const int64_t *global, const int64_t *local);
clv_status clv__opencl_enqueue_1d(clv__opencl_lowering *l, int64_t count);

/* A copy of bytes, instead of a launch. Places are the node's operands. */
typedef enum clv__opencl_place { CLV__OPENCL_INPUT, CLV__OPENCL_OUTPUT, CLV__OPENCL_SCRATCH } clv__opencl_place;
clv_status clv__opencl_copy(clv__opencl_lowering *l, clv__opencl_place to, uint32_t to_index, uint64_t to_offset,
                            clv__opencl_place from, uint32_t from_index, uint64_t from_offset, uint64_t size_bytes);

#endif
