/* Conv, ConvTranspose, ConvInteger, QLinearConv, DeformConv (whose taps are shifted by offsets) and CausalConvWithState (which
 * continues a stream). */
#include "operators/common/checks.h"
#include "operators/common/dims.h"
#include "operators/common/padding.h"
#include "operators/common/quantized.h"
#include "operators/common/window.h"

/* Checks that the channels of input and weight match. *out_channels is the number of channels of the result; unknown if it cannot
 * be inferred. */
static clv_status channels_check(clv__infer *infer, bool transposed, int64_t *out_channels) {
  const clv_tensor *x = &infer->inputs[0], *w = &infer->inputs[1];
  int64_t groups = clv__attribute_int(infer->attributes, "group", 1);
  if (groups < 1)
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "attribute group is %lld; expected 1 or more", (long long)groups);
  int64_t in = x->rank > 1 ? x->dims[1] : CLV_DIM_UNKNOWN, w0 = CLV_DIM_UNKNOWN, w1 = CLV_DIM_UNKNOWN;
  if (w->rank > 1) w0 = w->dims[0], w1 = w->dims[1];
  int64_t wanted = transposed ? w0 : w1; /* input channels according to the weight: all of them, or those of a group */
  if (wanted >= 0 && !transposed && __builtin_mul_overflow(wanted, groups, &wanted)) wanted = INT64_MAX;
  if (in >= 0 && wanted >= 0 && in != wanted) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "the input has %lld channels, but the weight needs %lld (group %lld)",
                          (long long)in, (long long)wanted, (long long)groups);
  }
  if ((in >= 0 && in % groups != 0) || (w0 >= 0 && w0 % groups != 0)) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "%lld channels are not divisible by group %lld",
                          (long long)(in >= 0 && in % groups != 0 ? in : w0), (long long)groups);
  }
  *out_channels = transposed ? w1 : w0;
  if (transposed && w1 >= 0 && __builtin_mul_overflow(w1, groups, out_channels)) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "%lld channels in each of %lld groups are more than 2^63 - 1 in total",
                          (long long)w1, (long long)groups);
  }
  if (transposed && w1 < 0) *out_channels = groups == 1 ? w1 : CLV_DIM_UNKNOWN;
  return clv__check_vector(infer, 2, *out_channels);
}

static clv_status conv_infer(clv__infer *infer, bool transposed) {
  const clv_tensor *x = &infer->inputs[0], *w = &infer->inputs[1];
  CLV__TRY(clv__check_same_dtype(infer, 0, 1));
  CLV__TRY(clv__check_same_dtype(infer, 0, 2));
  CLV__TRY(clv__check_rank(infer, 0, 3, CLV_MAX_RANK));
  CLV__TRY(clv__check_rank(infer, 1, 3, CLV_MAX_RANK));
  if (x->rank != CLV_RANK_UNKNOWN && w->rank != CLV_RANK_UNKNOWN && x->rank != w->rank) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "the input has rank %d, but the weight has rank %d", (int)x->rank,
                          (int)w->rank);
  }
  int64_t dims[CLV_MAX_RANK], unknown[CLV_MAX_RANK], channels = CLV_DIM_UNKNOWN;
  CLV__TRY(channels_check(infer, transposed, &channels));
  int32_t rank = x->rank != CLV_RANK_UNKNOWN ? x->rank : w->rank;
  if (rank == CLV_RANK_UNKNOWN) {
    clv__infer_set(infer, 0, x->dtype, CLV_RANK_UNKNOWN, NULL);
    return CLV_OK;
  }
  for (int32_t i = 0; i < CLV_MAX_RANK; ++i) unknown[i] = CLV_DIM_UNKNOWN;
  const int64_t *x_dims = x->rank != CLV_RANK_UNKNOWN ? x->dims : unknown;
  clv__window window;
  CLV__TRY(
      clv__window_read(infer->attributes, rank - 2, w->rank != CLV_RANK_UNKNOWN ? w->dims + 2 : unknown, &window, infer->error));
  if (transposed) {
    CLV__TRY(clv__window_resolve_transposed(infer->attributes, &window, x_dims + 2, infer->error));
  } else {
    CLV__TRY(clv__window_resolve(&window, x_dims + 2, infer->error));
  }
  dims[0] = x_dims[0];
  dims[1] = channels;
  for (int32_t i = 0; i < rank - 2; ++i) dims[i + 2] = window.output[i];
  clv__infer_set(infer, 0, x->dtype, rank, dims);
  return CLV_OK;
}

