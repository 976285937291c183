/* RNN, GRU and LSTM with constant W and R: what the inputs contribute to all steps is one product with W, packed once; the steps
 * are the kernel of src/kernels over R, packed once as it reads it. */
#include "kernels/recurrent.h"
#include "lower.h"
#include "row.h"

enum { X, W, R, VARIANT = 18 /* of packs: W's and R's matrices are of other dims than the constants */ };

typedef struct recurrence {
  int64_t rows, inputs, columns, hidden; /* of the product; `columns`: directions * gates * hidden */
  clv_tensor projected, packed;          /* types that the kernel reads */
} recurrence;

static bool is_constant(const clv__cpu_plan *plan, uint32_t value) {
  return value < plan->program->value_count && plan->program->values[value].is_constant;
}

static bool describe(const clv__cpu_plan *plan, const clv__cpu_plan_node *node, recurrence *r) {
  static const char *const names[] = {"LSTM", "GRU", "RNN"};
  const clv__cpu_node *source = node->source;
  bool is_named = false;
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) is_named = is_named || strcmp(source->op, names[i]) == 0;
  if (!is_named || source->domain[0] != 0 || !plan->onednn || node->input_count <= R) return false;
  if (!is_constant(plan, node->inputs[W]) || !is_constant(plan, node->inputs[R])) return false;
  const clv_tensor *x = &plan->values[node->inputs[X]].type, *w = &plan->values[node->inputs[W]].type;
  const clv_tensor *states = &plan->values[node->inputs[R]].type;
  if (!clv__cpu_is_f32(x) || !clv__cpu_is_f32(w) || !clv__cpu_is_f32(states)) return false;
  if (x->rank != 3 || w->rank != 3 || states->rank != 3) return false;
  *r = (recurrence){.rows = x->dims[0] * x->dims[1],
                    .inputs = x->dims[2],
                    .columns = w->dims[0] * w->dims[1],
                    .hidden = states->dims[2]};
  const int64_t panels = (r->hidden + CLV__RECURRENT_PANEL - 1) / CLV__RECURRENT_PANEL;
  const int64_t projected[] = {x->dims[0], x->dims[1], r->columns};
  const int64_t packed[] = {r->columns / r->hidden, panels, r->hidden, CLV__RECURRENT_PANEL};
  r->projected = clv__tensor_make(CLV_F32, 3, projected, NULL);
  r->packed = clv__tensor_make(CLV_F32, 4, packed, NULL);
  return true;
}

static clv_status pack(clv__cpu_plan *plan, const clv__cpu_packing *packing, const clv__dnn_layout *layout, uint32_t *slot,
                       clv_error *error) {
  void *data;
  if (packing->from == NULL || layout == NULL) return clv__error_memory(error, 0);
  CLV__TRY(clv__cpu_constant_packed(plan->constants, packing, layout, &data, error));
  return clv__cpu_slot_constant(plan, data, clv__dnn_layout_size_bytes(layout), slot, error);
}

/* One row: the step of lower_row.c. */
static clv_status project_row(clv__cpu_plan *plan, const clv__cpu_plan_node *node, const clv__cpu_packing *packing,
                              const recurrence *r, uint32_t slot, clv_error *error) {
  const int64_t dims[2] = {r->inputs, r->columns};
  uint32_t source, weights;
  clv__cpu_row *row = clv__arena_allocate_zero(&plan->arena, 1, sizeof *row);
  if (row == NULL) return clv__error_memory(error, sizeof *row);
  *row = (clv__cpu_row){.depth = r->inputs,
                        .columns = r->columns,
                        .dtype = CLV_F32,
                        .target_operand = 2,
                        .panel_elements = (int64_t)clv__align_up((size_t)r->inputs, 16) * CLV__CPU_ROW_PANEL};
  CLV__TRY(pack(plan, packing, clv__dnn_layout_panels(&plan->arena, CLV_F32, dims), &weights, error));
  CLV__TRY(clv__cpu_form_get(plan, node->inputs[X], NULL, &source, error));
  clv__cpu_step *step = clv__cpu_step_new(plan, CLV__CPU_STEP_ROW, node->source, CLV__CPU_PROJECTION, 3);
  if (step == NULL) return clv__error_memory(error, sizeof *step);
  step->row = row;
  clv__cpu_step_input(step, 0, source, NULL);
  clv__cpu_step_input(step, 0, weights, NULL);
  clv__cpu_step_output(step, 0, slot, NULL);
  return CLV_OK;
}

static clv_status project_rows(clv__cpu_plan *plan, const clv__cpu_plan_node *node, const clv__cpu_packing *packing,
                               const recurrence *r, uint32_t slot, bool *taken, clv_error *error) {
  const int64_t from[2] = {r->rows, r->inputs}, to[2] = {r->rows, r->columns};
  const clv__dnn_layout *a = clv__dnn_layout_dense(&plan->arena, CLV_F32, 2, from);
  const clv__dnn_layout *c = clv__dnn_layout_dense(&plan->arena, CLV_F32, 2, to);
  clv__dnn_primitive *primitive;
  clv__cpu_step *step;
  uint32_t source, weights;
  if (a == NULL || c == NULL || packing->from == NULL) return clv__error_memory(error, 0);
  const clv_status status = clv__dnn_matmul_create(plan->device->dnn, a, packing->from, true, NULL, c, 1.0f, NULL, 0,
                                                   &plan->arena, &primitive, error);
  if (status != CLV_OK) return clv__cpu_refused(status, taken);
  clv_status made = pack(plan, packing, primitive->weights, &weights, error);
  if (made == CLV_OK) made = clv__cpu_form_get(plan, node->inputs[X], NULL, &source, error);
  if (made != CLV_OK) {
    clv__dnn_primitive_release(primitive);
    return made;
  }
  CLV__TRY(clv__cpu_step_primitive(plan, node, CLV__CPU_PROJECTION, primitive, 3, &step, error));
  clv__cpu_step_input(step, CLV__DNN_SOURCE, source, a);
  clv__cpu_step_input(step, CLV__DNN_WEIGHTS, weights, primitive->weights);
  clv__cpu_step_output(step, CLV__DNN_DESTINATION, slot, c);
  return CLV_OK;
}

