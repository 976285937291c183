/* Decides whether the device can run a node: see supports.h. */
#include "supports.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "backends/common/host.h"
#include "backends/common/kernels.h"
#include "base/error.h"

/* A node that is checked, and the verdict on it. */
typedef struct question {
  const clv_device *device;
  const clv_graph_view *graph;
  uint32_t index;
  clv_node_info node;
  const clv__vnpu_operator *limits;
  clv__arena arena;
  clv_value_info *values; /* inputs, then outputs; absent ones have dtype NONE and the name "" */
  clv_tensor *types;      /* types of the same values, without data; inferred for outputs whose types the graph does not give */
  clv_verdict *verdict;
  bool out_of_memory;
} question;

/* Sets the verdict to no. Returns false, so that a check can end with it. */
static bool no(question *q, const char *format, ...) CLV_PRINTF(2, 3);
static bool no(question *q, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(q->verdict->reason, sizeof q->verdict->reason, format, arguments);
  va_end(arguments);
  q->verdict->supported = false;
  return false;
}

static bool no_memory(question *q) {
  q->out_of_memory = true;
  return no(q, "the host is out of memory");
}

clv__kernel_call clv__vnpu_call(const clv_node_info *node, const clv_tensor *inputs, clv_tensor *outputs) {
  return (clv__kernel_call){.op = node->op,
                            .opset = node->opset,
                            .attributes = {node->attributes, node->attribute_count},
                            .inputs = inputs,
                            .input_count = node->input_count - node->capture_count,
                            .outputs = outputs,
                            .output_count = node->output_count};
}

static uint32_t operand_count(const question *q) {
  return q->node.input_count + q->node.output_count;
}

static bool is_output(const question *q, uint32_t operand) {
  return operand >= q->node.input_count;
}

/* Formats an operand's position and name, such as "input 1 'w'". */
static const char *operand_text(const question *q, uint32_t operand, char text[80]) {
  bool output = is_output(q, operand);
  snprintf(text, 80, "%s %u '%.50s'", output ? "output" : "input", output ? operand - q->node.input_count : operand,
           q->values[operand].name);
  return text;
}

static bool collect(question *q) {
  uint32_t count = operand_count(q);
  q->values = clv__arena_allocate_zero(&q->arena, (size_t)count + 1, sizeof *q->values);
  q->types = clv__arena_allocate_zero(&q->arena, (size_t)count + 1, sizeof *q->types);
  if (q->values == NULL || q->types == NULL) return no_memory(q);
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t value = is_output(q, i) ? q->node.outputs[i - q->node.input_count] : q->node.inputs[i];
    q->values[i] = (clv_value_info){.struct_size = sizeof q->values[i], .name = "", .type = {.rank = CLV_RANK_UNKNOWN}};
    if (value != CLV_NO_VALUE) q->device->host->graph_value(q->graph, value, &q->values[i]);
    q->types[i] = q->values[i].type;
    q->types[i].data = NULL;
  }
  return true;
}

static bool is_present(const question *q, uint32_t operand) {
  return (is_output(q, operand) ? q->node.outputs[operand - q->node.input_count] : q->node.inputs[operand]) != CLV_NO_VALUE;
}

/* ---- The description's limits ---- */

static bool check_operator(question *q, bool in_body) {
  const clv__vnpu_spec *spec = &q->device->spec;
  const clv_node_info *node = &q->node;
  q->limits = clv__vnpu_spec_find(spec, node->domain, node->op);
  if (q->limits == NULL) {
    return no(q, "operator %s%s%s is not in the device's description", node->domain, node->domain[0] != '\0' ? ":" : "",
              node->op);
  }
  if (clv__host_has_body(node) && !spec->control_flow) return no(q, "control flow (%s) is not supported", node->op);
  if (clv__host_has_body(node) && !clv__host_is_control_flow(node)) return no(q, "operator %s has unsupported bodies", node->op);
  /* A device that accepts any operator also accepts one without a kernel, so that plans can be made: the node compiles, but
   * running it is an error. */
  if (!clv__host_has_body(node) && clv__fast_kernel_find(node->domain, node->op) == NULL && !spec->any_operator) {
    return no(q, "operator %s%s%s has no kernel", node->domain, node->domain[0] != '\0' ? ":" : "", node->op);
  }
  uint32_t explicit_inputs = node->input_count - node->capture_count;
  if (!in_body && q->limits->max_inputs > 0 && explicit_inputs > q->limits->max_inputs) {
    return no(q, "%u inputs; the maximum is %u", explicit_inputs, q->limits->max_inputs);
  }
  return true;
}

