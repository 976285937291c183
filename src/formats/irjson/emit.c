/* Emits ONNX nodes for an ATen node. The nodes are only collected here; node.c adds them to the graph if the lowering succeeds.
 * See lower.h. */
#include <math.h>
#include <stdio.h>

#include "formats/irjson/file.h"

static void fail_memory(clv__aten_node *node, size_t size_bytes) {
  if (node->status == CLV_OK) node->status = clv__error_memory(node->error, size_bytes);
}

static void *allocate(clv__aten_node *node, size_t count, size_t element_bytes) {
  if (node->status != CLV_OK) return NULL;
  void *memory = clv__arena_allocate_zero(node->arena, count, element_bytes);
  if (memory == NULL) fail_memory(node, count * element_bytes);
  return memory;
}

static clv__aten_value unknown(clv_dtype dtype) {
  return (clv__aten_value){CLV__NO_ID, {.dtype = dtype, .rank = CLV_RANK_UNKNOWN}};
}

clv__aten_value clv__aten_absent(void) {
  return unknown(CLV_DTYPE_NONE);
}

clv__aten_value clv__aten_input(clv__aten_node *node, uint32_t index) {
  if (index < node->input_count) return node->inputs[index];
  clv__aten_fail(node, "it has %u input%s; expected %u or more", node->input_count, CLV__S(node->input_count), index + 1);
  return unknown(CLV_F32);
}

clv__aten_value clv__aten_optional(const clv__aten_node *node, const char *name, uint32_t position) {
  if (!node->has_arguments) return position < node->input_count ? node->inputs[position] : clv__aten_absent();
  for (uint32_t i = 0; i < node->input_count; ++i) {
    if (strcmp(node->arguments[i], name) == 0) return node->inputs[i];
  }
  return clv__aten_absent();
}

/* ---- Attributes, which live as long as the graph ---- */

static clv_attribute *next_attribute(clv__aten_node *node, const char *name, clv_attribute_kind kind) {
  if (node->status != CLV_OK || node->next_count == CLV__ATEN_MAX_ATTRIBUTES) {
    if (node->status == CLV_OK) node->status = clv__error_set(node->error, CLV_INTERNAL_ERROR, "too many attributes");
    return NULL;
  }
  clv__arena *arena = clv__builder_arena(node->file->builder);
  clv_attribute *attribute = &node->next[node->next_count];
  *attribute = (clv_attribute){.name = clv__arena_string(arena, name, strlen(name)), .kind = kind, .count = 1};
  if (attribute->name == NULL) {
    fail_memory(node, strlen(name));
    return NULL;
  }
  ++node->next_count;
  return attribute;
}

static const void *keep(clv__aten_node *node, const void *data, size_t size_bytes) {
  const void *copy = clv__arena_copy(clv__builder_arena(node->file->builder), data, size_bytes);
  if (copy == NULL) fail_memory(node, size_bytes);
  return copy;
}

void clv__aten_set_int(clv__aten_node *node, const char *name, int64_t value) {
  clv_attribute *attribute = next_attribute(node, name, CLV_ATTRIBUTE_INTS);
  if (attribute != NULL) attribute->ints = keep(node, &value, sizeof value);
}

void clv__aten_set_ints(clv__aten_node *node, const char *name, const int64_t *values, uint32_t count) {
  clv_attribute *attribute = next_attribute(node, name, CLV_ATTRIBUTE_INTS);
  if (attribute == NULL) return;
  attribute->is_list = true;
  attribute->count = count;
  attribute->ints = keep(node, values, count * sizeof *values);
}

void clv__aten_set_float(clv__aten_node *node, const char *name, double value) {
  clv_attribute *attribute = next_attribute(node, name, CLV_ATTRIBUTE_FLOATS);
  float number = (float)value;
  if (attribute != NULL) attribute->floats = keep(node, &number, sizeof number);
}

void clv__aten_set_string(clv__aten_node *node, const char *name, const char *value) {
  clv_attribute *attribute = next_attribute(node, name, CLV_ATTRIBUTE_STRINGS);
  if (attribute == NULL) return;
  clv_string string = {keep(node, value, strlen(value) + 1), strlen(value)};
  attribute->strings = keep(node, &string, sizeof string);
}

/* Returns new memory of the graph that holds the number as one element of `dtype`; NULL if the node has failed. */
static void *make_element(clv__aten_node *node, clv_dtype dtype, clv__aten_scalar value) {
  if (node->status != CLV_OK) return NULL;
  void *data = clv__arena_allocate_data(clv__builder_arena(node->file->builder), sizeof(double));
  if (data == NULL)
    fail_memory(node, sizeof(double));
  else
    clv__irjson_put(dtype, data, 0, value);
  return data;
}

