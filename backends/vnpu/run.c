/* Runs a launch on the compute engine. The addresses of a node's operands are translated to host pointers, and checked again,
 * just before its kernel runs. */
#include <stdio.h>
#include <string.h>

#include "backends/vnpu/spec/speed.h"
#include "base/clock.h"
#include "base/error.h"
#include "instance.h"
#include "supports.h"

static float f16_round(float value) {
  return clv__f16_to_f32(clv__f32_to_f16(value));
}
static float bf16_round(float value) {
  return clv__bf16_to_f32(clv__f32_to_bf16(value));
}

/* Rounds f32 results to the compute dtype, because a device that computes in 16 bits returns only values of that dtype. */
static void round_results(clv_dtype compute, const clv_tensor *outputs, uint32_t count) {
  if (compute == CLV_F32) return;
  for (uint32_t i = 0; i < count; ++i) {
    size_t elements;
    if (outputs[i].dtype != CLV_F32 || !clv__tensor_count(&outputs[i], &elements)) continue;
    float *data = outputs[i].data;
    for (size_t k = 0; k < elements; ++k) data[k] = compute == CLV_F16 ? f16_round(data[k]) : bf16_round(data[k]);
  }
}

clv_status clv__vnpu_check_stop(const clv__stop *stop, clv_error *error) {
  return clv__is_stopped(stop) ? clv__error_set(error, CLV_CANCELLED, "it was stopped") : CLV_OK;
}

clv_status clv__vnpu_run_kernel(const clv_instance *instance, const clv__vnpu_instruction *instruction, void *scratch,
                                const clv__stop *stop, clv_error *error) {
  const clv_node_info *node = &instruction->node;
  if (instruction->kernel == NULL) {
    return clv__error_set(error, CLV_NOT_SUPPORTED,
                          "no kernel for operator %s%s%s: a device description that supports every operator is only for planning",
                          node->domain, node->domain[0] != '\0' ? "." : "", node->op);
  }
  clv__kernel_call call = clv__vnpu_call(node, instance->inputs, instance->outputs);
  call.scratch = scratch;
  call.error = error;
  call.stop = stop;
  clv_status status = clv__kernel_run(instruction->kernel, &call, instance->device->allocator);
  /* Checked before the kernel's status: a stopped kernel leaves its outputs incomplete, and may fail because of that. */
  CLV__TRY(clv__vnpu_check_stop(stop, error));
  CLV__TRY(status);
  round_results(instance->device->spec.compute_dtype, instance->outputs, node->output_count);
  return CLV_OK;
}

/* ---- Static programs ---- */

static clv_status fetch(const clv_instance *instance, const uint32_t *values, uint32_t count, const uint64_t *addresses,
                        clv_tensor *tensors, clv_error *error) {
  const clv_executable *p = instance->program;
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t v = values[i];
    if (v == CLV_NO_VALUE) {
      tensors[i] = (clv_tensor){.rank = CLV_RANK_UNKNOWN};
      continue;
    }
    tensors[i] = p->types[v];
    CLV__TRY(clv__vnpu_operand_reach(p, v, addresses[i], p->sizes[v], &tensors[i].data, error));
  }
  return CLV_OK;
}

static clv_status run_instruction(const clv_instance *instance, const clv__vnpu_instruction *instruction,
                                  const uint64_t *addresses, const clv__stop *stop, clv_error *error) {
  const clv_node_info *node = &instruction->node;
  const uint64_t *outputs = addresses + node->input_count;
  CLV__TRY(fetch(instance, node->inputs, node->input_count, addresses, instance->inputs, error));
  CLV__TRY(fetch(instance, node->outputs, node->output_count, outputs, instance->outputs, error));
  void *scratch = NULL;
  if (instruction->scratch_bytes > 0) {
    CLV__TRY(clv__vnpu_operand_reach(instance->program, CLV_NO_VALUE, outputs[node->output_count], instruction->scratch_bytes,
                                     &scratch, error));
  }
  return clv__vnpu_run_kernel(instance, instruction, scratch, stop, error);
}

static clv_status copy_outputs(const clv__vnpu_list *list, clv_error *error) {
  const clv_executable *p = list->instance->program;
  for (uint32_t c = 0; c < p->copy_count; ++c) {
    uint64_t size_bytes = p->sizes[p->copies[c].value];
    const uint64_t *addresses = &list->addresses[p->first_copy + 2 * c];
    void *from, *to;
    CLV__TRY(clv__vnpu_space_reach(list->space, addresses[0], size_bytes, &from, error));
    CLV__TRY(clv__vnpu_space_reach(list->space, addresses[1], size_bytes, &to, error));
    if (size_bytes > 0) memmove(to, from, size_bytes);
  }
  return CLV_OK;
}

static clv_status run_static(const clv__vnpu_list *list, const clv__stop *stop, clv_error *error) {
  const clv_instance *instance = list->instance;
  const clv_executable *p = instance->program;
  if (p->scratch_bytes > 0) {
    void *scratch;
    CLV__TRY(clv__vnpu_space_reach(instance->device->space, list->scratch, p->scratch_bytes, &scratch, error));
    memset(scratch, CLV__VNPU_POISON, p->scratch_bytes);
  }
  for (uint32_t n = 0; n < p->node_count; ++n) {
    const clv__vnpu_instruction *instruction = &p->instructions[n];
    CLV__TRY(clv__vnpu_check_stop(stop, error));
    clv_status status = run_instruction(instance, instruction, &list->addresses[instruction->first_operand], stop, error);
    if (status != CLV_OK) {
      return clv__error_prefix(error, status, "node '%s' (%s)", instruction->node.name, instruction->node.op);
    }
  }
  return copy_outputs(list, error);
}

/* ---- Static and dynamic programs ---- */

static void warn_when_late(clv_executable *p, uint64_t computed_ns, double seconds) {
  if (!p->device->spec.speed.given || p->warned || (double)computed_ns <= seconds * 1e9) return;
  p->warned = true;
  char text[240];
  snprintf(
      text, sizeof text,
      "virtual NPU: a launch of %u nodes took %.3f ms, longer than the %.3f ms of its speed model, so it ran slower than the "
      "model says; raise time_scale to keep times in proportion",
      p->node_count, (double)computed_ns * 1e-6, seconds * 1e3);
  p->device->host->log(p->device->host->self, 1, text);
}

clv_status clv__vnpu_run_list(const clv__vnpu_list *list, const clv__stop *stop, clv_error *error) {
  clv_executable *p = list->instance->program;
  if (!p->device->spec.speed.given) return run_static(list, stop, error);
  uint64_t start = clv__clock_ns();
  CLV__TRY(run_static(list, stop, error));
  warn_when_late(p, clv__clock_ns() - start, p->seconds);
  return CLV_OK;
}

clv_status clv__vnpu_run_launch(clv__vnpu_launch *launch, double *seconds, clv_error *error) {
  clv__vnpu_run *run = (clv__vnpu_run *)launch;
  clv_executable *p = run->list.instance->program;
  if (p->is_static) {
    *seconds = p->seconds;
    return clv__vnpu_run_list(&run->list, launch->stop, error);
  }
  uint64_t start = clv__clock_ns();
  CLV__TRY(clv__vnpu_run_dynamic(run, seconds, error));
  warn_when_late(p, clv__clock_ns() - start, *seconds);
  return CLV_OK;
}