static const char *dtypes_text(uint32_t mask, char text[80]) {
  size_t used = 0;
  text[0] = '\0';
  for (unsigned d = 0; d < 32; ++d) {
    if ((mask >> d & 1) == 0) continue;
    int written = snprintf(text + used, 80 - used, "%s%s", used > 0 ? " " : "", clv_dtype_name((clv_dtype)d));
    if (written < 0 || used + (size_t)written >= 80) break;
    used += (size_t)written;
  }
  return text;
}

static uint32_t allowed_dtypes(const question *q, uint32_t operand) {
  bool output = is_output(q, operand);
  uint32_t index = output ? operand - q->node.input_count : operand;
  const clv__vnpu_operand *items = output ? q->limits->outputs : q->limits->inputs;
  uint32_t count = output ? q->limits->output_count : q->limits->input_count;
  for (uint32_t i = 0; i < count; ++i) {
    if (items[i].index == index) return items[i].dtypes;
  }
  return q->limits->dtypes;
}

/* Whether the operand is a small integer or bool constant (axes, a shape, pads). Such a constant is a parameter of the
 * instruction, not data, so the limits on dtypes do not apply. */
static bool is_parameter(const question *q, uint32_t operand) {
  const clv_tensor *type = &q->values[operand].type;
  size_t size_bytes;
  return !is_output(q, operand) && type->data != NULL &&
         (CLV__DTYPE_BIT(type->dtype) & (CLV__DTYPES_INTEGER | CLV__DTYPE_BIT(CLV_BOOL))) != 0 &&
         clv__tensor_size_bytes(type, &size_bytes) && size_bytes <= CLV__VNPU_INLINE_BYTES;
}

static const char *symbol_name(const void *cookie, uint32_t symbol) {
  const question *q = cookie;
  return q->device->host->graph_symbol_name(q->graph, symbol);
}

/* Checks dtypes and ranks. Inside a body, unknown types are accepted, because they are inferred only when the body runs. */
static bool check_types(question *q, bool in_body) {
  char where[80], list[80];
  for (uint32_t i = 0; i < operand_count(q); ++i) {
    if (!is_present(q, i)) continue;
    const clv_tensor *type = &q->types[i];
    if (type->dtype == CLV_DTYPE_NONE) {
      if (in_body) continue;
      return no(q, "%s: unknown dtype", operand_text(q, i, where));
    }
    uint32_t allowed = allowed_dtypes(q, i);
    if ((allowed & CLV__DTYPE_BIT(type->dtype)) == 0 && !is_parameter(q, i)) {
      return no(q, "dtype %s (%s; supported: %s)", clv_dtype_name(type->dtype), operand_text(q, i, where),
                dtypes_text(allowed, list));
    }
    if (type->rank > q->limits->max_rank) {
      return no(q, "rank %d, above the maximum of %d (%s)", type->rank, q->limits->max_rank, operand_text(q, i, where));
    }
    if (type->rank < 0 && q->limits->max_rank < CLV_MAX_RANK && !in_body) {
      return no(q, "%s: unknown rank", operand_text(q, i, where));
    }
    if (q->device->spec.static_shapes && !in_body && !clv__tensor_is_static(type)) {
      char text[100];
      clv__tensor_text_named(type, symbol_name, q, text, sizeof text);
      return no(q, "dynamic shape %s (%s)", text, operand_text(q, i, where));
    }
  }
  for (uint32_t i = 0; i < q->limits->constant_count; ++i) {
    uint32_t input = q->limits->constants[i];
    if (input < q->node.input_count && is_present(q, input) && !q->values[input].is_constant) {
      return no(q, "%s is not a constant", operand_text(q, input, where));
    }
  }
  return true;
}

static bool check_number(question *q, const clv__vnpu_attribute *limit, double value) {
  if (limit->has_max && value > limit->max) return no(q, "%s %g above %g", limit->name, value, limit->max);
  if (limit->has_min && value < limit->min) return no(q, "%s %g below %g", limit->name, value, limit->min);
  for (uint32_t i = 0; i < limit->allowed_count; ++i) {
    if (!limit->allowed[i].is_text && limit->allowed[i].number == value) return true;
  }
  return limit->allowed_count == 0 || no(q, "%s %g is not supported", limit->name, value);
}

