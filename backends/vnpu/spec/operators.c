/* Reads the limits of the operators in a description: their dtypes, ranks, attributes and inputs. */
#include <string.h>

#include "base/error.h"
#include "base/tensor/tensor.h"
#include "json.h"
#include "spec.h"

/* Reads the allowed dtypes of those operands for which they differ from the operator's, such as {"1": ["i32", "i64"]} for
 * operand 1. */
static clv_status read_operands(clv__spec_reader *r, json_t *object, const char *key, const clv__vnpu_operand **operands,
                                uint32_t *count) {
  json_t *map = json_object_get(object, key);
  if (map == NULL) return CLV_OK;
  clv__spec_push(r, key);
  if (!json_is_object(map)) return clv__spec_fail(r, "must be an object that maps an index to a list of dtypes");
  clv__vnpu_operand *items = clv__arena_allocate_zero(r->arena, json_object_size(map), sizeof *items);
  if (items == NULL) return clv__spec_no_memory(r);
  const char *index;
  json_t *value;
  json_object_foreach(map, index, value) {
    clv__spec_push(r, index);
    char *end;
    unsigned long number = strtoul(index, &end, 10);
    if (*index < '0' || *index > '9' || *end != '\0' || number > 65535)
      return clv__spec_fail(r, "must be an index such as \"1\"");
    items[*count].index = (uint32_t)number;
    CLV__TRY(clv__spec_dtypes(r, value, &items[*count].dtypes));
    ++*count;
    clv__spec_pop(r);
  }
  *operands = items;
  clv__spec_pop(r);
  return CLV_OK;
}

static clv_status read_scalar(clv__spec_reader *r, json_t *value, clv__vnpu_scalar *scalar) {
  if (json_is_number(value)) {
    *scalar = (clv__vnpu_scalar){.number = json_number_value(value)};
    return CLV_OK;
  }
  if (!json_is_string(value)) return clv__spec_fail(r, "must be a number or a string");
  *scalar = (clv__vnpu_scalar){.is_text = true,
                               .text = clv__arena_string(r->arena, json_string_value(value), json_string_length(value))};
  return scalar->text != NULL ? CLV_OK : clv__spec_no_memory(r);
}

static clv_status read_limit(clv__spec_reader *r, json_t *object, clv__vnpu_attribute *limit) {
  static const char *const keys[] = {"min", "max", "in", "default", NULL};
  CLV__TRY(clv__spec_check_keys(r, object, keys));
  const char *bounds[] = {"min", "max"};
  for (int i = 0; i < 2; ++i) {
    json_t *value = json_object_get(object, bounds[i]);
    if (value == NULL) continue;
    clv__spec_push(r, bounds[i]);
    if (!json_is_number(value)) return clv__spec_fail(r, "must be a number");
    *(i == 0 ? &limit->min : &limit->max) = json_number_value(value);
    *(i == 0 ? &limit->has_min : &limit->has_max) = true;
    clv__spec_pop(r);
  }
  json_t *fallback = json_object_get(object, "default");
  if (fallback != NULL) {
    clv__spec_push(r, "default");
    CLV__TRY(read_scalar(r, fallback, &limit->fallback));
    limit->has_fallback = true;
    clv__spec_pop(r);
  }
  json_t *list = json_object_get(object, "in");
  if (list == NULL) return CLV_OK;
  clv__spec_push(r, "in");
  if (!json_is_array(list) || json_array_size(list) == 0) return clv__spec_fail(r, "must be a list of at least one value");
  clv__vnpu_scalar *allowed = clv__arena_allocate_zero(r->arena, json_array_size(list), sizeof *allowed);
  if (allowed == NULL) return clv__spec_no_memory(r);
  for (size_t i = 0; i < json_array_size(list); ++i) CLV__TRY(read_scalar(r, json_array_get(list, i), &allowed[i]));
  limit->allowed = allowed;
  limit->allowed_count = (uint32_t)json_array_size(list);
  clv__spec_pop(r);
  return CLV_OK;
}

static clv_status read_attributes(clv__spec_reader *r, json_t *object, clv__vnpu_operator *op) {
  json_t *map = json_object_get(object, "attributes");
  if (map == NULL) return CLV_OK;
  clv__spec_push(r, "attributes");
  if (!json_is_object(map)) return clv__spec_fail(r, "must be an object that maps an attribute to its limits");
  clv__vnpu_attribute *items = clv__arena_allocate_zero(r->arena, json_object_size(map), sizeof *items);
  if (items == NULL) return clv__spec_no_memory(r);
  op->attributes = items;
  const char *name;
  json_t *value;
  json_object_foreach(map, name, value) {
    clv__spec_push(r, name);
    clv__vnpu_attribute *limit = &items[op->attribute_count++];
    limit->name = clv__arena_string(r->arena, name, strlen(name));
    if (limit->name == NULL) return clv__spec_no_memory(r);
    CLV__TRY(read_limit(r, value, limit));
    clv__spec_pop(r);
  }
  clv__spec_pop(r);
  return CLV_OK;
}

