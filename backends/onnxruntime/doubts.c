/* Nodes for which a trial is not enough: ONNX Runtime accepts them, but then reports an error during execution, or computes a
 * result that differs from ONNX's specification. Each case was found with ONNX Runtime 1.31, by ONNX's own operator tests or by
 * `cleave check-backend`. */
#include <stdio.h>
#include <string.h>

#include "base/tensor/attribute.h"
#include "base/tensor/tensor.h"
#include "device.h"

typedef struct question {
  const clv_host *host;
  const clv_graph_view *graph;
  bool saturates; /* u8 times s8 saturates on this processor */
  clv_node_info node;
} question;

/* Reads an input of the node. Returns false if it is absent. Values captured from an outer graph do not matter, because no
 * operator in this file has a body. */
static bool get_input(const question *q, uint32_t index, clv_value_info *value) {
  *value = (clv_value_info){.struct_size = sizeof *value};
  if (index >= q->node.input_count || q->node.inputs[index] == CLV_NO_VALUE) return false;
  q->host->graph_value(q->graph, q->node.inputs[index], value);
  return true;
}

static bool has_output(const question *q, uint32_t index) {
  return index < q->node.output_count && q->node.outputs[index] != CLV_NO_VALUE;
}

static bool is_one_number(const clv_tensor *type) {
  return type->rank == 0 || (type->rank == 1 && type->dims[0] == 1);
}

static const char *doubt_attention(const question *q) {
  clv_value_info query, mask, other;
  bool has_mask = get_input(q, 3, &mask);
  if (has_mask && get_input(q, 6, &other)) return "attn_mask together with nonpad_kv_seqlen";
  if (has_output(q, 3)) return "output qk_matmul_output: masked values are wrong";
  if (get_input(q, 4, &other) && !has_output(q, 1)) return "past_key without present_key";
  if (!get_input(q, 0, &query) || query.type.rank < 2) return NULL;
  if (query.type.dims[query.type.rank - 2] == 0) return "a query sequence of length 0";
  if (query.type.dtype == CLV_F64) return "dtype f64: it is computed as f32";
  if (!has_mask || mask.type.rank == CLV_RANK_UNKNOWN) return NULL;
  if (mask.type.rank < 2) return "a mask of rank below 2";
  bool has_rows = mask.type.dims[mask.type.rank - 2] == query.type.dims[query.type.rank - 2];
  return has_rows ? NULL : "a mask not known to have a row per query";
}

static const char *doubt_rotation(const question *q) {
  clv_value_info positions;
  return get_input(q, 3, &positions) ? "input position_ids: ONNX Runtime rejects negative positions" : NULL;
}

static const char *doubt_convolution(const question *q) {
  clv__attributes attributes = {q->node.attributes, q->node.attribute_count};
  clv_value_info zero;
  if (get_input(q, 3, &zero) && !is_one_number(&zero.type)) return "a zero point of the weights not known to be one number";
  bool is_padded = !clv__attribute_is(attributes, "auto_pad", "NOTSET", true);
  size_t count;
  const int64_t *dilations = clv__attribute_ints(attributes, "dilations", &count);
  for (size_t i = 0; i < count && is_padded; ++i) {
    if (dilations[i] != 1) return "auto_pad with dilations";
  }
  return NULL;
}

static const char *doubt_product(const question *q) {
  clv_value_info zero;
  /* The inputs of QLinearMatMul begin with a, a's scale, a's zero point; those of MatMulInteger with a, b, a's zero point.
   * So input 2 is a's zero point in both. */
  bool is_scaled = strcmp(q->node.op, "QLinearMatMul") == 0;
  if (get_input(q, 2, &zero) && !is_one_number(&zero.type)) return "a zero point not known to be one number";
  if (is_scaled || !get_input(q, 0, &zero) || zero.type.rank < 1) return NULL;
  return zero.type.dims[zero.type.rank - 1] == 0 ? "an inner dimension of 0" : NULL;
}

/* Whether the convolution is depthwise, judged by the weights' shape. It then runs in a separate kernel, which multiplies 16-bit
 * numbers and does not saturate. */