static clv_status forward_infer(clv__infer *infer) {
  return conv_infer(infer, false);
}
static clv_status transposed_infer(clv__infer *infer) {
  return conv_infer(infer, true);
}

/* Each output element (for ConvTranspose: each input element) needs one multiply-add for every weight of its channel. */
static void conv_work(const clv__infer *infer, clv__work *work) {
  const clv_tensor *w = &infer->inputs[1];
  bool transposed = strcmp(infer->op, "ConvTranspose") == 0;
  double channels = w->rank > 0 ? (double)w->dims[0] : 0;
  if (channels <= 0) return;
  work->flops = 2 * clv__known_count(transposed ? &infer->inputs[0] : &infer->outputs[0]) * clv__known_count(w) / channels;
  if (clv__infer_has(infer, 2)) work->flops += clv__known_count(&infer->outputs[0]);
}

/* ---- ConvInteger, QLinearConv ---- */

/* Checks a scale or zero point that applies to the whole tensor: it must have one element. */
static clv_status check_one(clv__infer *infer, uint32_t input) {
  if (!clv__infer_has(infer, input)) return CLV_OK;
  const clv_tensor *t = &infer->inputs[input];
  size_t count;
  if (t->rank > 1 || (clv__tensor_count(t, &count) && count != 1)) {
    char text[128];
    clv__infer_text(infer, t, text, sizeof text);
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "input %u is %s; expected one element", input, text);
  }
  return CLV_OK;
}

/* Checks a scale or zero point of the weight: it must have one element, or one per output channel. */
static clv_status check_channels(clv__infer *infer, uint32_t input, int64_t channels) {
  if (!clv__infer_has(infer, input)) return CLV_OK;
  const clv_tensor *t = &infer->inputs[input];
  if (t->rank <= 0 || (t->rank == 1 && t->dims[0] == 1)) return CLV_OK;
  return clv__check_vector(infer, input, channels);
}

static clv_status integer_infer(clv__infer *infer) {
  const clv__quantized *at = clv__quantized_places(infer);
  const clv_tensor *w = &infer->inputs[at->right];
  const int64_t channels = w->rank > 0 ? w->dims[0] : CLV_DIM_UNKNOWN;
  CLV__TRY(clv__quantized_check(infer, at));
  CLV__TRY(check_one(infer, at->left_zero));
  CLV__TRY(clv__quantized_infer(infer, at, forward_infer));
  CLV__TRY(check_channels(infer, at->right_zero, channels));
  if (!at->requantizes) return CLV_OK;
  CLV__TRY(check_channels(infer, 4, channels));
  CLV__TRY(check_one(infer, 1));
  CLV__TRY(check_one(infer, 6));
  CLV__TRY(check_one(infer, 7));
  if (clv__infer_has(infer, 8) && infer->inputs[8].dtype != CLV_I32) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "the bias must be i32, not %s",
                          clv_dtype_name(infer->inputs[8].dtype));
  }
  return clv__check_vector(infer, 8, channels);
}

static void integer_work(const clv__infer *infer, clv__work *work) {
  const clv_tensor *w = &infer->inputs[clv__quantized_places(infer)->right];
  if (w->rank < 1 || w->dims[0] <= 0) return;
  work->flops = 2 * clv__known_count(&infer->outputs[0]) * clv__known_count(w) / (double)w->dims[0];
}

/* ---- DeformConv ---- */

