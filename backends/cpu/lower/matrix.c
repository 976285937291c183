/* Lowers Gemm and MatMul. Packs constant right-hand matrices, and merges the leading axes of the left-hand operand. */
#include "backends/cpu/kernels/row.h"
#include "backends/cpu/tune/tune.h"
#include "lower.h"
#include "residual.h"
#include "small.h"

typedef struct product {
  const clv__dnn_layout *a, *b, *bias, *destination;
  clv_dtype made; /* dtype of the destination */
  bool packed;    /* b is a constant matrix */
  bool b_transposed;
} product;

static bool describe(clv__cpu_variant *variant, const clv__cpu_variant_node *node, product *p) {
  const clv_tensor *a = &variant->values[node->inputs[0]].type, *b = &variant->values[node->inputs[1]].type;
  const clv_tensor *out = &variant->values[node->outputs[0]].type;
  const bool gemm = strcmp(node->source->op, "Gemm") == 0;
  const bool a_transposed = gemm && clv__attribute_int(node->source->attributes, "transA", 0) != 0;
  const int64_t columns = out->dims[out->rank - 1];
  int64_t dims[CLV_MAX_RANK];
  memset(p, 0, sizeof *p);
  p->made = node->product == CLV_BF16 ? variant->values[node->outputs[0]].made : CLV_F32;
  p->b_transposed = gemm && clv__attribute_int(node->source->attributes, "transB", 0) != 0;
  if (b->rank == 2) {
    const int64_t inner = b->dims[p->b_transposed ? 1 : 0];
    const int64_t rows = clv__dims_product(out, 0, out->rank - 1);
    p->packed = node->inputs[1] < variant->program->value_count && variant->program->values[node->inputs[1]].is_constant;
    p->a = clv__cpu_matrix_layout(variant, node->product, rows, inner, a_transposed);
    p->b = clv__cpu_matrix_layout(variant, node->product, inner, columns, p->b_transposed);
    p->destination = clv__cpu_matrix_layout(variant, p->made, rows, columns, false);
  } else {
    /* If a and b have equal batch axes, merge these into one. Otherwise oneDNN broadcasts them. */
    bool same = true;
    for (int32_t i = 0; i < a->rank - 2; ++i) same = same && a->dims[i] == b->dims[i];
    const int32_t rank = same ? 3 : a->rank;
    const clv_tensor *all[3] = {a, b, out};
    const clv__dnn_layout **made[3] = {&p->a, &p->b, &p->destination};
    for (int k = 0; k < 3; ++k) {
      for (int32_t i = 0; i < rank; ++i) dims[i] = all[k]->dims[same ? all[k]->rank - 3 + i : i];
      if (same) dims[0] = clv__dims_product(all[k], 0, all[k]->rank - 2);
      *made[k] = clv__dnn_layout_dense(&variant->arena, k < 2 ? node->product : p->made, rank, dims);
    }
  }
  if (node->bias != NULL) {
    for (int32_t i = 0; i < CLV_MAX_RANK; ++i) dims[i] = 1;
    const int32_t rank = b->rank == 2 ? 2 : b->rank;
    dims[rank - 1] = columns;
    p->bias = b->rank == 2 ? clv__dnn_layout_dense(&variant->arena, CLV_F32, rank, dims) : NULL;
    if (p->bias == NULL) return false;
  }
  return p->a != NULL && p->b != NULL && p->destination != NULL;
}

/* Sets *slot to a slot that holds `value` row-major in `dtype`. */
static clv_status form_get(clv__cpu_variant *variant, uint32_t value, clv_dtype dtype, uint32_t *slot, clv_error *error) {
  const clv__dnn_layout *layout = clv__cpu_form_dense(variant, value, dtype);
  if (layout == NULL) return clv__error_memory(error, 0);
  return clv__cpu_form_get(variant, value, layout, slot, error);
}

static clv_status weights_slot(clv__cpu_variant *variant, const clv__cpu_variant_node *node, const product *p,
                               const clv__dnn_layout *wanted, uint32_t *slot, clv_error *error) {
  const clv_tensor *b = &variant->values[node->inputs[1]].type;
  if (!p->packed) return form_get(variant, node->inputs[1], node->product, slot, error);
  const clv__cpu_packing packing = {
      .value = node->inputs[1],
      .from = clv__cpu_matrix_layout(variant, b->dtype, b->dims[p->b_transposed], b->dims[!p->b_transposed], p->b_transposed),
      .scale = node->scale,
      .scale_axis = p->b_transposed ? 0 : 1,
      .arrangement = p->b_transposed ? 4 : 2};
  void *data;
  if (packing.from == NULL) return clv__error_memory(error, 0);
  CLV__TRY(clv__cpu_constant_packed(variant->constants, &packing, wanted, &data, error));
  return clv__cpu_slot_constant(variant, data, clv__dnn_layout_size_bytes(wanted), slot, error);
}

