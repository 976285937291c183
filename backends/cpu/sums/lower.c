/* Lowers a node of kind SUMS to steps: the product of bytes, whose 32-bit sums are stored where the result will be, and the pass
 * that turns the sums into the result. oneDNN handles no zero points here, because its exact implementations do not support any.
 * The padding of a convolution must have the value of the source's zero point, so a step writes it around the source. If the
 * weights of a convolution have zero points, a second convolution, with weights of 1, computes the sums to subtract. u8 weights
 * are packed as i8, with their zero points shifted by 128. */
#include "sums.h"

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/lower/integer_posts.h"
#include "backends/cpu/lower/lower.h"

/* The product as oneDNN sees it, and the layouts of its operands. */
typedef struct shapes {
  bool is_matrix, has_frame;
  const clv__dnn_layout *source, *weights, *sums; /* layouts of the bytes of source and weights, and of the i32 sums */
  const clv__dnn_layout *real;                    /* the f32 result in the same order; NULL: row-major */
  clv__dnn_convolution spec;
  clv__dnn_window window; /* the window of the model's convolution; if has_frame is set, that of `spec` has no padding */
  int64_t groups, depth;  /* depth: number of products per sum */
} shapes;

/* Whether f32 represents every possible sum exactly. */
static bool is_short(const shapes *s) {
  enum { EXACT = 1 << 24, MOST = 256 * 128 /* MOST: largest product of two bytes */ };
  return s->depth <= EXACT / MOST / 2;
}

static uint32_t operand_of(const clv__cpu_variant_node *node, uint32_t index) {
  return index < node->input_count ? node->inputs[index] : CLV__CPU_NONE;
}

static void describe_matrix(clv__cpu_variant *variant, const clv__cpu_variant_node *node, shapes *s) {
  const clv_tensor *out = &variant->values[node->outputs[0]].type, *b = clv__cpu_sums_weights(variant, node);
  const int64_t rows = clv__dims_product(out, 0, out->rank - 1);
  const int64_t from[2] = {rows, b->dims[0]}, to[2] = {rows, b->dims[1]};
  s->groups = 1;
  s->depth = b->dims[0];
  s->source = clv__dnn_layout_dense(&variant->arena, variant->values[node->inputs[0]].type.dtype, 2, from);
  s->weights = clv__dnn_layout_dense(&variant->arena, CLV_I8, 2, b->dims);
  s->sums = clv__dnn_layout_dense(&variant->arena, CLV_I32, 2, to);
}

static void describe_convolution(clv__cpu_variant *variant, const clv__cpu_variant_node *node, shapes *s) {
  clv__dnn_convolution *spec = &s->spec;
  const clv_tensor *b = clv__cpu_sums_weights(variant, node);
  clv__cpu_convolution_describe(variant, node, false, spec);
  clv_tensor *from = &spec->source, *to = &spec->destination;
  spec->weights.dtype = CLV_I8;
  to->dtype = CLV_I32;
  s->groups = clv__attribute_int(node->source->attributes, "group", 1);
  s->depth = clv__dims_product(b, 1, b->rank);
  s->window = spec->window;
  for (int32_t i = 0; i < spec->window.count; ++i) {
    if (spec->window.begin[i] != 0 || spec->window.end[i] != 0) s->has_frame = true;
  }
  s->has_frame = s->has_frame && (operand_of(node, CLV__CPU_SUMS_SOURCE_ZERO) != CLV__CPU_NONE || !is_short(s));
  for (int32_t i = 0; i < spec->window.count && s->has_frame; ++i) {
    from->dims[i + 2] += spec->window.begin[i] + spec->window.end[i];
    spec->window.begin[i] = spec->window.end[i] = 0;
  }
  s->source = clv__dnn_layout_channels_last(&variant->arena, from->dtype, from->rank, from->dims);
  s->weights = clv__dnn_layout_dense(&variant->arena, CLV_I8, spec->weights.rank, spec->weights.dims);
  s->sums = clv__dnn_layout_channels_last(&variant->arena, CLV_I32, to->rank, to->dims);
  s->real = clv__dnn_layout_channels_last(&variant->arena, CLV_F32, to->rank, to->dims);
  spec->source_layout = s->source;
  spec->destination_layout = s->sums;
}

