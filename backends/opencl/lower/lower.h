/* From an operator to launches: what the files of this folder write against.
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

#include "operator.h"

/* ---- Building launches ---- */

const clv__opencl_traits *clv__opencl_lowering_traits(const clv__opencl_lowering *l);
/* Memory that lives as long as the launches. */
clv__arena *clv__opencl_lowering_arena(clv__opencl_lowering *l);

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
