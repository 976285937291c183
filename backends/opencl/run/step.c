/* One step of a variant in an instance: sets its arguments, creates its kernel object, enqueues and records it. */
#include "instance.h"

static cl_mem memory_at(const clv_instance *instance, const clv__opencl_location *at) {
  switch (at->where) {
    case CLV__OPENCL_AT_INPUT:
      return instance->inputs[at->index].memory;
    case CLV__OPENCL_AT_OUTPUT:
      return instance->outputs[at->index].memory;
    case CLV__OPENCL_AT_WEIGHT:
      return instance->weights[at->index]->memory;
    case CLV__OPENCL_AT_CONSTANT:
      return instance->variant->constant_parts[at->index];
    case CLV__OPENCL_AT_SCRATCH:
      return instance->scratch[at->index];
    case CLV__OPENCL_AT_KEPT:
      return instance->kept[at->index];
    case CLV__OPENCL_AT_NOWHERE:
      break;
  }
  return NULL;
}

/* Formats an error that names the kernel's node. */
static clv_status step_failed(const clv_instance *instance, const clv__opencl_step *step, const char *call, cl_int code,
                              clv_error *error) {
  clv_status status = clv__opencl_failed(error, call, code);
  if (step->node == CLV__OPENCL_NONE) return clv__error_prefix(error, status, "copy of an output");
  const clv_node_info *node = &instance->executable->nodes[step->node];
  return clv__error_prefix(error, status, "node '%s' (%s): kernel %s", node->name, node->op,
                           step->is_copy ? "copy" : step->kernel);
}

clv_status clv__opencl_step_argument(clv_device *device, const clv_instance *instance, const clv__opencl_step *step,
                                     cl_kernel kernel, uint32_t index, clv_error *error) {
  const clv__opencl_operand *operand = &step->operands[index];
  cl_int code;
  if (operand->means == CLV__OPENCL_MEANS_BYTES) {
    code = device->cl->clSetKernelArg(kernel, index, operand->size_bytes, operand->bytes);
  } else {
    cl_mem memory = memory_at(instance, &operand->at);
    code = device->cl->clSetKernelArg(kernel, index, sizeof memory, &memory);
  }
  return code == CL_SUCCESS ? CLV_OK : step_failed(instance, step, "clSetKernelArg", code, error);
}

bool clv__opencl_is_bound_later(const clv__opencl_operand *operand) {
  if (operand->means == CLV__OPENCL_MEANS_BYTES) return false;
  return operand->at.where == CLV__OPENCL_AT_INPUT || operand->at.where == CLV__OPENCL_AT_OUTPUT ||
         operand->at.where == CLV__OPENCL_AT_SCRATCH;
}

clv_status clv__opencl_step_kernel(clv_device *device, const clv_instance *instance, const clv__opencl_step *step, bool bound,
                                   cl_kernel *kernel, clv_error *error) {
  cl_int code;
  *kernel = device->cl->clCreateKernel(step->program->program, step->kernel, &code);
  if (*kernel == NULL) return step_failed(instance, step, "clCreateKernel", code, error);
  for (uint32_t i = 0; i < step->operand_count; ++i) {
    if (bound || !clv__opencl_is_bound_later(&step->operands[i]))
      CLV__TRY(clv__opencl_step_argument(device, instance, step, *kernel, i, error));
  }
  return CLV_OK;
}

clv_status clv__opencl_step_enqueue(clv_device *device, const clv_instance *instance, const clv__opencl_step *step,
                                    cl_kernel kernel, cl_command_queue queue, clv_error *error) {
  if (step->is_copy) {
    cl_int code = device->cl->clEnqueueCopyBuffer(queue, memory_at(instance, &step->operands[1].at),
                                                  memory_at(instance, &step->operands[0].at), step->from_offset, step->to_offset,
                                                  step->size_bytes, 0, NULL, NULL);
    return code == CL_SUCCESS ? CLV_OK : step_failed(instance, step, "clEnqueueCopyBuffer", code, error);
  }
  cl_int code = device->cl->clEnqueueNDRangeKernel(queue, kernel, step->dimensions, NULL, step->global,
                                                   step->has_local ? step->local : NULL, 0, NULL, NULL);
  return code == CL_SUCCESS ? CLV_OK : step_failed(instance, step, "clEnqueueNDRangeKernel", code, error);
}

clv_status clv__opencl_step_record(clv_device *device, const clv_instance *instance, const clv__opencl_step *step,
                                   cl_command_buffer_khr commands, cl_kernel *kernel, clv_error *error) {
  cl_int code;
  if (step->is_copy) {
    code = device->commands.copy(commands, NULL, memory_at(instance, &step->operands[1].at),
                                 memory_at(instance, &step->operands[0].at), step->from_offset, step->to_offset, step->size_bytes,
                                 0, NULL, NULL, NULL);
    return code == CL_SUCCESS ? CLV_OK : step_failed(instance, step, "clCommandCopyBufferKHR", code, error);
  }
  CLV__TRY(clv__opencl_step_kernel(device, instance, step, true, kernel, error));
  code = device->commands.kernel(commands, NULL, NULL, *kernel, step->dimensions, NULL, step->global,
                                 step->has_local ? step->local : NULL, 0, NULL, NULL, NULL);
  return code == CL_SUCCESS ? CLV_OK : step_failed(instance, step, "clCommandNDRangeKernelKHR", code, error);
}
