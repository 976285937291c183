/* Runs a launch of a dynamic program. Before each node, infers the shapes of its outputs and allocates their memory. The host
 * runs nodes with bodies. */
#include <string.h>

#include "backends/common/bodies.h"
#include "backends/vnpu/spec/speed.h"
#include "base/error.h"
#include "instance.h"
#include "supports.h"

static bool is_held(const clv_instance *instance, uint32_t value) {
  return instance->blocks[value] != 0;
}

static void release_value(clv_instance *instance, uint32_t value) {
  if (!is_held(instance, value)) return;
  clv__vnpu_space_free(instance->device->space, instance->blocks[value], instance->block_bytes[value]);
  instance->blocks[value] = 0;
  instance->values[value].data = NULL;
}

static clv_status refuse_type(const clv_instance *instance, uint32_t value, const clv_tensor *made, const clv_tensor *bound,
                              clv_error *error) {
  char a[100], b[100];
  clv__tensor_text(made, a, sizeof a);
  clv__tensor_text(bound, b, sizeof b);
  return clv__error_set(error, CLV_INVALID_ARGUMENT, "output '%s' was computed as %s, but is bound as %s",
                        clv__vnpu_value_name(instance->program, value), a, b);
}

/* Finds memory for output `index` of the program, now that its `type` is known. */
static clv_status output_memory(clv__vnpu_run *run, uint32_t index, uint32_t value, const clv_tensor *type, void **data,
                                clv_error *error) {
  clv_instance *instance = run->list.instance;
  clv__vnpu_operand_at *at = &run->list.bindings[instance->program->input_count + index];
  if (at->waits) {
    CLV__TRY(clv__vnpu_output_allocate(&run->args, index, type, error));
    CLV__TRY(clv__vnpu_binding_resolve(&run->list, &run->args.outputs[index], value, at, error));
  }
  if (!clv__tensor_same_type(&at->type, type)) return refuse_type(instance, value, type, &at->type, error);
  return clv__vnpu_space_reach(instance->device->space, at->address, at->size_bytes, data, error);
}

/* Allocates memory for a computed value. */
static clv_status allocate_value(clv__vnpu_run *run, uint32_t value, const clv_tensor *type, clv_error *error) {
  clv_instance *instance = run->list.instance;
  const clv__vnpu_location *at = &instance->program->locations[value];
  clv_tensor *made = &instance->values[value];
  size_t size_bytes;
  *made = *type;
  made->data = NULL;
  if (type->dtype == CLV_STRING || !clv__tensor_size_bytes(type, &size_bytes)) {
    char text[100];
    clv__tensor_text(type, text, sizeof text);
    return clv__error_set(error, CLV_NOT_SUPPORTED, "value '%s' of type %s cannot be stored on the device",
                          clv__vnpu_value_name(instance->program, value), text);
  }
  if (at->kind == CLV__VNPU_OUTPUT) return output_memory(run, at->index, value, made, &made->data, error);
  CLV__TRY(clv__vnpu_space_allocate(instance->device->space, size_bytes, &instance->blocks[value], error));
  instance->block_bytes[value] = size_bytes;
  return clv__vnpu_space_reach(instance->device->space, instance->blocks[value], size_bytes, &made->data, error);
}

static clv_status bind_sources(clv__vnpu_run *run, clv_error *error) {
  clv_instance *instance = run->list.instance;
  const clv_executable *p = instance->program;
  for (uint32_t v = 0; v < p->value_count; ++v) {
    const clv__vnpu_location *at = &p->locations[v];
    uint64_t address;
    instance->values[v] = p->types[v];
    if (at->kind == CLV__VNPU_INPUT) {
      instance->values[v] = run->list.bindings[at->index].type;
      address = run->list.bindings[at->index].address;
    } else if (at->kind == CLV__VNPU_WEIGHT) {
      address = instance->weights[at->index];
    } else if (at->kind == CLV__VNPU_CONSTANT) {
      address = p->constants + at->offset;
    } else {
      continue;
    }
    size_t size_bytes = 0;
    clv__tensor_size_bytes(&instance->values[v], &size_bytes);
    CLV__TRY(clv__vnpu_operand_reach(p, v, address, size_bytes, &instance->values[v].data, error));
  }
  return CLV_OK;
}

/* Copies the outputs of a node with bodies, which the host has run, to the device's memory. Frees the host's copies, even on
 * failure. */
static clv_status take_results(clv__vnpu_run *run, const clv_node_info *node, clv_error *error) {
  clv_instance *instance = run->list.instance;
  clv_status status = CLV_OK;
  for (uint32_t i = 0; i < node->output_count; ++i) {
    clv_tensor *result = &instance->outputs[i];
    if (status == CLV_OK && node->outputs[i] != CLV_NO_VALUE) {
      size_t size_bytes = 0;
      status = allocate_value(run, node->outputs[i], result, error);
      clv__tensor_size_bytes(result, &size_bytes);
      if (status == CLV_OK && size_bytes > 0) memcpy(instance->values[node->outputs[i]].data, result->data, size_bytes);
    }
    if (result->dtype != CLV_DTYPE_NONE) clv__release(instance->device->host->allocator, result->data);
  }
  return status;
}