/* Describes the node's product in `s`. Returns false if memory runs out or oneDNN rejects a layout. */
static bool describe(clv__cpu_variant *variant, const clv__cpu_variant_node *node, shapes *s) {
  memset(s, 0, sizeof *s);
  s->is_matrix = node->source->op[0] == 'M';
  (s->is_matrix ? describe_matrix : describe_convolution)(variant, node, s);
  return s->source != NULL && s->weights != NULL && s->sums != NULL && (s->is_matrix || s->real != NULL);
}

/* Whether the sums are exact. Implementations whose names begin with "br" keep them in integers, unless they shift an i8 source
 * to u8 or pad it unevenly. All others convert the sums to f32 in between, which is exact only for short sums. */
static bool is_exact(const shapes *s, const clv__dnn_primitive *primitive) {
  return is_short(s) || (strncmp(primitive->implementation, "br", 2) == 0 && clv__dnn_layout_dtype(s->source) == CLV_U8);
}

static clv_status create(clv__cpu_variant *variant, const shapes *s, clv__dnn_primitive **primitive, clv_error *error) {
  clv__dnn *dnn = variant->device->dnn;
  if (s->is_matrix) {
    CLV__TRY(clv__dnn_matmul_create(dnn, s->source, s->weights, true, NULL, s->sums, 1.0f, NULL, 0, &variant->arena, primitive,
                                    error));
  } else {
    CLV__TRY(clv__dnn_convolution_create(dnn, &s->spec, &variant->arena, primitive, error));
  }
  if (is_exact(s, *primitive)) return CLV_OK;
  clv__dnn_primitive_release(*primitive);
  return clv__error_set(error, CLV_NOT_SUPPORTED, "oneDNN: the implementation does not compute this integer product exactly");
}

/* Describes the convolution that sums the source elements that the product `s` reads. Its result has one channel per group. */
static bool describe_windows(clv__cpu_variant *variant, const shapes *s, shapes *windows) {
  *windows = *s;
  clv_tensor *weights = &windows->spec.weights, *to = &windows->spec.destination;
  weights->dims[s->groups > 1 ? 1 : 0] = 1;
  to->dims[1] = s->groups;
  windows->weights = clv__dnn_layout_dense(&variant->arena, CLV_I8, weights->rank, weights->dims);
  windows->sums = clv__dnn_layout_channels_last(&variant->arena, CLV_I32, to->rank, to->dims);
  windows->spec.destination_layout = windows->sums;
  return windows->weights != NULL && windows->sums != NULL;
}

/* ---- Steps. ---- */

static clv_status product_step(clv__cpu_variant *variant, const clv__cpu_variant_node *node, const char *what, const shapes *s,
                               uint32_t source, uint32_t weights, uint32_t sums, clv__dnn_primitive *primitive,
                               clv_error *error) {
  clv__cpu_step *step;
  CLV__TRY(clv__cpu_step_primitive(variant, node, what, primitive, 4, &step, error));
  clv__cpu_step_input(step, CLV__DNN_SOURCE, source, s->source);
  clv__cpu_step_input(step, CLV__DNN_WEIGHTS, weights, primitive->weights);
  clv__cpu_step_output(step, CLV__DNN_DESTINATION, sums, s->sums);
  return CLV_OK;
}

static clv_tensor typed(const clv__cpu_variant *variant, uint32_t value) {
  clv_tensor type = variant->values[value].type;
  type.data = NULL;
  return type;
}

/* Sets *slot to the slot from which the product reads its source: row-major, channels last, or channels last with the padding
 * written around it (the frame). */
