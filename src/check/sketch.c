/* See sketch.h. */
#include "check/sketch.h"

#include <math.h>
#include <string.h>

enum { OPSET = 20, MOST_NAMES = 16 };

#define DRAW(sketch, call)                                     \
  do {                                                         \
    if ((sketch)->status == CLV_OK) (sketch)->status = (call); \
    if ((sketch)->status != CLV_OK) return;                    \
  } while (0)

void clv__sketch_begin(clv__sketch *sketch, clv__check *check, clv_dtype dtype, uint64_t seed, clv_error *error) {
  *sketch = (clv__sketch){.seed = seed, .dtype = dtype, .error = error};
  sketch->status = clv__builder_create(check->allocator, &sketch->builder, error);
  DRAW(sketch, clv__builder_import(sketch->builder, "", OPSET, error));
  clv__builder_info(sketch->builder, "check", "", 10);
}

int64_t clv__sketch_symbol(clv__sketch *sketch, const char *name) {
  uint32_t symbol = 0;
  if (sketch->status == CLV_OK) sketch->status = clv__builder_symbol(sketch->builder, name, &symbol, sketch->error);
  return CLV_DIM_SYMBOL(symbol);
}

void clv__sketch_input(clv__sketch *sketch, const char *name, int32_t rank, const int64_t *dims) {
  clv_value_id value;
  DRAW(sketch, clv__builder_value(sketch->builder, name, &value, sketch->error));
  clv_tensor type = clv__tensor_make(sketch->dtype, rank, dims, NULL);
  clv__builder_type(sketch->builder, value, &type);
  DRAW(sketch, clv__builder_input(sketch->builder, value, sketch->error));
}

void clv__sketch_weight(clv__sketch *sketch, const char *name, int32_t rank, const int64_t *dims, double scale, bool positive) {
  clv_value_id value;
  size_t size_bytes, count;
  DRAW(sketch, clv__builder_value(sketch->builder, name, &value, sketch->error));
  clv_tensor type = clv__tensor_make(sketch->dtype, rank, dims, NULL);
  bool is_sized = clv__tensor_size_bytes(&type, &size_bytes) && clv__tensor_count(&type, &count);
  DRAW(sketch, is_sized ? CLV_OK : clv__error_set(sketch->error, CLV_INTERNAL_ERROR, "a weight of the kit has an unknown size"));
  type.data = clv__arena_allocate_data(clv__builder_arena(sketch->builder), size_bytes);
  DRAW(sketch, type.data != NULL ? CLV_OK : clv__error_memory(sketch->error, size_bytes));
  for (size_t i = 0; i < count; ++i) {
    double number = clv__check_real(&sketch->seed) * scale;
    if (positive) number = 0.5 + fabs(number);
    clv__tensor_put(&type, i, number, clv__check_below(&sketch->seed, 3), false);
  }
  clv__builder_type(sketch->builder, value, &type);
}

void clv__sketch_ints(clv__sketch *sketch, const char *name, int32_t count, const int64_t *values) {
  clv_value_id value;
  const int64_t dims[1] = {count};
  DRAW(sketch, clv__builder_value(sketch->builder, name, &value, sketch->error));
  clv_tensor type = clv__tensor_make(CLV_I64, 1, dims, NULL);
  type.data = clv__arena_copy(clv__builder_arena(sketch->builder), values, (size_t)count * sizeof *values);
  DRAW(sketch, type.data != NULL ? CLV_OK : clv__error_memory(sketch->error, (size_t)count * sizeof *values));
  clv__builder_type(sketch->builder, value, &type);
}

/* Reads names such as "a,,b" into ids. An empty name is an absent value. */
static clv_status read_names(clv__sketch *sketch, const char *names, clv_value_id *ids, uint32_t *count) {
  *count = 0;
  for (const char *at = names; names[0] != '\0';) {
    size_t length = strcspn(at, ",");
    char name[64] = "";
    if (length >= sizeof name || *count == MOST_NAMES) {
      return clv__error_set(sketch->error, CLV_INTERNAL_ERROR, "a graph of the kit has too many names: %s", names);
    }
    memcpy(name, at, length);
    ids[*count] = CLV__NO_ID;
    if (length > 0) CLV__TRY(clv__builder_value(sketch->builder, name, &ids[*count], sketch->error));
    ++*count;
    if (at[length] == '\0') break;
    at += length + 1;
  }
  return CLV_OK;
}

