/* Builds a program from a graph: see program.h. The graph may come from an untrusted file, so everything is checked. */
#include "program.h"

#include <string.h>

#include "backends/common/fold.h"
#include "backends/common/host.h"
#include "backends/common/kernels.h"
#include "backends/vnpu/spec/speed.h"
#include "base/error.h"
#include "supports.h"

const char *clv__vnpu_value_name(const clv_executable *p, uint32_t value) {
  clv_value_info info = {.struct_size = sizeof info};
  p->device->host->graph_value(p->view, value, &info);
  return info.name;
}

static clv_status allocate_tables(clv_executable *p, clv_error *error) {
  clv__arena *arena = &p->arena;
  uint32_t io = p->input_count + p->weight_count;
  p->instructions = clv__arena_allocate_zero(arena, p->node_count, sizeof *p->instructions);
  p->types = clv__arena_allocate_zero(arena, p->value_count, sizeof *p->types);
  p->sizes = clv__arena_allocate_zero(arena, p->value_count, sizeof *p->sizes);
  p->locations = clv__arena_allocate_zero(arena, p->value_count, sizeof *p->locations);
  p->last_uses = clv__arena_allocate_zero(arena, p->value_count, sizeof *p->last_uses);
  p->inputs = clv__arena_allocate_zero(arena, io, sizeof *p->inputs);
  p->outputs = clv__arena_allocate_zero(arena, p->output_count, sizeof *p->outputs);
  p->weight_names = clv__arena_allocate_zero(arena, p->weight_count, sizeof *p->weight_names);
  p->copies = clv__arena_allocate_zero(arena, p->output_count, sizeof *p->copies);
  if (p->instructions == NULL || p->types == NULL || p->sizes == NULL || p->locations == NULL || p->last_uses == NULL ||
      p->inputs == NULL || p->outputs == NULL || p->weight_names == NULL || p->copies == NULL) {
    return clv__error_memory(error, p->value_count * sizeof *p->types);
  }
  p->weights = p->inputs + p->input_count;
  for (uint32_t v = 0; v < p->value_count; ++v) p->types[v].rank = CLV_RANK_UNKNOWN;
  return CLV_OK;
}

static clv_status refuse_value(const clv_executable *p, uint32_t value, const char *what, clv_error *error) {
  return clv__error_set(error, CLV_INVALID_MODEL, "value '%s' %s", clv__vnpu_value_name(p, value), what);
}

static clv_status check_static(const clv_executable *p, uint32_t value, clv_error *error) {
  size_t size_bytes;
  if (p->types[value].dtype == CLV_STRING)
    return refuse_value(p, value, "contains strings, which device memory cannot hold", error);
  if (!clv__tensor_size_bytes(&p->types[value], &size_bytes))
    return refuse_value(p, value, "has an unknown size, or is too large", error);
  return CLV_OK;
}

/* Sets the locations of inputs, weights and constants. */
static clv_status place_sources(clv_executable *p, const clv_tensor *input_types, clv_error *error) {
  const clv_host *host = p->device->host;
  for (uint32_t i = 0; i < p->input_count + p->weight_count; ++i) {
    uint32_t v = host->graph_input(p->view, i);
    if (p->locations[v].kind != CLV__VNPU_NOWHERE) return refuse_value(p, v, "appears twice as an input", error);
    p->inputs[i] = v;
    if (i < p->input_count) {
      p->types[v] = input_types[i];
      p->locations[v] = (clv__vnpu_location){.kind = CLV__VNPU_INPUT, .index = i};
    } else {
      clv_value_info info = {.struct_size = sizeof info};
      host->graph_value(p->view, v, &info);
      p->types[v] = info.type;
      CLV__TRY(check_static(p, v, error));
      p->locations[v] = (clv__vnpu_location){.kind = CLV__VNPU_WEIGHT, .index = i - p->input_count};
      p->weight_names[i - p->input_count] = info.name;
    }
    p->types[v].data = NULL;
  }
  for (uint32_t v = 0; v < p->value_count; ++v) {
    clv_value_info info = {.struct_size = sizeof info};
    host->graph_value(p->view, v, &info);
    if (info.type.data == NULL || p->locations[v].kind != CLV__VNPU_NOWHERE) continue;
    p->types[v] = info.type; /* keeps its data until inference is complete */
    CLV__TRY(check_static(p, v, error));
    size_t size_bytes = 0, end;
    clv__tensor_size_bytes(&info.type, &size_bytes);
    p->locations[v] = (clv__vnpu_location){.kind = CLV__VNPU_CONSTANT, .offset = p->constant_bytes};
    if (!clv__add(p->constant_bytes, size_bytes, &end) || end > SIZE_MAX / 2) return clv__error_memory(error, SIZE_MAX);
    p->constant_bytes = clv__align_up(end, p->device->spec.alignment_bytes);
  }
  return CLV_OK;
}