static clv_status source_slot(clv__cpu_variant *variant, const clv__cpu_variant_node *node, const shapes *s, uint32_t *slot,
                              clv_error *error) {
  uint32_t image, zero = CLV__CPU_NONE;
  clv__cpu_sums_frame *frame = clv__arena_allocate_zero(&variant->arena, 1, sizeof *frame);
  if (frame == NULL) return clv__error_memory(error, sizeof *frame);
  if (!s->has_frame) return clv__cpu_form_get(variant, node->inputs[0], s->is_matrix ? NULL : s->source, slot, error);
  const clv_tensor *type = &variant->values[node->inputs[0]].type;
  const clv__dnn_layout *last = clv__dnn_layout_channels_last(&variant->arena, type->dtype, type->rank, type->dims);
  if (last == NULL) return clv__error_memory(error, 0);
  *frame = (clv__cpu_sums_frame){.own.run = clv__cpu_kernels()->sums_frame_run,
                                 .is_last = clv__cpu_form_is_first(variant, node->inputs[0], last),
                                 .images = type->dims[0],
                                 .channels = type->dims[1]};
  for (int32_t i = 0; i < 3; ++i) {
    const int32_t axis = s->window.count - 3 + i; /* negative for a missing depth or height */
    frame->extents[i] = axis >= 0 ? type->dims[axis + 2] : 1;
    frame->begin[i] = axis >= 0 ? s->window.begin[axis] : 0;
    frame->end[i] = axis >= 0 ? s->window.end[axis] : 0;
  }
  const uint32_t zero_value = operand_of(node, CLV__CPU_SUMS_SOURCE_ZERO);
  CLV__TRY(clv__cpu_form_get(variant, node->inputs[0], frame->is_last ? last : NULL, &image, error));
  if (zero_value != CLV__CPU_NONE) CLV__TRY(clv__cpu_form_get(variant, zero_value, NULL, &zero, error));
  CLV__TRY(clv__cpu_slot_scratch(variant, clv__dnn_layout_size_bytes(s->source), slot, error));
  clv__cpu_step *step = clv__cpu_step_new(variant, CLV__CPU_STEP_OWN, node->source, "frame", 3);
  if (step == NULL) return clv__error_memory(error, sizeof *step);
  step->own = &frame->own;
  clv__cpu_step_input(step, 0, image, NULL);
  step->operands[0].type = typed(variant, node->inputs[0]);
  if (zero_value != CLV__CPU_NONE) {
    frame->zero_operand = step->operand_count;
    clv__cpu_step_input(step, 0, zero, NULL);
    step->operands[frame->zero_operand].type = typed(variant, zero_value);
  }
  frame->target_operand = step->operand_count;
  clv__cpu_step_output(step, 0, *slot, NULL);
  return CLV_OK;
}

/* Emits a convolution with weights of 1, which sums the elements that each result element reads. */
static clv_status windows_step(clv__cpu_variant *variant, const clv__cpu_variant_node *node, const shapes *s, uint32_t source,
                               uint32_t *slot, clv_error *error) {
  shapes windows;
  clv__dnn_primitive *primitive;
  uint32_t weights;
  if (!describe_windows(variant, s, &windows)) return clv__error_memory(error, 0);
  CLV__TRY(create(variant, &windows, &primitive, error));
  const size_t ones_bytes = (size_t)(s->groups * s->depth), packed_bytes = clv__dnn_layout_size_bytes(primitive->weights);
  void *ones = clv__allocate(variant->device->allocator, ones_bytes);
  void *packed = clv__arena_allocate_data(&variant->arena, packed_bytes);
  clv_status status = ones != NULL && packed != NULL ? CLV_OK : clv__error_memory(error, packed_bytes);
  if (status == CLV_OK) {
    memset(ones, 1, ones_bytes);
    const int threads = clv__cpu_threads_enter_packing(packed_bytes);
    status = clv__dnn_reorder_now(variant->device->dnn, windows.weights, ones, primitive->weights, packed, error);
    clv__cpu_threads_leave_one(threads);
  }
  clv__release(variant->device->allocator, ones);
  if (status == CLV_OK) status = clv__cpu_slot_constant(variant, packed, packed_bytes, &weights, error);
  if (status == CLV_OK) status = clv__cpu_slot_scratch(variant, clv__dnn_layout_size_bytes(windows.sums), slot, error);
  if (status != CLV_OK) {
    clv__dnn_primitive_release(primitive);
    return status;
  }
  return product_step(variant, node, "windows", &windows, source, weights, *slot, primitive, error);
}

