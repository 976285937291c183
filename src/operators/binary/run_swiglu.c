/* SwiGLU: a * sigmoid(alpha * a) * b. A and B have the same shape: they do not broadcast. */
#include "operators/binary/run.h"

#include <math.h>

#include "operators/common/element.h"
#include "operators/run.h"

clv_status clv__kernel_swiglu(const clv__kernel_call *call) {
  const clv_tensor *a = &call->inputs[0], *b = &call->inputs[1], *y = &call->outputs[0];
  const double alpha = (double)clv__attribute_float(call->attributes, "alpha", 1);
  const int64_t count = clv__dims_count(y, 0, y->rank);
  for (int64_t i = 0; i < count; ++i) {
    const double gate = clv__element_load(a, i);
    clv__element_store(y, i, gate * (1 / (1 + exp(-alpha * gate))) * clv__element_load(b, i));
  }
  return CLV_OK;
}
