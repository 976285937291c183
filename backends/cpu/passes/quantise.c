/* Fuses DequantizeLinear, a product and QuantizeLinear into one step on integers. The pass visits nodes in order. For each real
 * value, it tracks whether the value represents integers on a grid (a scale and a zero point). Nodes that only move or select
 * values are repeated on the integers. A group that ends in a QuantizeLinear is matched backwards from there. A product whose
 * result stays real is matched with the functions after it. Other nodes stay as they are. */
#include "backends/cpu/lower/integer_posts.h"

/* The integers that a real value represents. */
typedef struct twin {
  uint32_t value; /* the value that contains the integers; CLV__CPU_NONE: none */
  clv__cpu_grid grid;
} twin;

typedef struct walk {
  clv__cpu_variant *variant;
  twin *twins;                   /* indexed by value */
  clv__cpu_variant_node *beside; /* indexed by node: the equivalent node on integers; `source` NULL: none */
  uint32_t beside_count;
  clv_error *error;
} walk;

static bool is_op(const clv__cpu_variant_node *node, const char *op) {
  if (node->dead || node->kind != CLV__CPU_KERNEL || node->source->domain[0] != 0 || strcmp(node->source->op, op) != 0)
    return false;
  return node->input_count > 0 && node->inputs[0] != CLV__CPU_NONE && node->output_count > 0 && node->outputs[0] != CLV__CPU_NONE;
}

static bool is_product(const clv__cpu_variant_node *node) {
  return !node->dead && (node->kind == CLV__CPU_CONVOLUTION || node->kind == CLV__CPU_MATRIX);
}

static bool is_integer_product(const clv__cpu_variant_node *node) {
  return !node->dead && (node->kind == CLV__CPU_INTEGER_CONVOLUTION || node->kind == CLV__CPU_INTEGER_MATRIX);
}

/* ---- Values that are integers on a grid. ---- */

static void visit_dequantize(walk *w, const clv__cpu_variant_node *node) {
  clv__cpu_variant *variant = w->variant;
  twin *made = &w->twins[node->outputs[0]];
  const clv_tensor *type = &variant->values[node->inputs[0]].type;
  if (!clv__cpu_is_f32(&clv__cpu_output(variant, node)->type) || variant->values[node->inputs[0]].is_constant) return;
  if (clv__cpu_grid_read(variant, node->source, 1, type->dtype, &made->grid)) made->value = node->inputs[0];
}

/* Whether the node only moves or selects values, so that it can run on the integers as well. */
static bool moves_values(const clv__cpu_variant_node *node) {
  if (node->dead || node->post_count > 0 || node->output_count == 0) return false;
  switch (node->kind) {
    case CLV__CPU_VIEW:
    case CLV__CPU_TRANSPOSE:
    case CLV__CPU_CONCAT:
      return true;
    case CLV__CPU_POOL:
      return strcmp(node->source->op, "MaxPool") == 0;
    default:
      return false;
  }
}

static bool same_grid(const clv__cpu_grid *a, const clv__cpu_grid *b) {
  return a->scale == b->scale && a->zero == b->zero && a->dtype == b->dtype;
}

