/* A planned instance: memory, oneDNN's memory objects and the kernels' calls are made once; an execution moves the bindings'
 * addresses where they changed, and runs the steps. It allocates nothing. */
#include <stdio.h>
#include <time.h>

#include "base/text.h"
#include "executable.h"
#include "row.h"

/* A place that holds a binding's address. */
typedef struct patch {
  clv__dnn_memory *memory; /* or */
  void **address;
  struct patch *next;
} patch;

typedef struct binding {
  const clv_tensor *type;
  size_t size_bytes, element_bytes;
  void *bound;   /* what the patches hold */
  void *staging; /* a copy for addresses that are not aligned to their element; made when first needed */
  void *unaligned;
  patch *patches;
} binding;

typedef struct run_step {
  const clv__cpu_step *step;
  clv__dnn_argument *arguments; /* primitives */
  uint32_t argument_count;
  clv_tensor *tensors; /* kernels and copies: inputs, then outputs */
  uint64_t time_ns;    /* spent in it so far */
} run_step;

struct clv__cpu_run {
  const clv__cpu_plan *plan;
  clv__arena arena;
  uint8_t *memory;
  void *scratch;
  run_step *steps;
  binding *inputs, *outputs;
  uint64_t executions;
};

static clv_status add_patch(clv__cpu_run *run, const clv__cpu_slot *root, clv__dnn_memory *memory, void **address,
                            clv_error *error) {
  if (root->kind != CLV__CPU_SLOT_INPUT && root->kind != CLV__CPU_SLOT_OUTPUT) return CLV_OK;
  binding *bound = root->kind == CLV__CPU_SLOT_INPUT ? &run->inputs[root->index] : &run->outputs[root->index];
  patch *made = clv__arena_allocate_zero(&run->arena, 1, sizeof *made);
  if (made == NULL) return clv__error_memory(error, sizeof *made);
  *made = (patch){memory, address, bound->patches};
  bound->patches = made;
  return CLV_OK;
}

static void *slot_address(const clv__cpu_run *run, const clv__cpu_slot *root) {
  if (root->kind == CLV__CPU_SLOT_ARENA) return run->memory + root->offset_bytes;
  return root->kind == CLV__CPU_SLOT_CONSTANT ? root->data : NULL;
}

static clv_status prepare_primitive(clv__cpu_run *run, run_step *made, clv_error *error) {
  const clv__cpu_plan *plan = run->plan;
  const clv__cpu_step *step = made->step;
  clv__dnn *dnn = plan->device->dnn;
  made->arguments = clv__arena_allocate_zero(&run->arena, step->operand_count + 1, sizeof *made->arguments);
  if (made->arguments == NULL) return clv__error_memory(error, step->operand_count * sizeof *made->arguments);
  for (uint32_t i = 0; i < step->operand_count; ++i) {
    const clv__cpu_operand *operand = &step->operands[i];
    const clv__cpu_slot *root = &plan->slots[plan->slots[operand->slot].root];
    clv__dnn_argument *argument = &made->arguments[made->argument_count];
    argument->id = operand->id;
    CLV__TRY(clv__dnn_memory_create(dnn, operand->layout, slot_address(run, root), &argument->memory, error));
    made->argument_count++;
    CLV__TRY(add_patch(run, root, argument->memory, NULL, error));
  }
  if (step->scratch_bytes == 0) return CLV_OK;
  clv__dnn_argument *argument = &made->arguments[made->argument_count];
  argument->id = CLV__DNN_SCRATCH;
  CLV__TRY(clv__dnn_memory_create_bytes(dnn, step->scratch_bytes, run->scratch, &argument->memory, error));
  made->argument_count++;
  return CLV_OK;
}

static clv_status prepare_tensors(clv__cpu_run *run, run_step *made, clv_error *error) {
  const clv__cpu_plan *plan = run->plan;
  const clv__cpu_step *step = made->step;
  made->tensors = clv__arena_allocate_zero(&run->arena, step->operand_count, sizeof *made->tensors);
  if (made->tensors == NULL) return clv__error_memory(error, step->operand_count * sizeof *made->tensors);
  for (uint32_t i = 0; i < step->operand_count; ++i) {
    made->tensors[i] = step->operands[i].type;
    if (step->operands[i].slot == CLV__CPU_NONE) continue;
    const clv__cpu_slot *root = &plan->slots[plan->slots[step->operands[i].slot].root];
    made->tensors[i].data = slot_address(run, root);
    CLV__TRY(add_patch(run, root, NULL, &made->tensors[i].data, error));
  }
  return CLV_OK;
}

static void prepare_binding(binding *bound, const clv_tensor *type) {
  bound->type = type;
  bound->element_bytes = clv_dtype_size_bytes(type->dtype);
  (void)clv__tensor_size_bytes(type, &bound->size_bytes);
}

