/* A program in one session: infers shapes, allocates memory for intermediate values, and executes. */
#include "template.h"

struct clv_instance {
  const clv_executable *program;
  clv_tensor *values;         /* indexed by value: type and address; each execution sets the addresses of inputs and outputs */
  clv_weight *const *weights; /* a copy of the host's list, stored after `values` */
  void *scratch;              /* memory for intermediate values */
};

static size_t round_up(size_t size_bytes) {
  return (size_bytes + CLV_HOST_ALIGNMENT - 1) / CLV_HOST_ALIGNMENT * CLV_HOST_ALIGNMENT;
}

/* Infers the types of all values for inputs of these shapes, and the bytes that intermediate values need. */
static clv_status infer(const clv_executable *program, const clv_tensor *inputs, clv_weight *const *weights, clv_tensor *values,
                        size_t *scratch_bytes, clv_error *error) {
  *scratch_bytes = 0;
  for (uint32_t v = 0; v < program->value_count; ++v) {
    const template_value *value = &program->values[v];
    if (value->source == FROM_INPUT) values[v] = inputs[value->index];
    if (value->source == FROM_WEIGHT) values[v] = weights[value->index]->tensor;
    if (value->source != FROM_STEP && clv_host_count(&values[v]) < 0) {
      return clv_host_fail(error, CLV_INVALID_ARGUMENT, "the shape of value %u is unknown or too large", v);
    }
  }
  for (uint32_t s = 0; s < program->step_count; ++s) {
    const template_step *step = &program->steps[s];
    const template_operator *op = &template_operators[step->op];
    clv_tensor operands[MAX_INPUTS] = {{.rank = 0}}, output = {.dtype = CLV_F32};
    for (uint32_t i = 0; i < op->input_count; ++i) operands[i] = values[step->inputs[i]];
    const bool fits = op->shape(operands, &output);
    const int64_t count = fits ? clv_host_count(&output) : -1;
    if (count < 0)
      return clv_host_fail(error, CLV_INVALID_ARGUMENT, "step %u, %s: its operands do not match, or its result is too large", s,
                           op->name);
    if ((uint64_t)count > SIZE_MAX / 4 / sizeof(float) - *scratch_bytes / sizeof(float)) {
      return clv_host_fail(error, CLV_OUT_OF_MEMORY, "step %u, %s: a result of %lld elements is too large", s, op->name,
                           (long long)count);
    }
    values[step->output] = output;
    if (program->values[step->output].output == NO_OUTPUT) *scratch_bytes += round_up((size_t)count * sizeof(float));
  }
  return CLV_OK;
}

/* Assigns addresses to the intermediate values. */
static void place(const clv_executable *program, clv_tensor *values, void *scratch) {
  char *at = scratch;
  for (uint32_t s = 0; s < program->step_count; ++s) {
    const uint32_t v = program->steps[s].output;
    if (program->values[v].output != NO_OUTPUT) continue;
    values[v].data = at;
    at += round_up((size_t)clv_host_count(&values[v]) * sizeof(float));
  }
}

static clv_status check_inputs(const clv_executable *program, const clv_tensor *inputs, uint32_t input_count, clv_error *error) {
  if (input_count != program->input_count) {
    return clv_host_fail(error, CLV_INVALID_ARGUMENT, "%u inputs given, but the program has %u", input_count,
                         program->input_count);
  }
  for (uint32_t i = 0; i < input_count; ++i) {
    if (inputs[i].dtype == CLV_F32) continue;
    return clv_host_fail(error, CLV_INVALID_ARGUMENT, "input %u: dtype %d is not f32", i, (int)inputs[i].dtype);
  }
  return CLV_OK;
}

/* Checks the weights. For a loaded program this is necessary, because its file may be for other weights than those that the
 * host passes. */
static clv_status check_weights(const clv_executable *program, clv_weight *const *weights, uint32_t weight_count,
                                clv_error *error) {
  if (weight_count != program->weight_count) {
    return clv_host_fail(error, CLV_INVALID_ARGUMENT, "%u weights given, but the program has %u", weight_count,
                         program->weight_count);
  }
  for (uint32_t i = 0; i < weight_count; ++i) {
    if (weights[i]->tensor.dtype == CLV_F32) continue;
    return clv_host_fail(error, CLV_INVALID_ARGUMENT, "weight '%.200s': dtype %d is not f32", program->weights[i],
                         (int)weights[i]->tensor.dtype);
  }
  return CLV_OK;
}

