/* Lowers ConvTranspose with one group to oneDNN's deconvolution. */
#include "lower.h"
#include "window.h"

/* Returns false if there are several groups, or if padding would be negative (output_padding) or depends on the output's shape.
 */
static bool describe(const clv__cpu_variant *variant, const clv__cpu_variant_node *node, clv__dnn_convolution *spec) {
  const clv__attributes attributes = node->source->attributes;
  const clv_tensor *weights = &variant->values[node->inputs[1]].type;
  size_t count;
  memset(spec, 0, sizeof *spec);
  if (clv__attribute_int(attributes, "group", 1) != 1 || clv__attribute_ints(attributes, "output_shape", &count) != NULL ||
      !clv__attribute_is(attributes, "auto_pad", "NOTSET", true)) {
    return false;
  }
  spec->transposed = true;
  spec->source = variant->values[node->inputs[0]].type;
  spec->destination = variant->values[node->outputs[0]].type;
  spec->weights = *weights;
  if (node->product == CLV_BF16) {
    spec->source.dtype = spec->weights.dtype = CLV_BF16;
    spec->destination.dtype = variant->values[node->outputs[0]].made;
  }
  spec->weights.dims[0] = weights->dims[1];
  spec->weights.dims[1] = weights->dims[0];
  spec->window.count = weights->rank - 2;
  for (int32_t i = 0; i < spec->window.count; ++i) spec->window.kernel[i] = weights->dims[i + 2];
  clv__cpu_window_read(node->source, &spec->source, &spec->destination, &spec->window);
  for (int32_t i = 0; i < spec->window.count; ++i) {
    const int64_t extent = (spec->window.kernel[i] - 1) * spec->window.dilation[i] + 1;
    const int64_t whole = (spec->source.dims[i + 2] - 1) * spec->window.stride[i] + extent;
    spec->window.end[i] = whole - spec->window.begin[i] - spec->destination.dims[i + 2];
    if (spec->window.begin[i] < 0 || spec->window.end[i] < 0) return false;
  }
  return true;
}

static clv_status weights_slot(clv__cpu_variant *variant, const clv__cpu_variant_node *node, const clv__dnn_convolution *spec,
                               const clv__dnn_layout *wanted, uint32_t *slot, clv_error *error) {
  int64_t strides[CLV_MAX_RANK], taps = 1;
  for (int32_t i = spec->weights.rank - 1; i >= 2; --i) {
    strides[i] = taps;
    taps *= spec->weights.dims[i];
  }
  strides[0] = taps;
  strides[1] = taps * spec->weights.dims[0];
  const clv__cpu_packing packing = {
      .value = node->inputs[1],
      .from = clv__dnn_layout_strided(&variant->arena, variant->values[node->inputs[1]].type.dtype, spec->weights.rank,
                                      spec->weights.dims, strides),
      .arrangement = 16,
  };
  void *data;
  if (packing.from == NULL) return clv__error_memory(error, 0);
  CLV__TRY(clv__cpu_constant_packed(variant->constants, &packing, wanted, &data, error));
  return clv__cpu_slot_constant(variant, data, clv__dnn_layout_size_bytes(wanted), slot, error);
}

static clv_status emit(clv__cpu_variant *variant, const clv__cpu_variant_node *node, const clv__dnn_convolution *spec,
                       clv__dnn_primitive *primitive, clv_error *error) {
  uint32_t source, weights, bias = CLV__CPU_NONE, destination;
  const clv__dnn_layout *bias_layout = NULL;
  CLV__TRY(weights_slot(variant, node, spec, primitive->weights, &weights, error));
  if (spec->bias_count > 0) {
    bias_layout = clv__dnn_layout_dense(&variant->arena, CLV_F32, 1, &spec->bias_count);
    if (bias_layout == NULL) return clv__error_memory(error, 0);
    CLV__TRY(clv__cpu_form_get(variant, node->inputs[2], NULL, &bias, error));
  }
  CLV__TRY(clv__cpu_form_get(variant, node->inputs[0], primitive->source, &source, error));
  CLV__TRY(clv__cpu_form_make(variant, node->outputs[0], primitive->destination, &destination, error));
  clv__cpu_step *step = clv__cpu_step_new(variant, CLV__CPU_STEP_PRIMITIVE, node->source, node->source->op, 4);
  if (step == NULL) return clv__error_memory(error, sizeof *step);
  step->primitive = primitive;
  step->scratch_bytes = primitive->scratch_bytes;
  clv__cpu_step_input(step, CLV__DNN_SOURCE, source, primitive->source);
  clv__cpu_step_input(step, CLV__DNN_WEIGHTS, weights, primitive->weights);
  if (bias != CLV__CPU_NONE) clv__cpu_step_input(step, CLV__DNN_BIAS, bias, bias_layout);
  clv__cpu_step_output(step, CLV__DNN_DESTINATION, destination, primitive->destination);
  return CLV_OK;
}

clv_status clv__cpu_lower_deconvolution(clv__cpu_variant *variant, clv__cpu_variant_node *node, bool *taken, clv_error *error) {
  clv__dnn_convolution spec;
  clv__dnn_primitive *primitive;
  *taken = describe(variant, node, &spec);
  if (!*taken) return CLV_OK;
  if (clv__cpu_input(variant, node, 2) != NULL) spec.bias_count = spec.destination.dims[1];
  clv_status status = clv__dnn_convolution_create(variant->device->dnn, &spec, &variant->arena, &primitive, error);
  if (status == CLV_NOT_SUPPORTED && node->product == CLV_BF16) {
    node->product = CLV_F32;
    return clv__cpu_lower_deconvolution(variant, node, taken, error);
  }
  if (status != CLV_OK) return clv__cpu_refused(status, taken);
  status = emit(variant, node, &spec, primitive, error);
  if (status != CLV_OK) clv__dnn_primitive_release(primitive);
  return status;
}
