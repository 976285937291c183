/* Counts the readers of each value and finds its producer and last reader. Runs again after each pass that changes which nodes
 * read a value. */
#include "variant.h"

#define LEAVES (CLV__CPU_NONE - 1)

static void drop_dead(clv__cpu_variant *variant) {
  for (uint32_t i = 0; i < variant->value_count; ++i) variant->values[i].readers = variant->values[i].output != CLV__CPU_NONE;
  for (uint32_t i = variant->node_count; i-- > 0;) {
    clv__cpu_variant_node *node = &variant->nodes[i];
    if (node->dead) continue;
    bool wanted = false;
    for (uint32_t o = 0; o < node->output_count; ++o) {
      if (node->outputs[o] != CLV__CPU_NONE && variant->values[node->outputs[o]].readers > 0) wanted = true;
    }
    node->dead = !wanted;
    if (node->dead) continue;
    for (uint32_t k = 0; k < node->input_count; ++k) {
      if (node->inputs[k] == CLV__CPU_NONE) continue;
      variant->values[node->inputs[k]].readers++;
      variant->values[node->inputs[k]].reader = i;
    }
    for (uint32_t k = 0; k < node->post_count; ++k) {
      if (node->posts[k].kind != CLV__CPU_POST_ADD) continue;
      variant->values[node->posts[k].value].readers++;
      variant->values[node->posts[k].value].reader = CLV__CPU_NONE;
    }
  }
}

static void note_read(clv__cpu_variant *variant, uint32_t value, uint32_t node) {
  clv__cpu_variant_value *read = &variant->values[value];
  if (read->last_read == CLV__CPU_NONE || (read->last_read != LEAVES && read->last_read < node)) read->last_read = node;
}

void clv__cpu_pass_count(clv__cpu_variant *variant) {
  drop_dead(variant);
  for (uint32_t i = 0; i < variant->value_count; ++i) {
    variant->values[i].producer = CLV__CPU_NONE;
    variant->values[i].last_read = variant->values[i].output != CLV__CPU_NONE ? LEAVES : CLV__CPU_NONE;
  }
  for (uint32_t i = variant->node_count; i-- > 0;) {
    const clv__cpu_variant_node *node = &variant->nodes[i];
    if (node->dead) continue;
    for (uint32_t o = 0; o < node->output_count; ++o) {
      if (node->outputs[o] != CLV__CPU_NONE) variant->values[node->outputs[o]].producer = i;
    }
    for (uint32_t k = 0; k < node->input_count; ++k) {
      if (node->inputs[k] != CLV__CPU_NONE) note_read(variant, node->inputs[k], i);
    }
    for (uint32_t k = 0; k < node->post_count; ++k) {
      if (node->posts[k].kind == CLV__CPU_POST_ADD) note_read(variant, node->posts[k].value, i);
    }
    if (node->kind != CLV__CPU_VIEW) continue;
    const uint32_t last = variant->values[node->outputs[0]].last_read; /* later readers of the view also read its source */
    if (last == LEAVES) variant->values[node->inputs[0]].last_read = LEAVES;
    if (last != CLV__CPU_NONE && last != LEAVES) note_read(variant, node->inputs[0], last);
  }
}

clv_status clv__cpu_known(clv__cpu_variant *variant, uint32_t value, void **data, clv_error *error) {
  *data = NULL;
  if (value == CLV__CPU_NONE || !variant->values[value].is_constant) return CLV_OK;
  const bool is_folded = !variant->program->values[value].is_constant; /* computed from constants by this variant */
  if (variant->values[value].outer != CLV_DTYPE_NONE && !is_folded && variant->values[value].type.data == NULL) {
    return clv__cpu_constant_wide(variant->constants, value, data, error);
  }
  if (is_folded || variant->values[value].outer != CLV_DTYPE_NONE) {
    *data = variant->values[value].type.data;
    return CLV_OK;
  }
  return clv__cpu_constant_raw(variant->constants, value, data, error);
}

bool clv__cpu_is_f32(const clv_tensor *type) {
  size_t count;
  return type->dtype == CLV_F32 && clv__tensor_is_static(type) && clv__tensor_count(type, &count) && count > 0;
}

clv__cpu_variant_node *clv__cpu_only_reader(clv__cpu_variant *variant, uint32_t value) {
  const clv__cpu_variant_value *read = &variant->values[value];
  if (read->readers != 1 || read->output != CLV__CPU_NONE || read->reader == CLV__CPU_NONE) return NULL;
  return &variant->nodes[read->reader];
}
