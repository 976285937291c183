/* Classifies each node for the later passes. A node that no rule accepts stays a portable kernel. There is one rule per operator.
 * A rule accepts only what the lowering of its kind supports. */
#include "recognise.h"
#include "variant.h"

typedef bool (*rule_fn)(clv__cpu_variant *variant, clv__cpu_variant_node *node);

static bool read_beyond_first(const clv__cpu_variant *variant, const clv__cpu_variant_node *node) {
  for (uint32_t i = 1; i < node->output_count; ++i) {
    if (node->outputs[i] != CLV__CPU_NONE && variant->values[node->outputs[i]].readers > 0) return true;
  }
  return false;
}

static bool input_is_f32(clv__cpu_variant *variant, const clv__cpu_variant_node *node, uint32_t index) {
  const clv__cpu_variant_value *value = clv__cpu_input(variant, node, index);
  return value != NULL && clv__cpu_is_f32(&value->type);
}

static bool absent_or_constant(clv__cpu_variant *variant, const clv__cpu_variant_node *node, uint32_t index) {
  const clv__cpu_variant_value *value = clv__cpu_input(variant, node, index);
  return value == NULL || value->is_constant;
}

static bool same_bytes(clv__cpu_variant *variant, const clv__cpu_variant_node *node) {
  const clv_tensor *from = &variant->values[node->inputs[0]].type, *to = &clv__cpu_output(variant, node)->type;
  size_t a, b;
  const clv_dtype before = variant->values[node->inputs[0]].outer, after = clv__cpu_output(variant, node)->outer;
  if (after != CLV_DTYPE_NONE && after != before)
    return false; /* in the model this is a Cast to another dtype: it rounds, although both values are stored as f32 */
  return from->dtype == to->dtype && clv__tensor_size_bytes(from, &a) && clv__tensor_size_bytes(to, &b) && a == b;
}

static bool is_view(clv__cpu_variant *variant, clv__cpu_variant_node *node) {
  node->kind = CLV__CPU_VIEW;
  return same_bytes(variant, node);
}

static bool is_view_dropout(clv__cpu_variant *variant, clv__cpu_variant_node *node) {
  const clv__cpu_variant_value *training = clv__cpu_input(variant, node, 2);
  if (training != NULL && (training->type.data == NULL || *(const bool *)training->type.data)) return false;
  return !read_beyond_first(variant, node) && is_view(variant, node);
}

static bool is_transpose(clv__cpu_variant *variant, clv__cpu_variant_node *node) {
  const clv_tensor *from = &variant->values[node->inputs[0]].type;
  size_t count;
  const int64_t *perm = clv__attribute_ints(node->source->attributes, "perm", &count);
  int64_t last = -1;
  bool ordered = true; /* the axes of more than one element keep their order */
  for (int32_t i = 0; i < from->rank; ++i) {
    const int64_t axis = perm != NULL ? perm[i] : from->rank - 1 - i;
    if (from->dims[axis] == 1) continue;
    if (axis < last) ordered = false;
    last = axis;
  }
  if (ordered) return is_view(variant, node);
  node->kind = CLV__CPU_TRANSPOSE;
  return variant->onednn && clv__cpu_is_f32(from);
}

static bool is_convolution(clv__cpu_variant *variant, clv__cpu_variant_node *node) {
  const clv__cpu_variant_value *weights = clv__cpu_input(variant, node, 1);
  node->kind = CLV__CPU_CONVOLUTION;
  const int32_t rank = variant->values[node->inputs[0]].type.rank;
  return input_is_f32(variant, node, 0) && rank >= 3 && rank <= 5 && weights != NULL && clv__cpu_is_f32(&weights->type) &&
         weights->is_constant && node->inputs[1] < variant->program->value_count &&
         variant->program->values[node->inputs[1]].is_constant && absent_or_constant(variant, node, 2) &&
         clv__cpu_is_f32(&clv__cpu_output(variant, node)->type);
}

static bool is_deconvolution(clv__cpu_variant *variant, clv__cpu_variant_node *node) {
  if (!is_convolution(variant, node)) return false;
  node->kind = CLV__CPU_DECONVOLUTION;
  return true;
}

static bool is_matmul(clv__cpu_variant *variant, clv__cpu_variant_node *node) {
  const clv_tensor *a = &variant->values[node->inputs[0]].type, *b = &variant->values[node->inputs[1]].type;
  node->kind = CLV__CPU_MATRIX;
  if (!clv__cpu_is_f32(a) || !clv__cpu_is_f32(b) || !clv__cpu_is_f32(&clv__cpu_output(variant, node)->type)) return false;
  if (a->rank < 2 || b->rank < 2) return false;
  if (b->rank == 2) return true;
  return a->rank == b->rank; /* oneDNN requires equal ranks, and broadcasts batch axes of extent 1 */
}

