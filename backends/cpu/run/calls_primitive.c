/* The calls of oneDNN primitives in a launch list. */
#include "calls.h"

typedef struct primitive_arguments {
  clv__dnn *dnn;
  const clv__dnn_primitive *primitive;
  uint32_t count;
  bool serial;
  clv__dnn_argument arguments[];
} primitive_arguments;

static clv_status run_primitive(const clv__cpu_call *call, const clv__stop *stop, clv_error *error) {
  (void)stop;
  const primitive_arguments *arguments = (const primitive_arguments *)(const void *)call->arguments;
  const int before = arguments->serial ? clv__cpu_threads_enter_one() : 0;
  const clv_status status = clv__dnn_execute(arguments->dnn, arguments->primitive, arguments->arguments, arguments->count, error);
  if (arguments->serial) clv__cpu_threads_leave_one(before);
  return status;
}

/* The corresponding call in list->like, which is built from the same steps in the same order. NULL if there is no such list. */
static const primitive_arguments *twin(const clv__cpu_list *list, const clv__cpu_call *call) {
  if (list->like == NULL) return NULL;
  const uint8_t *same = list->like->block + ((const uint8_t *)call - list->block);
  return (const primitive_arguments *)(const void *)((const clv__cpu_call *)(const void *)same)->arguments;
}

/* Adds an operand or, if `scratch` is not NULL, the step's scratch. */
static clv_status add_memory(clv__cpu_list *list, primitive_arguments *arguments, const primitive_arguments *like, int id,
                             uint32_t slot, const clv__dnn_layout *layout, const clv__cpu_step *scratch, clv_error *error) {
  void *data = NULL;
  uint32_t base = CLV__CPU_BASE_MEMORY;
  size_t addend = scratch != NULL ? scratch->scratch_offset_bytes : 0;
  clv__dnn_argument *argument = &arguments->arguments[arguments->count];
  if (slot != CLV__CPU_NONE) clv__cpu_calls_locate(list->variant, slot, &data, &base, &addend);
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

clv_status clv__cpu_calls_primitive(clv__cpu_list *list, uint32_t index, clv_error *error) {
  const clv__cpu_variant *variant = list->variant;
  const clv__cpu_step *step = &variant->steps[index];
  const size_t size_bytes = sizeof(primitive_arguments) + (step->operand_count + 1) * sizeof(clv__dnn_argument);
  clv__cpu_call *call = clv__cpu_list_append(list, index, size_bytes);
  if (call == NULL) return clv__error_memory(error, size_bytes);
  primitive_arguments *arguments = (primitive_arguments *)(void *)call->arguments;
  const primitive_arguments *like = twin(list, call);
  call->function.run = run_primitive;
  arguments->dnn = variant->device->dnn;
  arguments->primitive = step->primitive;
  arguments->serial = step->serial;
  for (uint32_t i = 0; i < step->operand_count; ++i) {
    const clv__cpu_operand *operand = &step->operands[i];
    CLV__TRY(add_memory(list, arguments, like, operand->id, operand->slot, operand->layout, NULL, error));
  }
  if (step->scratch_bytes == 0) return CLV_OK;
  return add_memory(list, arguments, like, CLV__DNN_SCRATCH, CLV__CPU_NONE, NULL, step, error);
}