static clv_status read_constants(clv__spec_reader *r, json_t *object, clv__vnpu_operator *op) {
  json_t *list = json_object_get(object, "constant_inputs");
  if (list == NULL) return CLV_OK;
  clv__spec_push(r, "constant_inputs");
  if (!json_is_array(list)) return clv__spec_fail(r, "must be a list of input indices");
  uint32_t *items = clv__arena_allocate_zero(r->arena, json_array_size(list), sizeof *items);
  if (items == NULL) return clv__spec_no_memory(r);
  for (size_t i = 0; i < json_array_size(list); ++i) {
    json_t *item = json_array_get(list, i);
    if (!json_is_integer(item) || json_integer_value(item) < 0 || json_integer_value(item) > 65535) {
      return clv__spec_fail(r, "must be a list of input indices");
    }
    items[op->constant_count++] = (uint32_t)json_integer_value(item);
  }
  op->constants = items;
  clv__spec_pop(r);
  return CLV_OK;
}

static clv_status read_operator(clv__spec_reader *r, json_t *object, clv__vnpu_operator *op) {
  static const char *const keys[] = {"dtypes",     "inputs",     "outputs",         "max_rank", "max_inputs",
                                     "max_kernel", "attributes", "constant_inputs", NULL};
  CLV__TRY(clv__spec_check_keys(r, object, keys));
  int64_t rank = r->spec->max_rank;
  CLV__TRY(clv__spec_int(r, object, "max_rank", 0, CLV_MAX_RANK, &rank));
  op->max_rank = (int32_t)rank;
  op->dtypes = r->spec->dtypes;
  clv__spec_push(r, "dtypes");
  CLV__TRY(clv__spec_dtypes(r, json_object_get(object, "dtypes"), &op->dtypes));
  clv__spec_pop(r);
  CLV__TRY(read_operands(r, object, "inputs", &op->inputs, &op->input_count));
  CLV__TRY(read_operands(r, object, "outputs", &op->outputs, &op->output_count));
  CLV__TRY(clv__spec_u32(r, object, "max_inputs", &op->max_inputs));
  CLV__TRY(clv__spec_int(r, object, "max_kernel", 0, INT32_MAX, &op->max_kernel));
  CLV__TRY(read_attributes(r, object, op));
  return read_constants(r, object, op);
}

clv_status clv__spec_operators(clv__spec_reader *r, json_t *root) {
  clv__vnpu_spec *spec = r->spec;
  json_t *value = json_object_get(root, "operators");
  if (value == NULL)
    return clv__spec_fail(r, "'operators' is missing; it must be \"all\", or an object that maps each operator to its limits");
  clv__spec_push(r, "operators");
  bool is_all = json_is_string(value) && strcmp(json_string_value(value), "all") == 0;
  if (!is_all && !json_is_object(value))
    return clv__spec_fail(r, "must be \"all\", or an object that maps each operator to its limits");
  json_t *map = is_all ? NULL : value;
  /* The array has one entry more than the object has keys. If the description accepts any operator ("all"), that entry is for the
   * operators without an entry of their own. */
  clv__vnpu_operator *items = clv__arena_allocate_zero(&spec->arena, json_object_size(map) + 1, sizeof *items);
  if (items == NULL) return clv__spec_no_memory(r);
  spec->operators = items;
  const char *name;
  json_t *limits;
  json_object_foreach(map, name, limits) {
    clv__spec_push(r, name);
    clv__vnpu_operator *op = &items[spec->operator_count];
    op->name = clv__arena_string(&spec->arena, name, strlen(name));
    if (op->name == NULL) return clv__spec_no_memory(r);
    CLV__TRY(read_operator(r, limits, op));
    if (!clv__map_set(&spec->index, op->name, spec->operator_count)) return clv__spec_no_memory(r);
    ++spec->operator_count;
    clv__spec_pop(r);
  }
  items[spec->operator_count] = (clv__vnpu_operator){.name = "any", .dtypes = spec->dtypes, .max_rank = spec->max_rank};
  spec->any_operator = is_all;
  clv__spec_pop(r);
  return CLV_OK;
}
