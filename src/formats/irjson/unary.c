/* ATen's elementwise functions of one tensor. See lower.h. */
#include <math.h>

#include "formats/irjson/lower.h"

typedef clv__aten_value value;
typedef clv__aten_node aten;

/* Lowers a function of real numbers to the one ONNX operator that computes it. Integer inputs are cast to f32. */
static void lower_function(aten *n) {
  static const char *const names[][2] = {{"exp", "Exp"},         {"log", "Log"},
                                         {"sqrt", "Sqrt"},       {"sin", "Sin"},
                                         {"cos", "Cos"},         {"tan", "Tan"},
                                         {"asin", "Asin"},       {"acos", "Acos"},
                                         {"atan", "Atan"},       {"sinh", "Sinh"},
                                         {"cosh", "Cosh"},       {"asinh", "Asinh"},
                                         {"acosh", "Acosh"},     {"atanh", "Atanh"},
                                         {"erf", "Erf"},         {"tanh", "Tanh"},
                                         {"sigmoid", "Sigmoid"}, {"reciprocal", "Reciprocal"},
                                         {"mish", "Mish"},       {"hardswish", "HardSwish"}};
  const char *op = NULL;
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
    if (strcmp(names[i][0], n->stem) == 0) op = names[i][1];
  }
  value x = clv__aten_real_input(n, 0);
  clv__aten_return(n, 0, clv__aten_call(n, op, x.type.dtype, x));
}

/* Functions that accept any dtype except bool. The result has the dtype of the input. */
static void lower_plain(aten *n) {
  static const char *const names[][2] = {{"relu", "Relu"}, {"neg", "Neg"}, {"abs", "Abs"}};
  const char *op = NULL;
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
    if (strcmp(names[i][0], n->stem) == 0) op = names[i][1];
  }
  value x = clv__aten_input(n, 0);
  if (x.type.dtype == CLV_BOOL) clv__aten_keep(n);
  clv__aten_return(n, 0, clv__aten_call(n, op, x.type.dtype, x));
}

/* ATen's sign of NaN is 0, which ONNX's Sign does not guarantee. */
static void lower_sign(aten *n) {
  value x = clv__aten_input(n, 0);
  clv_dtype dtype = x.type.dtype;
  if (dtype == CLV_BOOL) clv__aten_keep(n);
  value sign = clv__aten_call(n, "Sign", dtype, x);
  if (!clv__aten_is_float(dtype))
    clv__aten_return(n, 0, sign);
  else
    clv__aten_return(
        n, 0, clv__aten_call(n, "Where", dtype, clv__aten_call(n, "IsNaN", CLV_BOOL, x), clv__aten_number(n, dtype, 0), sign));
}

/* Lowers floor, ceil and round. Integer inputs are returned unchanged. */
static void lower_round(aten *n) {
  value x = clv__aten_input(n, 0);
  const char *op = n->stem[0] == 'f' ? "Floor" : n->stem[0] == 'c' ? "Ceil" : "Round";
  if (clv__aten_int(n, "decimals", 0) != 0) clv__aten_keep(n);
  clv__aten_return(n, 0, clv__aten_is_float(x.type.dtype) ? clv__aten_call(n, op, x.type.dtype, x) : x);
}

static void lower_rsqrt(aten *n) {
  value x = clv__aten_wide_input(n, 0);
  clv_dtype dtype = x.type.dtype;
  clv__aten_return(n, 0, clv__aten_call(n, "Reciprocal", dtype, clv__aten_call(n, "Sqrt", dtype, x)));
}

static void lower_square(aten *n) {
  value x = clv__aten_input(n, 0);
  clv__aten_return(n, 0, clv__aten_call(n, "Mul", x.type.dtype, x, x));
}

static void lower_logarithm(aten *n) {
  value x = clv__aten_wide_input(n, 0);
  double factor = strcmp(n->stem, "log2") == 0 ? 1 / log(2) : 1 / log(10);
  clv_dtype dtype = x.type.dtype;
  clv__aten_return(n, 0, clv__aten_call(n, "Mul", dtype, clv__aten_call(n, "Log", dtype, x), clv__aten_number(n, dtype, factor)));
}

