/* The calls of a launch list, one kind after the other: what its arguments are, how they are filled in, how they run. */
#include "kernels/rows.h"
#include "kernels/threads.h"
#include "list.h"
#include "row.h"
#include "small.h"

/* Where a slot's memory is: *data, or, where that is NULL, *base + *addend. */
static void locate(const clv__cpu_plan *plan, uint32_t slot, void **data, uint32_t *base, size_t *addend) {
  const clv__cpu_slot *root = &plan->slots[plan->slots[slot].root];
  *data = NULL;
  *addend = plan->slots[slot].inner_bytes;
  switch (root->kind) {
    case CLV__CPU_SLOT_ARENA:
      *base = CLV__CPU_BASE_MEMORY;
      *addend += root->offset_bytes;
      break;
    case CLV__CPU_SLOT_INPUT:
      *base = CLV__CPU_BASE_BINDINGS + root->index;
      break;
    case CLV__CPU_SLOT_OUTPUT:
      *base = CLV__CPU_BASE_BINDINGS + plan->program->input_count + root->index;
      break;
    default:
      *data = root->data != NULL ? (uint8_t *)root->data + *addend : NULL;
      break;
  }
}

/* Fills in the address of a slot (CLV__CPU_NONE: leaves NULL) at `place`, a pointer within the call appended last. */
static clv_status point(clv__cpu_list *list, void *place, uint32_t slot, clv_error *error) {
  void *data;
  uint32_t base = 0;
  size_t addend;
  if (slot == CLV__CPU_NONE) return CLV_OK;
  locate(list->plan, slot, &data, &base, &addend);
  if (data == NULL) return clv__cpu_list_patch(list, place, base, addend, error);
  memcpy(place, &data, sizeof data);
  return CLV_OK;
}

/* ---- A portable kernel, its call prepared. ---- */

typedef struct kernel_arguments {
  clv_status (*run)(const clv__kernel_call *call);
  clv__kernel_call call;
  clv_tensor tensors[]; /* inputs, then outputs */
} kernel_arguments;

static clv_status run_kernel(const clv__cpu_call *call, clv_error *error) {
  const kernel_arguments *arguments = (const kernel_arguments *)(const void *)call->arguments;
  clv__kernel_call with_error = arguments->call;
  with_error.error = error;
  return arguments->run(&with_error);
}

static clv_status fill_tensors(clv__cpu_list *list, const clv__cpu_step *step, clv_tensor *tensors, clv_error *error) {
  for (uint32_t i = 0; i < step->operand_count; ++i) {
    tensors[i] = step->operands[i].type;
    tensors[i].data = NULL;
    CLV__TRY(point(list, &tensors[i].data, step->operands[i].slot, error));
  }
  return CLV_OK;
}

static clv_status add_kernel(clv__cpu_list *list, uint32_t index, clv_error *error) {
  const clv__cpu_step *step = &list->plan->steps[index];
  const size_t size_bytes = sizeof(kernel_arguments) + step->operand_count * sizeof(clv_tensor);
  clv__cpu_call *call = clv__cpu_list_append(list, index, size_bytes);
  if (call == NULL) return clv__error_memory(error, size_bytes);
  kernel_arguments *arguments = (kernel_arguments *)(void *)call->arguments;
  const size_t tensors = (size_t)((uint8_t *)arguments->tensors - list->block);
  call->function.run = run_kernel;
  arguments->run = step->node->kernel->run;
  arguments->call = (clv__kernel_call){.op = step->node->op,
                                       .opset = step->node->opset,
                                       .attributes = step->node->attributes,
                                       .input_count = step->input_count,
                                       .output_count = step->operand_count - step->input_count};
  CLV__TRY(clv__cpu_list_patch(list, &arguments->call.inputs, CLV__CPU_BASE_LIST, tensors, error));
  CLV__TRY(clv__cpu_list_patch(list, &arguments->call.outputs, CLV__CPU_BASE_LIST,
                               tensors + step->input_count * sizeof(clv_tensor), error));
  CLV__TRY(clv__cpu_list_patch(list, &arguments->call.scratch, CLV__CPU_BASE_MEMORY, step->scratch_offset_bytes, error));
  return fill_tensors(list, step, arguments->tensors, error);
}

