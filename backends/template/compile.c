/* Compiles a partition to a program: a list of steps over numbered values. A backend for a real device would generate its code
 * here. */
#include "template.h"

clv_executable *template_program_create(const clv_host *host, const clv_executable *counts) {
  clv_executable *made = clv_host_allocate(host, sizeof *made);
  if (made == NULL) return NULL;
  *made = *counts;
  made->values = clv_host_allocate(host, made->value_count * sizeof *made->values);
  made->steps = clv_host_allocate(host, made->step_count * sizeof *made->steps);
  made->weights = clv_host_allocate(host, made->weight_count * sizeof *made->weights);
  if (made->values != NULL && made->steps != NULL && made->weights != NULL) return made;
  clv_host_release(host, made->values);
  clv_host_release(host, made->steps);
  clv_host_release(host, (void *)made->weights);
  clv_host_release(host, made);
  return NULL;
}

void template_executable_destroy(clv_device *device, clv_executable *executable) {
  const clv_host *host = device->base.host;
  if (executable == NULL) return;
  for (uint32_t i = 0; i < executable->weight_count; ++i) clv_host_release(host, executable->weights[i]);
  clv_host_release(host, executable->values);
  clv_host_release(host, executable->steps);
  clv_host_release(host, (void *)executable->weights);
  clv_host_release(host, executable);
}

/* Copies a weight's name, because the view is gone when the host asks for the name. Returns NULL if memory runs out. */
static char *copy_name(const clv_host *host, const char *name) {
  const size_t size_bytes = strlen(name) + 1;
  char *copy = clv_host_allocate(host, size_bytes);
  if (copy != NULL) memcpy(copy, name, size_bytes);
  return copy;
}

/* Makes every constant a weight, which is uploaded once, however many partitions read it. Returns false if memory runs out. */
static bool list_weights(const clv_host *host, const clv_graph_view *graph, clv_executable *program) {
  for (uint32_t v = 0, next = 0; v < program->value_count; ++v) {
    clv_value_info value = {.struct_size = sizeof value};
    host->graph_value(graph, v, &value);
    if (!value.is_constant) continue;
    program->values[v].source = FROM_WEIGHT;
    program->values[v].index = next;
    program->weights[next] = copy_name(host, value.name);
    if (program->weights[next++] == NULL) return false;
  }
  return true;
}

static clv_status add_step(const clv_host *host, const clv_graph_view *graph, uint32_t node, clv_executable *program,
                           clv_error *error) {
  clv_node_info info = {.struct_size = sizeof info};
  template_step *step = &program->steps[node];
  host->graph_node(graph, node, &info);
  step->op = template_find_operator(&info);
  if (step->op == template_operator_count) { /* the host should pass only nodes that supports() accepted */
    return clv_host_fail(error, CLV_NOT_SUPPORTED, "node '%.200s': operator %.60s is not supported", info.name, info.op);
  }
  for (uint32_t i = 0; i < info.input_count; ++i) step->inputs[i] = info.inputs[i];
  step->output = info.outputs[0];
  program->values[step->output].source = FROM_STEP;
  program->values[step->output].index = node;
  return CLV_OK;
}

clv_status template_compile(clv_device *device, const clv_graph_view *graph, const clv_compile_options *options,
                            clv_executable **executable, clv_error *error) {
  const clv_host *host = device->base.host;
  clv_executable counts = {.input_count = host->graph_input_count(graph),
                           .output_count = host->graph_output_count(graph),
                           .value_count = host->graph_value_count(graph),
                           .step_count = host->graph_node_count(graph)};
  (void)options; /* every operator has only one algorithm */
  *executable = NULL;
  for (uint32_t v = 0; v < counts.value_count; ++v) {
    clv_value_info value = {.struct_size = sizeof value};
    host->graph_value(graph, v, &value);
    counts.weight_count += value.is_constant;
  }
  clv_executable *program = template_program_create(host, &counts);
  if (program == NULL)
    return clv_host_fail(error, CLV_OUT_OF_MEMORY, "not enough memory for a program of %u steps", counts.step_count);
  for (uint32_t v = 0; v < counts.value_count; ++v) program->values[v].output = NO_OUTPUT;
  for (uint32_t i = 0; i < counts.input_count; ++i) {
    program->values[host->graph_input(graph, i)].source = FROM_INPUT;
    program->values[host->graph_input(graph, i)].index = i;
  }
  for (uint32_t i = 0; i < counts.output_count; ++i) program->values[host->graph_output(graph, i)].output = (int32_t)i;
  clv_status status = CLV_OK;
  if (!list_weights(host, graph, program))
    status = clv_host_fail(error, CLV_OUT_OF_MEMORY, "not enough memory for the names of weights");
  for (uint32_t n = 0; status == CLV_OK && n < counts.step_count; ++n) status = add_step(host, graph, n, program, error);
  if (status != CLV_OK) {
    template_executable_destroy(device, program);
    return status;
  }
  *executable = program;
  return CLV_OK;
}

void template_executable_info(clv_device *device, clv_executable *executable, clv_executable_info *info) {
  clv_executable_info filled = {
      .struct_size = info->struct_size,
      .weight_count = executable->weight_count,
      .weights = (const char *const *)executable->weights,
      .resident_bytes = sizeof *executable + executable->value_count * sizeof *executable->values +
                        executable->step_count * sizeof *executable->steps,
  };
  (void)device;
  memcpy(info, &filled, info->struct_size < sizeof filled ? info->struct_size : sizeof filled);
}
