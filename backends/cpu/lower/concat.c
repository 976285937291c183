/* Lowers Concat. Our own kernel concatenates the channels of f32 values whose layouts have channels last or in blocks. The kernel
 * reads each piece in place and can apply a following scale, shift and Relu (join.c). oneDNN handles the other cases in which an
 * input is not row-major. */
#include <math.h>

#include "backends/common/kernels.h"
#include "lower.h"

/* The input whose layout the result gets: the first with channels last, because pieces with blocked channels can be copied to
 * that layout, otherwise the first that is not row-major. NONE: all are row-major. */
static uint32_t leader_of(const clv__cpu_variant *variant, const clv__cpu_variant_node *node) {
  uint32_t leader = CLV__CPU_NONE;
  for (uint32_t i = 0; i < node->input_count; ++i) {
    if (!clv__cpu_form_is_blocked(variant, node->inputs[i])) continue;
    const clv__dnn_layout *layout = variant->values[node->inputs[i]].forms[0].layout;
    if (clv__dnn_layout_is_plain(layout) && clv__dnn_layout_channels(layout) != 0) return node->inputs[i];
    if (leader == CLV__CPU_NONE) leader = node->inputs[i];
  }
  return leader;
}

/* ---- Concat over channels with the kernel channels_join(). ---- */

typedef struct join_step {
  clv__cpu_own own;
  clv__channels channels;
} join_step;

static void run_join(const clv__cpu_own *own, const clv_tensor *operands, const clv__stop *stop) {
  const join_step *step = (const join_step *)(const void *)own;
  clv__kernels()->channels_join(&step->channels, operands, operands[step->channels.piece_count].data, stop);
}

/* Describes a layout for the kernel. `block` is 0 if the kernel does not support the layout. */
static clv__channels_form form_of(const clv__dnn_layout *layout, const clv_tensor *type) {
  clv__channels_form form = {type->dims[1], clv__dnn_layout_channels(layout)};
  /* With one channel or one pixel, the bytes are the same in row-major order and with channels last. */
  const bool is_both = form.channels == 1 || clv__dims_product(type, 2, type->rank) == 1;
  if (clv__dnn_layout_dtype(layout) != CLV_F32)
    form.block = 0;
  else if (form.block == 0 && is_both && clv__dnn_layout_is_dense(layout))
    form.block = form.channels;
  return form;
}

/* Chooses the layout of the result and the layouts in which the kernel reads the pieces: their own if it supports them,
 * otherwise channels last. Returns false if memory runs out. */
static bool describe(clv__cpu_variant *variant, const clv__cpu_variant_node *node, const clv__dnn_layout **layouts,
                     clv__channels_form *forms) {
  const clv_tensor *out = &variant->values[node->outputs[0]].type;
  const uint32_t leader = leader_of(variant, node), count = node->input_count;
  if (leader != CLV__CPU_NONE) {
    layouts[count] = clv__dnn_layout_rechannel(&variant->arena, clv__cpu_form_layout(variant, leader), out->dims);
  }
  if (layouts[count] == NULL || clv__dnn_layout_dtype(layouts[count]) != CLV_F32) {
    layouts[count] = clv__dnn_layout_channels_last(&variant->arena, CLV_F32, out->rank, out->dims);
  }
  for (uint32_t i = 0; i <= count; ++i) {
    const clv_tensor *type = i < count ? &variant->values[node->inputs[i]].type : out;
    if (i < count) layouts[i] = clv__cpu_form_layout(variant, node->inputs[i]);
    if (layouts[i] == NULL) return false;
    forms[i] = form_of(layouts[i], type);
    if (forms[i].block != 0) continue;
    layouts[i] = clv__dnn_layout_channels_last(&variant->arena, CLV_F32, type->rank, type->dims);
    forms[i].block = type->dims[1];
    if (layouts[i] == NULL) return false;
  }
  return true;
}

bool clv__cpu_can_join(clv__cpu_variant *variant, uint32_t value) {
  const clv_tensor *type = &variant->values[value].type;
  if (type->rank < 3 || type->rank > 5 || !clv__cpu_form_is_blocked(variant, value)) return false;
  const clv__dnn_layout *layout = variant->values[value].forms[0].layout;
  return clv__dnn_layout_dtype(layout) == CLV_F32 && clv__dnn_layout_channels(layout) != 0;
}

