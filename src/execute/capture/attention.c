/* See attention.h. */
#include "execute/capture/attention.h"

enum { MOST_STEPS = 24 }; /* how many operators in a row the search for the source of a mask, query, key or value may pass */

bool clv__attention_is_one_of(const clv__node *node, const char *const *ops) {
  if (node->domain[0] != '\0') return false;
  for (; *ops != NULL; ++ops) {
    if (strcmp(node->op, *ops) == 0) return true;
  }
  return false;
}

static const clv__node *producer_of(clv__attention_search *s, clv_value_id value) {
  clv_node_id producer = value != CLV__NO_ID ? s->graph->values[value].producer : CLV__NO_ID;
  if (producer == CLV__NO_ID || s->visits == CLV__ATTENTION_VISITS) return NULL;
  ++s->visits;
  return &s->graph->nodes[producer];
}

/* Returns whether the operator only moves or converts the elements of its first input. The other inputs of these operators are
 * sizes, positions or scales. */
static bool moves_first(const clv__node *node) {
  static const char *const ops[] = {"Transpose",
                                    "Reshape",
                                    "Unsqueeze",
                                    "Squeeze",
                                    "Expand",
                                    "Slice",
                                    "Split",
                                    "Gather",
                                    "Cast",
                                    "Identity",
                                    "Flatten",
                                    "Tile",
                                    "QuantizeLinear",
                                    "DequantizeLinear",
                                    "DynamicQuantizeLinear",
                                    "CastLike",
                                    "Pad",
                                    "GatherND",
                                    NULL};
  return clv__attention_is_one_of(node, ops);
}

/* ---- Caches ---- */

/* Returns whether elements of input `i` get into the node's output, possibly converted, or scaled by a constant. */
static bool is_moved(const clv__attention_search *s, const clv__node *node, uint32_t i) {
  static const char *const joins[] = {"Concat", NULL}, *const updates[] = {"ScatterND", "ScatterElements", NULL},
                           *const writes[] = {"TensorScatter", NULL}, *const selects[] = {"Where", NULL},
                           *const scales[] = {"Mul", "Div", NULL};
  if (moves_first(node)) return i == 0;
  if (clv__attention_is_one_of(node, joins)) return true;
  if (clv__attention_is_one_of(node, updates)) return i != 1;
  if (clv__attention_is_one_of(node, writes)) return i < 2;
  if (clv__attention_is_one_of(node, selects)) return i > 0;
  return clv__attention_is_one_of(node, scales) && node->input_count == 2 && !clv__attention_is_computed(s, node->inputs[1 - i]);
}

/* Returns a graph input other than `except` whose elements get into the value (see is_moved()); CLV__NO_ID if there is none. */
static clv_value_id moved_input(clv__attention_search *s, clv_value_id value, clv_value_id except, uint32_t steps) {
  if (!clv__attention_is_computed(s, value)) return CLV__NO_ID;
  if (s->graph->values[value].is_input) return value == except ? CLV__NO_ID : value;
  const clv__node *node = producer_of(s, value);
  if (node == NULL || steps == 0) return CLV__NO_ID;
  for (uint32_t i = 0; i < node->input_count; ++i) {
    if (!is_moved(s, node, i)) continue;
    clv_value_id found = moved_input(s, node->inputs[i], except, steps - 1);
    if (found != CLV__NO_ID) return found;
  }
  return CLV__NO_ID;
}

bool clv__attention_has_cache(clv__attention_search *s, clv_value_id queries, clv_value_id keys) {
  s->visits = 0;
  clv_value_id own = moved_input(s, queries, CLV__NO_ID, MOST_STEPS);
  s->visits = 0;
  return moved_input(s, keys, own, MOST_STEPS) != CLV__NO_ID;
}

/* ---- Masks ---- */

static const char *element_at(const clv_tensor *t, int64_t row, int64_t column) {
  size_t element = clv_dtype_size_bytes(t->dtype);
  return (const char *)t->data + (size_t)(row * t->dims[t->rank - 1] + column) * element;
}

/* Returns whether the first matrix of a constant has one value on and below the diagonal, and another value above it. The
 * diagonal ends in the lower right corner. Checks only the first column, the diagonal, the elements right of the diagonal, and
 * the last column. */
