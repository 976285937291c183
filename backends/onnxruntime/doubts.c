/* What ONNX Runtime takes and then refuses while it runs, or computes otherwise than ONNX says: the nodes that a trial cannot
 * tell. Each was found by ONNX's own operator tests on 1.31. */
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

bool clv__ort_may_support(void *self, const clv_graph_view *graph, uint32_t node, bool *is_sure, clv_verdict *verdict) {
  static const struct {
    const char *op;
    const char *(*doubt)(const question *q);
  } doubts[] = {
      {"Attention", doubt_attention}, {"ConvInteger", doubt_convolution}, {"MaxUnpool", doubt_unpool}, {"Range", doubt_range},
      {"ReduceMax", doubt_reduction}, {"ReduceMin", doubt_reduction},     {"Resize", doubt_resize},
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
