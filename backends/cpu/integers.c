/* Putting a product of integers together: factors and bias from the grids, then the posts one by one. */
#include "integers.h"

#include <math.h>

#include "window.h"

/* The elements of a constant f32, or NULL; *count of them. */
static const float *floats_of(clv__cpu_plan *plan, uint32_t value, size_t *count) {
  void *data = NULL;
  if (value == CLV__CPU_NONE || !plan->values[value].is_constant || plan->values[value].type.dtype != CLV_F32) return NULL;
  if (!clv__tensor_count(&plan->values[value].type, count)) return NULL;
  return clv__cpu_known(plan, value, &data, NULL) == CLV_OK ? data : NULL;
}

/* One zero point for all: absent is 0. False: they differ, or are not known. */
static bool zero_of(clv__cpu_plan *plan, const clv__cpu_node *node, uint32_t input, clv_dtype dtype, int32_t *zero) {
  *zero = 0;
  if (input >= node->input_count || node->inputs[input] == CLV__CPU_NONE) return true;
  const clv__cpu_plan_value *value = &plan->values[node->inputs[input]];
  size_t count;
  void *data = NULL;
  if (!value->is_constant || value->type.dtype != dtype || !clv__tensor_count(&value->type, &count) || count == 0) return false;
  if (clv__cpu_known(plan, node->inputs[input], &data, NULL) != CLV_OK || data == NULL) return false;
  const uint8_t *bytes = data;
  for (size_t i = 1; i < count; ++i) {
    if (bytes[i] != bytes[0]) return false;
  }
  *zero = dtype == CLV_U8 ? bytes[0] : (int8_t)bytes[0];
  return true;
}

bool clv__cpu_grid_read(clv__cpu_plan *plan, const clv__cpu_node *node, uint32_t first, clv_dtype dtype, clv__cpu_grid *grid) {
  size_t count;
  if ((dtype != CLV_I8 && dtype != CLV_U8) || first >= node->input_count) return false;
  const float *scale = floats_of(plan, node->inputs[first], &count);
  if (scale == NULL || count != 1 || !(scale[0] > 0.0f) || !isfinite(scale[0])) return false;
  *grid = (clv__cpu_grid){.scale = scale[0], .dtype = dtype};
  return zero_of(plan, node, first + 1, dtype, &grid->zero);
}

/* ---- Factors and bias. ---- */

/* Along which axis of the weights the channels of the result lie. */
static int32_t channel_axis(const clv__cpu_plan_node *node) {
  if (node->kind == CLV__CPU_CONVOLUTION) return 0;
  const bool gemm = strcmp(node->source->op, "Gemm") == 0;
  return gemm && clv__attribute_int(node->source->attributes, "transB", 0) != 0 ? 0 : 1;
}

static bool is_turned(const clv__cpu_plan_node *node) {
  return strcmp(node->source->op, "Gemm") == 0 && clv__attribute_int(node->source->attributes, "transA", 0) != 0;
}

/* The real number that 1 in the sums stands for, a channel. */
static bool factors_of(clv__cpu_plan *plan, const clv__cpu_product *product, const clv__cpu_node *weights, int64_t channels,
                       double *factors) {
  const clv_tensor *type = &plan->values[weights->inputs[0]].type;
  const int32_t along = channel_axis(product->node);
  size_t count;
  const float *scale = floats_of(plan, weights->inputs[1], &count);
  if (scale == NULL || (count != 1 && count != (size_t)channels)) return false;
  int64_t axis = clv__attribute_int(weights->attributes, "axis", 1);
  if (axis < 0) axis += type->rank;
  if (count != 1 && (axis != along || plan->values[weights->inputs[1]].type.rank != 1)) return false;
  for (int64_t c = 0; c < channels; ++c) {
    factors[c] = (double)product->grid.scale * scale[count == 1 ? 0 : c];
    if (product->node->scale != NULL) factors[c] *= product->node->scale[c];
    if (!(fabs(factors[c]) > 1e-30) || !isfinite(factors[c])) return false;
  }
  return true;
}

