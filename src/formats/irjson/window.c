/* ATen's convolutions, pools and resizes. See lower.h. */
#include "formats/irjson/lower.h"

typedef clv__aten_value value;
typedef clv__aten_node aten;

enum { MAX_SPATIAL = CLV_MAX_RANK - 2 };

/* Pads each axis equally at both ends. */
static void set_pads(aten *n, const int64_t *padding, uint32_t spatial) {
  int64_t pads[2 * MAX_SPATIAL];
  for (uint32_t i = 0; i < spatial; ++i) pads[i] = pads[spatial + i] = padding[i];
  clv__aten_set_ints(n, "pads", pads, 2 * spatial);
}

/* Returns the number of axes of the window: the first digit in the operator's name ("conv2d"), or 0 if there is none. */
static uint32_t spatial_of(const char *stem) {
  const char *digit = strpbrk(stem, "123");
  return digit == NULL ? 0 : (uint32_t)(*digit - '0');
}

static void lower_conv(aten *n) {
  value x = clv__aten_input(n, 0), w = clv__aten_input(n, 1);
  clv_dtype dtype = n->outputs[0].type.dtype;
  bool transposed = strstr(n->stem, "transpose") != NULL || clv__aten_bool(n, "transposed", false);
  uint32_t spatial = spatial_of(n->stem) > 0 ? spatial_of(n->stem) : w.type.rank > 2 ? (uint32_t)w.type.rank - 2 : 1;
  bool batched = x.type.rank == (int32_t)spatial + 2;
  if ((!batched && x.type.rank != (int32_t)spatial + 1) || w.type.rank != (int32_t)spatial + 2) clv__aten_keep(n);
  if (n->status != CLV_OK) return;
  int64_t strides[MAX_SPATIAL], padding[MAX_SPATIAL] = {0}, dilations[MAX_SPATIAL], more[MAX_SPATIAL];
  bool named = strcmp(n->overload, "padding") == 0;
  const char *pad_name = named ? clv__aten_text(n, "padding", "valid") : NULL;
  clv__aten_per_axis(n, "stride", 1, spatial, strides);
  clv__aten_per_axis(n, "dilation", 1, spatial, dilations);
  clv__aten_per_axis(n, "output_padding", 0, spatial, more);
  if (!named) clv__aten_per_axis(n, "padding", 0, spatial, padding);
  if (named && strcmp(pad_name, "valid") != 0 && strcmp(pad_name, "same") != 0) {
    clv__aten_fail(n, "attrs.padding is '%.40s'; expected 'valid' or 'same'", pad_name);
  }
  value bias = n->input_count > 2 ? clv__aten_cast(n, n->inputs[2], dtype) : clv__aten_absent();
  x = clv__aten_cast(n, batched ? x : clv__aten_unsqueeze(n, x, 0), dtype);
  w = clv__aten_cast(n, w, dtype);
  clv__aten_set_ints(n, "kernel_shape", w.type.dims + 2, spatial);
  clv__aten_set_ints(n, "strides", strides, spatial);
  clv__aten_set_ints(n, "dilations", dilations, spatial);
  clv__aten_set_int(n, "group", clv__aten_int(n, "groups", 1));
  if (named && strcmp(pad_name, "same") == 0)
    clv__aten_set_string(n, "auto_pad", "SAME_UPPER"); /* an odd padding has its extra element at the end, as in ATen */
  else
    set_pads(n, padding, spatial);
  if (transposed) clv__aten_set_ints(n, "output_padding", more, spatial);
  value made = clv__aten_call(n, transposed ? "ConvTranspose" : "Conv", dtype, x, w, bias);
  clv__aten_return(n, 0, batched ? made : clv__aten_squeeze(n, made, 0));
}

/* ---- Pools ---- */

static void set_window(aten *n, const int64_t *kernel, const int64_t *strides, const int64_t *padding, uint32_t spatial) {
  clv__aten_set_ints(n, "kernel_shape", kernel, spatial);
  clv__aten_set_ints(n, "strides", strides, spatial);
  set_pads(n, padding, spatial);
}

/* Returns whether every window is inside the padded input. With ceil_mode, the last window may reach beyond it. */
static bool windows_fit(const aten *n, const clv_tensor *x, const int64_t *kernel, const int64_t *strides, const int64_t *padding,
                        uint32_t spatial) {
  const clv_tensor *to = &n->outputs[0].type;
  for (uint32_t i = 0; i < spatial; ++i) {
    int32_t from_end = (int32_t)(spatial - i);
    if (to->rank != x->rank || strides[i] < 1) return false;
    if ((to->dims[to->rank - from_end] - 1) * strides[i] + kernel[i] > x->dims[x->rank - from_end] + 2 * padding[i]) return false;
  }
  return true;
}

