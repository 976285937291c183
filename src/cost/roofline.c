/* See roofline.h. */
#include "cost/roofline.h"

#include <string.h>

#include "cost/signature.h"
#include "operators/infer.h"

clv_status clv__tally_init(clv__tally *tally, const clv_graph_view *whole, clv__arena *arena, clv_error *error) {
  const clv_graph *graph = whole->graph;
  *tally = (clv__tally){.whole = whole,
                        .nodes = clv__arena_allocate_zero(arena, graph->node_count, sizeof *tally->nodes),
                        .values = clv__arena_allocate_zero(arena, graph->value_count, sizeof *tally->values)};
  if (tally->nodes != NULL && tally->values != NULL) return CLV_OK;
  return clv__error_memory(error, graph->value_count * sizeof *tally->values);
}

static const clv_tensor *type_of(const clv__tally *tally, clv_value_id value) {
  return tally->whole->types != NULL ? &tally->whole->types[value] : &tally->whole->graph->values[value].type;
}

/* Bytes that a node reads of one input. Operators that select a part of their first input read at most as many bytes of it as
 * they write. */
static double read_bytes(const clv__tally *tally, const clv__node *node, const clv__op *op, uint32_t input) {
  const double size_bytes = clv__value_bytes(tally->whole, node->inputs[input]);
  if (input > 0 || (op->flags & CLV__OP_PICKS) == 0 || node->outputs[0] == CLV__NO_ID) return size_bytes;
  const double picked = clv__value_bytes(tally->whole, node->outputs[0]);
  return picked < size_bytes ? picked : size_bytes;
}

static bool is_read_outside(const clv__tally *tally, clv_value_id value) {
  const clv_graph *graph = tally->whole->graph;
  if (graph->values[value].is_output) return true;
  for (uint32_t u = graph->use_offsets[value]; u < graph->use_offsets[value + 1]; ++u) {
    if (tally->nodes[graph->use_nodes[u]] != tally->group) return true;
  }
  return false;
}

static void count_bytes(clv__tally *tally, const clv__node *node, const clv__op *op, clv__group_work *work) {
  const clv_graph *graph = tally->whole->graph;
  for (uint32_t i = 0; i < node->input_count; ++i) {
    const clv_value_id value = node->inputs[i];
    if (value == CLV__NO_ID || tally->values[value] == tally->group) continue;
    if (!clv__tensor_is_static(type_of(tally, value))) work->is_known = false;
    const clv_node_id producer = graph->values[value].producer;
    const bool is_constant = clv__value_is_constant(graph, tally->whole->types, value);
    if (!is_constant && producer != CLV__NO_ID && tally->nodes[producer] == tally->group) continue;
    tally->values[value] = tally->group; /* counted once, however often it is read */
    *(is_constant ? &work->weight_bytes : &work->moved_bytes) += read_bytes(tally, node, op, i);
  }
  for (uint32_t i = 0; i < node->output_count; ++i) {
    const clv_value_id value = node->outputs[i];
    if (value == CLV__NO_ID) continue;
    if (!clv__tensor_is_static(type_of(tally, value))) work->is_known = false;
    if (is_read_outside(tally, value)) work->moved_bytes += clv__value_bytes(tally->whole, value);
  }
}

static clv__peak peak_of(clv_dtype dtype) {
  switch (dtype) {
    case CLV_F64:
      return CLV__PEAK_F64;
    case CLV_F16:
      return CLV__PEAK_F16;
    case CLV_BF16:
      return CLV__PEAK_BF16;
    case CLV_I8:
    case CLV_U8:
      return CLV__PEAK_INT8;
    default:
      return CLV__PEAK_F32;
  }
}

/* The number format in which a node computes: the dtype of its first input, before any Cast or DequantizeLinear inside the
 * group. */
static clv__peak peak_of_node(const clv__tally *tally, const clv__node *node) {
  const clv_graph *graph = tally->whole->graph;
  clv_value_id value = node->input_count > 0 ? node->inputs[0] : CLV__NO_ID;
  while (value != CLV__NO_ID) {
    const clv_node_id producer = graph->values[value].producer;
    if (producer == CLV__NO_ID || tally->nodes[producer] != tally->group) break;
    const clv__node *maker = &graph->nodes[producer];
    if (strcmp(maker->op, "DequantizeLinear") != 0 && strcmp(maker->op, "Cast") != 0) break;
    value = maker->inputs[0];
  }
  return value != CLV__NO_ID ? peak_of(type_of(tally, value)->dtype) : CLV__PEAK_F32;
}

clv_status clv__tally_count(clv__tally *tally, const clv_node_id *nodes, uint32_t count, clv__group_work *work,
                            clv_error *error) {
  const clv_graph *graph = tally->whole->graph;
  double most = -1;
  *work = (clv__group_work){.is_known = count > 0, .peak = CLV__PEAK_F32};
  ++tally->group;
  for (uint32_t i = 0; i < count; ++i) tally->nodes[nodes[i]] = tally->group;
  for (uint32_t i = 0; i < count; ++i) {
    const clv__node *node = &graph->nodes[nodes[i]];
    const clv__op *op = clv__op_find(node->domain, node->op);
    clv__work of_node;
    if (!clv__node_work(tally->whole, nodes[i], &of_node)) return clv__error_memory(error, sizeof of_node);
    if (op == NULL || (op->flags & CLV__OP_HAS_BODY) != 0) {
      work->is_known = false;
      continue;
    }
    work->flops += of_node.flops;
    if (of_node.flops > most) work->peak = peak_of_node(tally, node);
    if (of_node.flops > most) most = of_node.flops;
    count_bytes(tally, node, op, work);
  }
  return CLV_OK;
}

double clv__roofline_seconds(const clv__peaks *peaks, const clv__group_work *work, double resident_bytes, bool *by_compute) {
  *by_compute = false;
  if (!work->is_known) return -1;
  double compute = 0, memory = 0;
  if (work->flops > 0) {
    if (peaks->flops_per_second[work->peak] <= 0) return -1;
    compute = work->flops / peaks->flops_per_second[work->peak];
  }
  if (work->weight_bytes > 0) {
    const double rate = clv__peaks_bandwidth(peaks, resident_bytes);
    if (rate <= 0) return -1;
    memory += work->weight_bytes / rate;
  }
  if (work->moved_bytes > 0) {
    const double rate = clv__peaks_bandwidth(peaks, work->moved_bytes);
    if (rate <= 0) return -1;
    memory += work->moved_bytes / rate;
  }
  *by_compute = compute > memory;
  return compute > memory ? compute : memory;
}
