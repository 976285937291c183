/* HannWindow, HammingWindow, BlackmanWindow: sums of cosines. MelWeightMatrix: triangles over the bins of a spectrum. */
#include <math.h>
#include <stdio.h>

#include "operators/common/rows.h"
#include "operators/signal/run.h"

#define PI 3.14159265358979323846264338327950288

clv_status clv__kernel_window(const clv__kernel_call *call) {
  const clv_tensor *y = &call->outputs[0];
  const bool hann = strcmp(call->op, "HannWindow") == 0, hamming = strcmp(call->op, "HammingWindow") == 0;
  const double a0 = hann ? 0.5 : hamming ? 25.0 / 46.0 : 0.42, a1 = hamming ? 21.0 / 46.0 : 0.5, a2 = hann || hamming ? 0 : 0.08;
  const int64_t size = y->dims[0];
  const bool periodic = clv__attribute_int(call->attributes, "periodic", 1) != 0;
  const double period = (double)(periodic ? size : size - 1);
  for (int64_t i = 0; i < size; ++i) {
    /* A symmetric window of one element has its peak value. */
    double angle = period > 0 ? 2 * PI * (double)i / period : PI;
    double value = (a2 * cos(2 * angle) - a1 * cos(angle)) + a0; /* computed in this order, the peak is exactly 1 */
    clv__row_from_f64(y->dtype, y->data, i, 1, &value);
  }
  return CLV_OK;
}

static double mel_of(double hertz) {
  return 2595 * log10(1 + hertz / 700);
}

static double hertz_of(double mel) {
  return 700 * (pow(10, mel / 2595) - 1);
}

/* Writes one triangle: rising from `low` to `center`, falling to `high`. Bins beyond the matrix are dropped. */
static void triangle_put(const clv_tensor *y, int64_t column, double low, double center, double high) {
  const int64_t bins = y->dims[0], columns = y->dims[1];
  for (int64_t bin = low < (double)bins ? (int64_t)low : bins; bin < bins && (double)bin <= high; ++bin) {
    double at = (double)bin;
    double value = at < center ? (at - low) / (center - low) : high > center ? (high - at) / (high - center) : 1;
    clv__row_from_f64(y->dtype, y->data, bin * columns + column, 1, &value);
  }
}

clv_status clv__kernel_mel(const clv__kernel_call *call) {
  const clv_tensor *y = &call->outputs[0];
  const double length = clv__tensor_get(&call->inputs[1], 0), rate = clv__tensor_get(&call->inputs[2], 0);
  const double lower = clv__tensor_get(&call->inputs[3], 0), upper = clv__tensor_get(&call->inputs[4], 0);
  size_t size_bytes;
  if (!(lower >= 0) || !(upper >= lower) || !isfinite(upper) || !(rate > 0)) {
    return clv__error_set(
        call->error, CLV_INVALID_ARGUMENT,
        "lower_edge_hertz is %g, upper_edge_hertz %g and sample_rate %g; expected finite 0 <= lower <= upper, and a rate above 0",
        lower, upper, rate);
  }
  if (clv__tensor_is_empty(y) || !clv__tensor_size_bytes(y, &size_bytes)) return CLV_OK;
  memset(y->data, 0, size_bytes);
  const int64_t columns = y->dims[1];
  const double first = mel_of(lower), step = (mel_of(upper) - first) / (double)(columns + 2);
  double edges[3];
  for (int64_t i = 0; i < columns + 2; ++i) {
    edges[0] = i > 0 ? edges[1] : 0;
    edges[1] = i > 0 ? edges[2] : 0;
    edges[2] = floor((length + 1) * hertz_of(first + (double)i * step) / rate);
    if (i >= 2) triangle_put(y, i - 2, edges[0], edges[1], edges[2]);
  }
  return CLV_OK;
}

bool clv__kernel_window_accepts(const clv__kernel_call *call, char reason[160]) {
  int64_t dtype = clv__attribute_int(call->attributes, "output_datatype", CLV_F32);
  if (dtype > 0 && dtype <= CLV_BF16 && (CLV__DTYPE_BIT(dtype) & CLV__DTYPES_NUMBER) != 0) return true;
  snprintf(reason, 160, "output_datatype %lld is not supported", (long long)dtype);
  return false;
}

bool clv__kernel_mel_accepts(const clv__kernel_call *call, char reason[160]) {
  for (uint32_t i = 1; i < 5; ++i) {
    uint32_t allowed = i < 3 ? CLV__DTYPE_BIT(CLV_I32) | CLV__DTYPE_BIT(CLV_I64) : CLV__DTYPES_FLOAT;
    if ((CLV__DTYPE_BIT(call->inputs[i].dtype) & allowed) != 0) continue;
    snprintf(reason, 160, "input %u of dtype %s is not supported", (unsigned)i, clv_dtype_name(call->inputs[i].dtype));
    return false;
  }
  return clv__kernel_window_accepts(call, reason);
}
