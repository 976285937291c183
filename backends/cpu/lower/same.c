/* Steps whose output has the layout of their input: elementwise functions, scale and shift, normalisations, softmax. */
#include "lower.h"
#include "small.h"

/* Smaller row-major tensors are left to the portable kernels, because calling a primitive would cost more than the work. */
#define SMALL_COUNT 2048
#define SMALL_COUNT_COSTLY 128 /* for exponentials and similarly expensive functions */

static int64_t count_of(const clv__cpu_variant *variant, uint32_t value) {
  return clv__dims_product(&variant->values[value].type, 0, variant->values[value].type.rank);
}

/* Emits a step that runs `primitive` from input 0 to output 0, both stored in the layout `form` (NULL: row-major). The primitive
 * sees them as `layout`. `extra` holds weights and similar operands. */
static clv_status emit(clv__cpu_variant *variant, const clv__cpu_variant_node *node, const clv__dnn_layout *form,
                       const clv__dnn_layout *layout, clv__dnn_primitive *primitive, const clv__cpu_operand *extra,
                       uint32_t extra_count, bool may_overlap, clv_error *error) {
  uint32_t from, to;
  clv_status status = clv__cpu_form_get(variant, node->inputs[0], form, &from, error);
  if (status == CLV_OK) status = clv__cpu_form_make(variant, node->outputs[0], form, &to, error);
  if (status != CLV_OK) {
    clv__dnn_primitive_release(primitive);
    return status;
  }
  clv__cpu_step *step;
  CLV__TRY(clv__cpu_step_primitive(variant, node, node->source->op, primitive, 2 + extra_count, &step, error));
  clv__cpu_step_input(step, CLV__DNN_SOURCE, from, layout);
  for (uint32_t i = 0; i < extra_count; ++i) clv__cpu_step_input(step, extra[i].id, extra[i].slot, extra[i].layout);
  clv__cpu_step_output(step, CLV__DNN_DESTINATION, to, layout);
  step->may_overlap = may_overlap;
  step->serial = count_of(variant, node->outputs[0]) <= CLV__CPU_SERIAL_COUNT;
  return CLV_OK;
}

static bool is_costly(int algorithm) {
  switch (algorithm) {
    case CLV__DNN_RELU:
    case CLV__DNN_ABS:
    case CLV__DNN_SQRT:
    case CLV__DNN_LINEAR:
    case CLV__DNN_HARDSWISH:
      return false;
    default:
      return true;
  }
}

/* Whether oneDNN's function replaces a NaN by a bound. */
static bool loses_nan(const clv__cpu_post *post) {
  return post->algorithm == CLV__DNN_CLIP || (post->algorithm == CLV__DNN_RELU && post->alpha == 0.0f);
}

clv_status clv__cpu_lower_unary(clv__cpu_variant *variant, clv__cpu_variant_node *node, bool *taken, clv_error *error) {
  const bool blocked = clv__cpu_form_is_blocked(variant, node->inputs[0]);
  const int64_t count = count_of(variant, node->inputs[0]);
  const bool is_much = count >= (is_costly(node->posts[0].algorithm) ? SMALL_COUNT_COSTLY : SMALL_COUNT);
  *taken = (blocked || node->composed || is_much) && !loses_nan(&node->posts[0]);
  if (!*taken) return CLV_OK;
  const clv__dnn_layout *form = blocked ? clv__cpu_form_layout(variant, node->inputs[0]) : NULL;
  const clv__dnn_layout *layout = blocked ? form : clv__dnn_layout_dense(&variant->arena, CLV_F32, 1, &count);
  if (layout == NULL) return clv__error_memory(error, 0);
  const clv__cpu_post *post = &node->posts[0];
  clv__dnn_primitive *primitive;
  const clv_status status = clv__dnn_unary_create(variant->device->dnn, (clv__dnn_unary)post->algorithm, post->alpha, post->beta,
                                                  layout, &variant->arena, &primitive, error);
  if (status != CLV_OK) return clv__cpu_refused(status, taken);
  return emit(variant, node, form, layout, primitive, NULL, 0, true, error);
}

clv_status clv__cpu_lower_post(clv__cpu_variant *variant, const clv__cpu_variant_node *node, const clv__cpu_post *post,
                               const clv__dnn_layout *layout, uint32_t slot, clv_error *error) {
  clv__dnn_primitive *primitive;
  clv__cpu_step *step;
  CLV__TRY(clv__dnn_unary_create(variant->device->dnn, (clv__dnn_unary)post->algorithm, post->alpha, post->beta, layout,
                                 &variant->arena, &primitive, error));
  CLV__TRY(clv__cpu_step_primitive(variant, node, "activation", primitive, 2, &step, error));
  clv__cpu_step_input(step, CLV__DNN_SOURCE, slot, layout);
  clv__cpu_step_output(step, CLV__DNN_DESTINATION, slot, layout);
  step->serial = count_of(variant, node->outputs[0]) <= CLV__CPU_SERIAL_COUNT;
  return CLV_OK;
}

