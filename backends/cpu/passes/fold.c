/* Folds scales and shifts by constants into the weights and bias of the node that computes their input: batch normalisation, and
 * Mul, Add, Sub and Div by one number per channel. */
#include <math.h>

#include "variant.h"

static int64_t channels_of(const clv__cpu_variant *variant, const clv__cpu_variant_node *node) {
  const clv_tensor *out = &variant->values[node->outputs[0]].type;
  return node->kind == CLV__CPU_MATRIX ? out->dims[out->rank - 1] : out->dims[1];
}

static clv_status allocate_filled(clv__cpu_variant *variant, float **array, int64_t count, float value, clv_error *error) {
  if (*array != NULL) return CLV_OK;
  *array = clv__arena_allocate_data(&variant->arena, (size_t)count * sizeof **array);
  if (*array == NULL) return clv__error_memory(error, (size_t)count * sizeof **array);
  for (int64_t i = 0; i < count; ++i) (*array)[i] = value;
  return CLV_OK;
}

static clv_status affine_of_batch_norm(clv__cpu_variant *variant, clv__cpu_variant_node *node, clv_error *error) {
  const int64_t channels = channels_of(variant, node);
  void *data[5];
  for (uint32_t i = 1; i < 5; ++i) CLV__TRY(clv__cpu_known(variant, node->inputs[i], &data[i], error));
  const float *scale = data[1], *shift = data[2], *mean = data[3], *variance = data[4];
  const double epsilon = clv__attribute_float(node->source->attributes, "epsilon", 1e-5f);
  CLV__TRY(allocate_filled(variant, &node->scale, channels, 1.0f, error));
  CLV__TRY(allocate_filled(variant, &node->bias, channels, 0.0f, error));
  for (int64_t c = 0; c < channels; ++c) {
    const double factor = scale[c] / sqrt((double)variance[c] + epsilon);
    node->scale[c] = (float)factor;
    node->bias[c] = (float)(shift[c] - mean[c] * factor);
  }
  node->input_count = 1;
  return CLV_OK;
}

/* Copies the bias input of a convolution or Gemm to node->bias, multiplied by Gemm's beta, and Gemm's alpha to node->scale. */
static clv_status copy_bias(clv__cpu_variant *variant, clv__cpu_variant_node *node, clv_error *error) {
  const int64_t channels = channels_of(variant, node);
  const bool gemm = strcmp(node->source->op, "Gemm") == 0;
  const float alpha = gemm ? clv__attribute_float(node->source->attributes, "alpha", 1.0f) : 1.0f;
  const float beta = gemm ? clv__attribute_float(node->source->attributes, "beta", 1.0f) : 1.0f;
  if (alpha != 1.0f) CLV__TRY(allocate_filled(variant, &node->scale, channels, alpha, error));
  if (node->input_count <= 2 || node->inputs[2] == CLV__CPU_NONE) return CLV_OK;
  void *data;
  size_t count;
  CLV__TRY(clv__cpu_known(variant, node->inputs[2], &data, error));
  (void)clv__tensor_count(&variant->values[node->inputs[2]].type, &count);
  CLV__TRY(allocate_filled(variant, &node->bias, channels, 0.0f, error));
  for (int64_t c = 0; c < channels; ++c) node->bias[c] = beta * ((const float *)data)[count == 1 ? 0 : c];
  node->input_count = 2;
  return CLV_OK;
}

static bool may_scale(const clv__cpu_variant *variant, const clv__cpu_variant_node *node) {
  if (node->kind != CLV__CPU_MATRIX) return true;
  return node->inputs[1] < variant->program->value_count && variant->program->values[node->inputs[1]].is_constant &&
         variant->values[node->inputs[1]].type.rank == 2;
}

/* The index of the operand of `binary` that is a constant scalar, or a constant with one number per channel of `maker`'s output;
 * CLV__CPU_NONE if neither is. */
static uint32_t channel_constant(const clv__cpu_variant *variant, const clv__cpu_variant_node *maker,
                                 const clv__cpu_variant_node *binary) {
  const clv_tensor *out = &variant->values[maker->outputs[0]].type;
  const int32_t axis = maker->kind == CLV__CPU_MATRIX ? out->rank - 1 : 1;
  const clv_tensor *result = &variant->values[binary->outputs[0]].type;
  if (!clv__tensor_same_type(out, result)) return CLV__CPU_NONE;
  for (uint32_t k = 0; k < 2; ++k) {
    const clv__cpu_variant_value *value = &variant->values[binary->inputs[k]];
    if (!value->is_constant || value->type.rank > out->rank) continue;
    bool fits = true;
    for (int32_t i = 0; i < value->type.rank; ++i) {
      const int32_t at = i + out->rank - value->type.rank;
      if (value->type.dims[i] != 1 && at != axis) fits = false;
    }
    if (fits) return k;
  }
  return CLV__CPU_NONE;
}

/* Changes scale and bias of `maker` so that its result x becomes x * factor + shift. A `step` of 0 applies one number to all
 * channels. */
