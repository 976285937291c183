/* See content.h. */
#include "operators/common/content.h"

#define NUMBER(x) clv__element_is_number(x)

static int64_t combine_numbers(clv__arithmetic what, int64_t a, int64_t b) {
  int64_t value = 0;
  bool overflow = false;
  switch (what) {
    case CLV__ADD:
      overflow = __builtin_add_overflow(a, b, &value);
      break;
    case CLV__SUB:
      overflow = __builtin_sub_overflow(a, b, &value);
      break;
    case CLV__MUL:
      overflow = __builtin_mul_overflow(a, b, &value);
      break;
    case CLV__DIV:
      return b == 0 ? CLV__ELEMENT_UNKNOWN : a / b; /* cannot overflow: INT64_MIN is not a number here, but means "unknown" */
    case CLV__MOD:
      if (b == 0) return CLV__ELEMENT_UNKNOWN;
      value = a % b;
      return value != 0 && (value < 0) != (b < 0) ? value + b : value;
    case CLV__MIN:
      return a < b ? a : b;
    case CLV__MAX:
      return a > b ? a : b;
    case CLV__EQUAL:
      return a == b;
    case CLV__LESS:
      return a < b;
    case CLV__LESS_EQUAL:
      return a <= b;
    case CLV__AND:
      return a != 0 && b != 0;
    case CLV__OR:
      return a != 0 || b != 0;
    case CLV__XOR:
      return (a != 0) != (b != 0);
  }
  return overflow || !NUMBER(value) ? CLV__ELEMENT_UNKNOWN : value;
}

int64_t clv__element_combine(clv__arithmetic what, int64_t a, int64_t b) {
  if (NUMBER(a) && NUMBER(b)) return combine_numbers(what, a, b);
  bool same = a == b && a != CLV__ELEMENT_UNKNOWN;
  bool symbol_a = !NUMBER(a) && a != CLV__ELEMENT_UNKNOWN, symbol_b = !NUMBER(b) && b != CLV__ELEMENT_UNKNOWN;
  switch (what) {
    case CLV__ADD:
      return a == 0 ? b : b == 0 ? a : CLV__ELEMENT_UNKNOWN;
    case CLV__SUB:
      return b == 0 ? a : same ? 0 : CLV__ELEMENT_UNKNOWN;
    case CLV__MUL:
      return a == 0 || b == 0 ? 0 : a == 1 ? b : b == 1 ? a : CLV__ELEMENT_UNKNOWN;
    case CLV__DIV:
      return b == 1 ? a : CLV__ELEMENT_UNKNOWN;
    case CLV__MOD:
      return b == 1 ? 0 : CLV__ELEMENT_UNKNOWN;
    case CLV__MIN: /* min(symbol, b) is b if b <= 0, because a symbol is never negative */
      if (same) return a;
      return (symbol_a && NUMBER(b) && b <= 0) ? b : (symbol_b && NUMBER(a) && a <= 0) ? a : CLV__ELEMENT_UNKNOWN;
    case CLV__MAX:
      if (same) return a;
      return (symbol_a && NUMBER(b) && b <= 0) ? a : (symbol_b && NUMBER(a) && a <= 0) ? b : CLV__ELEMENT_UNKNOWN;
    case CLV__EQUAL:
      if (same) return 1;
      return (symbol_a && NUMBER(b) && b < 0) || (symbol_b && NUMBER(a) && a < 0) ? 0 : CLV__ELEMENT_UNKNOWN;
    case CLV__LESS:
      if (same || (symbol_a && NUMBER(b) && b <= 0)) return 0;
      return symbol_b && NUMBER(a) && a < 0 ? 1 : CLV__ELEMENT_UNKNOWN;
    case CLV__LESS_EQUAL:
      if (same || (symbol_b && NUMBER(a) && a <= 0)) return 1;
      return symbol_a && NUMBER(b) && b < 0 ? 0 : CLV__ELEMENT_UNKNOWN;
    case CLV__AND:
      return a == 0 || b == 0 ? 0 : CLV__ELEMENT_UNKNOWN;
    case CLV__OR:
      return (NUMBER(a) && a != 0) || (NUMBER(b) && b != 0) ? 1 : CLV__ELEMENT_UNKNOWN;
    case CLV__XOR:
      return CLV__ELEMENT_UNKNOWN;
  }
  return CLV__ELEMENT_UNKNOWN;
}

bool clv__content_room(const clv__infer *infer, uint32_t *count) {
  const clv_tensor *out = &infer->outputs[0];
  if (infer->output_content == NULL || out->rank < 0 || out->rank > 1) return false;
  if (out->rank == 1 && (out->dims[0] < 0 || out->dims[0] > CLV__MAX_CONTENT)) return false;
  *count = out->rank == 0 ? 1 : (uint32_t)out->dims[0];
  return true;
}

void clv__content_combine(clv__infer *infer, clv__arithmetic what, uint32_t first, uint32_t second) {
  clv__content a, b;
  uint32_t count;
  if (!clv__content_room(infer, &count)) return;
  if (!clv__infer_elements(infer, first, &a) || !clv__infer_elements(infer, second, &b)) return;
  if ((a.count != count && a.count != 1) || (b.count != count && b.count != 1)) return;
  clv__content *out = infer->output_content;
  out->known = true;
  out->count = count;
  for (uint32_t i = 0; i < count; ++i) {
    out->elements[i] = clv__element_combine(what, a.elements[a.count == 1 ? 0 : i], b.elements[b.count == 1 ? 0 : i]);
  }
}
