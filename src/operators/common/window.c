/* See window.h. Attributes come from files. Each is limited to 2^31, so that the sums below cannot overflow. */
#include "operators/common/window.h"

#define LARGEST_ATTRIBUTE (INT64_C(1) << 31)
#define LARGEST_DIM (INT64_C(1) << 60)

static int64_t floor_divide(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
static int64_t ceil_divide(int64_t a, int64_t b) {
  return -floor_divide(-a, b);
}

/* Copies a list attribute of `count` elements within [low, LARGEST_ATTRIBUTE], or fills in the default. */
static clv_status list_read(clv__attributes attributes, const char *name, int32_t count, int64_t low, int64_t fallback,
                            int64_t *list, clv_error *error) {
  size_t length;
  const int64_t *given = clv__attribute_ints(attributes, name, &length);
  if (given == NULL || length == 0) {
    for (int32_t i = 0; i < count; ++i) list[i] = fallback;
    return CLV_OK;
  }
  if (length != (size_t)count) {
    return clv__error_set(error, CLV_INVALID_MODEL, "%s has %zu element%s; expected %d", name, length, CLV__S(length),
                          (int)count);
  }
  for (int32_t i = 0; i < count; ++i) {
    if (given[i] < low || given[i] > LARGEST_ATTRIBUTE) {
      return clv__error_set(error, CLV_INVALID_MODEL, "%s[%d] is %lld; expected %lld to %lld", name, (int)i, (long long)given[i],
                            (long long)low, (long long)LARGEST_ATTRIBUTE);
    }
    list[i] = given[i];
  }
  return CLV_OK;
}

clv_status clv__window_read(clv__attributes attributes, int32_t spatial, const int64_t *kernel, clv__window *window,
                            clv_error *error) {
  memset(window, 0, sizeof *window);
  if (spatial < 1 || spatial > CLV__MAX_SPATIAL) {
    return clv__error_set(error, CLV_INVALID_MODEL, "rank %d is not supported; expected 3 to %d", (int)spatial + 2, CLV_MAX_RANK);
  }
  window->spatial = spatial;
  if (clv__attribute_is(attributes, "auto_pad", "VALID", false)) {
    window->auto_pad = CLV__PAD_VALID;
  } else if (clv__attribute_is(attributes, "auto_pad", "SAME_UPPER", false)) {
    window->auto_pad = CLV__PAD_SAME_UPPER;
  } else if (clv__attribute_is(attributes, "auto_pad", "SAME_LOWER", false)) {
    window->auto_pad = CLV__PAD_SAME_LOWER;
  } else if (!clv__attribute_is(attributes, "auto_pad", "NOTSET", true)) {
    return clv__error_set(error, CLV_INVALID_MODEL, "auto_pad is not one of NOTSET, VALID, SAME_UPPER, SAME_LOWER");
  }
  window->ceil_mode = clv__attribute_int(attributes, "ceil_mode", 0) != 0;
  CLV__TRY(list_read(attributes, "strides", spatial, 1, 1, window->stride, error));
  CLV__TRY(list_read(attributes, "dilations", spatial, 1, 1, window->dilation, error));
  int64_t pads[2 * CLV__MAX_SPATIAL];
  CLV__TRY(list_read(attributes, "pads", 2 * spatial, -LARGEST_ATTRIBUTE, 0, pads, error));
  size_t kernel_count;
  clv__attribute_ints(attributes, "kernel_shape", &kernel_count);
  if (kernel == NULL && kernel_count == 0) return clv__error_set(error, CLV_INVALID_MODEL, "kernel_shape is missing");
  if (kernel_count != 0) {
    CLV__TRY(list_read(attributes, "kernel_shape", spatial, 1, 1, window->kernel, error));
  } else {
    for (int32_t i = 0; i < spatial; ++i) window->kernel[i] = CLV_DIM_UNKNOWN;
  }
  for (int32_t i = 0; i < spatial; ++i) {
    window->pad_begin[i] = pads[i];
    window->pad_end[i] = pads[spatial + i];
    if (kernel == NULL || kernel[i] < 0) continue;
    if (kernel[i] > LARGEST_ATTRIBUTE || kernel[i] == 0) {
      return clv__error_set(error, CLV_INVALID_MODEL, "the weight's spatial dim %d is %lld; expected 1 to 2^31", (int)i,
                            (long long)kernel[i]);
    }
    if (kernel_count != 0 && kernel[i] != window->kernel[i]) {
      return clv__error_set(error, CLV_INVALID_MODEL, "kernel_shape[%d] is %lld, but the weight's dim %d is %lld", (int)i,
                            (long long)window->kernel[i], (int)i + 2, (long long)kernel[i]);
    }
    window->kernel[i] = kernel[i];
  }
  return CLV_OK;
}

static bool is_same(const clv__window *window) {
  return window->auto_pad == CLV__PAD_SAME_UPPER || window->auto_pad == CLV__PAD_SAME_LOWER;
}

/* Splits `total` padding into two halves. If it is odd, `more_at_end` puts the larger half at the end, otherwise at the
 * beginning. */
static void pads_split(clv__window *window, int32_t axis, int64_t total, bool more_at_end) {
  int64_t half = floor_divide(total, 2);
  window->pad_begin[axis] = more_at_end ? half : total - half;
  window->pad_end[axis] = more_at_end ? total - half : half;
}

static clv_status axis_resolve(clv__window *w, int32_t i, clv_error *error) {
  int64_t in = w->input[i], stride = w->stride[i];
  if (in > LARGEST_DIM) {
    return clv__error_set(error, CLV_INVALID_MODEL, "spatial dim %d of the input is %lld; the maximum is 2^60", (int)i,
                          (long long)in);
  }
  if (w->auto_pad == CLV__PAD_VALID) w->pad_begin[i] = w->pad_end[i] = 0;
  if (is_same(w) && in < 0) {
    w->output[i] = stride == 1 ? in : CLV_DIM_UNKNOWN;
    return CLV_OK;
  }
  if (is_same(w)) w->output[i] = ceil_divide(in, stride);
  if (w->kernel[i] < 0) {
    if (!is_same(w)) w->output[i] = CLV_DIM_UNKNOWN;
    return CLV_OK;
  }
  /* cannot overflow: kernel and dilation are at most 2^31 */
  int64_t extent = (w->kernel[i] - 1) * w->dilation[i] + 1;
  if (extent > LARGEST_DIM) {
    return clv__error_set(error, CLV_INVALID_MODEL, "axis %d: kernel %lld with dilation %lld is larger than any input", (int)i,
                          (long long)w->kernel[i], (long long)w->dilation[i]);
  }
  if (is_same(w)) {
    int64_t total = w->output[i] > 0 ? (w->output[i] - 1) * stride + extent - in : 0;
    pads_split(w, i, total > 0 ? total : 0, w->auto_pad == CLV__PAD_SAME_UPPER);
    return CLV_OK;
  }
  int64_t padding = w->pad_begin[i] + w->pad_end[i];
  if (in < 0) {
    w->output[i] = stride == 1 && padding == extent - 1 ? in : CLV_DIM_UNKNOWN;
    return CLV_OK;
  }
  int64_t room = in + padding - extent;
  int64_t out = (w->ceil_mode ? ceil_divide(room, stride) : floor_divide(room, stride)) + 1;
  /* Drop the last window if it would start in the padding at the end. */
  if (w->ceil_mode && out > 0 && (out - 1) * stride >= in + w->pad_begin[i]) --out;
  if (out < 0 || (out == 0 && in > 0)) {
    return clv__error_set(error, CLV_INVALID_MODEL,
                          "axis %d: kernel %lld with dilation %lld does not fit into input %lld with padding %lld + %lld", (int)i,
                          (long long)w->kernel[i], (long long)w->dilation[i], (long long)in, (long long)w->pad_begin[i],
                          (long long)w->pad_end[i]);
  }
  w->output[i] = out;
  return CLV_OK;
}

clv_status clv__window_resolve(clv__window *window, const int64_t *input, clv_error *error) {
  for (int32_t i = 0; i < window->spatial; ++i) {
    window->input[i] = input[i];
    CLV__TRY(axis_resolve(window, i, error));
  }
  return CLV_OK;
}

static clv_status transposed_axis_resolve(clv__window *w, int32_t i, int64_t output_padding, int64_t wanted, clv_error *error) {
  int64_t in = w->input[i], stride = w->stride[i];
  bool generated = wanted >= 0 || is_same(w);
  if (w->auto_pad == CLV__PAD_VALID) w->pad_begin[i] = w->pad_end[i] = 0;
  w->output[i] = wanted >= 0 ? wanted : CLV_DIM_UNKNOWN;
  if (in < 0) {
    if (wanted < 0 && is_same(w) && stride == 1) w->output[i] = in;
    return CLV_OK;
  }
  int64_t spread, natural;
  if (__builtin_mul_overflow(stride, in - 1, &spread) || spread > LARGEST_DIM) {
    return clv__error_set(error, CLV_INVALID_MODEL, "axis %d: input %lld with stride %lld gives an output larger than any tensor",
                          (int)i, (long long)in, (long long)stride);
  }
  if (wanted < 0 && is_same(w)) w->output[i] = in * stride;
  if (w->kernel[i] < 0) return CLV_OK;
  int64_t extent = (w->kernel[i] - 1) * w->dilation[i] + 1;
  if (extent > LARGEST_DIM) {
    return clv__error_set(error, CLV_INVALID_MODEL, "axis %d: kernel %lld with dilation %lld is larger than any tensor", (int)i,
                          (long long)w->kernel[i], (long long)w->dilation[i]);
  }
  natural = spread + output_padding + extent;
  if (generated) {
    pads_split(w, i, natural - w->output[i], w->auto_pad == CLV__PAD_SAME_UPPER);
    return CLV_OK;
  }
  w->output[i] = natural - w->pad_begin[i] - w->pad_end[i];
  if (in == 0 && w->output[i] < 0) w->output[i] = 0;
  if (w->output[i] < 0) {
    return clv__error_set(error, CLV_INVALID_MODEL,
                          "axis %d: padding %lld + %lld is larger than the unpadded output, which has %lld element%s", (int)i,
                          (long long)w->pad_begin[i], (long long)w->pad_end[i], (long long)natural, CLV__S(natural));
  }
  return CLV_OK;
}

clv_status clv__window_resolve_transposed(clv__attributes attributes, clv__window *window, const int64_t *input,
                                          clv_error *error) {
  int64_t output_padding[CLV__MAX_SPATIAL], wanted[CLV__MAX_SPATIAL];
  CLV__TRY(list_read(attributes, "output_padding", window->spatial, 0, 0, output_padding, error));
  size_t count;
  const int64_t *shape = clv__attribute_ints(attributes, "output_shape", &count);
  /* Some exporters also list the sizes of the batch and channel axes first. */
  if (shape != NULL && count == (size_t)window->spatial + 2) shape += 2, count -= 2;
  for (int32_t i = 0; i < window->spatial; ++i) wanted[i] = -1;
  if (shape != NULL && count != 0) {
    if (count != (size_t)window->spatial) {
      return clv__error_set(error, CLV_INVALID_MODEL, "output_shape has %zu element%s; expected %d", count, CLV__S(count),
                            (int)window->spatial);
    }
    for (int32_t i = 0; i < window->spatial; ++i) {
      if (shape[i] < 0 || shape[i] > LARGEST_ATTRIBUTE) {
        return clv__error_set(error, CLV_INVALID_MODEL, "output_shape[%d] is %lld; expected 0 to 2^31", (int)i,
                              (long long)shape[i]);
      }
      wanted[i] = shape[i];
    }
  }
  for (int32_t i = 0; i < window->spatial; ++i) {
    window->input[i] = input[i];
    CLV__TRY(transposed_axis_resolve(window, i, output_padding[i], wanted[i], error));
  }
  return CLV_OK;
}
