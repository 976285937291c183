/* The reference kernels: one plain loop per operator, over dense tensors. Every backend is tested against them, and they compute
 * constants ahead of a run. A reviewer can check each loop against the specification: f16 and bf16 are computed in f32 or wider,
 * sums in double, integers exactly. Backends run the fast kernels of backends/common/kernels instead (clv__fast_kernel_find()).
 *
 * A family is a folder with one table of clv__kernel (ended by an entry with op NULL); families.h lists them. */
#ifndef CLEAVE_OPERATORS_RUN_H
#define CLEAVE_OPERATORS_RUN_H

#include "base/error.h"
#include "base/stop.h"
#include "base/tensor/attribute.h"
#include "base/tensor/tensor.h"
#include "operators/families.h"

/* One call. Shapes and dtypes have already been inferred and checked (infer.h), so a kernel need not check anything that
 * inference rejects. It must check everything that depends on data (indices in range, …), and it must never read or write outside
 * its tensors. Inputs and outputs do not overlap. All data is aligned to its element size. */
typedef struct clv__kernel_call {
  const char *op;
  int32_t opset; /* imported version of the node's domain */
  clv__attributes attributes;
  const clv_tensor *inputs; /* an absent optional input has dtype CLV_DTYPE_NONE */
  uint32_t input_count;
  clv_tensor *outputs; /* with types and allocated `data`; an unwanted output has dtype CLV_DTYPE_NONE */
  uint32_t output_count;
  void *scratch; /* scratch_bytes() bytes for this call, aligned to 64 */
  clv_error *error;
  /* May be NULL. Once it is set, a long kernel skips the rest of its work. Its outputs are then incomplete, and the caller, which
   * looks at the flag after the call, discards them. */
  const clv__stop *stop;
} clv__kernel_call;

typedef struct clv__kernel {
  const char *domain; /* "" is the domain of ONNX's own operators */
  const char *op;
  /* CLV__DTYPE_BIT of every dtype that input 0 may have (output 0 for operators without inputs), and every dtype of
   * CLV__DTYPES_SMALL that any other input or output may have. */
  uint32_t dtypes;
  clv_status (*run)(const clv__kernel_call *call);
  /* Optional. Returns the bytes of scratch for a call with these shapes, or SIZE_MAX if that is too large for any memory. Tensors
   * may have no data. */
  size_t (*scratch_bytes)(const clv__kernel_call *call);
  /* Optional. Checks the limits that `dtypes` cannot express, such as another input's dtype or an attribute. Returns false and
   * fills `reason` if the kernel cannot run the call. Tensors may have no data, and an unknown rank or unknown dims. */
  bool (*accepts)(const clv__kernel_call *call, char reason[160]);
} clv__kernel;

#define CLV__DECLARE_KERNELS(family) extern const clv__kernel clv__kernels_##family[];
CLV__TENSOR_FAMILIES(CLV__DECLARE_KERNELS)
#undef CLV__DECLARE_KERNELS

/* Finds the reference kernel of an operator. Returns NULL if it has none. Any thread may call it. */
const clv__kernel *clv__kernel_find(const char *domain, const char *op);

/* Whether `kernel` can run the call: checks the dtypes, then calls accepts(). Fills `reason` if not. */
bool clv__kernel_accepts(const clv__kernel *kernel, const clv__kernel_call *call, char reason[160]);

/* Whether `kernel` supports all inputs and outputs whose dtype is in CLV__DTYPES_SMALL. Fills `reason` if not.
 * clv__kernel_accepts() includes this check; call it alone if types become known only at run time. */
bool clv__kernel_holds(const clv__kernel *kernel, const clv__kernel_call *call, char reason[160]);

/* Runs the kernel. Allocates scratch with `allocator` if call->scratch is NULL and the kernel needs some. */
clv_status clv__kernel_run(const clv__kernel *kernel, const clv__kernel_call *call, const clv_allocator *allocator);

#endif
