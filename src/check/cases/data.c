/* Fills the operands of the cases: with seeded numbers in the range that their text states, or with the values in the text. */
#include <math.h>

#include "base/random.h"
#include "check/cases/cases.h"

/* A random number in [0, 1). */
static double random_unit(uint64_t *state) {
  return (double)(clv__random(state) >> 11) * 0x1p-53;
}

typedef struct limits {
  double largest, least; /* the largest finite number, and the smallest number above 0 */
} limits;

static limits float_limits(clv_dtype dtype) {
  switch (dtype) {
    case CLV_F16:
      return (limits){65504, 0x1p-24};
    case CLV_BF16:
      return (limits){0x1.fep127, 0x1p-133};
    case CLV_F64:
      return (limits){0x1.fffffffffffffp1023, 0x1p-1074};
    default:
      return (limits){0x1.fffffep127, 0x1p-149};
  }
}

static double special_float(clv_dtype dtype, clv__case_fill fill, uint64_t *random) {
  const limits l = float_limits(dtype);
  const double list[] = {0, (double)INFINITY, (double)NAN, l.least}; /* ~inf uses the first 2, ~nan 3, ~any 4 */
  const uint64_t count = fill == CLV__FILL_INF ? 2 : fill == CLV__FILL_NAN ? 3 : 4, bits = clv__random(random);
  const double value = fill == CLV__FILL_MAX ? ((bits >> 8 & 1) != 0 ? l.largest : 0) : list[(bits >> 8) % count];
  return (bits & 1) != 0 ? -value : value;
}

static bool has_specials(const clv__case_operand *operand) {
  return operand->fill == CLV__FILL_MAX || operand->fill == CLV__FILL_INF || operand->fill == CLV__FILL_NAN ||
         operand->fill == CLV__FILL_ANY;
}

static double float_value(const clv__case_operand *operand, uint64_t *random) {
  if (operand->fill == CLV__FILL_HALF) return (double)((int64_t)(clv__random(random) % 33) - 16) / 2;
  if (!has_specials(operand)) return operand->low + (operand->high - operand->low) * random_unit(random);
  if (clv__random(random) % 4 == 0) return special_float(operand->type.dtype, operand->fill, random);
  return 4 * random_unit(random) - 2;
}

/* Returns any number of the dtype. One in eight is an extreme of the dtype, 0, or a neighbour of 0. */
static int64_t any_integer(clv_dtype dtype, uint64_t *random) {
  const unsigned width = 8 * (unsigned)clv_dtype_size_bytes(dtype);
  const uint64_t high = UINT64_C(1) << (width - 1), bits = clv__random(random);
  const uint64_t list[] = {0, 1, UINT64_MAX, high, high - 1};
  return (int64_t)((bits & 7) == 0 ? list[(bits >> 8) % 5] : clv__random(random));
}

static int64_t range_integer(const clv__case_operand *operand, uint64_t *random) {
  const bool is_unsigned = (CLV__DTYPE_BIT(operand->type.dtype) & CLV__DTYPES_UNSIGNED) != 0;
  double low = operand->low, high = operand->high;
  if (operand->fill == CLV__FILL_HALF) low = -8, high = 8;
  if (is_unsigned && low < 0) low = 0;
  const int64_t from = (int64_t)ceil(low), to = (int64_t)floor(high);
  return from + (int64_t)(clv__random(random) % (uint64_t)(to >= from ? to - from + 1 : 1));
}

/* Sets element [i, j, …] to (i + j + … + a seeded number) mod |n|, and if n is negative, to this number minus |n|. */
static void fill_turn(const clv_tensor *t, double n, uint64_t *random, size_t count) {
  const int64_t size = (int64_t)(n < 0 ? -n : n);
  const uint64_t start = clv__random(random) % (uint64_t)size;
  int64_t at[CLV_MAX_RANK] = {0};
  for (size_t i = 0; i < count; ++i) {
    uint64_t sum = start;
    for (int32_t d = 0; d < t->rank; ++d) sum += (uint64_t)at[d];
    const int64_t index = (int64_t)(sum % (uint64_t)size);
    clv__tensor_put(t, i, (double)index, n < 0 ? index - size : index, index != 0);
    for (int32_t d = t->rank - 1; d >= 0 && ++at[d] == t->dims[d]; --d) at[d] = 0;
  }
}

static void fill_random(const clv__case_operand *operand, uint64_t *random, size_t count) {
  const clv_tensor *t = &operand->type;
  const bool is_float = (CLV__DTYPE_BIT(t->dtype) & CLV__DTYPES_FLOAT) != 0;
  const bool any = has_specials(operand);
  for (size_t i = 0; i < count; ++i) {
    if (is_float)
      clv__tensor_put(t, i, float_value(operand, random), 0, false);
    else if (t->dtype == CLV_BOOL)
      clv__tensor_put(t, i, 0, 0, (clv__random(random) & 1) != 0);
    else
      clv__tensor_put(t, i, 0, any ? any_integer(t->dtype, random) : range_integer(operand, random), false);
  }
}

clv_status clv__case_fill_data(clv__case_operand *operand, clv__arena *arena, uint64_t *random, clv_error *error) {
  clv_tensor *t = &operand->type;
  size_t count, size_bytes;
  if (!clv__tensor_count(t, &count) || !clv__tensor_size_bytes(t, &size_bytes)) {
    return clv__error_set(error, CLV_INTERNAL_ERROR, "table of cases: operand %s has an unknown size", operand->name);
  }
  t->data = clv__arena_allocate_data(arena, size_bytes);
  if (t->data == NULL) return clv__error_memory(error, size_bytes);
  if (operand->values != NULL) return clv__case_read_values(operand->values, t, error);
  if (operand->fill == CLV__FILL_TURN)
    fill_turn(t, operand->high, random, count);
  else
    fill_random(operand, random, count);
  return CLV_OK;
}