void clv__aten_set_number(clv__aten_node *node, const char *name, clv_dtype dtype, clv__aten_scalar value) {
  clv_attribute *attribute = next_attribute(node, name, CLV_ATTRIBUTE_TENSOR);
  if (attribute == NULL) return;
  clv_tensor tensor = {.dtype = dtype, .rank = 1, .dims = {1}, .data = make_element(node, dtype, value)};
  attribute->tensor = keep(node, &tensor, sizeof tensor);
}

/* ---- Nodes ---- */

void clv__aten_ops(clv__aten_node *node, const char *op, const clv__aten_value *inputs, size_t count, clv__aten_value *outputs,
                   uint32_t output_count) {
  while (count > 0 && inputs[count - 1].id == CLV__NO_ID) --count; /* trailing absent inputs are not written */
  clv__aten_emitted made = {.op = op,
                            .input_count = (uint32_t)count,
                            .output_count = output_count,
                            .attribute_count = node->next_count,
                            .inputs = allocate(node, count, sizeof *made.inputs),
                            .outputs = allocate(node, output_count, sizeof *made.outputs),
                            .attributes = allocate(node, node->next_count, sizeof *made.attributes)};
  if (node->status != CLV_OK) return;
  for (size_t i = 0; i < count; ++i) made.inputs[i] = inputs[i].id;
  memcpy(made.attributes, node->next, node->next_count * sizeof *node->next);
  node->next_count = 0;
  for (uint32_t i = 0; i < output_count && node->status == CLV_OK; ++i) {
    outputs[i].type.rank = CLV_RANK_UNKNOWN;
    node->status = clv__irjson_fresh(node->file, node->name, true, &outputs[i].id);
    made.outputs[i] = outputs[i].id;
  }
  if (node->status != CLV_OK) return;
  if (!clv__array_reserve(node->file->allocator, (void **)&node->emitted, &node->emitted_capacity, node->emitted_count + 1,
                          sizeof made, node->emitted_count)) {
    fail_memory(node, sizeof made);
    return;
  }
  node->emitted[node->emitted_count++] = made;
}

clv__aten_value clv__aten_op(clv__aten_node *node, const char *op, clv_dtype dtype, const clv__aten_value *inputs, size_t count) {
  clv__aten_value output = unknown(dtype);
  clv__aten_ops(node, op, inputs, count, &output, 1);
  return output;
}

void clv__aten_return(clv__aten_node *node, uint32_t output, clv__aten_value value) {
  if (node->status != CLV_OK) return;
  if (output >= node->output_count) {
    clv__aten_fail(node, "it has %u output%s; expected %u or more", node->output_count, CLV__S(node->output_count), output + 1);
    return;
  }
  const clv__aten_value *to = &node->outputs[output];
  value = clv__aten_cast(node, value, to->type.dtype);
  bool made_here = false;
  for (size_t i = 0; i < node->emitted_count; ++i) {
    for (uint32_t k = 0; k < node->emitted[i].output_count; ++k) made_here = made_here || node->emitted[i].outputs[k] == value.id;
  }
  if (!made_here) value = clv__aten_call(node, "Identity", to->type.dtype, value);
  for (size_t i = 0; i < node->emitted_count; ++i) {
    clv__aten_emitted *emitted = &node->emitted[i];
    for (uint32_t k = 0; k < emitted->output_count; ++k) {
      if (emitted->outputs[k] == value.id) emitted->outputs[k] = to->id;
    }
    for (uint32_t k = 0; k < emitted->input_count; ++k) {
      if (emitted->inputs[k] == value.id) emitted->inputs[k] = to->id;
    }
  }
}

/* ---- Constants ---- */

/* Returns the constant whose key is `text`. If there is none yet, creates it from `type` with its data. */
static clv__aten_value share(clv__aten_node *node, const char *text, const clv_tensor *type) {
  clv__aten_value made = {CLV__NO_ID, *type};
  made.type.data = NULL;
  clv__irjson *file = node->file;
  if (node->status != CLV_OK) return made;
  made.id = clv__map_find(&file->constants, text);
  if (made.id != CLV__MAP_NONE) return made;
  node->status = clv__irjson_fresh(file, text, false, &made.id);
  const char *key = clv__arena_string(&file->scratch, text, strlen(text));
  if (node->status == CLV_OK && (key == NULL || !clv__map_set(&file->constants, key, made.id))) fail_memory(node, strlen(text));
  if (node->status == CLV_OK) clv__builder_type(file->builder, made.id, type);
  return made;
}