static bool is_gemm(clv__cpu_variant *variant, clv__cpu_variant_node *node) {
  node->kind = CLV__CPU_MATRIX;
  const clv__cpu_variant_value *shift = clv__cpu_input(variant, node, 2);
  const clv_tensor *out = &clv__cpu_output(variant, node)->type;
  if (!input_is_f32(variant, node, 0) || !input_is_f32(variant, node, 1) || !clv__cpu_is_f32(out)) return false;
  const bool packed = node->inputs[1] < variant->program->value_count && variant->program->values[node->inputs[1]].is_constant;
  if (!packed && clv__attribute_float(node->source->attributes, "alpha", 1.0f) != 1.0f) return false;
  if (shift == NULL) return true;
  if (!shift->is_constant) return false;
  const int64_t last = shift->type.rank > 0 ? shift->type.dims[shift->type.rank - 1] : 1;
  const int64_t others = clv__dims_product(&shift->type, 0, shift->type.rank > 0 ? shift->type.rank - 1 : 0);
  return others == 1 && (last == 1 || last == out->dims[1]);
}

static bool is_batch_norm(clv__cpu_variant *variant, clv__cpu_variant_node *node) {
  const clv__attributes attributes = node->source->attributes;
  if (clv__attribute_int(attributes, "training_mode", 0) != 0 || clv__attribute_int(attributes, "spatial", 1) != 1) return false;
  const int32_t rank = variant->values[node->inputs[0]].type.rank;
  if (!input_is_f32(variant, node, 0) || rank < 2 || rank > 5 || node->input_count < 5) return false;
  for (uint32_t i = 1; i < 5; ++i) {
    if (!input_is_f32(variant, node, i) || !absent_or_constant(variant, node, i)) return false;
  }
  node->kind = CLV__CPU_AFFINE;
  return !read_beyond_first(variant, node);
}

static bool is_pool(clv__cpu_variant *variant, clv__cpu_variant_node *node) {
  const int32_t rank = variant->values[node->inputs[0]].type.rank;
  node->kind = CLV__CPU_POOL;
  return input_is_f32(variant, node, 0) && rank >= 3 && rank <= 5 && clv__cpu_is_f32(&clv__cpu_output(variant, node)->type) &&
         !read_beyond_first(variant, node);
}

static bool is_unary(clv__cpu_variant *variant, clv__cpu_variant_node *node) {
  node->kind = CLV__CPU_UNARY;
  node->post_count = 1;
  return input_is_f32(variant, node, 0) && clv__cpu_unary_of(variant, node, &node->posts[0]);
}

static bool is_binary(clv__cpu_variant *variant, clv__cpu_variant_node *node) {
  static const struct {
    const char *op;
    clv__dnn_binary algorithm;
  } table[] = {{"Add", CLV__DNN_ADD}, {"Sub", CLV__DNN_SUB}, {"Mul", CLV__DNN_MUL}, {"Div", CLV__DNN_DIV}, {"Sum", CLV__DNN_ADD}};
  node->kind = CLV__CPU_BINARY;
  if (node->input_count != 2 || !input_is_f32(variant, node, 0) || !input_is_f32(variant, node, 1)) return false;
  for (size_t i = 0; i < sizeof table / sizeof table[0]; ++i) {
    if (strcmp(table[i].op, node->source->op) == 0) node->posts[0].algorithm = (int)table[i].algorithm;
  }
  node->post_count = 1;
  /* Puts the broadcast operand second, as oneDNN requires. */
  const bool commutes = node->posts[0].algorithm != CLV__DNN_SUB && node->posts[0].algorithm != CLV__DNN_DIV;
  if (commutes && !clv__tensor_same_type(&variant->values[node->inputs[0]].type, &clv__cpu_output(variant, node)->type)) {
    const uint32_t first = node->inputs[0];
    node->inputs[0] = node->inputs[1];
    node->inputs[1] = first;
  }
  return true;
}

static bool is_concat(clv__cpu_variant *variant, clv__cpu_variant_node *node) {
  node->kind = CLV__CPU_CONCAT;
  for (uint32_t i = 0; i < node->input_count; ++i) {
    if (!input_is_f32(variant, node, i)) return false;
  }
  return node->input_count > 1;
}

