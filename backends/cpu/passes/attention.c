/* Matches attention that the model expresses in several nodes: softmax((Q K^T) * scale + mask) V. Scales may apply to Q, K or the
 * scores. Masks may be added, or applied by Where. Heads are split and merged by Reshape and Transpose. Q, K and V are separate
 * values or pieces of one product. The match becomes one node that reads its operands in place and writes the merged result.
 * Nodes whose results are no longer read become dead. */
#include "attention.h"

#include <math.h>

#include "strided.h"

#define LEAD 2       /* axes before rows and columns: batch and head */
#define MOST_STEPS 8 /* limit for the nodes between a product and its operands */

/* The path of the scores back from the softmax to the product that computes them. */
typedef struct chain {
  const clv__cpu_variant_node *product;
  uint32_t length;
  double scale;
  uint32_t mask_count, masks[CLV__ATTENTION_MASKS]; /* in reverse order: the mask applied last comes first */
  clv__attention_mask kinds[CLV__ATTENTION_MASKS];
} chain;

static bool is_product(const clv__cpu_variant_node *node) {
  return node != NULL && node->kind == CLV__CPU_MATRIX && strcmp(node->source->op, "MatMul") == 0 && node->post_count == 0 &&
         node->scale == NULL && node->bias == NULL;
}

static bool same_dims(const clv_tensor *a, const clv_tensor *b) {
  if (a->rank != b->rank) return false;
  for (int32_t i = 0; i < a->rank; ++i) {
    if (a->dims[i] != b->dims[i]) return false;
  }
  return true;
}

static bool broadcasts_to(const clv_tensor *small, const clv_tensor *large) {
  if (small->rank > large->rank) return false;
  for (int32_t i = 0; i < small->rank; ++i) {
    const int64_t dim = small->dims[i];
    if (dim != 1 && dim != large->dims[large->rank - small->rank + i]) return false;
  }
  return true;
}

static bool known_number(const clv__cpu_variant *variant, uint32_t value, double *number) {
  const clv__cpu_variant_value *known = &variant->values[value];
  size_t count;
  float f32;
  if (!known->is_constant || known->type.data == NULL || !clv__cpu_is_f32(&known->type)) return false;
  if (!clv__tensor_count(&known->type, &count) || count != 1) return false;
  memcpy(&f32, known->type.data, sizeof f32);
  *number = (double)f32;
  return true;
}

/* Matches a node that applies a mask to scores: an Add whose operand `side` is the scores, or a Where that chooses between the
 * scores (first if `side` is 0) and a number. Returns the value of the scores; NONE if there is no match. */
static uint32_t mask_of(clv__cpu_variant *variant, const clv__cpu_variant_node *node, uint32_t side, uint32_t *mask,
                        clv__attention_mask *kind) {
  const clv_tensor *out = &variant->values[node->outputs[0]].type;
  *kind = (clv__attention_mask){.kind = CLV__ATTENTION_ADDS};
  if (node->kind == CLV__CPU_BINARY && node->post_count == 1 && node->posts[0].algorithm == CLV__DNN_ADD) {
    const clv_tensor *scores = &variant->values[node->inputs[side]].type, *other = &variant->values[node->inputs[1 - side]].type;
    *mask = node->inputs[1 - side];
    return same_dims(scores, out) && clv__cpu_is_f32(other) && broadcasts_to(other, out) ? node->inputs[side] : CLV__CPU_NONE;
  }
  if (node->kind != CLV__CPU_KERNEL || node->source->domain[0] != 0 || strcmp(node->source->op, "Where") != 0) {
    return CLV__CPU_NONE;
  }
  const uint32_t scores = node->inputs[1 + side];
  *mask = node->inputs[0];
  kind->kind = side == 0 ? CLV__ATTENTION_KEEPS : CLV__ATTENTION_REPLACES;
  const bool fits = variant->values[*mask].type.dtype == CLV_BOOL && clv__tensor_is_static(&variant->values[*mask].type) &&
                    broadcasts_to(&variant->values[*mask].type, out) && same_dims(&variant->values[scores].type, out);
  return fits && known_number(variant, node->inputs[2 - side], &kind->fill) ? scores : CLV__CPU_NONE;
}