static clv_status check_groups(clv__infer *infer, int64_t groups, int64_t offset_groups) {
  const clv_tensor *x = &infer->inputs[0], *w = &infer->inputs[1];
  const int64_t channels = x->dims[1], outputs = w->dims[0];
  int64_t wanted;
  if (groups < 1 || offset_groups < 1) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "group is %lld and offset_group is %lld; both must be above 0",
                          (long long)groups, (long long)offset_groups);
  }
  bool fits = channels < 0 || channels % offset_groups == 0;
  fits = fits && (outputs < 0 || outputs % groups == 0);
  fits = fits && (channels < 0 || w->dims[1] < 0 || (!__builtin_mul_overflow(w->dims[1], groups, &wanted) && wanted == channels));
  if (fits) return CLV_OK;
  char first[96], second[96];
  clv__infer_text(infer, x, first, sizeof first);
  clv__infer_text(infer, w, second, sizeof second);
  return clv__error_set(infer->error, CLV_INVALID_MODEL,
                        "the channels of input %s and weight %s do not fit group %lld and offset_group %lld", first, second,
                        (long long)groups, (long long)offset_groups);
}

/* Checks the dims of the offsets (`parts`: the number of spatial axes) or of the mask (`parts`: 1) against the output. The tensor
 * has `parts` channels per tap and offset group. */
static clv_status check_offsets(clv__infer *infer, uint32_t input, const clv__window *window, int64_t parts,
                                int64_t offset_groups) {
  if (!clv__infer_has(infer, input) || infer->inputs[input].rank < 0) return CLV_OK;
  const clv_tensor *t = &infer->inputs[input], *x = &infer->inputs[0];
  int64_t unused, rows = parts;
  bool known = true,
       fits = !__builtin_mul_overflow(rows, offset_groups, &rows) && clv__dim_merge(t->dims[0], x->dims[0], &unused);
  for (int32_t i = 0; i < window->spatial && fits; ++i) {
    known = known && window->kernel[i] >= 0;
    fits = (!known || !__builtin_mul_overflow(rows, window->kernel[i], &rows)) &&
           clv__dim_merge(t->dims[i + 2], window->output[i], &unused);
  }
  if (fits && (!known || clv__dim_merge(t->dims[1], rows, &unused))) return CLV_OK;
  char text[96];
  clv__infer_text(infer, t, text, sizeof text);
  return clv__error_set(infer->error, CLV_INVALID_MODEL,
                        "the shape of input %u, %s, does not match those of the output and the kernel", (unsigned)input, text);
}

static clv_status deform_infer(clv__infer *infer) {
  const clv_tensor *x = &infer->inputs[0], *w = &infer->inputs[1];
  int64_t dims[CLV_MAX_RANK], offset_groups = clv__attribute_int(infer->attributes, "offset_group", 1);
  clv__window window;
  CLV__TRY(clv__check_rank(infer, 0, 3, CLV_MAX_RANK));
  const int32_t rank = x->rank;
  clv__infer_set_unknown(infer, 0, x->dtype, rank);
  for (uint32_t i = 1; i < 5; ++i) CLV__TRY(clv__check_same_dtype(infer, 0, i));
  for (uint32_t i = 1; i < 5 && rank >= 0; ++i) CLV__TRY(clv__check_rank(infer, i, i == 3 ? 1 : rank, i == 3 ? 1 : rank));
  if (rank < 0) return CLV_OK;
  int64_t unknown[CLV__MAX_SPATIAL];
  for (int32_t i = 0; i < CLV__MAX_SPATIAL; ++i) unknown[i] = CLV_DIM_UNKNOWN;
  CLV__TRY(clv__window_read(infer->attributes, rank - 2, w->rank >= 0 ? w->dims + 2 : unknown, &window, infer->error));
  CLV__TRY(clv__window_resolve(&window, x->dims + 2, infer->error));
  if (w->rank >= 0) {
    CLV__TRY(check_groups(infer, clv__attribute_int(infer->attributes, "group", 1), offset_groups));
    CLV__TRY(clv__check_vector(infer, 3, w->dims[0]));
  }
  CLV__TRY(check_offsets(infer, 2, &window, window.spatial, offset_groups));
  CLV__TRY(check_offsets(infer, 4, &window, 1, offset_groups));
  dims[0] = x->dims[0];
  dims[1] = w->rank >= 0 ? w->dims[0] : CLV_DIM_UNKNOWN;
  for (int32_t i = 0; i < window.spatial; ++i) dims[i + 2] = window.output[i];
  clv__infer_set(infer, 0, x->dtype, rank, dims);
  return CLV_OK;
}