static bool is_lrn(clv__cpu_variant *variant, clv__cpu_variant_node *node) {
  node->kind = CLV__CPU_LRN;
  return input_is_f32(variant, node, 0) && variant->values[node->inputs[0]].type.rank == 4 &&
         clv__attribute_int(node->source->attributes, "size", 0) % 2 == 1;
}

static bool is_softmax(clv__cpu_variant *variant, clv__cpu_variant_node *node) {
  node->kind = CLV__CPU_SOFTMAX;
  return input_is_f32(variant, node, 0) && variant->values[node->inputs[0]].type.rank > 0;
}

static bool is_layer_norm(clv__cpu_variant *variant, clv__cpu_variant_node *node) {
  const clv_tensor *x = &variant->values[node->inputs[0]].type;
  const int64_t axis = clv__attribute_int(node->source->attributes, "axis", -1);
  node->kind = CLV__CPU_LAYER_NORM;
  return input_is_f32(variant, node, 0) && x->rank >= 2 && (axis == -1 || axis == x->rank - 1) &&
         input_is_f32(variant, node, 1) && absent_or_constant(variant, node, 1) && absent_or_constant(variant, node, 2) &&
         !read_beyond_first(variant, node) &&
         clv__dims_product(&variant->values[node->inputs[1]].type, 0, variant->values[node->inputs[1]].type.rank) ==
             x->dims[x->rank - 1];
}

static bool is_instance_norm(clv__cpu_variant *variant, clv__cpu_variant_node *node) {
  const clv_tensor *x = &variant->values[node->inputs[0]].type;
  node->kind = CLV__CPU_INSTANCE_NORM;
  for (uint32_t i = 0; i < 3; ++i) {
    if (!input_is_f32(variant, node, i) || (i > 0 && !absent_or_constant(variant, node, i))) return false;
  }
  return x->rank >= 3 && x->rank <= 5 && x->dims[0] == 1;
}

static const struct {
  const char *op;
  bool always; /* the rule applies even without oneDNN */
  rule_fn rule;
} rules[] = {
    {"Reshape", true, is_view},
    {"Flatten", true, is_view},
    {"Squeeze", true, is_view},
    {"Unsqueeze", true, is_view},
    {"Identity", true, is_view},
    {"Cast", true, is_view},
    {"Expand", true, is_view},
    {"Dropout", true, is_view_dropout},
    {"Transpose", true, is_transpose},
    {"Conv", false, is_convolution},
    {"ConvTranspose", false, is_deconvolution},
    {"MatMul", false, is_matmul},
    {"Gemm", false, is_gemm},
    {"BatchNormalization", false, is_batch_norm},
    {"MaxPool", false, is_pool},
    {"AveragePool", false, is_pool},
    {"GlobalAveragePool", false, is_pool},
    {"GlobalMaxPool", false, is_pool},
    {"Add", false, is_binary},
    {"Sub", false, is_binary},
    {"Mul", false, is_binary},
    {"Div", false, is_binary},
    {"Sum", false, is_binary},
    {"Concat", false, is_concat},
    {"LRN", false, is_lrn},
    {"Softmax", false, is_softmax},
    {"LogSoftmax", false, is_softmax},
    {"LayerNormalization", false, is_layer_norm},
    {"InstanceNormalization", false, is_instance_norm},
    {"Resize", false, clv__cpu_is_resize},
    {"Relu", false, is_unary},
    {"LeakyRelu", false, is_unary},
    {"Elu", false, is_unary},
    {"Sigmoid", false, is_unary},
    {"Tanh", false, is_unary},
    {"Gelu", false, is_unary},
    {"Clip", false, is_unary},
    {"HardSwish", false, is_unary},
    {"Mish", false, is_unary},
    {"Abs", false, is_unary},
    {"Sqrt", false, is_unary},
};

void clv__cpu_pass_recognise(clv__cpu_variant *variant) {
  for (uint32_t i = 0; i < variant->node_count; ++i) {
    clv__cpu_variant_node *node = &variant->nodes[i];
    if (node->dead || node->source->domain[0] != 0 || node->input_count == 0 || node->inputs[0] == CLV__CPU_NONE ||
        node->output_count == 0 || node->outputs[0] == CLV__CPU_NONE) {
      continue;
    }
    for (size_t r = 0; r < sizeof rules / sizeof rules[0]; ++r) {
      if (strcmp(rules[r].op, node->source->op) != 0) continue;
      if ((!rules[r].always && !variant->onednn) || !rules[r].rule(variant, node)) {
        node->kind = CLV__CPU_KERNEL;
        node->post_count = 0;
      }
      break;
    }
  }
}
