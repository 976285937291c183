/* Runs node by node: for partitions with data-dependent shapes, and for If, Loop and Scan. Infers each node's shapes from its
 * actual inputs. Frees a value after its last reader. */

#include "backends/common/bodies.h"
#include "base/clock.h"
#include "executable.h"

typedef struct dynamic {
  const clv__cpu_program *program;
  clv_executable *executable;
  clv__arena arena;
  clv_tensor *values; /* indexed by value; dtype NONE: not computed yet */
  bool *owned;        /* indexed by value: whether its data must be freed here */
  uint32_t *readers;  /* indexed by value: number of reads that are still to come */
  const clv__stop *stop;
} dynamic;

static void release_value(dynamic *state, uint32_t value) {
  if (!state->owned[value]) return;
  clv__release(state->executable->device->allocator, state->values[value].data);
  state->owned[value] = false;
  state->values[value].data = NULL;
}

static clv_status start(dynamic *state, const clv_execute_args *args, clv_error *error) {
  const clv__cpu_program *program = state->program;
  const clv_allocator *allocator = state->executable->device->allocator;
  state->values = clv__arena_allocate_zero(&state->arena, program->value_count, sizeof *state->values);
  state->owned = clv__arena_allocate_zero(&state->arena, program->value_count, sizeof *state->owned);
  state->readers = clv__arena_allocate_zero(&state->arena, program->value_count, sizeof *state->readers);
  if (state->values == NULL || state->owned == NULL || state->readers == NULL) {
    state->owned = NULL;
    return clv__error_memory(error, program->value_count * sizeof *state->values);
  }
  for (uint32_t i = 0; i < program->node_count; ++i) {
    const clv__cpu_node *node = &program->nodes[i];
    for (uint32_t k = 0; k < node->input_count; ++k) {
      if (node->inputs[k] != CLV__CPU_NONE) state->readers[node->inputs[k]]++;
    }
  }
  for (uint32_t i = 0; i < program->output_count; ++i) state->readers[program->outputs[i]]++;
  for (uint32_t i = 0; i < program->value_count; ++i) {
    if (!program->values[i].is_constant) continue;
    state->values[i] = program->values[i].type;
    CLV__TRY(clv__cpu_constant_raw(&state->executable->constants, i, &state->values[i].data, error));
  }
  for (uint32_t i = 0; i < program->input_count; ++i) {
    static uint64_t nothing;
    clv_tensor *value = &state->values[program->inputs[i]];
    size_t size_bytes;
    *value = args->inputs[i].type;
    value->data = clv__cpu_address(&args->inputs[i]);
    if (!clv__tensor_size_bytes(value, &size_bytes) || (value->data == NULL && size_bytes > 0)) {
      return clv__error_set(error, CLV_INVALID_ARGUMENT, "input '%s' is bound without a shape or memory",
                            program->values[program->inputs[i]].name);
    }
    if (value->data == NULL) value->data = &nothing;
    const size_t element_bytes = clv_dtype_size_bytes(value->dtype);
    if (element_bytes == 0 || element_bytes > 8 || (uintptr_t)value->data % element_bytes == 0) continue;
    void *copy = clv__allocate(allocator, size_bytes);
    if (copy == NULL) return clv__error_memory(error, size_bytes);
    memcpy(copy, value->data, size_bytes);
    value->data = copy;
    state->owned[program->inputs[i]] = true;
  }
  return CLV_OK;
}

static clv_status check_stop(const clv__stop *stop, clv_error *error) {
  return clv__is_stopped(stop) ? clv__error_set(error, CLV_CANCELLED, "the execution was stopped") : CLV_OK;
}

static clv_status run_kernel(dynamic *state, const clv__cpu_node *node, const clv_tensor *inputs, clv_tensor *outputs,
                             clv_error *error) {
  const clv_allocator *allocator = state->executable->device->allocator;
  for (uint32_t i = 0; i < node->output_count; ++i) {
    size_t size_bytes;
    if (outputs[i].dtype == CLV_DTYPE_NONE) continue;
    if (!clv__tensor_size_bytes(&outputs[i], &size_bytes)) {
      return clv__error_set(error, CLV_OUT_OF_MEMORY, "output %u is too large for any memory", i);
    }
    outputs[i].data = clv__allocate(allocator, size_bytes);
    if (outputs[i].data == NULL) return clv__error_memory(error, size_bytes);
  }
  const clv__kernel_call call = {.op = node->op,
                                 .opset = node->opset,
                                 .attributes = node->attributes,
                                 .inputs = inputs,
                                 .input_count = node->input_count,
                                 .outputs = outputs,
                                 .output_count = node->output_count,
                                 .error = error,
                                 .stop = state->stop};
  char reason[160]; /* the kernel is checked again, because some dtypes become known only now */
  if (!clv__kernel_holds(node->kernel, &call, reason)) return clv__error_set(error, CLV_NOT_SUPPORTED, "%s", reason);
  const clv_status status = clv__kernel_run(node->kernel, &call, allocator);
  /* Once stopped, ignore the kernel's status: it may have failed because its inputs are incomplete. */
  return clv__is_stopped(state->stop) ? check_stop(state->stop, error) : status;
}