static clv_status prepare(clv__cpu_run *run, clv_error *error) {
  const clv__cpu_plan *plan = run->plan;
  const clv__cpu_program *program = plan->program;
  const clv_allocator *allocator = plan->device->allocator;
  run->memory = clv__allocate(allocator, plan->memory_bytes);
  if (run->memory == NULL) return clv__error_memory(error, plan->memory_bytes);
  run->scratch = clv__allocate(allocator, plan->scratch_bytes);
  if (run->scratch == NULL) return clv__error_memory(error, plan->scratch_bytes);
  run->steps = clv__arena_allocate_zero(&run->arena, plan->step_count, sizeof *run->steps);
  run->inputs = clv__arena_allocate_zero(&run->arena, program->input_count, sizeof *run->inputs);
  run->outputs = clv__arena_allocate_zero(&run->arena, program->output_count, sizeof *run->outputs);
  if (run->steps == NULL || run->inputs == NULL || run->outputs == NULL) {
    return clv__error_memory(error, plan->step_count * sizeof *run->steps);
  }
  for (uint32_t i = 0; i < program->input_count; ++i) prepare_binding(&run->inputs[i], &plan->input_types[i]);
  for (uint32_t i = 0; i < program->output_count; ++i) {
    prepare_binding(&run->outputs[i], &plan->values[program->outputs[i]].type);
  }
  for (size_t s = 0; s < plan->step_count; ++s) {
    run_step *made = &run->steps[s];
    made->step = &plan->steps[s];
    CLV__TRY(made->step->kind == CLV__CPU_STEP_PRIMITIVE ? prepare_primitive(run, made, error)
                                                         : prepare_tensors(run, made, error));
  }
  return CLV_OK;
}

clv_status clv__cpu_run_create(const clv__cpu_plan *plan, clv__cpu_run **run, clv_error *error) {
  *run = NULL;
  clv__cpu_run *made = clv__allocate_zero(plan->device->allocator, sizeof *made);
  if (made == NULL) return clv__error_memory(error, sizeof *made);
  made->plan = plan;
  clv__arena_init(&made->arena, plan->device->allocator);
  clv_status status = prepare(made, error);
  if (status != CLV_OK) {
    clv__cpu_run_destroy(made);
    return status;
  }
  *run = made;
  return CLV_OK;
}

static void log_profile(const clv__cpu_run *run) {
  const clv_host *host = run->plan->device->host;
  if (host->log == NULL || run->executions == 0) return;
  char line[256];
  uint64_t total_ns = 0;
  for (size_t s = 0; s < run->plan->step_count; ++s) {
    const run_step *made = &run->steps[s];
    total_ns += made->time_ns;
    snprintf(line, sizeof line, "%9.1f us  %-20s %-32s %s", (double)made->time_ns / 1e3 / (double)run->executions,
             made->step->what, made->step->primitive != NULL ? made->step->primitive->implementation : "kernel",
             made->step->node != NULL ? made->step->node->name : "");
    host->log(host->self, 2, line);
  }
  snprintf(line, sizeof line, "%9.1f us  in all, %zu steps, %zu bytes of memory, %zu of scratch",
           (double)total_ns / 1e3 / (double)run->executions, run->plan->step_count, run->plan->memory_bytes,
           run->plan->scratch_bytes);
  host->log(host->self, 2, line);
}

void clv__cpu_run_destroy(clv__cpu_run *run) {
  if (run == NULL) return;
  const clv__cpu_plan *plan = run->plan;
  const clv_allocator *allocator = plan->device->allocator;
  if (plan->device->profile) log_profile(run);
  for (size_t s = 0; run->steps != NULL && s < plan->step_count; ++s) {
    for (uint32_t i = 0; i < run->steps[s].argument_count; ++i) clv__dnn_memory_release(run->steps[s].arguments[i].memory);
  }
  for (uint32_t i = 0; run->inputs != NULL && i < plan->program->input_count; ++i)
    clv__release(allocator, run->inputs[i].staging);
  for (uint32_t i = 0; run->outputs != NULL && i < plan->program->output_count; ++i) {
    clv__release(allocator, run->outputs[i].staging);
  }
  clv__release(allocator, run->memory);
  clv__release(allocator, run->scratch);
  clv__arena_finish(&run->arena);
  clv__release(allocator, run);
}

/* ---- Execution. ---- */