static bool check_text(question *q, const clv__vnpu_attribute *limit, const char *value, size_t length) {
  char list[100] = "";
  size_t used = 0;
  for (uint32_t i = 0; i < limit->allowed_count; ++i) {
    const clv__vnpu_scalar *allowed = &limit->allowed[i];
    if (!allowed->is_text) continue;
    if (strlen(allowed->text) == length && memcmp(allowed->text, value, length) == 0) return true;
    int written = snprintf(list + used, sizeof list - used, "%s%s", used > 0 ? " " : "", allowed->text);
    if (written > 0 && used + (size_t)written < sizeof list) used += (size_t)written;
  }
  return limit->allowed_count == 0 ||
         no(q, "%s '%.*s' (supported: %s)", limit->name, (int)(length < 40 ? length : 40), value, list);
}

static bool check_attributes(question *q) {
  clv__attributes attributes = {q->node.attributes, q->node.attribute_count};
  for (uint32_t i = 0; i < q->limits->attribute_count; ++i) {
    const clv__vnpu_attribute *limit = &q->limits->attributes[i];
    const clv_attribute *found = clv__attribute_find(attributes, limit->name);
    if (found == NULL && limit->has_fallback) {
      const clv__vnpu_scalar *value = &limit->fallback;
      bool good = value->is_text ? check_text(q, limit, value->text, strlen(value->text)) : check_number(q, limit, value->number);
      if (!good) return false;
    }
    for (size_t k = 0; found != NULL && k < found->count; ++k) {
      bool good = true;
      if (found->kind == CLV_ATTRIBUTE_INTS) good = check_number(q, limit, (double)found->ints[k]);
      if (found->kind == CLV_ATTRIBUTE_FLOATS) good = check_number(q, limit, (double)found->floats[k]);
      if (found->kind == CLV_ATTRIBUTE_STRINGS) good = check_text(q, limit, found->strings[k].data, found->strings[k].size_bytes);
      if (!good) return false;
    }
  }
  return true;
}

/* Checks the size of the node's window: the attribute kernel_shape, or the spatial dims of the weight. */
static bool check_kernel_extent(question *q) {
  if (q->limits->max_kernel <= 0) return true;
  clv__attributes attributes = {q->node.attributes, q->node.attribute_count};
  size_t count;
  const int64_t *extents = clv__attribute_ints(attributes, "kernel_shape", &count);
  if (extents == NULL && q->node.input_count > 1 && q->types[1].rank > 2) {
    extents = q->types[1].dims + 2;
    count = (size_t)q->types[1].rank - 2;
  }
  for (size_t i = 0; i < count; ++i) {
    if (extents[i] > q->limits->max_kernel) {
      return no(q, "kernel extent %lld, above the maximum of %lld", (long long)extents[i], (long long)q->limits->max_kernel);
    }
  }
  return true;
}

/* ---- Inference and the kernels ---- */

/* Infers the types of the outputs from the inputs, as the compiler does, and compares them with the types in the graph. */
static bool infer(question *q) {
  const clv_host *host = q->device->host;
  clv_tensor *inputs = clv__arena_allocate_zero(&q->arena, (size_t)q->node.input_count + 1, sizeof *inputs);
  clv_tensor *outputs = clv__arena_allocate_zero(&q->arena, (size_t)q->node.output_count + 1, sizeof *outputs);
  if (inputs == NULL || outputs == NULL) return no_memory(q);
  for (uint32_t i = 0; i < q->node.input_count; ++i) {
    inputs[i] = q->values[i].type;
    size_t size_bytes;
    if (inputs[i].data == NULL) continue;
    /* Large constants become weights, whose data the compiler does not see. */
    if (!clv__tensor_size_bytes(&inputs[i], &size_bytes) || size_bytes > CLV__VNPU_INLINE_BYTES) inputs[i].data = NULL;
  }
  clv_error error = {0};
  clv_status status = host->infer_node(q->graph, q->index, inputs, outputs, &error);
  if (status == CLV_OUT_OF_MEMORY) return no_memory(q);
  if (status != CLV_OK) return no(q, "%.150s", error.message);
  for (uint32_t i = 0; i < q->node.output_count; ++i) {
    clv_tensor *type = &q->types[q->node.input_count + i];
    if (q->node.outputs[i] == CLV_NO_VALUE) continue;
    if (type->dtype == CLV_DTYPE_NONE) type->dtype = outputs[i].dtype;
    if (!clv__tensor_is_static(type) && clv__tensor_is_static(&outputs[i])) *type = outputs[i];
    type->data = NULL;
    if (!q->device->spec.static_shapes || !clv__tensor_is_static(type)) continue;
    char where[80], text[60], said[60];
    clv__tensor_text(&outputs[i], text, sizeof text);
    clv__tensor_text(type, said, sizeof said);
    /* Trust the declared type of an operator without a kernel. */
    if (clv__fast_kernel_find(q->node.domain, q->node.op) == NULL && !clv__host_has_body(&q->node)) continue;
    if (!clv__tensor_is_static(&outputs[i])) {
      return no(q, "%s: its shape depends on data", operand_text(q, q->node.input_count + i, where));
    }
    if (!clv__tensor_same_type(type, &outputs[i])) return no(q, "its output is computed as %s, but declared as %s", text, said);
  }
  return true;
}

