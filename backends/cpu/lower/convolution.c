/* Lowers Conv: chooses the algorithm, packs the weights, and decides how the posts (functions fused into the step) are applied,
 * and how a residual (another value) is added to the result. */
#include "backends/cpu/constants/winograd_cost.h"
#include "backends/cpu/tune/tune.h"
#include "lower.h"
#include "parts.h"
#include "residual.h"
#include "window.h"

void clv__cpu_convolution_describe(const clv__cpu_variant *variant, const clv__cpu_variant_node *node, bool expand,
                                   clv__dnn_convolution *spec) {
  const clv_tensor *weights = &variant->values[node->inputs[1]].type;
  memset(spec, 0, sizeof *spec);
  spec->source = variant->values[node->inputs[0]].type;
  spec->destination = variant->values[node->outputs[0]].type;
  spec->weights = *weights;
  if (node->product == CLV_BF16) {
    spec->source.dtype = spec->weights.dtype = CLV_BF16;
    spec->destination.dtype = variant->values[node->outputs[0]].made;
  }
  spec->bias_count = node->bias != NULL ? spec->destination.dims[1] : 0;
  const int64_t groups = clv__attribute_int(node->source->attributes, "group", 1);
  if (groups > 1 && expand) {
    spec->weights.dims[1] = weights->dims[1] * groups;
  } else if (groups > 1) {
    spec->weights.rank = weights->rank + 1;
    spec->weights.dims[0] = groups;
    spec->weights.dims[1] = weights->dims[0] / groups;
    for (int32_t i = 1; i < weights->rank; ++i) spec->weights.dims[i + 1] = weights->dims[i];
  }
  spec->window.count = weights->rank - 2;
  for (int32_t i = 0; i < spec->window.count; ++i) spec->window.kernel[i] = weights->dims[i + 2];
  clv__cpu_window_read(node->source, &spec->source, &spec->destination, &spec->window);
}

/* Decides whether to use Winograd's algorithm. Measures both algorithms if that was requested (--tune), and otherwise estimates
 * their times. */
static clv_status wants_winograd(clv__cpu_variant *variant, const clv__cpu_variant_node *node, const clv__dnn_convolution *spec,
                                 bool *wants, clv_error *error) {
  *wants = false;
  if (!variant->device->winograd || variant->program->deterministic || !clv__cpu_winograd_fits(spec)) return CLV_OK;
  *wants = clv__cpu_winograd_may_pay(spec);
  return clv__cpu_tunes(variant) ? clv__cpu_tune_winograd(variant, node, spec, wants, error) : CLV_OK;
}

/* The primitive, and how it adds the residual. Either the result is added in place to the residual in `sum_slot`, or the
 * primitive reads the residual as an operand from `binary_slot`. */
typedef struct choice {
  clv__dnn_primitive *primitive;
  uint32_t sum_slot, binary_slot;
  const clv__dnn_layout *binary_layout;
  bool posts_apart;     /* the posts are separate steps after the convolution */
  clv__cpu_parts parts; /* replaces `primitive` if not empty */
} choice;

static void release(choice *chosen) {
  clv__dnn_primitive_release(chosen->primitive);
  clv__cpu_parts_release(&chosen->parts);
  chosen->primitive = NULL;
}

static clv_status choose_parts(clv__cpu_variant *variant, const clv__dnn_convolution *spec, choice *chosen, clv_error *error) {
  clv__dnn_convolution own = *spec;
  if (chosen->posts_apart) own.post_count = 0;
  return clv__cpu_parts_choose(variant, &own, chosen->primitive, &chosen->parts, error);
}

/* Creates the primitive so that it reads the residual as an operand. Used if the residual is added after a function, on CPUs
 * without AVX-512: there, oneDNN can add to the destination only as the first post, if at all, but can add an operand at any
 * position. */