static bool is_padded(const clv__cpu_plan *plan, const clv__cpu_plan_node *node) {
  clv__dnn_window window = {.count = plan->values[node->inputs[0]].type.rank - 2};
  if (node->kind != CLV__CPU_CONVOLUTION) return false;
  for (int32_t i = 0; i < window.count; ++i) window.kernel[i] = plan->values[node->inputs[1]].type.dims[i + 2];
  clv__cpu_window_read(node->source, &plan->values[node->inputs[0]].type, &plan->values[node->outputs[0]].type, &window);
  for (int32_t i = 0; i < window.count; ++i) {
    if (window.begin[i] != 0 || window.end[i] != 0) return true;
  }
  return false;
}

/* What the source's zero point adds to each sum: itself times the sum of the channel's weights. */
static clv_status shift_by_zero(clv__cpu_plan *plan, const clv__cpu_product *product, uint32_t weights,
                                clv__cpu_integers *integers, double *bias, clv_error *error) {
  const clv_tensor *type = &plan->values[weights].type;
  const int32_t axis = channel_axis(product->node);
  const int64_t outer = clv__dims_product(type, 0, axis), inner = clv__dims_product(type, axis + 1, type->rank);
  const uint8_t *bytes = plan->program->values[weights].type.data;
  void *raw = NULL;
  if (bytes == NULL) {
    CLV__TRY(clv__cpu_constant_raw(plan->constants, weights, &raw, error));
    bytes = raw;
  }
  for (int64_t c = 0; c < integers->channels; ++c) {
    int64_t sum = 0;
    for (int64_t o = 0; o < outer; ++o) {
      const uint8_t *row = bytes + (o * integers->channels + c) * inner;
      for (int64_t i = 0; i < inner; ++i) sum += type->dtype == CLV_I8 ? (int8_t)row[i] : row[i] - integers->weights_zero;
    }
    bias[c] -= (double)(product->grid.zero * sum);
  }
  return CLV_OK;
}

/* *fits false: some bias is out of any range. */
static clv_status bias_of(clv__cpu_plan *plan, const clv__cpu_product *product, uint32_t weights, const double *factors,
                          clv__cpu_integers *integers, bool *fits, clv_error *error) {
  const clv__cpu_plan_node *node = product->node;
  const bool folded = product->grid.zero != 0 && !is_padded(plan, node);
  *fits = true;
  if (product->grid.zero != 0 && !folded) integers->source_zero = product->grid.zero;
  if (node->bias == NULL && !folded) return CLV_OK;
  double *sums = clv__arena_allocate_zero(&plan->arena, (size_t)integers->channels, sizeof *sums);
  integers->bias = clv__arena_allocate_data(&plan->arena, (size_t)integers->channels * sizeof *integers->bias);
  if (sums == NULL || integers->bias == NULL) return clv__error_memory(error, (size_t)integers->channels * sizeof *sums);
  for (int64_t c = 0; c < integers->channels && node->bias != NULL; ++c) {
    sums[c] = node->bias[c] / factors[c];
    if (!(fabs(sums[c]) < 1e30)) *fits = false;
  }
  if (folded && *fits) CLV__TRY(shift_by_zero(plan, product, weights, integers, sums, error));
  for (int64_t c = 0; c < integers->channels; ++c) integers->bias[c] = (float)sums[c];
  return CLV_OK;
}

