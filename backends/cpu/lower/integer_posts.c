/* Builds the variant node of a product of integers: computes factors and bias from the scales and zero points, then appends the
 * posts one by one. */
#include "integer_posts.h"

#include <math.h>

#include "window.h"

/* The elements of a constant f32 value; *count receives their number. NULL if `value` is something else. */
static const float *floats_of(clv__cpu_variant *variant, uint32_t value, size_t *count) {
  void *data = NULL;
  if (value == CLV__CPU_NONE || !variant->values[value].is_constant || variant->values[value].type.dtype != CLV_F32) return NULL;
  if (!clv__tensor_count(&variant->values[value].type, count)) return NULL;
  return clv__cpu_known(variant, value, &data, NULL) == CLV_OK ? data : NULL;
}

/* Reads the zero point of a tensor into *zero; it is 0 if the value is absent. Returns false if zero points differ within the
 * tensor, or are unknown. */
static bool zero_of(clv__cpu_variant *variant, uint32_t value, clv_dtype dtype, int32_t *zero) {
  *zero = 0;
  if (value == CLV__CPU_NONE) return true;
  const clv__cpu_variant_value *read = &variant->values[value];
  size_t count;
  void *data = NULL;
  if (!read->is_constant || read->type.dtype != dtype || !clv__tensor_count(&read->type, &count) || count == 0) return false;
  if (clv__cpu_known(variant, value, &data, NULL) != CLV_OK || data == NULL) return false;
  const uint8_t *bytes = data;
  for (size_t i = 1; i < count; ++i) {
    if (bytes[i] != bytes[0]) return false;
  }
  *zero = dtype == CLV_U8 ? bytes[0] : (int8_t)bytes[0];
  return true;
}

static uint32_t input_of(const clv__cpu_node *node, uint32_t index) {
  return index < node->input_count ? node->inputs[index] : CLV__CPU_NONE;
}

bool clv__cpu_grid_read(clv__cpu_variant *variant, const clv__cpu_node *node, uint32_t first, clv_dtype dtype,
                        clv__cpu_grid *grid) {
  size_t count;
  if (dtype != CLV_I8 && dtype != CLV_U8) return false;
  const float *scale = floats_of(variant, input_of(node, first), &count);
  if (scale == NULL || count != 1 || !(scale[0] > 0.0f) || !isfinite(scale[0])) return false;
  *grid = (clv__cpu_grid){.scale = scale[0], .dtype = dtype};
  return zero_of(variant, input_of(node, first + 1), dtype, &grid->zero);
}

/* ---- Products. ---- */

bool clv__cpu_product_of_real(const clv__cpu_variant *variant, const clv__cpu_variant_node *node, uint32_t source,
                              const clv__cpu_grid *grid, clv__cpu_product *product) {
  const clv__cpu_program *program = variant->program;
  if (node->inputs[1] >= program->value_count || program->values[node->inputs[1]].computed == NULL) return false;
  /* A bias that is still an input of the node is not supported. */
  if (node->input_count > 2 && node->inputs[2] != CLV__CPU_NONE) return false;
  const clv__cpu_node *weights = program->values[node->inputs[1]].computed;
  *product = (clv__cpu_product){.node = node,
                                .is_convolution = node->kind == CLV__CPU_CONVOLUTION,
                                .source = source,
                                .grid = *grid,
                                .weights = weights->inputs[0],
                                .weights_scale = weights->inputs[1],
                                .weights_zero = input_of(weights, 2),
                                .weights_axis = clv__attribute_int(weights->attributes, "axis", 1),
                                .factors = node->scale,
                                .bias = node->bias};
  return clv__attribute_int(node->source->attributes, "transA", 0) == 0;
}

bool clv__cpu_product_of_integers(clv__cpu_variant *variant, const clv__cpu_variant_node *node, clv__cpu_product *product,
                                  clv__cpu_grid *result) {
  const clv__cpu_node *source = node->source;
  const bool is_convolution = strcmp(source->op, "QLinearConv") == 0;
  if (source->input_count < 8 || source->inputs[0] == CLV__CPU_NONE || source->inputs[3] >= variant->program->value_count)
    return false;
  const clv_tensor *from = &variant->values[source->inputs[0]].type, *to = &variant->values[node->outputs[0]].type;
  const clv__cpu_value *weights = &variant->program->values[source->inputs[3]];
  size_t count;
  if (!weights->is_constant || (weights->type.dtype != CLV_I8 && weights->type.dtype != CLV_U8)) return false;
  if (from->rank < 2 || !clv__tensor_count(to, &count) || count == 0) return false;
  *product = (clv__cpu_product){.node = node,
                                .is_convolution = is_convolution,
                                .source = source->inputs[0],
                                .weights = source->inputs[3],
                                .weights_scale = source->inputs[4],
                                .weights_zero = source->inputs[5],
                                .weights_axis = is_convolution ? 0 : 1};
  const uint32_t bias = input_of(source, 8);
  if (bias != CLV__CPU_NONE) {
    void *data = NULL;
    const clv_tensor *type = &variant->values[bias].type;
    if (!is_convolution || type->dtype != CLV_I32 || type->rank != 1 || type->dims[0] != weights->type.dims[0]) return false;
    if (clv__cpu_known(variant, bias, &data, NULL) != CLV_OK || data == NULL) return false;
    product->sums = data;
  }
  return clv__cpu_grid_read(variant, source, 1, from->dtype, &product->grid) &&
         clv__cpu_grid_read(variant, source, 6, to->dtype, result);
}