static bool check_kernel(question *q) {
  const clv__kernel *kernel = clv__fast_kernel_find(q->node.domain, q->node.op);
  clv__kernel_call call = clv__vnpu_call(&q->node, q->types, q->types + q->node.input_count);
  char reason[160] = "";
  if (kernel == NULL) return true;
  return clv__kernel_accepts(kernel, &call, reason) || no(q, "%s", reason);
}

/* Checks that all operands of the node, and its kernel's scratch, fit in memory together. */
static bool check_memory(question *q) {
  const clv_device *device = q->device;
  if (device->spec.memory_bytes == 0) return true;
  uint64_t total = 0;
  for (uint32_t i = 0; i < operand_count(q); ++i) {
    size_t size_bytes;
    if (!is_present(q, i)) continue;
    if (!clv__tensor_is_static(&q->types[i])) return true;
    if (!clv__tensor_size_bytes(&q->types[i], &size_bytes)) return no(q, "a tensor is too large for any memory");
    uint64_t rounded = clv__vnpu_space_round(device->space, size_bytes);
    if (__builtin_add_overflow(total, rounded, &total)) return no(q, "tensors are too large for any memory");
  }
  const clv__kernel *kernel = clv__fast_kernel_find(q->node.domain, q->node.op);
  clv__kernel_call call = clv__vnpu_call(&q->node, q->types, q->types + q->node.input_count);
  size_t scratch = kernel != NULL && kernel->scratch_bytes != NULL ? kernel->scratch_bytes(&call) : 0;
  if (scratch > 0 && __builtin_add_overflow(total, clv__vnpu_space_round(device->space, scratch), &total)) total = UINT64_MAX;
  if (total <= device->spec.memory_bytes) return true;
  char needed[32], there[32];
  return no(q, "it needs %s of memory, but the device has %s", clv__vnpu_bytes_text(total, needed),
            clv__vnpu_bytes_text(device->spec.memory_bytes, there));
}

static bool check_body_node(question *outer, const clv_graph_view *graph, uint32_t index);

static bool check_bodies(question *q) {
  for (uint32_t i = 0; i < q->node.attribute_count; ++i) {
    const clv_graph_view *body = q->node.attributes[i].graph;
    if (q->node.attributes[i].kind != CLV_ATTRIBUTE_GRAPH) continue;
    uint32_t count = q->device->host->graph_node_count(body);
    for (uint32_t k = 0; k < count; ++k) {
      if (!check_body_node(q, body, k)) return false;
    }
  }
  return true;
}

static bool begin(question *q, bool in_body) {
  q->node.struct_size = sizeof q->node;
  q->device->host->graph_node(q->graph, q->index, &q->node);
  return check_operator(q, in_body) && collect(q);
}

static bool check_body_node(question *outer, const clv_graph_view *graph, uint32_t index) {
  clv_verdict *verdict = outer->verdict;
  question q = {.device = outer->device, .graph = graph, .index = index, .verdict = verdict};
  clv__arena_init(&q.arena, outer->device->allocator);
  bool good = begin(&q, true) && check_types(&q, true) && check_attributes(&q) && check_kernel_extent(&q) && check_bodies(&q);
  clv__arena_finish(&q.arena);
  if (good) return true;
  outer->out_of_memory = q.out_of_memory;
  char reason[sizeof verdict->reason];
  snprintf(reason, sizeof reason, "%s", verdict->reason);
  snprintf(verdict->reason, sizeof verdict->reason, "its body: %.140s", reason);
  return false;
}

clv_status clv__vnpu_supports(const clv_device *device, const clv_graph_view *graph, uint32_t node, clv_verdict *verdict) {
  *verdict = (clv_verdict){.supported = true};
  question q = {.device = device, .graph = graph, .index = node, .verdict = verdict};
  clv__arena_init(&q.arena, device->allocator);
  bool good = begin(&q, false) && infer(&q) && check_types(&q, false) && check_attributes(&q) && check_kernel_extent(&q);
  if (good && clv__host_has_body(&q.node)) {
    good = check_bodies(&q);
  } else if (good) {
    good = check_kernel(&q);
  }
  if (good) check_memory(&q);
  clv__arena_finish(&q.arena);
  return q.out_of_memory ? CLV_OUT_OF_MEMORY : CLV_OK;
}