/* Follows the scores from `value` back to their product. `reader` must be the only reader of `value`. */
static bool follow(clv__cpu_variant *variant, uint32_t value, const clv__cpu_variant_node *reader, chain *c) {
  const clv__cpu_variant_node *node = clv__cpu_maker(variant, value);
  if (node == NULL || clv__cpu_only_reader(variant, value) != reader || c->length++ == MOST_STEPS) return false;
  if (is_product(node)) {
    c->product = node;
    return true;
  }
  uint32_t input;
  double factor;
  if (clv__cpu_factor(variant, node, &input, &factor)) {
    const uint32_t masked = c->mask_count; /* a factor that also scales a mask does not match */
    const double before = c->scale;
    c->scale *= factor;
    if (follow(variant, input, node, c) && c->mask_count == masked) return true;
    c->scale = before;
    return false;
  }
  for (uint32_t side = 0; side < 2; ++side) {
    if (c->mask_count == CLV__ATTENTION_MASKS) return false;
    chain next = *c;
    double number;
    const uint32_t scores = mask_of(variant, node, side, &next.masks[c->mask_count], &next.kinds[c->mask_count]);
    const bool adds = next.kinds[c->mask_count].kind == CLV__ATTENTION_ADDS;
    if (!adds || !known_number(variant, next.masks[c->mask_count], &number) || number != 0) next.mask_count++;
    if (scores == CLV__CPU_NONE || !follow(variant, scores, node, &next)) continue;
    *c = next;
    return true;
  }
  return false;
}

/* ---- Operands in place ---- */

/* The strides of one operand in memory: from one batch and head to the next, from row to row, and within a row. */
typedef struct lies {
  int64_t lead[LEAD], row, column;
} lies;

/* Reads the strides of an operand of a product with `rank` axes into *at. `turned`: the operand's columns precede its rows. If
 * the graph merges batch and head into one axis but memory does not, sets *heads to the number of heads; *heads is 0 while the
 * number is unknown. Returns false if the kernel does not support such strides. */
static bool read_lies(const clv__cpu_strided *s, int32_t rank, bool turned, int64_t *heads, lies *at) {
  int64_t extents[LEAD] = {1, 1}, strides[LEAD] = {0, 0};
  uint32_t leads = 0, rows = 0, columns = 0;
  *at = (lies){.column = 1};
  for (uint32_t p = 0; p < s->part_count; ++p) {
    const clv__cpu_part *part = &s->parts[p];
    const int32_t row_axis = turned ? rank - 1 : rank - 2;
    if (part->axis == row_axis) {
      at->row = part->stride;
      if (++rows > 1) return false;
    } else if (part->axis >= rank - 2) {
      at->column = part->stride;
      if (++columns > 1) return false;
    } else if (rank == 4) {
      if (strides[part->axis] != 0) return false;
      strides[part->axis] = part->stride;
    } else {
      if (leads == LEAD) return false;
      extents[leads] = part->extent;
      strides[leads++] = part->stride;
    }
  }
  if (at->column != 1) return false;
  at->lead[0] = strides[0], at->lead[1] = strides[1];
  if (leads == 2) { /* batch and head share one axis in the graph */
    if (*heads != 0 && *heads != extents[1]) return false;
    *heads = extents[1];
  }
  return true;
}

/* If batch and head are one axis in memory too, splits its stride into one for each, with the known number of `heads`. */
static void share_lead(const clv__cpu_strided *s, int32_t rank, int64_t heads, lies *at) {
  uint32_t leads = 0;
  for (uint32_t p = 0; p < s->part_count; ++p) leads += s->parts[p].axis < rank - 2;
  if (rank == 4 || leads != 1) return;
  at->lead[1] = at->lead[0];
  at->lead[0] *= heads;
}

/* Follows `value` back to the earliest value whose memory the kernel can read with strides instead. Multiplies *scale by the
 * factors on the way, unless `scale` is NULL. */
static bool find_source(clv__cpu_variant *variant, uint32_t value, bool turned, int64_t *heads, double *scale,
                        clv__cpu_strided *best) {
  const int32_t rank = variant->values[value].type.rank;
  clv__cpu_strided s = clv__cpu_strided_of(variant, value);
  double so_far = 1, factor = 1;
  bool found = false;
  uint32_t steps = 0;
  lies at;
  do {
    int64_t agreed = *heads;
    if (!read_lies(&s, rank, turned, &agreed, &at)) continue;
    *heads = agreed;
    *best = s;
    factor = so_far;
    found = true;
  } while (steps++ < MOST_STEPS && clv__cpu_strided_back(variant, &s, scale != NULL ? &so_far : NULL));
  if (found && scale != NULL) *scale *= factor;
  return found;
}

/* Follows the result forward to the last value that the kernel can write with strides instead. Does not include views at the end,
 * because they cost nothing. */
