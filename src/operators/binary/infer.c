/* Element-wise operators of several inputs, which broadcast. The known elements of small integer vectors are computed here too,
 * because models compute shapes from them. */
#include "operators/common/checks.h"
#include "operators/common/content.h"
#include "operators/common/padding.h"

/* The common dtype of all inputs from `first` on, or none if it is unknown. An error if they differ. */
static clv_status common_dtype(clv__infer *infer, uint32_t first, clv_dtype *dtype) {
  *dtype = CLV_DTYPE_NONE;
  for (uint32_t i = first; i < infer->input_count; ++i) {
    clv_dtype other = infer->inputs[i].dtype;
    if (other == CLV_DTYPE_NONE || other == *dtype) continue;
    if (*dtype != CLV_DTYPE_NONE) {
      return clv__error_set(infer->error, CLV_INVALID_MODEL, "inputs must have the same dtype, not %s and %s",
                            clv_dtype_name(*dtype), clv_dtype_name(other));
    }
    *dtype = other;
  }
  return CLV_OK;
}

/* Infers an output of dtype `dtype`, or of the inputs' dtype if `dtype` is NONE, with the shape to which the inputs
 * broadcast. */
static clv_status infer_broadcast(clv__infer *infer, clv_dtype dtype) {
  clv_dtype common;
  clv_tensor out = {.rank = CLV_RANK_UNKNOWN};
  CLV__TRY(common_dtype(infer, 0, &common));
  CLV__TRY(clv__infer_broadcast(infer, infer->inputs, infer->input_count, &out));
  clv__infer_set(infer, 0, dtype != CLV_DTYPE_NONE ? dtype : common, out.rank, out.dims);
  return CLV_OK;
}

static clv_status infer_plain(clv__infer *infer) {
  return infer_broadcast(infer, CLV_DTYPE_NONE);
}
static clv_status infer_compare(clv__infer *infer) {
  return infer_broadcast(infer, CLV_BOOL);
}

#define INFER(name, base, what, first, second)        \
  static clv_status infer_##name(clv__infer *infer) { \
    CLV__TRY(base(infer));                            \
    clv__content_combine(infer, what, first, second); \
    return CLV_OK;                                    \
  }
INFER(add, infer_plain, CLV__ADD, 0, 1)
INFER(sub, infer_plain, CLV__SUB, 0, 1)
INFER(mul, infer_plain, CLV__MUL, 0, 1)
INFER(div, infer_plain, CLV__DIV, 0, 1)
INFER(equal, infer_compare, CLV__EQUAL, 0, 1)
INFER(less, infer_compare, CLV__LESS, 0, 1)
INFER(less_equal, infer_compare, CLV__LESS_EQUAL, 0, 1)
INFER(greater, infer_compare, CLV__LESS, 1, 0)
INFER(greater_equal, infer_compare, CLV__LESS_EQUAL, 1, 0)
INFER(and, infer_compare, CLV__AND, 0, 1)
INFER(or, infer_compare, CLV__OR, 0, 1)
INFER(xor, infer_compare, CLV__XOR, 0, 1)

static clv_status infer_mod(clv__infer *infer) {
  CLV__TRY(infer_plain(infer));
  if (clv__attribute_int(infer->attributes, "fmod", 0) == 0) clv__content_combine(infer, CLV__MOD, 0, 1);
  return CLV_OK;
}

/* Computes known elements only if there are two inputs, as is usual where a model computes shapes. */
static clv_status infer_extreme(clv__infer *infer, clv__arithmetic what) {
  CLV__TRY(infer_plain(infer));
  if (infer->input_count == 2) clv__content_combine(infer, what, 0, 1);
  return CLV_OK;
}
static clv_status infer_min(clv__infer *infer) {
  return infer_extreme(infer, CLV__MIN);
}
static clv_status infer_max(clv__infer *infer) {
  return infer_extreme(infer, CLV__MAX);
}

static clv_status infer_pow(clv__infer *infer) {
  clv_tensor out = {.rank = CLV_RANK_UNKNOWN};
  CLV__TRY(clv__infer_broadcast(infer, infer->inputs, 2, &out));
  clv__infer_set(infer, 0, infer->inputs[0].dtype, out.rank, out.dims);
  return CLV_OK;
}

/* The slope of PRelu must broadcast to the shape of X, and must not enlarge it. */
static clv_status infer_prelu(clv__infer *infer) {
  const clv_tensor *x = &infer->inputs[0], *slope = &infer->inputs[1];
  CLV__TRY(infer_plain(infer));
  for (int32_t axis = 0; x->rank >= 0 && axis < slope->rank; ++axis) {
    int32_t own = axis + x->rank - slope->rank;
    int64_t dim = own >= 0 ? x->dims[own] : 1;
    if (slope->dims[axis] < 0 || dim < 0 || slope->dims[axis] == 1 || slope->dims[axis] == dim) continue;
    char text[128], x_text[128];
    clv__infer_text(infer, slope, text, sizeof text);
    clv__infer_text(infer, x, x_text, sizeof x_text);
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "input slope, %s, does not broadcast to X, %s", text, x_text);
  }
  clv__infer_set(infer, 0, infer->outputs[0].dtype, x->rank, x->dims);
  return CLV_OK;
}

