/* Parses the text of rows: operands and attributes. See operators/cases.h for the syntax. */
#include <stdlib.h>

#include "check/cases/cases.h"

static clv_status bad_text(clv_error *error, const char *at, const char *end, const char *what) {
  return clv__error_set(error, CLV_INTERNAL_ERROR, "table of cases: %s at '%.*s'", what, (int)(end - at), at);
}

clv_dtype clv__case_dtype(const char *text, size_t length) {
  for (int dtype = CLV_F32; dtype < CLV__DTYPE_COUNT; ++dtype) {
    const char *name = clv_dtype_name((clv_dtype)dtype);
    if (dtype != CLV_STRING && strlen(name) == length && memcmp(name, text, length) == 0) return (clv_dtype)dtype;
  }
  return CLV_DTYPE_NONE;
}

static bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static const char *word_end(const char *at, const char *end) {
  while (at < end && is_word(*at)) ++at;
  return at;
}

/* Parses a dtype's name, or T for the case's own dtype. */
static clv_dtype read_dtype(const char *at, const char *end, clv_dtype own) {
  return end == at + 1 && *at == 'T' ? own : clv__case_dtype(at, (size_t)(end - at));
}

/* Parses sizes in square brackets. */
static clv_status read_dims(const char **text, const char *end, clv_tensor *type, clv_error *error) {
  const char *at = *text + 1;
  type->rank = 0;
  while (at < end && *at != ']') {
    char *behind;
    if (type->rank == CLV_MAX_RANK) return bad_text(error, *text, end, "too many dims");
    type->dims[type->rank++] = strtoll(at, &behind, 10);
    if (behind == at) return bad_text(error, at, end, "expected a dimension");
    at = *behind == ',' ? behind + 1 : behind;
  }
  if (at == end) return bad_text(error, *text, end, "no ]");
  *text = at + 1;
  return CLV_OK;
}

/* Sets *values to the text after the opening bracket, and advances *text past the closing one. If no dims were given, counts the
 * values to set the rank and dims. */
static clv_status read_list(const char **text, const char *end, bool has_dims, clv_tensor *type, const char **values,
                            clv_error *error) {
  const char *open = *text, *close = memchr(open, *open == '{' ? '}' : ')', (size_t)(end - open));
  if (close == NULL) return bad_text(error, open, end, "no closing bracket");
  *values = open + 1;
  *text = close + 1;
  if (has_dims) return CLV_OK;
  type->rank = *open == '{';
  type->dims[0] = close > open + 1;
  for (const char *at = open; at < close; ++at) type->dims[0] += *at == ',';
  return CLV_OK;
}

static clv_status read_fill(const char **text, const char *end, clv__case_operand *operand, clv_error *error) {
  static const struct {
    const char *name;
    clv__case_fill fill;
  } names[] = {
      {"half", CLV__FILL_HALF}, {"max", CLV__FILL_MAX}, {"inf", CLV__FILL_INF}, {"nan", CLV__FILL_NAN}, {"any", CLV__FILL_ANY}};
  const char *at = *text + 1, *behind = word_end(at, end);
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
    if (strlen(names[i].name) != (size_t)(behind - at) || memcmp(names[i].name, at, (size_t)(behind - at)) != 0) continue;
    operand->fill = names[i].fill;
    *text = behind;
    return CLV_OK;
  }
  char *low_end = NULL, *high_end;
  const bool turn = end - at > 5 && memcmp(at, "turn:", 5) == 0;
  operand->low = turn ? 0 : strtod(at, &low_end);
  if (!turn && (low_end == at || *low_end != ':')) return bad_text(error, at, end, "unknown fill");
  const char *high = turn ? at + 5 : low_end + 1;
  operand->high = strtod(high, &high_end);
  if (high_end == high) return bad_text(error, at, end, "expected a number");
  operand->fill = turn ? CLV__FILL_TURN : CLV__FILL_RANGE;
  *text = high_end;
  return CLV_OK;
}

static void set_usual_range(clv__case_operand *operand) {
  const uint32_t bit = CLV__DTYPE_BIT(operand->type.dtype);
  operand->fill = CLV__FILL_RANGE;
  operand->low = (bit & CLV__DTYPES_FLOAT) != 0 ? -2 : (bit & CLV__DTYPES_SIGNED) != 0 ? -9 : 0;
  operand->high = (bit & CLV__DTYPES_FLOAT) != 0 ? 2 : 9;
}

