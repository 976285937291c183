/* Resize in the two ways that oneDNN supports: linear at pixel centres, and nearest by whole factors, for which all accepted
 * rounding modes agree. The layout is unchanged. */
#include "backends/cpu/passes/recognise.h"
#include "lower.h"

static bool is_one_of(const clv__cpu_node *node, const char *name, const char *fallback, const char *const *accepted) {
  for (; *accepted != NULL; ++accepted) {
    if (clv__attribute_is(node->attributes, name, *accepted, strcmp(fallback, *accepted) == 0)) return true;
  }
  return false;
}

/* Whether the node's scales, if it has any, match the factors that oneDNN derives from the shapes. */
static bool scales_follow(const clv_tensor *scales, const clv_tensor *from, const clv_tensor *to) {
  size_t count;
  if (!clv__tensor_count(scales, &count)) return false;
  if (count == 0) return true;
  if (scales->data == NULL || scales->dtype != CLV_F32 || count != (size_t)from->rank) return false;
  for (int32_t i = 0; i < from->rank; ++i) {
    float scale;
    memcpy(&scale, (const float *)scales->data + i, sizeof scale);
    if ((double)scale * (double)from->dims[i] != (double)to->dims[i]) return false;
  }
  return true;
}

bool clv__cpu_is_resize(clv__cpu_variant *variant, clv__cpu_variant_node *node) {
  static const char *const linear[] = {"linear", NULL}, *const nearest[] = {"nearest", NULL};
  static const char *const centres[] = {"half_pixel", NULL}, *const edges[] = {"asymmetric", NULL};
  static const char *const floors[] = {"floor", NULL}, *const halves[] = {"round_prefer_floor", "round_prefer_ceil", NULL};
  static const char *const stretch[] = {"stretch", NULL};
  const clv__cpu_node *source = node->source;
  const clv_tensor *from = &variant->values[node->inputs[0]].type, *to = &clv__cpu_output(variant, node)->type;
  node->kind = CLV__CPU_RESIZE;
  if (source->opset < 11 || !clv__cpu_is_f32(from) || !clv__cpu_is_f32(to) || from->rank < 3 || from->rank > 5) return false;
  if (from->dims[0] != to->dims[0] || from->dims[1] != to->dims[1]) return false;
  size_t axis_count;
  if (clv__attribute_ints(source->attributes, "axes", &axis_count) != NULL ||
      clv__attribute_int(source->attributes, "antialias", 0) != 0 ||
      !is_one_of(source, "keep_aspect_ratio_policy", "stretch", stretch)) {
    return false;
  }
  const clv__cpu_variant_value *scales = clv__cpu_input(variant, node, 2);
  if (scales != NULL && !scales_follow(&scales->type, from, to)) return false;
  node->groups = is_one_of(source, "mode", "nearest", linear);
  const bool at_centres = is_one_of(source, "coordinate_transformation_mode", "half_pixel", centres);
  if (node->groups != 0) return at_centres;
  if (!is_one_of(source, "mode", "nearest", nearest)) return false;
  for (int32_t i = 2; i < from->rank; ++i) {
    if (to->dims[i] % from->dims[i] != 0) return false;
  }
  return at_centres ? is_one_of(source, "nearest_mode", "round_prefer_floor", halves)
                    : is_one_of(source, "coordinate_transformation_mode", "half_pixel", edges) &&
                          is_one_of(source, "nearest_mode", "round_prefer_floor", floors);
}

clv_status clv__cpu_lower_resize(clv__cpu_variant *variant, clv__cpu_variant_node *node, bool *taken, clv_error *error) {
  const clv_tensor *out = &variant->values[node->outputs[0]].type;
  const clv__dnn_layout *layout = clv__cpu_form_layout(variant, node->inputs[0]);
  if (layout == NULL) return clv__error_memory(error, 0);
  clv__dnn_primitive *primitive;
  clv_status status = clv__dnn_resize_create(variant->device->dnn, layout, node->groups != 0, out->rank, out->dims,
                                             &variant->arena, &primitive, error);
  if (status != CLV_OK) return clv__cpu_refused(status, taken);
  uint32_t from, to;
  status = clv__cpu_form_get(variant, node->inputs[0], layout, &from, error);
  if (status == CLV_OK) status = clv__cpu_form_make(variant, node->outputs[0], primitive->destination, &to, error);
  if (status != CLV_OK) {
    clv__dnn_primitive_release(primitive);
    return status;
  }
  clv__cpu_step *step;
  CLV__TRY(clv__cpu_step_primitive(variant, node, node->source->op, primitive, 2, &step, error));
  clv__cpu_step_input(step, CLV__DNN_SOURCE, from, layout);
  clv__cpu_step_output(step, CLV__DNN_DESTINATION, to, primitive->destination);
  return CLV_OK;
}
