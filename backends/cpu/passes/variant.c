/* Makes a variant by running the passes in order, with oneDNN and fusion. If that fails, runs them again without fusion, and if
 * that fails, too, with portable kernels alone. */
#include <stdio.h>

#include "variant.h"

static clv_status start(clv__cpu_variant *variant, clv_error *error) {
  const clv__cpu_program *program = variant->program;
  variant->node_count = program->node_count;
  variant->value_count = program->value_count;
  variant->nodes = clv__arena_allocate_zero(&variant->arena, variant->node_count, sizeof *variant->nodes);
  variant->values = clv__arena_allocate_zero(&variant->arena, variant->value_count, sizeof *variant->values);
  if (variant->nodes == NULL || variant->values == NULL)
    return clv__error_memory(error, variant->value_count * sizeof *variant->values);
  for (uint32_t i = 0; i < variant->node_count; ++i) {
    const clv__cpu_node *source = &program->nodes[i];
    clv__cpu_variant_node *node = &variant->nodes[i];
    node->source = source;
    node->input_count = source->input_count;
    node->output_count = source->output_count;
    node->inputs = clv__arena_copy(&variant->arena, source->inputs, source->input_count * sizeof *node->inputs);
    node->outputs = clv__arena_copy(&variant->arena, source->outputs, source->output_count * sizeof *node->outputs);
    if (node->inputs == NULL || node->outputs == NULL) return clv__error_memory(error, source->input_count);
  }
  for (uint32_t i = 0; i < variant->value_count; ++i) {
    variant->values[i].producer = variant->values[i].reader = variant->values[i].output = CLV__CPU_NONE;
  }
  for (uint32_t i = program->output_count; i-- > 0;) variant->values[program->outputs[i]].output = i;
  return CLV_OK;
}

static clv_status run_passes(clv__cpu_variant *variant, const clv_graph_view *graph, bool *complete, clv_error *error) {
  CLV__TRY(start(variant, error));
  CLV__TRY(clv__cpu_pass_infer(variant, graph, complete, error));
  if (!*complete) return CLV_OK;
  CLV__TRY(clv__cpu_pass_widen(variant, error));
  clv__cpu_pass_count(variant);
  clv__cpu_pass_recognise(variant);
  if (variant->fuse) {
    CLV__TRY(clv__cpu_pass_attention(variant, error));
    clv__cpu_pass_gelu(variant);
    clv__cpu_pass_count(variant);
  }
  CLV__TRY(clv__cpu_pass_fold(variant, error));
  clv__cpu_pass_count(variant);
  CLV__TRY(clv__cpu_pass_sums(variant, error));
  clv__cpu_pass_count(variant);
  if (variant->fuse) {
    CLV__TRY(clv__cpu_pass_quantise(variant, error));
    clv__cpu_pass_count(variant);
    clv__cpu_pass_shuffle(variant);
    clv__cpu_pass_count(variant);
    clv__cpu_pass_fuse(variant);
    clv__cpu_pass_count(variant);
    CLV__TRY(clv__cpu_pass_join(variant, error));
    clv__cpu_pass_count(variant);
  }
  clv__cpu_pass_precision(variant);
  const clv_status lowered = clv__cpu_pass_lower(variant, error);
  clv__cpu_constants_rest(variant->constants);
  CLV__TRY(lowered);
  return clv__cpu_pass_memory(variant, error);
}

/* Logs why a variant could not be made. */
static void log_retreat(const clv_device *device, const clv_error *error) {
  char line[320];
  if (device->host->log == NULL || error == NULL) return;
  snprintf(line, sizeof line, "%.40s: a variant of a partition cannot be made, trying a simpler variant, if any: %.200s",
           device->name, error->message);
  device->host->log(device->host->self, 3, line);
}

clv_status clv__cpu_variant_make(clv__cpu_program *program, clv__cpu_constants *constants, const clv_graph_view *graph,
                                 const clv_tensor *inputs, clv__cpu_variant **variant, clv_error *error) {
  static const struct { bool onednn, fuse; } levels[] = {{true, true}, {true, false}, {false, false}};
  clv_device *device = program->device;
  *variant = NULL;
  if (program->has_body) return CLV_OK;
  clv_status status = CLV_OK;
  for (size_t i = 0; i < sizeof levels / sizeof levels[0]; ++i) {
    if ((levels[i].onednn && !device->onednn) || (levels[i].fuse && !device->fuse)) continue;
    clv__cpu_variant *made = clv__allocate_zero(device->allocator, sizeof *made);
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
      *variant = made;
      return CLV_OK;
    }
    clv__cpu_variant_destroy(made);
    if (status != CLV_NOT_SUPPORTED && status != CLV_DEVICE_ERROR) return status;
    log_retreat(device, error);
  }
  return status;
}

void clv__cpu_variant_destroy(clv__cpu_variant *variant) {
  if (variant == NULL) return;
  const clv_allocator *allocator = variant->device->allocator;
  for (size_t i = 0; i < variant->step_count; ++i) clv__dnn_primitive_release(variant->steps[i].primitive);
  clv__release(allocator, variant->steps);
  clv__release(allocator, variant->slots);
  clv__arena_finish(&variant->arena);
  clv__release(allocator, variant);
}
