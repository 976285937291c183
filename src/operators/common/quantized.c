/* See quantized.h. */
#include "operators/common/quantized.h"

#include "operators/common/checks.h"

const clv__quantized *clv__quantized_places(const clv__infer *infer) {
  static const clv__quantized plain = {0, 2, 1, 3, false}, requantized = {0, 2, 3, 5, true};
  return infer->op[0] == 'Q' ? &requantized : &plain;
}

static clv_status check_bytes(clv__infer *infer, uint32_t input) {
  const clv_dtype dtype = infer->inputs[input].dtype;
  if (dtype == CLV_DTYPE_NONE || dtype == CLV_U8 || dtype == CLV_I8) return CLV_OK;
  return clv__error_set(infer->error, CLV_INVALID_MODEL, "input %u must be u8 or i8, not %s", input, clv_dtype_name(dtype));
}

static clv_status check_scale(clv__infer *infer, uint32_t input) {
  const clv_dtype dtype = infer->inputs[input].dtype;
  if (dtype == CLV_DTYPE_NONE || dtype == CLV_F32 || dtype == CLV_F16 || dtype == CLV_BF16) return CLV_OK;
  return clv__error_set(infer->error, CLV_INVALID_MODEL, "input %u, a scale, must be f32, f16 or bf16, not %s", input,
                        clv_dtype_name(dtype));
}

clv_status clv__quantized_check(clv__infer *infer, const clv__quantized *at) {
  CLV__TRY(check_bytes(infer, at->left));
  CLV__TRY(check_bytes(infer, at->right));
  CLV__TRY(clv__check_same_dtype(infer, at->left, at->left_zero));
  CLV__TRY(clv__check_same_dtype(infer, at->right, at->right_zero));
  if (!at->requantizes) return CLV_OK;
  for (uint32_t input = 1; input < 8; input += input == 1 ? 3 : 2) {
    if (!clv__infer_has(infer, input)) {
      return clv__error_set(infer->error, CLV_INVALID_MODEL, "input %u, a scale, is missing", input);
    }
    CLV__TRY(check_scale(infer, input));
  }
  return clv__infer_has(infer, 7) ? check_bytes(infer, 7) : CLV_OK;
}

clv_status clv__quantized_infer(clv__infer *infer, const clv__quantized *at, clv_status (*infer_floats)(clv__infer *infer)) {
  clv_tensor operands[2] = {infer->inputs[at->left], infer->inputs[at->right]}, out = {.rank = CLV_RANK_UNKNOWN};
  const clv__content *contents[2] = {NULL, NULL};
  operands[0].dtype = operands[1].dtype = CLV_F32; /* u8 and i8 may be mixed, but infer_floats() requires equal float dtypes */
  clv__infer other = *infer;
  other.inputs = operands;
  other.contents = contents;
  other.input_count = 2;
  other.outputs = &out;
  other.output_count = 1;
  CLV__TRY(infer_floats(&other));
  clv_dtype dtype = CLV_I32;
  if (at->requantizes) dtype = infer->inputs[clv__infer_has(infer, 7) ? 7 : 0].dtype;
  clv__infer_set(infer, 0, dtype, out.rank, out.dims);
  return CLV_OK;
}
