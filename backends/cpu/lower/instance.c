/* InstanceNormalization of one image, as a batch normalisation that computes its own statistics. The input may have any
 * layout. */
#include "lower.h"

clv_status clv__cpu_lower_instance(clv__cpu_variant *variant, clv__cpu_variant_node *node, bool *taken, clv_error *error) {
  const float epsilon = clv__attribute_float(node->source->attributes, "epsilon", 1e-5f);
  *taken = epsilon > 0; /* otherwise the padding channels of a layout would compute 0 / 0 */
  if (!*taken) return CLV_OK;
  const int64_t channels = variant->values[node->outputs[0]].type.dims[1];
  const size_t row_bytes = (size_t)channels * sizeof(float);
  const int64_t dims[2] = {2, channels};
  const clv__dnn_layout *layout = clv__cpu_form_layout(variant, node->inputs[0]);
  const clv__dnn_layout *pair = clv__dnn_layout_dense(&variant->arena, CLV_F32, 2, dims);
  float *data = clv__arena_allocate_data(&variant->arena, 2 * row_bytes);
  if (layout == NULL || pair == NULL || data == NULL) return clv__error_memory(error, 2 * row_bytes);
  void *scale, *shift;
  CLV__TRY(clv__cpu_known(variant, node->inputs[1], &scale, error));
  CLV__TRY(clv__cpu_known(variant, node->inputs[2], &shift, error));
  memcpy(data, scale, row_bytes);
  memcpy(data + channels, shift, row_bytes);
  clv__dnn_primitive *primitive;
  clv_status status = clv__dnn_instance_norm_create(variant->device->dnn, layout, epsilon, node->post_count > 0, &variant->arena,
                                                    &primitive, error);
  if (status != CLV_OK) return clv__cpu_refused(status, taken);
  uint32_t from, to, weights;
  status = clv__cpu_form_get(variant, node->inputs[0], layout, &from, error);
  if (status == CLV_OK) status = clv__cpu_slot_constant(variant, data, 2 * row_bytes, &weights, error);
  if (status == CLV_OK) status = clv__cpu_form_make(variant, node->outputs[0], layout, &to, error);
  if (status != CLV_OK) {
    clv__dnn_primitive_release(primitive);
    return status;
  }
  clv__cpu_step *step;
  CLV__TRY(clv__cpu_step_primitive(variant, node, node->source->op, primitive, 3, &step, error));
  clv__cpu_step_input(step, CLV__DNN_SOURCE, from, layout);
  clv__cpu_step_input(step, CLV__DNN_WEIGHTS, weights, pair);
  clv__cpu_step_output(step, CLV__DNN_DESTINATION, to, layout);
  step->may_overlap = true;
  return CLV_OK;
}
