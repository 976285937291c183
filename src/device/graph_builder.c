/* The public functions that make a graph in memory: see cleave/builder.h. graph/builder.c does the work; this file checks and
 * copies what a program passes, and keeps the bodies that are not part of a node yet. */
#include "cleave/builder.h"

#include <string.h>

#include "analysis/shapes.h"
#include "base/options.h"
#include "base/text.h"
#include "device/device.h"
#include "formats/onnx/onnx.h"

enum { FOLD_LIMIT_BYTES = 1 << 16 }; /* constants above this size are not used to infer types */

struct clv_graph_builder {
  const clv_allocator *allocator;
  clv__builder *inner;
  clv_graph_builder *root,
      *parent;          /* of a body: its graph's builder, and the builder that began it; of a graph: itself and NULL */
  uint32_t open_bodies; /* begun for this graph or body, and neither finished nor destroyed */
  /* Of the root: finished bodies that no node has yet. */
  const clv_graph_view **bodies;
  size_t body_count, body_capacity;
};

static clv_status null_argument(clv_error *error, const char *what) {
  return clv__error_set(error, CLV_INVALID_ARGUMENT, "%s must not be NULL", what);
}

/* ---- Begin and end ---- */

static clv_status create(const clv_allocator *allocator, clv_graph_builder **out, clv_error *error) {
  clv_graph_builder *builder = clv__allocate_zero(allocator, sizeof *builder);
  if (builder == NULL) return clv__error_memory(error, sizeof *builder);
  builder->allocator = allocator;
  builder->root = builder;
  clv_status status = clv__builder_create(allocator, &builder->inner, error);
  if (status == CLV_OK)
    *out = builder;
  else
    clv__release(allocator, builder);
  return status;
}

clv_status clv_graph_builder_create(clv_context *context, int32_t opset, clv_graph_builder **builder, clv_error *error) {
  if (context == NULL || builder == NULL) return null_argument(error, "context and builder");
  *builder = NULL;
  CLV__TRY(create(clv__context_allocator(context), builder, error));
  clv_status status = clv_graph_builder_import(*builder, "", opset, error);
  if (status != CLV_OK) {
    clv_graph_builder_destroy(*builder);
    *builder = NULL;
    return status;
  }
  clv__builder_info((*builder)->inner, NULL, NULL, CLV__ONNX_IR_VERSION);
  return CLV_OK;
}

clv_status clv_graph_builder_body(clv_graph_builder *builder, clv_graph_builder **body, clv_error *error) {
  if (builder == NULL || body == NULL) return null_argument(error, "builder and body");
  *body = NULL;
  CLV__TRY(create(builder->allocator, body, error));
  (*body)->parent = builder;
  (*body)->root = builder->root;
  ++builder->open_bodies;
  return CLV_OK;
}

/* Frees the builder. Its inner builder was finished or destroyed before, and is not freed here. */
static void release(clv_graph_builder *builder) {
  if (builder->parent != NULL) --builder->parent->open_bodies;
  for (size_t i = 0; i < builder->body_count; ++i) clv__graph_destroy((clv_graph *)builder->bodies[i]->graph);
  clv__release(builder->allocator, (void *)builder->bodies);
  clv__release(builder->allocator, builder);
}

void clv_graph_builder_destroy(clv_graph_builder *builder) {
  if (builder == NULL) return;
  clv__builder_destroy(builder->inner);
  release(builder);
}

/* ---- Names and types ---- */

static clv_status check_name(const char *name, const char *what, clv_error *error) {
  if (name == NULL) return null_argument(error, what);
  size_t size_bytes = strlen(name);
  for (size_t i = 0; i < size_bytes;) {
    size_t step = clv__utf8_bytes((const uint8_t *)name + i, size_bytes - i);
    if (step == 0) {
      return clv__error_set(error, CLV_INVALID_MODEL, "%s: byte %zu is 0x%02x, which is not UTF-8 text", what, i,
                            (unsigned)(uint8_t)name[i]);
    }
    i += step;
  }
  return CLV_OK;
}