static bool is_depthwise(const question *q, const clv_tensor *weights) {
  clv__attributes attributes = {q->node.attributes, q->node.attribute_count};
  return weights->rank > 1 && weights->dims[1] == 1 && clv__attribute_int(attributes, "group", 1) == weights->dims[0];
}

/* Rejects products of u8 and s8 that may saturate. No other combination of operators and dtypes saturates (see saturates.c).
 * ConvInteger multiplies the weights by the image, so its operands are swapped. The other operators multiply the first operand
 * by the second. */
static const char *doubt_saturation(const question *q) {
  const bool is_scaled = q->node.op[0] == 'Q', is_turned = strcmp(q->node.op, "ConvInteger") == 0;
  clv_value_info first, second;
  if (!q->saturates || !get_input(q, 0, &first) || !get_input(q, is_scaled ? 3 : 1, &second)) return NULL;
  if ((is_turned ? second : first).type.dtype != CLV_U8 || !clv__ort_may_saturate(is_turned ? &first : &second)) return NULL;
  if (strcmp(q->node.op, "QLinearConv") == 0 && is_depthwise(q, &second.type)) return NULL;
  return "products of u8 and s8 may saturate on a processor without VNNI";
}

static const char *doubt_recurrence(const question *q) {
  clv_value_info data;
  return get_input(q, 0, &data) && data.type.dtype == CLV_F64 ? "dtype f64: ONNX Runtime fails at run time" : NULL;
}

static const char *doubt_cache(const question *q) {
  clv_value_info places;
  return get_input(q, 2, &places) ? "input write_indices: ONNX Runtime rejects negative indices" : NULL;
}

static const char *doubt_grid(const question *q) {
  clv_value_info data;
  return get_input(q, 0, &data) && data.type.rank != 4 && data.type.rank != 5 ? "a rank not known to be 4 or 5" : NULL;
}

static const char *doubt_regions(const question *q) {
  clv__attributes attributes = {q->node.attributes, q->node.attribute_count};
  bool is_old = clv__attribute_is(attributes, "coordinate_transformation_mode", "output_half_pixel", q->node.opset < 16);
  return is_old ? NULL : "half_pixel: ONNX Runtime rejects regions that end before they start";
}

static const char *doubt_frames(const question *q) {
  clv_value_info given;
  return get_input(q, 2, &given) || get_input(q, 3, &given) ? NULL : "neither window nor frame_length is given";
}

static const char *doubt_transform(const question *q) {
  clv__attributes attributes = {q->node.attributes, q->node.attribute_count};
  bool is_back = clv__attribute_int(attributes, "inverse", 0) != 0 && clv__attribute_int(attributes, "onesided", 0) != 0;
  return is_back ? "an inverse transform of a one-sided spectrum: ONNX Runtime treats the other side as zeros" : NULL;
}

static const char *doubt_unpool(const question *q) {
  clv_value_info shape;
  return get_input(q, 2, &shape) ? "input output_shape: ONNX Runtime ignores it" : NULL;
}

static const char *doubt_reduction(const question *q) {
  clv_value_info data;
  return get_input(q, 0, &data) && data.type.dtype == CLV_BOOL ? "dtype bool: ONNX Runtime fails to reduce an empty axis" : NULL;
}

static const char *doubt_resize(const question *q) {
  clv__attributes attributes = {q->node.attributes, q->node.attribute_count};
  clv_value_info scales;
  bool by_scales = get_input(q, 2, &scales) && !(scales.type.rank == 1 && scales.type.dims[0] == 0);
  if (!by_scales || !clv__attribute_is(attributes, "coordinate_transformation_mode", "align_corners", false)) return NULL;
  return "align_corners with scales: the output size is rounded before coordinates are computed from it";
}

static const char *doubt_range(const question *q) {
  clv_value_info value;
  for (uint32_t i = 0; i < 3; ++i) {
    if (get_input(q, i, &value) && value.type.rank != 0) return "operands that are not known to be scalars";
  }
  return NULL;
}

