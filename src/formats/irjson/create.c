/* ATen's operators that create tensors from numbers. See lower.h. */
#include "formats/irjson/lower.h"

typedef clv__aten_value value;
typedef clv__aten_node aten;
typedef clv__aten_scalar scalar;

static const scalar zero = {CLV_F32, 0, 0}, one = {CLV_F32, 1, 1};

/* Fills a tensor. Its shape and dtype are those declared for the output, both for full(size) and for full_like(tensor). */
static void lower_full(aten *n) {
  bool ones = strstr(n->stem, "ones") != NULL, any = strstr(n->stem, "full") != NULL || strcmp(n->stem, "scalar_tensor") == 0;
  scalar number = ones ? one : zero;
  if (any) {
    number = clv__aten_scalar_of(n, strcmp(n->stem, "scalar_tensor") == 0 ? "s" : "fill_value");
    if (number.dtype == CLV_DTYPE_NONE) clv__aten_keep(n);
  }
  const clv_tensor *to = &n->outputs[0].type;
  clv__aten_return(n, 0, clv__aten_filled(n, to->dtype, number, to));
}

/* Lowers to Range: start, start + step, … up to but excluding the end. The dtype of Range may differ from the declared one;
 * clv__aten_return() casts the result. */
static void lower_arange(aten *n) {
  const clv_tensor *to = &n->outputs[0].type;
  scalar start = clv__aten_scalar_of(n, "start"), end = clv__aten_scalar_of(n, "end"), step = clv__aten_scalar_of(n, "step");
  if (start.dtype == CLV_DTYPE_NONE) start = zero;
  if (step.dtype == CLV_DTYPE_NONE) step = one;
  if (end.dtype == CLV_DTYPE_NONE || step.real == 0) clv__aten_fail(n, "attrs.end is missing, or attrs.step is 0");
  bool integers = start.real == (double)start.integer && end.real == (double)end.integer && step.real == (double)step.integer;
  /* Whole numbers are computed exactly in i64, whatever the output dtype. */
  clv_dtype dtype = integers ? CLV_I64 : to->dtype == CLV_F64 ? CLV_F64 : CLV_F32;
  if (!integers && !clv__aten_is_float(to->dtype)) clv__aten_keep(n);
  clv__aten_return(n, 0,
                   clv__aten_call(n, "Range", dtype, clv__aten_constant(n, dtype, start), clv__aten_constant(n, dtype, end),
                                  clv__aten_constant(n, dtype, step)));
}

static void lower_eye(aten *n) {
  const clv_tensor *to = &n->outputs[0].type;
  if (to->rank != 2) clv__aten_fail(n, "its output has rank %d; expected 2", (int)to->rank);
  value shape = clv__aten_filled(n, to->dtype, zero, to);
  clv__aten_set_int(n, "dtype", to->dtype);
  clv__aten_return(n, 0, clv__aten_call(n, "EyeLike", to->dtype, shape));
}

/* fill(self, value): `value` may be a number or a tensor. */
static void lower_fill(aten *n) {
  value x = clv__aten_input(n, 0);
  scalar number = clv__aten_scalar_of(n, "value");
  if (n->status != CLV_OK) return;
  if (number.dtype != CLV_DTYPE_NONE)
    clv__aten_return(n, 0, clv__aten_filled(n, x.type.dtype, number, &x.type));
  else
    clv__aten_return(n, 0, clv__aten_expand(n, clv__aten_cast(n, clv__aten_input(n, 1), x.type.dtype), x.type.rank, x.type.dims));
}

const clv__aten_lowering clv__aten_create[] = {
    {"full", lower_full},
    {"full_like", lower_full},
    {"zeros", lower_full},
    {"zeros_like", lower_full},
    {"ones", lower_full},
    {"ones_like", lower_full},
    {"new_zeros", lower_full},
    {"new_ones", lower_full},
    {"new_full", lower_full},
    {"empty", lower_full},
    {"empty_like", lower_full},
    {"new_empty", lower_full},
    {"scalar_tensor", lower_full},
    {"arange", lower_arange},
    {"eye", lower_eye},
    {"fill", lower_fill},
    {NULL, NULL},
};
