/* Constant folding: if all inputs of a node are known when a backend prepares a partition, computes the node then, so that no
 * step for it has to run. */
#ifndef CLEAVE_BACKENDS_COMMON_FOLD_H
#define CLEAVE_BACKENDS_COMMON_FOLD_H

#include "base/memory.h"
#include "operators/run.h"

#define CLV__FOLD_BYTES 4096u /* limit for the total size of a folded node's outputs */

/* Whether the operator is ONNX's Shape or Size, which read only the shape of their input. */
bool clv__fold_reads_shape(const char *domain, const char *op);

/* Whether clv__fold() may compute a node. Four conditions must hold. The data of every input is known and is not strings; Shape
 * and Size need only the shape. The shape of every output is known, and no output has strings. All outputs together take at
 * most CLV__FOLD_BYTES. The operator is not random. `call` has the node's operands. An input whose data is not known has `data`
 * NULL. An absent operand has dtype CLV_DTYPE_NONE. */
bool clv__fold_is_possible(const char *domain, const clv__kernel_call *call);

/* Computes a node for which clv__fold_is_possible() returned true. Sets the `data` of each output to memory from `arena`. The
 * kernel's scratch comes from `allocator`. `inputs` and `outputs` are the arrays that `call` points to. An input whose data is
 * NULL gets placeholder data. Errors: CLV_NOT_SUPPORTED if the kernel does not accept the call, CLV_OUT_OF_MEMORY, and the
 * kernel's own errors. */
clv_status clv__fold(const clv__kernel *kernel, const clv__kernel_call *call, clv_tensor *inputs, clv_tensor *outputs,
                     clv__arena *arena, const clv_allocator *allocator);

#endif
