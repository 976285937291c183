/* The normalizations: the result has the type of the input. Scales and biases must match it. */
#include "operators/common/checks.h"
#include "operators/common/padding.h"

/* The number of channels of input 0: the size of axis 1, or 1 if there is no axis 1. */
static int64_t channels_of(const clv_tensor *x) {
  return x->rank == CLV_RANK_UNKNOWN ? CLV_DIM_UNKNOWN : x->rank > 1 ? x->dims[1] : 1;
}

static clv_status batch_infer(clv__infer *infer) {
  const clv_tensor *x = &infer->inputs[0];
  int64_t channels = channels_of(x);
  bool by_activation = clv__attribute_int(infer->attributes, "spatial", 1) == 0;
  CLV__TRY(clv__check_rank(infer, 0, 1, CLV_MAX_RANK));
  for (uint32_t i = 1; i < 5 && !by_activation; ++i) CLV__TRY(clv__check_vector(infer, i, channels));
  CLV__TRY(clv__infer_same(infer));
  const clv_tensor *mean = &infer->inputs[3];
  for (uint32_t i = 1; i < infer->output_count; ++i) {
    clv__infer_set(infer, i, mean->dtype, by_activation ? mean->rank : 1, by_activation ? mean->dims : &channels);
  }
  return CLV_OK;
}

static clv_status instance_infer(clv__infer *infer) {
  CLV__TRY(clv__check_rank(infer, 0, 2, CLV_MAX_RANK));
  for (uint32_t i = 1; i < 3; ++i) {
    CLV__TRY(clv__check_same_dtype(infer, 0, i));
    CLV__TRY(clv__check_vector(infer, i, channels_of(&infer->inputs[0])));
  }
  return clv__infer_same(infer);
}

/* Scale and bias have one element per group before opset 21, and one per channel from then on. */
static clv_status group_infer(clv__infer *infer) {
  CLV__TRY(clv__check_rank(infer, 0, 2, CLV_MAX_RANK));
  int64_t channels = channels_of(&infer->inputs[0]), groups = clv__attribute_int(infer->attributes, "num_groups", 0);
  if (groups < 1)
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "num_groups is %lld; expected 1 or more", (long long)groups);
  if (channels >= 0 && channels % groups != 0) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "%lld channels are not divisible by num_groups %lld",
                          (long long)channels, (long long)groups);
  }
  for (uint32_t i = 1; i < 3; ++i) CLV__TRY(clv__check_vector(infer, i, infer->opset < 21 ? groups : channels));
  return clv__infer_same(infer);
}

static clv_status layer_infer(clv__infer *infer) {
  const clv_tensor *x = &infer->inputs[0];
  int32_t axis = 0;
  int64_t dims[CLV_MAX_RANK];
  int64_t stash = clv__attribute_int(infer->attributes, "stash_type", 1);
  if (stash != CLV_F32 && stash != CLV_BF16 && stash != CLV_F16 && stash != CLV_F64) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL,
                          "attribute stash_type is %lld; expected 1 (f32), 10 (f16), 11 (f64) or 16 (bf16)", (long long)stash);
  }
  CLV__TRY(clv__check_rank(infer, 0, 1, CLV_MAX_RANK));
  CLV__TRY(clv__check_broadcasts_to(infer, 1, x));
  CLV__TRY(clv__check_broadcasts_to(infer, 2, x));
  if (x->rank != CLV_RANK_UNKNOWN) {
    CLV__TRY(clv__infer_axis(infer, clv__attribute_int(infer->attributes, "axis", -1), x->rank, &axis));
    for (int32_t i = 0; i < x->rank; ++i) dims[i] = i < axis ? x->dims[i] : 1;
  }
  CLV__TRY(clv__infer_same(infer));
  for (uint32_t i = 1; i < infer->output_count; ++i) clv__infer_set(infer, i, (clv_dtype)stash, x->rank, dims);
  return CLV_OK;
}

static clv_status mean_variance_infer(clv__infer *infer) {
  static const int64_t usual[] = {0, 2, 3};
  size_t count;
  const int64_t *axes = clv__attribute_ints(infer->attributes, "axes", &count);
  if (axes == NULL || count == 0) axes = usual, count = 3;
  for (size_t i = 0; i < count && infer->inputs[0].rank != CLV_RANK_UNKNOWN; ++i) {
    int32_t axis;
    CLV__TRY(clv__infer_axis(infer, axes[i], infer->inputs[0].rank, &axis));
  }
  return clv__infer_same(infer);
}

static clv_status lp_infer(clv__infer *infer) {
  int64_t p = clv__attribute_int(infer->attributes, "p", 2);
  int32_t axis;
  if (p != 1 && p != 2)
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "attribute p is %lld; expected 1 or 2", (long long)p);
  if (infer->inputs[0].rank != CLV_RANK_UNKNOWN) {
    CLV__TRY(clv__infer_axis(infer, clv__attribute_int(infer->attributes, "axis", -1), infer->inputs[0].rank, &axis));
  }
  return clv__infer_same(infer);
}

