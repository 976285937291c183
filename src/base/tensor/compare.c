/* See compare.h. NaN equals NaN; an infinity equals only itself. */
#include "base/tensor/compare.h"

#include <math.h>

double clv__dtype_tolerance(clv_dtype dtype) {
  switch (dtype) {
    case CLV_F64:
      return 1e-9;
    case CLV_F32:
      return 1e-4;
    case CLV_F16:
      return 4e-3;
    case CLV_BF16:
      return 3e-2;
    default:
      return 0;
  }
}

/* Compares one element bit for bit. For integers, bools and strings. */
static bool same_element(const clv_tensor *a, const clv_tensor *b, size_t index) {
  size_t element = clv_dtype_size_bytes(a->dtype);
  if (element == 0) return clv__tensor_get_int(a, index) == clv__tensor_get_int(b, index);
  if (a->dtype != CLV_STRING) return memcmp((char *)a->data + index * element, (char *)b->data + index * element, element) == 0;
  const clv_string *x = (const clv_string *)a->data + index, *y = (const clv_string *)b->data + index;
  return x->size_bytes == y->size_bytes && (x->size_bytes == 0 || memcmp(x->data, y->data, x->size_bytes) == 0);
}

bool clv__tensor_agrees_within(const clv_tensor *expected, const clv_tensor *actual, const clv__tolerance *tolerance,
                               clv__difference *worst) {
  bool is_float = clv__dtype_is_in(expected->dtype, CLV__DTYPES_FLOAT | CLV__DTYPES_SMALL_FLOAT);
  *worst = (clv__difference){0};
  if (!clv__tensor_count(expected, &worst->count)) return true;
  for (size_t i = 0; i < worst->count; ++i) {
    double value = fabs(clv__tensor_get(expected, i));
    if (isfinite(value) && value > worst->largest) worst->largest = value;
  }
  if (tolerance->steps > 0) worst->step = tolerance->step > 0 ? tolerance->step : worst->largest / 127;
  const double in_steps = tolerance->steps * worst->step;
  worst->tolerance = tolerance->share * worst->largest + in_steps;
  double gap = -1;
  for (size_t i = 0; i < worst->count; ++i) {
    double e = clv__tensor_get(expected, i), a = clv__tensor_get(actual, i);
    if (is_float ? e == a || (isnan(e) && isnan(a)) : same_element(expected, actual, i)) continue;
    double difference = isfinite(e) && isfinite(a) ? fabs(e - a) : INFINITY;
    if (!is_float && difference == 0) difference = 1; /* the values differ, but a double cannot represent the difference */
    worst->beyond += difference > worst->tolerance;
    if (difference <= gap) continue;
    gap = difference;
    worst->element = i;
    worst->expected = e;
    worst->actual = a;
    worst->difference = difference;
  }
  return worst->beyond == 0 || (worst->difference <= worst->tolerance + in_steps && worst->beyond <= worst->count / 100);
}

bool clv__tensor_agrees(const clv_tensor *expected, const clv_tensor *actual, clv__difference *worst) {
  const clv__tolerance tolerance = {.share = clv__dtype_tolerance(expected->dtype)};
  return clv__tensor_agrees_within(expected, actual, &tolerance, worst);
}
