/* Constant folding: if all inputs of a node are known when the plan is made, computes the node then, so that the plan needs no
 * step for it. */
#ifndef CLEAVE_BACKENDS_COMMON_FOLD_H
#define CLEAVE_BACKENDS_COMMON_FOLD_H

#include "base/memory.h"
#include "operators/run.h"

#define CLV__FOLD_BYTES 4096u /* limit for the total size of a folded node's outputs */

/* Whether the operator is ONNX's Shape or Size, which read only the shape of their input. */
bool clv__fold_reads_shape(const char *domain, const char *op);

/* Whether a node can be folded. `call` has the node's operands. An input's `data` is its value or NULL. An absent operand has
 * dtype CLV_DTYPE_NONE. Never true for operators whose results vary from run to run. */
bool clv__fold_is_possible(const char *domain, const clv__kernel_call *call);

/* Computes a node that can be folded, with memory from the arena, and sets the `data` of each output. `inputs` and `outputs` are
 * the arrays that `call` points to. An input whose data is NULL gets placeholder data. Errors: CLV_NOT_SUPPORTED if the kernel
 * does not accept the call, CLV_OUT_OF_MEMORY, and the kernel's own errors. */
clv_status clv__fold(const clv__kernel *kernel, const clv__kernel_call *call, clv_tensor *inputs, clv_tensor *outputs,
                     clv__arena *arena, const clv_allocator *allocator);

#endif