/* The pass's inputs in addition to the sums: slots and types, in the order of the step's operands from 1 on. */
typedef struct pass_inputs {
  uint32_t count, slots[4 + CLV__CPU_MAX_POSTS];
  clv_tensor types[4 + CLV__CPU_MAX_POSTS];
} pass_inputs;

static clv_status pass_reads(clv__cpu_variant *variant, uint32_t value, const clv__dnn_layout *layout, pass_inputs *in,
                             uint32_t *operand, clv_error *error) {
  CLV__TRY(clv__cpu_form_get(variant, value, layout, &in->slots[in->count], error));
  in->types[in->count] = typed(variant, value);
  *operand = ++in->count;
  return CLV_OK;
}

static clv_status collect_posts(clv__cpu_variant *variant, const clv__cpu_variant_node *node, const shapes *s,
                                clv__cpu_sums_pass *pass, pass_inputs *in, clv_error *error) {
  pass->has_gelu = clv__cpu_sums_has_gelu(node);
  pass->post_count = node->post_count - (pass->has_gelu ? 1 : 0);
  for (uint32_t i = 0; i < pass->post_count; ++i) {
    const clv__cpu_post *post = &node->posts[i];
    pass->posts[i].what = *post;
    if (post->kind != CLV__CPU_POST_ADD) continue;
    const clv_tensor *other = &variant->values[post->value].type;
    pass->posts[i].is_line = clv__dims_product(other, 0, other->rank) > 1;
    pass->posts[i].is_whole = clv__tensor_same_type(other, &variant->values[node->outputs[0]].type);
    CLV__TRY(pass_reads(variant, post->value, pass->posts[i].is_whole ? s->real : NULL, in, &pass->posts[i].operand, error));
  }
  return CLV_OK;
}

/* Collects everything that the pass needs. Emits any additional steps before the product. */
static clv_status collect(clv__cpu_variant *variant, const clv__cpu_variant_node *node, const shapes *s,
                          const clv__cpu_sums_offsets *o, uint32_t source, clv__cpu_sums_pass *pass, pass_inputs *in,
                          clv_error *error) {
  const clv_tensor *out = &variant->values[node->outputs[0]].type;
  const int64_t count = clv__dims_product(out, 0, out->rank);
  const uint32_t scale = operand_of(node, CLV__CPU_SUMS_SCALE);
  pass->own.run = clv__cpu_kernels()->sums_pass_run;
  pass->channels = s->is_matrix ? out->dims[out->rank - 1] : out->dims[1];
  pass->rows = count / pass->channels;
  pass->groups = s->groups;
  pass->depth = s->depth;
  pass->shifts = o->shifts;
  pass->zeros = o->zeros;
  if (o->shifts != NULL)
    CLV__TRY(pass_reads(variant, node->inputs[CLV__CPU_SUMS_SOURCE_ZERO], NULL, in, &pass->zero_operand, error));
  if (o->zeros != NULL && s->is_matrix) {
    CLV__TRY(pass_reads(variant, node->inputs[0], NULL, in, &pass->source_operand, error));
  } else if (o->zeros != NULL) {
    CLV__TRY(windows_step(variant, node, s, source, &in->slots[in->count], error));
    in->types[in->count].dtype = CLV_I32;
    pass->windows_operand = ++in->count;
  }
  if (scale == CLV__CPU_NONE) return CLV_OK;
  pass->scale_is_line = clv__dims_product(&variant->values[scale].type, 0, variant->values[scale].type.rank) > 1;
  CLV__TRY(pass_reads(variant, scale, NULL, in, &pass->scale_operand, error));
  return collect_posts(variant, node, s, pass, in, error);
}

