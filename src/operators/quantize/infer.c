/* QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear: the output has the shape of the input. Its dtype comes from an
 * attribute or another input. */
#include "operators/infer.h"
#include "operators/common/padding.h"

/* Maps an ONNX dtype number to a dtype; NONE for unsupported ones. */
static clv_dtype dtype_from(int64_t number) {
  return clv__dtype_is_known(number) ? (clv_dtype)number : CLV_DTYPE_NONE;
}

/* Checks the shape of the scales: one for the whole tensor, one per index of the axis, or one per block. The kernel
 * checks the number of blocks, for which all dims must be known. */
static clv_status check_scales(clv__infer *infer) {
  const clv_tensor *x = &infer->inputs[0], *scale = &infer->inputs[1];
  if (x->rank < 0 || scale->rank < 0) return CLV_OK;
  bool one = scale->rank == 0 || (scale->rank == 1 && scale->dims[0] == 1);
  if (!one && scale->rank != 1 && scale->rank != x->rank) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "scale has rank %d; expected 0, 1 or the input's rank, %d",
                          (int)scale->rank, (int)x->rank);
  }
  if (!one && scale->rank == 1 && x->rank != 1) {
    int32_t axis;
    int64_t unused;
    CLV__TRY(clv__infer_axis(infer, clv__attribute_int(infer->attributes, "axis", 1), x->rank, &axis));
    if (!clv__dim_merge(x->dims[axis], scale->dims[0], &unused) && scale->dims[0] != 1) {
      return clv__error_set(infer->error, CLV_INVALID_MODEL, "%lld scales do not fit axis %d of %lld element%s",
                            (long long)scale->dims[0], (int)axis, (long long)x->dims[axis], CLV__S(x->dims[axis]));
    }
  }
  return CLV_OK;
}

static clv_status infer_quantize(clv__infer *infer) {
  const clv_tensor *x = &infer->inputs[0];
  int64_t wanted = clv__attribute_int(infer->attributes, "output_dtype", 0);
  clv_dtype dtype = wanted != 0 ? dtype_from(wanted) : clv__infer_has(infer, 2) ? infer->inputs[2].dtype : CLV_U8;
  CLV__TRY(check_scales(infer));
  if (wanted != 0 && clv__infer_has(infer, 2) && infer->inputs[2].dtype != dtype) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL,
                          "attribute output_dtype is %lld, which is not the zero point's dtype, %s", (long long)wanted,
                          clv_dtype_name(infer->inputs[2].dtype));
  }
  clv__infer_set(infer, 0, dtype, x->rank, x->dims);
  return CLV_OK;
}

static clv_status infer_dequantize(clv__infer *infer) {
  const clv_tensor *x = &infer->inputs[0];
  int64_t wanted = clv__attribute_int(infer->attributes, "output_dtype", 0);
  CLV__TRY(check_scales(infer));
  if (clv__infer_has(infer, 2) && x->dtype != CLV_DTYPE_NONE && infer->inputs[2].dtype != x->dtype) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "the zero point must have the dtype of x, %s, not %s",
                          clv_dtype_name(x->dtype), clv_dtype_name(infer->inputs[2].dtype));
  }
  clv__infer_set(infer, 0, wanted != 0 ? dtype_from(wanted) : infer->inputs[1].dtype, x->rank, x->dims);
  return CLV_OK;
}

static clv_status infer_dynamic(clv__infer *infer) {
  clv__infer_set(infer, 0, CLV_U8, infer->inputs[0].rank, infer->inputs[0].dims);
  clv__infer_set(infer, 1, CLV_F32, 0, NULL);
  clv__infer_set(infer, 2, CLV_U8, 0, NULL);
  return CLV_OK;
}

static void work_linear(const clv__infer *infer, clv__work *work) {
  size_t count;
  if (clv__tensor_count(&infer->inputs[0], &count)) work->flops = 3.0 * (double)count;
}

/* ---- Independence along padded axes (common/padding.h) ---- */

/* Independent if there is one scale for the whole tensor, or one per index of an axis that is not padded. */
static bool independent_quantize(clv__padding *padding) {
  const clv__infer *node = padding->node;
  const clv_tensor *scale = &node->inputs[1];
  int32_t axis;
  if (!clv__padding_whole_from(padding, 1)) return false;
  if (scale->rank == 0 || (scale->rank == 1 && scale->dims[0] == 1)) return clv__padding_pass(padding);
  if (scale->rank != 1) return clv__padding_no(padding, "its scales are per block");
  if (!clv__padding_attribute_axis(padding, 1, node->inputs[0].rank, &axis)) return false;
  return clv__padding_avoids(padding, 0, clv__axis_bit(axis)) && clv__padding_pass(padding);
}

const clv__op clv__ops_quantize[] = {
    {"", "QuantizeLinear", 2, 3, 1, 1, CLV__OP_ROUNDS, infer_quantize, work_linear, independent_quantize},
    {"", "DequantizeLinear", 2, 3, 1, 1, 0, infer_dequantize, work_linear, independent_quantize},
    {"", "DynamicQuantizeLinear", 1, 1, 1, 3, CLV__OP_ROUNDS, infer_dynamic, work_linear, NULL},
    {.name = NULL},
};