/* The axis of the weights that becomes the channels of the result. */
static int32_t channel_axis(const clv__cpu_product *product) {
  if (product->is_convolution) return 0;
  const clv__cpu_node *source = product->node->source;
  return strcmp(source->op, "Gemm") == 0 && clv__attribute_int(source->attributes, "transB", 0) != 0 ? 0 : 1;
}

/* Computes, per channel, the real number that an integer sum of 1 represents. */
static bool factors_of(clv__cpu_variant *variant, const clv__cpu_product *product, int64_t channels, double *factors) {
  const clv_tensor *type = &variant->values[product->weights].type;
  size_t count;
  const float *scale = floats_of(variant, product->weights_scale, &count);
  if (scale == NULL || (count != 1 && count != (size_t)channels)) return false;
  const int64_t axis = product->weights_axis < 0 ? product->weights_axis + type->rank : product->weights_axis;
  if (count != 1 && (axis != channel_axis(product) || variant->values[product->weights_scale].type.rank != 1)) return false;
  for (int64_t c = 0; c < channels; ++c) {
    factors[c] = (double)product->grid.scale * scale[count == 1 ? 0 : c];
    if (product->factors != NULL) factors[c] *= product->factors[c];
    if (!(fabs(factors[c]) > 1e-30) || !isfinite(factors[c])) return false;
  }
  return true;
}

static bool is_padded(const clv__cpu_variant *variant, const clv__cpu_product *product) {
  const clv_tensor *from = &variant->values[product->source].type, *weights = &variant->values[product->weights].type;
  clv__dnn_window window = {.count = from->rank - 2};
  if (!product->is_convolution) return false;
  for (int32_t i = 0; i < window.count; ++i) window.kernel[i] = weights->dims[i + 2];
  clv__cpu_window_read(product->node->source, from, &variant->values[product->node->outputs[0]].type, &window);
  for (int32_t i = 0; i < window.count; ++i) {
    if (window.begin[i] != 0 || window.end[i] != 0) return true;
  }
  return false;
}

