/* Matches MatMulInteger and ConvInteger as oneDNN products, together with the nodes that convert their sums back to real numbers.
 * These are the nodes of a dynamically quantised layer. They are matched one reader after the other, as long as nothing else
 * reads the values between them. */
#include "sums.h"

static bool is_bytes(clv_dtype dtype) {
  return dtype == CLV_U8 || dtype == CLV_I8;
}

static bool is_f32(const clv__cpu_variant_value *value) {
  return clv__cpu_is_f32(&value->type) && value->outer == CLV_DTYPE_NONE;
}

static bool is_matrix(const clv__cpu_variant_node *node) {
  return node->source->op[0] == 'M';
}

/* The axis of the channels in the result. */
static int32_t channel_axis(const clv__cpu_variant *variant, const clv__cpu_variant_node *node) {
  return is_matrix(node) ? variant->values[node->outputs[0]].type.rank - 1 : 1;
}

/* Whether `line` holds one number, or one per channel of a result of the type `to`, whose channels are on `axis`. */
static bool is_line(const clv_tensor *line, const clv_tensor *to, int32_t axis) {
  if (!clv__tensor_is_static(line) || line->rank > to->rank) return false;
  for (int32_t i = 0; i < line->rank; ++i) {
    const int32_t at = to->rank - line->rank + i;
    if (line->dims[i] != 1 && (at != axis || line->dims[i] != to->dims[axis])) return false;
  }
  return true;
}

static bool is_single(const clv_tensor *type) {
  size_t count;
  return clv__tensor_is_static(type) && clv__tensor_count(type, &count) && count == 1;
}

/* Whether a step of kind SUMS supports the node's operands. */
static bool fits(const clv__cpu_variant *variant, const clv__cpu_variant_node *node) {
  const clv__cpu_program *program = variant->program;
  const clv__cpu_variant_value *a = &variant->values[node->inputs[0]], *out = &variant->values[node->outputs[0]];
  const uint32_t weights = node->inputs[1];
  size_t count;
  if (weights >= program->value_count || !program->values[weights].is_constant || program->values[weights].computed != NULL)
    return false;
  const clv_tensor *b = &variant->values[weights].type;
  if (!is_bytes(a->type.dtype) || !is_bytes(b->dtype) || !clv__tensor_is_static(&a->type)) return false;
  if (!clv__tensor_count(&a->type, &count) || count == 0 || !clv__tensor_count(&out->type, &count) || count == 0) return false;
  if (is_matrix(node) ? a->type.rank < 2 || b->rank != 2 : a->type.rank < 3 || a->type.rank > 5) return false;
  const uint32_t a_zero = node->input_count > 2 ? node->inputs[2] : CLV__CPU_NONE;
  const uint32_t b_zero = node->input_count > 3 ? node->inputs[3] : CLV__CPU_NONE;
  if (a_zero != CLV__CPU_NONE && !is_single(&variant->values[a_zero].type)) return false;
  if (b_zero == CLV__CPU_NONE) return true;
  const clv_tensor *zeros = &variant->values[b_zero].type;
  const int64_t channels = out->type.dims[channel_axis(variant, node)];
  if (b_zero >= program->value_count || !program->values[b_zero].is_constant) return false;
  return is_single(zeros) || (zeros->rank == 1 && zeros->dims[0] == channels);
}

/* Fills `made`, a node of kind SUMS that computes the sums of `node`. */
static clv_status start(clv__cpu_variant *variant, const clv__cpu_variant_node *node, clv__cpu_variant_node *made,
                        clv_error *error) {
  uint32_t *inputs = clv__arena_allocate_zero(&variant->arena, CLV__CPU_SUMS_INPUTS, sizeof *inputs);
  if (inputs == NULL) return clv__error_memory(error, sizeof *inputs);
  for (uint32_t i = 0; i < CLV__CPU_SUMS_INPUTS; ++i) inputs[i] = i < node->input_count ? node->inputs[i] : CLV__CPU_NONE;
  inputs[CLV__CPU_SUMS_SCALE] = CLV__CPU_NONE;
  *made = *node;
  made->kind = CLV__CPU_SUMS;
  made->inputs = inputs;
  made->input_count = CLV__CPU_SUMS_INPUTS;
  return CLV_OK;
}

/* The other operand of a binary node that reads `value` once; NONE for other nodes. */
static uint32_t other_operand(const clv__cpu_variant *variant, const clv__cpu_variant_node *node, uint32_t value,
                              clv__dnn_binary algorithm) {
  if (node->dead || node->kind != CLV__CPU_BINARY || node->post_count != 1 || node->posts[0].algorithm != (int)algorithm)
    return CLV__CPU_NONE;
  const uint32_t other = node->inputs[node->inputs[0] == value ? 1 : 0];
  const clv_tensor *from = &variant->values[value].type, *to = &variant->values[node->outputs[0]].type;
  return is_f32(&variant->values[other]) && is_f32(&variant->values[node->outputs[0]]) && clv__tensor_same_type(from, to)
             ? other
             : CLV__CPU_NONE;
}

