/* Lowers an operator to launches. The files of this folder are written against this interface.
 *
 * A family of operators consists of a table of clv__opencl_operator, named in families.h, and the source kernels/<family>.cl.
 * The table ends with an entry whose op is NULL. For a node with known shapes, lower() appends launches to the lowering, in
 * order:
 *
 *   clv__opencl_launch(l, "elementwise", "binary");        family (the file's name) and kernel (the function's)
 *   clv__opencl_define_dtype(l, "T", CLV_F32);             #define lines before the source; each set is a separate program
 *   clv__opencl_define(l, "OPERATION(a, b)", "a + b");
 *   clv__opencl_pass_input(l, 0);                          arguments, in the kernel's order
 *   clv__opencl_pass_input(l, 1);
 *   clv__opencl_pass_output(l, 0);
 *   clv__opencl_pass_index(l, count);
 *   return clv__opencl_enqueue_1d(l, count);               ends the launch
 *
 * The lowering remembers any failure in between (no memory, a define too long), and the enqueue returns it. Tensors without
 * elements need no launch, so begin with clv__opencl_is_empty(). The passes that make a variant (variant.h) handle views
 * (Reshape, Identity, …), folding of small constants, and outputs that are also inputs, so lower() never sees them.
 * kernels/clv_kernel.h describes the kernels' side. */
#ifndef CLEAVE_BACKENDS_OPENCL_LOWER_LOWER_H
#define CLEAVE_BACKENDS_OPENCL_LOWER_LOWER_H

#include "operator.h"

/* ---- Building launches ---- */

const clv__opencl_traits *clv__opencl_lowering_traits(const clv__opencl_lowering *l);
/* An arena that lives as long as the launches. */
clv__arena *clv__opencl_lowering_arena(clv__opencl_lowering *l);

void clv__opencl_launch(clv__opencl_lowering *l, const char *family, const char *kernel);

/* Adds "#define NAME VALUE"; NAME may have parameters. The same defines in the same order give the same program. */
void clv__opencl_define(clv__opencl_lowering *l, const char *name, const char *format, ...) CLV_PRINTF(3, 4);
/* Adds "#define NAME f32", for STORAGE(), REAL(), LOAD() and STORE() of clv_kernel.h. */
void clv__opencl_define_dtype(clv__opencl_lowering *l, const char *name, clv_dtype dtype);

/* Passes a tensor: an input or output that the node has. In the kernel: GLOBAL const STORAGE(T) *x. */
void clv__opencl_pass_input(clv__opencl_lowering *l, uint32_t index);
void clv__opencl_pass_output(clv__opencl_lowering *l, uint32_t index);
/* Requests scratch memory of this size for the node. It is valid while the node's launches run. */
uint32_t clv__opencl_scratch(clv__opencl_lowering *l, uint64_t size_bytes);
void clv__opencl_pass_scratch(clv__opencl_lowering *l, uint32_t scratch);
/* Adds bytes that lowering computes, such as a table of offsets. They are copied now, and uploaded once per variant. */
uint32_t clv__opencl_table(clv__opencl_lowering *l, const void *data, uint64_t size_bytes);
void clv__opencl_pass_table(clv__opencl_lowering *l, uint32_t table);
/* Passes the memory in which the kernel can report an input error: GLOBAL fault_t *faults, int fault. If it reports one, waiting
 * for the execution fails with the text that `explain` makes of the report. */
void clv__opencl_pass_fault(clv__opencl_lowering *l, clv__opencl_explain_fn explain);

void clv__opencl_pass_int(clv__opencl_lowering *l, int32_t value);   /* int */
void clv__opencl_pass_index(clv__opencl_lowering *l, int64_t value); /* index_t: int, or long if the node's tensors are huge */
void clv__opencl_pass_float(clv__opencl_lowering *l, float value);   /* float */
void clv__opencl_pass_long(clv__opencl_lowering *l, int64_t value);  /* long */
/* Passes a dims_t: a struct with an array of CLV_MAX_RANK index_t. Missing values are 0. */
void clv__opencl_pass_dims(clv__opencl_lowering *l, const int64_t *values, uint32_t count);

/* Passes the posts of an operator that `takes_posts`: elementwise nodes that are the only reader of its output. The operator's
 * last kernel applies them to its results before it stores them. It ends its parameters with POST_PARAMETERS and stores
 * POST(value, at): `at` is the index in the dense output 0, and value has type REAL(T). This call passes the posts' arguments, so
 * it must come last. Without posts POST(value, at) is value. T must be defined as the output's dtype. If several launches each
 * store a part of output 0, each of them makes this call. */
void clv__opencl_pass_posts(clv__opencl_lowering *l);

/* Ends the launch. If `local` is NULL, the driver chooses the group size. Global sizes are rounded up to multiples of the local
 * ones, so kernels must check their bounds. All sizes must be positive. */
clv_status clv__opencl_enqueue(clv__opencl_lowering *l, uint32_t dimensions, const int64_t *global, const int64_t *local);
clv_status clv__opencl_enqueue_1d(clv__opencl_lowering *l, int64_t count);

/* Copies bytes instead of launching a kernel. `to_index` and `from_index` number the node's inputs, its outputs, or the results
 * of clv__opencl_scratch(). */
typedef enum clv__opencl_place { CLV__OPENCL_INPUT, CLV__OPENCL_OUTPUT, CLV__OPENCL_SCRATCH } clv__opencl_place;
clv_status clv__opencl_copy(clv__opencl_lowering *l, clv__opencl_place to, uint32_t to_index, uint64_t to_offset,
                            clv__opencl_place from, uint32_t from_index, uint64_t from_offset, uint64_t size_bytes);

#endif
