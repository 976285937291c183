/* Products and convolutions of 8-bit integers: MatMulInteger and ConvInteger give their i32 sums, QLinearMatMul and QLinearConv
 * quantize them again. Shapes are those of MatMul and Conv. */
#include "operators/common/checks.h"
#include "operators/families.h"

/* Where an operator of the family has its operands. */
typedef struct places {
  uint32_t left, left_zero, right, right_zero;
} places;

static const places plain = {0, 2, 1, 3}, quantized = {0, 2, 3, 5};

static clv_status check_bytes(clv__infer *infer, uint32_t input) {
  const clv_dtype dtype = infer->inputs[input].dtype;
  if (dtype == CLV_DTYPE_NONE || dtype == CLV_U8 || dtype == CLV_I8) return CLV_OK;
  return clv__error_set(infer->error, CLV_INVALID_MODEL, "input %u is u8 or i8, not %s", input, clv_dtype_name(dtype));
}

static clv_status check_scale(clv__infer *infer, uint32_t input) {
  const clv_dtype dtype = infer->inputs[input].dtype;
  if (dtype == CLV_DTYPE_NONE || dtype == CLV_F32 || dtype == CLV_F16 || dtype == CLV_BF16) return CLV_OK;
  return clv__error_set(infer->error, CLV_INVALID_MODEL, "input %u, a scale, is %s", input, clv_dtype_name(dtype));
}

/* A scale or zero point of the whole tensor: one element. */
static clv_status check_one(clv__infer *infer, uint32_t input) {
  if (!clv__infer_has(infer, input)) return CLV_OK;
  const clv_tensor *t = &infer->inputs[input];
  size_t count;
  if (t->rank > 1 || (clv__tensor_count(t, &count) && count != 1)) {
    char text[128];
    clv__tensor_text(t, text, sizeof text);
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "input %u is %s where one element is needed", input, text);
  }
  return CLV_OK;
}

/* A scale or zero point of the weight: one, or one an output channel. */
static clv_status check_channels(clv__infer *infer, uint32_t input, int64_t channels) {
  if (!clv__infer_has(infer, input)) return CLV_OK;
  const clv_tensor *t = &infer->inputs[input];
  if (t->rank <= 0 || (t->rank == 1 && t->dims[0] == 1)) return CLV_OK;
  return clv__check_vector(infer, input, channels);
}

static bool is_quantized(const clv__infer *infer) {
  return infer->op[0] == 'Q';
}

/* Dtypes of operands, zero points and scales. */
static clv_status check_dtypes(clv__infer *infer, const places *at) {
  CLV__TRY(check_bytes(infer, at->left));
  CLV__TRY(check_bytes(infer, at->right));
  CLV__TRY(clv__check_same_dtype(infer, at->left, at->left_zero));
  CLV__TRY(clv__check_same_dtype(infer, at->right, at->right_zero));
  if (!is_quantized(infer)) return CLV_OK;
  for (uint32_t input = 1; input < 8; input += input == 1 ? 3 : 2) {
    if (!clv__infer_has(infer, input)) {
      return clv__error_set(infer->error, CLV_INVALID_MODEL, "input %u, a scale, is missing", input);
    }
    CLV__TRY(check_scale(infer, input));
  }
  return clv__infer_has(infer, 7) ? check_bytes(infer, 7) : CLV_OK;
}

/* The shape that `op` gives the two operands. */
static clv_status infer_as(clv__infer *infer, const char *op, const places *at) {
  clv_tensor operands[2] = {infer->inputs[at->left], infer->inputs[at->right]}, out = {.rank = CLV_RANK_UNKNOWN};
  const clv__content *contents[2] = {NULL, NULL};
  operands[0].dtype = operands[1].dtype = CLV_F32; /* dtypes were checked; two kinds of bytes may meet */
  clv__infer other = *infer;
  other.inputs = operands;
  other.contents = contents;
  other.input_count = 2;
  other.outputs = &out;
  other.output_count = 1;
  CLV__TRY(clv__op_find("", op)->infer(&other));
  clv_dtype dtype = CLV_I32;
  if (is_quantized(infer)) dtype = infer->inputs[clv__infer_has(infer, 7) ? 7 : 0].dtype;
  clv__infer_set(infer, 0, dtype, out.rank, out.dims);
  return CLV_OK;
}

static clv_status infer_matmul(clv__infer *infer) {
  const places *at = is_quantized(infer) ? &quantized : &plain;
  CLV__TRY(check_dtypes(infer, at));
  return infer_as(infer, "MatMul", at);
}

static clv_status infer_conv(clv__infer *infer) {
  const places *at = is_quantized(infer) ? &quantized : &plain;
  const clv_tensor *w = &infer->inputs[at->right];
  const int64_t channels = w->rank > 0 ? w->dims[0] : CLV_DIM_UNKNOWN;
  CLV__TRY(check_dtypes(infer, at));
  CLV__TRY(check_one(infer, at->left_zero));
  CLV__TRY(infer_as(infer, "Conv", at));
  CLV__TRY(check_channels(infer, at->right_zero, channels));
  if (!is_quantized(infer)) return CLV_OK;
  CLV__TRY(check_channels(infer, 4, channels));
  CLV__TRY(check_one(infer, 1));
  CLV__TRY(check_one(infer, 6));
  CLV__TRY(check_one(infer, 7));
  if (clv__infer_has(infer, 8) && infer->inputs[8].dtype != CLV_I32) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "the bias is i32, not %s", clv_dtype_name(infer->inputs[8].dtype));
  }
  return clv__check_vector(infer, 8, channels);
}

static void work_matmul(const clv__infer *infer, clv__work *work) {
  const clv_tensor *a = &infer->inputs[0];
  if (a->rank > 0) work->flops = 2 * clv__known_count(&infer->outputs[0]) * (double)a->dims[a->rank - 1];
}

static void work_conv(const clv__infer *infer, clv__work *work) {
  const clv_tensor *w = &infer->inputs[is_quantized(infer) ? 3 : 1];
  if (w->rank < 1 || w->dims[0] <= 0) return;
  work->flops = 2 * clv__known_count(&infer->outputs[0]) * clv__known_count(w) / (double)w->dims[0];
}

const clv__op clv__ops_integer[] = {
    {"", "MatMulInteger", 2, 4, 1, 1, 0, infer_matmul, work_matmul},
    {"", "QLinearMatMul", 8, 8, 1, 1, 0, infer_matmul, work_matmul},
    {"", "ConvInteger", 2, 4, 1, 1, 0, infer_conv, work_conv},
    {"", "QLinearConv", 8, 9, 1, 1, 0, infer_conv, work_conv},
    {.name = NULL},
};