/* Matches the conversion from sums to real numbers: Cast to f32, then Mul by a scale. Returns the Mul, or NULL if there is no
 * match. */
static clv__cpu_variant_node *scaled(clv__cpu_variant *variant, clv__cpu_variant_node *made, clv__cpu_variant_node *node,
                                     int32_t axis) {
  clv__cpu_variant_node *cast = clv__cpu_only_reader(variant, node->outputs[0]);
  if (cast == NULL || cast->dead || cast->kind != CLV__CPU_KERNEL || cast->source->domain[0] != 0 ||
      strcmp(cast->source->op, "Cast") != 0 || !is_f32(&variant->values[cast->outputs[0]])) {
    return NULL;
  }
  clv__cpu_variant_node *product = clv__cpu_only_reader(variant, cast->outputs[0]);
  const uint32_t scale = product != NULL ? other_operand(variant, product, cast->outputs[0], CLV__DNN_MUL) : CLV__CPU_NONE;
  if (scale == CLV__CPU_NONE || !is_line(&variant->values[scale].type, &variant->values[product->outputs[0]].type, axis))
    return NULL;
  made->inputs[CLV__CPU_SUMS_SCALE] = scale;
  cast->dead = true;
  return product;
}

/* Adds the only reader of `last`'s result to `made` as a post. Returns the reader, or NULL if that is not possible. */
static clv__cpu_variant_node *append_post(clv__cpu_variant *variant, clv__cpu_variant_node *made, clv__cpu_variant_node *last,
                                          int32_t axis) {
  const uint32_t value = last->outputs[0];
  clv__cpu_variant_node *reader = clv__cpu_only_reader(variant, value);
  if (reader == NULL || reader->dead || made->post_count == CLV__CPU_MAX_POSTS || clv__cpu_sums_has_gelu(made)) return NULL;
  clv__cpu_post *post = &made->posts[made->post_count];
  if (reader->kind == CLV__CPU_UNARY) {
    const int algorithm = reader->posts[0].algorithm;
    if (algorithm != CLV__DNN_RELU && algorithm != CLV__DNN_CLIP && algorithm != CLV__DNN_GELU_ERF) return NULL;
    *post = reader->posts[0];
  } else {
    const uint32_t other = other_operand(variant, reader, value, CLV__DNN_ADD);
    if (other == CLV__CPU_NONE) return NULL;
    const clv_tensor *type = &variant->values[other].type, *to = &variant->values[value].type;
    if (!clv__tensor_same_type(type, to) && !is_line(type, to, axis)) return NULL;
    *post = (clv__cpu_post){.kind = CLV__CPU_POST_ADD, .value = other};
  }
  made->post_count++;
  return reader;
}

static clv_status fuse_product(clv__cpu_variant *variant, clv__cpu_variant_node *node, clv_error *error) {
  clv__cpu_variant_node made;
  if (!fits(variant, node)) return CLV_OK;
  CLV__TRY(start(variant, node, &made, error));
  if (!clv__cpu_sums_have(variant, &made)) return CLV_OK;
  const int32_t axis = channel_axis(variant, node);
  clv__cpu_variant_node *last = variant->fuse ? scaled(variant, &made, node, axis) : NULL;
  if (last == NULL) {
    *node = made;
    return CLV_OK;
  }
  made.composed = true;
  node->dead = true;
  for (clv__cpu_variant_node *next = last; next != NULL; next = append_post(variant, &made, last, axis)) {
    last->dead = true;
    last = next;
  }
  made.outputs = last->outputs;
  *last = made;
  variant->values[made.outputs[0]].producer = (uint32_t)(last - variant->nodes);
  return CLV_OK;
}

/* Whether `node` is a DynamicQuantizeLinear, which may run in the memory order of its input. */
static bool is_dynamic(const clv__cpu_variant *variant, const clv__cpu_variant_node *node) {
  return strcmp(node->source->op, "DynamicQuantizeLinear") == 0 && node->input_count > 0 && node->outputs[0] != CLV__CPU_NONE &&
         is_f32(&variant->values[node->inputs[0]]);
}

clv_status clv__cpu_pass_sums(clv__cpu_variant *variant, clv_error *error) {
  if (!variant->onednn || !clv__dnn_sums_integers()) return CLV_OK;
  for (uint32_t i = 0; i < variant->node_count; ++i) {
    clv__cpu_variant_node *node = &variant->nodes[i];
    if (node->dead || node->kind != CLV__CPU_KERNEL || node->source->domain[0] != 0) continue;
    if (strcmp(node->source->op, "MatMulInteger") == 0 || strcmp(node->source->op, "ConvInteger") == 0) {
      CLV__TRY(fuse_product(variant, node, error));
    } else if (is_dynamic(variant, node)) {
      node->kind = CLV__CPU_GRID;
    }
  }
  return CLV_OK;
}
