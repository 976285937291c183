/* See compare.h. */
#include "cli/test/compare.h"

#include <math.h>
#include <string.h>

#include "base/tensor/tensor.h"

/* Returns the relative tolerance for a dtype. The default is that of ONNX's test runner, but at least two units in the last place
 * for 16-bit floats. */
static double relative_of(const cli_tolerance *tolerance, clv_dtype dtype) {
  double least = dtype == CLV_F16 ? 0x1p-9 : dtype == CLV_BF16 ? 0x1p-6 : 0;
  return tolerance->is_default && tolerance->relative < least ? least : tolerance->relative;
}

static bool same_string(const clv_string *a, const clv_string *b) {
  return a->size_bytes == b->size_bytes && (a->size_bytes == 0 || memcmp(a->data, b->data, a->size_bytes) == 0);
}

/* Returns by how much an element's difference exceeds the tolerance; 0 or less if it is within. */
static double excess(const clv_tensor *expected, const clv_tensor *actual, size_t i, bool is_float, double relative,
                     double absolute) {
  if (expected->dtype == CLV_STRING) {
    return same_string((const clv_string *)expected->data + i, (const clv_string *)actual->data + i) ? 0 : 1;
  }
  if (!is_float) {
    size_t size = clv_dtype_size_bytes(expected->dtype);
    if (size > 0 && memcmp((const char *)expected->data + i * size, (const char *)actual->data + i * size, size) == 0) return 0;
    double apart = fabs(clv__tensor_get(actual, i) - clv__tensor_get(expected, i));
    return apart > 0 || size == 0 ? apart : 1;
  }
  double e = clv__tensor_get(expected, i), a = clv__tensor_get(actual, i);
  if (e == a || (isnan(e) && isnan(a))) return 0;
  if (!isfinite(e) || !isfinite(a)) return INFINITY;
  return fabs(a - e) - (absolute + relative * fabs(e));
}

static void append_position(const clv_tensor *type, size_t element, clv__text *text) {
  clv__text_append(text, "[");
  for (int32_t d = 0; d < type->rank; ++d) {
    size_t inner = (size_t)clv__dims_product(type, d + 1, type->rank);
    clv__text_append(text, "%s%zu", d > 0 ? "," : "", element / inner % (size_t)type->dims[d]);
  }
  clv__text_append(text, "]");
}

bool cli_compare(const clv_tensor *expected, const clv_tensor *actual, const cli_tolerance *tolerance, clv__text *why) {
  char should[160], is[160];
  size_t count, wrong = 0, worst = 0;
  if (!clv__tensor_same_type(expected, actual) || !clv__tensor_count(expected, &count)) {
    clv__tensor_text(expected, should, sizeof should);
    clv__tensor_text(actual, is, sizeof is);
    clv__text_append(why, "is %s, expected %s", is, should);
    return false;
  }
  bool is_float = clv__dtype_is_in(expected->dtype, CLV__DTYPES_FLOAT | CLV__DTYPES_SMALL_FLOAT);
  double relative = relative_of(tolerance, expected->dtype), largest = 0;
  for (size_t i = 0; i < count; ++i) {
    double beyond = excess(expected, actual, i, is_float, relative, tolerance->absolute);
    if (beyond <= 0) continue;
    ++wrong;
    if (beyond <= largest) continue;
    largest = beyond;
    worst = i;
  }
  if (wrong == 0) return true;
  clv__text_append(why, "at ");
  append_position(expected, worst, why);
  if (expected->dtype == CLV_STRING) {
    clv__text_append(why, " is not the expected string");
  } else {
    double e = clv__tensor_get(expected, worst), a = clv__tensor_get(actual, worst);
    clv__text_append(why, " is %.9g, expected %.9g", a, e);
    if (is_float) clv__text_append(why, " (tolerance %.3g)", tolerance->absolute + relative * fabs(e));
  }
  clv__text_append(why, "; %zu of %zu elements differ", wrong, count);
  return false;
}
