/* A launch on the device thread. Operands are device addresses until the moment a kernel reads them; each is translated, and
 * checked, on its own. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "instance.h"
#include "speed.h"
#include "supports.h"

clv_status clv__vnpu_run_translate(const clv_instance *instance, uint64_t address, uint64_t size_bytes, void **data,
                                   clv_error *error) {
  static uint64_t nothing[8]; /* tensors without elements have an address too; nobody reads or writes it */
  *data = nothing;
  if (size_bytes == 0) return CLV_OK;
  *data = clv__vnpu_space_translate(instance->device->space, address, size_bytes);
  if (*data != NULL) return CLV_OK;
  return clv__error_set(error, CLV_DEVICE_ERROR, "%llu bytes at device address 0x%llx: no memory there",
                        (unsigned long long)size_bytes, (unsigned long long)address);
}

static float f16_round(float value) {
  return clv__f16_to_f32(clv__f32_to_f16(value));
}
static float bf16_round(float value) {
  return clv__bf16_to_f32(clv__f32_to_bf16(value));
}

/* A device that computes in 16 bits gives results that 16 bits can hold. */
static void round_results(clv_dtype compute, const clv_tensor *outputs, uint32_t count) {
  if (compute == CLV_F32) return;
  for (uint32_t i = 0; i < count; ++i) {
    size_t elements;
    if (outputs[i].dtype != CLV_F32 || !clv__tensor_count(&outputs[i], &elements)) continue;
    float *data = outputs[i].data;
    for (size_t k = 0; k < elements; ++k) data[k] = compute == CLV_F16 ? f16_round(data[k]) : bf16_round(data[k]);
  }
}

clv_status clv__vnpu_run_kernel(const clv_instance *instance, const clv__vnpu_instruction *instruction, void *scratch,
                                clv_error *error) {
  const clv_node_info *node = &instruction->node;
  if (instruction->kernel == NULL) {
    return clv__error_set(error, CLV_NOT_SUPPORTED,
                          "no kernel knows operator %s%s%s: a device that takes everything is for planning", node->domain,
                          node->domain[0] != '\0' ? "." : "", node->op);
  }
  clv__kernel_call call = clv__vnpu_call(node, instance->inputs, instance->outputs);
  call.scratch = scratch;
  call.error = error;
  CLV__TRY(clv__kernel_run(instruction->kernel, &call, instance->device->allocator));
  round_results(instance->device->spec.compute_dtype, instance->outputs, node->output_count);
  return CLV_OK;
}

/* ---- Static programs ---- */

/* A value's device address in this run. */
static uint64_t address_of(const clv__vnpu_run *run, uint32_t value) {
  const clv_instance *instance = run->instance;
  const clv_executable *p = instance->program;
  const clv__vnpu_location *at = &p->locations[value];
  switch (at->place) {
    case CLV__VNPU_INPUT:
      return run->operands[at->index].address;
    case CLV__VNPU_OUTPUT:
      return run->operands[p->input_count + at->index].address;
    case CLV__VNPU_WEIGHT:
      return instance->weights[at->index];
    case CLV__VNPU_CONSTANT:
      return p->constants + at->offset;
    case CLV__VNPU_SCRATCH:
      return instance->scratch + at->offset;
    case CLV__VNPU_NOWHERE:
      break;
  }
  return 0;
}

static clv_status fetch(const clv__vnpu_run *run, const uint32_t *values, uint32_t count, clv_tensor *tensors, clv_error *error) {
  const clv_executable *p = run->instance->program;
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t v = values[i];
    if (v == CLV_NO_VALUE) {
      tensors[i] = (clv_tensor){.rank = CLV_RANK_UNKNOWN};
      continue;
    }
    tensors[i] = p->types[v];
    CLV__TRY(clv__vnpu_run_translate(run->instance, address_of(run, v), p->sizes[v], &tensors[i].data, error));
  }
  return CLV_OK;
}

static clv_status run_instruction(const clv__vnpu_run *run, const clv__vnpu_instruction *instruction, clv_error *error) {
  const clv_instance *instance = run->instance;
  const clv_node_info *node = &instruction->node;
  CLV__TRY(fetch(run, node->inputs, node->input_count, instance->inputs, error));
  CLV__TRY(fetch(run, node->outputs, node->output_count, instance->outputs, error));
  void *scratch = NULL;
  if (instruction->scratch_bytes > 0) {
    uint64_t address = instance->scratch + instruction->scratch_offset;
    CLV__TRY(clv__vnpu_run_translate(instance, address, instruction->scratch_bytes, &scratch, error));
  }
  return clv__vnpu_run_kernel(instance, instruction, scratch, error);
}

static clv_status copy_outputs(const clv__vnpu_run *run, clv_error *error) {
  const clv_executable *p = run->instance->program;
  for (uint32_t c = 0; c < p->copy_count; ++c) {
    uint32_t v = p->copies[c].value;
    void *from, *to;
    CLV__TRY(clv__vnpu_run_translate(run->instance, address_of(run, v), p->sizes[v], &from, error));
    uint64_t address = run->operands[p->input_count + p->copies[c].output].address;
    CLV__TRY(clv__vnpu_run_translate(run->instance, address, p->sizes[v], &to, error));
    if (p->sizes[v] > 0) memmove(to, from, p->sizes[v]);
  }
  return CLV_OK;
}

static clv_status run_static(const clv__vnpu_run *run, clv_error *error) {
  const clv_instance *instance = run->instance;
  const clv_executable *p = instance->program;
  if (p->scratch_bytes > 0) {
    void *scratch;
    CLV__TRY(clv__vnpu_run_translate(instance, instance->scratch, p->scratch_bytes, &scratch, error));
    memset(scratch, CLV__VNPU_POISON, p->scratch_bytes);
  }
  for (uint32_t n = 0; n < p->node_count; ++n) {
    clv_status status = run_instruction(run, &p->instructions[n], error);
    if (status != CLV_OK) {
      const clv_node_info *node = &p->instructions[n].node;
      return clv__error_prefix(error, status, "node '%s' (%s)", node->name, node->op);
    }
  }
  return copy_outputs(run, error);
}

/* ---- Both ---- */

static void warn_when_late(clv_executable *p, uint64_t computed_ns, double seconds) {
  if (!p->device->spec.speed.given || p->warned || (double)computed_ns <= seconds * 1e9) return;
  p->warned = true;
  char text[240];
  snprintf(
      text, sizeof text,
      "virtual NPU: a launch of %u nodes computed for %.3f ms, its speed model says %.3f ms: times are those of this machine "
      "(a larger time_scale restores the proportions)",
      p->node_count, (double)computed_ns * 1e-6, seconds * 1e3);
  p->device->host->log(p->device->host->self, 1, text);
}

clv_status clv__vnpu_run_launch(clv__vnpu_launch *launch, clv_error *error) {
  clv__vnpu_run *run = (clv__vnpu_run *)launch;
  clv_executable *p = run->instance->program;
  uint64_t start = clv__vnpu_now_ns();
  double seconds = p->seconds;
  if (p->is_static)
    CLV__TRY(run_static(run, error));
  else
    CLV__TRY(clv__vnpu_run_dynamic(run, &seconds, error));
  warn_when_late(p, clv__vnpu_now_ns() - start, seconds);
  clv__vnpu_wait_until(start, seconds);
  return CLV_OK;
}