/* X times W of both directions into `slot`. */
static clv_status project(clv__cpu_plan *plan, const clv__cpu_plan_node *node, const recurrence *r, uint32_t slot, bool *taken,
                          clv_error *error) {
  const int64_t dims[2] = {r->inputs, r->columns}, strides[2] = {1, r->inputs};
  const clv__cpu_packing packing = {.value = node->inputs[W],
                                    .from = clv__dnn_layout_strided(&plan->arena, CLV_F32, 2, dims, strides),
                                    .variant = VARIANT,
                                    .is_streamed = r->rows == 1};
  if (r->rows == 1 && r->columns >= CLV__CPU_ROW_PANEL) return project_row(plan, node, &packing, r, slot, error);
  return project_rows(plan, node, &packing, r, slot, taken, error);
}

static clv_status size_scratch(clv__cpu_plan *plan, clv__cpu_step *step, clv_error *error) {
  clv_tensor *types = clv__arena_allocate_zero(&plan->arena, step->operand_count, sizeof *types);
  if (types == NULL) return clv__error_memory(error, step->operand_count * sizeof *types);
  for (uint32_t i = 0; i < step->operand_count; ++i) types[i] = step->operands[i].type;
  const clv__kernel_call call = {.op = step->node->op,
                                 .opset = step->node->opset,
                                 .attributes = step->node->attributes,
                                 .inputs = types,
                                 .input_count = step->input_count,
                                 .outputs = types + step->input_count,
                                 .output_count = step->operand_count - step->input_count,
                                 .error = error};
  step->scratch_bytes = step->kernel->scratch_bytes(&call);
  if (step->scratch_bytes != SIZE_MAX) return CLV_OK;
  return clv__error_set(error, CLV_OUT_OF_MEMORY, "the kernel's scratch is beyond any memory");
}

/* The kernel's step; `slots` are its first inputs. */
static clv_status run_steps(clv__cpu_plan *plan, const clv__cpu_plan_node *node, const recurrence *r, uint32_t projected,
                            uint32_t packed, clv_error *error) {
  const uint32_t count = node->input_count + node->output_count;
  clv__cpu_operand *operands = clv__arena_allocate_zero(&plan->arena, count, sizeof *operands);
  if (operands == NULL) return clv__error_memory(error, count * sizeof *operands);
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t value = i < node->input_count ? node->inputs[i] : node->outputs[i - node->input_count];
    operands[i].slot = CLV__CPU_NONE;
    if (value == CLV__CPU_NONE || i == X || i == W || i == R) continue;
    operands[i].type = plan->values[value].type;
    operands[i].type.data = NULL;
    if (i < node->input_count)
      CLV__TRY(clv__cpu_form_get(plan, value, NULL, &operands[i].slot, error));
    else
      CLV__TRY(clv__cpu_form_make(plan, value, NULL, &operands[i].slot, error));
  }
  operands[X] = (clv__cpu_operand){.slot = projected, .type = r->projected};
  operands[R] = (clv__cpu_operand){.slot = packed, .type = r->packed};
  clv__cpu_step *step = clv__cpu_step_new(plan, CLV__CPU_STEP_KERNEL, node->source, node->source->op, 0);
  if (step == NULL) return clv__error_memory(error, sizeof *step);
  step->kernel = &clv__kernel_recurrent_prepared;
  step->operands = operands;
  step->operand_count = step->operand_room = count;
  step->input_count = node->input_count;
  return size_scratch(plan, step, error);
}

clv_status clv__cpu_lower_recurrent(clv__cpu_plan *plan, clv__cpu_plan_node *node, bool *taken, clv_error *error) {
  recurrence r;
  uint32_t projected, packed;
  size_t size_bytes;
  *taken = describe(plan, node, &r);
  if (!*taken) return CLV_OK;
  if (!clv__tensor_size_bytes(&r.projected, &size_bytes)) return clv__error_memory(error, SIZE_MAX);
  CLV__TRY(clv__cpu_slot_scratch(plan, size_bytes, &projected, error));
  CLV__TRY(project(plan, node, &r, projected, taken, error));
  if (!*taken) return CLV_OK;
  const int64_t dims[3] = {r.packed.dims[0], r.hidden, r.hidden};
  const clv__cpu_packing packing = {.value = node->inputs[R],
                                    .from = clv__dnn_layout_dense(&plan->arena, CLV_F32, 3, dims),
                                    .variant = VARIANT,
                                    .is_streamed = true};
  CLV__TRY(pack(plan, &packing, clv__dnn_layout_units(&plan->arena, CLV_F32, dims), &packed, error));
  return run_steps(plan, node, &r, projected, packed, error);
}