static const char *doubt_shrink(const question *q) {
  clv_value_info data;
  return get_input(q, 0, &data) && data.type.dtype == CLV_F64 ? "dtype f64: it is computed as f32" : NULL;
}

static const char *doubt_group_norm(const question *q) {
  clv_value_info data;
  if (!get_input(q, 0, &data)) return NULL;
  for (int32_t i = 0; i < data.type.rank; ++i) {
    if (data.type.dims[i] == 0) return "a tensor without elements";
  }
  return data.type.dtype == CLV_F64 ? "dtype f64: it is computed as f32" : NULL;
}

static const char *doubt_not_4d(const question *q) {
  clv_value_info data;
  return get_input(q, 0, &data) && data.type.rank != 4 ? "a rank not known to be 4" : NULL;
}

/* Rejects a split into so many parts that the last ones are empty. */
static const char *doubt_split(const question *q) {
  clv__attributes attributes = {q->node.attributes, q->node.attribute_count};
  int64_t parts = clv__attribute_int(attributes, "num_outputs", 0), axis = clv__attribute_int(attributes, "axis", 0);
  clv_value_info data;
  if (parts <= 1 || !get_input(q, 0, &data) || data.type.rank == CLV_RANK_UNKNOWN) return NULL;
  if (axis < 0) axis += data.type.rank;
  if (axis < 0 || axis >= data.type.rank || data.type.dims[axis] < 0) return NULL;
  int64_t size = data.type.dims[axis], part = size / parts + (size % parts != 0);
  return part * (parts - 1) >= size ? "the last part would have no elements" : NULL;
}

static const char *doubt_scatter(const question *q) {
  clv__attributes attributes = {q->node.attributes, q->node.attribute_count};
  clv_value_info data;
  bool is_half = get_input(q, 0, &data) && (data.type.dtype == CLV_F16 || data.type.dtype == CLV_BF16);
  return is_half && !clv__attribute_is(attributes, "reduction", "none", true) ? "a reduction of 16-bit floats" : NULL;
}

bool clv__ort_may_support(void *self, const clv_graph_view *graph, uint32_t node, bool *is_sure, clv_verdict *verdict) {
  static const struct {
    const char *op;
    const char *(*doubt)(const question *q);
  } doubts[] = {
      {"Attention", doubt_attention},
      {"ConvInteger", doubt_convolution},
      {"ConvInteger", doubt_saturation},
      {"DFT", doubt_transform},
      {"DeformConv", doubt_not_4d},
      {"GRU", doubt_recurrence},
      {"GridSample", doubt_grid},
      {"GroupNormalization", doubt_group_norm},
      {"LRN", doubt_not_4d},
      {"LSTM", doubt_recurrence},
      {"MatMulInteger", doubt_product},
      {"MatMulInteger", doubt_saturation},
      {"MaxUnpool", doubt_unpool},
      {"QLinearConv", doubt_saturation},
      {"QLinearMatMul", doubt_product},
      {"QLinearMatMul", doubt_saturation},
      {"Range", doubt_range},
      {"ReduceMax", doubt_reduction},
      {"ReduceMin", doubt_reduction},
      {"Resize", doubt_resize},
      {"RoiAlign", doubt_regions},
      {"RotaryEmbedding", doubt_rotation},
      {"STFT", doubt_frames},
      {"ScatterElements", doubt_scatter},
      {"ScatterND", doubt_scatter},
      {"Shrink", doubt_shrink},
      {"Split", doubt_split},
      {"TensorScatter", doubt_cache},
  };
  const clv__ort_device *device = self;
  question q = {device->host, graph, device->saturates, {.struct_size = sizeof q.node}};
  (void)is_sure;
  device->host->graph_node(graph, node, &q.node);
  for (size_t i = 0; q.node.domain[0] == '\0' && i < sizeof doubts / sizeof *doubts; ++i) {
    const char *doubt = strcmp(q.node.op, doubts[i].op) == 0 ? doubts[i].doubt(&q) : NULL;
    if (doubt == NULL) continue;
    snprintf(verdict->reason, sizeof verdict->reason, "%s", doubt);
    return false;
  }
  return true;
}