static clv_status choose_operand(clv__cpu_variant *variant, const clv__cpu_variant_node *node, clv__dnn_convolution *spec,
                                 clv__dnn_post posts[CLV__CPU_MAX_POSTS], choice *chosen, clv_error *error) {
  clv__dnn *dnn = variant->device->dnn;
  const uint32_t value = node->posts[clv__cpu_residual_post(node)].value;
  spec->post_count = 0;
  CLV__TRY(clv__dnn_convolution_create(dnn, spec, &variant->arena, &chosen->primitive, error));
  const clv__dnn_layout *destination = chosen->primitive->destination;
  clv__dnn_primitive_release(chosen->primitive);
  chosen->primitive = NULL;
  spec->destination_layout = destination;
  spec->post_count = clv__cpu_posts(node, destination, posts);
  CLV__TRY(clv__dnn_convolution_create(dnn, spec, &variant->arena, &chosen->primitive, error));
  chosen->binary_layout = destination;
  return clv__cpu_form_get(variant, value, destination, &chosen->binary_slot, error);
}

static clv_status choose(clv__cpu_variant *variant, const clv__cpu_variant_node *node, clv__dnn_convolution *spec, choice *chosen,
                         clv_error *error) {
  clv__dnn_post posts[CLV__CPU_MAX_POSTS];
  clv__dnn *dnn = variant->device->dnn;
  *chosen = (choice){.sum_slot = CLV__CPU_NONE, .binary_slot = CLV__CPU_NONE};
  spec->posts = posts;
  spec->post_count = clv__cpu_posts(node, NULL, posts);
  CLV__TRY(wants_winograd(variant, node, spec, &spec->winograd, error));
  clv_status status = clv__dnn_convolution_create(dnn, spec, &variant->arena, &chosen->primitive, error);
  if (status == CLV_NOT_SUPPORTED && spec->winograd && spec->post_count > 0 && clv__cpu_residual_post(node) == CLV__CPU_NONE) {
    spec->post_count = 0; /* Winograd's algorithm fuses only relu; it still saves more than a separate step costs */
    status = clv__dnn_convolution_create(dnn, spec, &variant->arena, &chosen->primitive, error);
    chosen->posts_apart = status == CLV_OK;
    spec->post_count = node->post_count;
  }
  if (status == CLV_OK && spec->winograd && !clv__cpu_tunes(variant) && !clv__cpu_winograd_pays(spec, chosen->primitive)) {
    clv__dnn_primitive_release(chosen->primitive);
    *chosen = (choice){.sum_slot = CLV__CPU_NONE, .binary_slot = CLV__CPU_NONE};
    status = CLV_NOT_SUPPORTED;
  }
  if (status == CLV_NOT_SUPPORTED && spec->winograd) {
    spec->winograd = false;
    status = clv__dnn_convolution_create(dnn, spec, &variant->arena, &chosen->primitive, error);
  }
  const uint32_t post = clv__cpu_residual_post(node);
  if (status == CLV_NOT_SUPPORTED && post != CLV__CPU_NONE && post > 0) {
    return choose_operand(variant, node, spec, posts, chosen, error);
  }
  if (status != CLV_OK) return status;
  if (post == CLV__CPU_NONE) return choose_parts(variant, spec, chosen, error);
  const uint32_t value = node->posts[post].value;
  const clv__dnn_layout *destination = chosen->primitive->destination, *layout = clv__cpu_form_layout(variant, value);
  if (layout == NULL) return clv__error_memory(error, 0);
  const bool dense = clv__dnn_layout_is_dense(layout) && clv__dnn_layout_is_dense(destination) &&
                     clv__dnn_layout_dtype(layout) == clv__dnn_layout_dtype(destination);
  const bool fits = clv__dnn_layout_equal(layout, destination) || dense;
  if (fits && clv__cpu_form_is_first(variant, value, layout) &&
      clv__cpu_may_overwrite(variant, node, value, variant->values[value].forms[0].slot)) {
    chosen->sum_slot = variant->values[value].forms[0].slot;
    return CLV_OK;
  }
  if (fits) {
    clv__dnn_primitive *binary = NULL;
    spec->destination_layout = destination;
    spec->post_count = clv__cpu_posts(node, destination, posts);
    status = clv__dnn_convolution_create(dnn, spec, &variant->arena, &binary, error);
    if (status == CLV_OK) {
      clv__dnn_primitive_release(chosen->primitive);
      chosen->primitive = binary;
      chosen->binary_layout = destination;
      return clv__cpu_form_get(variant, value, destination, &chosen->binary_slot, error);
    }
    if (status != CLV_NOT_SUPPORTED) return status;
  }
  return clv__cpu_private_copy(variant, node, value, destination, &chosen->sum_slot, error);
}