/* ---- A primitive of oneDNN's. ---- */

typedef struct primitive_arguments {
  clv__dnn *dnn;
  const clv__dnn_primitive *primitive;
  uint32_t count;
  bool serial;
  clv__dnn_argument arguments[];
} primitive_arguments;

static clv_status run_primitive(const clv__cpu_call *call, clv_error *error) {
  const primitive_arguments *arguments = (const primitive_arguments *)(const void *)call->arguments;
  const int before = arguments->serial ? clv__cpu_threads_enter_one() : 0;
  const clv_status status = clv__dnn_execute(arguments->dnn, arguments->primitive, arguments->arguments, arguments->count, error);
  if (arguments->serial) clv__cpu_threads_leave_one(before);
  return status;
}

/* The same call of the list that this one is like; both are made by the same steps in the same order. */
static const primitive_arguments *twin(const clv__cpu_list *list, const clv__cpu_call *call) {
  if (list->like == NULL) return NULL;
  const uint8_t *same = list->like->block + ((const uint8_t *)call - list->block);
  return (const primitive_arguments *)(const void *)((const clv__cpu_call *)(const void *)same)->arguments;
}

/* An operand, or, where `scratch` is not NULL, that step's scratch. */
static clv_status add_memory(clv__cpu_list *list, primitive_arguments *arguments, const primitive_arguments *like, int id,
                             uint32_t slot, const clv__dnn_layout *layout, const clv__cpu_step *scratch, clv_error *error) {
  void *data = NULL;
  uint32_t base = CLV__CPU_BASE_MEMORY;
  size_t addend = scratch != NULL ? scratch->scratch_offset_bytes : 0;
  clv__dnn_argument *argument = &arguments->arguments[arguments->count];
  if (slot != CLV__CPU_NONE) locate(list->plan, slot, &data, &base, &addend);
  argument->id = id;
  if (like != NULL && (data != NULL || base < CLV__CPU_BASE_BINDINGS)) {
    argument->memory = like->arguments[arguments->count].memory;
  } else {
    CLV__TRY(clv__cpu_list_memory(list, layout, scratch != NULL ? scratch->scratch_bytes : 0, base, addend, data,
                                  &argument->memory, error));
  }
  arguments->count++;
  return CLV_OK;
}

static clv_status add_primitive(clv__cpu_list *list, uint32_t index, clv_error *error) {
  const clv__cpu_plan *plan = list->plan;
  const clv__cpu_step *step = &plan->steps[index];
  const size_t size_bytes = sizeof(primitive_arguments) + (step->operand_count + 1) * sizeof(clv__dnn_argument);
  clv__cpu_call *call = clv__cpu_list_append(list, index, size_bytes);
  if (call == NULL) return clv__error_memory(error, size_bytes);
  primitive_arguments *arguments = (primitive_arguments *)(void *)call->arguments;
  const primitive_arguments *like = twin(list, call);
  call->function.run = run_primitive;
  arguments->dnn = plan->device->dnn;
  arguments->primitive = step->primitive;
  arguments->serial = step->serial;
  for (uint32_t i = 0; i < step->operand_count; ++i) {
    const clv__cpu_operand *operand = &step->operands[i];
    CLV__TRY(add_memory(list, arguments, like, operand->id, operand->slot, operand->layout, NULL, error));
  }
  if (step->scratch_bytes == 0) return CLV_OK;
  return add_memory(list, arguments, like, CLV__DNN_SCRATCH, CLV__CPU_NONE, NULL, step, error);
}

/* ---- Bytes to another place. ---- */

typedef struct copy_arguments {
  void *to;
  const void *from;
  size_t size_bytes;
} copy_arguments;

static clv_status run_copy(const clv__cpu_call *call, clv_error *error) {
  const copy_arguments *arguments = (const copy_arguments *)(const void *)call->arguments;
  (void)error;
  memcpy(arguments->to, arguments->from, arguments->size_bytes);
  return CLV_OK;
}

