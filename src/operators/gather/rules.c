/* Rules of independence for operators that move elements: see independence_rules.h. */
#include <string.h>

#include "analysis/independence_rules.h"
#include "operators/common/dims.h"

/* ---- Shapes ---- */

/* A dim as a number, or as a symbol times a fraction. */
typedef struct size {
  int64_t symbol; /* 0: none */
  int64_t times, over;
} size;

/* Two products of sizes without what they have in common: numbers, where the symbols are the same. */
typedef struct share {
  int64_t above, below;
  bool same_symbols;
} share;

static bool multiply(int64_t *product, int64_t factor) {
  return factor > 0 && !__builtin_mul_overflow(*product, factor, product);
}

static share compare_products(const size *above, int32_t above_count, const size *below, int32_t below_count) {
  share s = {1, 1, true};
  bool used[CLV_MAX_RANK] = {false}, good = true;
  int32_t symbols = 0;
  for (int32_t i = 0; i < below_count; ++i) {
    good = good && multiply(&s.below, below[i].times) && multiply(&s.above, below[i].over);
    symbols += below[i].symbol != 0;
  }
  for (int32_t i = 0; i < above_count; ++i) {
    good = good && multiply(&s.above, above[i].times) && multiply(&s.below, above[i].over);
    if (above[i].symbol == 0) continue;
    int32_t at = 0;
    while (at < below_count && (used[at] || below[at].symbol != above[i].symbol)) ++at;
    good = good && at < below_count;
    if (good) used[at] = true, --symbols;
  }
  s.same_symbols = good && symbols == 0;
  return s;
}

static void read_sizes(const clv_tensor *type, size *sizes) {
  for (int32_t d = 0; d < type->rank; ++d) {
    bool is_symbol = type->dims[d] < 0;
    sizes[d] = (size){is_symbol ? type->dims[d] : 0, is_symbol ? 1 : type->dims[d], 1};
  }
}

/* The output axis that open axis `axis` of the input becomes: as much lies before, and behind both are the same symbols. The
 * output's size there is then known as a multiple of the input's, which may settle another axis. -1: none, so far. */
static int32_t link_axis(const clv_tensor *in, const clv_tensor *out, int32_t axis, const size *from, size *to) {
  for (int32_t b = 0; b < out->rank; ++b) {
    if (out->dims[b] >= 0) continue;
    share before = compare_products(from, axis, to, b);
    share behind = compare_products(from + axis + 1, in->rank - axis - 1, to + b + 1, out->rank - b - 1);
    if (!before.same_symbols || before.above != before.below || !behind.same_symbols) continue;
    to[b] = (size){in->dims[axis], behind.above, behind.below};
    return b;
  }
  return -1;
}

/* The constant target of a Reshape lets the size along output axis `to` follow that of input axis `from`. */
static bool target_follows(clv__padding *padding, int32_t from, int32_t to) {
  clv__content target;
  bool given;
  if (!clv__padding_list(padding, NULL, 1, &given, &target)) return false;
  bool keeps_zero = clv__attribute_int(padding->node->attributes, "allowzero", 0) != 0;
  int64_t element = (uint32_t)to < target.count ? target.elements[to] : 0;
  if (element == -1 || (element == 0 && !keeps_zero && from == to)) return true;
  return clv__padding_no(padding, "its new axis %d is of the fixed size %lld", (int)to, (long long)element);
}

/* Reshape, Flatten, Squeeze, Unsqueeze: a padded axis stays whole, or is joined with or parted from the fixed ones behind it, so
 * that what was at the beginning still is. */