static clv_status run_node(dynamic *state, uint32_t index, clv_tensor *scratch, clv_error *error) {
  const clv__cpu_node *node = &state->program->nodes[index];
  const clv_host *host = state->executable->device->host;
  if (clv__cpu_program_is_given(state->program, node)) return CLV_OK;
  clv_tensor *inputs = scratch, *outputs = scratch + node->input_count;
  for (uint32_t i = 0; i < node->input_count; ++i) {
    memset(&inputs[i], 0, sizeof inputs[i]);
    if (node->inputs[i] != CLV__CPU_NONE) inputs[i] = state->values[node->inputs[i]];
  }
  for (uint32_t i = 0; i < node->output_count; ++i) {
    memset(&outputs[i], 0, sizeof outputs[i]);
    outputs[i].rank = CLV_RANK_UNKNOWN;
  }
  bool complete = !node->has_body;
  clv_status status = CLV_OK;
  if (complete) status = host->infer_node(state->program->view, index, inputs, outputs, error);
  for (uint32_t i = 0; i < node->output_count && status == CLV_OK; ++i) {
    outputs[i].data = NULL;
    if (node->outputs[i] == CLV__CPU_NONE) {
      outputs[i].dtype = CLV_DTYPE_NONE;
    } else if (!clv__tensor_is_static(&outputs[i])) {
      complete = false;
    }
  }
  if (status == CLV_OK && complete) {
    status = run_kernel(state, node, inputs, outputs, error);
  } else if (status == CLV_OK) { /* the node has a body, or its kernel determines the size of an output */
    for (uint32_t i = 0; i < node->output_count; ++i) {
      memset(&outputs[i], 0, sizeof outputs[i]);
      outputs[i].rank = CLV_RANK_UNKNOWN;
    }
    status = clv__fast_evaluate(host, state->program->view, index, inputs, outputs, state->stop, error);
  }
  for (uint32_t i = 0; i < node->output_count; ++i) {
    if (status != CLV_OK || node->outputs[i] == CLV__CPU_NONE) {
      clv__release(state->executable->device->allocator, outputs[i].data);
      continue;
    }
    state->values[node->outputs[i]] = outputs[i];
    state->owned[node->outputs[i]] = true;
    if (state->readers[node->outputs[i]] == 0) release_value(state, node->outputs[i]);
  }
  if (status != CLV_OK) return clv__error_prefix(error, status, "node '%s' (%s)", node->name, node->op);
  for (uint32_t i = 0; i < node->input_count; ++i) {
    if (node->inputs[i] != CLV__CPU_NONE && --state->readers[node->inputs[i]] == 0) release_value(state, node->inputs[i]);
  }
  return CLV_OK;
}

static clv_status write_outputs(dynamic *state, clv_execute_args *args, clv_error *error) {
  const clv__cpu_program *program = state->program;
  for (uint32_t i = 0; i < program->output_count; ++i) {
    clv_tensor *value = &state->values[program->outputs[i]];
    size_t size_bytes;
    if (!clv__tensor_size_bytes(value, &size_bytes)) {
      return clv__error_set(error, CLV_INTERNAL_ERROR, "output '%s' was not computed", program->values[program->outputs[i]].name);
    }
    CLV__TRY(clv__cpu_output_place(args, i, value, error));
    if (size_bytes > 0) memcpy(clv__cpu_address(&args->outputs[i]), value->data, size_bytes);
  }
  return CLV_OK;
}

clv_status clv__cpu_dynamic_execute(clv_executable *executable, clv_execute_args *args, uint64_t *node_ns, const clv__stop *stop,
                                    clv_error *error) {
  const clv__cpu_program *program = &executable->program;
  dynamic state = {.program = program, .executable = executable, .stop = stop};
  clv__arena_init(&state.arena, executable->device->allocator);
  size_t most = 0;
  for (uint32_t i = 0; i < program->node_count; ++i) {
    const size_t needed = (size_t)program->nodes[i].input_count + program->nodes[i].output_count;
    if (needed > most) most = needed;
  }
  clv_status status = CLV_OK;
  if (args->input_count != program->input_count || args->output_count != program->output_count) {
    status = clv__error_set(error, CLV_INVALID_ARGUMENT, "%u inputs and %u outputs are bound, but the partition has %u and %u",
                            args->input_count, args->output_count, program->input_count, program->output_count);
    goto cleanup;
  }
  clv_tensor *scratch = clv__arena_allocate_zero(&state.arena, most, sizeof *scratch);
  if (scratch == NULL) {
    status = clv__error_memory(error, most * sizeof *scratch);
    goto cleanup;
  }
  CLV__TRY_GOTO(start(&state, args, error));
  for (uint32_t i = 0; i < program->node_count; ++i) {
    const uint64_t begin = node_ns != NULL ? clv__clock_ns() : 0;
    CLV__TRY_GOTO(check_stop(stop, error));
    CLV__TRY_GOTO(run_node(&state, i, scratch, error));
    if (node_ns != NULL) node_ns[i] += clv__clock_ns() - begin;
  }
  CLV__TRY_GOTO(check_stop(stop, error)); /* if the execution was stopped, results of the last node may be incomplete */
  CLV__TRY_GOTO(write_outputs(&state, args, error));
cleanup:
  for (uint32_t i = 0; state.owned != NULL && i < program->value_count; ++i) release_value(&state, i);
  clv__arena_finish(&state.arena);
  return status;
}