static void lower_pool(aten *n) {
  value x = clv__aten_input(n, 0);
  uint32_t spatial = spatial_of(n->stem);
  bool is_max = n->stem[0] == 'm';
  int64_t kernel[MAX_SPATIAL], strides[MAX_SPATIAL], padding[MAX_SPATIAL], dilations[MAX_SPATIAL];
  if (!clv__aten_has(n, "kernel_size")) clv__aten_fail(n, "attrs.kernel_size is missing");
  if (n->output_count > 1 && n->output_read[1])
    clv__aten_keep(n); /* ATen's indices are relative to a plane, ONNX's to the tensor */
  if (x.type.rank < (int32_t)spatial + 1 || x.type.rank > (int32_t)spatial + 2) clv__aten_keep(n);
  clv__aten_per_axis(n, "kernel_size", 1, spatial, kernel);
  int64_t given[CLV__ATEN_MAX_LIST];
  if (clv__aten_ints(n, "stride", given) > 0)
    clv__aten_per_axis(n, "stride", 1, spatial, strides);
  else
    memcpy(strides, kernel, sizeof strides); /* the stride is absent or an empty list: it defaults to the kernel size */
  clv__aten_per_axis(n, "padding", 0, spatial, padding);
  clv__aten_per_axis(n, "dilation", 1, spatial, dilations);
  if (n->status != CLV_OK) return;
  bool batched = x.type.rank == (int32_t)spatial + 2;
  int64_t divisor = clv__aten_int(n, "divisor_override", 0);
  if (divisor != 0 && !windows_fit(n, &x.type, kernel, strides, padding, spatial)) clv__aten_keep(n);
  if (divisor != 0) x = clv__aten_cast(n, x, clv__aten_wide(x.type.dtype));
  if (!batched) x = clv__aten_unsqueeze(n, x, 0);
  set_window(n, kernel, strides, padding, spatial);
  clv__aten_set_int(n, "ceil_mode", clv__aten_bool(n, "ceil_mode", false));
  if (is_max)
    clv__aten_set_ints(n, "dilations", dilations, spatial);
  else
    clv__aten_set_int(n, "count_include_pad", divisor != 0 || clv__aten_bool(n, "count_include_pad", true));
  value made = clv__aten_call(n, is_max ? "MaxPool" : "AveragePool", x.type.dtype, x);
  if (divisor != 0) { /* mean * window size / divisor */
    double size = 1;
    for (uint32_t i = 0; i < spatial; ++i) size *= (double)kernel[i];
    made = clv__aten_call(n, "Mul", x.type.dtype, made, clv__aten_number(n, x.type.dtype, size / (double)divisor));
  }
  clv__aten_return(n, 0, batched ? made : clv__aten_squeeze(n, made, 0));
}

/* Pools one axis for an adaptive pool whose windows differ in size or overlap, by one reduction per window. Window i of `to`
 * covers the elements from floor(i * from / to) up to but excluding ceil((i + 1) * from / to). */
static value pool_axis(aten *n, value x, bool is_max, int32_t axis, int64_t to) {
  value parts[CLV__ATEN_MAX_LIST];
  int64_t from = x.type.dims[axis], place = axis;
  clv_dtype dtype = x.type.dtype;
  for (int64_t i = 0; i < to; ++i) {
    value window = clv__aten_slice(n, x, axis, i * from / to, ((i + 1) * from + to - 1) / to, 1);
    clv__aten_set_int(n, "keepdims", 1);
    parts[i] = clv__aten_call(n, is_max ? "ReduceMax" : "ReduceMean", dtype, window, clv__aten_vector(n, &place, 1));
  }
  clv__aten_set_int(n, "axis", axis);
  value made = clv__aten_op(n, "Concat", dtype, parts, (size_t)to);
  made.type = x.type;
  made.type.dims[axis] = to;
  return made;
}

/* Pools axis by axis. The mean of means equals the mean of all elements, because all means are over equally many elements. */
static void pool_axes(aten *n, value x, bool is_max, uint32_t spatial) {
  const clv_tensor *to = &n->outputs[0].type;
  if (!is_max) x = clv__aten_cast(n, x, clv__aten_wide(x.type.dtype));
  for (int32_t axis = x.type.rank - (int32_t)spatial; axis < x.type.rank; ++axis) {
    int64_t from = x.type.dims[axis];
    if (to->dims[axis] < 1 || to->dims[axis] > CLV__ATEN_MAX_LIST || from < 1 || from > INT32_MAX) clv__aten_keep(n);
    if (n->status != CLV_OK) return;
    if (from != to->dims[axis]) x = pool_axis(n, x, is_max, axis, to->dims[axis]);
  }
  clv__aten_return(n, 0, x);
}

/* If the output has size 1 along each axis, lowers to a global pool. If the output sizes divide the input sizes, lowers to a pool
 * with equal windows that do not overlap. Otherwise pools axis by axis. */
