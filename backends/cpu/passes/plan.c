/* Makes a plan by running the passes in order: first with oneDNN and fusion. If that fails, tries again without fusion, then with
 * portable kernels alone. */
#include <stdio.h>

#include "plan.h"

static clv_status start(clv__cpu_plan *plan, clv_error *error) {
  const clv__cpu_program *program = plan->program;
  plan->node_count = program->node_count;
  plan->value_count = program->value_count;
  plan->nodes = clv__arena_allocate_zero(&plan->arena, plan->node_count, sizeof *plan->nodes);
  plan->values = clv__arena_allocate_zero(&plan->arena, plan->value_count, sizeof *plan->values);
  if (plan->nodes == NULL || plan->values == NULL) return clv__error_memory(error, plan->value_count * sizeof *plan->values);
  for (uint32_t i = 0; i < plan->node_count; ++i) {
    const clv__cpu_node *source = &program->nodes[i];
    clv__cpu_plan_node *node = &plan->nodes[i];
    node->source = source;
    node->input_count = source->input_count;
    node->output_count = source->output_count;
    node->inputs = clv__arena_copy(&plan->arena, source->inputs, source->input_count * sizeof *node->inputs);
    node->outputs = clv__arena_copy(&plan->arena, source->outputs, source->output_count * sizeof *node->outputs);
    if (node->inputs == NULL || node->outputs == NULL) return clv__error_memory(error, source->input_count);
  }
  for (uint32_t i = 0; i < plan->value_count; ++i) {
    plan->values[i].producer = plan->values[i].reader = plan->values[i].output = CLV__CPU_NONE;
  }
  for (uint32_t i = program->output_count; i-- > 0;) plan->values[program->outputs[i]].output = i;
  return CLV_OK;
}

static clv_status run_passes(clv__cpu_plan *plan, const clv_graph_view *graph, bool *complete, clv_error *error) {
  CLV__TRY(start(plan, error));
  CLV__TRY(clv__cpu_pass_infer(plan, graph, complete, error));
  if (!*complete) return CLV_OK;
  CLV__TRY(clv__cpu_pass_widen(plan, error));
  clv__cpu_pass_count(plan);
  clv__cpu_pass_recognise(plan);
  if (plan->fuse) {
    CLV__TRY(clv__cpu_pass_attention(plan, error));
    clv__cpu_pass_gelu(plan);
    clv__cpu_pass_count(plan);
  }
  CLV__TRY(clv__cpu_pass_fold(plan, error));
  clv__cpu_pass_count(plan);
  CLV__TRY(clv__cpu_pass_sums(plan, error));
  clv__cpu_pass_count(plan);
  if (plan->fuse) {
    CLV__TRY(clv__cpu_pass_quantise(plan, error));
    clv__cpu_pass_count(plan);
    clv__cpu_pass_shuffle(plan);
    clv__cpu_pass_count(plan);
    clv__cpu_pass_fuse(plan);
    clv__cpu_pass_count(plan);
    CLV__TRY(clv__cpu_pass_join(plan, error));
    clv__cpu_pass_count(plan);
  }
  clv__cpu_pass_precision(plan);
  const clv_status lowered = clv__cpu_pass_lower(plan, error);
  clv__cpu_constants_rest(plan->constants);
  CLV__TRY(lowered);
  return clv__cpu_pass_memory(plan, error);
}

/* Logs why a simpler plan is tried. */
static void log_retreat(const clv_device *device, const clv_error *error) {
  char line[320];
  if (device->host->log == NULL || error == NULL) return;
  snprintf(line, sizeof line, "%.40s: trying a simpler plan: %.200s", device->name, error->message);
  device->host->log(device->host->self, 3, line);
}

clv_status clv__cpu_plan_make(clv__cpu_program *program, clv__cpu_constants *constants, const clv_graph_view *graph,
                              const clv_tensor *inputs, clv__cpu_plan **plan, clv_error *error) {
  static const struct { bool onednn, fuse; } levels[] = {{true, true}, {true, false}, {false, false}};
  clv_device *device = program->device;
  *plan = NULL;
  if (program->has_body) return CLV_OK;
  clv_status status = CLV_OK;
  for (size_t i = 0; i < sizeof levels / sizeof levels[0]; ++i) {
    if ((levels[i].onednn && !device->onednn) || (levels[i].fuse && !device->fuse)) continue;
    clv__cpu_plan *made = clv__allocate_zero(device->allocator, sizeof *made);
    if (made == NULL) return clv__error_memory(error, sizeof *made);
    made->device = device;
    made->program = program;
    made->constants = constants;
    made->onednn = levels[i].onednn;
    made->fuse = levels[i].fuse;
    made->given = inputs;
    clv__arena_init(&made->arena, device->allocator);
    bool complete = false;
    status = run_passes(made, graph, &complete, error);
    if (status == CLV_OK && complete) {
      *plan = made;
      return CLV_OK;
    }
    clv__cpu_plan_destroy(made);
    if (status != CLV_NOT_SUPPORTED && status != CLV_DEVICE_ERROR) return status;
    log_retreat(device, error);
  }
  return status;
}

void clv__cpu_plan_destroy(clv__cpu_plan *plan) {
  if (plan == NULL) return;
  const clv_allocator *allocator = plan->device->allocator;
  for (size_t i = 0; i < plan->step_count; ++i) clv__dnn_primitive_release(plan->steps[i].primitive);
  clv__release(allocator, plan->steps);
  clv__release(allocator, plan->slots);
  clv__arena_finish(&plan->arena);
  clv__release(allocator, plan);
}