static void lower_silu(aten *n) {
  value x = clv__aten_wide_input(n, 0);
  clv__aten_return(n, 0, clv__aten_call(n, "Mul", x.type.dtype, x, clv__aten_call(n, "Sigmoid", x.type.dtype, x)));
}

static void lower_gelu(aten *n) {
  const char *how = clv__aten_text(n, "approximate", "none");
  value x = clv__aten_real_input(n, 0);
  if (strcmp(how, "none") != 0 && strcmp(how, "tanh") != 0)
    clv__aten_fail(n, "attrs.approximate is '%.40s'; expected 'none' or 'tanh'", how);
  clv__aten_set_string(n, "approximate", how);
  clv__aten_return(n, 0, clv__aten_call(n, "Gelu", x.type.dtype, x));
}

/* Returns whether a number can be an ONNX attribute, which is f32. A number that needs f64 must become a constant. */
static bool fits_attribute(clv_dtype dtype, double number) {
  return dtype != CLV_F64 || (double)(float)number == number;
}

static value above_zero(aten *n, value x, value then, value otherwise) {
  value above = clv__aten_call(n, "Greater", CLV_BOOL, x, clv__aten_number(n, x.type.dtype, 0));
  return clv__aten_call(n, "Where", x.type.dtype, above, then, otherwise);
}

static value times(aten *n, value x, double factor) {
  return factor == 1 ? x : clv__aten_call(n, "Mul", x.type.dtype, x, clv__aten_number(n, x.type.dtype, factor));
}

static void lower_leaky(aten *n) {
  value x = clv__aten_real_input(n, 0);
  double slope = clv__aten_real(n, "negative_slope", 0.01);
  if (!fits_attribute(x.type.dtype, slope)) {
    clv__aten_return(n, 0, above_zero(n, x, x, times(n, x, slope)));
    return;
  }
  clv__aten_set_float(n, "alpha", slope);
  clv__aten_return(n, 0, clv__aten_call(n, "LeakyRelu", x.type.dtype, x));
}

/* Lowers to: scale * x if x is positive, otherwise scale * alpha * (exp(input_scale * x) - 1). */
static void elu(aten *n, double alpha, double scale, double input_scale) {
  value x = clv__aten_wide_input(n, 0);
  clv__aten_set_float(n, "alpha", 1);
  value below = times(n, clv__aten_call(n, "Elu", x.type.dtype, times(n, x, input_scale)), alpha * scale);
  clv__aten_return(n, 0, above_zero(n, x, times(n, x, scale), below));
}

static void lower_elu(aten *n) {
  value x = clv__aten_real_input(n, 0);
  bool is_celu = strcmp(n->stem, "celu") == 0;
  double alpha = clv__aten_real(n, "alpha", 1), scale = clv__aten_real(n, "scale", 1),
         inner = clv__aten_real(n, "input_scale", 1);
  if (is_celu && alpha == 0) clv__aten_keep(n);
  if (!fits_attribute(x.type.dtype, alpha) || scale != 1 || inner != 1) {
    elu(n, alpha, scale, is_celu ? 1 / alpha : inner);
    return;
  }
  clv__aten_set_float(n, "alpha", alpha);
  clv__aten_return(n, 0, clv__aten_call(n, is_celu ? "Celu" : "Elu", x.type.dtype, x));
}

static void lower_selu(aten *n) {
  value x = clv__aten_real_input(n, 0);
  if (x.type.dtype == CLV_F64)
    elu(n, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946, 1);
  else
    clv__aten_return(n, 0, clv__aten_call(n, "Selu", x.type.dtype, x));
}

static void lower_hardsigmoid(aten *n) {
  value x = clv__aten_real_input(n, 0);
  clv_dtype dtype = x.type.dtype;
  if (dtype == CLV_F64) {
    value high = clv__aten_call(n, "Add", dtype, x, clv__aten_number(n, dtype, 3));
    high = clv__aten_call(n, "Clip", dtype, high, clv__aten_number(n, dtype, 0), clv__aten_number(n, dtype, 6));
    clv__aten_return(n, 0, clv__aten_call(n, "Div", dtype, high, clv__aten_number(n, dtype, 6)));
    return;
  }
  clv__aten_set_float(n, "alpha", 1.0 / 6);
  clv__aten_set_float(n, "beta", 0.5);
  clv__aten_return(n, 0, clv__aten_call(n, "HardSigmoid", dtype, x));
}

