/* Fuses elementwise nodes into the node before them, if that node's output has no other use. The kernel of the earlier node
 * applies the elementwise function to its results before it stores them, so the intermediate value is elided. */
#include "variant.h"

typedef struct uses {
  /* Indexed by value: */
  uint32_t *readers;  /* number of operands and graph outputs that read the value */
  uint32_t *reader;   /* a node that reads the value */
  uint32_t *producer; /* the node that computes the value's bytes; NONE: it is an input, a weight or a constant */
} uses;

static bool count_uses(const clv__opencl_variant *variant, clv__arena *arena, uses *u) {
  const clv_executable *e = variant->executable;
  u->readers = clv__arena_allocate_zero(arena, e->value_count, sizeof *u->readers);
  u->reader = clv__arena_allocate_zero(arena, e->value_count, sizeof *u->reader);
  u->producer = clv__arena_allocate_zero(arena, e->value_count, sizeof *u->producer);
  if (u->readers == NULL || u->reader == NULL || u->producer == NULL) return false;
  for (uint32_t v = 0; v < e->value_count; ++v) u->producer[v] = CLV__OPENCL_NONE;
  for (uint32_t n = 0; n < e->node_count; ++n) {
    const clv__opencl_variant_node *node = &variant->nodes[n];
    if (node->is_dead) continue;
    for (uint32_t i = 0; i < node->input_count; ++i) {
      if (node->inputs[i] == CLV_NO_VALUE) continue;
      ++u->readers[node->inputs[i]];
      u->reader[node->inputs[i]] = n;
    }
    for (uint32_t i = 0; i < node->output_count; ++i) {
      if (node->outputs[i] == CLV_NO_VALUE) continue;
      u->producer[node->outputs[i]] = node->op == NULL ? u->producer[node->inputs[0]] : n;
    }
  }
  for (uint32_t o = 0; o < e->output_count; ++o) ++u->readers[e->outputs[o]];
  return true;
}

/* Finds `inner` and `period` such that element `at` of `out` uses element at / inner % period of `operand`, which is broadcast.
 * Returns false if there are no such numbers. */
static bool find_period(const clv_tensor *operand, const clv_tensor *out, int64_t *inner, int64_t *period) {
  int32_t missing = out->rank - operand->rank;
  *inner = *period = 1;
  if (missing < 0) return false;
  int32_t last = out->rank - 1;
  for (; last >= missing && operand->dims[last - missing] == 1; --last) *inner *= out->dims[last];
  int32_t first = last;
  for (; first >= missing && operand->dims[first - missing] == out->dims[first]; --first) *period *= out->dims[first];
  for (int32_t d = first; d >= missing; --d) {
    if (operand->dims[d - missing] != 1) return false;
  }
  if (*period == 1) *inner = 1;
  return true;
}

static bool same_shape(const clv_tensor *a, const clv_tensor *b) {
  return clv__tensor_same_type(a, b);
}

/* Whether the kernel of node `at`, which computes the value `made`, can also compute node `index`, which reads that value. Fills
 * `post`. */
static bool find_post(const clv__opencl_variant *variant, const uses *u, uint32_t at, uint32_t index, uint32_t made,
                      clv_tensor *types, bool *constant, clv__opencl_post *post) {
  const clv__opencl_variant_node *node = &variant->nodes[index];
  const clv_tensor *type = &variant->values[made].type;
  if (node->is_dead || node->op == NULL || node->post_count > 0) return false;
  if (node->output_count != 1 || node->outputs[0] == CLV_NO_VALUE) return false;
  if ((CLV__DTYPES_FLOAT & CLV__DTYPE_BIT(type->dtype)) == 0) return false;
  if (!same_shape(type, &variant->values[node->outputs[0]].type)) return false;
  *post =
      (clv__opencl_post){.shape = clv__opencl_variant_node_view(variant, index, types, constant), .operand = CLV__OPENCL_NONE};
  if (!clv__opencl_function_of(&post->shape, &post->function)) return false;
  uint32_t operands = post->function.expression->operands;
  if (operands == 1) return node->inputs[0] == made;
  if (operands != 2 || node->input_count != 2) return false;
  post->is_first = node->inputs[1] == made;
  post->operand = node->inputs[post->is_first ? 0 : 1];
  const clv_tensor *other = &variant->values[post->operand].type;
  uint32_t producer = u->producer[post->operand];
  return other->dtype == type->dtype && (producer == CLV__OPENCL_NONE || producer < at) &&
         find_period(other, type, &post->inner, &post->period);
}

static void fuse_into(clv__opencl_variant *variant, uses *u, uint32_t at, clv_tensor *types, bool *constant) {
  clv__opencl_variant_node *node = &variant->nodes[at];
  if (node->is_dead || node->op == NULL || !node->op->takes_posts || node->outputs[0] == CLV_NO_VALUE) return;
  while (node->post_count < CLV__OPENCL_MAX_POSTS) {
    uint32_t made = node->outputs[0];
    clv__opencl_post post;
    if (u->readers[made] != 1 || variant->executable->values[made].output != CLV__OPENCL_NONE) return;
    uint32_t reader = u->reader[made];
    if (!find_post(variant, u, at, reader, made, types, constant, &post)) return;
    node->posts[node->post_count++] = post;
    node->outputs[0] = variant->nodes[reader].outputs[0];
    u->producer[node->outputs[0]] = at;
    variant->nodes[reader].is_dead = true;
  }
}

void clv__opencl_pass_fuse(clv__opencl_variant *variant) {
  clv__arena arena;
  clv__arena_init(&arena, variant->device->allocator);
  uint32_t most = clv__opencl_variant_most(variant);
  clv_tensor *types = clv__arena_allocate_zero(&arena, (size_t)most + 1, sizeof *types);
  bool *constant = clv__arena_allocate_zero(&arena, (size_t)most + 1, sizeof *constant);
  uses u;
  if (types != NULL && constant != NULL && count_uses(variant, &arena, &u)) { /* if memory runs out, fuse nothing */
    for (uint32_t n = 0; n < variant->executable->node_count; ++n) fuse_into(variant, &u, n, types, constant);
  }
  clv__arena_finish(&arena);
}