static const char *domain_of(const char *domain) {
  return domain == NULL || strcmp(domain, "ai.onnx") == 0 ? "" : domain;
}

clv_status clv_graph_builder_import(clv_graph_builder *builder, const char *domain, int32_t version, clv_error *error) {
  if (builder == NULL) return null_argument(error, "builder");
  if (builder->parent != NULL) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "a body has the imports of its graph: call this for the graph");
  }
  domain = domain_of(domain);
  CLV__TRY(check_name(domain, "domain", error));
  return clv__onnx_import(builder->inner, domain, version, error);
}

/* Finds or creates a value; a name that is NULL or empty gives CLV__NO_ID. */
static clv_status find_value(clv_graph_builder *builder, const char *name, const char *what, clv_value_id *value,
                             clv_error *error) {
  *value = CLV__NO_ID;
  if (name == NULL || name[0] == '\0') return CLV_OK;
  CLV__TRY(check_name(name, what, error));
  return clv__builder_value(builder->inner, name, value, error);
}

static clv_status named_value(clv_graph_builder *builder, const char *name, const char *what, clv_value_id *value,
                              clv_error *error) {
  CLV__TRY(find_value(builder, name, what, value, error));
  return *value != CLV__NO_ID ? CLV_OK : clv__error_set(error, CLV_INVALID_ARGUMENT, "%s needs a name", what);
}

/* Checks a type from outside, and makes its symbolic dimensions. */
static clv_status read_type(clv_graph_builder *builder, const char *name, const clv_tensor *given, const char *const *symbols,
                            clv_tensor *type, clv_error *error) {
  if (!clv__dtype_is_known(given->dtype) || given->rank < CLV_RANK_UNKNOWN || given->rank > CLV_MAX_RANK) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "'%s': dtype %d and rank %d: expected a dtype, and a rank of at most %d",
                          name, (int)given->dtype, (int)given->rank, CLV_MAX_RANK);
  }
  *type = clv__tensor_make(given->dtype, given->rank, given->dims, NULL);
  for (int32_t i = 0; i < type->rank; ++i) {
    uint32_t symbol;
    if (type->dims[i] < 0) type->dims[i] = CLV_DIM_UNKNOWN;
    if (symbols == NULL || symbols[i] == NULL) continue;
    CLV__TRY(check_name(symbols[i], "symbol", error));
    CLV__TRY(clv__builder_symbol(builder->inner, symbols[i], &symbol, error));
    type->dims[i] = CLV_DIM_SYMBOL(symbol);
  }
  return CLV_OK;
}

/* ---- Constants ---- */

/* Copies the strings of a tensor and their text. */
static clv_status copy_strings(clv__arena *arena, clv_string *strings, size_t count, clv_error *error) {
  for (size_t i = 0; i < count; ++i) {
    const char *text = clv__arena_string(arena, strings[i].data, strings[i].size_bytes);
    if (text == NULL) return clv__error_memory(error, strings[i].size_bytes);
    strings[i].data = text;
  }
  return CLV_OK;
}

/* Gives a tensor bytes that live as long as the graph. `kept` may be `value`. */
static clv_status keep_bytes(clv_graph_builder *builder, const char *name, const clv_tensor *value, clv_ownership ownership,
                             clv_tensor *kept, clv_error *error) {
  size_t size_bytes, count;
  const void *given = value->data;
  clv__arena *arena = clv__builder_arena(builder->inner);
  *kept = *value;
  if (!clv__tensor_size_bytes(value, &size_bytes) || !clv__tensor_count(value, &count)) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "'%s': a constant needs a dtype, and a size for each dimension", name);
  }
  if (ownership == CLV_BORROW && value->dtype != CLV_STRING) return CLV_OK;
  kept->data = clv__arena_allocate_data(arena, size_bytes);
  if (kept->data == NULL) return clv__error_memory(error, size_bytes);
  if (size_bytes > 0) memcpy(kept->data, given, size_bytes);
  return value->dtype == CLV_STRING ? copy_strings(arena, kept->data, count, error) : CLV_OK;
}

