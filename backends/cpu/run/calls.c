/* The kinds of calls in a launch list. For each kind: the arguments, how a call is built, and how it runs. Two kinds have their
 * own files. */
#include "calls.h"

#include "backends/common/kernels.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/lower/small.h"
#include "operators/common/threads.h"

void clv__cpu_calls_locate(const clv__cpu_variant *variant, uint32_t slot, void **data, uint32_t *base, size_t *addend) {
  const clv__cpu_slot *root = &variant->slots[variant->slots[slot].root];
  *data = NULL;
  *addend = variant->slots[slot].inner_bytes;
  switch (root->kind) {
    case CLV__CPU_SLOT_ARENA:
      *base = CLV__CPU_BASE_MEMORY;
      *addend += root->offset_bytes;
      break;
    case CLV__CPU_SLOT_INPUT:
      *base = CLV__CPU_BASE_BINDINGS + root->index;
      break;
    case CLV__CPU_SLOT_OUTPUT:
      *base = CLV__CPU_BASE_BINDINGS + variant->program->input_count + root->index;
      break;
    default:
      *data = root->data != NULL ? (uint8_t *)root->data + *addend : NULL;
      break;
  }
}

clv_status clv__cpu_calls_point(clv__cpu_list *list, void *place, uint32_t slot, clv_error *error) {
  void *data;
  uint32_t base = 0;
  size_t addend;
  if (slot == CLV__CPU_NONE) return CLV_OK;
  clv__cpu_calls_locate(list->variant, slot, &data, &base, &addend);
  if (data == NULL) return clv__cpu_list_patch(list, place, base, addend, error);
  memcpy(place, &data, sizeof data);
  return CLV_OK;
}

/* ---- A portable kernel, with a prepared call. ---- */

typedef struct kernel_arguments {
  clv_status (*run)(const clv__kernel_call *call);
  clv__kernel_call call;
  clv_tensor tensors[]; /* inputs, then outputs */
} kernel_arguments;

static clv_status run_kernel(const clv__cpu_call *call, const clv__stop *stop, clv_error *error) {
  const kernel_arguments *arguments = (const kernel_arguments *)(const void *)call->arguments;
  clv__kernel_call with_error = arguments->call;
  with_error.error = error;
  with_error.stop = stop;
  return arguments->run(&with_error);
}

static clv_status fill_tensors(clv__cpu_list *list, const clv__cpu_step *step, clv_tensor *tensors, clv_error *error) {
  for (uint32_t i = 0; i < step->operand_count; ++i) {
    tensors[i] = step->operands[i].type;
    tensors[i].data = NULL;
    CLV__TRY(clv__cpu_calls_point(list, &tensors[i].data, step->operands[i].slot, error));
  }
  return CLV_OK;
}

