/* Lowers small matrix products to steps without oneDNN. A oneDNN call costs about a microsecond and five allocations, which is
 * more than the product itself. */
#include "small.h"
#include "residual.h"

#define MOST_WORK 4096 /* multiplications */
static bool describe(clv__cpu_variant *variant, const clv__cpu_variant_node *node, clv__cpu_small *s) {
  const clv_tensor *a = &variant->values[node->inputs[0]].type, *b = &variant->values[node->inputs[1]].type;
  const clv_tensor *out = &variant->values[node->outputs[0]].type;
  const bool gemm = strcmp(node->source->op, "Gemm") == 0;
  const bool a_turned = gemm && clv__attribute_int(node->source->attributes, "transA", 0) != 0;
  const bool b_turned = gemm && clv__attribute_int(node->source->attributes, "transB", 0) != 0;
  *s = (clv__cpu_small){.batches = 1, .columns = out->dims[out->rank - 1], .has_bias = node->bias != NULL};
  s->rows = clv__dims_product(out, 0, out->rank - 1);
  s->depth = b->dims[b_turned ? b->rank - 1 : b->rank - 2];
  if (b->rank > 2) { /* reject batches that would have to be broadcast */
    for (int32_t i = 0; i < a->rank - 2; ++i) {
      if (a->dims[i] != b->dims[i]) return false;
    }
    s->batches = clv__dims_product(out, 0, out->rank - 2);
    s->rows = out->dims[out->rank - 2];
  }
  s->a_row = a_turned ? 1 : s->depth;
  s->a_depth = a_turned ? s->rows : 1;
  s->b_depth = b_turned ? 1 : s->columns;
  s->b_column = b_turned ? s->depth : 1;
  s->a_batch = s->rows * s->depth;
  s->b_batch = s->depth * s->columns;
  return s->batches * s->rows <= MOST_WORK && s->columns <= MOST_WORK && s->depth <= MOST_WORK &&
         s->batches * s->rows * s->columns * s->depth <= MOST_WORK;
}

/* Lays out a constant right-hand matrix with contiguous rows and with its factors applied. */
static clv_status right_slot(clv__cpu_variant *variant, const clv__cpu_variant_node *node, clv__cpu_small *s, uint32_t *slot,
                             clv_error *error) {
  const bool constant = node->inputs[1] < variant->program->value_count && variant->program->values[node->inputs[1]].is_constant;
  if (!constant || (node->scale == NULL && s->b_column == 1)) {
    return clv__cpu_form_get(variant, node->inputs[1], NULL, slot, error);
  }
  const int64_t dims[2] = {s->depth, s->columns}, strides[2] = {s->b_depth, s->b_column};
  const clv__dnn_layout *dense = clv__dnn_layout_dense(&variant->arena, CLV_F32, 2, dims);
  const clv__cpu_packing packing = {.value = node->inputs[1],
                                    .from = clv__dnn_layout_strided(&variant->arena, CLV_F32, 2, dims, strides),
                                    .scale = node->scale,
                                    .scale_axis = s->b_column == 1 ? 1 : 0,
                                    .arrangement = s->b_column == 1 ? 2 : 4};
  void *data;
  if (dense == NULL || packing.from == NULL) return clv__error_memory(error, 0);
  CLV__TRY(clv__cpu_constant_packed(variant->constants, &packing, dense, &data, error));
  s->b_depth = s->columns;
  s->b_column = 1;
  return clv__cpu_slot_constant(variant, data, clv__dnn_layout_size_bytes(dense), slot, error);
}

static bool takes(clv__cpu_variant *variant, const clv__cpu_variant_node *node, clv__cpu_small *s) {
  const bool constant = node->inputs[1] < variant->program->value_count && variant->program->values[node->inputs[1]].is_constant;
  const int32_t rank = variant->values[node->inputs[1]].type.rank;
  if ((node->scale != NULL && !constant) || ((node->scale != NULL || node->bias != NULL) && rank != 2)) return false;
  for (uint32_t i = 0; i < node->post_count; ++i) {
    if (!clv__cpu_post_is_elementwise(&node->posts[i])) return false;
  }
  return describe(variant, node, s);
}

clv_status clv__cpu_lower_small(clv__cpu_variant *variant, clv__cpu_variant_node *node, bool *taken, clv_error *error) {
  clv__cpu_small made;
  uint32_t a, b, bias = CLV__CPU_NONE, c;
  *taken = takes(variant, node, &made);
  if (!*taken) return CLV_OK;
  CLV__TRY(right_slot(variant, node, &made, &b, error));
  CLV__TRY(clv__cpu_form_get(variant, node->inputs[0], NULL, &a, error));
  if (made.has_bias) {
    CLV__TRY(clv__cpu_slot_constant(variant, node->bias, (size_t)made.columns * sizeof(float), &bias, error));
  }
  /* If an addend of a fused Add must be reordered, emit that step before the product. */
  for (uint32_t i = 0; i < node->post_count; ++i) {
    uint32_t other;
    if (node->posts[i].kind != CLV__CPU_POST_ADD) continue;
    CLV__TRY(clv__cpu_form_get(variant, node->posts[i].value, NULL, &other, error));
  }
  CLV__TRY(clv__cpu_form_make(variant, node->outputs[0], NULL, &c, error));
  clv__cpu_step *step = clv__cpu_step_new(variant, CLV__CPU_STEP_SMALL, node->source, node->source->op, 4);
  clv__cpu_small *kept = clv__arena_copy(&variant->arena, &made, sizeof made);
  if (step == NULL || kept == NULL) return clv__error_memory(error, sizeof *step);
  step->small = kept;
  clv__cpu_step_input(step, 0, a, NULL);
  clv__cpu_step_input(step, 0, b, NULL);
  if (bias != CLV__CPU_NONE) clv__cpu_step_input(step, 0, bias, NULL);
  clv__cpu_step_output(step, 0, c, NULL);
  for (uint32_t i = 0; i < node->post_count; ++i) {
    CLV__TRY(clv__cpu_lower_post_elementwise(variant, node, &node->posts[i], c, error));
  }
  return CLV_OK;
}
