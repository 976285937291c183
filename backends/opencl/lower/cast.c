/* Cast and CastLike between all numeric dtypes and bool. */
#include <stdio.h>

#include "list.h"

/* The macro call that casts x from a float to `to`. It has the bounds of `to` twice: as constants that every float type can
 * represent, and as the exact limits of `to`. */
static const char *saturation_of(clv_dtype to) {
  switch (to) {
    case CLV_I8:
      return "SATURATE(x, -128, 127, -128, 127, int)";
    case CLV_U8:
      return "SATURATE(x, 0, 255, 0, 255, int)";
    case CLV_I16:
      return "SATURATE(x, -32768, 32767, -32768, 32767, int)";
    case CLV_U16:
      return "SATURATE(x, 0, 65535, 0, 65535, int)";
    case CLV_I32:
      return "SATURATE(x, -2147483648.0f, 2147483648.0f, -2147483647 - 1, 2147483647, int)";
    case CLV_U32:
      return "SATURATE(x, 0, 4294967296.0f, 0, 4294967295u, uint)";
    case CLV_I64:
      return "SATURATE(x, -9223372036854775808.0f, 9223372036854775808.0f, -9223372036854775807L - 1, 9223372036854775807L, "
             "LONG)";
    case CLV_U64:
      return "SATURATE(x, 0, 18446744073709551616.0f, 0, ~(ULONG)0, ULONG)";
    case CLV_BOOL:
      return "(x) != 0 ? 1 : 0";
    default:
      return "(x)";
  }
}

static clv_status lower_cast(clv__opencl_lowering *l, const clv__opencl_node *node, clv_error *error) {
  (void)error;
  const clv_tensor *x = &node->inputs[0], *y = &node->outputs[0];
  const bool from_float = (CLV__DTYPE_BIT(x->dtype) & CLV__DTYPES_FLOAT) != 0;
  if (clv__opencl_is_empty(x)) return CLV_OK;
  if (x->dtype == y->dtype) {
    return clv__opencl_copy(l, CLV__OPENCL_OUTPUT, 0, 0, CLV__OPENCL_INPUT, 0, 0,
                            (uint64_t)clv__opencl_count(x) * clv_dtype_size_bytes(x->dtype));
  }
  clv__opencl_launch(l, "cast", "cast");
  clv__opencl_define_dtype(l, "X", x->dtype);
  clv__opencl_define_dtype(l, "T", y->dtype);
  clv__opencl_define(l, "TO(x)", "(%s)",
                     from_float             ? saturation_of(y->dtype)
                     : y->dtype == CLV_BOOL ? "(x) != 0 ? 1 : 0"
                                            : "(x)");
  clv__opencl_pass_input(l, 0);
  clv__opencl_pass_output(l, 0);
  clv__opencl_pass_index(l, clv__opencl_count(x));
  return clv__opencl_enqueue_1d(l, clv__opencl_count(x));
}

static bool accepts_to(const clv__opencl_traits *traits, const clv__opencl_node *node, int64_t to, char reason[160]) {
  const clv_dtype from = node->inputs[0].dtype;
  const bool known = to > 0 && to <= CLV_BF16 && (CLV__DTYPES_ANY >> to & 1u) != 0;
  if (!known || (to == CLV_F64 && !traits->has_double)) {
    snprintf(reason, 160, "a cast to %s", known ? "f64, which this device does not support" : "a dtype that is not supported");
    return false;
  }
  /* These casts would go through f32, and so round the values twice. */
  const bool wide = from == CLV_F64 || from == CLV_I64 || from == CLV_U64 || from == CLV_I32 || from == CLV_U32;
  if (!wide || (to != CLV_F16 && to != CLV_BF16)) return true;
  snprintf(reason, 160, "a cast from %s to %s", clv_dtype_name(from), clv_dtype_name((clv_dtype)to));
  return false;
}

static bool accepts_cast(const clv__opencl_traits *traits, const clv__opencl_node *node, char reason[160]) {
  return accepts_to(traits, node, clv__attribute_int(node->attributes, "to", 0), reason);
}

static bool accepts_cast_like(const clv__opencl_traits *traits, const clv__opencl_node *node, char reason[160]) {
  return accepts_to(traits, node, node->input_count > 1 ? (int64_t)node->inputs[1].dtype : 0, reason);
}

const clv__opencl_operator clv__opencl_family_cast[] = {
    {"", "Cast", CLV__DTYPES_ANY, false, accepts_cast, lower_cast},
    {"", "CastLike", CLV__DTYPES_ANY, false, accepts_cast_like, lower_cast},
    {NULL, NULL, 0, false, NULL, NULL},
};