clv__aten_value clv__aten_vector(clv__aten_node *node, const int64_t *values, uint32_t count) {
  char text[24 * (CLV__ATEN_MAX_LIST + 1)];
  size_t used = (size_t)snprintf(text, sizeof text, "i64[");
  for (uint32_t i = 0; i < count; ++i) {
    used += (size_t)snprintf(text + used, sizeof text - used, "%s%lld", i > 0 ? "," : "", (long long)values[i]);
  }
  snprintf(text + used, sizeof text - used, "]");
  clv_tensor type = {.dtype = CLV_I64, .rank = 1, .dims = {count}};
  clv__arena *arena = clv__builder_arena(node->file->builder);
  if (node->status == CLV_OK && clv__map_find(&node->file->constants, text) == CLV__MAP_NONE) {
    type.data = clv__arena_allocate_data(arena, count * sizeof *values);
    if (type.data == NULL)
      fail_memory(node, count * sizeof *values);
    else if (count > 0)
      memcpy(type.data, values, count * sizeof *values);
  }
  return share(node, text, &type);
}

clv__aten_value clv__aten_constant(clv__aten_node *node, clv_dtype dtype, clv__aten_scalar value) {
  char text[80];
  if (clv__aten_is_float(dtype))
    snprintf(text, sizeof text, "%s(%.17g)", clv_dtype_name(dtype), value.real);
  else
    snprintf(text, sizeof text, "%s(%lld)", clv_dtype_name(dtype),
             dtype == CLV_BOOL ? value.real != 0 : (long long)value.integer);
  clv_tensor type = {.dtype = dtype, .rank = 0};
  if (node->status == CLV_OK && clv__map_find(&node->file->constants, text) == CLV__MAP_NONE) {
    type.data = make_element(node, dtype, value);
  }
  return share(node, text, &type);
}

clv__aten_value clv__aten_number(clv__aten_node *node, clv_dtype dtype, double value) {
  clv__aten_scalar scalar = {CLV_F32, fabs(value) < 9e18 ? (int64_t)value : 0, value};
  return clv__aten_constant(node, dtype, scalar);
}

clv__aten_value clv__aten_filled(clv__aten_node *node, clv_dtype dtype, clv__aten_scalar value, const clv_tensor *shape) {
  clv__aten_set_number(node, "value", dtype, value);
  clv__aten_value made =
      clv__aten_call(node, "ConstantOfShape", dtype, clv__aten_vector(node, shape->dims, (uint32_t)shape->rank));
  made.type.rank = shape->rank;
  memcpy(made.type.dims, shape->dims, sizeof shape->dims);
  return made;
}

/* ---- Shared by many lowerings ---- */

clv__aten_value clv__aten_cast(clv__aten_node *node, clv__aten_value value, clv_dtype dtype) {
  if (value.id == CLV__NO_ID || value.type.dtype == dtype) return value;
  clv__aten_set_int(node, "to", dtype);
  clv__aten_value cast = clv__aten_call(node, "Cast", dtype, value);
  cast.type.rank = value.type.rank;
  memcpy(cast.type.dims, value.type.dims, sizeof cast.type.dims);
  return cast;
}

static clv__aten_value with_shape(clv__aten_value value, int32_t rank, const int64_t *dims) {
  value.type.rank = rank;
  if (rank > 0) memcpy(value.type.dims, dims, (size_t)rank * sizeof *dims);
  return value;
}

static bool has_shape(const clv__aten_value *value, int32_t rank, const int64_t *dims) {
  if (value->type.rank != rank) return false;
  for (int32_t i = 0; i < rank; ++i) {
    if (value->type.dims[i] != dims[i]) return false;
  }
  return true;
}

clv__aten_value clv__aten_reshape(clv__aten_node *node, clv__aten_value value, int32_t rank, const int64_t *dims) {
  if (has_shape(&value, rank, dims)) return value;
  bool zero = false;
  for (int32_t i = 0; i < rank; ++i) zero = zero || dims[i] == 0;
  if (zero) clv__aten_set_int(node, "allowzero", 1); /* otherwise a 0 would copy a dim of the input */
  clv__aten_value made = clv__aten_call(node, "Reshape", value.type.dtype, value, clv__aten_vector(node, dims, (uint32_t)rank));
  return with_shape(made, rank, dims);
}

clv__aten_value clv__aten_expand(clv__aten_node *node, clv__aten_value value, int32_t rank, const int64_t *dims) {
  if (has_shape(&value, rank, dims)) return value;
  clv__aten_value made = clv__aten_call(node, "Expand", value.type.dtype, value, clv__aten_vector(node, dims, (uint32_t)rank));
  return with_shape(made, rank, dims);
}

