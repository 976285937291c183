/* See shapes_fold.h. */
#include "analysis/shapes_fold.h"

#include "analysis/evaluate.h"
#include "analysis/node.h"
#include "operators/common/rows.h"
#include "operators/run.h"

enum { FREE_BYTES = 64 << 20, BYTES_PER_WEIGHT_BYTE = 4, OPERATIONS_PER_WEIGHT_BYTE = 100 };
static const double FREE_OPERATIONS = 1e9;

clv__fold_budget clv__fold_budget_of(const clv_graph *graph) {
  size_t weights_bytes = 0, bytes;
  for (clv_value_id v = 0; graph != NULL && v < graph->value_count; ++v) {
    const clv__value *value = &graph->values[v];
    size_t size_bytes;
    if (value->producer != CLV__NO_ID || (value->type.data == NULL && !value->is_unbound)) continue;
    if (!clv__tensor_size_bytes(&value->type, &size_bytes) || !clv__add(weights_bytes, size_bytes, &weights_bytes)) continue;
  }
  const size_t free_bytes = graph != NULL && graph->fold_bytes > 0 ? graph->fold_bytes : FREE_BYTES;
  if (!clv__multiply(weights_bytes, BYTES_PER_WEIGHT_BYTE, &bytes) || !clv__add(bytes, free_bytes, &bytes)) bytes = SIZE_MAX;
  return (clv__fold_budget){bytes, FREE_OPERATIONS + OPERATIONS_PER_WEIGHT_BYTE * (double)weights_bytes};
}

bool clv__fold_is_too_large(const clv_tensor *value, const clv__file_map_list *fills, const clv__fold_budget *budget) {
  size_t size_bytes;
  const uint8_t *data = value->data;
  if (data == NULL || !clv__tensor_size_bytes(value, &size_bytes) || size_bytes <= budget->bytes) return false;
  for (const clv__file_map_list *fill = fills; fill != NULL; fill = fill->next) {
    if (data >= fill->map.data && data < fill->map.data + fill->map.size_bytes) return true;
  }
  return false;
}

/* The cost of a call whose shapes are known: its FLOPs, plus the bytes that it reads and writes. */
static double operations_of(const clv__op *op, const clv_node_call *call) {
  const clv__infer infer = {.op = call->op,
                            .opset = call->opset,
                            .attributes = {call->attributes, call->attribute_count},
                            .inputs = call->inputs,
                            .input_count = call->input_count,
                            .outputs = call->outputs,
                            .output_count = call->output_count};
  clv__work work;
  clv__op_work(op, &infer, &work);
  return work.flops + work.bytes;
}

/* Takes the cost of a call from the budget. Returns false if the budget does not suffice. */
static bool spend(clv__fold_budget *budget, size_t size_bytes, double operations) {
  if (size_bytes > budget->bytes || operations > budget->operations) return false;
  budget->bytes -= size_bytes;
  budget->operations -= operations;
  return true;
}

/* ---- Which nodes are computed ---- */

/* An If may be computed if its branches contain nothing that could run long. */
static bool body_folds(const clv__node *node, uint32_t depth) {
  if (depth > CLV__MAX_BODY_DEPTH || strcmp(node->op, "If") != 0) return false;
  for (uint32_t i = 0; i < node->attributes.count; ++i) {
    if (node->attributes.items[i].kind != CLV_ATTRIBUTE_GRAPH) continue;
    const clv_graph *body = clv__node_body(node, node->attributes.items[i].name);
    for (clv_node_id n = 0; body != NULL && n < body->node_count; ++n) {
      const clv__op *op = clv__op_find(body->nodes[n].domain, body->nodes[n].op);
      if (op == NULL || (op->flags & CLV__OP_NO_FOLD) != 0) return false;
      if ((op->flags & CLV__OP_HAS_BODY) != 0 && !body_folds(&body->nodes[n], depth + 1)) return false;
    }
  }
  return true;
}

/* Whether the node dequantizes weights that only convolutions and matrix products read. */
static bool is_quantised_weight(const clv_graph *graph, const clv__node *node, const clv_tensor *inputs) {
  if (node->domain[0] != '\0' || strcmp(node->op, "DequantizeLinear") != 0) return false;
  if ((inputs[0].dtype != CLV_I8 && inputs[0].dtype != CLV_U8) || inputs[0].rank < 2) return false;
  const clv_value_id made = node->outputs[0];
  if (made == CLV__NO_ID || graph->values[made].is_output || graph->use_offsets[made] == graph->use_offsets[made + 1])
    return false;
  for (uint32_t u = graph->use_offsets[made]; u < graph->use_offsets[made + 1]; ++u) {
    const clv__node *reader = &graph->nodes[graph->use_nodes[u]];
    const bool multiplies =
        strcmp(reader->op, "Conv") == 0 || strcmp(reader->op, "MatMul") == 0 || strcmp(reader->op, "Gemm") == 0;
    if (!multiplies || reader->domain[0] != '\0' || reader->inputs[0] == made || reader->inputs[1] != made) return false;
  }
  return true;
}