clv_status clv__cpu_lower_join(clv__cpu_variant *variant, const clv__cpu_variant_node *node, clv_error *error) {
  const uint32_t count = node->input_count;
  const clv_tensor *out = &variant->values[node->outputs[0]].type;
  const clv__dnn_layout **layouts = clv__arena_allocate_zero(&variant->arena, count + 1, sizeof *layouts);
  clv__channels_form *forms = clv__arena_allocate_zero(&variant->arena, count + 1, sizeof *forms);
  uint32_t *slots = clv__arena_allocate_zero(&variant->arena, count + 1, sizeof *slots);
  join_step *join = clv__arena_allocate_zero(&variant->arena, 1, sizeof *join);
  if (layouts == NULL || forms == NULL || slots == NULL || join == NULL || !describe(variant, node, layouts, forms)) {
    return clv__error_memory(error, count * sizeof *forms);
  }
  join->own = (clv__cpu_own){.run = run_join};
  CLV__TRY(clv__kernels()->channels_plan(&join->channels, &variant->arena, out->dims[0], clv__dims_product(out, 2, out->rank),
                                         forms, count, forms[count], error));
  join->channels.scale = node->scale;
  join->channels.shift = node->bias;
  join->channels.least = node->post_count > 0 ? 0.0f : -INFINITY;
  for (uint32_t i = 0; i < count; ++i) CLV__TRY(clv__cpu_form_get(variant, node->inputs[i], layouts[i], &slots[i], error));
  CLV__TRY(clv__cpu_form_make(variant, node->outputs[0], layouts[count], &slots[count], error));
  clv__cpu_step *step = clv__cpu_step_new(variant, CLV__CPU_STEP_OWN, node->source, node->source->op, count + 1);
  if (step == NULL) return clv__error_memory(error, sizeof *step);
  step->own = &join->own;
  for (uint32_t i = 0; i <= count; ++i) {
    if (i < count)
      clv__cpu_step_input(step, 0, slots[i], layouts[i]);
    else
      clv__cpu_step_output(step, 0, slots[i], layouts[i]);
    step->operands[i].type = i < count ? variant->values[node->inputs[i]].type : *out;
    step->operands[i].type.data = NULL;
  }
  step->may_overlap = count == 1; /* with one input, source and result have the same layout */
  return CLV_OK;
}

/* ---- Concat with oneDNN. ---- */

/* Chooses layouts like that of `leader` for the result and each source of a Concat over `axis`. Returns false if one of them
 * cannot have such a layout. */
static bool concat_layouts(clv__cpu_variant *variant, const clv__cpu_variant_node *node, int32_t axis, uint32_t leader,
                           const clv__dnn_layout **sources, const clv__dnn_layout **destination) {
  const clv_tensor *out = &variant->values[node->outputs[0]].type;
  const clv__dnn_layout *layout = clv__cpu_form_layout(variant, leader);
  *destination = layout != NULL ? clv__dnn_layout_rechannel(&variant->arena, layout, out->dims) : NULL;
  bool fits = *destination != NULL;
  for (uint32_t i = 0; i < node->input_count && fits; ++i) {
    const clv_tensor *type = &variant->values[node->inputs[i]].type;
    sources[i] = clv__dnn_layout_rechannel(&variant->arena, layout, type->dims);
    /* Channels that do not fill a block would leave gaps inside the result. */
    fits = sources[i] != NULL &&
           (axis != 1 || i + 1 == node->input_count || clv__dnn_layout_is_plain(layout) || type->dims[1] % 16 == 0);
  }
  return fits;
}

static clv_status lower_primitive(clv__cpu_variant *variant, const clv__cpu_variant_node *node, int32_t axis, uint32_t leader,
                                  bool *taken, clv_error *error) {
  const clv__dnn_layout **sources = clv__arena_allocate_zero(&variant->arena, node->input_count, sizeof *sources);
  uint32_t *slots = clv__arena_allocate_zero(&variant->arena, node->input_count, sizeof *slots);
  const clv__dnn_layout *destination;
  if (sources == NULL || slots == NULL) return clv__error_memory(error, node->input_count * sizeof *sources);
  *taken = concat_layouts(variant, node, axis, leader, sources, &destination);
  if (!*taken) return CLV_OK;
  clv__dnn_primitive *primitive;
  clv_status status = clv__dnn_concat_create(variant->device->dnn, sources, node->input_count, axis, destination, &variant->arena,
                                             &primitive, error);
  if (status != CLV_OK) return clv__cpu_refused(status, taken);
  uint32_t to;
  for (uint32_t i = 0; i < node->input_count && status == CLV_OK; ++i) {
    status = clv__cpu_form_get(variant, node->inputs[i], sources[i], &slots[i], error);
  }
  if (status == CLV_OK) status = clv__cpu_form_make(variant, node->outputs[0], destination, &to, error);
  if (status != CLV_OK) {
    clv__dnn_primitive_release(primitive);
    return status;
  }
  clv__cpu_step *step;
  CLV__TRY(clv__cpu_step_primitive(variant, node, node->source->op, primitive, node->input_count + 1, &step, error));
  for (uint32_t i = 0; i < node->input_count; ++i) {
    clv__cpu_step_input(step, CLV__DNN_MANY_SOURCES + (int)i, slots[i], sources[i]);
  }
  clv__cpu_step_output(step, CLV__DNN_DESTINATION, to, destination);
  return CLV_OK;
}

/* Leaves row-major pieces to the portable copying kernel (*taken is false), which is many times faster than oneDNN. */
clv_status clv__cpu_lower_concat(clv__cpu_variant *variant, clv__cpu_variant_node *node, bool *taken, clv_error *error) {
  const clv_tensor *out = &variant->values[node->outputs[0]].type;
  if (node->scale != NULL) return clv__cpu_lower_join(variant, node, error);
  int64_t axis = clv__attribute_int(node->source->attributes, "axis", 1);
  if (axis < 0) axis += out->rank;
  const uint32_t leader = leader_of(variant, node);
  *taken = leader != CLV__CPU_NONE && axis >= 0 && axis < out->rank;
  if (!*taken) return CLV_OK;
  return axis == 1 && clv__cpu_can_join(variant, leader) ? clv__cpu_lower_join(variant, node, error)
                                                         : lower_primitive(variant, node, (int32_t)axis, leader, taken, error);
}