bool clv__independent_reshape(clv__padding *padding) {
  const clv_tensor *in = &padding->node->inputs[0], *out = &padding->node->outputs[0];
  size from[CLV_MAX_RANK], to[CLV_MAX_RANK];
  int32_t links[CLV_MAX_RANK], linked = 1;
  if (!clv__padding_whole_from(padding, 1)) return false;
  read_sizes(in, from);
  read_sizes(out, to);
  for (int32_t a = 0; a < in->rank; ++a) links[a] = -1;
  while (linked > 0) {
    linked = 0;
    for (int32_t a = 0; a < in->rank; ++a) {
      if (in->dims[a] >= 0 || links[a] >= 0) continue;
      links[a] = link_axis(in, out, a, from, to);
      linked += links[a] >= 0;
    }
  }
  for (int32_t a = 0; a < in->rank; ++a) {
    if ((padding->inputs[0] >> a & 1u) == 0) continue;
    int32_t b = links[a];
    if (b < 0) return clv__padding_no(padding, "axis %d, of an open size, is joined with others", (int)a);
    if (strcmp(padding->op->name, "Reshape") == 0 && !target_follows(padding, a, b)) return false;
    padding->outputs[0] |= clv__axis_bit(b);
    padding->times[b] = to[b].times;
    padding->over[b] = to[b].over;
  }
  return true;
}

bool clv__independent_transpose(clv__padding *padding) {
  size_t count;
  int32_t rank = padding->node->inputs[0].rank;
  const int64_t *perm = clv__attribute_ints(padding->node->attributes, "perm", &count);
  for (int32_t to = 0; to < rank; ++to) {
    int64_t from = perm != NULL && (size_t)to < count ? perm[to] : rank - 1 - to;
    if (from >= 0 && from < rank && (padding->inputs[0] >> from & 1u) != 0) padding->outputs[0] |= clv__axis_bit(to);
  }
  return true;
}

/* ---- Parts ---- */

static bool attribute_axis(clv__padding *padding, int64_t fallback, int32_t rank, int32_t *axis) {
  return clv__padding_axis(padding, clv__attribute_int(padding->node->attributes, "axis", fallback), rank, axis);
}

bool clv__independent_concat(clv__padding *padding) {
  const clv__infer *node = padding->node;
  int32_t axis, rank = node->inputs[0].rank;
  if (!attribute_axis(padding, 1, rank, &axis)) return false;
  for (uint32_t i = 0; i < node->input_count; ++i) {
    if ((padding->inputs[i] >> axis & 1u) != 0)
      return clv__padding_no(padding, "it puts input %u, of an open size along axis %d, before or behind others", i, (int)axis);
    if (padding->inputs[i] != padding->inputs[0]) return clv__padding_no(padding, "inputs 0 and %u have different open sizes", i);
  }
  return clv__padding_pass(padding);
}

bool clv__independent_split(clv__padding *padding) {
  int32_t axis;
  if (!attribute_axis(padding, 0, padding->node->inputs[0].rank, &axis)) return false;
  if (!clv__padding_whole_from(padding, 1) || !clv__padding_avoids(padding, 0, clv__axis_bit(axis))) return false;
  return clv__padding_pass(padding);
}

bool clv__independent_slice(clv__padding *padding) {
  const clv__infer *node = padding->node;
  bool old = node->opset < 10, given;
  clv__content axes, starts;
  uint32_t sliced = 0;
  if (!clv__padding_whole_from(padding, 1)) return false;
  if (!clv__padding_list(padding, old ? "axes" : NULL, 3, &given, &axes)) return false;
  if (!given) { /* the first ones, as many as there are starts */
    if (!clv__padding_list(padding, old ? "starts" : NULL, 1, &given, &starts)) return false;
    sliced = clv__axes_between(0, starts.count < CLV_MAX_RANK ? (int32_t)starts.count : CLV_MAX_RANK);
  }
  for (uint32_t i = 0; i < axes.count; ++i) {
    int32_t axis;
    if (!clv__padding_axis(padding, axes.elements[i], node->inputs[0].rank, &axis)) return false;
    sliced |= clv__axis_bit(axis);
  }
  return clv__padding_avoids(padding, 0, sliced) && clv__padding_pass(padding);
}

/* ---- Repeating and surrounding ---- */