static clv_status run_body_node(clv__vnpu_run *run, uint32_t index, clv_error *error) {
  clv_instance *instance = run->list.instance;
  const clv_executable *p = instance->program;
  const clv_host *host = instance->device->host;
  CLV__TRY(clv__fast_evaluate(host, p->view, index, instance->inputs, instance->outputs, run->launch.stop, error));
  return take_results(run, &p->instructions[index].node, error);
}

static clv_status run_kernel_node(clv__vnpu_run *run, uint32_t index, double *seconds, clv_error *error) {
  clv_instance *instance = run->list.instance;
  const clv_executable *p = instance->program;
  const clv__vnpu_instruction *instruction = &p->instructions[index];
  const clv_node_info *node = &instruction->node;
  CLV__TRY(instance->device->host->infer_node(p->view, index, instance->inputs, instance->outputs, error));
  for (uint32_t i = 0; i < node->output_count; ++i) {
    uint32_t v = node->outputs[i];
    clv_tensor *output = &instance->outputs[i];
    if (v == CLV_NO_VALUE) {
      *output = (clv_tensor){.rank = CLV_RANK_UNKNOWN};
      continue;
    }
    CLV__TRY(allocate_value(run, v, output, error));
    *output = instance->values[v];
  }
  clv__kernel_call call = clv__vnpu_call(node, instance->inputs, instance->outputs);
  char reason[160] = "";
  if (!clv__kernel_accepts(instruction->kernel, &call, reason)) return clv__error_set(error, CLV_NOT_SUPPORTED, "%s", reason);
  *seconds += clv__vnpu_node_seconds(&p->device->spec.speed, node, instance->inputs, instance->outputs);
  size_t scratch_bytes = instruction->kernel->scratch_bytes != NULL ? instruction->kernel->scratch_bytes(&call) : 0;
  if (scratch_bytes == 0) return clv__vnpu_run_kernel(instance, instruction, NULL, run->launch.stop, error);
  uint64_t address;
  void *scratch;
  CLV__TRY(clv__vnpu_space_allocate(instance->device->space, scratch_bytes, &address, error));
  clv_status status = clv__vnpu_space_reach(instance->device->space, address, scratch_bytes, &scratch, error);
  if (status == CLV_OK) status = clv__vnpu_run_kernel(instance, instruction, scratch, run->launch.stop, error);
  clv__vnpu_space_free(instance->device->space, address, scratch_bytes);
  return status;
}

static clv_status run_node(clv__vnpu_run *run, uint32_t index, double *seconds, clv_error *error) {
  clv_instance *instance = run->list.instance;
  const clv_executable *p = instance->program;
  const clv_node_info *node = &p->instructions[index].node;
  for (uint32_t i = 0; i < node->input_count; ++i) {
    uint32_t v = node->inputs[i];
    instance->inputs[i] = v == CLV_NO_VALUE ? (clv_tensor){.rank = CLV_RANK_UNKNOWN} : instance->values[v];
  }
  clv_status status =
      p->instructions[index].kernel == NULL ? run_body_node(run, index, error) : run_kernel_node(run, index, seconds, error);
  if (status != CLV_OK) return clv__error_prefix(error, status, "node '%s' (%s)", node->name, node->op);
  for (uint32_t i = 0; i < node->input_count + node->output_count; ++i) {
    uint32_t v = i < node->input_count ? node->inputs[i] : node->outputs[i - node->input_count];
    if (v != CLV_NO_VALUE && p->last_uses[v] == index) release_value(instance, v);
  }
  return CLV_OK;
}

static clv_status copy_outputs(clv__vnpu_run *run, clv_error *error) {
  const clv_instance *instance = run->list.instance;
  const clv_executable *p = instance->program;
  for (uint32_t c = 0; c < p->copy_count; ++c) {
    const clv_tensor *from = &instance->values[p->copies[c].value];
    clv_tensor type = *from;
    type.data = NULL;
    void *to;
    size_t size_bytes = 0;
    CLV__TRY(output_memory(run, p->copies[c].output, p->copies[c].value, &type, &to, error));
    clv__tensor_size_bytes(from, &size_bytes);
    if (size_bytes > 0) memmove(to, from->data, size_bytes);
  }
  return CLV_OK;
}

clv_status clv__vnpu_run_dynamic(clv__vnpu_run *run, double *seconds, clv_error *error) {
  clv_instance *instance = run->list.instance;
  const clv_executable *p = instance->program;
  *seconds = clv__vnpu_launch_seconds(&p->device->spec.speed);
  clv_status status = bind_sources(run, error);
  for (uint32_t n = 0; n < p->node_count && status == CLV_OK; ++n) {
    status = clv__vnpu_check_stop(run->launch.stop, error);
    if (status == CLV_OK) status = run_node(run, n, seconds, error);
  }
  if (status == CLV_OK) status = copy_outputs(run, error);
  for (uint32_t v = 0; v < p->value_count; ++v) release_value(instance, v);
  return status;
}