clv_status clv__cpu_lower_affine(clv__cpu_variant *variant, clv__cpu_variant_node *node, bool *taken, clv_error *error) {
  if (clv__cpu_can_join(variant, node->inputs[0])) return clv__cpu_lower_join(variant, node, error);
  const clv__dnn_layout *layout = clv__cpu_form_layout(variant, node->inputs[0]);
  const int64_t channels = variant->values[node->outputs[0]].type.dims[1];
  clv__arena *arena = &variant->arena;
  float *data = clv__arena_allocate_data(arena, (size_t)channels * 4 * sizeof *data); /* scale, shift, mean 0, variance 0 */
  const int64_t dims[2] = {2, channels};
  const clv__dnn_layout *pair = clv__dnn_layout_dense(arena, CLV_F32, 2, dims),
                        *single = clv__dnn_layout_dense(arena, CLV_F32, 1, &channels);
  if (layout == NULL || data == NULL || pair == NULL || single == NULL) return clv__error_memory(error, 0);
  for (int64_t c = 0; c < channels; ++c) {
    data[c] = node->scale[c];
    data[channels + c] = node->bias[c];
    data[2 * channels + c] = 0.0f;
    data[3 * channels + c] = 0.0f;
  }
  clv__cpu_operand extra[3] = {{.id = CLV__DNN_WEIGHTS, .layout = pair},
                               {.id = CLV__DNN_MEAN, .layout = single},
                               {.id = CLV__DNN_VARIANCE, .layout = single}};
  for (int i = 0; i < 3; ++i) {
    float *at = data + (i == 0 ? 0 : (i + 1) * channels);
    CLV__TRY(clv__cpu_slot_constant(variant, at, (size_t)channels * sizeof *at, &extra[i].slot, error));
  }
  clv__dnn_primitive *primitive;
  const clv_status status = clv__dnn_affine_create(variant->device->dnn, layout, node->post_count > 0, arena, &primitive, error);
  if (status != CLV_OK) return clv__cpu_refused(status, taken);
  return emit(variant, node, layout, layout, primitive, extra, 3, true, error);
}

clv_status clv__cpu_lower_layer_norm(clv__cpu_variant *variant, clv__cpu_variant_node *node, bool *taken, clv_error *error) {
  const clv_tensor *x = &variant->values[node->inputs[0]].type;
  const int64_t extent = x->dims[x->rank - 1];
  const int64_t dims[2] = {clv__dims_product(x, 0, x->rank - 1), extent}, pair_dims[2] = {2, extent};
  const clv_dtype dtype = clv__cpu_form_dtype(variant, node->inputs[0]);
  const clv__dnn_layout *layout = clv__dnn_layout_dense(&variant->arena, dtype, 2, dims);
  const clv__dnn_layout *form = clv__cpu_form_dense(variant, node->inputs[0], dtype);
  clv__cpu_operand extra = {.id = CLV__DNN_WEIGHTS, .layout = clv__dnn_layout_dense(&variant->arena, CLV_F32, 2, pair_dims)};
  float *data = clv__arena_allocate_data(&variant->arena, (size_t)extent * 2 * sizeof *data);
  if (layout == NULL || form == NULL || extra.layout == NULL || data == NULL) return clv__error_memory(error, 0);
  void *scale, *shift = NULL;
  CLV__TRY(clv__cpu_known(variant, node->inputs[1], &scale, error));
  if (clv__cpu_input(variant, node, 2) != NULL) CLV__TRY(clv__cpu_known(variant, node->inputs[2], &shift, error));
  memcpy(data, scale, (size_t)extent * sizeof *data);
  memset(data + extent, 0, (size_t)extent * sizeof *data);
  if (shift != NULL) memcpy(data + extent, shift, (size_t)extent * sizeof *data);
  CLV__TRY(clv__cpu_slot_constant(variant, data, (size_t)extent * 2 * sizeof *data, &extra.slot, error));
  clv__dnn_primitive *primitive;
  const float epsilon = clv__attribute_float(node->source->attributes, "epsilon", 1e-5f);
  const clv_status status = clv__dnn_layer_norm_create(variant->device->dnn, layout, epsilon, &variant->arena, &primitive, error);
  if (status != CLV_OK) return clv__cpu_refused(status, taken);
  return emit(variant, node, form, layout, primitive, &extra, 1, true, error);
}