static void lower_adaptive(aten *n) {
  value x = clv__aten_input(n, 0);
  uint32_t spatial = spatial_of(n->stem);
  bool is_max = strstr(n->stem, "max") != NULL;
  int64_t window[MAX_SPATIAL], zeros[MAX_SPATIAL] = {0};
  bool batched = x.type.rank == (int32_t)spatial + 2;
  const clv_tensor *to = &n->outputs[0].type;
  if ((!batched && x.type.rank != (int32_t)spatial + 1) || to->rank != x.type.rank) clv__aten_keep(n);
  if (n->output_count > 1 && n->output_read[1]) clv__aten_keep(n);
  if (n->status != CLV_OK) return;
  bool whole = true, divides = true;
  for (uint32_t i = 0; i < spatial; ++i) {
    int64_t from = x.type.dims[x.type.rank - (int32_t)(spatial - i)], size = to->dims[x.type.rank - (int32_t)(spatial - i)];
    if (size < 1 || from == 0) clv__aten_keep(n);
    if (n->status != CLV_OK) return;
    divides = divides && from % size == 0;
    window[i] = from / size;
    whole = whole && size == 1;
  }
  if (!divides) {
    pool_axes(n, x, is_max, spatial);
    return;
  }
  if (!batched) x = clv__aten_unsqueeze(n, x, 0);
  if (!whole) set_window(n, window, window, zeros, spatial);
  const char *op = whole ? (is_max ? "GlobalMaxPool" : "GlobalAveragePool") : is_max ? "MaxPool" : "AveragePool";
  value made = clv__aten_call(n, op, x.type.dtype, x);
  clv__aten_return(n, 0, batched ? made : clv__aten_squeeze(n, made, 0));
}

/* ---- Resizing ---- */

/* Returns whether each output size is exactly the scale times the input size. ATen maps coordinates by the scales, but the Resize
 * that is emitted here maps them by the sizes. Only in this case both give the same result. */
static bool scales_are_exact(aten *n, const value *x, uint32_t spatial) {
  static const char *const single[] = {"scales_d", "scales_h", "scales_w"};
  double scales[CLV__ATEN_MAX_LIST];
  uint32_t count = clv__aten_reals(n, "scale_factors", scales);
  for (uint32_t i = 0; i < spatial; ++i) {
    double scale = i < count ? scales[i] : clv__aten_real(n, spatial == 1 ? "scales" : single[3 - spatial + i], 0);
    double exact = scale * (double)x->type.dims[2 + i], made = (double)n->outputs[0].type.dims[2 + i];
    if (scale != 0 && exact != made) return false;
  }
  return true;
}

static void lower_resize(aten *n) {
  value x = clv__aten_input(n, 0);
  uint32_t spatial = spatial_of(n->stem);
  bool nearest = strstr(n->stem, "nearest") != NULL, cubic = strstr(n->stem, "cubic") != NULL;
  bool align = clv__aten_bool(n, "align_corners", false);
  if (x.type.rank != (int32_t)spatial + 2 || n->outputs[0].type.rank != x.type.rank || !scales_are_exact(n, &x, spatial)) {
    clv__aten_keep(n);
  }
  if (n->status != CLV_OK) return;
  clv__aten_set_string(n, "mode", nearest ? "nearest" : cubic ? "cubic" : "linear");
  clv__aten_set_string(n, "coordinate_transformation_mode", nearest ? "asymmetric" : align ? "align_corners" : "half_pixel");
  if (nearest) clv__aten_set_string(n, "nearest_mode", "floor");
  if (cubic) clv__aten_set_float(n, "cubic_coeff_a", -0.75);
  value absent = clv__aten_absent(), sizes = clv__aten_vector(n, n->outputs[0].type.dims, (uint32_t)x.type.rank);
  clv__aten_return(n, 0, clv__aten_call(n, "Resize", x.type.dtype, x, absent, absent, sizes));
}

const clv__aten_lowering clv__aten_window[] = {
    {"conv1d", lower_conv},
    {"conv2d", lower_conv},
    {"conv3d", lower_conv},
    {"convolution", lower_conv},
    {"_convolution", lower_conv},
    {"conv_transpose1d", lower_conv},
    {"conv_transpose2d", lower_conv},
    {"conv_transpose3d", lower_conv},
    {"max_pool1d", lower_pool},
    {"max_pool2d", lower_pool},
    {"max_pool3d", lower_pool},
    {"max_pool2d_with_indices", lower_pool},
    {"max_pool3d_with_indices", lower_pool},
    {"avg_pool1d", lower_pool},
    {"avg_pool2d", lower_pool},
    {"avg_pool3d", lower_pool},
    {"adaptive_avg_pool1d", lower_adaptive},
    {"adaptive_avg_pool2d", lower_adaptive},
    {"adaptive_avg_pool3d", lower_adaptive},
    {"_adaptive_avg_pool2d", lower_adaptive},
    {"_adaptive_avg_pool3d", lower_adaptive},
    {"adaptive_max_pool1d", lower_adaptive},
    {"adaptive_max_pool2d", lower_adaptive},
    {"upsample_nearest1d", lower_resize},
    {"upsample_nearest2d", lower_resize},
    {"upsample_nearest3d", lower_resize},
    {"upsample_linear1d", lower_resize},
    {"upsample_bilinear2d", lower_resize},
    {"upsample_trilinear3d", lower_resize},
    {"upsample_bicubic2d", lower_resize},
    {NULL, NULL},
};