clv_status clv__case_read_operand(const char **text, const char *end, clv_dtype dtype, clv__case_operand *operand,
                                  clv_error *error) {
  const char *at = *text;
  bool has_dims = false;
  *operand = (clv__case_operand){.type = {.dtype = dtype}};
  if (*at == '-') {
    operand->absent = true;
    *text = at + 1;
    return CLV_OK;
  }
  if (*at == '+') operand->later = true, ++at;
  const char *behind = word_end(at, end);
  const size_t length = (size_t)(behind - at);
  if (length == 0 || length >= sizeof operand->name) return bad_text(error, at, end, "expected a name");
  memcpy(operand->name, at, length);
  at = behind;
  if (at < end && *at == ':') {
    behind = word_end(at + 1, end);
    operand->type.dtype = read_dtype(at + 1, behind, dtype);
    if (operand->type.dtype == CLV_DTYPE_NONE) return bad_text(error, at, end, "unknown dtype");
    at = behind;
  }
  if (at < end && *at == '[') {
    CLV__TRY(read_dims(&at, end, &operand->type, error));
    has_dims = true;
  }
  set_usual_range(operand);
  if (at < end && *at == '~') CLV__TRY(read_fill(&at, end, operand, error));
  if (at < end && (*at == '=' || *at == '?' || *at == '&')) {
    operand->constant = *at == '=';
    operand->computed = *at == '&';
    ++at;
  }
  if (at < end && (*at == '{' || *at == '(')) CLV__TRY(read_list(&at, end, has_dims, &operand->type, &operand->values, error));
  if (at < end && *at != ' ') return bad_text(error, at, end, "more than one operand");
  *text = at;
  return CLV_OK;
}

clv_status clv__case_read_values(const char *text, const clv_tensor *tensor, clv_error *error) {
  const bool is_float = (CLV__DTYPE_BIT(tensor->dtype) & CLV__DTYPES_FLOAT) != 0;
  size_t count;
  if (!clv__tensor_count(tensor, &count))
    return clv__error_set(error, CLV_INTERNAL_ERROR, "table of cases: a tensor is too large");
  for (size_t i = 0; i < count; ++i) {
    char *behind;
    const double real = is_float ? strtod(text, &behind) : 0;
    const int64_t whole = is_float ? 0 : *text == '-' ? strtoll(text, &behind, 10) : (int64_t)strtoull(text, &behind, 10);
    if (behind == text) return clv__error_set(error, CLV_INTERNAL_ERROR, "table of cases: too few values at '%s'", text);
    clv__tensor_put(tensor, i, real, whole, whole != 0);
    text = *behind == ',' ? behind + 1 : behind;
  }
  return CLV_OK;
}

/* ---- Attributes ---------------------------------------------------------------------------------------------------------- */

static bool is_number(const char *at) {
  return (*at >= '0' && *at <= '9') || (*at == '-' && at[1] >= '0' && at[1] <= '9');
}

/* Parses one number, or a list in brackets. If one has a decimal point, all are floats. */
static clv_status read_numbers(const char *at, const char *end, clv__arena *arena, clv_attribute *attribute, clv_error *error) {
  size_t count = 1;
  attribute->is_list = *at == '[';
  if (attribute->is_list) ++at;
  if (attribute->is_list && *at == ']') count = 0;
  for (const char *c = at; c < end; ++c) count += *c == ',';
  const bool floats = memchr(at, '.', (size_t)(end - at)) != NULL;
  int64_t *ints = clv__arena_allocate_zero(arena, count + 1, sizeof *ints);
  float *reals = clv__arena_allocate_zero(arena, count + 1, sizeof *reals);
  if (ints == NULL || reals == NULL) return clv__error_memory(error, (count + 1) * sizeof *ints);
  for (size_t i = 0; i < count; ++i) {
    char *behind;
    if (floats)
      reals[i] = strtof(at, &behind);
    else
      ints[i] = strtoll(at, &behind, 10);
    if (behind == at) return bad_text(error, at, end, "expected a number");
    at = behind + 1;
  }
  attribute->kind = floats ? CLV_ATTRIBUTE_FLOATS : CLV_ATTRIBUTE_INTS;
  attribute->count = count;
  attribute->ints = floats ? NULL : ints;
  attribute->floats = floats ? reals : NULL;
  return CLV_OK;
}