clv_status clv_graph_builder_weight(clv_graph_builder *builder, const char *name, const clv_tensor *value,
                                    clv_ownership ownership, clv_error *error) {
  clv_value_id id;
  clv_tensor type, kept;
  if (builder == NULL || value == NULL || value->data == NULL) return null_argument(error, "builder, value and its data");
  CLV__TRY(named_value(builder, name, "weight", &id, error));
  if (clv__builder_type_of(builder->inner, id)->data != NULL)
    return clv__error_set(error, CLV_INVALID_MODEL, "'%s' already has a value", name);
  CLV__TRY(read_type(builder, name, value, NULL, &type, error));
  type.data = value->data;
  CLV__TRY(keep_bytes(builder, name, &type, ownership, &kept, error));
  clv__builder_type(builder->inner, id, &kept);
  return CLV_OK;
}

clv_status clv_graph_builder_input(clv_graph_builder *builder, const char *name, const clv_tensor *given,
                                   const char *const *symbols, clv_error *error) {
  clv_value_id id;
  clv_tensor type;
  if (builder == NULL || given == NULL) return null_argument(error, "builder and type");
  CLV__TRY(named_value(builder, name, "input", &id, error));
  CLV__TRY(read_type(builder, name, given, symbols, &type, error));
  type.data = given->data;
  if (given->data != NULL) CLV__TRY(keep_bytes(builder, name, &type, CLV_COPY, &type, error));
  clv__builder_type(builder->inner, id, &type);
  return clv__builder_input(builder->inner, id, error);
}

clv_status clv_graph_builder_output(clv_graph_builder *builder, const char *name, const clv_tensor *given, clv_error *error) {
  clv_value_id id;
  clv_tensor type;
  if (builder == NULL) return null_argument(error, "builder");
  CLV__TRY(named_value(builder, name, "output", &id, error));
  if (given != NULL) {
    CLV__TRY(read_type(builder, name, given, NULL, &type, error));
    clv__builder_type(builder->inner, id, &type);
  }
  return clv__builder_output(builder->inner, id, error);
}

clv_status clv_graph_builder_value(clv_graph_builder *builder, const char *name, const clv_tensor *given,
                                   const char *const *symbols, clv_error *error) {
  clv_value_id id;
  clv_tensor type;
  if (builder == NULL || given == NULL) return null_argument(error, "builder and type");
  CLV__TRY(named_value(builder, name, "value", &id, error));
  CLV__TRY(read_type(builder, name, given, symbols, &type, error));
  clv__builder_type(builder->inner, id, &type);
  return CLV_OK;
}

/* ---- Nodes ---- */

static clv_status take_body(clv_graph_builder *builder, const clv_attribute *attribute, clv_error *error) {
  clv_graph_builder *root = builder->root;
  for (size_t i = 0; i < root->body_count; ++i) {
    if (root->bodies[i] != attribute->graph) continue;
    root->bodies[i] = root->bodies[--root->body_count];
    return CLV_OK;
  }
  return clv__error_set(error, CLV_INVALID_ARGUMENT, "attribute '%s': expected a body of this graph that no other attribute has",
                        attribute->name);
}

static clv_status copy_list(clv__arena *arena, const void *items, size_t count, size_t item_bytes, const void **copy,
                            clv_error *error) {
  if (items == NULL && count > 0) return null_argument(error, "the values of an attribute");
  if (count > SIZE_MAX / item_bytes) return clv__error_memory(error, SIZE_MAX);
  *copy = clv__arena_copy(arena, items, count * item_bytes);
  return *copy == NULL ? clv__error_memory(error, count * item_bytes) : CLV_OK;
}

