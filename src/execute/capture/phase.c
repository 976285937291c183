/* See phase.h. */
#include "execute/capture/phase.h"

#include "execute/capture/attention.h"

typedef clv__attention_search search;

/* The most operators that are accepted between a matrix product and the softmax: to scale, cap, add a bias or mask, or cast. */
enum { MOST_STEPS = 12 };

/* The operands of an attention. CLV__NO_ID: absent. */
typedef struct attention {
  clv_value_id queries, keys, values, mask;
  clv_value_id past;    /* from a cache: all keys and values, or the first part of them */
  bool is_causal;       /* the operator itself says that the attention is causal */
  const clv_tensor *of; /* a type with one row per query */
} attention;

/* ---- Operators ---- */

enum { NO_INPUT = -1 };

/* An operator that is an attention as a whole, and the indices of its inputs. */
typedef struct whole {
  const char *domain, *op;
  int32_t keys, values, mask, past;
  const char *causal; /* the attribute that says whether the operator is causal; NULL: it always is */
} whole;

static const whole wholes[] = {
    {"", "Attention", 1, 2, 3, 4, "is_causal"},
    {"com.microsoft", "Attention", NO_INPUT, NO_INPUT, 5, 4, "unidirectional"},
    {"com.microsoft", "QAttention", NO_INPUT, NO_INPUT, NO_INPUT, 8, "unidirectional"},
    {"com.microsoft", "MultiHeadAttention", 1, 2, 5, 6, "unidirectional"},
    {"com.microsoft", "DecoderMaskedMultiHeadAttention", NO_INPUT, NO_INPUT, NO_INPUT, NO_INPUT, NULL},
    {"com.microsoft", "DecoderMaskedSelfAttention", NO_INPUT, NO_INPUT, NO_INPUT, NO_INPUT, NULL},
    {"com.microsoft", "GroupQueryAttention", NO_INPUT, NO_INPUT, NO_INPUT, NO_INPUT, NULL},
    {"com.microsoft", "SparseAttention", NO_INPUT, NO_INPUT, NO_INPUT, NO_INPUT, NULL},
};
static const whole aten = {"aten", "*scaled_dot_product*attention*", 1, 2, 3, NO_INPUT, "is_causal"};

static const whole *find_whole(const clv__node *node) {
  for (size_t i = 0; i < sizeof wholes / sizeof *wholes; ++i) {
    if (strcmp(node->domain, wholes[i].domain) == 0 && strcmp(node->op, wholes[i].op) == 0) return &wholes[i];
  }
  return node->domain[0] != '\0' && clv__node_matches_op(node, aten.op) ? &aten : NULL;
}

static clv_value_id input_of(const clv__node *node, int32_t index) {
  return index >= 0 && (uint32_t)index < node->input_count ? node->inputs[index] : CLV__NO_ID;
}

static bool read_whole(const search *s, const clv__node *node, const whole *w, attention *a) {
  if (input_of(node, 0) == CLV__NO_ID) return false;
  *a = (attention){.queries = node->inputs[0],
                   .keys = input_of(node, w->keys),
                   .values = input_of(node, w->values),
                   .mask = input_of(node, w->mask),
                   .past = input_of(node, w->past),
                   .is_causal = w->causal == NULL || clv__attribute_int(node->attributes, w->causal, 0) != 0,
                   .of = &s->types[node->inputs[0]]};
  return true;
}

/* ---- The pattern ---- */

/* Returns whether the operator, between a product and the softmax in either order, maps each row of scores to a row. It may add
 * or remove columns (attention sinks). */
static bool keeps_rows(const clv__node *node) {
  static const char *const ops[] = {"Mul",      "Div",     "Add",    "Sub", "Where",  "Cast",    "CastLike",
                                    "Identity", "Clip",    "Min",    "Max", "Tanh",   "Reshape", "Unsqueeze",
                                    "Squeeze",  "Dropout", "Expand", "Neg", "Concat", "Slice",   NULL};
  return clv__attention_is_one_of(node, ops);
}

/* Returns whether the node multiplies two computed values, as opposed to a layer with weights. */
static bool is_product(const search *s, const clv__node *node) {
  static const char *const ops[] = {"MatMul", "Einsum", "Gemm", "MatMulInteger", NULL};
  return clv__attention_is_one_of(node, ops) && node->input_count >= 2 && clv__attention_is_computed(s, node->inputs[0]) &&
         clv__attention_is_computed(s, node->inputs[1]);
}

