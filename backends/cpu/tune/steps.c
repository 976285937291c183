/* Builds trials of the alternative implementations of convolutions and of products with constant matrices: see tune.h. */
#include <stdio.h>

#include "backends/cpu/kernels/row.h"
#include "backends/cpu/lower/forms.h"
#include "backends/cpu/lower/residual.h"
#include "tune.h"

/* Describes everything about a step that affects its time: types, window, fused posts, and the layout of the source. */
static void describe(const clv__cpu_variant *variant, const clv__cpu_variant_node *node, const char *question, char *text,
                     size_t room) {
  char types[3][96], window[96] = "";
  int at = 0;
  const uint32_t values[3] = {node->inputs[0], node->inputs[1], node->outputs[0]};
  for (int i = 0; i < 3; ++i) clv__tensor_text(&variant->values[values[i]].type, types[i], sizeof types[i]);
  static const char *const lists[] = {"strides", "pads", "dilations"};
  for (int l = 0; l < 3; ++l) {
    size_t count;
    const int64_t *items = clv__attribute_ints(node->source->attributes, lists[l], &count);
    at += snprintf(window + at, sizeof window - (size_t)at, "%c", "spd"[l]);
    for (size_t i = 0; items != NULL && i < count && (size_t)at < sizeof window - 24; ++i) {
      at += snprintf(window + at, sizeof window - (size_t)at, "%s%lld", i > 0 ? "," : "", (long long)items[i]);
    }
  }
  at = snprintf(text, room, "%s: %s %s * %s -> %s %s in %d%s%s, then", question, node->source->op, types[0], types[1], types[2],
                window, (int)node->product, node->bias != NULL ? ", bias" : "",
                clv__cpu_form_is_blocked(variant, node->inputs[0]) ? ", blocked" : "");
  for (uint32_t i = 0; i < node->post_count && at > 0 && (size_t)at < room; ++i) {
    const bool adds = node->posts[i].kind == CLV__CPU_POST_ADD;
    at += snprintf(text + at, room - (size_t)at, " %s%d", adds ? "add" : "f", adds ? 0 : node->posts[i].algorithm);
  }
}

/* ---- Convolutions ---- */

static clv_status add_convolution(clv__cpu_variant *variant, const clv__cpu_variant_node *node,
                                  const clv__dnn_primitive *primitive, int64_t bias_count, clv__cpu_trial *trial,
                                  clv_error *error) {
  const clv__dnn_layout *given = clv__cpu_form_layout(variant, node->inputs[0]);
  if (given == NULL) return clv__error_memory(error, 0);
  clv__cpu_trial_call *own = &trial->calls[trial->count - 1];
  const bool reorders = !clv__dnn_layout_equal(given, primitive->source);
  if (reorders) { /* include the time that reordering the source takes */
    clv__dnn_primitive *reorder;
    CLV__TRY(clv__dnn_reorder_create(variant->device->dnn, given, primitive->source, &variant->arena, &reorder, error));
    clv__cpu_trial_call convolution = *own;
    --trial->count;
    clv__cpu_trial_call *before = clv__cpu_trial_add(trial, reorder);
    clv__cpu_trial_operand_add(before, CLV__DNN_SOURCE, CLV__CPU_TRIAL_SOURCE, given);
    clv__cpu_trial_operand_add(before, CLV__DNN_DESTINATION, CLV__CPU_TRIAL_REORDERED, primitive->source);
    own = clv__cpu_trial_add(trial, convolution.primitive);
  }
  clv__cpu_trial_operand_add(own, CLV__DNN_SOURCE, reorders ? CLV__CPU_TRIAL_REORDERED : CLV__CPU_TRIAL_SOURCE,
                             primitive->source);
  clv__cpu_trial_operand_add(own, CLV__DNN_WEIGHTS, CLV__CPU_TRIAL_WEIGHTS, primitive->weights);
  if (bias_count > 0) {
    const clv__dnn_layout *bias = clv__dnn_layout_dense(&variant->arena, CLV_F32, 1, &bias_count);
    if (bias == NULL) return clv__error_memory(error, 0);
    clv__cpu_trial_operand_add(own, CLV__DNN_BIAS, CLV__CPU_TRIAL_BIAS, bias);
  }
  clv__cpu_trial_operand_add(own, CLV__DNN_DESTINATION, CLV__CPU_TRIAL_DESTINATION, primitive->destination);
  return CLV_OK;
}

