/* Folding: a node whose inputs are all known is computed while a plan is made, and leaves no step. */
#ifndef CLEAVE_BACKENDS_COMMON_FOLD_H
#define CLEAVE_BACKENDS_COMMON_FOLD_H

#include "base/memory.h"
#include "operators/run.h"

#define CLV__FOLD_BYTES 4096u /* outputs of a node that is folded, together */

/* Shape and Size of ONNX's domain: they read the shape of their input and not its value. */
bool clv__fold_reads_shape(const char *domain, const char *op);

/* Whether a node can be folded. `call` has its operands: an input's `data` is its value or NULL, an absent operand has dtype
 * CLV_DTYPE_NONE. Never true for operators that give other results each time. */
bool clv__fold_is_possible(const char *domain, const clv__kernel_call *call);

/* Computes such a node into the arena: each output gets its `data`. `inputs` and `outputs` are the call's, `inputs` is changed
 * where only a shape is read. CLV_NOT_SUPPORTED where the kernel does not accept the call; CLV_OUT_OF_MEMORY; the kernel's own.
 */
clv_status clv__fold(const clv__kernel *kernel, const clv__kernel_call *call, clv_tensor *inputs, clv_tensor *outputs,
                     clv__arena *arena, const clv_allocator *allocator);

#endif