static bool foldable(const clv_graph *graph, const clv__node *node, const clv__op *op, const clv_tensor *inputs,
                     size_t limit_bytes, const clv_tensor *types) {
  if (op == NULL || (op->flags & CLV__OP_NO_FOLD) != 0) return false;
  for (uint32_t i = 0; i < node->input_count; ++i) {
    if (node->inputs[i] != CLV__NO_ID && inputs[i].data == NULL) return false;
  }
  if (limit_bytes == CLV__FOLD_BUT_QUANTISED && is_quantised_weight(graph, node, inputs)) return false;
  if ((op->flags & CLV__OP_HAS_BODY) != 0) return body_folds(node, 0);
  for (uint32_t i = 0; i < node->output_count; ++i) {
    size_t size_bytes;
    if (node->outputs[i] == CLV__NO_ID) continue;
    const clv_tensor *type = &types[node->outputs[i]];
    if (!clv__tensor_is_static(type) || !clv__tensor_size_bytes(type, &size_bytes) || size_bytes > limit_bytes) return false;
  }
  return graph->node_count > 0;
}

/* Takes the cost of a node without a body from the budget. Returns false if the budget does not suffice. */
static bool can_pay(const clv__node *node, const clv__op *op, const clv_tensor *inputs, const clv_tensor *types,
                    clv_tensor *outputs, clv__fold_budget *budget) {
  size_t total = 0;
  for (uint32_t i = 0; i < node->output_count; ++i) {
    size_t size_bytes;
    outputs[i] = node->outputs[i] == CLV__NO_ID ? (clv_tensor){0} : types[node->outputs[i]];
    if (node->outputs[i] == CLV__NO_ID) continue;
    if (!clv__tensor_size_bytes(&outputs[i], &size_bytes) || !clv__add(total, size_bytes, &total)) return false;
  }
  const clv_node_call call = {.op = node->op,
                              .opset = node->opset,
                              .attribute_count = node->attributes.count,
                              .attributes = node->attributes.items,
                              .input_count = clv__node_explicit_inputs(node),
                              .inputs = inputs,
                              .output_count = node->output_count,
                              .outputs = outputs};
  return spend(budget, total, operations_of(op, &call));
}

/* Whether only the first output is used. */
static bool first_output_alone(const clv_graph *graph, const clv__node *node) {
  for (uint32_t i = 1; i < node->output_count; ++i) {
    clv_value_id v = node->outputs[i];
    if (v == CLV__NO_ID) continue;
    if (graph->values[v].is_output || graph->use_offsets[v] != graph->use_offsets[v + 1]) return false;
  }
  return node->output_count > 0 && node->outputs[0] != CLV__NO_ID;
}

/* The bytes of output 0 if they already exist: those of the input of a node that only views it, or those of a Constant's
 * attribute. NULL otherwise. */
static void *existing_bytes(const clv_graph *graph, const clv__node *node, const clv__op *op, const clv_tensor *inputs,
                            const clv_tensor *types) {
  if (!first_output_alone(graph, node)) return NULL;
  const clv_tensor *source = NULL;
  if (strcmp(node->op, "Constant") == 0 && node->domain[0] == '\0') {
    const clv_attribute *value = clv__attribute_find(node->attributes, "value");
    if (value != NULL && value->kind == CLV_ATTRIBUTE_TENSOR) source = value->tensor;
  } else if ((op->flags & CLV__OP_VIEW) != 0) {
    clv__kernel_call call = {
        .op = node->op, .opset = node->opset, .attributes = node->attributes, .inputs = inputs, .input_count = node->input_count};
    const clv__kernel *kernel = clv__kernel_find(node->domain, node->op);
    char reason[160];
    if (kernel != NULL && clv__kernel_accepts(kernel, &call, reason)) source = &inputs[0];
  }
  size_t have, want;
  const clv_tensor *output = &types[node->outputs[0]];
  if (source == NULL || source->dtype != output->dtype) return NULL;
  if (!clv__tensor_size_bytes(source, &have) || !clv__tensor_size_bytes(output, &want) || have != want) return NULL;
  return source->data;
}

/* Returns a mapping of at least `size_bytes` in which the element repeats: an existing one, or a new one with room for later
 * constants. NULL if the budget does not suffice for the memory behind a new one, or if the system cannot map it. */
