/* Maps ONNX's activations to oneDNN's. Softplus is excluded: for inputs below -9, oneDNN 2.6 is wrong in the second digit. Exp is
 * excluded because it turns a NaN into infinity. Log is excluded because its results near 1 are off by 1e-6, and are -88 for all
 * denormals. */
#include <float.h>

#include "backends/cpu/passes/recognise.h"

/* Reads a bound of Clip from its attribute (before opset 11) or its constant scalar input. Returns false if the bound is unknown.
 */
static bool clip_bound(clv__cpu_variant *variant, const clv__cpu_variant_node *node, uint32_t input, const char *attribute,
                       float fallback, float *bound) {
  if (node->source->opset < 11) {
    *bound = clv__attribute_float(node->source->attributes, attribute, fallback);
    return true;
  }
  const clv__cpu_variant_value *value = clv__cpu_input(variant, node, input);
  *bound = fallback;
  if (value == NULL) return true;
  if (!value->is_constant || value->type.data == NULL || !clv__cpu_is_f32(&value->type)) return false;
  memcpy(bound, value->type.data, sizeof *bound);
  return true;
}

bool clv__cpu_unary_of(clv__cpu_variant *variant, const clv__cpu_variant_node *node, clv__cpu_post *post) {
  static const struct {
    const char *op;
    clv__dnn_unary algorithm;
  } plain[] = {{"Relu", CLV__DNN_RELU}, {"Sigmoid", CLV__DNN_SIGMOID}, {"Tanh", CLV__DNN_TANH}, {"HardSwish", CLV__DNN_HARDSWISH},
               {"Mish", CLV__DNN_MISH}, {"Abs", CLV__DNN_ABS},         {"Sqrt", CLV__DNN_SQRT}};
  const char *op = node->source->op;
  const clv__attributes attributes = node->source->attributes;
  memset(post, 0, sizeof *post);
  post->kind = CLV__CPU_POST_UNARY;
  for (size_t i = 0; i < sizeof plain / sizeof plain[0]; ++i) {
    if (strcmp(op, plain[i].op) != 0) continue;
    post->algorithm = (int)plain[i].algorithm;
    return true;
  }
  if (strcmp(op, "LeakyRelu") == 0) {
    post->algorithm = CLV__DNN_RELU;
    post->alpha = clv__attribute_float(attributes, "alpha", 0.01f);
    return true;
  }
  if (strcmp(op, "Elu") == 0) {
    post->algorithm = CLV__DNN_ELU;
    post->alpha = clv__attribute_float(attributes, "alpha", 1.0f);
    return true;
  }
  if (strcmp(op, "Gelu") == 0) {
    post->algorithm = clv__attribute_is(attributes, "approximate", "tanh", false) ? CLV__DNN_GELU_TANH : CLV__DNN_GELU_ERF;
    return true;
  }
  if (strcmp(op, "Clip") == 0) {
    post->algorithm = CLV__DNN_CLIP;
    return clip_bound(variant, node, 1, "min", -FLT_MAX, &post->alpha) &&
           clip_bound(variant, node, 2, "max", FLT_MAX, &post->beta) && post->alpha <= post->beta;
  }
  return false;
}