static bool find_target(clv__cpu_variant *variant, uint32_t value, int64_t *heads, clv__cpu_strided *best) {
  const int32_t rank = variant->values[value].type.rank;
  clv__cpu_strided s = clv__cpu_strided_of(variant, value);
  lies at;
  if (!read_lies(&s, rank, false, heads, &at)) return false;
  *best = s;
  for (uint32_t steps = 0; steps < MOST_STEPS && clv__cpu_strided_forward(variant, &s); ++steps) {
    int64_t agreed = *heads;
    const clv__cpu_variant_node *node = clv__cpu_maker(variant, s.value);
    if (node == NULL || node->kind == CLV__CPU_VIEW || !read_lies(&s, rank, false, &agreed, &at)) continue;
    *heads = agreed;
    *best = s;
  }
  return true;
}

/* ---- The node ---- */

typedef struct found {
  clv__cpu_variant_node *softmax;
  const clv__cpu_variant_node *second; /* the product of the softmax result with V */
  chain scores;
  clv__cpu_strided operands[3], output;
} found;

static bool takes_last_axis(const clv__cpu_variant *variant, const clv__cpu_variant_node *softmax) {
  const int32_t rank = variant->values[softmax->inputs[0]].type.rank;
  const int64_t axis = clv__attribute_int(softmax->source->attributes, "axis", softmax->source->opset < 13 ? 1 : -1);
  return strcmp(softmax->source->op, "Softmax") == 0 && (axis == -1 || axis == rank - 1);
}

/* The product that is the only reader of the softmax result, possibly through views that keep its dims. */
static const clv__cpu_variant_node *second_product(clv__cpu_variant *variant, const clv__cpu_variant_node *softmax) {
  const clv_tensor *shares = &variant->values[softmax->outputs[0]].type;
  uint32_t value = softmax->outputs[0];
  for (;;) {
    const clv__cpu_variant_node *reader = clv__cpu_only_reader(variant, value);
    if (reader == NULL || reader->inputs[0] != value) return NULL;
    if (is_product(reader)) return reader->inputs[1] != value ? reader : NULL;
    if (reader->kind != CLV__CPU_VIEW || !same_dims(shares, &variant->values[reader->outputs[0]].type)) return NULL;
    value = reader->outputs[0];
  }
}

/* Whether the leading axes of both operands match those of the result or have extent 1. */
static bool has_plain_lead(const clv__cpu_variant *variant, const clv__cpu_variant_node *product, int32_t rank) {
  const clv_tensor *out = &variant->values[product->outputs[0]].type;
  for (int k = 0; k < 2; ++k) {
    const clv_tensor *in = &variant->values[product->inputs[k]].type;
    if (in->rank != rank) return false;
    for (int32_t i = 0; i < rank - 2; ++i) {
      if (in->dims[i] != out->dims[i] && in->dims[i] != 1) return false;
    }
  }
  return out->rank == rank;
}

static bool match(clv__cpu_variant *variant, clv__cpu_variant_node *softmax, found *f, int64_t *heads) {
  *f = (found){.softmax = softmax, .scores = {.scale = 1}};
  *heads = 0;
  if (!takes_last_axis(variant, softmax) || !follow(variant, softmax->inputs[0], softmax, &f->scores)) return false;
  f->second = second_product(variant, softmax);
  const clv__cpu_variant_node *first = f->scores.product;
  const int32_t rank = variant->values[first->outputs[0]].type.rank;
  if (f->second == NULL || rank < 2 || rank > 2 + LEAD || !has_plain_lead(variant, first, rank) ||
      !has_plain_lead(variant, f->second, rank)) {
    return false;
  }
  if (variant->values[first->inputs[1]].is_constant || variant->values[f->second->inputs[1]].is_constant) return false;
  if (!same_dims(&variant->values[softmax->inputs[0]].type, &variant->values[first->outputs[0]].type)) return false;
  return find_source(variant, first->inputs[0], false, heads, &f->scores.scale, &f->operands[0]) &&
         find_source(variant, first->inputs[1], true, heads, &f->scores.scale, &f->operands[1]) &&
         find_source(variant, f->second->inputs[1], false, heads, NULL, &f->operands[2]) &&
         find_target(variant, f->second->outputs[0], heads, &f->output);
}

static clv__attention_rows rows_of(const clv__cpu_strided *s, int32_t rank, bool turned, int64_t heads, int64_t size) {
  int64_t agreed = heads;
  lies at;
  (void)read_lies(s, rank, turned, &agreed, &at);
  share_lead(s, rank, heads, &at);
  return (clv__attention_rows){
      .size = size, .heads = heads, .first = s->first, .batch_step = at.lead[0], .head_step = at.lead[1], .row_step = at.row};
}

