/* Folding: computes a node whose inputs are all known while the plan is made, so that it leaves no step. */
#ifndef CLEAVE_BACKENDS_COMMON_FOLD_H
#define CLEAVE_BACKENDS_COMMON_FOLD_H

#include "base/memory.h"
#include "operators/run.h"

#define CLV__FOLD_BYTES 4096u /* limit for the outputs of a folded node, together */

/* Whether the operator is Shape or Size of ONNX's domain, which read the shape of their input, not its value. */
bool clv__fold_reads_shape(const char *domain, const char *op);

/* Whether a node can be folded. `call` has the node's operands. An input's `data` is its value or NULL. An absent operand has
 * dtype CLV_DTYPE_NONE. Never true for operators whose results vary from run to run. */
bool clv__fold_is_possible(const char *domain, const clv__kernel_call *call);

/* Computes a node that can be folded, with memory from the arena, and sets the `data` of each output. `inputs` and `outputs`
 * belong to the call. `inputs` is modified if only a shape is read. Errors: CLV_NOT_SUPPORTED if the kernel does not accept the
 * call, CLV_OUT_OF_MEMORY, and the kernel's own. */
clv_status clv__fold(const clv__kernel *kernel, const clv__kernel_call *call, clv_tensor *inputs, clv_tensor *outputs,
                     clv__arena *arena, const clv_allocator *allocator);

#endif
