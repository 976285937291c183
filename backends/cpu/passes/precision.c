/* Decides where bf16 replaces f32: in the factors of products (the model's own bf16, or f32 if the user requested bf16), and in
 * values between them. All values of a bf16 model are computed in bf16. A value of an f32 model is computed in bf16 only if each
 * of its readers is a product or passes it on to products alone. Values that leave the partition, inputs of softmax and norms,
 * and values that a post adds to an f32 result stay f32. */
#include "variant.h"

static bool is_product(const clv__cpu_variant_node *node) {
  return node->kind == CLV__CPU_CONVOLUTION || node->kind == CLV__CPU_DECONVOLUTION || node->kind == CLV__CPU_MATRIX;
}

/* Whether the input of a node may be rounded to bf16 if its output is. True for nodes that move elements, or compute each element
 * from one or a few elements of the input. */
static bool passes_on(clv__cpu_kind kind) {
  switch (kind) {
    case CLV__CPU_VIEW:
    case CLV__CPU_AFFINE:
    case CLV__CPU_POOL:
    case CLV__CPU_UNARY:
    case CLV__CPU_BINARY:
    case CLV__CPU_CONCAT:
    case CLV__CPU_TRANSPOSE:
    case CLV__CPU_SHUFFLE:
    case CLV__CPU_RESIZE:
      return true;
    default:
      return false;
  }
}

static clv_dtype product_of(const clv__cpu_variant *variant, const clv__cpu_variant_node *node) {
  if (variant->program->precision == CLV_BF16) return CLV_BF16;
  return variant->values[node->inputs[0]].outer == CLV_BF16 && variant->values[node->inputs[1]].outer == CLV_BF16 ? CLV_BF16
                                                                                                                  : CLV_F32;
}

/* Decides for one node. Sets node->product. Sets `made`, which is CLV_BF16 before, to CLV_F32 for those inputs, outputs and
 * addends of the node that must stay f32. */
static void decide(clv__cpu_variant *variant, clv__cpu_variant_node *node) {
  const bool asked = variant->program->precision == CLV_BF16;
  if (is_product(node)) node->product = product_of(variant, node);
  const bool can = is_product(node) ? node->product == CLV_BF16 : passes_on(node->kind) || node->kind == CLV__CPU_SOFTMAX;
  for (uint32_t i = 0; i < node->output_count; ++i) {
    if (node->outputs[i] == CLV__CPU_NONE) continue;
    clv__cpu_variant_value *value = &variant->values[node->outputs[i]];
    if (value->outer == CLV_BF16) continue;
    if (!asked || !can || value->output != CLV__CPU_NONE) value->made = CLV_F32;
  }
  const bool makes =
      node->output_count > 0 && node->outputs[0] != CLV__CPU_NONE && variant->values[node->outputs[0]].made == CLV_BF16;
  const bool takes = is_product(node) ? node->product == CLV_BF16 : passes_on(node->kind) && makes;
  for (uint32_t i = 0; i < node->input_count && !takes; ++i) {
    if (node->inputs[i] == CLV__CPU_NONE) continue;
    clv__cpu_variant_value *value = &variant->values[node->inputs[i]];
    if (value->outer != CLV_BF16) value->made = CLV_F32;
  }
  for (uint32_t i = 0; i < node->post_count; ++i) {
    if (node->posts[i].kind != CLV__CPU_POST_ADD || makes) continue;
    clv__cpu_variant_value *value = &variant->values[node->posts[i].value];
    if (value->outer != CLV_BF16) value->made = CLV_F32;
  }
}

void clv__cpu_pass_precision(clv__cpu_variant *variant) {
  const bool is_there = variant->onednn && clv__dnn_has_bf16();
  for (uint32_t i = 0; i < variant->value_count; ++i) variant->values[i].made = is_there ? CLV_BF16 : CLV_F32;
  /* Backwards, so that the readers of a value are visited before the node that computes it. */
  for (uint32_t i = variant->node_count; i-- > 0;) {
    clv__cpu_variant_node *node = &variant->nodes[i];
    node->product = CLV_F32;
    if (!node->dead && is_there) decide(variant, node);
  }
}