static bool is_triangle(const clv_tensor *t) {
  size_t size_bytes, element = clv_dtype_size_bytes(t->dtype);
  if (t->data == NULL || t->dtype == CLV_STRING || t->rank < 2 || !clv__tensor_size_bytes(t, &size_bytes) || size_bytes == 0) {
    return false;
  }
  int64_t rows = t->dims[t->rank - 2], columns = t->dims[t->rank - 1];
  if (element == 0 || rows < 2 || columns < rows) return false;
  const char *seen = element_at(t, 0, 0), *masked = element_at(t, 0, columns - 1);
  if (memcmp(seen, masked, element) == 0) return false;
  for (int64_t i = 0; i < rows; ++i) {
    int64_t diagonal = i + columns - rows;
    if (memcmp(element_at(t, i, 0), seen, element) != 0 || memcmp(element_at(t, i, diagonal), seen, element) != 0) return false;
    if (i == rows - 1) continue;
    if (memcmp(element_at(t, i, diagonal + 1), masked, element) != 0) return false;
    if (memcmp(element_at(t, i, columns - 1), masked, element) != 0) return false;
  }
  return true;
}

/* Returns whether the integers of a constant count upwards by one. */
static bool counts(const clv_tensor *t) {
  size_t count;
  if (t->data == NULL || !clv__tensor_count(t, &count) || count < 2 || (t->dtype != CLV_I64 && t->dtype != CLV_I32)) return false;
  int64_t first = 0;
  for (size_t i = 0; i < count; ++i) {
    int64_t now = 0;
    int32_t narrow;
    if (t->dtype == CLV_I64) {
      memcpy(&now, (const char *)t->data + i * sizeof now, sizeof now);
    } else {
      memcpy(&narrow, (const char *)t->data + i * sizeof narrow, sizeof narrow);
      now = narrow;
    }
    if (i == 0) first = now;
    if (now - (int64_t)i != first) return false;
  }
  return true;
}

/* Returns whether the value holds positions: the result of Range or CumSum, or a constant that counts upwards, possibly moved
 * or with an offset added or subtracted. */
static bool is_positions(clv__attention_search *s, clv_value_id value, uint32_t steps) {
  static const char *const ranges[] = {"Range", "CumSum", NULL}, *const offsets[] = {"Add", "Sub", NULL};
  if (value == CLV__NO_ID) return false;
  if (counts(&s->types[value])) return true;
  const clv__node *node = producer_of(s, value);
  if (node == NULL || steps == 0) return false;
  if (clv__attention_is_one_of(node, ranges)) return true;
  bool has_offset = clv__attention_is_one_of(node, offsets);
  if (!has_offset && !moves_first(node)) return false;
  for (uint32_t i = 0; i < (has_offset ? node->input_count : 1); ++i) {
    if (is_positions(s, node->inputs[i], steps - 1)) return true;
  }
  return false;
}

static bool search_mask(clv__attention_search *s, clv_value_id value, uint32_t steps) {
  static const char *const triangles[] = {"Trilu", NULL};
  static const char *const compares[] = {"Less", "LessOrEqual", "Greater", "GreaterOrEqual", NULL};
  static const char *const mixes[] = {"Mul", "Div", "Add", "Sub", "Where", "And",       "Or",     "Xor",
                                      "Not", "Neg", "Min", "Max", "Clip",  "ScatterND", "Concat", NULL};
  if (value == CLV__NO_ID) return false;
  if (is_triangle(&s->types[value])) return true;
  const clv__node *node = producer_of(s, value);
  if (node == NULL || steps == 0) return false;
  if (clv__attention_is_one_of(node, triangles)) return true;
  if (clv__attention_is_one_of(node, compares)) {
    return is_positions(s, node->inputs[0], steps) && is_positions(s, node->inputs[1], steps);
  }
  bool mixed = clv__attention_is_one_of(node, mixes);
  if (!mixed && !moves_first(node)) return false;
  for (uint32_t i = 0; i < (mixed ? node->input_count : 1); ++i) {
    if (search_mask(s, node->inputs[i], steps - 1)) return true;
  }
  return false;
}

bool clv__attention_is_causal(clv__attention_search *s, clv_value_id mask) {
  s->visits = 0;
  return search_mask(s, mask, MOST_STEPS);
}