static void deform_work(const clv__infer *infer, clv__work *work) {
  const clv_tensor *w = &infer->inputs[1];
  size_t count;
  if (w->rank < 1 || !clv__tensor_count(w, &count) || w->dims[0] < 1) return;
  const double products = clv__known_count(&infer->outputs[0]) * 2 * (double)count / (double)w->dims[0];
  work->flops = products + clv__known_count(&infer->inputs[2]) * 8;
}

/* ---- CausalConvWithState ---- */

static clv_status causal_infer(clv__infer *infer) {
  const clv_tensor *x = &infer->inputs[0], *w = &infer->inputs[1];
  const clv__attributes attributes = infer->attributes;
  int64_t batch = CLV_DIM_UNKNOWN, channels = CLV_DIM_UNKNOWN, kept = CLV_DIM_UNKNOWN;
  if (!clv__attribute_is(attributes, "activation", "none", true) && !clv__attribute_is(attributes, "activation", "silu", false) &&
      !clv__attribute_is(attributes, "activation", "swish", false)) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "attribute activation is not one of none, silu, swish");
  }
  for (uint32_t i = 1; i < 4; ++i) CLV__TRY(clv__check_same_dtype(infer, 0, i));
  CLV__TRY(clv__check_rank(infer, 0, 3, 3));
  CLV__TRY(clv__check_rank(infer, 1, 3, 3));
  if (x->rank == 3) batch = x->dims[0], channels = x->dims[1];
  if (w->rank == 3) {
    CLV__TRY(clv__check_same_dim(infer, channels, w->dims[0], "the numbers of channels of the input and the weight"));
    CLV__TRY(clv__check_same_dim(infer, 1, w->dims[1], "the expected and the actual number of channels per group"));
    if (w->dims[2] == 0) return clv__error_set(infer->error, CLV_INVALID_MODEL, "the weight's kernel has size 0");
    clv__dim_merge(channels, w->dims[0], &channels);
    if (w->dims[2] > 0) kept = w->dims[2] - 1;
  }
  CLV__TRY(clv__check_vector(infer, 2, channels));
  if (clv__infer_has(infer, 3)) {
    const clv_tensor *past = &infer->inputs[3];
    CLV__TRY(clv__check_rank(infer, 3, 3, 3));
    const int64_t wanted[] = {batch, channels, kept};
    for (int i = 0; past->rank == 3 && i < 3; ++i)
      CLV__TRY(clv__check_same_dim(infer, wanted[i], past->dims[i], "the expected and the actual size of an axis of past_state"));
    if (past->rank == 3) clv__dim_merge(kept, past->dims[2], &kept);
  }
  clv__infer_set(infer, 1, x->dtype, 3, (const int64_t[]){batch, channels, kept});
  return clv__infer_same(infer);
}

static void causal_work(const clv__infer *infer, clv__work *work) {
  const clv_tensor *w = &infer->inputs[1];
  if (w->rank == 3 && w->dims[2] >= 0) work->flops = 2 * (double)w->dims[2] * clv__known_count(&infer->inputs[0]);
}

const clv__op clv__ops_convolution[] = {
    {"", "Conv", 2, 3, 1, 1, 0, forward_infer, conv_work, clv__independent_batch},
    {"", "ConvTranspose", 2, 3, 1, 1, 0, transposed_infer, conv_work, clv__independent_batch},
    {"", "ConvInteger", 2, 4, 1, 1, 0, integer_infer, integer_work, NULL},
    {"", "QLinearConv", 8, 9, 1, 1, CLV__OP_ROUNDS, integer_infer, integer_work, NULL},
    {"", "DeformConv", 3, 5, 1, 1, 0, deform_infer, deform_work, NULL},
    {"", "CausalConvWithState", 2, 4, 2, 2, 0, causal_infer, causal_work, NULL},
    {.name = NULL},
};
