/* Conv and ConvTranspose. */
#include "operators/common/checks.h"
#include "operators/common/window.h"

/* Channels of input and weight fit each other; *out_channels of the result, unknown where they cannot be told. */
static clv_status channels_check(clv__infer *infer, bool transposed, int64_t *out_channels) {
  const clv_tensor *x = &infer->inputs[0], *w = &infer->inputs[1];
  int64_t groups = clv__attribute_int(infer->attributes, "group", 1);
  if (groups < 1) return clv__error_set(infer->error, CLV_INVALID_MODEL, "attribute group: %lld is below 1", (long long)groups);
  int64_t in = x->rank > 1 ? x->dims[1] : CLV_DIM_UNKNOWN, w0 = CLV_DIM_UNKNOWN, w1 = CLV_DIM_UNKNOWN;
  if (w->rank > 1) w0 = w->dims[0], w1 = w->dims[1];
  int64_t wanted = transposed ? w0 : w1; /* input channels by the weight: all, or of a group */
  if (wanted >= 0 && !transposed && __builtin_mul_overflow(wanted, groups, &wanted)) wanted = INT64_MAX;
  if (in >= 0 && wanted >= 0 && in != wanted) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "the input has %lld channels, the weight wants %lld (group %lld)",
                          (long long)in, (long long)wanted, (long long)groups);
  }
  if ((in >= 0 && in % groups != 0) || (w0 >= 0 && w0 % groups != 0)) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "%lld channels do not divide into group %lld",
                          (long long)(in >= 0 && in % groups != 0 ? in : w0), (long long)groups);
  }
  *out_channels = transposed ? w1 : w0;
  if (transposed && w1 >= 0 && __builtin_mul_overflow(w1, groups, out_channels)) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "%lld channels in each of %lld groups overflow", (long long)w1,
                          (long long)groups);
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
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "the input has rank %d, the weight %d", (int)x->rank, (int)w->rank);
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

/* Each output (for ConvTranspose: each input) element meets the weights of one channel. */
static void conv_work(const clv__infer *infer, clv__work *work) {
  const clv_tensor *w = &infer->inputs[1];
  bool transposed = strcmp(infer->op, "ConvTranspose") == 0;
  double channels = w->rank > 0 ? (double)w->dims[0] : 0;
  if (channels <= 0) return;
  work->flops = 2 * clv__known_count(transposed ? &infer->inputs[0] : &infer->outputs[0]) * clv__known_count(w) / channels;
  if (clv__infer_has(infer, 2)) work->flops += clv__known_count(&infer->outputs[0]);
}

const clv__op clv__ops_conv[] = {
    {"", "Conv", 2, 3, 1, 1, 0, forward_infer, conv_work},
    {"", "ConvTranspose", 2, 3, 1, 1, 0, transposed_infer, conv_work},
    {0},
};