/* If x * beta is above the threshold, ATen returns x itself. Above 20, x differs from Softplus by less than f32's rounding error,
 * so the comparison is emitted only for lower thresholds. */
static void lower_softplus(aten *n) {
  value x = clv__aten_wide_input(n, 0);
  clv_dtype dtype = x.type.dtype;
  double beta = clv__aten_real(n, "beta", 1), threshold = clv__aten_real(n, "threshold", 20);
  if (beta == 0) clv__aten_keep(n);
  value factor = clv__aten_number(n, dtype, beta);
  value scaled = beta == 1 ? x : clv__aten_call(n, "Mul", dtype, x, factor);
  value made = clv__aten_call(n, "Softplus", dtype, scaled);
  if (beta != 1) made = clv__aten_call(n, "Div", dtype, made, factor);
  if (threshold < 20) {
    value above = clv__aten_call(n, "Greater", CLV_BOOL, scaled, clv__aten_number(n, dtype, threshold));
    made = clv__aten_call(n, "Where", dtype, above, x, made);
  }
  clv__aten_return(n, 0, made);
}

/* Splits x into two halves a and b along an axis, and returns a * sigmoid(b). */
static void lower_glu(aten *n) {
  value x = clv__aten_wide_input(n, 0);
  int64_t axis = clv__aten_axis(n, "dim", -1, x.type.rank);
  if (x.type.rank < 1 || x.type.dims[axis] % 2 != 0)
    clv__aten_fail(n, "its input cannot be split into two halves: its rank is 0, or attrs.dim has an odd size");
  if (n->status != CLV_OK) return;
  int64_t half = x.type.dims[axis] / 2;
  value a = clv__aten_slice(n, x, axis, 0, half, 1), b = clv__aten_slice(n, x, axis, half, 2 * half, 1);
  clv__aten_return(n, 0, clv__aten_call(n, "Mul", x.type.dtype, a, clv__aten_call(n, "Sigmoid", x.type.dtype, b)));
}

static void lower_prelu(aten *n) {
  value x = clv__aten_real_input(n, 0), slope = clv__aten_cast(n, clv__aten_input(n, 1), x.type.dtype);
  int64_t dims[CLV_MAX_RANK];
  int32_t rank = x.type.rank > 1 ? x.type.rank - 1 : 1; /* the slopes apply to axis 1, so their shape is [count, 1, …] */
  size_t count = 0;
  if (n->status != CLV_OK || !clv__tensor_count(&slope.type, &count)) return;
  for (int32_t i = 0; i < rank; ++i) dims[i] = i == 0 ? (int64_t)count : 1;
  clv__aten_return(n, 0, clv__aten_call(n, "PRelu", x.type.dtype, x, clv__aten_reshape(n, slope, rank, dims)));
}

static void lower_not(aten *n) {
  value x = clv__aten_input(n, 0);
  bool bits = strcmp(n->stem, "bitwise_not") == 0 && x.type.dtype != CLV_BOOL;
  if (bits)
    clv__aten_return(n, 0, clv__aten_call(n, "BitwiseNot", x.type.dtype, x));
  else
    clv__aten_return(n, 0, clv__aten_call(n, "Not", CLV_BOOL, clv__aten_cast(n, x, CLV_BOOL)));
}

static void lower_test(aten *n) {
  value x = clv__aten_real_input(n, 0);
  clv__aten_return(n, 0, clv__aten_call(n, n->stem[2] == 'n' ? "IsNaN" : "IsInf", CLV_BOOL, x));
}

/* Returns a bound of clamp, which may be a number or a tensor. If both bounds are tensors, this one is input `position`. */
static value bound(aten *n, const char *name, uint32_t position, clv_dtype dtype) {
  if (n->input_count > 1) return clv__aten_cast(n, clv__aten_optional(n, name, position), dtype);
  clv__aten_scalar scalar = clv__aten_scalar_of(n, name);
  if (scalar.dtype == CLV_DTYPE_NONE) return clv__aten_absent();
  return clv__aten_constant(n, dtype, scalar);
}

