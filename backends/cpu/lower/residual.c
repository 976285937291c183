/* A node's post that adds another value (a residual): finds it, translates it for oneDNN, and decides whether the sum may
 * overwrite the memory of that value. */
#include "residual.h"

uint32_t clv__cpu_residual_post(const clv__cpu_variant_node *node) {
  for (uint32_t i = 0; i < node->post_count; ++i) {
    if (node->posts[i].kind == CLV__CPU_POST_ADD) return i;
  }
  return CLV__CPU_NONE;
}

uint32_t clv__cpu_posts(const clv__cpu_variant_node *node, const clv__dnn_layout *layout,
                        clv__dnn_post posts[CLV__CPU_MAX_POSTS]) {
  memset(posts, 0, CLV__CPU_MAX_POSTS * sizeof *posts);
  for (uint32_t i = 0; i < node->post_count; ++i) {
    const clv__cpu_post *post = &node->posts[i];
    if (post->kind == CLV__CPU_POST_UNARY) {
      posts[i].kind = CLV__DNN_POST_UNARY;
      posts[i].algorithm = post->algorithm;
      posts[i].alpha = post->alpha;
      posts[i].beta = post->beta;
    } else if (layout == NULL) {
      posts[i].kind = CLV__DNN_POST_SUM;
    } else {
      posts[i].kind = CLV__DNN_POST_BINARY;
      posts[i].algorithm = CLV__DNN_ADD;
      posts[i].layout = layout;
    }
  }
  return node->post_count;
}

bool clv__cpu_may_overwrite(const clv__cpu_variant *variant, const clv__cpu_variant_node *node, uint32_t value, uint32_t slot) {
  const uint32_t here = (uint32_t)(node - variant->nodes), root = variant->slots[slot].root;
  if (variant->slots[root].kind != CLV__CPU_SLOT_ARENA) return false;
  for (uint32_t i = 0; i < node->input_count; ++i) {
    if (node->inputs[i] == CLV__CPU_NONE) continue;
    const clv__cpu_variant_value *input = &variant->values[node->inputs[i]];
    for (uint32_t f = 0; f < input->form_count; ++f) {
      if (variant->slots[input->forms[f].slot].root == root) return false;
    }
  }
  for (uint32_t at = value;;) { /* the value, and everything it is a view of */
    const clv__cpu_variant_value *read = &variant->values[at];
    if (read->last_read != CLV__CPU_NONE && read->last_read > here) return false;
    if (read->producer == CLV__CPU_NONE || variant->nodes[read->producer].kind != CLV__CPU_VIEW) return true;
    at = variant->nodes[read->producer].inputs[0];
  }
}

clv_status clv__cpu_private_copy(clv__cpu_variant *variant, const clv__cpu_variant_node *node, uint32_t value,
                                 const clv__dnn_layout *layout, uint32_t *slot, clv_error *error) {
  const clv_tensor *type = &variant->values[value].type;
  const clv__dnn_layout *to =
      layout != NULL ? layout : clv__dnn_layout_dense(&variant->arena, type->dtype, type->rank, type->dims);
  uint32_t from;
  const clv__dnn_layout *from_layout = clv__cpu_form_layout(variant, value);
  if (to == NULL || from_layout == NULL) return clv__error_memory(error, 0);
  CLV__TRY(clv__cpu_form_get(variant, value, from_layout, &from, error));
  clv__dnn_primitive *primitive;
  CLV__TRY(clv__dnn_reorder_create(variant->device->dnn, from_layout, to, &variant->arena, &primitive, error));
  clv__cpu_step *step;
  CLV__TRY(clv__cpu_step_primitive(variant, node, "copy", primitive, 2, &step, error));
  clv__cpu_step_input(step, CLV__DNN_SOURCE, from, from_layout);
  CLV__TRY(clv__cpu_slot_scratch(variant, clv__dnn_layout_size_bytes(to), slot, error));
  clv__cpu_step_output(step, CLV__DNN_DESTINATION, *slot, to);
  return CLV_OK;
}