/* Returns the product that `value` comes from, through operators that keep rows; NULL if there is none. */
static const clv__node *product_before(search *s, clv_value_id value, uint32_t steps) {
  static const char *const reshapes[] = {"Reshape", "Unsqueeze", "Squeeze", "Expand", NULL};
  clv_node_id producer = clv__attention_is_computed(s, value) ? s->graph->values[value].producer : CLV__NO_ID;
  if (producer == CLV__NO_ID || s->visits == CLV__ATTENTION_VISITS) return NULL;
  ++s->visits;
  const clv__node *node = &s->graph->nodes[producer];
  if (is_product(s, node)) return node;
  if (steps == 0 || !keeps_rows(node)) return NULL;
  for (uint32_t i = 0; i < (clv__attention_is_one_of(node, reshapes) ? 1 : node->input_count); ++i) {
    const clv__node *found = product_before(s, node->inputs[i], steps - 1);
    if (found != NULL) return found;
  }
  return NULL;
}

/* Returns the value that a product multiplies with `value`, or with what operators that keep rows make of it; CLV__NO_ID if
 * there is no product. */
static clv_value_id multiplied_with(search *s, clv_value_id value, uint32_t steps) {
  if (value == CLV__NO_ID) return CLV__NO_ID;
  for (uint32_t i = s->graph->use_offsets[value]; i < s->graph->use_offsets[value + 1]; ++i) {
    if (s->visits == CLV__ATTENTION_VISITS) return CLV__NO_ID;
    ++s->visits;
    const clv__node *node = &s->graph->nodes[s->graph->use_nodes[i]];
    if (is_product(s, node)) return node->inputs[node->inputs[0] == value ? 1 : 0];
    clv_value_id found = steps > 0 && keeps_rows(node) ? multiplied_with(s, node->outputs[0], steps - 1) : CLV__NO_ID;
    if (found != CLV__NO_ID) return found;
  }
  return CLV__NO_ID;
}

/* Returns whether the node is a Softmax over the last axis, between two products. */
static bool read_pattern(search *s, const clv__node *node, attention *a) {
  static const char *const softmax[] = {"Softmax", NULL};
  if (!clv__attention_is_one_of(node, softmax) || input_of(node, 0) == CLV__NO_ID || node->outputs[0] == CLV__NO_ID) return false;
  const clv_tensor *scores = &s->types[node->inputs[0]];
  int64_t axis = clv__attribute_int(node->attributes, "axis", node->opset >= 13 ? -1 : 1);
  if (axis != -1 && (scores->rank <= 0 || axis != scores->rank - 1)) return false;
  s->visits = 0;
  const clv__node *product = product_before(s, node->inputs[0], MOST_STEPS);
  if (product == NULL) return false;
  s->visits = 0;
  clv_value_id values = multiplied_with(s, node->outputs[0], MOST_STEPS);
  if (values == CLV__NO_ID) return false;
  *a = (attention){.queries = product->inputs[0],
                   .keys = product->inputs[1],
                   .values = values,
                   .mask = node->inputs[0], /* the scores: the search for a mask starts here and ends at the product */
                   .past = CLV__NO_ID,
                   .of = scores};
  return true;
}

/* ---- The phase ---- */

/* Returns whether the node is an attention with a phase. `length` is then the number of its queries. */
static bool read_node(search *s, const clv__node *node, int64_t *length) {
  attention a;
  const whole *w = find_whole(node);
  if (!(w != NULL ? read_whole(s, node, w, &a) : read_pattern(s, node, &a))) return false;
  /* The number of queries is the dimension before the last. In an input with packed queries, keys and values, which has the
   * five dimensions batch, sequence, heads, 3 and head size, it is the second dimension. */
  *length = a.of->rank < 2 ? CLV_DIM_UNKNOWN : w != NULL && a.of->rank == 5 ? a.of->dims[1] : a.of->dims[a.of->rank - 2];
  return a.is_causal || a.past != CLV__NO_ID || clv__attention_has_cache(s, a.queries, a.keys) ||
         clv__attention_has_cache(s, a.queries, a.values) || clv__attention_is_causal(s, a.mask);
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