/* Packs the weights of `inputs` input channels from `first` on, or of all if `inputs` is 0. *slot receives their slot. */
static clv_status weights_slot(clv__cpu_variant *variant, const clv__cpu_variant_node *node, const clv__dnn_convolution *spec,
                               int64_t first, int64_t inputs, const clv__dnn_layout *wanted, uint32_t *slot, clv_error *error) {
  const clv__cpu_packing packing = {
      .value = node->inputs[1],
      .from = clv__dnn_layout_dense(&variant->arena, variant->values[node->inputs[1]].type.dtype, spec->weights.rank,
                                    spec->weights.dims),
      .scale = node->scale,
      .scale_axis = 0,
      .expand_groups = spec->weights.rank == spec->source.rank ? clv__attribute_int(node->source->attributes, "group", 1) : 1,
      .first_input = first,
      .inputs = inputs,
  };
  void *data;
  if (packing.from == NULL) return clv__error_memory(error, 0);
  CLV__TRY(clv__cpu_constant_packed(variant->constants, &packing, wanted, &data, error));
  return clv__cpu_slot_constant(variant, data, clv__dnn_layout_size_bytes(wanted), slot, error);
}

/* The slots of a convolution; NONE for missing ones. */
typedef struct operands {
  uint32_t source, weights, bias, binary, destination;
} operands;

static clv_status emit_step(clv__cpu_variant *variant, const clv__cpu_variant_node *node, const clv__dnn_convolution *spec,
                            const choice *chosen, clv__dnn_primitive *primitive, const operands *slots, clv_error *error) {
  clv__cpu_step *step = clv__cpu_step_new(variant, CLV__CPU_STEP_PRIMITIVE, node->source, node->source->op, 6);
  if (step == NULL) return clv__error_memory(error, sizeof *step);
  step->scratch_bytes = primitive->scratch_bytes;
  clv__cpu_step_input(step, CLV__DNN_SOURCE, slots->source, primitive->source);
  clv__cpu_step_input(step, CLV__DNN_WEIGHTS, slots->weights, primitive->weights);
  if (slots->bias != CLV__CPU_NONE) {
    const clv__dnn_layout *layout = clv__dnn_layout_dense(&variant->arena, CLV_F32, 1, &spec->bias_count);
    if (layout == NULL) return clv__error_memory(error, 0);
    clv__cpu_step_input(step, CLV__DNN_BIAS, slots->bias, layout);
  }
  if (slots->binary != CLV__CPU_NONE) {
    clv__cpu_step_input(step, clv__dnn_post_argument(clv__cpu_residual_post(node)), slots->binary, chosen->binary_layout);
  }
  clv__cpu_step_output(step, CLV__DNN_DESTINATION, slots->destination, primitive->destination);
  step->primitive = primitive; /* owned by the variant from here on */
  return CLV_OK;
}

/* Emits the steps of the parts. The variant takes ownership of each part's primitive. The first part writes the destination, the
 * others add to it. */
static clv_status emit_parts(clv__cpu_variant *variant, const clv__cpu_variant_node *node, const clv__dnn_convolution *spec,
                             choice *chosen, const operands *whole, clv_error *error) {
  clv__cpu_parts *parts = &chosen->parts;
  for (uint32_t i = 0; i < parts->count; ++i) {
    const clv__dnn_primitive *primitive = parts->primitives[i];
    const size_t size_bytes = clv__dnn_layout_size_bytes(primitive->source);
    operands own = *whole;
    if (i > 0) own.bias = CLV__CPU_NONE;
    CLV__TRY(clv__cpu_slot_part(variant, whole->source, i * size_bytes, size_bytes, &own.source, error));
    CLV__TRY(weights_slot(variant, node, spec, i * parts->channels, parts->channels, primitive->weights, &own.weights, error));
    CLV__TRY(emit_step(variant, node, spec, chosen, parts->primitives[i], &own, error));
    parts->primitives[i] = NULL;
  }
  return CLV_OK;
}