static clv_status visit_move(walk *w, uint32_t index) {
  clv__cpu_variant *variant = w->variant;
  const clv__cpu_variant_node *node = &variant->nodes[index];
  const twin *first = &w->twins[node->inputs[0]];
  const uint32_t count = node->kind == CLV__CPU_CONCAT ? node->input_count : 1; /* of other nodes, only input 0 is data */
  for (uint32_t i = 0; i < count; ++i) {
    const twin *input = &w->twins[node->inputs[i]];
    if (input->value == CLV__CPU_NONE || !same_grid(&input->grid, &first->grid)) return CLV_OK;
  }
  clv__cpu_variant_node *made = &w->beside[index];
  uint32_t *inputs = clv__arena_copy(&variant->arena, node->inputs, node->input_count * sizeof *inputs);
  uint32_t *outputs = clv__arena_allocate_zero(&variant->arena, 1, sizeof *outputs);
  if (inputs == NULL || outputs == NULL) return clv__error_memory(w->error, node->input_count * sizeof *inputs);
  const uint32_t value = variant->value_count++; /* begin() reserved room for one more value per node */
  variant->values[value] = (clv__cpu_variant_value){.type = variant->values[node->outputs[0]].type,
                                                    .producer = CLV__CPU_NONE,
                                                    .reader = CLV__CPU_NONE,
                                                    .last_read = CLV__CPU_NONE,
                                                    .output = CLV__CPU_NONE};
  variant->values[value].type.dtype = first->grid.dtype;
  for (uint32_t i = 0; i < count; ++i) inputs[i] = w->twins[node->inputs[i]].value;
  outputs[0] = value;
  *made = *node;
  made->inputs = inputs;
  made->outputs = outputs;
  made->output_count = 1;
  w->beside_count++;
  w->twins[node->outputs[0]] = (twin){value, first->grid};
  return CLV_OK;
}

/* ---- Groups. ---- */

#define MAX_UNARY 2

/* The elementwise functions between a product or sum and a value computed from it, the last one first. */
typedef struct functions {
  uint32_t count;
  clv__cpu_variant_node *nodes[MAX_UNARY];
} functions;

/* Goes back from `value`, which `reader` reads, past at most MAX_UNARY elementwise functions, which it collects in `f`. Returns
 * the node before them, or NULL if any other node reads one of the values on the way or no node computes the last one. */
static clv__cpu_variant_node *maker_of(clv__cpu_variant *variant, uint32_t value, const clv__cpu_variant_node *reader,
                                       functions *f) {
  f->count = 0;
  for (;;) {
    const clv__cpu_variant_value *read = &variant->values[value];
    if (clv__cpu_only_reader(variant, value) != reader || read->producer == CLV__CPU_NONE) return NULL;
    clv__cpu_variant_node *maker = &variant->nodes[read->producer];
    if (maker->dead || maker->kind != CLV__CPU_UNARY || f->count == MAX_UNARY) return maker;
    f->nodes[f->count++] = maker;
    value = maker->inputs[0];
    reader = maker;
  }
}

static bool all_scale(const functions *f) {
  for (uint32_t i = 0; i < f->count; ++i) {
    if (!clv__cpu_unary_scales(&f->nodes[i]->posts[0])) return false;
  }
  return true;
}

static bool add_functions(clv__cpu_integers *integers, const functions *f) {
  for (uint32_t i = f->count; i-- > 0;) {
    if (!clv__cpu_integers_unary(integers, &f->nodes[i]->posts[0])) return false;
  }
  return true;
}

static void mark_dead(const functions *f) {
  for (uint32_t i = 0; i < f->count; ++i) f->nodes[i]->dead = true;
}

static bool product_of(const walk *w, const clv__cpu_variant_node *node, clv__cpu_product *product) {
  if (!is_product(node) || node->post_count > 0) return false;
  const twin *source = &w->twins[node->inputs[0]];
  return source->value != CLV__CPU_NONE && clv__cpu_product_of_real(w->variant, node, source->value, &source->grid, product);
}

/* Replaces `last` by `made`, which writes the output of `last`. */
static void replace_node(clv__cpu_variant *variant, const clv__cpu_variant_node *made, clv__cpu_variant_node *last) {
  uint32_t *outputs = last->outputs;
  *last = *made;
  last->outputs = outputs;
  last->output_count = 1;
  last->dead = false;
  variant->values[outputs[0]].producer = (uint32_t)(last - variant->nodes);
}