/* Builds the trial of one implementation of a convolution. The trial stays empty if oneDNN does not support it. */
static clv_status try_convolution(clv__cpu_variant *variant, const clv__cpu_variant_node *node, const clv__dnn_convolution *spec,
                                  const char *name, clv__cpu_trial *trial, clv_error *error) {
  clv__dnn_post posts[CLV__CPU_MAX_POSTS];
  clv__dnn_convolution own = *spec;
  clv__dnn_primitive *primitive = NULL;
  own.posts = posts;
  own.post_count = clv__cpu_posts(node, NULL, posts);
  *trial = (clv__cpu_trial){.name = name};
  clv_status status = clv__dnn_convolution_create(variant->device->dnn, &own, &variant->arena, &primitive, error);
  /* As in lowering, a function that Winograd's algorithm cannot fuse is a separate step. */
  const bool apart =
      status == CLV_NOT_SUPPORTED && own.winograd && own.post_count == 1 && clv__cpu_residual_post(node) == CLV__CPU_NONE;
  if (apart) {
    own.post_count = 0;
    status = clv__dnn_convolution_create(variant->device->dnn, &own, &variant->arena, &primitive, error);
  }
  if (status == CLV_NOT_SUPPORTED) return CLV_OK;
  CLV__TRY(status);
  (void)clv__cpu_trial_add(trial, primitive);
  CLV__TRY(add_convolution(variant, node, primitive, own.bias_count, trial, error));
  if (!apart) return CLV_OK;
  clv__dnn_primitive *function;
  CLV__TRY(clv__dnn_unary_create(variant->device->dnn, (clv__dnn_unary)posts[0].algorithm, posts[0].alpha, posts[0].beta,
                                 primitive->destination, &variant->arena, &function, error));
  clv__cpu_trial_call *after = clv__cpu_trial_add(trial, function);
  clv__cpu_trial_operand_add(after, CLV__DNN_SOURCE, CLV__CPU_TRIAL_DESTINATION, primitive->destination);
  clv__cpu_trial_operand_add(after, CLV__DNN_DESTINATION, CLV__CPU_TRIAL_DESTINATION, primitive->destination);
  return CLV_OK;
}

/* Chooses between two implementations of a convolution: sets *second to whether specs[1] is faster than specs[0]. Leaves *second
 * unchanged if oneDNN does not support one of them. */
static clv_status choose(clv__cpu_variant *variant, const clv__cpu_variant_node *node, const char *question,
                         const clv__dnn_convolution *specs[2], const char *const names[2], bool *second, clv_error *error) {
  clv__cpu_trial trials[2] = {{0}};
  char step[CLV__CPU_NOTE_ROOM];
  uint32_t chosen = *second ? 1 : 0;
  clv_status status = CLV_OK;
  describe(variant, node, question, step, sizeof step);
  if (!clv__cpu_tune_kept(variant, step, names, 2, &chosen)) {
    for (int i = 0; i < 2 && status == CLV_OK; ++i)
      status = try_convolution(variant, node, specs[i], names[i], &trials[i], error);
    if (status == CLV_OK && trials[0].count > 0 && trials[1].count > 0) {
      status = clv__cpu_tune(variant, step, trials, 2, &chosen, error);
    }
    for (int i = 0; i < 2; ++i) clv__cpu_trial_finish(&trials[i]);
  }
  *second = chosen == 1;
  return status;
}

clv_status clv__cpu_tune_winograd(clv__cpu_variant *variant, const clv__cpu_variant_node *node, const clv__dnn_convolution *spec,
                                  bool *winograd, clv_error *error) {
  static const char *const names[2] = {"direct", "winograd"};
  clv__dnn_convolution direct = *spec, other = *spec;
  direct.winograd = false;
  other.winograd = true;
  const clv__dnn_convolution *specs[2] = {&direct, &other};
  return choose(variant, node, "algorithm", specs, names, winograd, error);
}

clv_status clv__cpu_tune_groups(clv__cpu_variant *variant, const clv__cpu_variant_node *node, const clv__dnn_convolution *grouped,
                                const clv__dnn_convolution *whole, bool *as_one, clv_error *error) {
  static const char *const names[2] = {"groups", "one group"};
  const clv__dnn_convolution *specs[2] = {grouped, whole};
  return choose(variant, node, "groups", specs, names, as_one, error);
}