static clv_status emit(clv__cpu_variant *variant, const clv__cpu_variant_node *node, const clv__dnn_convolution *spec,
                       choice *chosen, clv_error *error) {
  const clv__dnn_primitive *primitive = chosen->primitive;
  const clv__dnn_layout *made = primitive->destination;
  operands slots = {.bias = CLV__CPU_NONE, .binary = chosen->binary_slot};
  if (chosen->parts.count == 0) CLV__TRY(weights_slot(variant, node, spec, 0, 0, primitive->weights, &slots.weights, error));
  if (node->bias != NULL) {
    CLV__TRY(clv__cpu_slot_constant(variant, node->bias, (size_t)spec->bias_count * sizeof(float), &slots.bias, error));
  }
  CLV__TRY(clv__cpu_form_get(variant, node->inputs[0], primitive->source, &slots.source, error));
  if (chosen->sum_slot != CLV__CPU_NONE) {
    CLV__TRY(clv__cpu_form_make_in(variant, node->outputs[0], made, chosen->sum_slot, &slots.destination, error));
  } else {
    CLV__TRY(clv__cpu_form_make(variant, node->outputs[0], made, &slots.destination, error));
  }
  if (chosen->parts.count > 0) {
    CLV__TRY(emit_parts(variant, node, spec, chosen, &slots, error));
  } else {
    CLV__TRY(emit_step(variant, node, spec, chosen, chosen->primitive, &slots, error));
    chosen->primitive = NULL;
  }
  for (uint32_t i = 0; i < node->post_count && chosen->posts_apart; ++i) {
    CLV__TRY(clv__cpu_lower_post(variant, node, &node->posts[i], made, slots.destination, error));
  }
  return CLV_OK;
}

/* Describes the convolution. Groups with few channels have no fast implementation. Merging them into one group, with zeros
 * between, is faster although it takes more arithmetic. */
static clv_status describe(clv__cpu_variant *variant, const clv__cpu_variant_node *node, clv__dnn_convolution *spec,
                           clv_error *error) {
  const int64_t groups = clv__attribute_int(node->source->attributes, "group", 1);
  clv__cpu_convolution_describe(variant, node, false, spec);
  if (groups <= 1 || groups > 8 || spec->source.dims[1] > 256) return CLV_OK;
  clv__dnn_primitive *probe = NULL;
  clv__dnn_convolution whole;
  const clv_status status = clv__dnn_convolution_create(variant->device->dnn, spec, &variant->arena, &probe, NULL);
  bool as_one = status == CLV_NOT_SUPPORTED || (status == CLV_OK && strstr(probe->implementation, "gemm") != NULL);
  clv__dnn_primitive_release(probe);
  clv__cpu_convolution_describe(variant, node, true, &whole);
  if (clv__cpu_tunes(variant)) CLV__TRY(clv__cpu_tune_groups(variant, node, spec, &whole, &as_one, error));
  if (as_one) *spec = whole;
  return CLV_OK;
}

clv_status clv__cpu_lower_convolution(clv__cpu_variant *variant, clv__cpu_variant_node *node, bool *taken, clv_error *error) {
  clv__dnn_convolution spec;
  choice chosen;
  CLV__TRY(describe(variant, node, &spec, error));
  clv_status status = choose(variant, node, &spec, &chosen, error);
  if (status == CLV_NOT_SUPPORTED && node->product == CLV_BF16) {
    release(&chosen);
    node->product = CLV_F32;
    return clv__cpu_lower_convolution(variant, node, taken, error);
  }
  if (status != CLV_OK) {
    release(&chosen);
    return clv__cpu_refused(status, taken);
  }
  status = emit(variant, node, &spec, &chosen, error);
  release(&chosen); /* releases the primitives that no step took over */
  return status;
}