static clv_status add_copy(clv__cpu_list *list, uint32_t index, clv_error *error) {
  const clv__cpu_step *step = &list->plan->steps[index];
  size_t size_bytes;
  if (!clv__tensor_size_bytes(&step->operands[0].type, &size_bytes) || size_bytes == 0) return CLV_OK;
  clv__cpu_call *call = clv__cpu_list_append(list, index, sizeof(copy_arguments));
  if (call == NULL) return clv__error_memory(error, sizeof(copy_arguments));
  copy_arguments *arguments = (copy_arguments *)(void *)call->arguments;
  call->function.run = run_copy;
  arguments->size_bytes = size_bytes;
  CLV__TRY(point(list, &arguments->from, step->operands[0].slot, error));
  return point(list, &arguments->to, step->operands[1].slot, error);
}

/* ---- Elements to and from f16, and bf16 on CPUs without it. ---- */

enum { CONVERT_CHUNK = 16384 };

typedef struct convert_arguments {
  void *to;
  const void *from;
  int64_t count;
  clv_dtype narrow; /* the other one is f32 */
  bool widens;
} convert_arguments;

static clv_status run_convert(const clv__cpu_call *call, clv_error *error) {
  const convert_arguments *a = (const convert_arguments *)(const void *)call->arguments;
  const int64_t chunks = (a->count + CONVERT_CHUNK - 1) / CONVERT_CHUNK;
  const int threads = clv__kernel_threads(chunks, (double)a->count);
  (void)threads; /* without OpenMP */
  (void)error;
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
  for (int64_t c = 0; c < chunks; ++c) {
    const int64_t first = c * CONVERT_CHUNK, left = a->count - first, count = left < CONVERT_CHUNK ? left : CONVERT_CHUNK;
    if (a->widens) {
      clv__row_to_f32(a->narrow, a->from, first, count, (float *)a->to + first);
    } else {
      clv__row_from_f32(a->narrow, a->to, first, count, (const float *)a->from + first);
    }
  }
  return CLV_OK;
}

static clv_status add_convert(clv__cpu_list *list, uint32_t index, clv_error *error) {
  const clv__cpu_step *step = &list->plan->steps[index];
  const clv_tensor *from = &step->operands[0].type, *to = &step->operands[1].type;
  clv__cpu_call *call = clv__cpu_list_append(list, index, sizeof(convert_arguments));
  if (call == NULL) return clv__error_memory(error, sizeof(convert_arguments));
  convert_arguments *arguments = (convert_arguments *)(void *)call->arguments;
  call->function.run = run_convert;
  arguments->count = clv__dims_product(from, 0, from->rank);
  arguments->widens = to->dtype == CLV_F32;
  arguments->narrow = arguments->widens ? from->dtype : to->dtype;
  CLV__TRY(point(list, &arguments->from, step->operands[0].slot, error));
  return point(list, &arguments->to, step->operands[1].slot, error);
}

/* ---- One row times a packed matrix. ---- */

typedef struct row_arguments {
  const clv__cpu_row *row;
  clv_tensor tensors[];
} row_arguments;

static clv_status run_row(const clv__cpu_call *call, clv_error *error) {
  const row_arguments *arguments = (const row_arguments *)(const void *)call->arguments;
  (void)error;
  clv__cpu_row_run(arguments->row, arguments->tensors);
  return CLV_OK;
}

static clv_status add_row(clv__cpu_list *list, uint32_t index, clv_error *error) {
  const clv__cpu_step *step = &list->plan->steps[index];
  const size_t size_bytes = sizeof(row_arguments) + step->operand_count * sizeof(clv_tensor);
  clv__cpu_call *call = clv__cpu_list_append(list, index, size_bytes);
  if (call == NULL) return clv__error_memory(error, size_bytes);
  row_arguments *arguments = (row_arguments *)(void *)call->arguments;
  call->function.run = run_row;
  arguments->row = step->row;
  return fill_tensors(list, step, arguments->tensors, error);
}

