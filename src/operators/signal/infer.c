/* DFT, STFT, the window functions, and MelWeightMatrix. */
#include <math.h>

#include "operators/common/checks.h"
#include "operators/common/dims.h"
#include "operators/infer.h"

/* Reads the integer of an input with one element. *element is a number, a symbol or unknown. Returns an error if the number is
 * below `least` or above 2^48. */
static clv_status scalar_of(clv__infer *infer, uint32_t input, const char *what, int64_t least, int64_t *element) {
  clv__content content;
  *element = CLV__ELEMENT_UNKNOWN;
  CLV__TRY(clv__infer_check_list(infer, input));
  CLV__TRY(clv__infer_check_count(infer, input, 1));
  if (!clv__infer_vector(infer, input, &content) || content.count != 1) return CLV_OK;
  *element = content.elements[0];
  if (!clv__element_is_number(*element) || (*element >= least && *element <= INT64_C(1) << 48)) return CLV_OK;
  return clv__error_set(infer->error, CLV_INVALID_MODEL, "%s is %lld; expected %lld to 2^48", what, (long long)*element,
                        (long long)least);
}

static double transform_flops(const clv_tensor *out, int64_t length) {
  return clv__known_count(out) * 2.5 * (length > 2 ? log2((double)length) : 1);
}

/* The number of elements of a transform's result along its axis. */
static int64_t bins_of(int64_t length, bool onesided) {
  if (!onesided) return length;
  return length >= 0 ? length / 2 + 1 : CLV_DIM_UNKNOWN;
}

static clv_status check_parts(clv__infer *infer) {
  const clv_tensor *x = &infer->inputs[0];
  if (x->rank < 1) return CLV_OK;
  int64_t parts = x->dims[x->rank - 1];
  if (parts < 0 || parts == 1 || parts == 2) return CLV_OK;
  return clv__error_set(infer->error, CLV_INVALID_MODEL, "the last axis has %lld element%s; expected 1 (real) or 2 (complex)",
                        (long long)parts, CLV__S(parts));
}

/* ---- DFT ------------------------------------------------------------------------------------------------------------------- */

/* Sets *axis to the axis of the transform; -1 if it comes from an input whose value is unknown. */
static clv_status dft_axis(clv__infer *infer, int32_t *axis) {
  int64_t element = infer->opset < 20 ? clv__attribute_int(infer->attributes, "axis", 1) : -2;
  const int32_t rank = infer->inputs[0].rank;
  *axis = -1;
  if (infer->opset >= 20 && clv__infer_has(infer, 2)) CLV__TRY(scalar_of(infer, 2, "axis", -CLV_MAX_RANK, &element));
  /* An attribute is always a number, but clv__element_is_number() takes very low numbers for symbols. */
  const bool from_input = infer->opset >= 20;
  if (from_input && !clv__element_is_number(element)) return CLV_OK;
  CLV__TRY(clv__infer_axis(infer, element, rank, axis));
  if (*axis < rank - 1) return CLV_OK;
  return clv__error_set(infer->error, CLV_INVALID_MODEL,
                        "axis %lld cannot be transformed, because it contains the real and imaginary parts", (long long)element);
}

static clv_status infer_dft(clv__infer *infer) {
  const clv_tensor *x = &infer->inputs[0];
  const bool inverse = clv__attribute_int(infer->attributes, "inverse", 0) != 0;
  const bool onesided = clv__attribute_int(infer->attributes, "onesided", 0) != 0;
  int64_t element = CLV__ELEMENT_UNKNOWN, dims[CLV_MAX_RANK];
  int32_t axis;
  CLV__TRY(clv__check_rank(infer, 0, 2, CLV_MAX_RANK));
  CLV__TRY(check_parts(infer));
  CLV__TRY(scalar_of(infer, 1, "dft_length", 1, &element));
  clv__infer_set_unknown(infer, 0, x->dtype, x->rank);
  if (x->rank < 0) return CLV_OK;
  CLV__TRY(dft_axis(infer, &axis));
  for (int32_t i = 0; i < x->rank; ++i) dims[i] = axis < 0 ? CLV_DIM_UNKNOWN : x->dims[i];
  dims[x->rank - 1] = inverse && onesided ? 1 : 2;
  if (axis >= 0) {
    const int64_t own = x->dims[axis];
    int64_t length = clv__dim_from_element(element);
    if (!clv__infer_has(infer, 1)) length = !(inverse && onesided) ? own : own >= 0 ? 2 * (own - 1) : CLV_DIM_UNKNOWN;
    if (length == 0 || (own == 0 && inverse && onesided && !clv__infer_has(infer, 1))) {
      return clv__error_set(infer->error, CLV_INVALID_MODEL, "the transform would have length 0, because axis %d has size %lld",
                            (int)axis, (long long)own);
    }
    dims[axis] = bins_of(length, onesided && !inverse);
  }
  clv__infer_set(infer, 0, x->dtype, x->rank, dims);
  return CLV_OK;
}

static void work_dft(const clv__infer *infer, clv__work *work) {
  const clv_tensor *y = &infer->outputs[0];
  int64_t longest = 0;
  for (int32_t i = 0; i + 1 < y->rank; ++i) longest = y->dims[i] > longest ? y->dims[i] : longest;
  work->flops = transform_flops(y, longest);
}

