/* Small graphs of common network structures in several sizes: a block of a convolutional network and one of a transformer. If
 * no model is given, they are measured so that the fits have some points. */
#include <stdio.h>
#include <string.h>

#include "cost/measure.h"

typedef struct making {
  clv__builder *builder;
  clv_error *error;
  clv_status status; /* the first failure; later calls do nothing */
  uint32_t count;    /* number of values made */
} making;

typedef clv_value_id value;

static value declare(making *m, const clv_tensor *type, bool is_input) {
  char name[16];
  value made = CLV__NO_ID;
  snprintf(name, sizeof name, "v%u", m->count++);
  if (m->status == CLV_OK) m->status = clv__builder_value(m->builder, name, &made, m->error);
  if (m->status == CLV_OK && type != NULL) clv__builder_type(m->builder, made, type);
  if (m->status == CLV_OK && is_input) m->status = clv__builder_input(m->builder, made, m->error);
  return made;
}

static value input(making *m, int32_t rank, const int64_t *dims) {
  clv_tensor type = clv__tensor_make(CLV_F32, rank, dims, NULL);
  return declare(m, &type, true);
}

/* Creates weights that keep activations at about the same magnitude. */
static value weight(making *m, int32_t rank, const int64_t *dims) {
  clv_tensor type = clv__tensor_make(CLV_F32, rank, dims, NULL);
  size_t count, size_bytes;
  if (m->status != CLV_OK || !clv__tensor_count(&type, &count) || !clv__tensor_size_bytes(&type, &size_bytes)) return CLV__NO_ID;
  float *data = clv__arena_allocate_data(clv__builder_arena(m->builder), size_bytes);
  if (data == NULL) {
    m->status = clv__error_memory(m->error, size_bytes);
    return CLV__NO_ID;
  }
  uint64_t state = 1;
  for (size_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    data[i] = (float)(state >> 40) / (float)(1 << 24) * 0.1f + 0.01f;
  }
  type.data = data;
  return declare(m, &type, false);
}

/* Adds a node with up to five operands and one attribute of ints (NULL: none). */
static value node(making *m, const char *op, uint32_t count, const value *operands, const char *attribute, bool is_list,
                  uint32_t int_count, const int64_t *ints) {
  value out = declare(m, NULL, false);
  char name[32];
  clv_attribute given = {.name = attribute, .kind = CLV_ATTRIBUTE_INTS, .is_list = is_list, .count = int_count};
  if (m->status != CLV_OK) return out;
  if (attribute != NULL) given.ints = clv__arena_copy(clv__builder_arena(m->builder), ints, int_count * sizeof *ints);
  if (attribute != NULL && given.ints == NULL) m->status = clv__error_memory(m->error, int_count * sizeof *ints);
  snprintf(name, sizeof name, "%s%u", op, m->count);
  if (m->status == CLV_OK)
    m->status = clv__builder_node(m->builder, name, "", op, operands, count, &out, 1, &given, attribute != NULL, m->error);
  return out;
}

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})
#define OF(...) ((const value[]){__VA_ARGS__})

static value plain(making *m, const char *op, uint32_t count, const value *operands) {
  return node(m, op, count, operands, NULL, false, 0, NULL);
}

static value batch_norm(making *m, value x, int64_t channels) {
  const int64_t *dims = DIMS(channels);
  value scale = weight(m, 1, dims), bias = weight(m, 1, dims), mean = weight(m, 1, dims), variance = weight(m, 1, dims);
  return plain(m, "BatchNormalization", 5, OF(x, scale, bias, mean, variance));
}

