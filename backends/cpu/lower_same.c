/* Steps whose output has the layout of their input: elementwise functions, scale and shift, normalisations, softmax. */
#include "small.h"

/* Row-major tensors below this many elements are left to the portable kernels: a primitive's call costs more than the work. */
#define SMALL_COUNT 2048
#define SMALL_COUNT_COSTLY 128 /* of exponentials and their kin */

static int64_t count_of(const clv__cpu_plan *plan, uint32_t value) {
  return clv__dims_product(&plan->values[value].type, 0, plan->values[value].type.rank);
}

/* How input 0 and output 0 lie (NULL: row-major), and how the primitive sees them. */
typedef struct sides {
  const clv__dnn_layout *from_form, *to_form, *from, *to;
} sides;

/* Emits `primitive` from input 0 to output 0; `extra` are weights and friends. */
static clv_status emit_between(clv__cpu_plan *plan, const clv__cpu_plan_node *node, const sides *between,
                               clv__dnn_primitive *primitive, const clv__cpu_operand *extra, uint32_t extra_count,
                               bool may_overlap, clv_error *error) {
  uint32_t from, to;
  clv_status status = clv__cpu_form_get(plan, node->inputs[0], between->from_form, &from, error);
  if (status == CLV_OK) status = clv__cpu_form_make(plan, node->outputs[0], between->to_form, &to, error);
  if (status != CLV_OK) {
    clv__dnn_primitive_release(primitive);
    return status;
  }
  clv__cpu_step *step;
  CLV__TRY(clv__cpu_step_primitive(plan, node, node->source->op, primitive, 2 + extra_count, &step, error));
  clv__cpu_step_input(step, CLV__DNN_SOURCE, from, between->from);
  for (uint32_t i = 0; i < extra_count; ++i) clv__cpu_step_input(step, extra[i].id, extra[i].slot, extra[i].layout);
  clv__cpu_step_output(step, CLV__DNN_DESTINATION, to, between->to);
  step->may_overlap = may_overlap;
  step->serial = count_of(plan, node->outputs[0]) <= CLV__CPU_SERIAL_COUNT;
  return CLV_OK;
}

