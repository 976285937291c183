/* Computes the signatures of nodes (hashes by which verdicts are stored): see verdicts.h. */
#include "base/tensor/tensor.h"
#include "verdicts.h"

/* The values of small constants are part of the signature, because a verdict may depend on them: integers and booleans (axes,
 * sizes, pads) with at most MOST_WHOLE elements, and float vectors (such as the scales of Resize) with at most MOST_REAL. The
 * values of float scalars and larger constants are not. */
enum { MOST_WHOLE = 32, MOST_REAL = 8 };

static void add_type(clv__hasher *hasher, const clv_tensor *type, bool with_shapes) {
  clv__hasher_u64(hasher, (uint64_t)type->dtype);
  clv__hasher_u64(hasher, (uint64_t)(int64_t)type->rank);
  for (int32_t i = 0; with_shapes && i < type->rank; ++i) {
    clv__hasher_u64(hasher, (uint64_t)(type->dims[i] < 0 ? CLV_DIM_UNKNOWN : type->dims[i]));
  }
}

static void add_bytes(clv__hasher *hasher, const clv_tensor *tensor) {
  size_t size_bytes;
  if (tensor->data == NULL || tensor->dtype == CLV_STRING || !clv__tensor_size_bytes(tensor, &size_bytes)) return;
  clv__hasher_u64(hasher, size_bytes);
  clv__hasher_update(hasher, tensor->data, size_bytes);
}

/* Whether a verdict may depend on the constant's value. */
static bool is_telling(const clv_tensor *constant) {
  size_t count;
  if (constant->data == NULL || !clv__tensor_count(constant, &count)) return false;
  bool whole = constant->dtype == CLV_I64 || constant->dtype == CLV_I32 || constant->dtype == CLV_BOOL;
  if (whole) return count <= MOST_WHOLE;
  return (constant->dtype == CLV_F32 || constant->dtype == CLV_F64) && constant->rank == 1 && count <= MOST_REAL;
}

static void add_value(const clv_host *host, const clv_graph_view *graph, uint32_t v, bool with_shapes, clv__hasher *hasher) {
  clv__hasher_u64(hasher, v == CLV_NO_VALUE);
  if (v == CLV_NO_VALUE) return;
  clv_value_info value = {.struct_size = sizeof value};
  host->graph_value(graph, v, &value);
  bool is_constant = value.is_constant || value.type.data != NULL, telling = is_constant && is_telling(&value.type);
  add_type(hasher, &value.type, with_shapes || telling);
  clv__hasher_u64(hasher, (uint64_t)(is_constant ? 1 + telling : 0));
  if (telling) add_bytes(hasher, &value.type);
}

static void add_body(const clv_host *host, const clv_graph_view *body, bool with_shapes, clv__hasher *hasher);

static void add_attribute(const clv_host *host, const clv_attribute *attribute, bool with_shapes, clv__hasher *hasher) {
  clv__hasher_string(hasher, attribute->name);
  clv__hasher_u64(hasher, (uint64_t)attribute->kind);
  clv__hasher_u64(hasher, attribute->is_list);
  clv__hasher_u64(hasher, attribute->count);
  switch (attribute->kind) {
    case CLV_ATTRIBUTE_INTS:
      clv__hasher_update(hasher, attribute->ints, attribute->count * sizeof *attribute->ints);
      break;
    case CLV_ATTRIBUTE_FLOATS:
      clv__hasher_update(hasher, attribute->floats, attribute->count * sizeof *attribute->floats);
      break;
    case CLV_ATTRIBUTE_STRINGS:
      for (size_t i = 0; i < attribute->count; ++i) {
        clv__hasher_u64(hasher, attribute->strings[i].size_bytes);
        clv__hasher_update(hasher, attribute->strings[i].data, attribute->strings[i].size_bytes);
      }
      break;
    case CLV_ATTRIBUTE_TENSOR:
      add_type(hasher, attribute->tensor, true);
      if (is_telling(attribute->tensor)) add_bytes(hasher, attribute->tensor);
      break;
    case CLV_ATTRIBUTE_GRAPH:
      add_body(host, attribute->graph, with_shapes, hasher);
      break;
  }
}

static void add_node(const clv_host *host, const clv_graph_view *graph, uint32_t n, bool with_shapes, clv__hasher *hasher) {
  clv_node_info node = {.struct_size = sizeof node};
  host->graph_node(graph, n, &node);
  clv__hasher_string(hasher, node.domain);
  clv__hasher_string(hasher, node.op);
  clv__hasher_u64(hasher, (uint64_t)(int64_t)node.opset);
  clv__hasher_u64(hasher, node.attribute_count);
  for (uint32_t i = 0; i < node.attribute_count; ++i) add_attribute(host, &node.attributes[i], with_shapes, hasher);
  clv__hasher_u64(hasher, node.input_count);
  clv__hasher_u64(hasher, node.capture_count);
  clv__hasher_u64(hasher, node.output_count);
  for (uint32_t i = 0; i < node.input_count; ++i) add_value(host, graph, node.inputs[i], with_shapes, hasher);
  for (uint32_t i = 0; i < node.output_count; ++i) add_value(host, graph, node.outputs[i], with_shapes, hasher);
}

/* Adds a body (a subgraph of an If, Loop or Scan). Includes the value ids, which show how its nodes are connected. */
static void add_body(const clv_host *host, const clv_graph_view *body, bool with_shapes, clv__hasher *hasher) {
  uint32_t count = host->graph_node_count(body);
  clv__hasher_u64(hasher, count);
  for (uint32_t n = 0; n < count; ++n) {
    clv_node_info node = {.struct_size = sizeof node};
    host->graph_node(body, n, &node);
    add_node(host, body, n, with_shapes, hasher);
    for (uint32_t i = 0; i < node.input_count; ++i) clv__hasher_u64(hasher, node.inputs[i]);
    for (uint32_t i = 0; i < node.output_count; ++i) clv__hasher_u64(hasher, node.outputs[i]);
  }
  for (uint32_t i = 0; i < host->graph_output_count(body); ++i) clv__hasher_u64(hasher, host->graph_output(body, i));
}

void clv__verdict_signature(const clv_host *host, const clv_graph_view *graph, uint32_t node, bool with_shapes,
                            clv__hash *signature) {
  clv__hasher hasher;
  clv__hasher_init(&hasher);
  clv__hasher_string(&hasher, "signature 1");
  add_node(host, graph, node, with_shapes, &hasher);
  clv__hasher_finish(&hasher, signature);
}