clv__aten_value clv__aten_unsqueeze(clv__aten_node *node, clv__aten_value value, int64_t axis) {
  clv__aten_value made = clv__aten_call(node, "Unsqueeze", value.type.dtype, value, clv__aten_vector(node, &axis, 1));
  if (value.type.rank < 0 || value.type.rank >= CLV_MAX_RANK || axis < 0) return made;
  made.type.rank = value.type.rank + 1;
  for (int32_t i = 0; i < made.type.rank; ++i)
    made.type.dims[i] = i < axis ? value.type.dims[i] : i == axis ? 1 : value.type.dims[i - 1];
  return made;
}

clv__aten_value clv__aten_squeeze(clv__aten_node *node, clv__aten_value value, int64_t axis) {
  return clv__aten_call(node, "Squeeze", value.type.dtype, value, clv__aten_vector(node, &axis, 1));
}

clv__aten_value clv__aten_transpose(clv__aten_node *node, clv__aten_value value, const int64_t *order) {
  clv__aten_set_ints(node, "perm", order, (uint32_t)value.type.rank);
  clv__aten_value made = clv__aten_call(node, "Transpose", value.type.dtype, value);
  made.type.rank = value.type.rank;
  for (int32_t i = 0; i < value.type.rank; ++i) made.type.dims[i] = value.type.dims[order[i]];
  return made;
}

clv__aten_value clv__aten_slice(clv__aten_node *node, clv__aten_value value, int64_t axis, int64_t from, int64_t to,
                                int64_t step) {
  clv__aten_value made =
      clv__aten_call(node, "Slice", value.type.dtype, value, clv__aten_vector(node, &from, 1), clv__aten_vector(node, &to, 1),
                     clv__aten_vector(node, &axis, 1), clv__aten_vector(node, &step, 1));
  return made;
}

clv__aten_value clv__aten_real_input(clv__aten_node *node, uint32_t index) {
  clv__aten_value value = clv__aten_input(node, index);
  return clv__aten_is_float(value.type.dtype) ? value : clv__aten_cast(node, value, CLV_F32);
}

clv__aten_value clv__aten_wide_input(clv__aten_node *node, uint32_t index) {
  clv__aten_value value = clv__aten_real_input(node, index);
  return clv__aten_cast(node, value, clv__aten_wide(value.type.dtype));
}

/* ---- Type promotion ---- */

clv_dtype clv__aten_promote(clv_dtype a, clv_dtype b) {
  if (a == CLV_DTYPE_NONE || a == b) return b;
  if (b == CLV_DTYPE_NONE || b == CLV_BOOL) return a;
  if (a == CLV_BOOL) return b;
  bool a_float = clv__aten_is_float(a), b_float = clv__aten_is_float(b);
  if (a_float != b_float) return a_float ? a : b;
  size_t a_bytes = clv_dtype_size_bytes(a), b_bytes = clv_dtype_size_bytes(b);
  if (a_float) return a_bytes == b_bytes ? CLV_F32 : a_bytes > b_bytes ? a : b; /* f16 and bf16 combine to f32 */
  bool a_signed = (CLV__DTYPE_BIT(a) & CLV__DTYPES_SIGNED) != 0, b_signed = (CLV__DTYPE_BIT(b) & CLV__DTYPES_SIGNED) != 0;
  if (a_signed == b_signed) return a_bytes >= b_bytes ? a : b;
  size_t unsigned_bytes = a_signed ? b_bytes : a_bytes, signed_bytes = a_signed ? a_bytes : b_bytes;
  if (signed_bytes > unsigned_bytes) return a_signed ? a : b;
  return unsigned_bytes == 1 ? CLV_I16 : unsigned_bytes == 2 ? CLV_I32 : CLV_I64;
}

static clv_dtype combine(clv_dtype higher, clv_dtype lower) {
  if (higher == CLV_DTYPE_NONE) return lower;
  if (clv__aten_is_float(higher)) return higher;
  return higher == CLV_BOOL || clv__aten_is_float(lower) ? clv__aten_promote(higher, lower) : higher;
}

clv_dtype clv__aten_common(const clv__aten_value *values, size_t count, clv__aten_scalar scalar) {
  clv_dtype ranked = CLV_DTYPE_NONE, zero = CLV_DTYPE_NONE;
  for (size_t i = 0; i < count; ++i) {
    clv_dtype *group = values[i].type.rank == 0 ? &zero : &ranked;
    *group = clv__aten_promote(*group, values[i].type.dtype);
  }
  return combine(ranked, combine(zero, scalar.dtype));
}