/* Clip supports only scalar bounds. Tensor bounds use Max, then Min, as in ATen. */
static void lower_clamp(aten *n) {
  value x = clv__aten_input(n, 0);
  bool relu6 = strcmp(n->stem, "relu6") == 0, tanh_like = strcmp(n->stem, "hardtanh") == 0;
  const char *low_name = tanh_like ? "min_val" : "min", *high_name = tanh_like ? "max_val" : "max";
  clv__aten_scalar ends[2] = {clv__aten_scalar_of(n, low_name), clv__aten_scalar_of(n, high_name)};
  clv_dtype dtype = clv__aten_common(&x, 1, ends[0]);
  dtype = clv__aten_common(&(value){CLV__NO_ID, {.dtype = dtype, .rank = x.type.rank}}, 1, ends[1]);
  if (n->input_count > 1) dtype = clv__aten_common(n->inputs, n->input_count, (clv__aten_scalar){CLV_DTYPE_NONE, 0, 0});
  if (dtype == CLV_BOOL) clv__aten_keep(n);
  bool only_high = strcmp(n->stem, "clamp_max") == 0, only_low = strcmp(n->stem, "clamp_min") == 0;
  bool tensors = n->input_count > 1;
  if (tensors && !only_high && !only_low && n->input_count == 2 && !n->has_arguments)
    clv__aten_keep(n); /* one bound, which may be the lower or the upper: the file does not say */
  value low = only_high ? clv__aten_absent() : bound(n, low_name, 1, dtype);
  value high = only_low ? clv__aten_absent() : bound(n, high_name, only_high ? 1 : 2, dtype);
  if (relu6) low = clv__aten_number(n, dtype, 0), high = clv__aten_number(n, dtype, 6);
  if (tanh_like && low.id == CLV__NO_ID) low = clv__aten_number(n, dtype, -1);
  if (tanh_like && high.id == CLV__NO_ID) high = clv__aten_number(n, dtype, 1);
  value made = clv__aten_cast(n, x, dtype);
  if (!tensors) {
    clv__aten_return(n, 0, clv__aten_call(n, "Clip", dtype, made, low, high));
    return;
  }
  if (low.id != CLV__NO_ID) made = clv__aten_call(n, "Max", dtype, made, low);
  if (high.id != CLV__NO_ID) made = clv__aten_call(n, "Min", dtype, made, high);
  clv__aten_return(n, 0, made);
}

const clv__aten_lowering clv__aten_unary[] = {
    {"exp", lower_function},
    {"log", lower_function},
    {"sqrt", lower_function},
    {"sin", lower_function},
    {"cos", lower_function},
    {"tan", lower_function},
    {"asin", lower_function},
    {"acos", lower_function},
    {"atan", lower_function},
    {"sinh", lower_function},
    {"cosh", lower_function},
    {"asinh", lower_function},
    {"acosh", lower_function},
    {"atanh", lower_function},
    {"erf", lower_function},
    {"tanh", lower_function},
    {"sigmoid", lower_function},
    {"reciprocal", lower_function},
    {"mish", lower_function},
    {"hardswish", lower_function},
    {"relu", lower_plain},
    {"neg", lower_plain},
    {"abs", lower_plain},
    {"sign", lower_sign},
    {"floor", lower_round},
    {"ceil", lower_round},
    {"round", lower_round},
    {"rsqrt", lower_rsqrt},
    {"square", lower_square},
    {"log2", lower_logarithm},
    {"log10", lower_logarithm},
    {"silu", lower_silu},
    {"gelu", lower_gelu},
    {"leaky_relu", lower_leaky},
    {"elu", lower_elu},
    {"celu", lower_elu},
    {"selu", lower_selu},
    {"hardsigmoid", lower_hardsigmoid},
    {"softplus", lower_softplus},
    {"glu", lower_glu},
    {"prelu", lower_prelu},
    {"_prelu_kernel", lower_prelu},
    {"logical_not", lower_not},
    {"bitwise_not", lower_not},
    {"isnan", lower_test},
    {"isinf", lower_test},
    {"clamp", lower_clamp},
    {"clamp_min", lower_clamp},
    {"clamp_max", lower_clamp},
    {"clip", lower_clamp},
    {"hardtanh", lower_clamp},
    {"relu6", lower_clamp},
    {NULL, NULL},
};