/* ---- A function over tensors. ---- */

typedef struct own_arguments {
  const clv__cpu_own *own;
  clv_tensor tensors[];
} own_arguments;

static clv_status run_own(const clv__cpu_call *call, clv_error *error) {
  const own_arguments *arguments = (const own_arguments *)(const void *)call->arguments;
  (void)error;
  arguments->own->run(arguments->own, arguments->tensors);
  return CLV_OK;
}

static clv_status add_own(clv__cpu_list *list, uint32_t index, clv_error *error) {
  const clv__cpu_step *step = &list->plan->steps[index];
  const size_t size_bytes = sizeof(own_arguments) + step->operand_count * sizeof(clv_tensor);
  clv__cpu_call *call = clv__cpu_list_append(list, index, size_bytes);
  if (call == NULL) return clv__error_memory(error, size_bytes);
  own_arguments *arguments = (own_arguments *)(void *)call->arguments;
  call->function.run = run_own;
  arguments->own = step->own;
  return fill_tensors(list, step, arguments->tensors, error);
}

/* ---- A small product. ---- */

typedef struct small_arguments {
  clv__cpu_small small;
  const float *a, *b, *bias;
  float *c;
} small_arguments;

static clv_status run_small(const clv__cpu_call *call, clv_error *error) {
  const small_arguments *arguments = (const small_arguments *)(const void *)call->arguments;
  (void)error;
  clv__cpu_small_run(&arguments->small, arguments->a, arguments->b, arguments->bias, arguments->c);
  return CLV_OK;
}

static clv_status add_small(clv__cpu_list *list, uint32_t index, clv_error *error) {
  const clv__cpu_step *step = &list->plan->steps[index];
  clv__cpu_call *call = clv__cpu_list_append(list, index, sizeof(small_arguments));
  if (call == NULL) return clv__error_memory(error, sizeof(small_arguments));
  small_arguments *arguments = (small_arguments *)(void *)call->arguments;
  call->function.run = run_small;
  arguments->small = *step->small;
  CLV__TRY(point(list, &arguments->a, step->operands[0].slot, error));
  CLV__TRY(point(list, &arguments->b, step->operands[1].slot, error));
  if (step->small->has_bias) CLV__TRY(point(list, &arguments->bias, step->operands[2].slot, error));
  return point(list, &arguments->c, step->operands[step->input_count].slot, error);
}

/* ---- An elementwise function: one row, or rows over outer axes. ---- */

typedef struct row_call {
  clv__row row;
  clv__elementwise_params params;
} row_call;

typedef struct outer_axis {
  int64_t extent, out; /* strides in bytes */
  int64_t in[CLV__ROW_INPUTS];
} outer_axis;

typedef struct rows_arguments {
  clv__row_fn function;
  clv__row row;
  clv__elementwise_params params;
  uint32_t axis_count, input_count;
  outer_axis axes[]; /* the innermost first */
} rows_arguments;

/* One call a row, for every position of the outer axes. */
static clv_status run_rows(const clv__cpu_call *call, clv_error *error) {
  const rows_arguments *arguments = (const rows_arguments *)(const void *)call->arguments;
  int64_t at[CLV_MAX_RANK] = {0};
  clv__row row = arguments->row;
  (void)error;
  for (;;) {
    arguments->function(&row);
    uint32_t d = 0;
    for (;; ++d) {
      if (d == arguments->axis_count) return CLV_OK;
      const outer_axis *axis = &arguments->axes[d];
      const bool more = ++at[d] < axis->extent;
      const int64_t steps = more ? 1 : 1 - axis->extent;
      row.out = (uint8_t *)row.out + steps * axis->out;
      for (uint32_t k = 0; k < arguments->input_count; ++k) row.in[k] = (const uint8_t *)row.in[k] + steps * axis->in[k];
      if (more) break;
      at[d] = 0;
    }
  }
}