static clv_status add_kernel(clv__cpu_list *list, uint32_t index, clv_error *error) {
  const clv__cpu_step *step = &list->variant->steps[index];
  const size_t size_bytes = sizeof(kernel_arguments) + step->operand_count * sizeof(clv_tensor);
  clv__cpu_call *call = clv__cpu_list_append(list, index, size_bytes);
  if (call == NULL) return clv__error_memory(error, size_bytes);
  kernel_arguments *arguments = (kernel_arguments *)(void *)call->arguments;
  const size_t tensors = (size_t)((uint8_t *)arguments->tensors - list->block);
  call->function.run = run_kernel;
  arguments->run = (step->kernel != NULL ? step->kernel : step->node->kernel)->run;
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

/* ---- Copies of bytes. ---- */

enum { COPY_PIECE = 1 << 20 }; /* bytes copied between two checks of the stop flag */

typedef struct copy_arguments {
  void *to;
  const void *from;
  size_t size_bytes;
} copy_arguments;

static clv_status run_copy(const clv__cpu_call *call, const clv__stop *stop, clv_error *error) {
  const copy_arguments *arguments = (const copy_arguments *)(const void *)call->arguments;
  (void)error;
  for (size_t at = 0; at < arguments->size_bytes && !clv__is_stopped(stop); at += COPY_PIECE) {
    const size_t left = arguments->size_bytes - at;
    memcpy((uint8_t *)arguments->to + at, (const uint8_t *)arguments->from + at, left < COPY_PIECE ? left : COPY_PIECE);
  }
  return CLV_OK;
}

static clv_status add_copy(clv__cpu_list *list, uint32_t index, clv_error *error) {
  const clv__cpu_step *step = &list->variant->steps[index];
  size_t size_bytes;
  if (!clv__tensor_size_bytes(&step->operands[0].type, &size_bytes) || size_bytes == 0) return CLV_OK;
  clv__cpu_call *call = clv__cpu_list_append(list, index, sizeof(copy_arguments));
  if (call == NULL) return clv__error_memory(error, sizeof(copy_arguments));
  copy_arguments *arguments = (copy_arguments *)(void *)call->arguments;
  call->function.run = run_copy;
  arguments->size_bytes = size_bytes;
  CLV__TRY(clv__cpu_calls_point(list, &arguments->from, step->operands[0].slot, error));
  return clv__cpu_calls_point(list, &arguments->to, step->operands[1].slot, error);
}

/* ---- Conversions between f32 and f16, or between f32 and bf16 on CPUs that do not support bf16. ---- */

enum { CONVERT_CHUNK = 16384 };

typedef struct convert_arguments {
  void *to;
  const void *from;
  int64_t count;
  clv_dtype narrow; /* the other dtype is f32 */
  bool widens;
} convert_arguments;

static clv_status run_convert(const clv__cpu_call *call, const clv__stop *stop, clv_error *error) {
  const convert_arguments *a = (const convert_arguments *)(const void *)call->arguments;
  const int64_t chunks = (a->count + CONVERT_CHUNK - 1) / CONVERT_CHUNK;
  const int threads = clv__kernel_threads(chunks, (double)a->count);
  (void)threads; /* unused without OpenMP */
  (void)error;
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
  for (int64_t c = 0; c < chunks; ++c) {
    if (clv__is_stopped(stop)) continue;
    const int64_t first = c * CONVERT_CHUNK, left = a->count - first, count = left < CONVERT_CHUNK ? left : CONVERT_CHUNK;
    if (a->widens) {
      clv__kernels()->row_to_f32(a->narrow, a->from, first, count, (float *)a->to + first);
    } else {
      clv__kernels()->row_from_f32(a->narrow, a->to, first, count, (const float *)a->from + first);
    }
  }
  return CLV_OK;
}

static clv_status add_convert(clv__cpu_list *list, uint32_t index, clv_error *error) {
  const clv__cpu_step *step = &list->variant->steps[index];
  const clv_tensor *from = &step->operands[0].type, *to = &step->operands[1].type;
  clv__cpu_call *call = clv__cpu_list_append(list, index, sizeof(convert_arguments));
  if (call == NULL) return clv__error_memory(error, sizeof(convert_arguments));
  convert_arguments *arguments = (convert_arguments *)(void *)call->arguments;
  call->function.run = run_convert;
  arguments->count = clv__dims_product(from, 0, from->rank);
  arguments->widens = to->dtype == CLV_F32;
  arguments->narrow = arguments->widens ? from->dtype : to->dtype;
  CLV__TRY(clv__cpu_calls_point(list, &arguments->from, step->operands[0].slot, error));
  return clv__cpu_calls_point(list, &arguments->to, step->operands[1].slot, error);
}

/* ---- One row times a packed matrix. ---- */

typedef struct row_arguments {
  const clv__cpu_row *row;
  clv_tensor tensors[];
} row_arguments;

static clv_status run_row(const clv__cpu_call *call, const clv__stop *stop, clv_error *error) {
  const row_arguments *arguments = (const row_arguments *)(const void *)call->arguments;
  (void)error;
  clv__cpu_kernels()->row_run(arguments->row, arguments->tensors, stop);
  return CLV_OK;
}

static clv_status add_row(clv__cpu_list *list, uint32_t index, clv_error *error) {
  const clv__cpu_step *step = &list->variant->steps[index];
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

static clv_status run_own(const clv__cpu_call *call, const clv__stop *stop, clv_error *error) {
  const own_arguments *arguments = (const own_arguments *)(const void *)call->arguments;
  (void)error;
  arguments->own->run(arguments->own, arguments->tensors, stop);
  return CLV_OK;
}

static clv_status add_own(clv__cpu_list *list, uint32_t index, clv_error *error) {
  const clv__cpu_step *step = &list->variant->steps[index];
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

static clv_status run_small(const clv__cpu_call *call, const clv__stop *stop, clv_error *error) {
  (void)stop;
  const small_arguments *arguments = (const small_arguments *)(const void *)call->arguments;
  (void)error;
  clv__cpu_kernels()->small_run(&arguments->small, arguments->a, arguments->b, arguments->bias, arguments->c);
  return CLV_OK;
}

static clv_status add_small(clv__cpu_list *list, uint32_t index, clv_error *error) {
  const clv__cpu_step *step = &list->variant->steps[index];
  clv__cpu_call *call = clv__cpu_list_append(list, index, sizeof(small_arguments));
  if (call == NULL) return clv__error_memory(error, sizeof(small_arguments));
  small_arguments *arguments = (small_arguments *)(void *)call->arguments;
  call->function.run = run_small;
  arguments->small = *step->small;
  CLV__TRY(clv__cpu_calls_point(list, &arguments->a, step->operands[0].slot, error));
  CLV__TRY(clv__cpu_calls_point(list, &arguments->b, step->operands[1].slot, error));
  if (step->small->has_bias) CLV__TRY(clv__cpu_calls_point(list, &arguments->bias, step->operands[2].slot, error));
  return clv__cpu_calls_point(list, &arguments->c, step->operands[step->input_count].slot, error);
}

clv_status clv__cpu_calls_add(clv__cpu_list *list, uint32_t step, clv_error *error) {
  switch (list->variant->steps[step].kind) {
    case CLV__CPU_STEP_KERNEL:
      return add_kernel(list, step, error);
    case CLV__CPU_STEP_PRIMITIVE:
      return clv__cpu_calls_primitive(list, step, error);
    case CLV__CPU_STEP_COPY:
      return add_copy(list, step, error);
    case CLV__CPU_STEP_CONVERT:
      return add_convert(list, step, error);
    case CLV__CPU_STEP_ROW:
      return add_row(list, step, error);
    case CLV__CPU_STEP_SMALL:
      return add_small(list, step, error);
    case CLV__CPU_STEP_ELEMENTWISE:
      return clv__cpu_calls_elementwise(list, step, error);
    case CLV__CPU_STEP_OWN:
      return add_own(list, step, error);
  }
  return clv__error_set(error, CLV_INTERNAL_ERROR, "step %u has an unknown kind", step);
}