static clv_status emit(clv__cpu_variant *variant, const clv__cpu_variant_node *node, const product *p,
                       clv__dnn_primitive *primitive, uint32_t sum_slot, bool binary, clv_error *error) {
  uint32_t a, b, bias = CLV__CPU_NONE, other = CLV__CPU_NONE, destination;
  const uint32_t post = clv__cpu_residual_post(node);
  CLV__TRY(weights_slot(variant, node, p, primitive->weights, &b, error));
  CLV__TRY(form_get(variant, node->inputs[0], node->product, &a, error));
  if (p->bias != NULL) {
    CLV__TRY(clv__cpu_slot_constant(variant, node->bias, clv__dnn_layout_size_bytes(p->bias), &bias, error));
  }
  if (binary) CLV__TRY(form_get(variant, node->posts[post].value, p->made, &other, error));
  const clv__dnn_layout *made = clv__cpu_form_dense(variant, node->outputs[0], p->made);
  if (made == NULL) return clv__error_memory(error, 0);
  if (sum_slot != CLV__CPU_NONE) {
    CLV__TRY(clv__cpu_form_make_in(variant, node->outputs[0], made, sum_slot, &destination, error));
  } else {
    CLV__TRY(clv__cpu_form_make(variant, node->outputs[0], made, &destination, error));
  }
  clv__cpu_step *step = clv__cpu_step_new(variant, CLV__CPU_STEP_PRIMITIVE, node->source, node->source->op, 6);
  if (step == NULL) return clv__error_memory(error, sizeof *step);
  step->primitive = primitive;
  step->scratch_bytes = primitive->scratch_bytes;
  clv__cpu_step_input(step, CLV__DNN_SOURCE, a, p->a);
  clv__cpu_step_input(step, CLV__DNN_WEIGHTS, b, primitive->weights);
  if (bias != CLV__CPU_NONE) clv__cpu_step_input(step, CLV__DNN_BIAS, bias, p->bias);
  if (binary) clv__cpu_step_input(step, clv__dnn_post_argument(post), other, p->destination);
  clv__cpu_step_output(step, CLV__DNN_DESTINATION, destination, p->destination);
  return CLV_OK;
}

clv_status clv__cpu_lower_matrix(clv__cpu_variant *variant, clv__cpu_variant_node *node, bool *taken, clv_error *error) {
  product p;
  CLV__TRY(clv__cpu_lower_row(variant, node, taken, error));
  if (*taken) return CLV_OK;
  CLV__TRY(clv__cpu_lower_small(variant, node, taken, error));
  if (*taken) return CLV_OK;
  *taken = true;
  if (!describe(variant, node, &p)) {
    *taken = false;
    return CLV_OK;
  }
  uint32_t sum_slot = CLV__CPU_NONE;
  const uint32_t post = clv__cpu_residual_post(node);
  const clv__cpu_variant_value *other = post != CLV__CPU_NONE ? &variant->values[node->posts[post].value] : NULL;
  const bool leaves = variant->values[node->outputs[0]].output != CLV__CPU_NONE;
  const clv__dnn_layout *beside = other != NULL ? clv__cpu_form_dense(variant, node->posts[post].value, p.made) : NULL;
  if (beside != NULL && !leaves && clv__cpu_form_is_first(variant, node->posts[post].value, beside) &&
      clv__cpu_may_overwrite(variant, node, node->posts[post].value, other->forms[0].slot)) {
    sum_slot = other->forms[0].slot;
  }
  const bool binary = other != NULL && sum_slot == CLV__CPU_NONE;
  /* node->scale can be multiplied into a matrix only when it is packed. Otherwise all its factors are equal (Gemm's alpha), and
   * the product scales its result by the first one. */
  const float scale = !p.packed && node->scale != NULL ? node->scale[0] : 1.0f;
  clv__dnn_post posts[CLV__CPU_MAX_POSTS];
  const uint32_t post_count = clv__cpu_posts(node, binary ? p.destination : NULL, posts);
  clv__cpu_product_way way = CLV__CPU_PRODUCT_PACKED;
  if (p.packed && clv__cpu_tunes(variant)) {
    const clv__cpu_factors factors = {.a = p.a, .b = p.b, .destination = p.destination};
    CLV__TRY(clv__cpu_tune_product(variant, node, &factors, &way, error));
  }
  clv__dnn_primitive *primitive;
  clv_status status = clv__dnn_matmul_create(variant->device->dnn, p.a, p.b, p.packed && way == CLV__CPU_PRODUCT_PACKED,
                                             scale != 1.0f ? NULL : p.bias, p.destination, scale, posts, post_count,
                                             &variant->arena, &primitive, error);
  if (scale != 1.0f && p.bias != NULL) {
    clv__dnn_primitive_release(primitive);
    *taken = false;
    return CLV_OK;
  }
  if (status == CLV_NOT_SUPPORTED && node->product == CLV_BF16) {
    node->product = CLV_F32;
    return clv__cpu_lower_matrix(variant, node, taken, error);
  }
  if (status != CLV_OK) return clv__cpu_refused(status, taken);
  status = emit(variant, node, &p, primitive, sum_slot, binary, error);
  if (status != CLV_OK) clv__dnn_primitive_release(primitive);
  return status;
}