/* Fuses a product, functions and QuantizeLinear. */
static clv_status fuse_product(walk *w, clv__cpu_variant_node *maker, const functions *f, const clv__cpu_grid *grid,
                               clv__cpu_variant_node *last, bool *taken) {
  clv__cpu_variant *variant = w->variant;
  clv__cpu_product product;
  clv__cpu_variant_node *made;
  if (!product_of(w, maker, &product)) return CLV_OK;
  CLV__TRY(clv__cpu_integers_start(variant, &product, all_scale(f) ? grid->scale : 1.0, &made, w->error));
  if (made == NULL || !add_functions(clv__cpu_integers_of(made), f)) return CLV_OK;
  if (!clv__cpu_integers_end(clv__cpu_integers_of(made), grid)) return CLV_OK;
  made->outputs = last->outputs;
  *taken = clv__cpu_integers_have(variant, made);
  if (!*taken) return CLV_OK;
  replace_node(variant, made, last);
  maker->dead = true;
  mark_dead(f);
  return CLV_OK;
}

/* A group that computes one addend of a sum: a product with functions, or a product of integers that is dequantised only for the
 * sum. */
typedef struct side {
  clv__cpu_variant_node *made;       /* the node on integers, to which posts can still be added; NULL if there is none */
  clv__cpu_variant_node *maker, *dq; /* nodes removed if the group is fused; `dq` may be NULL */
  functions f;
} side;

static clv_status side_of(walk *w, const clv__cpu_variant_node *sum, uint32_t operand, const clv__cpu_grid *other, side *s) {
  clv__cpu_variant *variant = w->variant;
  clv__cpu_product product;
  s->made = s->dq = NULL;
  s->maker = maker_of(variant, sum->inputs[operand], sum, &s->f);
  if (s->maker == NULL) return CLV_OK;
  if (product_of(w, s->maker, &product)) {
    CLV__TRY(clv__cpu_integers_start(variant, &product, all_scale(&s->f) ? other->scale : 1.0, &s->made, w->error));
    if (s->made != NULL && !add_functions(clv__cpu_integers_of(s->made), &s->f)) s->made = NULL;
    return CLV_OK;
  }
  if (!is_op(s->maker, "DequantizeLinear") || s->f.count > 0 || w->twins[sum->inputs[operand]].value == CLV__CPU_NONE)
    return CLV_OK;
  s->dq = s->maker;
  const uint32_t integers = s->dq->inputs[0];
  s->maker = maker_of(variant, integers, s->dq, &s->f);
  if (s->maker == NULL || s->f.count > 0 || !is_integer_product(s->maker) || s->maker->post_count > 0) return CLV_OK;
  /* The product must write its integers on the grid from which DequantizeLinear reads them; otherwise they are different
   * numbers. */
  if (!same_grid(&s->maker->integers->grid, &w->twins[sum->inputs[operand]].grid)) return CLV_OK;
  CLV__TRY(clv__cpu_integers_copy(variant, s->maker, &s->made, w->error));
  if (!clv__cpu_integers_requantise(clv__cpu_integers_of(s->made))) s->made = NULL;
  return CLV_OK;
}

/* Fuses four parts into one node: a product of integers, the addition of other integers, elementwise functions and
 * QuantizeLinear. */
static clv_status fuse_sum(walk *w, clv__cpu_variant_node *sum, const functions *f, const clv__cpu_grid *grid,
                           clv__cpu_variant_node *last, bool *taken) {
  clv__cpu_variant *variant = w->variant;
  if (sum->dead || sum->kind != CLV__CPU_BINARY || sum->post_count != 1 || sum->posts[0].algorithm != CLV__DNN_ADD) return CLV_OK;
  const clv_tensor *types[2] = {&variant->values[sum->inputs[0]].type, &variant->values[sum->inputs[1]].type};
  if (!clv__tensor_same_type(types[0], types[1]) || sum->inputs[0] == sum->inputs[1]) return CLV_OK;
  /* Try first to fuse the sum into the addend that is computed later, because the other addend is available by then. */
  const uint32_t producers[2] = {variant->values[sum->inputs[0]].producer, variant->values[sum->inputs[1]].producer};
  const bool second_first = producers[1] != CLV__CPU_NONE && (producers[0] == CLV__CPU_NONE || producers[1] > producers[0]);
  for (uint32_t k = 0; k < 2 && !*taken; ++k) {
    const uint32_t operand = second_first ? 1 - k : k;
    const twin *other = &w->twins[sum->inputs[1 - operand]];
    if (other->value == CLV__CPU_NONE) continue;
    side s;
    CLV__TRY(side_of(w, sum, operand, &other->grid, &s));
    if (s.made == NULL || !clv__cpu_integers_add(s.made, other->value, &other->grid)) continue;
    clv__cpu_integers *integers = clv__cpu_integers_of(s.made);
    if (!add_functions(integers, f) || !clv__cpu_integers_end(integers, grid)) continue;
    s.made->outputs = last->outputs;
    *taken = clv__cpu_integers_have(variant, s.made);
    if (!*taken) continue;
    replace_node(variant, s.made, last);
    s.maker->dead = sum->dead = true;
    if (s.dq != NULL) s.dq->dead = true;
    mark_dead(&s.f);
    mark_dead(f);
  }
  return CLV_OK;
}