/* Both sides alike. */
static clv_status emit(clv__cpu_plan *plan, const clv__cpu_plan_node *node, const clv__dnn_layout *form,
                       const clv__dnn_layout *layout, clv__dnn_primitive *primitive, const clv__cpu_operand *extra,
                       uint32_t extra_count, bool may_overlap, clv_error *error) {
  const sides between = {form, form, layout, layout};
  return emit_between(plan, node, &between, primitive, extra, extra_count, may_overlap, error);
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

/* oneDNN compares with the bounds, and what does not compare becomes one of them. */
static bool loses_nan(const clv__cpu_post *post) {
  return post->algorithm == CLV__DNN_CLIP || (post->algorithm == CLV__DNN_RELU && post->alpha == 0.0f);
}

clv_status clv__cpu_lower_unary(clv__cpu_plan *plan, clv__cpu_plan_node *node, bool *taken, clv_error *error) {
  const bool blocked = clv__cpu_form_is_blocked(plan, node->inputs[0]);
  const int64_t count = count_of(plan, node->inputs[0]);
  const bool is_much = count >= (is_costly(node->posts[0].algorithm) ? SMALL_COUNT_COSTLY : SMALL_COUNT);
  *taken = (blocked || node->composed || is_much) && !loses_nan(&node->posts[0]);
  if (!*taken) return CLV_OK;
  const clv__dnn_layout *form = blocked ? clv__cpu_form_layout(plan, node->inputs[0]) : NULL;
  const clv__dnn_layout *layout = blocked ? form : clv__dnn_layout_dense(&plan->arena, CLV_F32, 1, &count);
  if (layout == NULL) return clv__error_memory(error, 0);
  const clv__cpu_post *post = &node->posts[0];
  clv__dnn_primitive *primitive;
  const clv_status status = clv__dnn_unary_create(plan->device->dnn, (clv__dnn_unary)post->algorithm, post->alpha, post->beta,
                                                  layout, &plan->arena, &primitive, error);
  if (status != CLV_OK) return clv__cpu_refused(status, taken);
  return emit(plan, node, form, layout, primitive, NULL, 0, true, error);
}

clv_status clv__cpu_lower_post(clv__cpu_plan *plan, const clv__cpu_plan_node *node, const clv__cpu_post *post,
                               const clv__dnn_layout *layout, uint32_t slot, clv_error *error) {
  clv__dnn_primitive *primitive;
  clv__cpu_step *step;
  CLV__TRY(clv__dnn_unary_create(plan->device->dnn, (clv__dnn_unary)post->algorithm, post->alpha, post->beta, layout,
                                 &plan->arena, &primitive, error));
  CLV__TRY(clv__cpu_step_primitive(plan, node, "activation", primitive, 2, &step, error));
  clv__cpu_step_input(step, CLV__DNN_SOURCE, slot, layout);
  clv__cpu_step_output(step, CLV__DNN_DESTINATION, slot, layout);
  step->serial = count_of(plan, node->outputs[0]) <= CLV__CPU_SERIAL_COUNT;
  return CLV_OK;
}

clv_status clv__cpu_lower_affine(clv__cpu_plan *plan, clv__cpu_plan_node *node, bool *taken, clv_error *error) {
  const clv__dnn_layout *layout = clv__cpu_form_layout(plan, node->inputs[0]);
  const int64_t channels = plan->values[node->outputs[0]].type.dims[1];
  clv__arena *arena = &plan->arena;
  float *data = clv__arena_allocate_data(arena, (size_t)channels * 4 * sizeof *data); /* scale, shift, mean 0, variance 1 */
  const int64_t dims[2] = {2, channels};
  const clv__dnn_layout *pair = clv__dnn_layout_dense(arena, CLV_F32, 2, dims),
                        *single = clv__dnn_layout_dense(arena, CLV_F32, 1, &channels);
  if (layout == NULL || data == NULL || pair == NULL || single == NULL) return clv__error_memory(error, 0);
  for (int64_t c = 0; c < channels; ++c) {
    data[c] = node->scale[c];
    data[channels + c] = node->bias[c];
    data[2 * channels + c] = 0.0f;
    data[3 * channels + c] = 1.0f;
  }
  clv__cpu_operand extra[3] = {{.id = CLV__DNN_WEIGHTS, .layout = pair},
                               {.id = CLV__DNN_MEAN, .layout = single},
                               {.id = CLV__DNN_VARIANCE, .layout = single}};
  for (int i = 0; i < 3; ++i) {
    float *at = data + (i == 0 ? 0 : (i + 1) * channels);
    CLV__TRY(clv__cpu_slot_constant(plan, at, (size_t)channels * sizeof *at, &extra[i].slot, error));
  }
  clv__dnn_primitive *primitive;
  const clv_status status = clv__dnn_affine_create(plan->device->dnn, layout, node->post_count > 0, arena, &primitive, error);
  if (status != CLV_OK) return clv__cpu_refused(status, taken);
  return emit(plan, node, layout, layout, primitive, extra, 3, true, error);
}

clv_status clv__cpu_lower_layer_norm(clv__cpu_plan *plan, clv__cpu_plan_node *node, bool *taken, clv_error *error) {
  const clv_tensor *x = &plan->values[node->inputs[0]].type;
  const int64_t extent = x->dims[x->rank - 1];
  const int64_t dims[2] = {clv__dims_product(x, 0, x->rank - 1), extent}, pair_dims[2] = {2, extent};
  const clv_dtype dtype = clv__cpu_form_dtype(plan, node->inputs[0]);
  const clv__dnn_layout *layout = clv__dnn_layout_dense(&plan->arena, dtype, 2, dims);
  const clv__dnn_layout *form = clv__cpu_form_dense(plan, node->inputs[0], dtype);
  clv__cpu_operand extra = {.id = CLV__DNN_WEIGHTS, .layout = clv__dnn_layout_dense(&plan->arena, CLV_F32, 2, pair_dims)};
  float *data = clv__arena_allocate_data(&plan->arena, (size_t)extent * 2 * sizeof *data);
  if (layout == NULL || form == NULL || extra.layout == NULL || data == NULL) return clv__error_memory(error, 0);
  void *scale, *shift = NULL;
  CLV__TRY(clv__cpu_known(plan, node->inputs[1], &scale, error));
  if (clv__cpu_input(plan, node, 2) != NULL) CLV__TRY(clv__cpu_known(plan, node->inputs[2], &shift, error));
  memcpy(data, scale, (size_t)extent * sizeof *data);
  memset(data + extent, 0, (size_t)extent * sizeof *data);
  if (shift != NULL) memcpy(data + extent, shift, (size_t)extent * sizeof *data);
  CLV__TRY(clv__cpu_slot_constant(plan, data, (size_t)extent * 2 * sizeof *data, &extra.slot, error));
  clv__dnn_primitive *primitive;
  const float epsilon = clv__attribute_float(node->source->attributes, "epsilon", 1e-5f);
  const clv_status status = clv__dnn_layer_norm_create(plan->device->dnn, layout, epsilon, &plan->arena, &primitive, error);
  if (status != CLV_OK) return clv__cpu_refused(status, taken);
  return emit(plan, node, form, layout, primitive, &extra, 1, true, error);
}

clv_status clv__cpu_lower_lrn(clv__cpu_plan *plan, clv__cpu_plan_node *node, bool *taken, clv_error *error) {
  const clv__attributes attributes = node->source->attributes;
  const clv__dnn_layout *layout = clv__cpu_form_layout(plan, node->inputs[0]);
  if (layout == NULL) return clv__error_memory(error, 0);
  clv__dnn_primitive *primitive;
  const clv_status status =
      clv__dnn_lrn_create(plan->device->dnn, layout, clv__attribute_int(attributes, "size", 1),
                          clv__attribute_float(attributes, "alpha", 1e-4f), clv__attribute_float(attributes, "beta", 0.75f),
                          clv__attribute_float(attributes, "bias", 1.0f), &plan->arena, &primitive, error);
  if (status != CLV_OK) return clv__cpu_refused(status, taken);
  return emit(plan, node, layout, layout, primitive, NULL, 0, false, error);
}

clv_status clv__cpu_lower_softmax(clv__cpu_plan *plan, clv__cpu_plan_node *node, bool *taken, clv_error *error) {
  const clv_tensor *x = &plan->values[node->inputs[0]].type;
  const bool coerced = node->source->opset < 13; /* older versions: everything from the axis on is one axis */
  int64_t axis = clv__attribute_int(node->source->attributes, "axis", coerced ? 1 : -1);
  if (axis < 0) axis += x->rank;
  *taken = axis >= 0 && axis < x->rank;
  if (!*taken) return CLV_OK;
  const int64_t dims[3] = {clv__dims_product(x, 0, (int32_t)axis),
                           coerced ? clv__dims_product(x, (int32_t)axis, x->rank) : x->dims[axis],
                           coerced ? 1 : clv__dims_product(x, (int32_t)axis + 1, x->rank)};
  const bool logarithm = strcmp(node->source->op, "LogSoftmax") == 0;
  *taken = !(logarithm && dims[1] == 1); /* where all is 0 by definition, oneDNN says 1e-6 */
  if (!*taken) return CLV_OK;
  const clv_dtype from = clv__cpu_form_dtype(plan, node->inputs[0]), to = plan->values[node->outputs[0]].made;
  const int32_t rank = dims[2] == 1 ? 2 : 3;
  const sides between = {clv__cpu_form_dense(plan, node->inputs[0], from), clv__cpu_form_dense(plan, node->outputs[0], to),
                         clv__dnn_layout_dense(&plan->arena, from, rank, dims),
                         clv__dnn_layout_dense(&plan->arena, to, rank, dims)};
  if (between.from_form == NULL || between.to_form == NULL || between.from == NULL || between.to == NULL) {
    return clv__error_memory(error, 0);
  }
  clv__dnn_primitive *primitive;
  const clv_status status =
      clv__dnn_softmax_create(plan->device->dnn, between.from, between.to, 1, logarithm, &plan->arena, &primitive, error);
  if (status != CLV_OK) return clv__cpu_refused(status, taken);
  return emit_between(plan, node, &between, primitive, NULL, 0, from == to, error);
}

/* ---- Two inputs. ---- */

/* `type`'s dims as `rank` dims, with ones in front. */
static const clv__dnn_layout *widened(clv__cpu_plan *plan, const clv_tensor *type, clv_dtype dtype, int32_t rank) {
  int64_t dims[CLV_MAX_RANK];
  for (int32_t i = 0; i < rank; ++i) dims[i] = i < rank - type->rank ? 1 : type->dims[i - (rank - type->rank)];
  return clv__dnn_layout_dense(&plan->arena, dtype, rank, dims);
}

/* Row-major in another dtype than f32, the second operand in whichever it has. */
static bool dense_forms(clv__cpu_plan *plan, const clv__cpu_plan_node *node, const clv_tensor *const types[3],
                        const clv__dnn_layout *forms[3], const clv__dnn_layout *layouts[3]) {
  const clv_dtype dtype = clv__dnn_layout_dtype(forms[0]), second = clv__cpu_form_dtype(plan, node->inputs[1]);
  forms[1] = clv__cpu_form_dense(plan, node->inputs[1], second);
  for (int i = 0; i < 3; ++i) layouts[i] = widened(plan, types[i], i == 1 ? second : dtype, types[0]->rank);
  return forms[1] != NULL && layouts[0] != NULL && layouts[1] != NULL && layouts[2] != NULL;
}

static bool binary_forms(clv__cpu_plan *plan, const clv__cpu_plan_node *node, const clv__dnn_layout *forms[3],
                         const clv__dnn_layout *layouts[3]) {
  const clv_tensor *types[3] = {&plan->values[node->inputs[0]].type, &plan->values[node->inputs[1]].type,
                                &plan->values[node->outputs[0]].type};
  for (int i = 0; i < 3; ++i) forms[i] = NULL;
  if (clv__tensor_same_type(types[0], types[1])) {
    const uint32_t leader = node->inputs[clv__cpu_form_is_blocked(plan, node->inputs[0]) ? 0 : 1];
    if (clv__cpu_form_is_blocked(plan, leader)) {
      for (int i = 0; i < 3; ++i) forms[i] = layouts[i] = clv__cpu_form_layout(plan, leader);
      return layouts[0] != NULL;
    }
    const int64_t count = count_of(plan, node->outputs[0]);
    for (int i = 0; i < 3; ++i) layouts[i] = clv__dnn_layout_dense(&plan->arena, CLV_F32, 1, &count);
    const bool apart = node->post_count < 2 || clv__cpu_post_is_elementwise(&node->posts[1]); /* else it has no kernel */
    return (count >= SMALL_COUNT || !apart) && layouts[0] != NULL;
  }
  /* Broadcasting of the second into the first alone, which oneDNN has: blocked against per-channel or scalar, or row-major. */
  if (!clv__tensor_same_type(types[0], types[2]) || types[1]->rank > types[0]->rank) return false;
  if (clv__cpu_form_is_blocked(plan, node->inputs[0])) {
    forms[0] = forms[2] = layouts[0] = layouts[2] = clv__cpu_form_layout(plan, node->inputs[0]);
    if (layouts[0] != NULL && clv__dnn_layout_is_dense(layouts[0])) return dense_forms(plan, node, types, forms, layouts);
    if (types[1]->rank != types[0]->rank) return false;
    layouts[1] = clv__dnn_layout_rechannel(&plan->arena, layouts[0], types[1]->dims);
    forms[1] = layouts[1];
    return layouts[0] != NULL && layouts[1] != NULL;
  }
  if (count_of(plan, node->outputs[0]) < SMALL_COUNT) return false;
  for (int i = 0; i < 3; ++i) layouts[i] = widened(plan, types[i], CLV_F32, types[0]->rank);
  return layouts[0] != NULL && layouts[1] != NULL && layouts[2] != NULL;
}

clv_status clv__cpu_lower_binary(clv__cpu_plan *plan, clv__cpu_plan_node *node, bool *taken, clv_error *error) {
  const clv__dnn_layout *forms[3], *layouts[3];
  *taken = binary_forms(plan, node, forms, layouts);
  if (!*taken) return CLV_OK;
  clv__dnn_post posts[1] = {{.kind = CLV__DNN_POST_UNARY}};
  if (node->post_count > 1) {
    posts[0].algorithm = node->posts[1].algorithm;
    posts[0].alpha = node->posts[1].alpha;
    posts[0].beta = node->posts[1].beta;
  }
  clv__dnn_primitive *primitive;
  clv_status status = clv__dnn_binary_create(plan->device->dnn, (clv__dnn_binary)node->posts[0].algorithm, layouts[0], layouts[1],
                                             layouts[2], posts, node->post_count - 1, &plan->arena, &primitive, error);
  if (status != CLV_OK) return clv__cpu_refused(status, taken);
  uint32_t second;
  status = clv__cpu_form_get(plan, node->inputs[1], forms[1], &second, error);
  if (status != CLV_OK) {
    clv__dnn_primitive_release(primitive);
    return status;
  }
  const clv__cpu_operand extra = {.id = CLV__DNN_SOURCE_1, .slot = second, .layout = layouts[1]};
  return emit(plan, node, forms[0], layouts[0], primitive, &extra, 1, true, error);
}