/* Reads the type that the graph declares for a value. It is used for the outputs of operators that Cleave does not know. */
static void declared_type(const clv_executable *p, uint32_t value, clv_tensor *type) {
  clv_value_info info = {.struct_size = sizeof info};
  p->device->host->graph_value(p->view, value, &info);
  *type = info.type;
  for (int32_t d = 0; d < type->rank; ++d) {
    if (type->dims[d] < 0) type->dims[d] = CLV_DIM_UNKNOWN;
  }
}

static void fetch_types(const clv_executable *p, const uint32_t *values, uint32_t count, clv_tensor *types) {
  for (uint32_t i = 0; i < count; ++i) {
    if (values[i] == CLV_NO_VALUE)
      types[i] = (clv_tensor){.rank = CLV_RANK_UNKNOWN};
    else
      types[i] = p->types[values[i]];
  }
}

/* If the constant's data is unaligned in the ONNX model, copies it to aligned memory. */
static clv_status align(clv_executable *p, clv_tensor *constant, clv_error *error) {
  size_t size_bytes, element = clv_dtype_size_bytes(constant->dtype);
  if (constant->data == NULL || element < 2 || (uintptr_t)constant->data % element == 0) return CLV_OK;
  if (!clv__tensor_size_bytes(constant, &size_bytes)) return clv__error_memory(error, SIZE_MAX);
  void *copy = clv__arena_allocate_data(&p->arena, size_bytes);
  if (copy == NULL) return clv__error_memory(error, size_bytes);
  if (size_bytes > 0) memcpy(copy, constant->data, size_bytes);
  constant->data = copy;
  return CLV_OK;
}

/* Computes small outputs that depend only on shapes and constants, because shapes of later nodes may depend on them. They are
 * kept until inference is complete. The node still runs in every launch. */
static clv_status fold(clv_executable *p, const clv__vnpu_instruction *instruction, clv_tensor *inputs, clv_tensor *outputs,
                       clv_error *error) {
  const clv_node_info *node = &instruction->node;
  clv__kernel_call call = clv__vnpu_call(node, inputs, outputs);
  call.error = error;
  for (uint32_t i = 0; i < call.input_count; ++i) {
    size_t size_bytes;
    if (node->inputs[i] == CLV_NO_VALUE) continue;
    if (!clv__tensor_size_bytes(&inputs[i], &size_bytes)) return CLV_OK; /* its size is unknown; Shape and Size need it */
    if (inputs[i].data != NULL && size_bytes > CLV__VNPU_INLINE_BYTES) return CLV_OK; /* too large for a shape, and costly */
  }
  if (!clv__fold_is_possible(node->domain, &call)) return CLV_OK;
  for (uint32_t i = 0; i < call.input_count; ++i) CLV__TRY(align(p, &inputs[i], error));
  CLV__TRY(clv__fold(instruction->kernel, &call, inputs, outputs, &p->arena, p->device->allocator));
  for (uint32_t i = 0; i < node->output_count; ++i) {
    if (node->outputs[i] != CLV_NO_VALUE) p->types[node->outputs[i]].data = outputs[i].data;
  }
  return CLV_OK;
}

