/* Fuses activations and sums into the node that computes their input, if no other node reads that input. Fuses the three nodes
 * of a channel shuffle into one. */
#include "variant.h"

/* Moves `maker` to the position of `reader` and gives it the output of `reader`. `reader` and the value between them disappear.
 */
static clv__cpu_variant_node *absorb(clv__cpu_variant *variant, clv__cpu_variant_node *maker, clv__cpu_variant_node *reader) {
  const uint32_t from = (uint32_t)(maker - variant->nodes), to = (uint32_t)(reader - variant->nodes);
  uint32_t *outputs = reader->outputs;
  *reader = *maker;
  reader->outputs = outputs;
  reader->output_count = 1;
  maker->dead = true;
  variant->values[outputs[0]].producer = to;
  for (uint32_t i = 0; i < reader->input_count; ++i) {
    if (reader->inputs[i] != CLV__CPU_NONE && variant->values[reader->inputs[i]].reader == from) {
      variant->values[reader->inputs[i]].reader = to;
    }
  }
  return reader;
}

/* Whether `maker` has a post with the algorithm of `unary` but other parameters. oneDNN keeps only one set of parameters per
 * algorithm, so the second post would use the parameters of the first. */
static bool disagrees(const clv__cpu_variant_node *maker, const clv__cpu_post *unary) {
  for (uint32_t i = 0; i < maker->post_count; ++i) {
    const clv__cpu_post *post = &maker->posts[i];
    if (post->kind != CLV__CPU_POST_UNARY || post->algorithm != unary->algorithm) continue;
    if (maker->kind == CLV__CPU_BINARY && i == 0) continue; /* post 0 selects the operation */
    if (post->alpha != unary->alpha || post->beta != unary->beta) return true;
  }
  return false;
}

static bool can_take_unary(const clv__cpu_variant *variant, const clv__cpu_variant_node *maker, const clv__cpu_post *unary) {
  if (maker->post_count == CLV__CPU_MAX_POSTS || disagrees(maker, unary)) return false;
  switch (maker->kind) {
    case CLV__CPU_CONVOLUTION:
    case CLV__CPU_MATRIX:
      return true;
    case CLV__CPU_AFFINE:
    case CLV__CPU_INSTANCE_NORM:
      return maker->post_count == 0 && unary->algorithm == CLV__DNN_RELU && unary->alpha == 0.0f;
    case CLV__CPU_BINARY:
      /* Not with a broadcast, which oneDNN may not support, and no Relu or Clip: oneDNN's replace a NaN by a bound. */
      if (unary->algorithm == CLV__DNN_CLIP || (unary->algorithm == CLV__DNN_RELU && unary->alpha == 0.0f)) return false;
      return maker->post_count == 1 &&
             clv__tensor_same_type(&variant->values[maker->inputs[0]].type, &variant->values[maker->inputs[1]].type);
    default:
      return false;
  }
}

static bool can_take_sum(const clv__cpu_variant *variant, const clv__cpu_variant_node *maker, const clv__cpu_variant_node *add) {
  if (maker->kind != CLV__CPU_CONVOLUTION && maker->kind != CLV__CPU_MATRIX) return false;
  if (maker->post_count == CLV__CPU_MAX_POSTS || add->post_count != 1 || add->posts[0].algorithm != CLV__DNN_ADD) return false;
  for (uint32_t i = 0; i < maker->post_count; ++i) {
    if (maker->posts[i].kind == CLV__CPU_POST_ADD) return false;
  }
  const clv_tensor *a = &variant->values[add->inputs[0]].type, *b = &variant->values[add->inputs[1]].type;
  return clv__tensor_same_type(a, b) && clv__tensor_same_type(a, &variant->values[add->outputs[0]].type);
}

static void fuse_into(clv__cpu_variant *variant, clv__cpu_variant_node *maker) {
  for (;;) {
    const uint32_t made = maker->outputs[0];
    clv__cpu_variant_node *reader = clv__cpu_only_reader(variant, made);
    if (reader == NULL) return;
    clv__cpu_post post;
    if (reader->kind == CLV__CPU_UNARY && reader->inputs[0] == made && can_take_unary(variant, maker, &reader->posts[0])) {
      post = reader->posts[0];
    } else if (reader->kind == CLV__CPU_BINARY && can_take_sum(variant, maker, reader)) {
      post = (clv__cpu_post){.kind = CLV__CPU_POST_ADD, .value = reader->inputs[reader->inputs[0] == made ? 1 : 0]};
    } else {
      return;
    }
    maker = absorb(variant, maker, reader);
    maker->posts[maker->post_count++] = post;
  }
}

void clv__cpu_pass_fuse(clv__cpu_variant *variant) {
  for (uint32_t i = 0; i < variant->node_count; ++i) {
    clv__cpu_variant_node *node = &variant->nodes[i];
    if (node->dead) continue;
    if (node->kind == CLV__CPU_CONVOLUTION || node->kind == CLV__CPU_MATRIX || node->kind == CLV__CPU_AFFINE ||
        node->kind == CLV__CPU_INSTANCE_NORM || node->kind == CLV__CPU_BINARY) {
      fuse_into(variant, node);
    }
  }
}

/* Fuses the nodes of a channel shuffle: Reshape from [n, c, …] to [n, g, c/g, …], Transpose of axes 1 and 2, Reshape back. */
void clv__cpu_pass_shuffle(clv__cpu_variant *variant) {
  for (uint32_t i = 0; i < variant->node_count; ++i) {
    clv__cpu_variant_node *split = &variant->nodes[i];
    if (split->dead || split->kind != CLV__CPU_VIEW) continue;
    const clv_tensor *from = &variant->values[split->inputs[0]].type, *apart = &variant->values[split->outputs[0]].type;
    if (!clv__cpu_is_f32(from) || from->rank < 3 || apart->rank != from->rank + 1 || apart->dims[0] != from->dims[0] ||
        apart->dims[1] * apart->dims[2] != from->dims[1]) {
      continue;
    }
    clv__cpu_variant_node *turn = clv__cpu_only_reader(variant, split->outputs[0]);
    if (turn == NULL || turn->kind != CLV__CPU_TRANSPOSE) continue;
    clv__cpu_variant_node *join = clv__cpu_only_reader(variant, turn->outputs[0]);
    if (join == NULL || join->kind != CLV__CPU_VIEW || !clv__tensor_same_type(from, &variant->values[join->outputs[0]].type))
      continue;
    size_t count;
    const int64_t *perm = clv__attribute_ints(turn->source->attributes, "perm", &count);
    bool swaps = perm != NULL && count == (size_t)apart->rank && perm[0] == 0 && perm[1] == 2 && perm[2] == 1;
    for (int32_t k = 3; swaps && k < apart->rank; ++k) swaps = perm[k] == k;
    for (int32_t k = 2; swaps && k < from->rank; ++k) swaps = from->dims[k] == apart->dims[k + 1];
    if (!swaps) continue;
    split->kind = CLV__CPU_SHUFFLE;
    split->groups = apart->dims[1];
    turn->dead = true;
    (void)absorb(variant, split, join);
  }
}
