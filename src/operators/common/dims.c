/* See dims.h. */
#include "operators/common/dims.h"

clv_status clv__infer_rank(clv__infer *infer, int64_t rank) {
  if (rank <= CLV_MAX_RANK) return CLV_OK;
  return clv__error_set(infer->error, CLV_NOT_SUPPORTED, "rank %lld is above the maximum of %d", (long long)rank, CLV_MAX_RANK);
}

clv_status clv__infer_product(clv__infer *infer, const int64_t *dims, int32_t count, int64_t *product) {
  int64_t number = 1, symbol = 0;
  bool unknown = false, overflow = false, zero = false;
  for (int32_t i = 0; i < count; ++i) {
    if (dims[i] == 0) zero = true;
    if (dims[i] > 0 && __builtin_mul_overflow(number, dims[i], &number)) overflow = true;
    if (dims[i] >= 0) continue;
    if (dims[i] == CLV_DIM_UNKNOWN || symbol != 0)
      unknown = true;
    else
      symbol = dims[i];
  }
  if (zero)
    *product = 0;
  else if (overflow)
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "a product of dimensions exceeds 2^63 - 1");
  else if (unknown || (symbol != 0 && number != 1))
    *product = CLV_DIM_UNKNOWN;
  else
    *product = symbol != 0 ? symbol : number;
  return CLV_OK;
}

bool clv__dims_quotient(const int64_t *above, int32_t above_count, const int64_t *below, int32_t below_count, int64_t *quotient) {
  int64_t numerator = 1, denominator = 1, symbol = 0;
  bool used[2 * CLV_MAX_RANK] = {false};
  *quotient = CLV_DIM_UNKNOWN;
  for (int32_t i = 0; i < below_count; ++i) {
    if (below[i] >= 0) {
      if (__builtin_mul_overflow(denominator, below[i], &denominator)) return false;
      continue;
    }
    int32_t at = 0;
    while (at < above_count && (used[at] || above[at] != below[i])) ++at;
    if (at == above_count || below[i] == CLV_DIM_UNKNOWN) return true;
    used[at] = true;
  }
  for (int32_t i = 0; i < above_count; ++i) {
    if (used[i]) continue;
    if (above[i] >= 0) {
      if (__builtin_mul_overflow(numerator, above[i], &numerator)) return false;
    } else if (symbol != 0 || above[i] == CLV_DIM_UNKNOWN) {
      return true;
    } else {
      symbol = above[i];
    }
  }
  if (symbol != 0) {
    if (numerator == denominator && numerator != 0) *quotient = symbol;
    return true;
  }
  if (denominator == 0 || numerator % denominator != 0) return false;
  *quotient = numerator / denominator;
  return true;
}

int64_t clv__dim_add(int64_t a, int64_t b) {
  if (a == 0) return b;
  if (b == 0) return a;
  int64_t sum;
  return a > 0 && b > 0 && !__builtin_add_overflow(a, b, &sum) ? sum : CLV_DIM_UNKNOWN;
}

bool clv__infer_vector(const clv__infer *infer, uint32_t input, clv__content *content) {
  content->known = false;
  if (!clv__infer_has(infer, input)) return false;
  return infer->inputs[input].rank >= 0 && infer->inputs[input].rank <= 1 && clv__infer_elements(infer, input, content);
}

bool clv__content_is_numbers(const clv__content *content) {
  for (uint32_t i = 0; content->known && i < content->count; ++i) {
    if (!clv__element_is_number(content->elements[i])) return false;
  }
  return content->known;
}

clv_status clv__infer_check_list(clv__infer *infer, uint32_t input) {
  if (!clv__infer_has(infer, input)) return CLV_OK;
  const clv_tensor *list = &infer->inputs[input];
  if ((list->dtype == CLV_I64 || list->dtype == CLV_I32) && list->rank <= 1) return CLV_OK;
  char text[96];
  clv__infer_text(infer, list, text, sizeof text);
  return clv__error_set(infer->error, CLV_INVALID_MODEL, "input %u is %s; expected a vector of i32 or i64", input, text);
}

clv_status clv__infer_check_count(clv__infer *infer, uint32_t input, int64_t count) {
  if (!clv__infer_has(infer, input)) return CLV_OK;
  const clv_tensor *tensor = &infer->inputs[input];
  size_t have;
  if (!clv__tensor_is_static(tensor) && tensor->rank <= 1) return CLV_OK;
  if (clv__tensor_count(tensor, &have) && have == (size_t)count) return CLV_OK;
  char text[96];
  clv__infer_text(infer, tensor, text, sizeof text);
  return clv__error_set(infer->error, CLV_INVALID_MODEL, "input %u is %s; expected %lld element%s", input, text, (long long)count,
                        count == 1 ? "" : "s");
}

void clv__infer_pass_content(clv__infer *infer) {
  clv__content content;
  if (infer->output_content != NULL && clv__infer_elements(infer, 0, &content)) *infer->output_content = content;
}

clv_status clv__infer_list(clv__infer *infer, const char *name, uint32_t input, bool *given, clv__content *content) {
  content->known = false;
  content->count = 0;
  const clv_attribute *attribute = name != NULL ? clv__attribute_find(infer->attributes, name) : NULL;
  if (attribute != NULL) {
    size_t count = attribute->count;
    const int64_t *ints = attribute->ints;
    if (attribute->kind != CLV_ATTRIBUTE_INTS && count > 0) { /* an empty list does not record its kind */
      return clv__error_set(infer->error, CLV_INVALID_MODEL, "attribute %s is not a list of integers", name);
    }
    if (count > CLV__MAX_CONTENT) {
      return clv__error_set(infer->error, CLV_NOT_SUPPORTED, "attribute %s has %zu entries; the maximum is %d", name, count,
                            CLV__MAX_CONTENT);
    }
    for (size_t i = 0; i < count; ++i) {
      content->elements[i] = clv__element_is_number(ints[i]) ? ints[i] : CLV__ELEMENT_LAST_SYMBOL + 1;
    }
    content->known = true;
    content->count = (uint32_t)count;
    *given = true;
    return CLV_OK;
  }
  CLV__TRY(clv__infer_check_list(infer, input));
  *given = clv__infer_has(infer, input);
  if (*given) clv__infer_elements(infer, input, content);
  return CLV_OK;
}

void clv__infer_set_unknown(clv__infer *infer, uint32_t output, clv_dtype dtype, int32_t rank) {
  int64_t dims[CLV_MAX_RANK];
  for (int32_t i = 0; i < CLV_MAX_RANK; ++i) dims[i] = CLV_DIM_UNKNOWN;
  clv__infer_set(infer, output, dtype, rank, dims);
}

void clv__work_none(const clv__infer *infer, clv__work *work) {
  (void)infer;
  work->flops = 0;
}
