/* Lowers products of integers: convolutions with channels last, and row-major matrix products. A residual is added in its own
 * memory if possible. */
#include "integer_posts.h"
#include "lower.h"
#include "residual.h"

/* The dtype in which a product reads the value as integers: the one that the value was computed in. */
static clv_dtype dtype_of(const clv__cpu_variant *variant, uint32_t value) {
  const clv__cpu_variant_value *read = &variant->values[value];
  const clv__dnn_layout *layout = read->form_count > 0 ? read->forms[0].layout : NULL;
  return layout != NULL ? clv__dnn_layout_dtype(layout) : read->type.dtype;
}

/* Operand layouts shared by the two kinds of products. */
typedef struct shapes {
  const clv__dnn_layout *source, *destination, *kept; /* kept: the layout of the result that its readers use */
  const clv__dnn_layout *residual, *weights, *bias;
  clv__dnn_convolution spec; /* set only for convolutions */
} shapes;

static bool describe_convolution(clv__cpu_variant *variant, const clv__cpu_variant_node *node, shapes *s) {
  const clv__cpu_integers *integers = node->integers;
  clv__cpu_convolution_describe(variant, node, false, &s->spec);
  const clv_tensor *from = &s->spec.source, *to = &s->spec.destination;
  const int64_t channels = integers->channels;
  s->spec.weights.dtype = CLV_I8;
  s->spec.bias_count = integers->bias != NULL ? channels : 0;
  s->spec.scales = integers->scales;
  s->spec.scale_count = channels;
  s->spec.source_zero = integers->source_zero;
  s->spec.destination_zero = integers->is_real ? 0 : integers->grid.zero;
  const clv_dtype made = integers->is_real ? CLV_F32 : integers->grid.dtype;
  s->source = clv__dnn_layout_channels_last(&variant->arena, dtype_of(variant, node->inputs[0]), from->rank, from->dims);
  s->destination = clv__dnn_layout_channels_last(&variant->arena, made, to->rank, to->dims);
  s->kept = integers->is_natural ? clv__dnn_layout_channels_last(&variant->arena, CLV_U8, to->rank, to->dims) : s->destination;
  s->weights = clv__dnn_layout_dense(&variant->arena, CLV_I8, s->spec.weights.rank, s->spec.weights.dims);
  s->bias = clv__dnn_layout_dense(&variant->arena, CLV_F32, 1, &channels);
  if (node->post_count > 0) {
    s->residual = clv__dnn_layout_channels_last(&variant->arena, dtype_of(variant, node->posts[0].value), to->rank, to->dims);
    if (s->residual == NULL) return false;
  }
  s->spec.source_layout = s->source;
  s->spec.destination_layout = s->destination;
  return s->source != NULL && s->destination != NULL && s->kept != NULL && s->weights != NULL && s->bias != NULL;
}

static bool describe_matrix(clv__cpu_variant *variant, const clv__cpu_variant_node *node, shapes *s) {
  const clv__cpu_integers *integers = node->integers;
  const clv_tensor *out = &variant->values[node->outputs[0]].type, *b = &variant->values[node->inputs[1]].type;
  const bool turned = strcmp(node->source->op, "Gemm") == 0 && clv__attribute_int(node->source->attributes, "transB", 0) != 0;
  const int64_t rows = clv__dims_product(out, 0, out->rank - 1), inner = b->dims[turned ? 1 : 0], columns = integers->channels;
  const int64_t a_dims[2] = {rows, inner}, b_dims[2] = {inner, columns}, to_dims[2] = {rows, columns};
  const int64_t bias_dims[2] = {1, columns}, strides[2] = {turned ? 1 : columns, turned ? inner : 1};
  memset(s, 0, sizeof *s);
  s->source = clv__dnn_layout_dense(&variant->arena, variant->values[node->inputs[0]].type.dtype, 2, a_dims);
  s->weights = clv__dnn_layout_strided(&variant->arena, CLV_I8, 2, b_dims, strides);
  s->destination = clv__dnn_layout_dense(&variant->arena, integers->is_real ? CLV_F32 : integers->grid.dtype, 2, to_dims);
  s->bias = clv__dnn_layout_dense(&variant->arena, CLV_F32, 2, bias_dims);
  if (node->post_count > 0) {
    s->residual = clv__dnn_layout_dense(&variant->arena, variant->values[node->posts[0].value].type.dtype, 2, to_dims);
    if (s->residual == NULL) return false;
  }
  return s->source != NULL && s->weights != NULL && s->destination != NULL && s->bias != NULL;
}

static bool describe(clv__cpu_variant *variant, const clv__cpu_variant_node *node, shapes *s) {
  if (node->kind == CLV__CPU_INTEGER_CONVOLUTION) return describe_convolution(variant, node, s);
  return describe_matrix(variant, node, s);
}

/* Creates the primitive. `in_place`: the residual is stored where the result will be. */
static clv_status create(clv__cpu_variant *variant, const clv__cpu_variant_node *node, shapes *s, bool in_place, bool is_probe,
                         clv__dnn_primitive **primitive, clv_error *error) {
  const clv__cpu_integers *integers = node->integers;
  clv__dnn_post posts[CLV__DNN_MAX_POSTS];
  memcpy(posts, integers->posts, sizeof posts);
  if (integers->residual != CLV__CPU_NONE) {
    clv__dnn_post *sum = &posts[integers->residual];
    if (in_place) sum->kind = CLV__DNN_POST_SUM;
    sum->layout = s->residual;
  }
  if (node->kind == CLV__CPU_INTEGER_CONVOLUTION) {
    s->spec.posts = posts;
    s->spec.post_count = integers->post_count;
    s->spec.is_probe = is_probe;
    return clv__dnn_convolution_create(variant->device->dnn, &s->spec, &variant->arena, primitive, error);
  }
  return clv__dnn_matmul_integers_create(variant->device->dnn, s->source, s->weights, integers->bias != NULL ? s->bias : NULL,
                                         s->destination, integers->scales, integers->channels,
                                         integers->is_real ? 0 : integers->grid.zero, posts, integers->post_count, is_probe,
                                         &variant->arena, primitive, error);
}