static value convolutional(making *m, int64_t channels, int64_t size) {
  value x = input(m, 4, DIMS(1, channels, size, size));
  value y = node(m, "Conv", 2, OF(x, weight(m, 4, DIMS(channels, channels, 1, 1))), NULL, false, 0, NULL);
  y = plain(m, "Relu", 1, OF(batch_norm(m, y, channels)));
  y = node(m, "Conv", 2, OF(y, weight(m, 4, DIMS(channels, channels, 3, 3))), "pads", true, 4, DIMS(1, 1, 1, 1));
  y = plain(m, "Relu", 1, OF(batch_norm(m, y, channels)));
  y = node(m, "Conv", 2, OF(y, weight(m, 4, DIMS(channels, channels, 1, 1))), NULL, false, 0, NULL);
  y = plain(m, "Relu", 1, OF(plain(m, "Add", 2, OF(y, x))));
  y = node(m, "Conv", 2, OF(y, weight(m, 4, DIMS(channels, 1, 3, 3))), "group", false, 1, DIMS(channels));
  y = plain(m, "Sigmoid", 1, OF(y));
  y = node(m, "MaxPool", 1, OF(y), "kernel_shape", true, 2, DIMS(2, 2));
  y = node(m, "Concat", 2, OF(y, y), "axis", false, 1, DIMS(1));
  y = plain(m, "GlobalAveragePool", 1, OF(y));
  y = node(m, "Flatten", 1, OF(y), "axis", false, 1, DIMS(1));
  return plain(m, "Gemm", 3, OF(y, weight(m, 2, DIMS(2 * channels, 1000)), weight(m, 1, DIMS(1000))));
}

static value transformer(making *m, int64_t tokens, int64_t width) {
  value x = input(m, 3, DIMS(1, tokens, width)), y = x;
  value left = node(m, "Transpose", 1, OF(x), "perm", true, 3, DIMS(0, 2, 1));
  value scores = plain(m, "MatMul", 2, OF(x, left));
  scores = plain(m, "Mul", 2, OF(scores, weight(m, 1, DIMS(1))));
  scores = node(m, "Softmax", 1, OF(scores), "axis", false, 1, DIMS(-1));
  y = plain(m, "MatMul", 2, OF(scores, x));
  y = plain(m, "Add", 2, OF(plain(m, "MatMul", 2, OF(y, weight(m, 2, DIMS(width, width)))), weight(m, 1, DIMS(width))));
  y = plain(m, "Add", 2, OF(y, x));
  value scale = weight(m, 1, DIMS(width)), bias = weight(m, 1, DIMS(width));
  y = plain(m, "LayerNormalization", 3, OF(y, scale, bias));
  value wide = plain(m, "MatMul", 2, OF(y, weight(m, 2, DIMS(width, 4 * width))));
  wide = plain(m, "Add", 2, OF(wide, weight(m, 1, DIMS(4 * width))));
  wide = plain(m, "Tanh", 1, OF(plain(m, "Erf", 1, OF(wide))));
  wide = plain(m, "MatMul", 2, OF(wide, weight(m, 2, DIMS(4 * width, width))));
  y = plain(m, "Add", 2, OF(wide, y));
  return node(m, "Transpose", 1, OF(y), "perm", true, 3, DIMS(0, 2, 1));
}

clv_status clv__measure_common(const clv_allocator *allocator, uint32_t index, clv_graph **graph, clv_error *error) {
  static const int64_t images[][2] = {{16, 56}, {32, 28}, {32, 56}, {64, 14}, {64, 28}, {128, 14}, {256, 7}};
  static const int64_t texts[][2] = {{1, 128}, {1, 512}, {16, 128}, {64, 256}, {128, 256}, {64, 512}, {128, 512}};
  enum { IMAGES = sizeof images / sizeof *images, TEXTS = sizeof texts / sizeof *texts };
  making m = {.error = error};
  *graph = NULL;
  if (index >= IMAGES + TEXTS) return CLV_OK;
  CLV__TRY(clv__builder_create(allocator, &m.builder, error));
  m.status = clv__builder_import(m.builder, "", 17, error);
  value out = index < IMAGES ? convolutional(&m, images[index][0], images[index][1])
                             : transformer(&m, texts[index - IMAGES][0], texts[index - IMAGES][1]);
  if (m.status == CLV_OK) m.status = clv__builder_output(m.builder, out, error);
  if (m.status == CLV_OK) return clv__builder_finish(m.builder, graph, error);
  clv__builder_destroy(m.builder);
  return m.status;
}