static void *map_fill(const void *element, size_t element_bytes, size_t size_bytes, clv__fold_budget *budget, clv__arena *arena,
                      clv__file_map_list **fills) {
  enum { ROOM_BYTES = 16 << 20 };
  for (const clv__file_map_list *fill = *fills; fill != NULL; fill = fill->next) {
    if (fill->element_bytes != element_bytes || memcmp(fill->element, element, element_bytes) != 0) continue;
    if (fill->map.size_bytes >= size_bytes) return (void *)fill->map.data;
  }
  if (size_bytes < ROOM_BYTES) size_bytes = ROOM_BYTES;
  if (!spend(budget, clv__file_map_fill_memory(size_bytes), 0)) return NULL;
  clv__file_map_list *fill = clv__arena_allocate_zero(arena, 1, sizeof *fill);
  if (fill == NULL) return NULL;
  if (clv__file_map_fill(element, element_bytes, size_bytes, &fill->map, NULL) != CLV_OK) return NULL;
  memcpy(fill->element, element, element_bytes);
  fill->element_bytes = element_bytes;
  fill->next = *fills;
  *fills = fill;
  return (void *)fill->map.data;
}

/* Maps a large ConstantOfShape; constants of the same value share the mapping. NULL if the node is not a ConstantOfShape, if it
 * is small, if it exceeds the budget, or if the system cannot map it. */
static void *map_constant(const clv__node *node, const clv_tensor *output, clv__fold_budget *budget, clv__arena *arena,
                          clv__file_map_list **fills) {
  enum { LEAST_BYTES = 32 << 10 };
  static const uint8_t zeros[8];
  size_t size_bytes;
  if (fills == NULL || strcmp(node->op, "ConstantOfShape") != 0 || node->domain[0] != '\0') return NULL;
  if (output->dtype == CLV_STRING || !clv__tensor_size_bytes(output, &size_bytes) || size_bytes < LEAST_BYTES) return NULL;
  const clv_attribute *value = clv__attribute_find(node->attributes, "value");
  if (value != NULL && (value->kind != CLV_ATTRIBUTE_TENSOR || value->tensor->dtype != output->dtype)) return NULL;
  const size_t element_bytes = clv_dtype_size_bytes(output->dtype);
  const void *element = value == NULL ? zeros : value->tensor->data;
  if (element == NULL || element_bytes == 0 || element_bytes > sizeof zeros) return NULL;
  return map_fill(element, element_bytes, size_bytes, budget, arena, fills);
}

/* Runs the node's kernel, with outputs in the arena. `*computed` becomes true if it ran. That the kernel does not support the
 * node is not an error. */
static clv_status compute(const clv_graph *graph, clv_node_id id, const clv_tensor *inputs, clv_tensor *aligned,
                          clv_tensor *outputs, clv__arena *arena, const clv_tensor *types, bool *computed, clv_error *error) {
  const clv__node *node = &graph->nodes[id];
  for (uint32_t i = 0; i < node->output_count; ++i) {
    memset(&outputs[i], 0, sizeof outputs[i]);
    if (node->outputs[i] == CLV__NO_ID) continue;
    size_t size_bytes = 0;
    outputs[i] = types[node->outputs[i]];
    if (!clv__tensor_size_bytes(&outputs[i], &size_bytes)) return CLV_OK;
    outputs[i].data = clv__arena_allocate_data(arena, size_bytes);
    if (outputs[i].data == NULL) return clv__error_memory(error, size_bytes);
  }
  clv_error ignored = {0};
  CLV__TRY(clv__operands_align(inputs, node->input_count, SIZE_MAX, aligned, graph->allocator, error));
  clv_status status = clv__node_run(node, aligned, outputs, graph->allocator, &ignored);
  clv__operands_release(inputs, node->input_count, aligned, graph->allocator);
  *computed = status == CLV_OK;
  if (status != CLV_OUT_OF_MEMORY) return CLV_OK;
  return clv__error_set(error, status, "%s", ignored.message);
}

/* The state of evaluating a body within a budget. All memory that the evaluation allocates counts, even if it is freed again. */
typedef struct bounded {
  const clv_allocator *allocator;
  clv__fold_budget *budget;
  bool is_over;
} bounded;

static void *allocate_bounded(void *user_data, size_t size_bytes, size_t alignment) {
  bounded *b = user_data;
  if (!spend(b->budget, size_bytes, 0)) {
    b->is_over = true;
    return NULL;
  }
  return b->allocator->allocate(b->allocator->user_data, size_bytes, alignment);
}

static void release_bounded(void *user_data, void *pointer) {
  const bounded *b = user_data;
  b->allocator->release(b->allocator->user_data, pointer);
}

/* Called before each node of a body runs. Takes the node's cost from the budget and returns CLV_NOT_SUPPORTED, so that the
 * reference loops run the node. */