/* Infers the types of a node's outputs, and finds its kernel. `inputs` and `outputs` are work space for the node's operands. */
static clv_status infer_node(clv_executable *p, uint32_t index, clv_tensor *inputs, clv_tensor *outputs, clv_error *error) {
  const clv_host *host = p->device->host;
  clv__vnpu_instruction *instruction = &p->instructions[index];
  const clv_node_info *node = &instruction->node;
  for (uint32_t i = 0; i < node->input_count; ++i) {
    uint32_t v = node->inputs[i];
    if (v != CLV_NO_VALUE && p->locations[v].kind == CLV__VNPU_NOWHERE)
      return refuse_value(p, v, "is read, but no earlier node computes it", error);
  }
  fetch_types(p, node->inputs, node->input_count, inputs);
  CLV__TRY(host->infer_node(p->view, index, inputs, outputs, error));
  instruction->kernel = clv__fast_kernel_find(node->domain, node->op);
  bool unknown = instruction->kernel == NULL && !clv__host_has_body(node);
  if (unknown && !p->device->spec.any_operator) {
    return clv__error_set(error, CLV_NOT_SUPPORTED, "operator %s has no kernel", node->op);
  }
  for (uint32_t i = 0; i < node->output_count; ++i) {
    uint32_t v = node->outputs[i];
    if (unknown && v != CLV_NO_VALUE) declared_type(p, v, &outputs[i]);
    outputs[i].data = NULL;
    if (v == CLV_NO_VALUE) {
      outputs[i] = (clv_tensor){.rank = CLV_RANK_UNKNOWN};
      continue;
    }
    if (p->locations[v].kind != CLV__VNPU_NOWHERE)
      return refuse_value(p, v, "is computed twice, or is both computed and an input or a constant", error);
    p->locations[v].kind = CLV__VNPU_SCRATCH;
    p->types[v] = outputs[i];
    if (clv__tensor_is_static(&outputs[i]))
      CLV__TRY(check_static(p, v, error));
    else
      p->is_static = false;
  }
  if (clv__host_has_body(node)) {
    p->is_static = false;
    return CLV_OK;
  }
  if (unknown) return CLV_OK;
  clv__kernel_call call = clv__vnpu_call(node, inputs, outputs);
  char reason[160] = "";
  if (!clv__kernel_accepts(instruction->kernel, &call, reason)) return clv__error_set(error, CLV_NOT_SUPPORTED, "%s", reason);
  return fold(p, instruction, inputs, outputs, error);
}

static clv_status infer_all(clv_executable *p, clv_error *error) {
  const clv_host *host = p->device->host;
  for (uint32_t n = 0; n < p->node_count; ++n) {
    clv_node_info *node = &p->instructions[n].node;
    node->struct_size = sizeof *node;
    host->graph_node(p->view, n, node);
    if (node->input_count > p->most_inputs) p->most_inputs = node->input_count;
    if (node->output_count > p->most_outputs) p->most_outputs = node->output_count;
  }
  clv_tensor *inputs = clv__arena_allocate_zero(&p->arena, (size_t)p->most_inputs + 1, sizeof *inputs);
  clv_tensor *outputs = clv__arena_allocate_zero(&p->arena, (size_t)p->most_outputs + 1, sizeof *outputs);
  if (inputs == NULL || outputs == NULL) return clv__error_memory(error, p->most_inputs * sizeof *inputs);
  for (uint32_t n = 0; n < p->node_count; ++n) {
    const clv_node_info *node = &p->instructions[n].node;
    clv_status status = infer_node(p, n, inputs, outputs, error);
    if (status != CLV_OK) return clv__error_prefix(error, status, "node '%s' (%s)", node->name, node->op);
  }
  return CLV_OK;
}

/* Sets the locations of outputs. A computed value is located directly in its output's binding. Other outputs (inputs,
 * constants, weights, and values that an earlier output already holds) are copied at the end of a launch. */
static clv_status place_outputs(clv_executable *p, clv_error *error) {
  for (uint32_t o = 0; o < p->output_count; ++o) {
    uint32_t v = p->device->host->graph_output(p->view, o);
    p->outputs[o] = v;
    if (p->locations[v].kind == CLV__VNPU_NOWHERE) return refuse_value(p, v, "is an output that no node computes", error);
    if (p->locations[v].kind == CLV__VNPU_SCRATCH) {
      p->locations[v] = (clv__vnpu_location){.kind = CLV__VNPU_OUTPUT, .index = o};
    } else {
      p->copies[p->copy_count++] = (clv__vnpu_copy){v, o};
    }
  }
  for (uint32_t n = 0; n < p->node_count; ++n) {
    const clv_node_info *node = &p->instructions[n].node;
    for (uint32_t i = 0; i < node->output_count; ++i) {
      if (node->outputs[i] != CLV_NO_VALUE) p->last_uses[node->outputs[i]] = n;
    }
    for (uint32_t i = 0; i < node->input_count; ++i) {
      if (node->inputs[i] != CLV_NO_VALUE) p->last_uses[node->inputs[i]] = n;
    }
  }
  return CLV_OK;
}

