/* Element-wise operators of one input. The output has the input's type, or dtype bool and the input's shape. */
#include "operators/infer.h"
#include "operators/common/content.h"

/* How an operator changes the known elements of a shape tensor. A symbol is the size of a dimension, which is never negative, so
 * rounding, Abs and Relu leave it unchanged. */
typedef enum keeps { KEEPS_NOTHING, KEEPS_MAGNITUDE, KEEPS_POSITIVE, NEGATES } keeps;

static clv_status infer_content(clv__infer *infer, keeps what) {
  clv__content content;
  CLV__TRY(clv__infer_same(infer));
  if (infer->output_content == NULL || !clv__infer_elements(infer, 0, &content)) return CLV_OK;
  for (uint32_t i = 0; i < content.count; ++i) {
    int64_t *element = &content.elements[i];
    if (!clv__element_is_number(*element)) {
      if (what == NEGATES) *element = CLV__ELEMENT_UNKNOWN;
    } else if (*element < 0 || what == NEGATES) {
      *element = what == KEEPS_POSITIVE ? 0 : -*element;
    }
  }
  *infer->output_content = content;
  return CLV_OK;
}

static clv_status infer_relu(clv__infer *infer) {
  return infer_content(infer, KEEPS_POSITIVE);
}
static clv_status infer_abs(clv__infer *infer) {
  return infer_content(infer, KEEPS_MAGNITUDE);
}
static clv_status infer_neg(clv__infer *infer) {
  return infer_content(infer, NEGATES);
}

static clv_status infer_test(clv__infer *infer) {
  clv__infer_set(infer, 0, CLV_BOOL, infer->inputs[0].rank, infer->inputs[0].dims);
  return CLV_OK;
}

static clv_status infer_not(clv__infer *infer) {
  clv__content content;
  CLV__TRY(infer_test(infer));
  if (infer->output_content == NULL || !clv__infer_elements(infer, 0, &content)) return CLV_OK;
  for (uint32_t i = 0; i < content.count; ++i) {
    if (clv__element_is_number(content.elements[i])) content.elements[i] = content.elements[i] == 0;
  }
  *infer->output_content = content;
  return CLV_OK;
}

static clv_status infer_clip(clv__infer *infer) {
  static const char *const names[] = {"input", "min", "max"};
  for (uint32_t i = 1; i < 3 && infer->opset >= 11; ++i) {
    if (!clv__infer_has(infer, i)) continue;
    const clv_tensor *bound = &infer->inputs[i];
    bool scalar = bound->rank <= 0 || (bound->rank == 1 && (bound->dims[0] < 0 || bound->dims[0] == 1));
    bool same = infer->inputs[0].dtype == CLV_DTYPE_NONE || bound->dtype == infer->inputs[0].dtype;
    if (scalar && same) continue;
    char text[128];
    clv__infer_text(infer, bound, text, sizeof text);
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "input %s must be a scalar of dtype %s, not %s", names[i],
                          clv_dtype_name(infer->inputs[0].dtype), text);
  }
  return clv__infer_same(infer);
}

/* Counts 12 FLOPs per element: the approximate cost of an exponential, a root or an error function. */
static void work_function(const clv__infer *infer, clv__work *work) {
  size_t count;
  if (clv__tensor_count(&infer->outputs[0], &count)) work->flops = 12.0 * (double)count;
}

#define UNARY(name, infer, work) \
  { "", name, 1, 1, 1, 1, CLV__OP_ELEMENTWISE, infer, work, NULL }
#define SIMPLE(name) UNARY(name, clv__infer_same, NULL)
#define FUNCTION(name) UNARY(name, clv__infer_same, work_function)

const clv__op clv__ops_unary[] = {
    {"", "Relu", 1, 1, 1, 1, CLV__OP_ELEMENTWISE | CLV__OP_KEEPS_ZERO | CLV__OP_KEEPS_STEPS, infer_relu, NULL, NULL},
    {"", "Abs", 1, 1, 1, 1, CLV__OP_ELEMENTWISE | CLV__OP_KEEPS_ZERO | CLV__OP_KEEPS_STEPS, infer_abs, NULL, NULL},
    {"", "Neg", 1, 1, 1, 1, CLV__OP_ELEMENTWISE | CLV__OP_KEEPS_ZERO | CLV__OP_KEEPS_STEPS, infer_neg, NULL, NULL},
    UNARY("IsNaN", infer_test, NULL),
    UNARY("IsInf", infer_test, NULL),
    UNARY("Not", infer_not, NULL),
    SIMPLE("LeakyRelu"),
    SIMPLE("ThresholdedRelu"),
    SIMPLE("HardSigmoid"),
    SIMPLE("HardSwish"),
    SIMPLE("Softsign"),
    SIMPLE("Reciprocal"),
    SIMPLE("Floor"),
    SIMPLE("Ceil"),
    SIMPLE("Round"),
    SIMPLE("Sign"),
    SIMPLE("Shrink"),
    SIMPLE("BitwiseNot"),
    SIMPLE("Sqrt"),
    FUNCTION("Elu"),
    FUNCTION("Selu"),
    FUNCTION("Celu"),
    FUNCTION("Sigmoid"),
    FUNCTION("Swish"),
    FUNCTION("Mish"),
    FUNCTION("Softplus"),
    FUNCTION("Tanh"),
    FUNCTION("Gelu"),
    FUNCTION("Erf"),
    FUNCTION("Exp"),
    FUNCTION("Log"),
    FUNCTION("Sin"),
    FUNCTION("Cos"),
    FUNCTION("Tan"),
    FUNCTION("Asin"),
    FUNCTION("Acos"),
    FUNCTION("Atan"),
    FUNCTION("Sinh"),
    FUNCTION("Cosh"),
    FUNCTION("Asinh"),
    FUNCTION("Acosh"),
    FUNCTION("Atanh"),
    {"ai.onnx.ml", "Binarizer", 1, 1, 1, 1, CLV__OP_ELEMENTWISE, clv__infer_same, NULL, NULL},
    {"", "Clip", 1, 3, 1, 1, CLV__OP_ELEMENTWISE | CLV__OP_KEEPS_STEPS, infer_clip, NULL, NULL},
    {.name = NULL},
};