clv_status clv__cpu_lower_lrn(clv__cpu_variant *variant, clv__cpu_variant_node *node, bool *taken, clv_error *error) {
  const clv__attributes attributes = node->source->attributes;
  const clv__dnn_layout *layout = clv__cpu_form_layout(variant, node->inputs[0]);
  if (layout == NULL) return clv__error_memory(error, 0);
  clv__dnn_primitive *primitive;
  const clv_status status =
      clv__dnn_lrn_create(variant->device->dnn, layout, clv__attribute_int(attributes, "size", 1),
                          clv__attribute_float(attributes, "alpha", 1e-4f), clv__attribute_float(attributes, "beta", 0.75f),
                          clv__attribute_float(attributes, "bias", 1.0f), &variant->arena, &primitive, error);
  if (status != CLV_OK) return clv__cpu_refused(status, taken);
  return emit(variant, node, layout, layout, primitive, NULL, 0, false, error);
}

/* Uses the portable kernel, because oneDNN's softmax turns a row with a NaN into zeros. The kernel reads and writes the dtypes
 * that the values are stored in. */
clv_status clv__cpu_lower_softmax(clv__cpu_variant *variant, clv__cpu_variant_node *node, bool *taken, clv_error *error) {
  const clv_dtype dtypes[2] = {clv__cpu_form_dtype(variant, node->inputs[0]), variant->values[node->outputs[0]].made};
  const clv__dnn_layout *from = clv__cpu_form_dense(variant, node->inputs[0], dtypes[0]),
                        *to = clv__cpu_form_dense(variant, node->outputs[0], dtypes[1]);
  uint32_t slots[2];
  *taken = true;
  if (from == NULL || to == NULL) return clv__error_memory(error, 0);
  CLV__TRY(clv__cpu_form_get(variant, node->inputs[0], from, &slots[0], error));
  CLV__TRY(clv__cpu_form_make(variant, node->outputs[0], to, &slots[1], error));
  clv__cpu_step *step = clv__cpu_step_new(variant, CLV__CPU_STEP_KERNEL, node->source, node->source->op, 2);
  if (step == NULL) return clv__error_memory(error, sizeof *step);
  clv__cpu_step_input(step, 0, slots[0], NULL);
  clv__cpu_step_output(step, 0, slots[1], NULL);
  for (int i = 0; i < 2; ++i) {
    step->operands[i].type = variant->values[i == 0 ? node->inputs[0] : node->outputs[0]].type;
    step->operands[i].type.dtype = dtypes[i];
    step->operands[i].type.data = NULL;
  }
  step->may_overlap = dtypes[0] == dtypes[1];
  return clv__cpu_kernel_scratch(variant, step, error);
}

/* ---- Two inputs. ---- */

/* The layout of `type` extended to `rank` dims, with ones in front. */
static const clv__dnn_layout *widened(clv__cpu_variant *variant, const clv_tensor *type, clv_dtype dtype, int32_t rank) {
  int64_t dims[CLV_MAX_RANK];
  for (int32_t i = 0; i < rank; ++i) dims[i] = i < rank - type->rank ? 1 : type->dims[i - (rank - type->rank)];
  return clv__dnn_layout_dense(&variant->arena, dtype, rank, dims);
}

/* Sets row-major layouts for a node whose first operand is not stored in f32. The result gets the dtype of the first operand; the
 * second operand keeps its own. */
static bool dense_forms(clv__cpu_variant *variant, const clv__cpu_variant_node *node, const clv_tensor *const types[3],
                        const clv__dnn_layout *forms[3], const clv__dnn_layout *layouts[3]) {
  const clv_dtype dtype = clv__dnn_layout_dtype(forms[0]), second = clv__cpu_form_dtype(variant, node->inputs[1]);
  forms[1] = clv__cpu_form_dense(variant, node->inputs[1], second);
  for (int i = 0; i < 3; ++i) layouts[i] = widened(variant, types[i], i == 1 ? second : dtype, types[0]->rank);
  return forms[1] != NULL && layouts[0] != NULL && layouts[1] != NULL && layouts[2] != NULL;
}

/* Whether the layout's last block of channels is partly padding. */
static bool has_filling(const clv__cpu_variant *variant, const clv__cpu_variant_node *node, const clv__dnn_layout *layout) {
  return clv__dnn_layout_memory_count(layout) != count_of(variant, node->outputs[0]);
}

