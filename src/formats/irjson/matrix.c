/* ATen's matrix products. The weight of a linear layer is not copied to transpose it: Gemm's attribute transB does that. See
 * lower.h. */
#include "formats/irjson/lower.h"

typedef clv__aten_value value;
typedef clv__aten_node aten;

/* Returns the declared dtype of the output, to which all operands are cast. */
static clv_dtype product_dtype(const aten *n) {
  return n->output_count > 0 ? n->outputs[0].type.dtype : CLV_F32;
}

static void lower_matmul(aten *n) {
  clv_dtype dtype = product_dtype(n);
  value a = clv__aten_cast(n, clv__aten_input(n, 0), dtype), b = clv__aten_cast(n, clv__aten_input(n, 1), dtype);
  clv__aten_return(n, 0, clv__aten_call(n, "MatMul", dtype, a, b));
}

/* Lowers x W^T + b to Gemm. Merges all axes of x before the last one into rows, because Gemm accepts only matrices. */
static void lower_linear(aten *n) {
  clv_dtype dtype = product_dtype(n);
  value x = clv__aten_input(n, 0), w = clv__aten_input(n, 1), bias = clv__aten_absent();
  if (n->input_count > 2) bias = clv__aten_cast(n, n->inputs[2], dtype);
  if (w.type.rank < 1 || w.type.rank > 2 || x.type.rank < 1 || bias.type.rank > 1) clv__aten_keep(n);
  if (n->status != CLV_OK) return;
  if (w.type.rank == 1) { /* a vector of weights: the result has no axis for the output features */
    value dots = clv__aten_call(n, "MatMul", dtype, clv__aten_cast(n, x, dtype), clv__aten_cast(n, w, dtype));
    clv__aten_return(n, 0, bias.id == CLV__NO_ID ? dots : clv__aten_call(n, "Add", dtype, dots, bias));
    return;
  }
  const clv_tensor *to = &n->outputs[0].type;
  int64_t rows = 1;
  for (int32_t i = 0; i + 1 < x.type.rank; ++i) rows *= x.type.dims[i]; /* cannot overflow: at most the number of elements */
  int64_t in[2] = {rows, x.type.dims[x.type.rank - 1]};
  x = clv__aten_reshape(n, clv__aten_cast(n, x, dtype), 2, in);
  w = clv__aten_cast(n, w, dtype);
  clv__aten_set_int(n, "transB", 1);
  value made = clv__aten_call(n, "Gemm", dtype, x, w, bias);
  made.type.rank = 2;
  made.type.dims[0] = rows;
  made.type.dims[1] = w.type.dims[0];
  clv__aten_return(n, 0, clv__aten_reshape(n, made, to->rank, to->dims));
}

/* Lowers beta * c + alpha * a b. */
static void lower_addmm(aten *n) {
  clv_dtype dtype = product_dtype(n);
  value c = clv__aten_cast(n, clv__aten_input(n, 0), dtype), a = clv__aten_cast(n, clv__aten_input(n, 1), dtype);
  value b = clv__aten_cast(n, clv__aten_input(n, 2), dtype);
  clv__aten_scalar alpha = clv__aten_scalar_of(n, "alpha"), beta = clv__aten_scalar_of(n, "beta");
  bool has_alpha = alpha.dtype != CLV_DTYPE_NONE && alpha.real != 1, has_beta = beta.dtype != CLV_DTYPE_NONE && beta.real != 1;
  if (n->status != CLV_OK) return;
  bool fits = dtype != CLV_F64 || ((!has_alpha || (double)(float)alpha.real == alpha.real) &&
                                   (!has_beta || (double)(float)beta.real == beta.real)); /* Gemm's attributes are f32 */
  if (a.type.rank == 2 && b.type.rank == 2 && clv__aten_is_float(dtype) && fits) {
    if (has_beta && beta.real == 0) c = clv__aten_absent();
    if (has_alpha) clv__aten_set_float(n, "alpha", alpha.real);
    if (has_beta && beta.real != 0) clv__aten_set_float(n, "beta", beta.real);
    clv__aten_return(n, 0, clv__aten_call(n, "Gemm", dtype, a, b, c));
    return;
  }
  value made = clv__aten_call(n, "MatMul", dtype, a, b);
  if (has_alpha) made = clv__aten_call(n, "Mul", dtype, made, clv__aten_constant(n, dtype, alpha));
  if (has_beta && beta.real != 0) c = clv__aten_call(n, "Mul", dtype, c, clv__aten_constant(n, dtype, beta));
  bool is_added = !has_beta || beta.real != 0; /* if beta is 0, ATen ignores c, even if it contains NaN */
  clv__aten_return(n, 0, is_added ? clv__aten_call(n, "Add", dtype, c, made) : made);
}

static void lower_outer(aten *n) {
  clv_dtype dtype = product_dtype(n);
  value a = clv__aten_cast(n, clv__aten_input(n, 0), dtype), b = clv__aten_cast(n, clv__aten_input(n, 1), dtype);
  clv__aten_return(n, 0, clv__aten_call(n, "Mul", dtype, clv__aten_unsqueeze(n, a, 1), b));
}

/* ATen's equations have the syntax of ONNX's. A node with lists of axes instead of an equation is kept. */
static void lower_einsum(aten *n) {
  const char *equation = clv__aten_text(n, "equation", NULL);
  clv_dtype dtype = product_dtype(n);
  value *operands = clv__arena_allocate_zero(n->arena, n->input_count, sizeof *operands);
  if (operands == NULL) n->status = clv__error_memory(n->error, n->input_count * sizeof *operands);
  if (equation == NULL || n->input_count == 0) clv__aten_keep(n);
  for (uint32_t i = 0; n->status == CLV_OK && i < n->input_count; ++i) operands[i] = clv__aten_cast(n, n->inputs[i], dtype);
  if (n->status != CLV_OK) return;
  clv__aten_set_string(n, "equation", equation);
  clv__aten_return(n, 0, clv__aten_op(n, "Einsum", dtype, operands, n->input_count));
}

const clv__aten_lowering clv__aten_matrix[] = {
    {"matmul", lower_matmul}, {"mm", lower_matmul},     {"bmm", lower_matmul},  {"mv", lower_matmul},
    {"dot", lower_matmul},    {"linear", lower_linear}, {"addmm", lower_addmm}, {"baddbmm", lower_addmm},
    {"outer", lower_outer},   {"einsum", lower_einsum}, {NULL, NULL},
};