clv_status clv__cpu_integers_start(clv__cpu_plan *plan, const clv__cpu_product *product, double unit, clv__cpu_plan_node **made,
                                   clv_error *error) {
  const clv__cpu_plan_node *node = product->node;
  const clv__cpu_program *program = plan->program;
  *made = NULL;
  if (node->inputs[1] >= program->value_count || program->values[node->inputs[1]].computed == NULL || is_turned(node) ||
      (node->input_count > 2 && node->inputs[2] != CLV__CPU_NONE)) {
    return CLV_OK;
  }
  const clv__cpu_node *weights = program->values[node->inputs[1]].computed;
  const clv_tensor *type = &plan->values[weights->inputs[0]].type;
  if ((node->kind == CLV__CPU_MATRIX && type->rank != 2) || (node->kind == CLV__CPU_CONVOLUTION && type->rank < 3)) return CLV_OK;
  clv__cpu_integers *integers = clv__arena_allocate_zero(&plan->arena, 1, sizeof *integers);
  clv__cpu_plan_node *copy = clv__arena_copy(&plan->arena, node, sizeof *node);
  const int64_t channels = type->dims[channel_axis(node)];
  double *factors = clv__arena_allocate_zero(&plan->arena, (size_t)channels, sizeof *factors);
  uint32_t *inputs = clv__arena_allocate_zero(&plan->arena, 2, sizeof *inputs);
  if (integers == NULL || copy == NULL || factors == NULL || inputs == NULL) return clv__error_memory(error, sizeof *integers);
  integers->channels = channels;
  integers->residual = CLV__CPU_NONE;
  integers->unit = unit;
  if (!zero_of(plan, weights, 2, type->dtype, &integers->weights_zero)) return CLV_OK;
  if (integers->weights_zero != (type->dtype == CLV_U8 ? 128 : 0)) return CLV_OK;
  if (!factors_of(plan, product, weights, channels, factors)) return CLV_OK;
  bool fits;
  CLV__TRY(bias_of(plan, product, weights->inputs[0], factors, integers, &fits, error));
  if (!fits) return CLV_OK;
  integers->scales = clv__arena_allocate_data(&plan->arena, (size_t)channels * sizeof *integers->scales);
  if (integers->scales == NULL) return clv__error_memory(error, (size_t)channels * sizeof *integers->scales);
  for (int64_t c = 0; c < channels; ++c) integers->scales[c] = (float)(factors[c] / unit);
  inputs[0] = product->source;
  inputs[1] = weights->inputs[0];
  copy->kind = node->kind == CLV__CPU_CONVOLUTION ? CLV__CPU_INTEGER_CONVOLUTION : CLV__CPU_INTEGER_MATRIX;
  copy->composed = true;
  copy->inputs = inputs;
  copy->input_count = 2;
  copy->output_count = 1;
  copy->post_count = 0;
  copy->integers = integers;
  copy->scale = copy->bias = NULL;
  *made = copy;
  return CLV_OK;
}

clv_status clv__cpu_integers_copy(clv__cpu_plan *plan, const clv__cpu_plan_node *node, clv__cpu_plan_node **made,
                                  clv_error *error) {
  *made = clv__arena_copy(&plan->arena, node, sizeof *node);
  if (*made == NULL) return clv__error_memory(error, sizeof *node);
  (*made)->integers = clv__arena_copy(&plan->arena, node->integers, sizeof *node->integers);
  return (*made)->integers != NULL ? CLV_OK : clv__error_memory(error, sizeof *node->integers);
}

/* ---- Posts. ---- */

static const clv__dnn_post *find(const clv__cpu_integers *integers, clv__dnn_unary algorithm) {
  for (uint32_t i = 0; i < integers->post_count; ++i) {
    const clv__dnn_post *post = &integers->posts[i];
    if (post->kind == CLV__DNN_POST_UNARY && post->algorithm == (int)algorithm) return post;
  }
  return NULL;
}

/* False where there are too many, or one of the same algorithm with other numbers, of which oneDNN would use the first. */
static bool append(clv__cpu_integers *integers, clv__dnn_unary algorithm, double alpha, double beta, double factor) {
  const clv__dnn_post post = {.kind = CLV__DNN_POST_UNARY,
                              .algorithm = (int)algorithm,
                              .alpha = (float)alpha,
                              .beta = (float)beta,
                              .factor = (float)factor};
  const clv__dnn_post *same = find(integers, algorithm);
  if (integers->post_count == CLV__DNN_MAX_POSTS) return false;
  if (same != NULL && (same->alpha != post.alpha || same->beta != post.beta || same->factor != post.factor)) return false;
  integers->posts[integers->post_count++] = post;
  return true;
}

