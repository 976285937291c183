/* The independence rule of reshapes (common/padding.h): finds the output axis that a padded input axis becomes. */
#include "operators/view/rules.h"

#include <string.h>

#include "operators/common/dims.h"

/* A dim as a number, or as a symbol times a fraction. */
typedef struct size {
  int64_t symbol; /* 0: none */
  int64_t times, over;
} size;

/* The quotient above / below of two products of sizes. It is a number if both products contain the same symbols. */
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

/* Finds the output axis that axis `axis` of the input, whose size is a symbol, becomes: the sizes before both axes have equal
 * products, and the sizes after both contain the same symbols. Sets the element of `to` for the output axis to the axis's size,
 * a multiple of the input axis's size; a later call may need it to find another axis. Returns -1 if no axis is found. */
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

/* Whether the constant input shape of a Reshape leaves the size of output axis `to` open, so that it changes with input axis
 * `from`. */
static bool target_follows(clv__padding *padding, int32_t from, int32_t to) {
  clv__content target;
  bool given;
  if (!clv__padding_list(padding, NULL, 1, &given, &target)) return false;
  bool keeps_zero = clv__attribute_int(padding->node->attributes, "allowzero", 0) != 0;
  int64_t element = (uint32_t)to < target.count ? target.elements[to] : 0;
  if (element == -1 || (element == 0 && !keeps_zero && from == to)) return true;
  return clv__padding_no(padding, "it gives output axis %d the fixed size %lld", (int)to, (long long)element);
}

/* Reshape, Flatten, Squeeze, Unsqueeze: a padded axis is kept, or it is merged with fixed axes after it, or split into one axis
 * and fixed axes after that. In each case, the valid elements still come before the padding. */
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
    if (b < 0) return clv__padding_no(padding, "no output axis can be found for axis %d, which has an open size", (int)a);
    if (strcmp(padding->op->name, "Reshape") == 0 && !target_follows(padding, a, b)) return false;
    padding->outputs[0] |= clv__axis_bit(b);
    padding->times[b] = to[b].times;
    padding->over[b] = to[b].over;
  }
  return true;
}
