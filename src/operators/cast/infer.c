/* Cast, CastLike and BitCast. Casts to i32, i64 and bool pass on the known elements of a shape tensor. */
#include "operators/infer.h"
#include "operators/common/padding.h"

static clv_status infer_to(clv__infer *infer, clv_dtype dtype) {
  const clv_tensor *input = &infer->inputs[0];
  clv__content content;
  clv__infer_set(infer, 0, dtype, input->rank, input->dims);
  if (infer->output_content == NULL || (dtype != CLV_I32 && dtype != CLV_I64 && dtype != CLV_BOOL)) return CLV_OK;
  if (!clv__infer_elements(infer, 0, &content)) return CLV_OK;
  for (uint32_t i = 0; i < content.count; ++i) {
    int64_t *element = &content.elements[i];
    bool number = clv__element_is_number(*element);
    if (dtype == CLV_BOOL)
      *element = number ? *element != 0 : CLV__ELEMENT_UNKNOWN;
    else if (dtype == CLV_I32 && number && (*element < INT32_MIN || *element > INT32_MAX))
      *element = CLV__ELEMENT_UNKNOWN;
  }
  *infer->output_content = content;
  return CLV_OK;
}

/* If the attribute `to` is not the number of a supported dtype, the output's dtype stays unknown, and running the node reports
 * the error. */
static clv_status infer_cast(clv__infer *infer) {
  int64_t to = clv__attribute_int(infer->attributes, "to", 0);
  if (to == 0) return clv__error_set(infer->error, CLV_INVALID_MODEL, "attribute 'to' is missing");
  return infer_to(infer, clv__dtype_is_known(to) ? (clv_dtype)to : CLV_DTYPE_NONE);
}

static clv_status infer_cast_like(clv__infer *infer) {
  return infer_to(infer, infer->inputs[1].dtype);
}

static clv_status infer_bit_cast(clv__infer *infer) {
  const clv_tensor *input = &infer->inputs[0];
  const int64_t to = clv__attribute_int(infer->attributes, "to", 0);
  if (to == 0) return clv__error_set(infer->error, CLV_INVALID_MODEL, "attribute 'to' is missing");
  const clv_dtype dtype = clv__dtype_is_known(to) ? (clv_dtype)to : CLV_DTYPE_NONE;
  const size_t from_bits = clv_dtype_size_bits(input->dtype), to_bits = clv_dtype_size_bits(dtype);
  if ((from_bits != to_bits && from_bits > 0 && to_bits > 0) || dtype == CLV_STRING || input->dtype == CLV_STRING) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "the bits of %s cannot be reinterpreted as %s",
                          clv_dtype_name(input->dtype), clv_dtype_name(dtype));
  }
  clv__infer_set(infer, 0, dtype, input->rank, input->dims);
  return CLV_OK;
}

const clv__op clv__ops_cast[] = {
    {"", "Cast", 1, 1, 1, 1, CLV__OP_ELEMENTWISE | CLV__OP_KEEPS_ZERO, infer_cast, NULL, NULL},
    {"", "CastLike", 2, 2, 1, 1, CLV__OP_ELEMENTWISE | CLV__OP_KEEPS_ZERO, infer_cast_like, NULL, clv__padding_pass},
    {"", "BitCast", 1, 1, 1, 1, CLV__OP_ELEMENTWISE, infer_bit_cast, NULL, NULL},
    {.name = NULL},
};
