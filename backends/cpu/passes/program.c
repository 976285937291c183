/* Reads a view into a program: one pass over values, one over nodes. */
#include "program.h"

#include "backends/common/kernels.h"

static char *copy_text(clv__arena *arena, const char *text) {
  return clv__arena_string(arena, text, strlen(text));
}

/* Makes a dense aligned copy of a tensor; for strings, including their bytes. */
static clv_status copy_tensor(clv__arena *arena, const clv_tensor *from, clv_tensor *to, clv_error *error) {
  *to = *from;
  size_t count, size_bytes;
  if (!clv__tensor_count(from, &count) || !clv__tensor_size_bytes(from, &size_bytes)) {
    return clv__error_set(error, CLV_INVALID_MODEL, "a constant has no static shape");
  }
  to->data = clv__arena_allocate_data(arena, size_bytes);
  if (to->data == NULL) return clv__error_memory(error, size_bytes);
  if (size_bytes > 0) memcpy(to->data, from->data, size_bytes);
  if (from->dtype != CLV_STRING) return CLV_OK;
  clv_string *strings = to->data;
  for (size_t i = 0; i < count; ++i) {
    strings[i].data = clv__arena_string(arena, strings[i].data, strings[i].size_bytes);
    if (strings[i].data == NULL) return clv__error_memory(error, strings[i].size_bytes);
  }
  return CLV_OK;
}

static clv_status copy_attribute(clv__arena *arena, const clv_attribute *from, clv_attribute *to, clv_error *error) {
  *to = *from;
  to->graph = NULL;
  to->name = copy_text(arena, from->name);
  if (to->name == NULL) return clv__error_memory(error, strlen(from->name));
  if (from->ints != NULL) to->ints = clv__arena_copy(arena, from->ints, from->count * sizeof *from->ints);
  if (from->floats != NULL) to->floats = clv__arena_copy(arena, from->floats, from->count * sizeof *from->floats);
  if ((from->ints != NULL && to->ints == NULL) || (from->floats != NULL && to->floats == NULL)) {
    return clv__error_memory(error, from->count);
  }
  if (from->strings != NULL) {
    clv_string *strings = clv__arena_allocate_zero(arena, from->count, sizeof *strings);
    if (strings == NULL) return clv__error_memory(error, from->count * sizeof *strings);
    for (size_t i = 0; i < from->count; ++i) {
      strings[i].size_bytes = from->strings[i].size_bytes;
      strings[i].data = clv__arena_string(arena, from->strings[i].data, from->strings[i].size_bytes);
      if (strings[i].data == NULL) return clv__error_memory(error, strings[i].size_bytes);
    }
    to->strings = strings;
  }
  if (from->tensor != NULL) {
    clv_tensor *tensor = clv__arena_allocate_zero(arena, 1, sizeof *tensor);
    if (tensor == NULL) return clv__error_memory(error, sizeof *tensor);
    CLV__TRY(copy_tensor(arena, from->tensor, tensor, error));
    to->tensor = tensor;
  }
  return CLV_OK;
}

static clv_status read_value(clv__cpu_program *program, const clv_graph_view *graph, uint32_t index, clv_error *error) {
  const clv_host *host = program->device->host;
  clv_value_info info;
  memset(&info, 0, sizeof info);
  info.struct_size = sizeof info;
  host->graph_value(graph, index, &info);
  clv__cpu_value *value = &program->values[index];
  value->name = copy_text(&program->arena, info.name != NULL ? info.name : "");
  if (value->name == NULL) return clv__error_memory(error, strlen(info.name));
  value->type = info.type;
  value->is_constant = info.type.data != NULL;
  if (!value->is_constant) return CLV_OK;
  size_t size_bytes;
  if (!clv__tensor_size_bytes(&info.type, &size_bytes)) {
    return clv__error_set(error, CLV_INVALID_MODEL, "value '%s': a constant has no static shape", value->name);
  }
  if (size_bytes <= CLV__CPU_SMALL_BYTES || info.type.dtype == CLV_STRING) {
    return copy_tensor(&program->arena, &info.type, &value->type, error);
  }
  value->is_borrowed = true;
  return CLV_OK;
}

static clv_status read_node(clv__cpu_program *program, const clv_graph_view *graph, uint32_t index, clv_error *error) {
  clv__arena *arena = &program->arena;
  clv_node_info info;
  memset(&info, 0, sizeof info);
  info.struct_size = sizeof info;
  program->device->host->graph_node(graph, index, &info);
  clv__cpu_node *node = &program->nodes[index];
  node->name = copy_text(arena, info.name);
  node->op = copy_text(arena, info.op);
  node->domain = copy_text(arena, info.domain);
  node->opset = info.opset;
  node->input_count = info.input_count;
  node->output_count = info.output_count;
  node->inputs = clv__arena_copy(arena, info.inputs, info.input_count * sizeof *info.inputs);
  node->outputs = clv__arena_copy(arena, info.outputs, info.output_count * sizeof *info.outputs);
  clv_attribute *attributes = clv__arena_allocate_zero(arena, info.attribute_count, sizeof *attributes);
  if (node->name == NULL || node->op == NULL || node->domain == NULL || node->inputs == NULL || node->outputs == NULL ||
      attributes == NULL) {
    return clv__error_memory(error, info.attribute_count * sizeof *attributes);
  }
  uint32_t kept = 0;
  for (uint32_t i = 0; i < info.attribute_count; ++i) {
    if (info.attributes[i].kind == CLV_ATTRIBUTE_GRAPH) {
      node->has_body = program->has_body = true;
      continue;
    }
    CLV__TRY(copy_attribute(arena, &info.attributes[i], &attributes[kept++], error));
  }
  node->attributes = (clv__attributes){attributes, kept};
  if (node->has_body) return CLV_OK;
  node->kernel = clv__fast_kernel_find(node->domain, node->op);
  if (node->kernel != NULL) return CLV_OK;
  return clv__error_set(error, CLV_NOT_SUPPORTED, "node '%s': no kernel for operator %s%s%s", node->name, node->domain,
                        node->domain[0] != 0 ? "." : "", node->op);
}