static void where_content(clv__infer *infer) {
  clv__content parts[3];
  uint32_t count;
  if (!clv__content_room(infer, &count)) return;
  for (uint32_t k = 0; k < 3; ++k) {
    if (!clv__infer_elements(infer, k, &parts[k]) || (parts[k].count != count && parts[k].count != 1)) return;
  }
  clv__content *out = infer->output_content;
  out->known = true;
  out->count = count;
  for (uint32_t i = 0; i < count; ++i) {
    int64_t elements[3];
    for (uint32_t k = 0; k < 3; ++k) elements[k] = parts[k].elements[parts[k].count == 1 ? 0 : i];
    if (clv__element_is_number(elements[0]))
      out->elements[i] = elements[elements[0] != 0 ? 1 : 2];
    else
      out->elements[i] = elements[1] == elements[2] ? elements[1] : CLV__ELEMENT_UNKNOWN;
  }
}

static clv_status infer_where(clv__infer *infer) {
  clv_dtype dtype;
  clv_tensor out = {.rank = CLV_RANK_UNKNOWN};
  if (infer->inputs[0].dtype != CLV_BOOL && infer->inputs[0].dtype != CLV_DTYPE_NONE) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "input condition must be bool, not %s",
                          clv_dtype_name(infer->inputs[0].dtype));
  }
  CLV__TRY(common_dtype(infer, 1, &dtype));
  CLV__TRY(clv__infer_broadcast(infer, infer->inputs, 3, &out));
  clv__infer_set(infer, 0, dtype, out.rank, out.dims);
  where_content(infer);
  return CLV_OK;
}

static clv_status infer_swiglu(clv__infer *infer) {
  const clv_tensor *a = &infer->inputs[0], *b = &infer->inputs[1];
  clv_tensor merged = *a;
  CLV__TRY(clv__check_same_dtype(infer, 0, 1));
  if (a->rank >= 0 && b->rank >= 0) {
    CLV__TRY(clv__check_rank(infer, 1, a->rank, a->rank));
    for (int32_t i = 0; i < a->rank; ++i) {
      CLV__TRY(clv__check_same_dim(infer, a->dims[i], b->dims[i], "the dimensions of A and B"));
      clv__dim_merge(a->dims[i], b->dims[i], &merged.dims[i]);
    }
  } else if (a->rank < 0) {
    merged = *b;
  }
  clv__infer_set(infer, 0, a->dtype, merged.rank, merged.dims);
  return CLV_OK;
}

static void work_swiglu(const clv__infer *infer, clv__work *work) {
  work->flops = 15 * clv__known_count(&infer->inputs[0]);
}

static void work_pow(const clv__infer *infer, clv__work *work) {
  size_t count;
  if (clv__tensor_count(&infer->outputs[0], &count)) work->flops = 20.0 * (double)count;
}

/* Counts one operation per output element for each input after the first. */
static void work_variadic(const clv__infer *infer, clv__work *work) {
  size_t count;
  if (clv__tensor_count(&infer->outputs[0], &count))
    work->flops = (double)count * (double)(infer->input_count > 1 ? infer->input_count - 1 : 1);
}

/* ---- Independence along padded axes (common/padding.h) ---- */

/* An integer divisor must not be padded, because some devices stop on a division by zero. */
static bool independent_divide(clv__padding *padding) {
  bool real = (CLV__DTYPE_BIT(padding->node->inputs[0].dtype) & CLV__DTYPES_FLOAT) != 0;
  if (!real && padding->inputs[1] != 0) return clv__padding_no(padding, "its integer divisor has an axis of open size");
  return clv__independent_elementwise(padding);
}

#define BINARY(name, infer) \
  { "", name, 2, 2, 1, 1, CLV__OP_ELEMENTWISE, infer, NULL, NULL }
#define VARIADIC(name, infer) \
  { "", name, 1, CLV__ANY_COUNT, 1, 1, CLV__OP_ELEMENTWISE, infer, work_variadic, NULL }

const clv__op clv__ops_binary[] = {
    BINARY("Add", infer_add),
    BINARY("Sub", infer_sub),
    BINARY("Mul", infer_mul),
    {"", "Div", 2, 2, 1, 1, CLV__OP_ELEMENTWISE, infer_div, NULL, independent_divide},
    {"", "Mod", 2, 2, 1, 1, CLV__OP_ELEMENTWISE, infer_mod, NULL, independent_divide},
    BINARY("PRelu", infer_prelu),
    BINARY("Equal", infer_equal),
    BINARY("Less", infer_less),
    BINARY("LessOrEqual", infer_less_equal),
    BINARY("Greater", infer_greater),
    BINARY("GreaterOrEqual", infer_greater_equal),
    BINARY("And", infer_and),
    BINARY("Or", infer_or),
    BINARY("Xor", infer_xor),
    BINARY("BitShift", infer_plain),
    BINARY("BitwiseAnd", infer_plain),
    BINARY("BitwiseOr", infer_plain),
    BINARY("BitwiseXor", infer_plain),
    VARIADIC("Min", infer_min),
    VARIADIC("Max", infer_max),
    VARIADIC("Sum", infer_plain),
    VARIADIC("Mean", infer_plain),
    {"", "Pow", 2, 2, 1, 1, CLV__OP_ELEMENTWISE, infer_pow, work_pow, NULL},
    {"", "Where", 3, 3, 1, 1, CLV__OP_ELEMENTWISE, infer_where, NULL, NULL},
    {"", "SwiGLU", 2, 2, 1, 1, CLV__OP_ELEMENTWISE, infer_swiglu, work_swiglu, NULL},
    {.name = NULL},
};
