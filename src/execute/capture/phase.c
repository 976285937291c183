/* See phase.h. */
#include "execute/capture/phase.h"

enum {
  MOST_STEPS = 12,   /* maximum number of operators between a product and the softmax: scale, cap, bias, mask, casts */
  MOST_VISITS = 256, /* nodes visited for one softmax */
};

static bool is_onnx(const clv__node *node, const char *op) {
  return node->domain[0] == '\0' && strcmp(node->op, op) == 0;
}

static bool is_one_of(const clv__node *node, const char *const *ops) {
  if (node->domain[0] != '\0') return false;
  for (; *ops != NULL; ++ops) {
    if (strcmp(node->op, *ops) == 0) return true;
  }
  return false;
}

/* Returns whether the operator, between a product and the softmax in either order, maps each row of scores to a row. It may add
 * or remove columns (attention sinks). */
static bool keeps_rows(const clv__node *node) {
  static const char *const ops[] = {"Mul",      "Div",     "Add",    "Sub", "Where",  "Cast",    "CastLike",
                                    "Identity", "Clip",    "Min",    "Max", "Tanh",   "Reshape", "Unsqueeze",
                                    "Squeeze",  "Dropout", "Expand", "Neg", "Concat", "Slice",   NULL};
  return is_one_of(node, ops);
}

typedef struct search {
  const clv_graph *graph;
  const clv_tensor *types;
  uint32_t visits;
} search;

static bool is_computed(const search *s, clv_value_id value) {
  return value != CLV__NO_ID && !clv__value_is_constant(s->graph, s->types, value);
}

/* Returns whether the node multiplies two computed values, as opposed to a layer with weights. */
static bool is_product(const search *s, const clv__node *node) {
  static const char *const ops[] = {"MatMul", "Einsum", "Gemm", "MatMulInteger", NULL};
  return is_one_of(node, ops) && node->input_count >= 2 && is_computed(s, node->inputs[0]) && is_computed(s, node->inputs[1]);
}

/* Returns whether `value` comes from a product, through operators that keep rows. */
static bool comes_from_product(search *s, clv_value_id value, uint32_t steps) {
  clv_node_id producer = is_computed(s, value) ? s->graph->values[value].producer : CLV__NO_ID;
  if (producer == CLV__NO_ID || s->visits == MOST_VISITS) return false;
  ++s->visits;
  const clv__node *node = &s->graph->nodes[producer];
  if (is_product(s, node)) return true;
  if (steps == 0 || !keeps_rows(node)) return false;
  bool shapes = is_onnx(node, "Reshape") || is_onnx(node, "Unsqueeze") || is_onnx(node, "Squeeze") || is_onnx(node, "Expand");
  for (uint32_t i = 0; i < (shapes ? 1 : node->input_count); ++i) {
    if (comes_from_product(s, node->inputs[i], steps - 1)) return true;
  }
  return false;
}

/* Returns whether a product reads `value`, through operators that keep rows. */
static bool goes_to_product(search *s, clv_value_id value, uint32_t steps) {
  for (uint32_t i = s->graph->use_offsets[value]; i < s->graph->use_offsets[value + 1]; ++i) {
    if (s->visits == MOST_VISITS) return false;
    ++s->visits;
    const clv__node *node = &s->graph->nodes[s->graph->use_nodes[i]];
    if (is_product(s, node)) return true;
    if (steps > 0 && keeps_rows(node) && goes_to_product(s, node->outputs[0], steps - 1)) return true;
  }
  return false;
}

/* Returns the number of rows: the dimension before the last or, of five dimensions (batch, sequence, heads, 3, head: packed
 * queries, keys and values), the second. */
static int64_t rows_of(const clv_tensor *type) {
  return type->rank < 2 ? CLV_DIM_UNKNOWN : type->rank == 5 ? type->dims[1] : type->dims[type->rank - 2];
}

static bool is_last_axis(const clv__node *softmax, const clv_tensor *scores) {
  int64_t axis = clv__attribute_int(softmax->attributes, "axis", softmax->opset >= 13 ? -1 : 1);
  return axis == -1 || (scores->rank > 0 && axis == scores->rank - 1);
}

/* Returns whether a node is an attention operator, or the Softmax of an attention pattern. `length` is then the number of its
 * queries. */
static bool read_node(search *s, const clv__node *node, int64_t *length) {
  static const char *const whole[] = {"Attention",
                                      "QAttention",
                                      "MultiHeadAttention",
                                      "DecoderMaskedMultiHeadAttention",
                                      "DecoderMaskedSelfAttention",
                                      "GroupQueryAttention",
                                      "SparseAttention"};
  bool is_microsoft = strcmp(node->domain, "com.microsoft") == 0, is_whole = is_onnx(node, "Attention");
  if (node->input_count == 0 || node->inputs[0] == CLV__NO_ID || node->output_count == 0) return false;
  for (size_t i = 0; is_microsoft && i < sizeof whole / sizeof *whole; ++i)
    is_whole = is_whole || strcmp(node->op, whole[i]) == 0;
  const clv_tensor *first = &s->types[node->inputs[0]];
  if (is_whole) {
    *length = rows_of(first);
    return true;
  }
  bool is_softmax = is_onnx(node, "Softmax");
  if (node->domain[0] == '\0' && !is_softmax) return false;
  /* This also matches the Softmax that such an operator was lowered to. */
  if (clv__node_matches_op(node, "*scaled_dot_product*attention*")) {
    *length = first->rank < 2 ? CLV_DIM_UNKNOWN : first->dims[first->rank - 2];
    return true;
  }
  if (!is_softmax || node->outputs[0] == CLV__NO_ID || !is_last_axis(node, first)) return false;
  s->visits = 0;
  if (!comes_from_product(s, node->inputs[0], MOST_STEPS)) return false;
  s->visits = 0;
  if (!goes_to_product(s, node->outputs[0], MOST_STEPS)) return false;
  *length = first->rank < 2 ? CLV_DIM_UNKNOWN : first->dims[first->rank - 2];
  return true;
}

void clv__phase_read(const clv_graph *graph, const clv_tensor *types, clv__phase *phase) {
  search s = {graph, types, 0};
  *phase = (clv__phase){.kind = CLV__PHASE_NONE, .node = CLV__NO_ID, .query_length = 0};
  for (uint32_t n = 0; n < graph->node_count; ++n) {
    int64_t length;
    if (!read_node(&s, &graph->nodes[n], &length)) continue;
    if (length < 0) length = CLV_DIM_UNKNOWN;
    bool is_more = length < 0 ? phase->query_length >= 0 : phase->query_length >= 0 && length > phase->query_length;
    if (phase->attention_count++ == 0 || is_more) {
      phase->node = n;
      phase->query_length = length;
    }
  }
  if (phase->attention_count == 0) return;
  phase->kind = phase->query_length >= 0 && phase->query_length <= 1 ? CLV__PHASE_DECODE : CLV__PHASE_PREFILL;
}