static clv_status bind(clv__cpu_run *run, binding *bound, void *address, clv_error *error) {
  static uint64_t nothing;
  bound->unaligned = NULL;
  if (address == NULL) {
    if (bound->size_bytes > 0) return clv__error_set(error, CLV_INVALID_ARGUMENT, "a binding has no memory");
    address = &nothing;
  } else if (bound->element_bytes > 1 && bound->element_bytes <= 8 && (uintptr_t)address % bound->element_bytes != 0) {
    if (bound->staging == NULL) bound->staging = clv__allocate(run->plan->device->allocator, bound->size_bytes);
    if (bound->staging == NULL) return clv__error_memory(error, bound->size_bytes);
    bound->unaligned = address;
    address = bound->staging;
  }
  if (bound->bound == address) return CLV_OK;
  for (const patch *at = bound->patches; at != NULL; at = at->next) {
    if (at->memory != NULL) {
      CLV__TRY(clv__dnn_memory_move(at->memory, address, error));
    } else {
      *at->address = address;
    }
  }
  bound->bound = address;
  return CLV_OK;
}

static clv_status bind_all(clv__cpu_run *run, clv_execute_args *args, clv_error *error) {
  const clv__cpu_program *program = run->plan->program;
  if (args->input_count != program->input_count || args->output_count != program->output_count) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "%u inputs and %u outputs are bound, the partition has %u and %u",
                          args->input_count, args->output_count, program->input_count, program->output_count);
  }
  for (uint32_t i = 0; i < args->input_count; ++i) {
    binding *bound = &run->inputs[i];
    if (!clv__tensor_same_type(&args->inputs[i].type, bound->type)) {
      char given[96], wanted[96];
      clv__tensor_text(&args->inputs[i].type, given, sizeof given);
      clv__tensor_text(bound->type, wanted, sizeof wanted);
      return clv__error_set(error, CLV_INVALID_ARGUMENT, "input '%s' is %s, the instance was made for %s",
                            program->values[program->inputs[i]].name, given, wanted);
    }
    CLV__TRY(bind(run, bound, clv__cpu_address(&args->inputs[i]), error));
    if (bound->unaligned != NULL) memcpy(bound->staging, bound->unaligned, bound->size_bytes);
  }
  for (uint32_t i = 0; i < args->output_count; ++i) {
    CLV__TRY(clv__cpu_output_place(args, i, run->outputs[i].type, error));
    CLV__TRY(bind(run, &run->outputs[i], clv__cpu_address(&args->outputs[i]), error));
  }
  return CLV_OK;
}

static clv_status run_kernel(clv__cpu_run *run, const run_step *made, clv_error *error) {
  const clv__cpu_step *step = made->step;
  const clv__kernel_call call = {.op = step->node->op,
                                 .opset = step->node->opset,
                                 .attributes = step->node->attributes,
                                 .inputs = made->tensors,
                                 .input_count = step->input_count,
                                 .outputs = made->tensors + step->input_count,
                                 .output_count = step->operand_count - step->input_count,
                                 .scratch = run->scratch,
                                 .error = error};
  return clv__kernel_run(step->node->kernel, &call, run->plan->device->allocator);
}

static clv_status run_step_once(clv__cpu_run *run, run_step *made, clv_error *error) {
  const clv__cpu_step *step = made->step;
  clv_status status = CLV_OK;
  if (step->kind == CLV__CPU_STEP_PRIMITIVE) {
    const int before = step->serial ? clv__cpu_threads_enter_one() : 0;
    status = clv__dnn_execute(run->plan->device->dnn, step->primitive, made->arguments, made->argument_count, error);
    if (step->serial) clv__cpu_threads_leave(before);
  } else if (step->kind == CLV__CPU_STEP_KERNEL) {
    status = run_kernel(run, made, error);
  } else if (step->kind == CLV__CPU_STEP_ROW) {
    clv__cpu_row_run(step->row, made->tensors);
  } else {
    size_t size_bytes;
    if (clv__tensor_size_bytes(&made->tensors[0], &size_bytes) && size_bytes > 0) {
      memcpy(made->tensors[1].data, made->tensors[0].data, size_bytes);
    }
  }
  if (status == CLV_OK) return CLV_OK;
  return clv__error_prefix(error, status, "node '%s' (%s)", step->node != NULL ? step->node->name : "", step->what);
}

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

clv_status clv__cpu_run_execute(clv__cpu_run *run, clv_execute_args *args, clv_error *error) {
  CLV__TRY(bind_all(run, args, error));
  const bool profile = run->plan->device->profile;
  for (size_t s = 0; s < run->plan->step_count; ++s) {
    const uint64_t begin = profile ? now_ns() : 0;
    CLV__TRY(run_step_once(run, &run->steps[s], error));
    if (profile) run->steps[s].time_ns += now_ns() - begin;
  }
  run->executions++;
  for (uint32_t i = 0; i < args->output_count; ++i) {
    const binding *bound = &run->outputs[i];
    if (bound->unaligned != NULL) memcpy(bound->unaligned, bound->staging, bound->size_bytes);
  }
  return CLV_OK;
}