static void fill_mask(const clv_tensor *mask, int32_t rank, int64_t heads, clv__attention_mask *to) {
  int64_t stride = 1;
  for (int32_t i = mask->rank - 1; i >= 0; --i) {
    const int32_t axis = i + rank - mask->rank; /* the corresponding axis of the scores */
    if (mask->dims[i] == 1) continue;
    if (axis >= rank - 2) {
      to->steps[axis - rank + 4] = stride;
    } else if (rank == 4) {
      to->steps[axis] = stride;
    } else {
      to->steps[0] = stride * heads, to->steps[1] = stride;
    }
    stride *= mask->dims[i];
  }
}

static void describe(const clv__cpu_variant *variant, const found *f, int64_t heads, clv__attention *a) {
  const clv_tensor *scores = &variant->values[f->scores.product->outputs[0]].type;
  const clv_tensor *out = &variant->values[f->second->outputs[0]].type;
  const int32_t rank = scores->rank;
  const int64_t lead = clv__dims_product(scores, 0, rank - 2);
  heads = rank == 4 ? scores->dims[1] : heads != 0 ? heads : 1;
  const int64_t size = variant->values[f->scores.product->inputs[0]].type.dims[rank - 1], width = out->dims[rank - 1];
  *a = (clv__attention){.batches = lead / heads,
                        .heads = heads,
                        .group = 1,
                        .queries = scores->dims[rank - 2],
                        .total = scores->dims[rank - 1],
                        .left = INT64_MAX / 4,
                        .right = INT64_MAX / 4,
                        .scale = f->scores.scale,
                        .empty_is_nan = true};
  a->mask_keys = a->total;
  a->query = rows_of(&f->operands[0], rank, false, heads, size);
  a->key = rows_of(&f->operands[1], rank, true, heads, size);
  a->value = rows_of(&f->operands[2], rank, false, heads, width);
  a->output = rows_of(&f->output, rank, false, heads, width);
  for (uint32_t m = 0; m < f->scores.mask_count; ++m) { /* in the order in which they apply */
    const uint32_t from = f->scores.mask_count - 1 - m;
    a->masks[m] = f->scores.kinds[from];
    fill_mask(&variant->values[f->scores.masks[from]].type, rank, heads, &a->masks[m]);
  }
}

static clv_status replace(clv__cpu_variant *variant, const found *f, int64_t heads, clv_error *error) {
  struct clv__cpu_attention *attention = clv__arena_allocate_zero(&variant->arena, 1, sizeof *attention);
  uint32_t *inputs = clv__arena_allocate_zero(&variant->arena, CLV__CPU_ATTENTION_INPUTS, sizeof *inputs);
  if (attention == NULL || inputs == NULL) return clv__error_memory(error, sizeof *attention);
  describe(variant, f, heads, &attention->call);
  for (int k = 0; k < 3; ++k) inputs[k] = f->operands[k].value;
  for (uint32_t m = 0; m < f->scores.mask_count; ++m) {
    inputs[CLV__CPU_ATTENTION_MASK + m] = f->scores.masks[f->scores.mask_count - 1 - m];
  }
  clv__cpu_variant_node *node = clv__cpu_maker(variant, f->output.value);
  node->kind = CLV__CPU_ATTENTION;
  node->composed = true;
  node->attention = attention;
  node->inputs = inputs;
  node->input_count = CLV__CPU_ATTENTION_MASK + f->scores.mask_count;
  node->post_count = 0;
  return CLV_OK;
}

/* Whether to leave the products to oneDNN in bf16, which is faster than this kernel on CPUs that support bf16. */
static bool is_bf16(const clv__cpu_variant *variant, uint32_t query) {
  return clv__dnn_has_bf16() && (variant->program->precision == CLV_BF16 || variant->values[query].outer == CLV_BF16);
}

clv_status clv__cpu_pass_attention(clv__cpu_variant *variant, clv_error *error) {
  for (uint32_t i = 0; i < variant->node_count && variant->onednn; ++i) {
    clv__cpu_variant_node *softmax = &variant->nodes[i];
    int64_t heads;
    found f;
    if (softmax->dead || softmax->kind != CLV__CPU_SOFTMAX || !match(variant, softmax, &f, &heads)) continue;
    if (!is_bf16(variant, f.scores.product->inputs[0])) CLV__TRY(replace(variant, &f, heads, error));
  }
  return CLV_OK;
}