static clv_status visit_quantize(walk *w, clv__cpu_variant_node *node) {
  clv__cpu_variant *variant = w->variant;
  clv__cpu_grid grid;
  functions f;
  bool taken = false;
  if (!clv__cpu_is_f32(&variant->values[node->inputs[0]].type)) return CLV_OK;
  if (!clv__cpu_grid_read(variant, node->source, 1, clv__cpu_output(variant, node)->type.dtype, &grid)) return CLV_OK;
  clv__cpu_variant_node *maker = maker_of(variant, node->inputs[0], node, &f);
  if (maker == NULL) return CLV_OK;
  CLV__TRY(fuse_product(w, maker, &f, &grid, node, &taken));
  return taken ? CLV_OK : fuse_sum(w, maker, &f, &grid, node, &taken);
}

/* Turns a QLinearConv or QLinearMatMul into a product of integers. */
static clv_status visit_linear(walk *w, clv__cpu_variant_node *node) {
  clv__cpu_product product;
  clv__cpu_grid grid;
  clv__cpu_variant_node *made;
  if (!clv__cpu_product_of_integers(w->variant, node, &product, &grid)) return CLV_OK;
  CLV__TRY(clv__cpu_integers_start(w->variant, &product, grid.scale, &made, w->error));
  if (made == NULL || !clv__cpu_integers_end(clv__cpu_integers_of(made), &grid)) return CLV_OK;
  if (clv__cpu_integers_have(w->variant, made)) replace_node(w->variant, made, node);
  return CLV_OK;
}

/* Fuses a product of integers whose result is needed in real numbers, with the functions after it. */
static clv_status fuse_real_product(walk *w, clv__cpu_variant_node *node) {
  clv__cpu_variant *variant = w->variant;
  clv__cpu_product product;
  clv__cpu_variant_node *made, *last = node;
  if (!product_of(w, node, &product)) return CLV_OK;
  CLV__TRY(clv__cpu_integers_start(variant, &product, 1.0, &made, w->error));
  if (made == NULL) return CLV_OK;
  for (;;) {
    clv__cpu_variant_node *reader = clv__cpu_only_reader(variant, last->outputs[0]);
    if (reader == NULL || reader->dead || reader->kind != CLV__CPU_UNARY) break;
    if (!clv__cpu_integers_unary(clv__cpu_integers_of(made), &reader->posts[0])) break;
    last = reader;
  }
  if (!clv__cpu_integers_end(clv__cpu_integers_of(made), NULL)) return CLV_OK;
  made->outputs = last->outputs;
  if (!clv__cpu_integers_have(variant, made)) return CLV_OK;
  for (clv__cpu_variant_node *at = node; at != last;) {
    clv__cpu_variant_node *reader = clv__cpu_only_reader(variant, at->outputs[0]);
    at->dead = true;
    at = reader;
  }
  replace_node(variant, made, last);
  return CLV_OK;
}

/* ---- The pass. ---- */