static clv_status fill_row(clv__cpu_list *list, const clv__cpu_step *step, const clv__walk *walk, clv__row *row,
                           clv__elementwise_params *params, clv_error *error) {
  const clv__cpu_elementwise *elementwise = step->elementwise;
  row->count = walk->length;
  *params = elementwise->params;
  CLV__TRY(clv__cpu_list_patch(list, &row->params, CLV__CPU_BASE_LIST, (size_t)((uint8_t *)params - list->block), error));
  for (uint32_t k = 0; k < elementwise->input_count; ++k) {
    row->step[k] = walk->step[k];
    CLV__TRY(point(list, &row->in[k], step->operands[k].slot, error));
  }
  return point(list, &row->out, step->operands[step->input_count].slot, error);
}

static clv_status add_rows(clv__cpu_list *list, uint32_t index, const clv__walk *walk, clv_error *error) {
  const clv__cpu_step *step = &list->plan->steps[index];
  const size_t size_bytes = sizeof(rows_arguments) + (size_t)walk->rank * sizeof(outer_axis);
  clv__cpu_call *call = clv__cpu_list_append(list, index, size_bytes);
  if (call == NULL) return clv__error_memory(error, size_bytes);
  rows_arguments *arguments = (rows_arguments *)(void *)call->arguments;
  call->function.run = run_rows;
  arguments->function = step->elementwise->what.run;
  arguments->axis_count = (uint32_t)walk->rank;
  arguments->input_count = step->elementwise->input_count;
  int64_t stride = walk->length * (int64_t)clv_dtype_size_bytes(step->operands[step->input_count].type.dtype);
  for (int32_t d = 0; d < walk->rank; ++d) {
    outer_axis *axis = &arguments->axes[d];
    const int32_t from = walk->rank - 1 - d;
    axis->extent = walk->dims[from];
    axis->out = stride;
    stride *= axis->extent;
    for (uint32_t k = 0; k < arguments->input_count; ++k) {
      axis->in[k] = walk->strides[k][from] * (int64_t)clv_dtype_size_bytes(step->operands[k].type.dtype);
    }
  }
  return fill_row(list, step, walk, &arguments->row, &arguments->params, error);
}

static clv_status add_elementwise(clv__cpu_list *list, uint32_t index, clv_error *error) {
  const clv__cpu_step *step = &list->plan->steps[index];
  const clv_tensor *inputs[CLV__ROW_INPUTS];
  clv__walk walk;
  for (uint32_t k = 0; k < step->input_count; ++k) inputs[k] = &step->operands[k].type;
  clv__walk_plan(&walk, &step->operands[step->input_count].type, inputs, step->input_count);
  if (walk.rank > 0) return add_rows(list, index, &walk, error);
  clv__cpu_call *call = clv__cpu_list_append(list, index, sizeof(row_call));
  if (call == NULL) return clv__error_memory(error, sizeof(row_call));
  row_call *arguments = (row_call *)(void *)call->arguments;
  call->function.row = step->elementwise->what.run;
  call->is_row = 1;
  return fill_row(list, step, &walk, &arguments->row, &arguments->params, error);
}

clv_status clv__cpu_calls_add(clv__cpu_list *list, uint32_t step, clv_error *error) {
  switch (list->plan->steps[step].kind) {
    case CLV__CPU_STEP_KERNEL:
      return add_kernel(list, step, error);
    case CLV__CPU_STEP_PRIMITIVE:
      return add_primitive(list, step, error);
    case CLV__CPU_STEP_COPY:
      return add_copy(list, step, error);
    case CLV__CPU_STEP_CONVERT:
      return add_convert(list, step, error);
    case CLV__CPU_STEP_ROW:
      return add_row(list, step, error);
    case CLV__CPU_STEP_SMALL:
      return add_small(list, step, error);
    case CLV__CPU_STEP_ELEMENTWISE:
      return add_elementwise(list, step, error);
    case CLV__CPU_STEP_OWN:
      return add_own(list, step, error);
  }
  return clv__error_set(error, CLV_INTERNAL_ERROR, "step %u is of no kind", step);
}
