/* Elides Concats over channels if their readers can read the pieces instead. Such a reader is another Concat over channels, or a
 * norm with one factor and one addend per channel. In networks that concatenate each layer's result with those of all earlier
 * layers, no value is then copied twice. */
#include "variant.h"

#define MOST_PIECES 128 /* per node: otherwise, the total for a chain of Concats would grow with the square of its length */

static bool is_join(const clv__cpu_variant *variant, const clv__cpu_variant_node *node) {
  if (node->dead || node->kind != CLV__CPU_CONCAT) return false;
  const clv_tensor *out = &variant->values[node->outputs[0]].type;
  const int64_t axis = clv__attribute_int(node->source->attributes, "axis", 1);
  return out->rank >= 3 && out->rank <= 5 && clv__cpu_is_f32(out) && (axis == 1 || axis == 1 - out->rank);
}

/* Values computed in bf16 stay with oneDNN, because bf16 halves the bytes read and written. */
static bool is_narrow(const clv__cpu_variant *variant, const clv__cpu_variant_node *node) {
  return clv__dnn_has_bf16() && (variant->program->precision == CLV_BF16 || variant->values[node->outputs[0]].outer == CLV_BF16);
}

static bool is_norm(const clv__cpu_variant *variant, const clv__cpu_variant_node *node) {
  return !node->dead && node->kind == CLV__CPU_AFFINE && variant->values[node->inputs[0]].type.rank >= 3 &&
         clv__cpu_is_f32(&variant->values[node->outputs[0]].type) && !is_narrow(variant, node);
}

typedef struct join {
  uint32_t node;   /* the Concat that computes the value; NONE: another node does */
  uint32_t pieces; /* number of pieces of the value after elided inputs are expanded; 1 if no Concat computes it */
  uint32_t reads;  /* number of reads of the value by nodes that can read its pieces instead */
} join;

/* Whether `value` is elided. */
static bool vanishes(const clv__cpu_variant *variant, const join *joins, uint32_t value) {
  return joins[value].node != CLV__CPU_NONE && joins[value].pieces <= MOST_PIECES &&
         joins[value].reads == variant->values[value].readers;
}

/* Counts the reads and the pieces of each value. Nodes precede their readers, so the pieces of an input are known when a Concat
 * adds them up. A Concat with too many pieces stays as it is; resetting the `reads` of its inputs ensures that they are not
 * elided. */
static void survey(clv__cpu_variant *variant, join *joins) {
  for (uint32_t v = 0; v < variant->value_count; ++v) joins[v] = (join){.node = CLV__CPU_NONE, .pieces = 1};
  for (uint32_t n = 0; n < variant->node_count; ++n) {
    const clv__cpu_variant_node *node = &variant->nodes[n];
    const bool joined = is_join(variant, node);
    if (!joined && !is_norm(variant, node)) continue;
    for (uint32_t i = 0; i < node->input_count; ++i) joins[node->inputs[i]].reads++;
    if (joined) joins[node->outputs[0]].node = n;
  }
  for (uint32_t n = 0; n < variant->node_count; ++n) {
    const clv__cpu_variant_node *node = &variant->nodes[n];
    if (!is_join(variant, node)) continue;
    uint64_t pieces = 0;
    for (uint32_t i = 0; i < node->input_count; ++i) {
      pieces += vanishes(variant, joins, node->inputs[i]) ? joins[node->inputs[i]].pieces : 1;
    }
    for (uint32_t i = 0; i < node->input_count && pieces > MOST_PIECES; ++i) joins[node->inputs[i]].reads = 0;
    if (pieces > MOST_PIECES) pieces = node->input_count;
    joins[node->outputs[0]].pieces = (uint32_t)pieces;
  }
}

/* Makes the node read the pieces of elided inputs. Earlier nodes of the variant must already do so. */
static clv_status take_apart(clv__cpu_variant *variant, const join *joins, clv__cpu_variant_node *node, clv_error *error) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < node->input_count; ++i) {
    const uint32_t v = node->inputs[i];
    count += vanishes(variant, joins, v) ? variant->nodes[joins[v].node].input_count : 1;
  }
  if (count == node->input_count) return CLV_OK;
  uint32_t *inputs = clv__arena_allocate_zero(&variant->arena, count, sizeof *inputs);
  if (inputs == NULL) return clv__error_memory(error, count * sizeof *inputs);
  count = 0;
  for (uint32_t i = 0; i < node->input_count; ++i) {
    const uint32_t v = node->inputs[i];
    const bool apart = vanishes(variant, joins, v);
    const clv__cpu_variant_node *maker = apart ? &variant->nodes[joins[v].node] : NULL;
    for (uint32_t k = 0; apart && k < maker->input_count; ++k) inputs[count++] = maker->inputs[k];
    if (!apart) inputs[count++] = v;
  }
  node->inputs = inputs;
  node->input_count = count;
  return CLV_OK;
}

clv_status clv__cpu_pass_join(clv__cpu_variant *variant, clv_error *error) {
  join *joins = clv__arena_allocate_zero(&variant->arena, variant->value_count, sizeof *joins);
  if (joins == NULL) return clv__error_memory(error, variant->value_count * sizeof *joins);
  survey(variant, joins);
  for (uint32_t n = 0; n < variant->node_count; ++n) {
    clv__cpu_variant_node *node = &variant->nodes[n];
    if (is_norm(variant, node) && vanishes(variant, joins, node->inputs[0])) {
      node->kind = CLV__CPU_CONCAT;
      node->composed = true;
      CLV__TRY(take_apart(variant, joins, node, error));
    } else if (is_join(variant, node)) {
      CLV__TRY(take_apart(variant, joins, node, error));
    }
  }
  return CLV_OK;
}