static void add_node(clv__sketch *sketch, const char *domain, const char *op, const char *inputs, const char *outputs,
                     const clv_attribute *attributes, uint32_t attribute_count) {
  clv_value_id in[MOST_NAMES], out[MOST_NAMES];
  uint32_t in_count = 0, out_count = 0;
  DRAW(sketch, read_names(sketch, inputs, in, &in_count));
  DRAW(sketch, read_names(sketch, outputs, out, &out_count));
  DRAW(sketch, clv__builder_node(sketch->builder, "", domain, op, in, in_count, out, out_count, attributes, attribute_count,
                                 sketch->error));
}

void clv__sketch_node(clv__sketch *sketch, const char *op, const char *inputs, const char *outputs) {
  add_node(sketch, "", op, inputs, outputs, NULL, 0);
}

void clv__sketch_foreign(clv__sketch *sketch, const char *domain, const char *op, const char *inputs, const char *outputs) {
  DRAW(sketch, clv__builder_import(sketch->builder, domain, 1, sketch->error));
  add_node(sketch, domain, op, inputs, outputs, NULL, 0);
}

void clv__sketch_node_ints(clv__sketch *sketch, const char *op, const char *inputs, const char *outputs, const char *attribute,
                           bool is_list, size_t count, const int64_t *values) {
  if (sketch->status != CLV_OK) return;
  int64_t *kept = clv__arena_copy(clv__builder_arena(sketch->builder), values, count * sizeof *values);
  char *name = clv__arena_string(clv__builder_arena(sketch->builder), attribute, strlen(attribute));
  DRAW(sketch, kept != NULL && name != NULL ? CLV_OK : clv__error_memory(sketch->error, count * sizeof *values));
  const clv_attribute made = {.name = name, .kind = CLV_ATTRIBUTE_INTS, .is_list = is_list, .count = count, .ints = kept};
  add_node(sketch, "", op, inputs, outputs, &made, 1);
}

void clv__sketch_pool(clv__sketch *sketch, const char *op, const char *inputs, const char *outputs) {
  static const int64_t kernel[] = {3, 3}, pads[] = {1, 1, 1, 1};
  static const clv_attribute attributes[] = {
      {.name = "kernel_shape", .kind = CLV_ATTRIBUTE_INTS, .is_list = true, .count = 2, .ints = kernel},
      {.name = "pads", .kind = CLV_ATTRIBUTE_INTS, .is_list = true, .count = 4, .ints = pads},
  };
  add_node(sketch, "", op, inputs, outputs, attributes, 2);
}

clv_status clv__sketch_end(clv__sketch *sketch, const char *outputs, clv_graph **graph) {
  clv_value_id ids[MOST_NAMES];
  uint32_t count = 0;
  *graph = NULL;
  if (sketch->status == CLV_OK) sketch->status = read_names(sketch, outputs, ids, &count);
  for (uint32_t i = 0; sketch->status == CLV_OK && i < count; ++i) {
    sketch->status = clv__builder_output(sketch->builder, ids[i], sketch->error);
  }
  if (sketch->status == CLV_OK) return clv__builder_finish(sketch->builder, graph, sketch->error);
  clv__builder_destroy(sketch->builder);
  return sketch->status;
}

clv_status clv__sketch_data(const clv_graph *graph, const int64_t *sizes, uint64_t seed, clv__arena *arena, clv_tensor **inputs,
                            clv_error *error) {
  *inputs = clv__arena_allocate_zero(arena, graph->input_count, sizeof **inputs);
  if (*inputs == NULL) return clv__error_memory(error, graph->input_count * sizeof **inputs);
  for (uint32_t i = 0; i < graph->input_count; ++i) {
    clv_tensor *input = &(*inputs)[i];
    size_t size_bytes, count;
    *input = graph->values[graph->inputs[i]].type;
    for (int32_t d = 0; d < input->rank; ++d) {
      if (input->dims[d] <= CLV_DIM_SYMBOL(0) && sizes != NULL) input->dims[d] = sizes[-2 - input->dims[d]];
    }
    if (!clv__tensor_size_bytes(input, &size_bytes) || !clv__tensor_count(input, &count)) {
      return clv__error_set(error, CLV_INTERNAL_ERROR, "an input of the kit has an unknown size");
    }
    input->data = clv__arena_allocate_data(arena, size_bytes);
    if (input->data == NULL) return clv__error_memory(error, size_bytes);
    for (size_t k = 0; k < count; ++k) {
      double real = clv__check_real(&seed);
      clv__tensor_put(input, k, real, clv__check_below(&seed, 10), clv__check_below(&seed, 2) != 0);
    }
  }
  return CLV_OK;
}