static clv_status pass_step(clv__cpu_variant *variant, const clv__cpu_variant_node *node, const clv__cpu_sums_pass *pass,
                            const pass_inputs *in, uint32_t sums, clv_error *error) {
  clv__cpu_step *step = clv__cpu_step_new(variant, CLV__CPU_STEP_OWN, node->source, "sums", in->count + 2);
  if (step == NULL) return clv__error_memory(error, sizeof *step);
  step->own = &pass->own;
  clv__cpu_step_input(step, 0, sums, NULL);
  for (uint32_t i = 0; i < in->count; ++i) {
    clv__cpu_step_input(step, 0, in->slots[i], NULL);
    step->operands[i + 1].type = in->types[i];
  }
  clv__cpu_step_output(step, 0, sums, NULL);
  return CLV_OK;
}

static clv_status emit(clv__cpu_variant *variant, const clv__cpu_variant_node *node, const shapes *s,
                       clv__dnn_primitive *primitive, clv_error *error) {
  const bool is_real = operand_of(node, CLV__CPU_SUMS_SCALE) != CLV__CPU_NONE;
  const clv_tensor *b = clv__cpu_sums_weights(variant, node);
  const int64_t channels = b->dims[s->is_matrix ? 1 : 0];
  uint32_t source, weights, sums;
  pass_inputs in = {0};
  clv__cpu_sums_offsets o;
  clv__cpu_sums_pass *pass = clv__arena_allocate_zero(&variant->arena, 1, sizeof *pass);
  if (pass == NULL) return clv__error_memory(error, sizeof *pass);
  CLV__TRY(clv__cpu_sums_offsets_read(variant, node, s->is_matrix, channels, &o, error));
  CLV__TRY(clv__cpu_integers_weights(variant, node->inputs[CLV__CPU_SUMS_WEIGHTS], b->dtype == CLV_U8, s->weights,
                                     primitive->weights, &weights, error));
  CLV__TRY(source_slot(variant, node, s, &source, error));
  CLV__TRY(collect(variant, node, s, &o, source, pass, &in, error));
  CLV__TRY(clv__cpu_form_make(variant, node->outputs[0], s->is_matrix ? NULL : is_real ? s->real : s->sums, &sums, error));
  CLV__TRY(product_step(variant, node, node->source->op, s, source, weights, sums, primitive, error));
  if (!is_real && o.shifts == NULL && o.zeros == NULL) return CLV_OK;
  return pass_step(variant, node, pass, &in, sums, error);
}

bool clv__cpu_sums_have(clv__cpu_variant *variant, const clv__cpu_variant_node *node) {
  shapes s, windows;
  clv__dnn_primitive *primitive;
  if (!describe(variant, node, &s) || create(variant, &s, &primitive, NULL) != CLV_OK) return false;
  clv__dnn_primitive_release(primitive);
  if (s.is_matrix) return true;
  if (!describe_windows(variant, &s, &windows) || create(variant, &windows, &primitive, NULL) != CLV_OK) return false;
  clv__dnn_primitive_release(primitive);
  return true;
}

clv_status clv__cpu_lower_sums(clv__cpu_variant *variant, clv__cpu_variant_node *node, bool *taken, clv_error *error) {
  shapes s;
  clv__dnn_primitive *primitive = NULL;
  if (!describe(variant, node, &s)) return clv__error_memory(error, 0);
  const clv_status created = create(variant, &s, &primitive, error);
  if (created != CLV_OK) return clv__cpu_refused(created, taken);
  const clv_status emitted = emit(variant, node, &s, primitive, error);
  if (emitted != CLV_OK) clv__dnn_primitive_release(primitive);
  return emitted;
}