static clv_status compose(clv__cpu_variant *variant, clv__cpu_variant_node *maker, const float *factor, const float *shift,
                          int64_t step, clv_error *error) {
  const int64_t channels = channels_of(variant, maker);
  if (factor != NULL) {
    CLV__TRY(allocate_filled(variant, &maker->scale, channels, 1.0f, error));
    for (int64_t c = 0; c < channels; ++c) maker->scale[c] *= factor[c * step];
    for (int64_t c = 0; maker->bias != NULL && c < channels; ++c) maker->bias[c] *= factor[c * step];
  }
  if (shift != NULL) {
    CLV__TRY(allocate_filled(variant, &maker->bias, channels, 0.0f, error));
    for (int64_t c = 0; c < channels; ++c) maker->bias[c] += shift[c * step];
  }
  return CLV_OK;
}

static clv_status compose_binary(clv__cpu_variant *variant, clv__cpu_variant_node *maker, const clv__cpu_variant_node *binary,
                                 bool *done, clv_error *error) {
  *done = false;
  const uint32_t k = channel_constant(variant, maker, binary);
  if (k == CLV__CPU_NONE || binary->post_count != 1) return CLV_OK;
  /* A batched product supports no bias. */
  if (maker->kind == CLV__CPU_MATRIX && variant->values[maker->inputs[1]].type.rank != 2) return CLV_OK;
  const int algorithm = binary->posts[0].algorithm;
  const bool additive = algorithm == CLV__DNN_ADD || algorithm == CLV__DNN_SUB;
  if (algorithm == CLV__DNN_DIV && k == 0) return CLV_OK;
  if ((!additive || (algorithm == CLV__DNN_SUB && k == 0)) && !may_scale(variant, maker)) return CLV_OK;
  void *data;
  size_t count;
  CLV__TRY(clv__cpu_known(variant, binary->inputs[k], &data, error));
  if (data == NULL || !clv__tensor_count(&variant->values[binary->inputs[k]].type, &count)) return CLV_OK;
  const int64_t step = count == 1 ? 0 : 1;
  float *turned = NULL;
  static const float minus_one = -1.0f;
  *done = true;
  if (algorithm == CLV__DNN_SUB || algorithm == CLV__DNN_DIV) {
    CLV__TRY(allocate_filled(variant, &turned, (int64_t)count, 0.0f, error));
    for (size_t i = 0; i < count; ++i) {
      const float x = ((const float *)data)[i];
      turned[i] = algorithm == CLV__DNN_DIV ? 1.0f / x : -x;
    }
  }
  if (algorithm == CLV__DNN_MUL) return compose(variant, maker, data, NULL, step, error);
  if (algorithm == CLV__DNN_DIV) return compose(variant, maker, turned, NULL, step, error);
  if (algorithm == CLV__DNN_ADD) return compose(variant, maker, NULL, data, step, error);
  if (k == 1) return compose(variant, maker, NULL, turned, step, error);
  CLV__TRY(compose(variant, maker, &minus_one, NULL, 0, error)); /* the node computes c - x */
  return compose(variant, maker, NULL, data, step, error);
}

static clv_status fold_into(clv__cpu_variant *variant, clv__cpu_variant_node *maker, clv_error *error) {
  for (;;) {
    clv__cpu_variant_node *reader = clv__cpu_only_reader(variant, maker->outputs[0]);
    bool done = false;
    if (reader == NULL) return CLV_OK;
    if (reader->kind == CLV__CPU_AFFINE && reader->inputs[0] == maker->outputs[0] && reader->scale != NULL &&
        may_scale(variant, maker) && (maker->kind != CLV__CPU_MATRIX || variant->values[maker->outputs[0]].type.rank == 2)) {
      CLV__TRY(compose(variant, maker, reader->scale, reader->bias, 1, error));
      done = true;
    } else if (reader->kind == CLV__CPU_BINARY) {
      CLV__TRY(compose_binary(variant, maker, reader, &done, error));
    }
    if (!done) return CLV_OK;
    maker->outputs[0] = reader->outputs[0];
    variant->values[maker->outputs[0]].producer = (uint32_t)(maker - variant->nodes);
    reader->dead = true;
  }
}

clv_status clv__cpu_pass_fold(clv__cpu_variant *variant, clv_error *error) {
  for (uint32_t i = 0; i < variant->node_count; ++i) {
    clv__cpu_variant_node *node = &variant->nodes[i];
    if (node->dead) continue;
    if (node->kind == CLV__CPU_AFFINE) CLV__TRY(affine_of_batch_norm(variant, node, error));
    if (node->kind == CLV__CPU_CONVOLUTION || node->kind == CLV__CPU_MATRIX) CLV__TRY(copy_bias(variant, node, error));
  }
  for (uint32_t i = 0; i < variant->node_count && variant->fuse; ++i) {
    clv__cpu_variant_node *node = &variant->nodes[i];
    if (node->dead) continue;
    if (node->kind == CLV__CPU_CONVOLUTION || node->kind == CLV__CPU_MATRIX || node->kind == CLV__CPU_AFFINE) {
      CLV__TRY(fold_into(variant, node, error));
    }
  }
  return CLV_OK;
}
