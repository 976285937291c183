/* Reduce*: the axes come from an attribute or, in later opsets, from an input. The output lacks these axes or has size 1 there.
 * ArgMax, ArgMin, CumSum and CumProd work along one axis. */
#include "operators/infer.h"
#include "operators/common/content.h"
#include "operators/common/dims.h"
#include "operators/common/padding.h"

/* Reads the axes as a bit mask. *known is false if they are an input whose value is unknown. */
static clv_status read_axes(clv__infer *infer, int32_t rank, bool *known, uint32_t *axes) {
  clv__content list;
  bool given;
  *axes = 0;
  CLV__TRY(clv__infer_list(infer, clv__infer_has(infer, 1) ? NULL : "axes", 1, &given, &list));
  *known = !given || list.known;
  for (uint32_t i = 0; i < list.count; ++i) {
    int32_t axis;
    if (!clv__element_is_number(list.elements[i])) {
      *known = false;
      return CLV_OK;
    }
    CLV__TRY(clv__infer_axis(infer, list.elements[i], rank, &axis));
    *axes |= 1u << axis;
  }
  bool all = list.count == 0 && clv__attribute_int(infer->attributes, "noop_with_empty_axes", 0) == 0;
  if (*known && all) *axes = (1u << rank) - 1;
  return CLV_OK;
}

/* Infers the output if the axes are unknown. Their number may be unknown too. */
static clv_status infer_unknown_axes(clv__infer *infer, bool keeps_dims) {
  const clv_tensor *input = &infer->inputs[0], *axes = &infer->inputs[1];
  int32_t rank = CLV_RANK_UNKNOWN;
  if (keeps_dims)
    rank = input->rank;
  else if (axes->rank == 1 && axes->dims[0] > 0 && axes->dims[0] <= input->rank)
    rank = input->rank - (int32_t)axes->dims[0];
  clv__infer_set_unknown(infer, 0, input->dtype, rank);
  return CLV_OK;
}

static clv_status infer_reduce(clv__infer *infer) {
  const clv_tensor *input = &infer->inputs[0];
  bool keeps_dims = clv__attribute_int(infer->attributes, "keepdims", 1) != 0, known;
  uint32_t axes;
  if (input->rank < 0) {
    clv__infer_set(infer, 0, input->dtype, CLV_RANK_UNKNOWN, NULL);
    return CLV_OK;
  }
  CLV__TRY(read_axes(infer, input->rank, &known, &axes));
  if (!known) return infer_unknown_axes(infer, keeps_dims);
  int64_t dims[CLV_MAX_RANK];
  int32_t rank = 0;
  for (int32_t i = 0; i < input->rank; ++i) {
    bool reduced = (axes >> i & 1u) != 0;
    if (!reduced || keeps_dims) dims[rank++] = reduced ? 1 : input->dims[i];
  }
  clv__infer_set(infer, 0, input->dtype, rank, dims);
  return CLV_OK;
}

/* Like infer_reduce(). Also computes the output's content if a vector is reduced to a single number. */
static clv_status infer_fold(clv__infer *infer, clv__arithmetic what, int64_t start) {
  clv__content content;
  uint32_t count;
  CLV__TRY(infer_reduce(infer));
  if (!clv__content_room(infer, &count) || count != 1 || infer->inputs[0].rank != 1) return CLV_OK;
  if (!clv__infer_elements(infer, 0, &content) || content.count == 0) return CLV_OK;
  int64_t total = what == CLV__MIN || what == CLV__MAX ? content.elements[0] : start;
  for (uint32_t i = 0; i < content.count; ++i) total = clv__element_combine(what, total, content.elements[i]);
  *infer->output_content = (clv__content){.known = true, .count = 1, .elements = {total}};
  return CLV_OK;
}

static clv_status infer_sum(clv__infer *infer) {
  return infer_fold(infer, CLV__ADD, 0);
}
static clv_status infer_product(clv__infer *infer) {
  return infer_fold(infer, CLV__MUL, 1);
}
static clv_status infer_max(clv__infer *infer) {
  return infer_fold(infer, CLV__MAX, 0);
}
static clv_status infer_min(clv__infer *infer) {
  return infer_fold(infer, CLV__MIN, 0);
}

static clv_status infer_arg(clv__infer *infer) {
  const clv_tensor *input = &infer->inputs[0];
  bool keeps_dims = clv__attribute_int(infer->attributes, "keepdims", 1) != 0;
  int64_t attribute = clv__attribute_int(infer->attributes, "axis", 0), dims[CLV_MAX_RANK];
  int32_t axis = 0, rank = 0;
  if (input->rank < 0) {
    clv__infer_set(infer, 0, CLV_I64, CLV_RANK_UNKNOWN, NULL);
    return CLV_OK;
  }
  if (input->rank != 0 || (attribute != 0 && attribute != -1)) CLV__TRY(clv__infer_axis(infer, attribute, input->rank, &axis));
  for (int32_t i = 0; i < input->rank; ++i) {
    if (i != axis || keeps_dims) dims[rank++] = i == axis ? 1 : input->dims[i];
  }
  clv__infer_set(infer, 0, CLV_I64, rank, dims);
  return CLV_OK;
}