/* Computes what a static program knows before it runs: its values' sizes, the kernels' scratch, and the time of a launch. */
static clv_status measure(clv_executable *p, clv_error *error) {
  const clv__vnpu_speed *speed = &p->device->spec.speed;
  clv_tensor *inputs = clv__arena_allocate_zero(&p->arena, (size_t)p->most_inputs + 1, sizeof *inputs);
  clv_tensor *outputs = clv__arena_allocate_zero(&p->arena, (size_t)p->most_outputs + 1, sizeof *outputs);
  if (inputs == NULL || outputs == NULL) return clv__error_memory(error, p->most_inputs * sizeof *inputs);
  for (uint32_t v = 0; v < p->value_count; ++v) {
    size_t size_bytes = 0;
    if (p->locations[v].kind != CLV__VNPU_NOWHERE) clv__tensor_size_bytes(&p->types[v], &size_bytes);
    p->sizes[v] = size_bytes;
  }
  p->seconds = clv__vnpu_launch_seconds(speed);
  for (uint32_t n = 0; n < p->node_count; ++n) {
    clv__vnpu_instruction *instruction = &p->instructions[n];
    const clv_node_info *node = &instruction->node;
    fetch_types(p, node->inputs, node->input_count, inputs);
    fetch_types(p, node->outputs, node->output_count, outputs);
    clv__kernel_call call = clv__vnpu_call(node, inputs, outputs);
    if (instruction->kernel != NULL && instruction->kernel->scratch_bytes != NULL)
      instruction->scratch_bytes = instruction->kernel->scratch_bytes(&call);
    p->seconds += clv__vnpu_node_seconds(speed, node, inputs, outputs);
  }
  return CLV_OK;
}

static clv_status infer_program(clv_executable *p, const clv_tensor *input_types, uint32_t input_count, clv_error *error) {
  const clv_host *host = p->device->host;
  CLV__TRY(host->graph_open(host->self, p->onnx, p->onnx_bytes, &p->view, error));
  uint32_t all_inputs = host->graph_input_count(p->view);
  if (all_inputs < input_count) {
    return clv__error_set(error, CLV_INVALID_MODEL, "its graph has %u inputs; expected at least %u", all_inputs, input_count);
  }
  p->input_count = input_count;
  p->weight_count = all_inputs - input_count;
  p->node_count = host->graph_node_count(p->view);
  p->value_count = host->graph_value_count(p->view);
  p->output_count = host->graph_output_count(p->view);
  CLV__TRY(allocate_tables(p, error));
  CLV__TRY(place_sources(p, input_types, error));
  p->is_static = true;
  for (uint32_t i = 0; i < input_count; ++i) {
    if (!clv__tensor_is_static(&input_types[i]))
      p->is_static = false;
    else
      CLV__TRY(check_static(p, p->inputs[i], error));
  }
  CLV__TRY(infer_all(p, error));
  CLV__TRY(place_outputs(p, error));
  if (p->is_static) return measure(p, error);
  if (p->device->spec.static_shapes) {
    return clv__error_set(error, CLV_NOT_SUPPORTED,
                          "a shape is unknown, or a node has a body; but the device needs static shapes");
  }
  return CLV_OK;
}

clv_status clv__vnpu_program_open(const clv_device *device, void *onnx, size_t onnx_bytes, const clv_tensor *input_types,
                                  uint32_t input_count, clv_executable **out, clv_error *error) {
  *out = NULL;
  clv_executable *p = clv__allocate_zero(device->allocator, sizeof *p);
  if (p == NULL) {
    clv__release(device->allocator, onnx);
    return clv__error_memory(error, sizeof *p);
  }
  p->device = device;
  p->onnx = onnx;
  p->onnx_bytes = onnx_bytes;
  clv__arena_init(&p->arena, device->allocator);
  clv_status status = infer_program(p, input_types, input_count, error);
  if (status != CLV_OK) {
    clv__vnpu_program_destroy(p);
    return status;
  }
  *out = p;
  return CLV_OK;
}

