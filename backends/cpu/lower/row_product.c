/* Lowers products of one row with a constant matrix. The panels have oneDNN's layout BA16a64b, so that variants for more rows
 * share the pack. */
#include "backends/cpu/kernels/row.h"
#include "backends/cpu/tune/tune.h"
#include "lower.h"
#include "residual.h"

static clv_status weights_slot(clv__cpu_variant *variant, const clv__cpu_variant_node *node, const clv__dnn_layout *panels,
                               int64_t depth, int64_t columns, bool transposed, uint32_t *slot, clv_error *error) {
  const clv__cpu_packing packing = {.value = node->inputs[1],
                                    .from = clv__cpu_matrix_layout(variant, CLV_F32, depth, columns, transposed),
                                    .scale = node->scale,
                                    .scale_axis = transposed ? 0 : 1,
                                    .arrangement = transposed ? 4 : 2,
                                    .is_streamed = true};
  void *data;
  if (packing.from == NULL) return clv__error_memory(error, 0);
  CLV__TRY(clv__cpu_constant_packed(variant->constants, &packing, panels, &data, error));
  return clv__cpu_slot_constant(variant, data, clv__dnn_layout_size_bytes(panels), slot, error);
}

/* An f16 or bf16 matrix is read unconverted, because reading it dominates the time. A matrix with factors is converted to f32
 * with the factors applied. */
static clv_dtype matrix_dtype(const clv__cpu_variant *variant, const clv__cpu_variant_node *node) {
  const clv__cpu_variant_value *b = &variant->values[node->inputs[1]];
  const bool is_narrow = b->outer == CLV_F16 || b->outer == CLV_BF16;
  if (node->product != CLV_F32 || !is_narrow || node->scale != NULL) return node->product;
  const clv__cpu_constants *constants = variant->constants;
  for (size_t i = 0; i < constants->count; ++i) { /* reuse an f32 pack made by a variant for more rows */
    const clv__cpu_pack *pack = &constants->packs[i];
    if (pack->value != node->inputs[1] || pack->shared->layout == NULL) continue;
    if (clv__dnn_layout_dtype(pack->shared->layout) == CLV_F32) return CLV_F32;
  }
  return b->outer;
}

clv_status clv__cpu_lower_row(clv__cpu_variant *variant, clv__cpu_variant_node *node, bool *taken, clv_error *error) {
  const clv_tensor *b = &variant->values[node->inputs[1]].type, *out = &variant->values[node->outputs[0]].type;
  const int64_t columns = out->dims[out->rank - 1], depth = clv__dims_product(b, 0, b->rank) / columns;
  const bool transposed = strcmp(node->source->op, "Gemm") == 0 && clv__attribute_int(node->source->attributes, "transB", 0) != 0;
  const uint32_t sum = clv__cpu_residual_post(node);
  const bool constant = node->inputs[1] < variant->program->value_count && variant->program->values[node->inputs[1]].is_constant;
  *taken = constant && b->rank == 2 && clv__dims_product(out, 0, out->rank - 1) == 1 && columns >= CLV__CPU_ROW_PANEL &&
           (sum == CLV__CPU_NONE || sum == 0);
  const int64_t dims[2] = {depth, columns};
  const clv_dtype dtype = matrix_dtype(variant, node);
  const clv__dnn_layout *panels = *taken ? clv__dnn_layout_panels(&variant->arena, dtype, dims) : NULL;
  clv__cpu_row *row = clv__arena_allocate_zero(&variant->arena, 1, sizeof *row);
  if (row == NULL) return clv__error_memory(error, sizeof *row);
  *taken = panels != NULL;
  if (!*taken) return CLV_OK;
  *row = (clv__cpu_row){.depth = depth,
                        .columns = columns,
                        .dtype = dtype,
                        .panel_elements = (int64_t)clv__align_up((size_t)depth, 16) * CLV__CPU_ROW_PANEL};
  if (clv__cpu_tunes(variant) && dtype == node->product) { /* reading a narrower matrix is always faster: nothing to measure */
    const clv__cpu_factors factors = {.a = clv__dnn_layout_dense(&variant->arena, node->product, 2, (int64_t[2]){1, depth}),
                                      .b = clv__cpu_matrix_layout(variant, node->product, depth, columns, transposed),
                                      .destination = clv__dnn_layout_dense(&variant->arena, CLV_F32, 2, (int64_t[2]){1, columns}),
                                      .row = row,
                                      .panels = panels};
    clv__cpu_product_way way = CLV__CPU_PRODUCT_ROW;
    if (factors.a == NULL || factors.b == NULL || factors.destination == NULL) return clv__error_memory(error, 0);
    CLV__TRY(clv__cpu_tune_product(variant, node, &factors, &way, error));
    *taken = way == CLV__CPU_PRODUCT_ROW;
    if (!*taken) return CLV_OK;
  }
  uint32_t post = sum == 0;
  row->relu = post < node->post_count && node->posts[post].algorithm == CLV__DNN_RELU && node->posts[post].alpha == 0.0f;
  uint32_t source, weights, other = CLV__CPU_NONE, bias = CLV__CPU_NONE, target;
  CLV__TRY(weights_slot(variant, node, panels, depth, columns, transposed, &weights, error));
  CLV__TRY(clv__cpu_form_get(variant, node->inputs[0], NULL, &source, error));
  if (node->bias != NULL) {
    CLV__TRY(clv__cpu_slot_constant(variant, node->bias, (size_t)columns * sizeof(float), &bias, error));
  }
  if (sum == 0) CLV__TRY(clv__cpu_form_get(variant, node->posts[0].value, NULL, &other, error));
  CLV__TRY(clv__cpu_form_make(variant, node->outputs[0], NULL, &target, error));
  clv__cpu_step *step = clv__cpu_step_new(variant, CLV__CPU_STEP_ROW, node->source, node->source->op, 5);
  if (step == NULL) return clv__error_memory(error, sizeof *step);
  step->row = row;
  clv__cpu_step_input(step, 0, source, NULL);
  clv__cpu_step_input(step, 0, weights, NULL);
  if (bias != CLV__CPU_NONE) {
    row->bias_operand = step->operand_count;
    clv__cpu_step_input(step, 0, bias, NULL);
  }
  if (other != CLV__CPU_NONE) {
    row->addend_operand = step->operand_count;
    clv__cpu_step_input(step, 0, other, NULL);
  }
  row->target_operand = step->operand_count;
  clv__cpu_step_output(step, 0, target, NULL);
  const clv__dnn_layout *line = clv__dnn_layout_dense(&variant->arena, CLV_F32, 1, &columns);
  if (line == NULL) return clv__error_memory(error, 0);
  for (post += row->relu; post < node->post_count; ++post) {
    CLV__TRY(clv__cpu_lower_post(variant, node, &node->posts[post], line, target, error));
  }
  return CLV_OK;
}