static bool binary_forms(clv__cpu_variant *variant, const clv__cpu_variant_node *node, const clv__dnn_layout *forms[3],
                         const clv__dnn_layout *layouts[3]) {
  const clv_tensor *types[3] = {&variant->values[node->inputs[0]].type, &variant->values[node->inputs[1]].type,
                                &variant->values[node->outputs[0]].type};
  for (int i = 0; i < 3; ++i) forms[i] = NULL;
  if (clv__tensor_same_type(types[0], types[1])) {
    const uint32_t leader = node->inputs[clv__cpu_form_is_blocked(variant, node->inputs[0]) ? 0 : 1];
    if (clv__cpu_form_is_blocked(variant, leader)) {
      for (int i = 0; i < 3; ++i) forms[i] = layouts[i] = clv__cpu_form_layout(variant, leader);
      return layouts[0] != NULL;
    }
    const int64_t count = count_of(variant, node->outputs[0]);
    for (int i = 0; i < 3; ++i) layouts[i] = clv__dnn_layout_dense(&variant->arena, CLV_F32, 1, &count);
    /* Small tensors are left to the portable kernels, unless a fused post cannot run as a separate step: oneDNN must then apply
     * it. */
    const bool apart = node->post_count < 2 || clv__cpu_post_is_elementwise(&node->posts[1]);
    return (count >= SMALL_COUNT || !apart) && layouts[0] != NULL;
  }
  /* oneDNN broadcasts only the second operand, to the first. Either both have the blocks of the first, or both are row-major. */
  if (!clv__tensor_same_type(types[0], types[2]) || types[1]->rank > types[0]->rank) return false;
  if (clv__cpu_form_is_blocked(variant, node->inputs[0])) {
    forms[0] = forms[2] = layouts[0] = layouts[2] = clv__cpu_form_layout(variant, node->inputs[0]);
    if (layouts[0] != NULL && clv__dnn_layout_is_dense(layouts[0])) return dense_forms(variant, node, types, forms, layouts);
    if (types[1]->rank != types[0]->rank) return false;
    /* If one channel is broadcast to many and the last block is not full, oneDNN 2.6 uses the wrong elements. */
    if (layouts[0] != NULL && types[1]->dims[1] == 1 && has_filling(variant, node, layouts[0])) return false;
    layouts[1] = clv__dnn_layout_rechannel(&variant->arena, layouts[0], types[1]->dims);
    forms[1] = layouts[1];
    return layouts[0] != NULL && layouts[1] != NULL;
  }
  if (count_of(variant, node->outputs[0]) < SMALL_COUNT) return false;
  for (int i = 0; i < 3; ++i) layouts[i] = widened(variant, types[i], CLV_F32, types[0]->rank);
  return layouts[0] != NULL && layouts[1] != NULL && layouts[2] != NULL;
}

clv_status clv__cpu_lower_binary(clv__cpu_variant *variant, clv__cpu_variant_node *node, bool *taken, clv_error *error) {
  const clv__dnn_layout *forms[3], *layouts[3];
  *taken = binary_forms(variant, node, forms, layouts);
  if (!*taken) return CLV_OK;
  /* If the last block is not full, oneDNN 2.6 stores its result without the fused function, or applies a wrong function. */
  const bool apart = node->post_count > 1 && has_filling(variant, node, layouts[0]);
  clv__dnn_post posts[1] = {{.kind = CLV__DNN_POST_UNARY}};
  if (node->post_count > 1) {
    posts[0].algorithm = node->posts[1].algorithm;
    posts[0].alpha = node->posts[1].alpha;
    posts[0].beta = node->posts[1].beta;
  }
  clv__dnn_primitive *primitive;
  clv_status status =
      clv__dnn_binary_create(variant->device->dnn, (clv__dnn_binary)node->posts[0].algorithm, layouts[0], layouts[1], layouts[2],
                             posts, apart ? 0 : node->post_count - 1, &variant->arena, &primitive, error);
  if (status != CLV_OK) return clv__cpu_refused(status, taken);
  uint32_t second, made;
  status = clv__cpu_form_get(variant, node->inputs[1], forms[1], &second, error);
  if (status != CLV_OK) {
    clv__dnn_primitive_release(primitive);
    return status;
  }
  const clv__cpu_operand extra = {.id = CLV__DNN_SOURCE_1, .slot = second, .layout = layouts[1]};
  CLV__TRY(emit(variant, node, forms[0], layouts[0], primitive, &extra, 1, true, error));
  if (!apart) return CLV_OK;
  CLV__TRY(clv__cpu_form_get(variant, node->outputs[0], forms[2], &made, error));
  return clv__cpu_lower_post(variant, node, &node->posts[1], layouts[2], made, error);
}