static clv_status lrn_infer(clv__infer *infer) {
  int64_t size = clv__attribute_int(infer->attributes, "size", 0);
  CLV__TRY(clv__check_rank(infer, 0, 2, CLV_MAX_RANK));
  if (size < 1 || size > INT32_MAX) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "attribute size is %lld; expected 1 to 2^31 - 1", (long long)size);
  }
  return clv__infer_same(infer);
}

/* These functions estimate the FLOPs: a fixed number per element for each kind of normalization. */
static void batch_work(const clv__infer *infer, clv__work *work) {
  work->flops = 2 * clv__known_count(&infer->outputs[0]);
}
static void moments_work(const clv__infer *infer, clv__work *work) {
  work->flops = 8 * clv__known_count(&infer->outputs[0]);
}
static void square_work(const clv__infer *infer, clv__work *work) {
  work->flops = 4 * clv__known_count(&infer->outputs[0]);
}
static void lrn_work(const clv__infer *infer, clv__work *work) {
  work->flops = (2 * (double)clv__attribute_int(infer->attributes, "size", 1) + 8) * clv__known_count(&infer->outputs[0]);
}

/* ---- Independence along padded axes (common/padding.h) ---- */

static bool independent_batch_norm(clv__padding *padding) {
  const clv__infer *node = padding->node;
  for (uint32_t i = 1; i < node->output_count; ++i) {
    if (node->outputs[i].dtype != CLV_DTYPE_NONE) return clv__padding_no(padding, "it is in training mode");
  }
  if (clv__attribute_int(node->attributes, "training_mode", 0) != 0) return clv__padding_no(padding, "it is in training mode");
  bool by_activation = clv__attribute_int(node->attributes, "spatial", 1) == 0;
  if (!clv__padding_whole_from(padding, 1)) return false;
  return clv__padding_avoids(padding, 0, by_activation ? ~1u : 2u) && clv__padding_pass(padding);
}

static bool independent_layer_norm(clv__padding *padding) {
  const clv__infer *node = padding->node;
  const clv_tensor *x = &node->inputs[0];
  int32_t axis;
  if (!clv__padding_attribute_axis(padding, -1, x->rank, &axis)) return false;
  if (!clv__padding_whole_from(padding, 1) || !clv__padding_avoids(padding, 0, clv__axes_between(axis, x->rank))) return false;
  for (uint32_t i = 1; i < node->input_count; ++i) { /* scale and bias must be broadcast along the padded axes */
    const clv_tensor *other = &node->inputs[i];
    for (int32_t own = 0; clv__infer_has(node, i) && own < other->rank; ++own) {
      int32_t at = own + x->rank - other->rank;
      if (at >= 0 && (padding->inputs[0] >> at & 1u) != 0 && other->dims[own] != 1)
        return clv__padding_no(padding, "its input %u does not have the open size that input 0 has along axis %d", i, (int)at);
    }
  }
  return clv__padding_pass(padding);
}

static bool independent_mean_variance(clv__padding *padding) {
  static const int64_t usual[] = {0, 2, 3};
  const clv__infer *node = padding->node;
  size_t count;
  uint32_t axes = 0;
  const int64_t *list = clv__attribute_ints(node->attributes, "axes", &count);
  if (list == NULL || count == 0) list = usual, count = 3;
  for (size_t i = 0; i < count; ++i) {
    int32_t axis;
    if (!clv__padding_axis(padding, list[i], node->inputs[0].rank, &axis)) return false;
    axes |= clv__axis_bit(axis);
  }
  return clv__padding_avoids(padding, 0, axes) && clv__padding_pass(padding);
}

/* LRN sums over neighbouring channels, so the channel axis must not be padded. */
static bool independent_lrn(clv__padding *padding) {
  return clv__padding_avoids(padding, 0, 2u) && clv__padding_pass(padding);
}

const clv__op clv__ops_normalize[] = {
    {"", "BatchNormalization", 5, 5, 1, 5, 0, batch_infer, batch_work, independent_batch_norm},
    {"", "InstanceNormalization", 3, 3, 1, 1, 0, instance_infer, moments_work, clv__independent_batch},
    {"", "GroupNormalization", 3, 3, 1, 1, 0, group_infer, moments_work, clv__independent_batch},
    {"", "LayerNormalization", 2, 3, 1, 3, 0, layer_infer, moments_work, independent_layer_norm},
    {"", "RMSNormalization", 2, 2, 1, 1, 0, layer_infer, square_work, independent_layer_norm},
    {"", "MeanVarianceNormalization", 1, 1, 1, 1, 0, mean_variance_infer, moments_work, independent_mean_variance},
    {"", "LpNormalization", 1, 1, 1, 1, 0, lp_infer, square_work, clv__independent_lines},
    {"", "LRN", 1, 1, 1, 1, 0, lrn_infer, lrn_work, independent_lrn},
    {.name = NULL},
};
