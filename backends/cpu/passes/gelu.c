/* Matches GELU that the model expresses in several nodes: x * 0.5 * (1 + erf(x / sqrt 2)), with the factors in any order. The
 * match becomes one node. Nodes whose results are no longer read become dead. */
#include <math.h>

#include "variant.h"

#define MAX_FACTORS 3

static clv__cpu_variant_node *maker_of(clv__cpu_variant *variant, uint32_t value) {
  const uint32_t producer = variant->values[value].producer;
  return producer != CLV__CPU_NONE && !variant->nodes[producer].dead ? &variant->nodes[producer] : NULL;
}

static bool is_binary(const clv__cpu_variant_node *node, clv__dnn_binary algorithm) {
  return node != NULL && node->kind == CLV__CPU_BINARY && node->post_count == 1 && node->posts[0].algorithm == (int)algorithm;
}

/* Whether `value` is known to be one number equal to `wanted`, within the precision of its dtype. */
static bool is_number(const clv__cpu_variant *variant, uint32_t value, float wanted) {
  const clv__cpu_variant_value *known = &variant->values[value];
  size_t count;
  float number;
  if (!known->is_constant || known->type.data == NULL || !clv__cpu_is_f32(&known->type)) return false;
  if (!clv__tensor_count(&known->type, &count) || count != 1) return false;
  memcpy(&number, known->type.data, sizeof number);
  const float unit = known->outer == CLV_BF16 ? 0x1p-8f : known->outer == CLV_F16 ? 0x1p-11f : 1e-6f;
  return fabsf(number - wanted) <= unit * (known->outer != CLV_DTYPE_NONE ? wanted : 1.0f);
}

/* The x if `value` is 1 + erf(x / sqrt 2); otherwise CLV__CPU_NONE. */
static uint32_t erf_source(clv__cpu_variant *variant, uint32_t value) {
  const clv__cpu_variant_node *add = maker_of(variant, value);
  if (!is_binary(add, CLV__DNN_ADD)) return CLV__CPU_NONE;
  for (uint32_t k = 0; k < 2; ++k) {
    if (!is_number(variant, add->inputs[k], 1.0f)) continue;
    const clv__cpu_variant_node *erf = maker_of(variant, add->inputs[1 - k]);
    if (erf == NULL || erf->source->domain[0] != 0 || strcmp(erf->source->op, "Erf") != 0) return CLV__CPU_NONE;
    const clv__cpu_variant_node *scale = maker_of(variant, erf->inputs[0]);
    if (is_binary(scale, CLV__DNN_DIV)) {
      return is_number(variant, scale->inputs[1], 1.41421356f) ? scale->inputs[0] : CLV__CPU_NONE;
    }
    for (uint32_t i = 0; i < 2 && is_binary(scale, CLV__DNN_MUL); ++i) {
      if (is_number(variant, scale->inputs[i], 0.70710678f)) return scale->inputs[1 - i];
    }
  }
  return CLV__CPU_NONE;
}

/* Finds the three factors if one operand of `product` is itself a product. Returns 3, or 0 if there are not three factors. */
static uint32_t factors_of(clv__cpu_variant *variant, const clv__cpu_variant_node *product, uint32_t factors[MAX_FACTORS]) {
  uint32_t count = 0;
  for (uint32_t k = 0; k < 2; ++k) {
    const clv__cpu_variant_node *inner = maker_of(variant, product->inputs[k]);
    const uint32_t *found = &product->inputs[k];
    uint32_t taken = 1;
    if (is_binary(inner, CLV__DNN_MUL) && clv__cpu_only_reader(variant, product->inputs[k]) == product) {
      found = inner->inputs;
      taken = 2;
    }
    if (count + taken > MAX_FACTORS) return 0;
    for (uint32_t i = 0; i < taken; ++i) factors[count++] = found[i];
  }
  return count == MAX_FACTORS ? count : 0;
}

void clv__cpu_pass_gelu(clv__cpu_variant *variant) {
  for (uint32_t i = 0; i < variant->node_count; ++i) {
    clv__cpu_variant_node *node = &variant->nodes[i];
    uint32_t factors[MAX_FACTORS];
    if (node->dead || !is_binary(node, CLV__DNN_MUL) || factors_of(variant, node, factors) == 0) continue;
    for (uint32_t e = 0; e < MAX_FACTORS; ++e) {
      const uint32_t x = erf_source(variant, factors[e]), a = factors[(e + 1) % 3], b = factors[(e + 2) % 3];
      if (x == CLV__CPU_NONE || !((a == x && is_number(variant, b, 0.5f)) || (b == x && is_number(variant, a, 0.5f)))) continue;
      if (!clv__tensor_same_type(&variant->values[x].type, &variant->values[node->outputs[0]].type)) continue;
      node->kind = CLV__CPU_UNARY;
      node->composed = true;
      node->inputs[0] = x;
      node->input_count = 1;
      node->posts[0] = (clv__cpu_post){.kind = CLV__CPU_POST_UNARY, .algorithm = CLV__DNN_GELU_ERF};
      break;
    }
  }
}
