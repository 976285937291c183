/* Presents f16 and bf16 values as f32 to the later passes: `type` is f32, `outer` is the model's dtype. A value is rounded to
 * the outer dtype only if it leaves the partition, is cast deliberately, or passes through a step in that dtype. oneDNN has no
 * f16 on CPUs. It supports bf16 if the CPU does; the values of a bf16 model are then computed in bf16 (precision.c). */
#include "backends/common/kernels.h"
#include "variant.h"

static bool is_narrow(clv_dtype dtype) {
  return dtype == CLV_F16 || dtype == CLV_BF16;
}

/* Widens small known values now. Large constants are widened on demand. */
static clv_status widen_known(clv__cpu_variant *variant, uint32_t index, size_t count, clv_error *error) {
  clv__cpu_variant_value *value = &variant->values[index];
  const void *narrow = value->type.data;
  value->type.data = NULL;
  const bool is_ours = index >= variant->program->value_count || !variant->program->values[index].is_borrowed;
  if (narrow == NULL || !is_ours) return CLV_OK;
  float *wide = clv__arena_allocate_data(&variant->arena, count * sizeof *wide);
  if (wide == NULL) return clv__error_memory(error, count * sizeof *wide);
  clv__kernels()->row_to_f32(value->outer, narrow, 0, (int64_t)count, wide);
  value->type.data = wide;
  return CLV_OK;
}

clv_status clv__cpu_pass_widen(clv__cpu_variant *variant, clv_error *error) {
  const clv__cpu_program *program = variant->program;
  variant->output_types = clv__arena_allocate_zero(&variant->arena, program->output_count, sizeof *variant->output_types);
  if (variant->output_types == NULL) return clv__error_memory(error, program->output_count * sizeof *variant->output_types);
  for (uint32_t i = 0; i < program->output_count; ++i) {
    variant->output_types[i] = variant->values[program->outputs[i]].type;
    variant->output_types[i].data = NULL;
  }
  for (uint32_t i = 0; i < variant->value_count && variant->onednn; ++i) {
    clv__cpu_variant_value *value = &variant->values[i];
    size_t count;
    if (!is_narrow(value->type.dtype) || !clv__tensor_is_static(&value->type) || !clv__tensor_count(&value->type, &count) ||
        count == 0) {
      continue;
    }
    value->outer = value->type.dtype;
    CLV__TRY(widen_known(variant, i, count, error));
    value->type.dtype = CLV_F32;
  }
  return CLV_OK;
}

/* ---- Kernels. ---- */

static bool is_one_of(const char *op, const char *const *names) {
  for (; *names != NULL; ++names) {
    if (strcmp(op, *names) == 0) return true;
  }
  return false;
}

/* Operators whose result depends on the dtype itself, because they round deliberately or access bits. */
static bool is_about_dtypes(const char *op) {
  static const char *const names[] = {"Cast",     "CastLike", "BitCast",         "QuantizeLinear", "DequantizeLinear",
                                      "Constant", "OneHot",   "ConstantOfShape", "EyeLike",        NULL};
  return is_one_of(op, names);
}

/* Operators that copy elements, in whatever dtype they are stored. */
static bool is_mover(const char *op) {
  static const char *const names[] = {
      "Gather",        "GatherElements", "GatherND",      "Slice",     "Split",           "Tile",
      "Pad",           "Expand",         "Concat",        "Transpose", "ScatterElements", "ScatterND",
      "Where",         "DepthToSpace",   "SpaceToDepth",  "Compress",  "ReverseSequence", "Trilu",
      "TensorScatter", "Col2Im",         "CenterCropPad", NULL};
  return is_one_of(op, names);
}

/* Counts the elements of widened values that the node reads: those stored in f32, and those stored in the model's dtype, like
 * constants. */
static void count_elements(const clv__cpu_variant *variant, const clv__cpu_variant_node *node, double *wide, double *narrow) {
  *wide = *narrow = 0;
  for (uint32_t i = 0; i < node->input_count; ++i) {
    if (node->inputs[i] == CLV__CPU_NONE) continue;
    const clv__cpu_variant_value *value = &variant->values[node->inputs[i]];
    if (value->outer == CLV_DTYPE_NONE) continue;
    const clv__dnn_layout *lies = value->form_count > 0 ? value->forms[0].layout : NULL;
    const bool is_wide = !value->is_constant && (lies == NULL || clv__dnn_layout_dtype(lies) == CLV_F32);
    *(is_wide ? wide : narrow) += (double)clv__dims_product(&value->type, 0, value->type.rank);
  }
}

static bool reads(const clv__cpu_variant *variant, const clv__cpu_variant_node *node, clv_dtype outer) {
  for (uint32_t i = 0; i < node->input_count; ++i) {
    if (node->inputs[i] != CLV__CPU_NONE && variant->values[node->inputs[i]].outer == outer) return true;
  }
  return false;
}

static clv_tensor wide_type(const clv__cpu_variant *variant, uint32_t value) {
  clv_tensor type;
  memset(&type, 0, sizeof type);
  if (value == CLV__CPU_NONE) return type;
  type = variant->values[value].type;
  if (variant->values[value].outer != CLV_DTYPE_NONE) type.data = NULL;
  return type;
}

/* Whether the kernel accepts f32 instead of the model's narrower dtype. */
static bool accepts_wide(clv__cpu_variant *variant, const clv__cpu_variant_node *node) {
  const clv__cpu_node *source = node->source;
  const uint32_t count = node->input_count + node->output_count;
  clv_tensor *types = clv__arena_allocate_zero(&variant->arena, count, sizeof *types);
  char reason[160];
  if (types == NULL) return false;
  for (uint32_t i = 0; i < node->input_count; ++i) types[i] = wide_type(variant, node->inputs[i]);
  for (uint32_t i = 0; i < node->output_count; ++i) types[node->input_count + i] = wide_type(variant, node->outputs[i]);
  const clv__kernel_call call = {.op = source->op,
                                 .opset = source->opset,
                                 .attributes = source->attributes,
                                 .inputs = types,
                                 .input_count = node->input_count,
                                 .outputs = types + node->input_count,
                                 .output_count = node->output_count};
  return clv__kernel_accepts(source->kernel, &call, reason);
}

bool clv__cpu_runs_wide(clv__cpu_variant *variant, const clv__cpu_variant_node *node) {
  const char *op = node->source->op;
  const bool f16 = reads(variant, node, CLV_F16);
  if ((!f16 && !reads(variant, node, CLV_BF16)) || node->source->domain[0] != 0 || is_about_dtypes(op)) return false;
  double wide, narrow;
  count_elements(variant, node, &wide, &narrow);
  if (is_mover(op) ? wide <= narrow : wide == 0 && !f16) return false;
  return accepts_wide(variant, node);
}