void clv__vnpu_program_destroy(clv_executable *p) {
  if (p == NULL) return;
  const clv_host *host = p->device->host;
  if (p->constants != 0) clv__vnpu_space_free(p->device->space, p->constants, p->constant_bytes);
  if (p->view != NULL) host->graph_close(host->self, p->view);
  clv__arena_finish(&p->arena);
  clv__release(p->device->allocator, p->onnx);
  clv__release(p->device->allocator, p);
}

/* Adds up the bytes of all values whose location is of kind `kind`, each rounded up to the alignment. UINT64_MAX on overflow. */
static uint64_t sum_kind(const clv_executable *p, clv__vnpu_location_kind kind) {
  uint64_t total = 0;
  for (uint32_t v = 0; v < p->value_count; ++v) {
    if (p->locations[v].kind != kind) continue;
    if (__builtin_add_overflow(total, clv__vnpu_space_round(p->device->space, p->sizes[v]), &total)) return UINT64_MAX;
  }
  return total;
}

static clv_status check_fits(const clv_executable *p, clv_error *error) {
  uint64_t limit = p->device->spec.memory_bytes;
  if (!p->is_static || limit == 0) return CLV_OK;
  uint64_t weights = sum_kind(p, CLV__VNPU_WEIGHT);
  uint64_t bindings = 0;
  if (__builtin_add_overflow(sum_kind(p, CLV__VNPU_INPUT), sum_kind(p, CLV__VNPU_OUTPUT), &bindings)) bindings = UINT64_MAX;
  for (uint32_t c = 0; c < p->copy_count; ++c) {
    uint64_t more = clv__vnpu_space_round(p->device->space, p->sizes[p->copies[c].value]);
    if (__builtin_add_overflow(bindings, more, &bindings)) bindings = UINT64_MAX;
  }
  uint64_t scratch = p->scratch_bytes > 0 ? clv__vnpu_space_round(p->device->space, p->scratch_bytes) : 0;
  uint64_t constants = p->constant_bytes > 0 ? clv__vnpu_space_round(p->device->space, p->constant_bytes) : 0;
  uint64_t total = 0;
  bool counted = !__builtin_add_overflow(weights, bindings, &total) && !__builtin_add_overflow(total, scratch, &total) &&
                 !__builtin_add_overflow(total, constants, &total);
  if (counted && total <= limit) return CLV_OK;
  char a[32], b[32], c[32], d[32], e[32];
  return clv__error_set(error, CLV_TOO_LARGE,
                        "weights (%s), constants (%s), scratch (%s), inputs and outputs (%s) exceed the device's memory of %s",
                        clv__vnpu_bytes_text(weights, a), clv__vnpu_bytes_text(constants, b), clv__vnpu_bytes_text(scratch, c),
                        clv__vnpu_bytes_text(bindings, d), clv__vnpu_bytes_text(limit, e));
}

clv_status clv__vnpu_program_finish(clv_executable *p, clv_error *error) {
  const clv_host *host = p->device->host;
  if (p->is_static) CLV__TRY(clv__vnpu_layout_check(p, error));
  CLV__TRY(check_fits(p, error));
  if (p->constant_bytes > 0) {
    CLV__TRY(clv__vnpu_space_allocate(p->device->space, p->constant_bytes, &p->constants, error));
    clv__vnpu_space_enter(p->device->space);
    uint8_t *memory = clv__vnpu_space_translate(p->device->space, p->constants, p->constant_bytes);
    for (uint32_t v = 0; v < p->value_count; ++v) {
      size_t size_bytes;
      if (p->locations[v].kind != CLV__VNPU_CONSTANT || !clv__tensor_size_bytes(&p->types[v], &size_bytes)) continue;
      clv_value_info info = {.struct_size = sizeof info};
      host->graph_value(p->view, v, &info);
      if (size_bytes > 0) memcpy(memory + p->locations[v].offset, info.type.data, size_bytes);
    }
    clv__vnpu_space_leave(p->device->space);
  }
  for (uint32_t v = 0; v < p->value_count; ++v) p->types[v].data = NULL;
  return p->is_static ? clv__vnpu_layout_index(p, error) : CLV_OK;
}