static clv_status infer_cumulate(clv__infer *infer) {
  const clv_tensor *input = &infer->inputs[0];
  clv__content axis;
  int32_t unused;
  if (input->rank > 0 && clv__infer_elements(infer, 1, &axis) && axis.count == 1 && clv__element_is_number(axis.elements[0])) {
    CLV__TRY(clv__infer_axis(infer, axis.elements[0], input->rank, &unused));
  }
  return clv__infer_same(infer);
}

static void work_times(const clv__infer *infer, clv__work *work, double factor) {
  size_t count;
  if (clv__tensor_count(&infer->inputs[0], &count)) work->flops = factor * (double)count;
}
static void work_fold(const clv__infer *infer, clv__work *work) {
  work_times(infer, work, 1);
}
static void work_square(const clv__infer *infer, clv__work *work) {
  work_times(infer, work, 2);
}
static void work_exponential(const clv__infer *infer, clv__work *work) {
  work_times(infer, work, 14);
}

/* ---- Independence along padded axes (common/padding.h) ---- */

/* Converts a list of axes, which may be negative, to a bit mask. An empty list means all axes, or no axis if `noop`. */
static bool padded_axes(clv__padding *padding, bool given, const clv__content *list, bool noop, int32_t rank, uint32_t *axes) {
  *axes = 0;
  for (uint32_t i = 0; given && i < list->count; ++i) {
    int32_t axis;
    if (!clv__padding_axis(padding, list->elements[i], rank, &axis)) return false;
    *axes |= clv__axis_bit(axis);
  }
  if ((!given || list->count == 0) && !noop) *axes = clv__axes_between(0, rank);
  return true;
}

/* Marks the padded axes of output `output`. It has the axes of input 0, but lacks those in `gone` or has size 1 there. */
static void drop_axes(clv__padding *padding, uint32_t output, uint32_t gone, bool keeps_dims) {
  int32_t to = 0;
  for (int32_t axis = 0; axis < padding->node->inputs[0].rank; ++axis) {
    bool is_gone = (gone >> axis & 1u) != 0;
    if (!is_gone && (padding->inputs[0] >> axis & 1u) != 0) padding->outputs[output] |= clv__axis_bit(to);
    to += !is_gone || keeps_dims;
  }
}

static bool independent_reduce(clv__padding *padding) {
  const clv__infer *node = padding->node;
  clv__content list;
  bool given;
  uint32_t axes;
  if (!clv__padding_list(padding, clv__infer_has(node, 1) ? NULL : "axes", 1, &given, &list)) return false;
  bool noop = clv__attribute_int(node->attributes, "noop_with_empty_axes", 0) != 0;
  if (!padded_axes(padding, given, &list, noop, node->inputs[0].rank, &axes) || !clv__padding_avoids(padding, 0, axes))
    return false;
  drop_axes(padding, 0, axes, clv__attribute_int(node->attributes, "keepdims", 1) != 0);
  return true;
}

static bool independent_arg(clv__padding *padding) {
  const clv__infer *node = padding->node;
  int32_t axis;
  if (!clv__padding_attribute_axis(padding, 0, node->inputs[0].rank, &axis)) return false;
  if (!clv__padding_avoids(padding, 0, clv__axis_bit(axis))) return false;
  drop_axes(padding, 0, clv__axis_bit(axis), clv__attribute_int(node->attributes, "keepdims", 1) != 0);
  return true;
}

static bool independent_cumulate(clv__padding *padding) {
  clv__content list;
  bool given;
  int32_t axis;
  if (!clv__padding_list(padding, NULL, 1, &given, &list)) return false;
  if (!given || list.count != 1) return clv__padding_no(padding, "its axis is not a single number");
  if (!clv__padding_axis(padding, list.elements[0], padding->node->inputs[0].rank, &axis)) return false;
  return clv__padding_avoids(padding, 0, clv__axis_bit(axis)) && clv__padding_pass(padding);
}

#define REDUCE(name, infer, work) \
  { "", name, 1, 2, 1, 1, 0, infer, work, independent_reduce }

const clv__op clv__ops_reduce[] = {
    REDUCE("ReduceSum", infer_sum, work_fold),
    REDUCE("ReduceMean", infer_reduce, work_fold),
    REDUCE("ReduceMax", infer_max, work_fold),
    REDUCE("ReduceMin", infer_min, work_fold),
    REDUCE("ReduceProd", infer_product, work_fold),
    REDUCE("ReduceL1", infer_reduce, work_fold),
    REDUCE("ReduceL2", infer_reduce, work_square),
    REDUCE("ReduceLogSum", infer_reduce, work_fold),
    REDUCE("ReduceLogSumExp", infer_reduce, work_exponential),
    REDUCE("ReduceSumSquare", infer_reduce, work_square),
    {"", "ArgMax", 1, 1, 1, 1, 0, infer_arg, work_fold, independent_arg},
    {"", "ArgMin", 1, 1, 1, 1, 0, infer_arg, work_fold, independent_arg},
    {"", "CumSum", 2, 2, 1, 1, 0, infer_cumulate, work_fold, independent_cumulate},
    {"", "CumProd", 2, 2, 1, 1, 0, infer_cumulate, work_fold, independent_cumulate},
    {.name = NULL},
};