/* Subtracts the contribution of the source's zero point from the bias: the zero point times the sum of the channel's weights. */
static clv_status shift_by_zero(clv__cpu_variant *variant, const clv__cpu_product *product, clv__cpu_integers *integers,
                                double *bias, clv_error *error) {
  const clv_tensor *type = &variant->values[product->weights].type;
  const int32_t axis = channel_axis(product);
  const int64_t outer = clv__dims_product(type, 0, axis), inner = clv__dims_product(type, axis + 1, type->rank);
  const uint8_t *bytes = variant->program->values[product->weights].type.data;
  void *raw = NULL;
  if (bytes == NULL) {
    CLV__TRY(clv__cpu_constant_raw(variant->constants, product->weights, &raw, error));
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

/* Computes the bias, in units of the sums. Sets *fits to false if some bias is out of range. */
static clv_status bias_of(clv__cpu_variant *variant, const clv__cpu_product *product, const double *factors,
                          clv__cpu_integers *integers, bool *fits, clv_error *error) {
  const bool folded = product->grid.zero != 0 && !is_padded(variant, product);
  *fits = true;
  if (product->grid.zero != 0 && !folded) integers->source_zero = product->grid.zero;
  if (product->bias == NULL && product->sums == NULL && !folded) return CLV_OK;
  double *sums = clv__arena_allocate_zero(&variant->arena, (size_t)integers->channels, sizeof *sums);
  integers->bias = clv__arena_allocate_data(&variant->arena, (size_t)integers->channels * sizeof *integers->bias);
  if (sums == NULL || integers->bias == NULL) return clv__error_memory(error, (size_t)integers->channels * sizeof *sums);
  for (int64_t c = 0; c < integers->channels; ++c) {
    if (product->bias != NULL) sums[c] = product->bias[c] / factors[c];
    if (product->sums != NULL) sums[c] = product->sums[c];
    if (!(fabs(sums[c]) < 1e30)) *fits = false;
  }
  if (folded && *fits) CLV__TRY(shift_by_zero(variant, product, integers, sums, error));
  for (int64_t c = 0; c < integers->channels; ++c) integers->bias[c] = (float)sums[c];
  return CLV_OK;
}

clv_status clv__cpu_integers_start(clv__cpu_variant *variant, const clv__cpu_product *product, double unit,
                                   clv__cpu_variant_node **made, clv_error *error) {
  const clv_tensor *type = &variant->values[product->weights].type;
  *made = NULL;
  if (product->is_convolution ? type->rank < 3 || type->rank > 5 : type->rank != 2) return CLV_OK;
  clv__cpu_integers *integers = clv__arena_allocate_zero(&variant->arena, 1, sizeof *integers);
  clv__cpu_variant_node *copy = clv__arena_copy(&variant->arena, product->node, sizeof *copy);
  const int64_t channels = type->dims[channel_axis(product)];
  double *factors = clv__arena_allocate_zero(&variant->arena, (size_t)channels, sizeof *factors);
  uint32_t *inputs = clv__arena_allocate_zero(&variant->arena, 2, sizeof *inputs);
  if (integers == NULL || copy == NULL || factors == NULL || inputs == NULL) return clv__error_memory(error, sizeof *integers);
  integers->channels = channels;
  integers->residual = CLV__CPU_NONE;
  integers->unit = unit;
  if (!zero_of(variant, product->weights_zero, type->dtype, &integers->weights_zero)) return CLV_OK;
  if (integers->weights_zero != (type->dtype == CLV_U8 ? 128 : 0)) return CLV_OK;
  if (!factors_of(variant, product, channels, factors)) return CLV_OK;
  bool fits;
  CLV__TRY(bias_of(variant, product, factors, integers, &fits, error));
  if (!fits) return CLV_OK;
  integers->scales = clv__arena_allocate_data(&variant->arena, (size_t)channels * sizeof *integers->scales);
  if (integers->scales == NULL) return clv__error_memory(error, (size_t)channels * sizeof *integers->scales);
  for (int64_t c = 0; c < channels; ++c) integers->scales[c] = (float)(factors[c] / unit);
  inputs[0] = product->source;
  inputs[1] = product->weights;
  *copy = (clv__cpu_variant_node){.source = product->node->source,
                                  .kind = product->is_convolution ? CLV__CPU_INTEGER_CONVOLUTION : CLV__CPU_INTEGER_MATRIX,
                                  .composed = true,
                                  .input_count = 2,
                                  .output_count = 1,
                                  .inputs = inputs,
                                  .outputs = product->node->outputs,
                                  .integers = integers};
  *made = copy;
  return CLV_OK;
}

clv_status clv__cpu_integers_copy(clv__cpu_variant *variant, const clv__cpu_variant_node *node, clv__cpu_variant_node **made,
                                  clv_error *error) {
  *made = clv__arena_copy(&variant->arena, node, sizeof *node);
  if (*made == NULL) return clv__error_memory(error, sizeof *node);
  (*made)->integers = clv__arena_copy(&variant->arena, node->integers, sizeof *node->integers);
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

/* Appends a unary post. Returns false if there are too many posts, or if an earlier post has the same algorithm with other
 * parameters: oneDNN would use the parameters of the earlier post for both. */
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

/* Appends a LINEAR post that converts to another unit and adds `shift`. append() would reject a second LINEAR post with other
 * parameters, so a second conversion is encoded as a relu with slope 1, whose factor scales the result. */
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
  /* If the zero point is not 0, the last post so far rounds already: see clv__cpu_integers_end(). */
  if (grid->zero == 0 && !append(integers, CLV__DNN_ROUND, 0.0, 0.0, 0.0)) return false;
  return append(integers, CLV__DNN_CLIP, low - grid->zero, high - grid->zero, 0.0);
}

bool clv__cpu_integers_add(clv__cpu_variant_node *node, uint32_t value, const clv__cpu_grid *grid) {
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
  const bool is_relu =
      last != NULL && last->kind == CLV__DNN_POST_UNARY && last->algorithm == CLV__DNN_RELU && last->alpha == 0.0f;
  const bool is_clip =
      last != NULL && last->kind == CLV__DNN_POST_UNARY && last->algorithm == CLV__DNN_CLIP && last->alpha >= 0.0f;
  if (grid->zero == 0 && grid->dtype == CLV_U8 && is_relu) integers->post_count--; /* u8 saturates at 0 anyway */
  integers->is_natural = grid->zero == 0 && grid->dtype == CLV_I8 && (is_relu || is_clip);
  if (!convert(integers, grid->scale, 0.0)) return false;
  /* Round before the zero point is added, as QuantizeLinear does. Otherwise, if the zero point is odd, ties would round to the
   * other neighbour. */
  return grid->zero == 0 || append(integers, CLV__DNN_ROUND, 0.0, 0.0, 0.0);
}