/* From one unit to another, and a shift. The second such in a chain is a relu that is none. */
static bool convert(clv__cpu_integers *integers, double unit, double shift) {
  const double factor = integers->unit / unit;
  integers->unit = unit;
  if (factor == 1.0 && shift == 0.0) return true;
  if (find(integers, CLV__DNN_LINEAR) == NULL) return append(integers, CLV__DNN_LINEAR, factor, shift, 0.0);
  if (shift != 0.0) return false;
  const clv__dnn_post *relu = find(integers, CLV__DNN_RELU);
  clv__dnn_post *last = &integers->posts[integers->post_count - 1];
  if (relu == NULL) return append(integers, CLV__DNN_RELU, 1.0, 0.0, factor);
  if (relu != last) return false;
  last->factor = (float)factor;
  return true;
}

bool clv__cpu_unary_scales(const clv__cpu_post *unary) {
  return unary->algorithm == CLV__DNN_RELU || unary->algorithm == CLV__DNN_CLIP || unary->algorithm == CLV__DNN_ABS;
}

bool clv__cpu_integers_unary(clv__cpu_integers *integers, const clv__cpu_post *unary) {
  if (!clv__cpu_unary_scales(unary)) {
    return convert(integers, 1.0, 0.0) && append(integers, (clv__dnn_unary)unary->algorithm, unary->alpha, unary->beta, 0.0);
  }
  const double unit = unary->algorithm == CLV__DNN_CLIP ? integers->unit : 1.0;
  return append(integers, (clv__dnn_unary)unary->algorithm, unary->alpha / unit, unary->beta / unit, 0.0);
}

static void range_of(clv_dtype dtype, double *low, double *high) {
  *low = dtype == CLV_U8 ? 0.0 : -128.0;
  *high = dtype == CLV_U8 ? 255.0 : 127.0;
}

bool clv__cpu_integers_requantise(clv__cpu_integers *integers) {
  const clv__cpu_grid *grid = &integers->grid;
  double low, high;
  range_of(grid->dtype, &low, &high);
  if (grid->zero == 0 && !append(integers, CLV__DNN_ROUND, 0.0, 0.0, 0.0)) return false; /* else it is the last post */
  return append(integers, CLV__DNN_CLIP, low - grid->zero, high - grid->zero, 0.0);
}

bool clv__cpu_integers_add(clv__cpu_plan_node *node, uint32_t value, const clv__cpu_grid *grid) {
  clv__cpu_integers *integers = clv__cpu_integers_of(node);
  if (!convert(integers, grid->scale, -(double)grid->zero) || integers->post_count == CLV__DNN_MAX_POSTS) return false;
  integers->residual = integers->post_count;
  integers->posts[integers->post_count++] = (clv__dnn_post){.kind = CLV__DNN_POST_BINARY, .algorithm = CLV__DNN_ADD};
  node->posts[0] = (clv__cpu_post){.kind = CLV__CPU_POST_ADD, .value = value};
  node->post_count = 1;
  return true;
}

bool clv__cpu_integers_end(clv__cpu_integers *integers, const clv__cpu_grid *grid) {
  integers->is_real = grid == NULL;
  if (grid == NULL) return convert(integers, 1.0, 0.0);
  integers->grid = *grid;
  const clv__dnn_post *last = integers->post_count > 0 ? &integers->posts[integers->post_count - 1] : NULL;
  const bool is_relu = last != NULL && last->kind == CLV__DNN_POST_UNARY && last->algorithm == CLV__DNN_RELU && last->alpha == 0.0f;
  const bool is_clip =
      last != NULL && last->kind == CLV__DNN_POST_UNARY && last->algorithm == CLV__DNN_CLIP && last->alpha >= 0.0f;
  if (grid->zero == 0 && grid->dtype == CLV_U8 && is_relu) integers->post_count--; /* u8 ends at 0 by itself */
  integers->is_natural = grid->zero == 0 && grid->dtype == CLV_I8 && (is_relu || is_clip);
  if (!convert(integers, grid->scale, 0.0)) return false;
  /* Rounded before the zero point is added, as QuantizeLinear does: else ties before an odd one would go the other way. */
  return grid->zero == 0 || append(integers, CLV__DNN_ROUND, 0.0, 0.0, 0.0);
}