/* ---- Products ---- */

static clv_status try_row(clv__cpu_variant *variant, const clv__cpu_row *row, const clv__dnn_layout *panels,
                          const clv__dnn_layout *destination, clv__cpu_trial *trial, clv_error *error) {
  const clv__dnn_layout *source = clv__dnn_layout_dense(&variant->arena, CLV_F32, 1, &row->depth);
  if (source == NULL) return clv__error_memory(error, 0);
  *trial = (clv__cpu_trial){.name = "row"};
  clv__cpu_trial_call *call = clv__cpu_trial_add(trial, NULL);
  call->row = row;
  clv__cpu_trial_operand_add(call, 0, CLV__CPU_TRIAL_SOURCE, source);
  clv__cpu_trial_operand_add(call, 0, CLV__CPU_TRIAL_WEIGHTS, panels);
  clv__cpu_trial_operand_add(call, 0, CLV__CPU_TRIAL_DESTINATION, destination);
  return CLV_OK;
}

/* Builds the trial of oneDNN's product, with b packed or as the model stores it. The trial stays empty if oneDNN does not support
 * the product. */
static clv_status try_product(clv__cpu_variant *variant, const clv__cpu_factors *factors, bool packed, clv__cpu_trial *trial,
                              clv_error *error) {
  clv__dnn_primitive *primitive;
  const clv_status status = clv__dnn_matmul_create(variant->device->dnn, factors->a, factors->b, packed, NULL,
                                                   factors->destination, 1.0f, NULL, 0, &variant->arena, &primitive, error);
  if (status == CLV_NOT_SUPPORTED) return CLV_OK;
  CLV__TRY(status);
  *trial = (clv__cpu_trial){.name = packed ? "packed" : "plain"};
  clv__cpu_trial_call *call = clv__cpu_trial_add(trial, primitive);
  clv__cpu_trial_operand_add(call, CLV__DNN_SOURCE, CLV__CPU_TRIAL_SOURCE, factors->a);
  clv__cpu_trial_operand_add(call, CLV__DNN_WEIGHTS, CLV__CPU_TRIAL_WEIGHTS, primitive->weights);
  clv__cpu_trial_operand_add(call, CLV__DNN_DESTINATION, CLV__CPU_TRIAL_DESTINATION, factors->destination);
  return CLV_OK;
}

clv_status clv__cpu_tune_product(clv__cpu_variant *variant, const clv__cpu_variant_node *node, const clv__cpu_factors *factors,
                                 clv__cpu_product_way *way, clv_error *error) {
  static const char *const names[3] = {"packed", "plain", "row"};
  static const clv__cpu_product_way ways[3] = {CLV__CPU_PRODUCT_PACKED, CLV__CPU_PRODUCT_PLAIN, CLV__CPU_PRODUCT_ROW};
  clv__cpu_trial trials[3] = {{0}};
  clv__cpu_product_way present[3];
  clv__cpu_row row; /* without bias and addend, which cost the same in all implementations */
  char step[CLV__CPU_NOTE_ROOM];
  uint32_t chosen = 0, count = 0;
  clv_status status = CLV_OK;
  describe(variant, node, "product", step, sizeof step);
  if (clv__cpu_tune_kept(variant, step, names, factors->row != NULL ? 3 : 2, &chosen)) {
    *way = ways[chosen];
    return CLV_OK;
  }
  for (int w = 0; w < 3 && status == CLV_OK; ++w) {
    clv__cpu_trial *trial = &trials[count];
    if (ways[w] != CLV__CPU_PRODUCT_ROW) {
      status = try_product(variant, factors, ways[w] == CLV__CPU_PRODUCT_PACKED, trial, error);
    } else if (factors->row != NULL) {
      row = *factors->row;
      row.bias_operand = row.addend_operand = 0;
      row.target_operand = 2;
      status = try_row(variant, &row, factors->panels, factors->destination, trial, error);
    }
    if (trial->count > 0) present[count++] = ways[w];
  }
  if (status == CLV_OK && count > 1) {
    status = clv__cpu_tune(variant, step, trials, count, &chosen, error);
    if (status == CLV_OK) *way = present[chosen];
  }
  for (int w = 0; w < 3; ++w) clv__cpu_trial_finish(&trials[w]);
  return status;
}