/* Marks the result of dequantising constant integer weights as a constant that is computed on demand. Steps on integers never
 * need its bytes. */
static void mark_computed(clv__cpu_program *program, const clv__cpu_node *node) {
  if (strcmp(node->op, "DequantizeLinear") != 0 || node->domain[0] != 0 || node->kernel == NULL || node->output_count != 1)
    return;
  if (node->input_count < 2 || node->inputs[0] == CLV__CPU_NONE || node->outputs[0] == CLV__CPU_NONE) return;
  for (uint32_t i = 0; i < node->input_count; ++i) {
    if (node->inputs[i] != CLV__CPU_NONE && !program->values[node->inputs[i]].is_constant) return;
  }
  const clv_dtype dtype = program->values[node->inputs[0]].type.dtype;
  clv__cpu_value *made = &program->values[node->outputs[0]];
  size_t count;
  if ((dtype != CLV_I8 && dtype != CLV_U8) || made->type.dtype != CLV_F32 || node->input_count > 3) return;
  if (made->is_constant || !clv__tensor_is_static(&made->type) || !clv__tensor_count(&made->type, &count) || count == 0) return;
  made->is_constant = made->is_borrowed = true;
  made->computed = node;
}

static clv_status read_all(clv__cpu_program *program, const clv_graph_view *graph, clv_error *error) {
  const clv_host *host = program->device->host;
  clv__arena *arena = &program->arena;
  program->node_count = host->graph_node_count(graph);
  program->value_count = host->graph_value_count(graph);
  program->input_count = host->graph_input_count(graph);
  program->output_count = host->graph_output_count(graph);
  program->nodes = clv__arena_allocate_zero(arena, program->node_count, sizeof *program->nodes);
  program->values = clv__arena_allocate_zero(arena, program->value_count, sizeof *program->values);
  program->inputs = clv__arena_allocate_zero(arena, program->input_count, sizeof *program->inputs);
  program->outputs = clv__arena_allocate_zero(arena, program->output_count, sizeof *program->outputs);
  if (program->nodes == NULL || program->values == NULL || program->inputs == NULL || program->outputs == NULL) {
    return clv__error_memory(error, program->value_count * sizeof *program->values);
  }
  for (uint32_t i = 0; i < program->value_count; ++i) CLV__TRY(read_value(program, graph, i, error));
  for (uint32_t i = 0; i < program->node_count; ++i) CLV__TRY(read_node(program, graph, i, error));
  for (uint32_t i = 0; i < program->node_count; ++i) mark_computed(program, &program->nodes[i]);
  for (uint32_t i = 0; i < program->input_count; ++i) program->inputs[i] = host->graph_input(graph, i);
  for (uint32_t i = 0; i < program->output_count; ++i) program->outputs[i] = host->graph_output(graph, i);
  /* Keep the partition as ONNX, because the view is gone after compile(). Omit large constants: only types and bodies are read
   * from this copy. */
  if (host->graph_to_onnx != NULL && host->graph_open != NULL) {
    CLV__TRY(host->graph_to_onnx(graph, 1024, &program->model, &program->model_bytes, error));
  }
  return CLV_OK;
}

clv_status clv__cpu_program_read(clv__cpu_program *program, clv_device *device, const clv_graph_view *graph, clv_error *error) {
  memset(program, 0, sizeof *program);
  program->device = device;
  clv__arena_init(&program->arena, device->allocator);
  clv_status status = read_all(program, graph, error);
  if (status != CLV_OK) clv__cpu_program_finish(program);
  return status;
}

void clv__cpu_program_finish(clv__cpu_program *program) {
  if (program->device == NULL) return;
  const clv_host *host = program->device->host;
  if (program->view != NULL) host->graph_close(host->self, program->view);
  clv__release(program->device->allocator, program->model);
  clv__arena_finish(&program->arena);
  memset(program, 0, sizeof *program);
}

bool clv__cpu_program_is_given(const clv__cpu_program *program, const clv__cpu_node *node) {
  for (uint32_t i = 0; i < node->output_count; ++i) {
    if (node->outputs[i] != CLV__CPU_NONE && !program->values[node->outputs[i]].is_constant) return false;
  }
  return true;
}

void clv__cpu_program_detach(clv__cpu_program *program) {
  for (uint32_t i = 0; i < program->value_count; ++i) {
    if (program->values[i].is_borrowed) program->values[i].type.data = NULL;
  }
}

clv_status clv__cpu_program_open(clv__cpu_program *program, clv_error *error) {
  if (program->view != NULL) return CLV_OK;
  const clv_host *host = program->device->host;
  if (program->model == NULL) {
    return clv__error_set(error, CLV_NOT_SUPPORTED,
                          "the host cannot serialise a partition, so all shapes must be known at compile time and not change");
  }
  CLV__TRY(host->graph_open(host->self, program->model, program->model_bytes, &program->view, error));
  if (host->graph_node_count(program->view) == program->node_count) return CLV_OK;
  host->graph_close(host->self, program->view);
  program->view = NULL;
  return clv__error_set(error, CLV_INTERNAL_ERROR, "the reopened partition does not have the %u nodes of the compiled one",
                        program->node_count);
}