static clv_status read_tensor(const char *at, const char *end, clv_dtype dtype, clv__arena *arena, clv_attribute *attribute,
                              clv_error *error) {
  const char *behind = word_end(at, end), *values;
  clv_tensor *tensor = clv__arena_allocate_zero(arena, 1, sizeof *tensor);
  if (tensor == NULL) return clv__error_memory(error, sizeof *tensor);
  tensor->dtype = read_dtype(at, behind, dtype);
  if (tensor->dtype == CLV_DTYPE_NONE || behind == end) return bad_text(error, at, end, "expected a tensor");
  const bool has_dims = *behind == '[';
  if (has_dims) CLV__TRY(read_dims(&behind, end, tensor, error));
  CLV__TRY(read_list(&behind, end, has_dims, tensor, &values, error));
  size_t size_bytes;
  if (!clv__tensor_size_bytes(tensor, &size_bytes)) return bad_text(error, at, end, "unknown size");
  tensor->data = clv__arena_allocate_data(arena, size_bytes);
  if (tensor->data == NULL) return clv__error_memory(error, size_bytes);
  attribute->kind = CLV_ATTRIBUTE_TENSOR;
  attribute->count = 1;
  attribute->tensor = tensor;
  return clv__case_read_values(values, tensor, error);
}

static clv_status read_dtype_number(const char *at, const char *end, clv_dtype dtype, clv__arena *arena, clv_attribute *attribute,
                                    clv_error *error) {
  const clv_dtype named = read_dtype(at, end, dtype);
  int64_t *number = clv__arena_allocate(arena, sizeof *number);
  if (number == NULL) return clv__error_memory(error, sizeof *number);
  if (named == CLV_DTYPE_NONE) return bad_text(error, at, end, "unknown dtype");
  *number = named;
  attribute->kind = CLV_ATTRIBUTE_INTS;
  attribute->count = 1;
  attribute->ints = number;
  return CLV_OK;
}

static clv_status read_string(const char *at, const char *end, clv__arena *arena, clv_attribute *attribute, clv_error *error) {
  clv_string *string = clv__arena_allocate(arena, sizeof *string);
  char *copy = clv__arena_string(arena, at, (size_t)(end - at));
  if (string == NULL || copy == NULL) return clv__error_memory(error, sizeof *string);
  *string = (clv_string){copy, (size_t)(end - at)};
  attribute->kind = CLV_ATTRIBUTE_STRINGS;
  attribute->count = 1;
  attribute->strings = string;
  return CLV_OK;
}

clv_status clv__case_read_attribute(const char **text, const char *end, clv_dtype dtype, clv__arena *arena,
                                    clv_attribute *attribute, uint32_t *outputs, uint32_t *output_count, clv_error *error) {
  const char *at = *text, *stop = at;
  while (stop < end && *stop != ' ') ++stop;
  *text = stop;
  memset(attribute, 0, sizeof *attribute);
  if (*at == '>') {
    *outputs = *output_count = 0;
    for (++at; at < stop; ++at, ++*output_count) *outputs |= (uint32_t)(*at == '1') << *output_count;
    return CLV_OK;
  }
  const char *sign = memchr(at, '=', (size_t)(stop - at));
  if (sign == NULL || sign + 1 == stop) return bad_text(error, at, stop, "expected an attribute");
  attribute->name = clv__arena_string(arena, at, (size_t)(sign - at));
  if (attribute->name == NULL) return clv__error_memory(error, (size_t)(sign - at));
  at = sign + 1;
  if (*at == '#') return read_tensor(at + 1, stop, dtype, arena, attribute, error);
  if (*at == '$') return read_dtype_number(at + 1, stop, dtype, arena, attribute, error);
  if (*at == '[' || is_number(at)) return read_numbers(at, stop, arena, attribute, error);
  return read_string(at, stop, arena, attribute, error);
}