/* Copies an attribute's name and contents. */
static clv_status copy_attribute(clv_graph_builder *builder, const clv_attribute *given, clv_attribute *copy, clv_error *error) {
  clv__arena *arena = clv__builder_arena(builder->inner);
  CLV__TRY(check_name(given->name, "attribute", error));
  *copy = *given;
  copy->name = clv__arena_string(arena, given->name, strlen(given->name));
  if (copy->name == NULL) return clv__error_memory(error, strlen(given->name));
  switch (given->kind) {
    case CLV_ATTRIBUTE_INTS:
      return copy_list(arena, given->ints, given->count, sizeof *given->ints, (const void **)&copy->ints, error);
    case CLV_ATTRIBUTE_FLOATS:
      return copy_list(arena, given->floats, given->count, sizeof *given->floats, (const void **)&copy->floats, error);
    case CLV_ATTRIBUTE_STRINGS:
      CLV__TRY(copy_list(arena, given->strings, given->count, sizeof *given->strings, (const void **)&copy->strings, error));
      return copy_strings(arena, (clv_string *)copy->strings, given->count, error);
    case CLV_ATTRIBUTE_TENSOR: {
      clv_tensor *tensor = clv__arena_allocate_zero(arena, 1, sizeof *tensor);
      if (tensor == NULL) return clv__error_memory(error, sizeof *tensor);
      if (given->tensor == NULL || given->tensor->data == NULL) return null_argument(error, "the tensor of an attribute");
      copy->tensor = tensor;
      CLV__TRY(read_type(builder, given->name, given->tensor, NULL, tensor, error));
      tensor->data = given->tensor->data;
      return keep_bytes(builder, given->name, tensor, CLV_COPY, tensor, error);
    }
    case CLV_ATTRIBUTE_GRAPH:
      return take_body(builder, given, error);
  }
  return clv__error_set(error, CLV_INVALID_ARGUMENT, "attribute '%s' has the unknown kind %d", given->name, (int)given->kind);
}

static clv_status find_values(clv_graph_builder *builder, const char *const *names, uint32_t count, const char *what,
                              clv_value_id *values, clv_error *error) {
  for (uint32_t i = 0; i < count; ++i) CLV__TRY(find_value(builder, names[i], what, &values[i], error));
  return CLV_OK;
}

clv_status clv_graph_builder_node(clv_graph_builder *builder, const clv_builder_node *given, clv_error *error) {
  clv_builder_node node = {0};
  if (builder == NULL || given == NULL) return null_argument(error, "builder and node");
  CLV__TRY(clv__options_read(&node, sizeof node, given, "{.struct_size = sizeof(clv_builder_node)}", error));
  CLV__TRY(clv__options_list(node.inputs, node.input_count, "inputs", error));
  CLV__TRY(clv__options_list(node.outputs, node.output_count, "outputs", error));
  CLV__TRY(clv__options_list(node.attributes, node.attribute_count, "attributes", error));
  const char *domain = domain_of(node.domain), *name = node.name == NULL ? "" : node.name;
  CLV__TRY(check_name(node.op, "op", error));
  CLV__TRY(check_name(domain, "domain", error));
  CLV__TRY(check_name(name, "node", error));
  clv__arena *arena = clv__builder_arena(builder->inner);
  clv_value_id *values = clv__arena_allocate_zero(arena, (size_t)node.input_count + node.output_count, sizeof *values);
  clv_attribute *attributes = clv__arena_allocate_zero(arena, node.attribute_count, sizeof *attributes);
  if (values == NULL || attributes == NULL) return clv__error_memory(error, node.attribute_count * sizeof *attributes);
  CLV__TRY(find_values(builder, node.inputs, node.input_count, "input", values, error));
  CLV__TRY(find_values(builder, node.outputs, node.output_count, "output", values + node.input_count, error));
  uint32_t copied = 0;
  clv_status status = CLV_OK;
  while (status == CLV_OK && copied < node.attribute_count) {
    status = copy_attribute(builder, &node.attributes[copied], &attributes[copied], error);
    if (status == CLV_OK) ++copied;
  }
  if (status == CLV_OK) {
    status = clv__builder_node(builder->inner, name, domain, node.op, values, node.input_count, values + node.input_count,
                               node.output_count, attributes, node.attribute_count, error);
  }
  for (uint32_t i = 0; status != CLV_OK && i < copied; ++i) { /* no node was made that would own the bodies */
    if (attributes[i].kind == CLV_ATTRIBUTE_GRAPH) clv__graph_destroy((clv_graph *)attributes[i].graph->graph);
  }
  return status == CLV_OK ? CLV_OK : clv__error_prefix(error, status, "node '%s' (%s)", name, node.op);
}