static clv_status pay_for_node(void *cookie, const clv_node_call *call, clv_error *error) {
  bounded *b = cookie;
  const clv__op *op = clv__op_find(call->domain, call->op);
  if (op == NULL || spend(b->budget, 0, operations_of(op, call))) return CLV_NOT_SUPPORTED;
  b->is_over = true;
  return clv__error_set(error, CLV_CANCELLED, "it is too much work for planning");
}

/* Runs an If. The results of its branch move into the arena and give the outputs their exact types. */
static clv_status compute_body(const clv_graph *graph, clv_node_id id, const clv_tensor *inputs, clv_tensor *outputs,
                               size_t limit_bytes, clv__fold_budget *budget, clv__arena *arena, clv_tensor *types,
                               clv_error *error) {
  const clv__node *node = &graph->nodes[id];
  bounded b = {graph->allocator, budget, false};
  const clv_allocator allocator = {&b, allocate_bounded, release_bounded};
  const clv_evaluation how = {.struct_size = sizeof how, .run_node = pay_for_node, .cookie = &b};
  clv_error ignored = {0};
  clv_status status = clv__node_evaluate_with(graph, id, inputs, outputs, &how, &allocator, &ignored);
  if (b.is_over) return CLV_OK;
  if (status == CLV_OUT_OF_MEMORY) return clv__error_set(error, status, "%s", ignored.message);
  if (status != CLV_OK) return CLV_OK;
  for (uint32_t i = 0; i < node->output_count; ++i) {
    size_t size_bytes;
    if (node->outputs[i] == CLV__NO_ID || !clv__tensor_size_bytes(&outputs[i], &size_bytes)) continue;
    if (status == CLV_OK && size_bytes <= limit_bytes) {
      void *data = clv__arena_allocate_data(arena, size_bytes);
      if (data == NULL) {
        status = clv__error_memory(error, size_bytes);
      } else {
        memcpy(data, outputs[i].data, size_bytes);
        types[node->outputs[i]] = outputs[i];
        types[node->outputs[i]].data = data;
      }
    }
    clv__release(graph->allocator, outputs[i].data);
  }
  return status;
}

clv_status clv__fold_node(const clv_graph *graph, clv_node_id id, const clv_tensor *inputs, size_t limit_bytes,
                          clv__fold_budget *budget, clv__arena *arena, clv__file_map_list **fills, clv_tensor *types,
                          clv_error *error) {
  const clv__node *node = &graph->nodes[id];
  const clv__op *op = clv__op_find(node->domain, node->op);
  if (!foldable(graph, node, op, inputs, limit_bytes, types)) return CLV_OK;
  if ((op->flags & CLV__OP_HAS_BODY) == 0) {
    void *existing = existing_bytes(graph, node, op, inputs, types);
    if (existing == NULL && node->output_count == 1)
      existing = map_constant(node, &types[node->outputs[0]], budget, arena, fills);
    if (existing != NULL) {
      types[node->outputs[0]].data = existing;
      return CLV_OK;
    }
  }
  for (uint32_t i = 0; fills != NULL && i < node->input_count; ++i) {
    if (clv__fold_is_too_large(&inputs[i], *fills, budget)) return CLV_OK;
  }
  size_t room = ((size_t)node->input_count + node->output_count) * sizeof(clv_tensor);
  clv_tensor *aligned = clv__allocate(graph->allocator, room);
  if (aligned == NULL) return clv__error_memory(error, room);
  clv_tensor *outputs = aligned + node->input_count;
  clv_status status;
  if ((op->flags & CLV__OP_HAS_BODY) != 0) {
    status = compute_body(graph, id, inputs, outputs, limit_bytes, budget, arena, types, error);
  } else {
    bool computed = false;
    status = CLV_OK;
    if (can_pay(node, op, inputs, types, outputs, budget))
      status = compute(graph, id, inputs, aligned, outputs, arena, types, &computed, error);
    for (uint32_t i = 0; computed && i < node->output_count; ++i) {
      if (node->outputs[i] != CLV__NO_ID) types[node->outputs[i]].data = outputs[i].data;
    }
  }
  clv__release(graph->allocator, aligned);
  return status;
}

clv_status clv__fold_content(const clv__content *content, clv__arena *arena, clv_tensor *type, clv_error *error) {
  size_t size_bytes = content->count * clv_dtype_size_bytes(type->dtype);
  void *data = clv__arena_allocate_data(arena, size_bytes);
  if (data == NULL) return clv__error_memory(error, size_bytes);
  clv__row_from_i64(type->dtype, data, 0, content->count, content->elements);
  type->data = data;
  return CLV_OK;
}