/* ---- STFT ------------------------------------------------------------------------------------------------------------------ */

static clv_status infer_stft(clv__infer *infer) {
  const clv_tensor *x = &infer->inputs[0], *window = &infer->inputs[2];
  const bool onesided = clv__attribute_int(infer->attributes, "onesided", 1) != 0;
  int64_t step, frame, dims[4] = {CLV_DIM_UNKNOWN, CLV_DIM_UNKNOWN, CLV_DIM_UNKNOWN, 2};
  CLV__TRY(clv__check_rank(infer, 0, 3, 3));
  CLV__TRY(check_parts(infer));
  CLV__TRY(scalar_of(infer, 1, "frame_step", 1, &step));
  CLV__TRY(scalar_of(infer, 3, "frame_length", 1, &frame));
  CLV__TRY(clv__check_rank(infer, 2, 1, 1));
  CLV__TRY(clv__check_same_dtype(infer, 0, 2));
  int64_t length = clv__dim_from_element(frame), signal = x->rank == 3 ? x->dims[1] : CLV_DIM_UNKNOWN;
  if (clv__infer_has(infer, 2)) {
    if (window->rank == 1 && !clv__dim_merge(window->dims[0], length, &length)) {
      return clv__error_set(infer->error, CLV_INVALID_MODEL, "the window has %lld element%s, but frame_length is %lld",
                            (long long)window->dims[0], CLV__S(window->dims[0]), (long long)length);
    }
  } else if (!clv__infer_has(infer, 3)) {
    length = signal;
  }
  if (length == 0 || (length > 0 && signal >= 0 && length > signal)) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "frames of %lld element%s do not fit a signal of %lld element%s",
                          (long long)length, CLV__S(length), (long long)signal, CLV__S(signal));
  }
  if (x->rank == 3) dims[0] = x->dims[0];
  if (length > 0 && signal >= 0 && clv__element_is_number(step)) dims[1] = (signal - length) / step + 1;
  dims[2] = bins_of(length, onesided);
  clv__infer_set(infer, 0, x->dtype, 4, dims);
  return CLV_OK;
}

static void work_stft(const clv__infer *infer, clv__work *work) {
  work->flops = infer->outputs[0].rank == 4 ? transform_flops(&infer->outputs[0], infer->outputs[0].dims[2]) : 0;
}

/* ---- Windows, MelWeightMatrix ---- */

static clv_status output_dtype(clv__infer *infer, clv_dtype *dtype) {
  int64_t number = clv__attribute_int(infer->attributes, "output_datatype", CLV_F32);
  *dtype = number > 0 && number <= CLV_BF16 ? (clv_dtype)number : CLV_DTYPE_NONE;
  if ((CLV__DTYPE_BIT(*dtype) & CLV__DTYPES_NUMBER) != 0) return CLV_OK;
  return clv__error_set(infer->error, CLV_NOT_SUPPORTED, "attribute output_datatype has the value %lld, which is not supported",
                        (long long)number);
}

static clv_status infer_window(clv__infer *infer) {
  int64_t size;
  clv_dtype dtype;
  CLV__TRY(output_dtype(infer, &dtype));
  CLV__TRY(scalar_of(infer, 0, "size", 0, &size));
  const int64_t dim = clv__dim_from_element(size);
  clv__infer_set(infer, 0, dtype, 1, &dim);
  return CLV_OK;
}

static void work_window(const clv__infer *infer, clv__work *work) {
  work->flops = clv__known_count(&infer->outputs[0]) * 8;
}

static clv_status infer_mel(clv__infer *infer) {
  int64_t mels, length, rate;
  clv_dtype dtype;
  CLV__TRY(output_dtype(infer, &dtype));
  CLV__TRY(scalar_of(infer, 0, "num_mel_bins", 0, &mels));
  CLV__TRY(scalar_of(infer, 1, "dft_length", 0, &length));
  CLV__TRY(scalar_of(infer, 2, "sample_rate", 1, &rate));
  for (uint32_t i = 3; i < 5; ++i) CLV__TRY(clv__infer_check_count(infer, i, 1));
  const int64_t dims[2] = {bins_of(clv__dim_from_element(length), true), clv__dim_from_element(mels)};
  clv__infer_set(infer, 0, dtype, 2, dims);
  return CLV_OK;
}

const clv__op clv__ops_signal[] = {
    {"", "DFT", 1, 3, 1, 1, 0, infer_dft, work_dft, NULL},
    {"", "STFT", 2, 4, 1, 1, 0, infer_stft, work_stft, NULL},
    {"", "HannWindow", 1, 1, 1, 1, 0, infer_window, work_window, NULL},
    {"", "HammingWindow", 1, 1, 1, 1, 0, infer_window, work_window, NULL},
    {"", "BlackmanWindow", 1, 1, 1, 1, 0, infer_window, work_window, NULL},
    {"", "MelWeightMatrix", 5, 5, 1, 1, 0, infer_mel, NULL, NULL},
    {.name = NULL},
};