/* A QuantizeLinear or DequantizeLinear that was not fused becomes a GRID node if it has one scale for the whole tensor. */
static void visit_grid(clv__cpu_variant *variant, clv__cpu_variant_node *node) {
  const bool to_integers = is_op(node, "QuantizeLinear");
  clv__cpu_grid grid;
  if (!to_integers && !is_op(node, "DequantizeLinear")) return;
  const clv_tensor *from = &variant->values[node->inputs[0]].type, *to = &clv__cpu_output(variant, node)->type;
  if (!clv__cpu_is_f32(to_integers ? from : to)) return;
  if (clv__cpu_grid_read(variant, node->source, 1, (to_integers ? to : from)->dtype, &grid)) node->kind = CLV__CPU_GRID;
}

static bool has_any(const clv__cpu_variant *variant) {
  for (uint32_t i = 0; i < variant->node_count; ++i) {
    const clv__cpu_variant_node *node = &variant->nodes[i];
    if (is_op(node, "DequantizeLinear") || is_op(node, "QLinearConv") || is_op(node, "QLinearMatMul")) return true;
  }
  return false;
}

static clv_status begin(walk *w) {
  clv__cpu_variant *variant = w->variant;
  const size_t room = (size_t)variant->value_count + variant->node_count;
  clv__cpu_variant_value *values = clv__arena_allocate_zero(&variant->arena, room, sizeof *values);
  w->twins = clv__arena_allocate_zero(&variant->arena, room, sizeof *w->twins);
  w->beside = clv__arena_allocate_zero(&variant->arena, variant->node_count, sizeof *w->beside);
  if (values == NULL || w->twins == NULL || w->beside == NULL) return clv__error_memory(w->error, room * sizeof *values);
  memcpy(values, variant->values, variant->value_count * sizeof *values);
  variant->values = values;
  for (size_t i = 0; i < room; ++i) w->twins[i].value = CLV__CPU_NONE;
  return CLV_OK;
}

/* Inserts each node of `beside` into the variant, directly after the node that it repeats on integers. */
static clv_status merge(walk *w) {
  clv__cpu_variant *variant = w->variant;
  if (w->beside_count == 0) return CLV_OK;
  clv__cpu_variant_node *nodes =
      clv__arena_allocate_zero(&variant->arena, (size_t)variant->node_count + w->beside_count, sizeof *nodes);
  if (nodes == NULL) return clv__error_memory(w->error, variant->node_count * sizeof *nodes);
  uint32_t count = 0;
  for (uint32_t i = 0; i < variant->node_count; ++i) {
    nodes[count++] = variant->nodes[i];
    if (w->beside[i].source != NULL) nodes[count++] = w->beside[i];
  }
  variant->nodes = nodes;
  variant->node_count = count;
  return CLV_OK;
}

clv_status clv__cpu_pass_quantise(clv__cpu_variant *variant, clv_error *error) {
  walk w = {.variant = variant, .error = error};
  if (!clv__dnn_sums_integers() || !has_any(variant)) return CLV_OK;
  CLV__TRY(begin(&w));
  for (uint32_t i = 0; i < variant->node_count; ++i) {
    clv__cpu_variant_node *node = &variant->nodes[i];
    if (is_op(node, "DequantizeLinear")) {
      visit_dequantize(&w, node);
    } else if (is_op(node, "QuantizeLinear")) {
      CLV__TRY(visit_quantize(&w, node));
    } else if (is_op(node, "QLinearConv") || is_op(node, "QLinearMatMul")) {
      CLV__TRY(visit_linear(&w, node));
    } else if (moves_values(node)) {
      CLV__TRY(visit_move(&w, i));
    }
  }
  for (uint32_t i = 0; i < variant->node_count; ++i) {
    if (!variant->nodes[i].dead) CLV__TRY(fuse_real_product(&w, &variant->nodes[i]));
  }
  for (uint32_t i = 0; i < variant->node_count; ++i) visit_grid(variant, &variant->nodes[i]);
  return merge(&w);
}