bool clv__independent_pad(clv__padding *padding) {
  const clv__infer *node = padding->node;
  clv__content pads, axes = {.count = 0};
  bool given, axes_given = false;
  if (!clv__padding_whole_from(padding, 1)) return false;
  if (!clv__padding_list(padding, node->opset < 11 ? "pads" : NULL, 1, &given, &pads)) return false;
  if (node->opset >= 18 && !clv__padding_list(padding, NULL, 3, &axes_given, &axes)) return false;
  uint32_t count = axes_given ? axes.count : (uint32_t)node->inputs[0].rank, surrounded = 0;
  if (!given || pads.count != 2 * count) return clv__padding_no(padding, "its pads do not fit");
  for (uint32_t i = 0; i < count; ++i) {
    int32_t axis;
    if (!clv__padding_axis(padding, axes_given ? axes.elements[i] : (int64_t)i, node->inputs[0].rank, &axis)) return false;
    if (pads.elements[i] != 0 || pads.elements[count + i] != 0) surrounded |= clv__axis_bit(axis);
  }
  return clv__padding_avoids(padding, 0, surrounded) && clv__padding_pass(padding);
}

bool clv__independent_expand(clv__padding *padding) {
  const clv__infer *node = padding->node;
  clv__content want;
  bool given;
  if (!clv__padding_whole_from(padding, 1) || !clv__padding_list(padding, NULL, 1, &given, &want)) return false;
  int32_t rank = node->outputs[0].rank, added = rank - node->inputs[0].rank;
  for (int32_t axis = 0; axis < node->inputs[0].rank; ++axis) {
    if ((padding->inputs[0] >> axis & 1u) == 0) continue;
    int32_t at = axis + added - (rank - (int32_t)want.count);
    if (at >= 0 && want.elements[at] != 1) return clv__padding_no(padding, "it expands axis %d to a fixed size", (int)axis);
    padding->outputs[0] |= clv__axis_bit(axis + added);
  }
  return true;
}

bool clv__independent_tile(clv__padding *padding) {
  clv__content repeats;
  bool given;
  uint32_t repeated = 0;
  if (!clv__padding_whole_from(padding, 1) || !clv__padding_list(padding, NULL, 1, &given, &repeats)) return false;
  for (uint32_t i = 0; i < repeats.count && i < CLV_MAX_RANK; ++i) {
    if (repeats.elements[i] != 1) repeated |= clv__axis_bit((int32_t)i);
  }
  return clv__padding_avoids(padding, 0, repeated) && clv__padding_pass(padding);
}

/* ---- Places listed by another tensor: what fills the list up must be places too, and zero always is one ---- */

static bool places_are_valid(clv__padding *padding, uint32_t input) {
  if (padding->inputs[input] == 0 || padding->zero[input]) return true;
  return clv__padding_no(padding, "places in input %u are computed, and what fills it up may be none", input);
}

bool clv__independent_gather(clv__padding *padding) {
  const clv_tensor *data = &padding->node->inputs[0], *indices = &padding->node->inputs[1];
  int32_t axis;
  if (!attribute_axis(padding, 0, data->rank, &axis)) return false;
  if (!clv__padding_avoids(padding, 0, clv__axis_bit(axis)) || !places_are_valid(padding, 1)) return false;
  for (int32_t d = 0; d < data->rank; ++d) {
    if ((padding->inputs[0] >> d & 1u) != 0) padding->outputs[0] |= clv__axis_bit(d < axis ? d : d + indices->rank - 1);
  }
  padding->outputs[0] |= padding->inputs[1] << axis;
  return true;
}

/* Along all axes but the one of the places, indices (and updates) lie on the data. */
static bool lie_on_data(clv__padding *padding, uint32_t input, int32_t axis) {
  uint32_t others = ~clv__axis_bit(axis), outside = padding->inputs[input] & ~padding->inputs[0] & others;
  if (outside == 0) return true;
  return clv__padding_no(padding, "input %u has another open size along axis %d than input 0", input, __builtin_ctz(outside));
}

bool clv__independent_gather_elements(clv__padding *padding) {
  int32_t axis;
  if (!attribute_axis(padding, 0, padding->node->inputs[0].rank, &axis)) return false;
  if (!clv__padding_avoids(padding, 0, clv__axis_bit(axis)) || !places_are_valid(padding, 1) || !lie_on_data(padding, 1, axis))
    return false;
  padding->outputs[0] = padding->inputs[1];
  return true;
}