/* ---- The result ---- */

/* Infers the types of all values, which also checks the nodes. Sets the types of the outputs that have no declared type. */
static clv_status infer_outputs(clv_graph *graph, clv_error *error) {
  clv__shapes *shapes;
  CLV__TRY(clv__shapes_infer(graph, NULL, 0, FOLD_LIMIT_BYTES, &shapes, error));
  for (uint32_t i = 0; i < graph->output_count; ++i) {
    clv_tensor *type = &((clv__value *)&graph->values[graph->outputs[i]])->type;
    if (type->dtype != CLV_DTYPE_NONE) continue;
    *type = shapes->types[graph->outputs[i]];
    type->data = NULL; /* if inference knows the bytes of the value, they belong to `shapes` */
    for (int32_t k = 0; k < type->rank; ++k) {
      if (type->dims[k] <= CLV_DIM_SYMBOL(graph->symbol_count)) type->dims[k] = CLV_DIM_UNKNOWN; /* not the graph's symbol */
    }
  }
  clv__shapes_destroy(shapes);
  return CLV_OK;
}

/* Checks that the builder makes a body (`is_body`) or a graph, as the caller expects, and that none of its own bodies is
 * open. */
static clv_status check_end(const clv_graph_builder *builder, bool is_body, clv_error *error) {
  if ((builder->parent != NULL) != is_body) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "this builder makes %s: call clv_graph_builder_finish%s() for it",
                          is_body ? "a graph" : "a body", is_body ? "" : "_body");
  }
  if (builder->open_bodies > 0) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "%u of its bodies are neither finished nor destroyed",
                          builder->open_bodies);
  }
  return CLV_OK;
}

clv_status clv_graph_builder_finish(clv_graph_builder *builder, clv_graph **graph, clv_error *error) {
  if (builder == NULL || graph == NULL) return null_argument(error, "builder and graph");
  *graph = NULL;
  CLV__TRY(check_end(builder, false, error));
  clv_status status = clv__builder_finish(builder->inner, graph, error);
  release(builder);
  if (status == CLV_OK) status = infer_outputs(*graph, error);
  if (status != CLV_OK) {
    clv__graph_destroy(*graph);
    *graph = NULL;
  }
  return status;
}

clv_status clv_graph_builder_finish_body(clv_graph_builder *body, const clv_graph_view **view, clv_error *error) {
  if (body == NULL || view == NULL) return null_argument(error, "body and view");
  *view = NULL;
  CLV__TRY(check_end(body, true, error));
  clv_graph_builder *root = body->root;
  if (!clv__array_reserve(root->allocator, (void **)&root->bodies, &root->body_capacity, root->body_count + 1,
                          sizeof *root->bodies, root->body_count)) {
    clv_graph_builder_destroy(body);
    return clv__error_memory(error, sizeof *root->bodies);
  }
  clv_status status = clv__builder_finish_body(body->inner, root->inner, view, error);
  if (status == CLV_OK) root->bodies[root->body_count++] = *view;
  release(body);
  return status;
}