void template_instance_destroy(clv_device *device, clv_instance *instance) {
  const clv_host *host = device->base.host;
  if (instance == NULL) return;
  clv_host_release(host, instance->scratch);
  clv_host_release(host, instance->values);
  clv_host_release(host, instance);
}

/* Prepares the instance for other shapes. On failure the instance is unchanged. */
static clv_status prepare(clv_device *device, clv_instance *instance, const clv_tensor *inputs, clv_weight *const *weights,
                          clv_error *error) {
  const clv_host *host = device->base.host;
  const clv_executable *program = instance->program;
  const size_t value_bytes = round_up(program->value_count * sizeof(clv_tensor));
  size_t scratch_bytes;
  char *memory = clv_host_allocate(host, value_bytes + program->weight_count * sizeof *weights);
  if (memory == NULL)
    return clv_host_fail(error, CLV_OUT_OF_MEMORY, "not enough memory for an instance with %u values", program->value_count);
  clv_tensor *values = (clv_tensor *)(void *)memory;
  clv_status status = infer(program, inputs, weights, values, &scratch_bytes, error);
  void *scratch = NULL;
  if (status == CLV_OK) {
    scratch = host->allocator->allocate(host->allocator->user_data, scratch_bytes > 0 ? scratch_bytes : 1, CLV_HOST_ALIGNMENT);
    if (scratch == NULL)
      status = clv_host_fail(error, CLV_OUT_OF_MEMORY, "not enough memory for %zu bytes of intermediate values", scratch_bytes);
  }
  if (status != CLV_OK) {
    clv_host_release(host, memory);
    return status;
  }
  place(program, values, scratch);
  clv_weight **kept = (clv_weight **)(void *)(memory + value_bytes);
  for (uint32_t i = 0; i < program->weight_count; ++i) kept[i] = weights[i];
  clv_host_release(host, instance->scratch);
  clv_host_release(host, instance->values);
  instance->values = values;
  instance->weights = kept;
  instance->scratch = scratch;
  return CLV_OK;
}

clv_status template_instance_create(clv_device *device, clv_executable *executable, const clv_tensor *inputs,
                                    uint32_t input_count, clv_weight *const *weights, uint32_t weight_count,
                                    clv_instance **instance, clv_error *error) {
  *instance = NULL;
  clv_status status = check_inputs(executable, inputs, input_count, error);
  if (status == CLV_OK) status = check_weights(executable, weights, weight_count, error);
  if (status != CLV_OK) return status;
  clv_instance *made = clv_host_allocate(device->base.host, sizeof *made);
  if (made == NULL) return clv_host_fail(error, CLV_OUT_OF_MEMORY, "not enough memory for an instance");
  made->program = executable;
  status = prepare(device, made, inputs, weights, error);
  if (status != CLV_OK) {
    template_instance_destroy(device, made);
    return status;
  }
  *instance = made;
  return CLV_OK;
}

clv_status template_instance_resize(clv_device *device, clv_instance *instance, const clv_tensor *inputs, uint32_t input_count,
                                    clv_error *error) {
  const clv_status status = check_inputs(instance->program, inputs, input_count, error);
  return status != CLV_OK ? status : prepare(device, instance, inputs, instance->weights, error);
}

clv_status template_execute(clv_device *device, clv_instance *instance, clv_stream *stream, clv_execute_args *args,
                            clv_error *error) {
  const clv_executable *program = instance->program;
  (void)stream; /* all work is complete when this returns */
  if (args->input_count != program->input_count || args->output_count != program->output_count) {
    return clv_host_fail(error, CLV_INVALID_ARGUMENT, "%u inputs and %u outputs given, but the program has %u and %u",
                         args->input_count, args->output_count, program->input_count, program->output_count);
  }
  for (uint32_t v = 0; v < program->value_count; ++v) {
    const template_value *value = &program->values[v];
    if (value->source == FROM_INPUT) instance->values[v].data = clv_host_address(&args->inputs[value->index]);
    if (value->output != NO_OUTPUT) instance->values[v].data = clv_host_address(&args->outputs[value->output]);
  }
  for (uint32_t s = 0; s < program->step_count; ++s) {
    const template_step *step = &program->steps[s];
    const template_operator *op = &template_operators[step->op];
    clv_tensor operands[MAX_INPUTS];
    for (uint32_t i = 0; i < op->input_count; ++i) operands[i] = instance->values[step->inputs[i]];
    op->run(operands, &instance->values[step->output]);
  }
  if (device->trace) {
    char text[96];
    snprintf(text, sizeof text, "template: %u steps", program->step_count);
    device->base.host->log(device->base.host->self, 2, text);
  }
  return CLV_OK;
}
