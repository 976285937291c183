/* CausalConvWithState: a depthwise convolution along the last axis. Its input is preceded by the end of the previous call's input
 * (past_state). */
#include "operators/convolution/run.h"

#include <math.h>

#include "operators/common/element.h"
#include "operators/run.h"

/* Element `i` of row `row` of past_state (`kept` elements; zeros if it is absent) followed by the input. */
static double row_at(const clv_tensor *x, const clv_tensor *past, int64_t row, int64_t kept, int64_t i) {
  if (i >= kept) return clv__element_load(x, row * x->dims[2] + i - kept);
  return past != NULL ? clv__element_load(past, row * kept + i) : 0;
}

clv_status clv__kernel_causal_conv(const clv__kernel_call *call) {
  const clv_tensor *x = &call->inputs[0], *w = &call->inputs[1];
  const clv_tensor *bias = clv__call_input(call, 2), *past = clv__call_input(call, 3);
  const clv_tensor *y = clv__call_output(call, 0), *present = clv__call_output(call, 1);
  const bool silu = !clv__attribute_is(call->attributes, "activation", "none", true);
  if (x->dims[0] == 0 || x->dims[1] == 0) return CLV_OK; /* there are no elements, but the other dims may be huge */
  const int64_t length = x->dims[2], taps = w->dims[2], kept = taps - 1;
  for (int64_t row = 0; row < x->dims[0] * x->dims[1]; ++row) {
    const int64_t channel = row % x->dims[1];
    for (int64_t i = 0; y != NULL && i < length; ++i) {
      double sum = bias != NULL ? clv__element_load(bias, channel) : 0;
      for (int64_t k = 0; k < taps; ++k) sum += clv__element_load(w, channel * taps + k) * row_at(x, past, row, kept, i + k);
      clv__element_store(y, row * length + i, silu ? sum / (1 + exp(-sum)) : sum);
    }
    for (int64_t i = 0; present != NULL && i < kept; ++i) {
      clv__element_store(present, row * kept + i, row_at(x, past, row, kept, length + i));
    }
  }
  return CLV_OK;
}