bool clv__independent_gather_nd(clv__padding *padding) {
  const clv_tensor *data = &padding->node->inputs[0], *indices = &padding->node->inputs[1];
  int64_t batch = clv__attribute_int(padding->node->attributes, "batch_dims", 0);
  int64_t depth = indices->rank < 1 ? -1 : indices->dims[indices->rank - 1];
  if (depth < 0 || batch < 0 || batch + depth > data->rank || batch >= indices->rank)
    return clv__padding_no(padding, "how many axes it addresses is not known");
  int32_t first = (int32_t)batch, end = (int32_t)(batch + depth);
  if (!clv__padding_avoids(padding, 0, clv__axes_between(first, end)) || !places_are_valid(padding, 1)) return false;
  uint32_t batches = clv__axes_between(0, first);
  if (((padding->inputs[0] ^ padding->inputs[1]) & batches) != 0)
    return clv__padding_no(padding, "its inputs have different open sizes along a batch axis");
  padding->outputs[0] = padding->inputs[1] & ~clv__axis_bit(indices->rank - 1);
  for (int32_t d = end; d < data->rank; ++d) {
    if ((padding->inputs[0] >> d & 1u) != 0) padding->outputs[0] |= clv__axis_bit(indices->rank - 1 + d - end);
  }
  return clv__padding_avoids(padding, 1, clv__axis_bit(indices->rank - 1));
}

bool clv__independent_scatter_elements(clv__padding *padding) {
  int32_t axis;
  if (!attribute_axis(padding, 0, padding->node->inputs[0].rank, &axis)) return false;
  uint32_t along = clv__axis_bit(axis);
  for (uint32_t i = 0; i < 3; ++i) {
    if (!clv__padding_avoids(padding, i, along)) return false;
  }
  if (padding->inputs[1] != padding->inputs[2]) return clv__padding_no(padding, "indices and updates have different open sizes");
  if (!places_are_valid(padding, 1) || !lie_on_data(padding, 1, axis)) return false;
  padding->outputs[0] = padding->inputs[0];
  return true;
}

/* Whole slices are written: only axes within them may be padded. */
bool clv__independent_scatter_nd(clv__padding *padding) {
  const clv_tensor *data = &padding->node->inputs[0], *indices = &padding->node->inputs[1];
  int64_t depth = indices->rank < 1 ? -1 : indices->dims[indices->rank - 1];
  if (depth < 0 || depth > data->rank) return clv__padding_no(padding, "how many axes it addresses is not known");
  if (!clv__padding_avoids(padding, 0, clv__axes_between(0, (int32_t)depth)) || !clv__padding_avoids(padding, 1, ~0u))
    return false;
  uint32_t wanted = 0;
  for (int32_t d = (int32_t)depth; d < data->rank; ++d) {
    if ((padding->inputs[0] >> d & 1u) != 0) wanted |= clv__axis_bit(indices->rank - 1 + d - (int32_t)depth);
  }
  if (padding->inputs[2] != wanted) return clv__padding_no(padding, "its updates have other open sizes than its slices");
  padding->outputs[0] = padding->inputs[0];
  return true;
}

/* ---- Others ---- */

bool clv__independent_one_hot(clv__padding *padding) {
  int32_t axis, rank = padding->node->inputs[0].rank;
  if (!clv__padding_whole_from(padding, 1) || !attribute_axis(padding, -1, rank + 1, &axis)) return false;
  for (int32_t d = 0; d < rank; ++d) {
    if ((padding->inputs[0] >> d & 1u) != 0) padding->outputs[0] |= clv__axis_bit(d < axis ? d : d + 1);
  }
  return true;
}

bool clv__independent_topk(clv__padding *padding) {
  int32_t axis;
  if (!clv__padding_whole_from(padding, 1) || !attribute_axis(padding, -1, padding->node->inputs[0].rank, &axis)) return false;
  return clv__padding_avoids(padding, 0, clv__axis_bit(axis)) && clv__padding_pass(padding);
}
