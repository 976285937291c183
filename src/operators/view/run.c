/* Views, whose result is a copy of their input, and operators that read shapes. */
#include <stdio.h>

#include "operators/common/move.h"
#include "operators/run.h"

static clv_status run_view(const clv__kernel_call *call) {
  size_t size_bytes;
  if (call->outputs[0].dtype == CLV_DTYPE_NONE || !clv__tensor_size_bytes(&call->outputs[0], &size_bytes)) return CLV_OK;
  clv__copy_bytes(call->outputs[0].data, call->inputs[0].data, size_bytes, call->stop);
  return CLV_OK;
}

/* Returns 1 if Dropout drops nothing (it is not in training mode, or its ratio is 0), 0 if it may, -1 if that is not known yet.
 */
static int drops_nothing(const clv__kernel_call *call) {
  const clv_tensor *ratio = &call->inputs[1], *training = &call->inputs[2];
  if (call->input_count < 3 || training->dtype != CLV_BOOL) return 1;
  if (call->inputs[2].data != NULL && !*(const uint8_t *)training->data) return 1;
  if (ratio->dtype != CLV_DTYPE_NONE && ratio->data != NULL && clv__tensor_get(ratio, 0) == 0) return 1;
  return training->data == NULL ? -1 : 0;
}

static bool accepts_dropout(const clv__kernel_call *call, char reason[160]) {
  int nothing = drops_nothing(call);
  if (nothing != 1) {
    snprintf(reason, 160,
             nothing == 0 ? "training_mode is true, which is not supported" : "training_mode is known only at run time");
  }
  return nothing == 1;
}

static clv_status run_dropout(const clv__kernel_call *call) {
  if (drops_nothing(call) != 1) return clv__error_set(call->error, CLV_NOT_SUPPORTED, "training_mode is true");
  CLV__TRY(run_view(call));
  if (call->output_count < 2 || call->outputs[1].dtype == CLV_DTYPE_NONE) return CLV_OK;
  clv_tensor *mask = &call->outputs[1];
  const uint8_t truth = 1;
  const float one = 1;
  const double one_f64 = 1;
  uint16_t half = mask->dtype == CLV_F16 ? clv__f32_to_f16(one) : clv__f32_to_bf16(one);
  const void *element = mask->dtype == CLV_BOOL  ? (const void *)&truth
                        : mask->dtype == CLV_F32 ? (const void *)&one
                        : mask->dtype == CLV_F64 ? (const void *)&one_f64
                                                 : (const void *)&half;
  size_t count;
  if (clv__tensor_count(mask, &count)) clv__fill(mask->data, element, clv_dtype_size_bytes(mask->dtype), count, call->stop);
  return CLV_OK;
}

static int64_t clamp_axis(int64_t axis, int32_t rank) {
  if (axis < 0) axis += rank;
  return axis < 0 ? 0 : axis > rank ? rank : axis;
}

static clv_status run_shape(const clv__kernel_call *call) {
  const clv_tensor *data = &call->inputs[0];
  int64_t start = clamp_axis(clv__attribute_int(call->attributes, "start", 0), data->rank), *out = call->outputs[0].data;
  for (int64_t i = 0; i < call->outputs[0].dims[0]; ++i) out[i] = data->dims[start + i];
  return CLV_OK;
}

static clv_status run_size(const clv__kernel_call *call) {
  size_t count = 0;
  (void)clv__tensor_count(&call->inputs[0], &count);
  *(int64_t *)call->outputs[0].data = (int64_t)count;
  return CLV_OK;
}

const clv__kernel clv__kernels_view[] = {
    {"", "Reshape", CLV__DTYPES_ANY | CLV__DTYPES_SMALL, run_view, NULL, NULL},
    {"", "Flatten", CLV__DTYPES_ANY | CLV__DTYPES_SMALL, run_view, NULL, NULL},
    {"", "Squeeze", CLV__DTYPES_ANY | CLV__DTYPES_SMALL, run_view, NULL, NULL},
    {"", "Unsqueeze", CLV__DTYPES_ANY | CLV__DTYPES_SMALL, run_view, NULL, NULL},
    {"", "Identity", CLV__DTYPES_ANY | CLV__DTYPES_SMALL, run_view, NULL, NULL},
    {"", "Dropout", CLV__DTYPES_FLOAT, run_dropout, NULL, accepts_dropout},
    {"", "Shape", CLV__DTYPES_ANY | CLV__DTYPES_SMALL, run_shape, NULL, NULL},
    {"", "Size", CLV__DTYPES_ANY | CLV__DTYPES_SMALL, run_size, NULL, NULL},
    {.op = NULL},
};