bool clv__cpu_integers_have(clv__cpu_variant *variant, const clv__cpu_variant_node *node) {
  shapes s;
  clv__dnn_primitive *primitive;
  return describe(variant, node, &s) && create(variant, node, &s, false, true, &primitive, NULL) == CLV_OK;
}

clv_status clv__cpu_integers_weights(clv__cpu_variant *variant, uint32_t value, bool turns, const clv__dnn_layout *from,
                                     const clv__dnn_layout *wanted, uint32_t *slot, clv_error *error) {
  const clv__cpu_packing packing = {
      .value = value, .from = from, .expand_groups = 1, .arrangement = turns ? 17 : 16, .turns = turns};
  void *data;
  CLV__TRY(clv__cpu_constant_packed(variant->constants, &packing, wanted, &data, error));
  return clv__cpu_slot_constant(variant, data, clv__dnn_layout_size_bytes(wanted), slot, error);
}

/* Whether the sum may overwrite the residual. The residual must have the result's layout, so that the bytes match. */
static bool may_sum_in_place(clv__cpu_variant *variant, const clv__cpu_variant_node *node, const shapes *s) {
  if (node->post_count == 0 || node->integers->is_real) return false;
  const clv__cpu_variant_value *other = &variant->values[node->posts[0].value];
  if (other->form_count == 0 || other->type.dtype != node->integers->grid.dtype) return false;
  if (node->kind == CLV__CPU_INTEGER_MATRIX && other->forms[0].layout != NULL) return false;
  if (node->kind == CLV__CPU_INTEGER_CONVOLUTION && !clv__dnn_layout_equal(other->forms[0].layout, s->residual)) return false;
  return clv__cpu_may_overwrite(variant, node, node->posts[0].value, other->forms[0].slot);
}

static clv_status emit(clv__cpu_variant *variant, const clv__cpu_variant_node *node, const shapes *s,
                       clv__dnn_primitive *primitive, bool in_place, clv_error *error) {
  const clv__cpu_integers *integers = node->integers;
  const bool is_matrix = node->kind == CLV__CPU_INTEGER_MATRIX, binary = node->post_count > 0 && !in_place;
  uint32_t source, weights, bias = CLV__CPU_NONE, other = CLV__CPU_NONE, destination;
  CLV__TRY(clv__cpu_integers_weights(variant, node->inputs[1], integers->weights_zero != 0, s->weights, primitive->weights,
                                     &weights, error));
  CLV__TRY(clv__cpu_form_get(variant, node->inputs[0], is_matrix ? NULL : s->source, &source, error));
  if (integers->bias != NULL) {
    CLV__TRY(clv__cpu_slot_constant(variant, integers->bias, (size_t)integers->channels * sizeof(float), &bias, error));
  }
  if (binary) CLV__TRY(clv__cpu_form_get(variant, node->posts[0].value, is_matrix ? NULL : s->residual, &other, error));
  if (in_place) {
    const uint32_t slot = variant->values[node->posts[0].value].forms[0].slot;
    CLV__TRY(clv__cpu_form_make_in(variant, node->outputs[0], s->kept, slot, &destination, error));
  } else {
    CLV__TRY(clv__cpu_form_make(variant, node->outputs[0], s->kept, &destination, error));
  }
  clv__cpu_step *step = clv__cpu_step_new(variant, CLV__CPU_STEP_PRIMITIVE, node->source, node->source->op, 6);
  if (step == NULL) return clv__error_memory(error, sizeof *step);
  step->primitive = primitive;
  step->scratch_bytes = primitive->scratch_bytes;
  clv__cpu_step_input(step, CLV__DNN_SOURCE, source, s->source);
  clv__cpu_step_input(step, CLV__DNN_WEIGHTS, weights, primitive->weights);
  if (bias != CLV__CPU_NONE) clv__cpu_step_input(step, CLV__DNN_BIAS, bias, s->bias);
  if (binary) clv__cpu_step_input(step, clv__dnn_post_argument(integers->residual), other, s->residual);
  clv__cpu_step_output(step, CLV__DNN_DESTINATION, destination, s->destination);
  return CLV_OK;
}

clv_status clv__cpu_lower_integers(clv__cpu_variant *variant, clv__cpu_variant_node *node, bool *taken, clv_error *error) {
  shapes s;
  clv__dnn_primitive *primitive = NULL;
  if (!describe(variant, node, &s)) return clv__error_memory(error, 0);
  bool in_place = may_sum_in_place(variant, node, &s);
  clv_status status = create(variant, node, &s, in_place, false, &primitive, error);
  if (status == CLV_NOT_SUPPORTED && in_place) {
    in_place = false;
    status = create(variant, node, &s, false, false, &primitive, error);
  }
  if (status != CLV_OK) return clv__cpu_refused(status, taken);
  status = emit(variant, node, &s, primitive, in_place, error);
  if (status != CLV_OK) clv__dnn_primitive_release(primitive);
  return status;
}
