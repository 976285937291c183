/* What ONNX Runtime takes and then refuses while it runs, or computes otherwise than ONNX says: the nodes that a trial cannot
 * tell. Each was found by ONNX's own operator tests, or by `cleave check-backend`, on 1.31. */
#include <stdio.h>
#include <string.h>

#include "base/attribute.h"
#include "base/tensor.h"
#include "device.h"

typedef struct question {
  const clv_host *host;
  const clv_graph_view *graph;
  clv_node_info node;
} question;

/* False where the input is absent. */
static bool get_input(const question *q, uint32_t index, clv_value_info *value) {
  *value = (clv_value_info){.struct_size = sizeof *value};
  if (index >= q->node.input_count - q->node.capture_count || q->node.inputs[index] == CLV_NO_VALUE) return false;
  q->host->graph_value(q->graph, q->node.inputs[index], value);
  return true;
}

static bool has_output(const question *q, uint32_t index) {
  return index < q->node.output_count && q->node.outputs[index] != CLV_NO_VALUE;
}

static const char *doubt_attention(const question *q) {
  clv_value_info mask, lengths;
  if (get_input(q, 3, &mask) && get_input(q, 6, &lengths)) return "a mask with lengths of keys beside it";
  return has_output(q, 3) ? "the products of queries and keys as an output: what is masked differs" : NULL;
}

static const char *doubt_convolution(const question *q) {
  clv_value_info zero;
  if (!get_input(q, 3, &zero) || zero.type.rank == 0 || (zero.type.rank == 1 && zero.type.dims[0] == 1)) return NULL;
  return "a zero point for each channel of the weights";
}

static const char *doubt_unpool(const question *q) {
  clv_value_info shape;
  return get_input(q, 2, &shape) ? "the given shape of the output has no effect" : NULL;
}

static const char *doubt_reduction(const question *q) {
  clv_value_info data;
  return get_input(q, 0, &data) && data.type.dtype == CLV_BOOL ? "dtype bool: nothing to reduce is an error" : NULL;
}

static const char *doubt_resize(const question *q) {
  clv__attributes attributes = {q->node.attributes, q->node.attribute_count};
  clv_value_info scales;
  bool by_scales = get_input(q, 2, &scales) && !(scales.type.rank == 1 && scales.type.dims[0] == 0);
  if (!by_scales || !clv__attribute_is(attributes, "coordinate_transformation_mode", "align_corners", false)) return NULL;
  return "align_corners with scales: the size is rounded before it is used";
}

static const char *doubt_range(const question *q) {
  clv_value_info value;
  for (uint32_t i = 0; i < 3; ++i) {
    if (get_input(q, i, &value) && value.type.rank != 0) return "operands that are no scalars";
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

static const char *doubt_local_norm(const question *q) {
  clv_value_info data;
  return get_input(q, 0, &data) && data.type.rank != 4 ? "a rank other than 4" : NULL;
}

/* Into so many parts that some are empty. */
static const char *doubt_split(const question *q) {
  clv__attributes attributes = {q->node.attributes, q->node.attribute_count};
  int64_t parts = clv__attribute_int(attributes, "num_outputs", 0), axis = clv__attribute_int(attributes, "axis", 0);
  clv_value_info data;
  if (parts <= 1 || !get_input(q, 0, &data) || data.type.rank == CLV_RANK_UNKNOWN) return NULL;
  if (axis < 0) axis += data.type.rank;
  if (axis < 0 || axis >= data.type.rank || data.type.dims[axis] < 0) return NULL;
  int64_t size = data.type.dims[axis], part = size / parts + (size % parts != 0);
  return part * (parts - 1) >= size ? "more parts than there is to split" : NULL;
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
      {"MaxUnpool", doubt_unpool},
      {"Range", doubt_range},
      {"ReduceMax", doubt_reduction},
      {"ReduceMin", doubt_reduction},
      {"Resize", doubt_resize},
      {"Shrink", doubt_shrink},
      {"GroupNormalization", doubt_group_norm},
      {"LRN", doubt_local_norm},
      {"Split", doubt_split},
      {"ScatterElements", doubt_scatter},
      {"ScatterND", doubt_scatter},
  };
  const clv__ort_device *device = self;
  question q = {device->host, graph, {.struct_size = sizeof q.node}};
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
