/* Writes a view as an ONNX model: its nodes, bodies, types and constants. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "formats/onnx/define.h"
#include "formats/onnx/onnx.h"
#include "formats/onnx/protobuf.h"
#include "formats/onnx/schema.h"

enum {
  IR_WRITTEN = 8
}; /* the IR version of every written model: new enough for all features used here, old enough for most readers */

typedef struct writer {
  clv__text *out;
  size_t inline_limit_bytes;
  const clv__onnx_outside *outside; /* NULL: all data is in the model */
  bool expands;                     /* Cleave's own operators become the nodes of their bodies; otherwise calls of functions */
  clv_error *error;
} writer;

/* Sets `*size_bytes` to the size of a constant's data in memory, including the text of strings. */
static bool data_bytes(const clv_tensor *tensor, size_t *size_bytes) {
  if (!clv__tensor_size_bytes(tensor, size_bytes)) return false;
  if (tensor->dtype != CLV_STRING) return true;
  const clv_string *strings = tensor->data;
  size_t count = *size_bytes / sizeof *strings;
  for (size_t i = 0; i < count; ++i) *size_bytes += strings[i].size_bytes;
  return true;
}

static void write_entry(clv__text *out, const char *key, const char *value) {
  size_t mark = clv__proto_begin(out, TENSOR_EXTERNAL_DATA, 0);
  clv__proto_write_string(out, ENTRY_KEY, key);
  clv__proto_write_string(out, ENTRY_VALUE, value);
  clv__proto_end(out, mark, 0);
}

/* Writes, instead of a tensor's bytes, their location in another file. */
static void write_place(clv__text *out, const char *file, uint64_t offset, size_t size_bytes) {
  char number[24];
  write_entry(out, "location", file);
  snprintf(number, sizeof number, "%" PRIu64, offset);
  write_entry(out, "offset", number);
  snprintf(number, sizeof number, "%zu", size_bytes);
  write_entry(out, "length", number);
  clv__proto_write_varint(out, TENSOR_DATA_LOCATION, TENSOR_LOCATION_EXTERNAL);
}

static clv_status write_tensor_fields(clv__text *out, const clv_tensor *tensor, const char *name, const char *file,
                                      uint64_t offset, clv_error *error) {
  size_t count, size_bytes;
  if (tensor->data == NULL || !clv__tensor_count(tensor, &count) || !clv__tensor_size_bytes(tensor, &size_bytes)) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "tensor '%s' has no data or an unknown size, so it cannot be written",
                          name);
  }
  clv__proto_write_ints(out, TENSOR_DIMS, tensor->dims, (size_t)tensor->rank);
  clv__proto_write_varint(out, TENSOR_DATA_TYPE, (uint64_t)tensor->dtype);
  if (name[0] != '\0') clv__proto_write_string(out, TENSOR_NAME, name);
  if (tensor->dtype == CLV_STRING) {
    const clv_string *strings = tensor->data;
    for (size_t i = 0; i < count; ++i) clv__proto_write_bytes(out, TENSOR_STRING_DATA, strings[i].data, strings[i].size_bytes);
  } else if (file != NULL) {
    write_place(out, file, offset, size_bytes);
  } else {
    clv__proto_write_bytes(out, TENSOR_RAW_DATA, tensor->data, size_bytes);
  }
  return CLV_OK;
}

static clv_status write_tensor(const writer *self, uint32_t field, const clv_tensor *tensor, const char *name) {
  size_t expected = 0;
  if (tensor->data != NULL) data_bytes(tensor, &expected);
  expected += strlen(name) + 16;
  size_t mark = clv__proto_begin(self->out, field, expected);
  CLV__TRY(write_tensor_fields(self->out, tensor, name, NULL, 0, self->error));
  clv__proto_end(self->out, mark, expected);
  return CLV_OK;
}

/* Writes an initializer of the model itself, not of a body. Its bytes may be in another file. */
static clv_status write_initializer(const writer *self, const clv_tensor *tensor, clv_value_id value, const char *name) {
  bool is_outside;
  uint64_t offset;
  CLV__TRY(self->outside->place(self->outside->self, value, tensor, &is_outside, &offset, self->error));
  if (!is_outside) return write_tensor(self, GRAPH_INITIALIZER, tensor, name);
  size_t mark = clv__proto_begin(self->out, GRAPH_INITIALIZER, 0);
  CLV__TRY(write_tensor_fields(self->out, tensor, name, self->outside->file, offset, self->error));
  clv__proto_end(self->out, mark, 0);
  return CLV_OK;
}

/* ---- Types ---- */

static void write_shape(clv__text *out, const clv_graph *graph, const clv_tensor *type) {
  size_t mark = clv__proto_begin(out, TENSOR_TYPE_SHAPE, 0);
  for (int32_t i = 0; i < type->rank; ++i) {
    size_t dim_mark = clv__proto_begin(out, SHAPE_DIM, 0);
    int64_t dim = type->dims[i];
    if (dim >= 0) {
      clv__proto_write_varint(out, DIM_VALUE, (uint64_t)dim);
    } else if (dim < CLV_DIM_UNKNOWN && (uint64_t)(-2 - dim) < graph->symbol_count) {
      clv__proto_write_string(out, DIM_PARAM, graph->symbols[-2 - dim]);
    }
    clv__proto_end(out, dim_mark, 0);
  }
  clv__proto_end(out, mark, 0);
}

static void write_value(clv__text *out, uint32_t field, const clv_graph *graph, const char *name, const clv_tensor *type) {
  size_t mark = clv__proto_begin(out, field, 0);
  clv__proto_write_string(out, VALUE_NAME, name);
  if (type->dtype != CLV_DTYPE_NONE) {
    size_t type_mark = clv__proto_begin(out, VALUE_TYPE, 0);
    size_t tensor_mark = clv__proto_begin(out, TYPE_TENSOR, 0);
    clv__proto_write_varint(out, TENSOR_TYPE_ELEM, (uint64_t)type->dtype);
    if (type->rank != CLV_RANK_UNKNOWN) write_shape(out, graph, type);
    clv__proto_end(out, tensor_mark, 0);
    clv__proto_end(out, type_mark, 0);
  }
  clv__proto_end(out, mark, 0);
}

/* ---- Nodes ---- */

static clv_status write_graph(const writer *self, uint32_t field, const clv_graph_view *view, bool is_body);

static clv_status write_attribute(const writer *self, const clv_attribute *attribute) {
  clv__text *out = self->out;
  size_t mark = clv__proto_begin(out, NODE_ATTRIBUTE, 0);
  clv__proto_write_string(out, ATTRIBUTE_NAME, attribute->name);
  bool is_list = attribute->is_list || attribute->count != 1;
  int type = ATTRIBUTE_TYPE_UNDEFINED;
  switch (attribute->kind) {
    case CLV_ATTRIBUTE_INTS:
      type = is_list ? ATTRIBUTE_TYPE_INTS : ATTRIBUTE_TYPE_INT;
      if (!is_list) clv__proto_write_varint(out, ATTRIBUTE_I, (uint64_t)attribute->ints[0]);
      for (size_t i = 0; is_list && i < attribute->count; ++i) {
        clv__proto_write_varint(out, ATTRIBUTE_INTS, (uint64_t)attribute->ints[i]);
      }
      break;
    case CLV_ATTRIBUTE_FLOATS:
      type = is_list ? ATTRIBUTE_TYPE_FLOATS : ATTRIBUTE_TYPE_FLOAT;
      for (size_t i = 0; i < attribute->count; ++i) {
        clv__proto_write_float(out, is_list ? ATTRIBUTE_FLOATS : ATTRIBUTE_F, attribute->floats[i]);
      }
      break;
    case CLV_ATTRIBUTE_STRINGS:
      type = is_list ? ATTRIBUTE_TYPE_STRINGS : ATTRIBUTE_TYPE_STRING;
      for (size_t i = 0; i < attribute->count; ++i) {
        clv__proto_write_bytes(out, is_list ? ATTRIBUTE_STRINGS : ATTRIBUTE_S, attribute->strings[i].data,
                               attribute->strings[i].size_bytes);
      }
      break;
    case CLV_ATTRIBUTE_TENSOR:
      type = ATTRIBUTE_TYPE_TENSOR;
      CLV__TRY(write_tensor(self, ATTRIBUTE_T, attribute->tensor, ""));
      break;
    case CLV_ATTRIBUTE_GRAPH:
      type = ATTRIBUTE_TYPE_GRAPH;
      CLV__TRY(write_graph(self, ATTRIBUTE_G, attribute->graph, true));
      break;
  }
  clv__proto_write_varint(out, ATTRIBUTE_TYPE, (uint64_t)type);
  clv__proto_end(out, mark, 0);
  return CLV_OK;
}

/* Omits captures from the node's inputs: in ONNX, bodies refer to outer values by name. */
static clv_status write_node(const writer *self, const clv_graph *graph, const clv__node *node) {
  clv__text *out = self->out;
  const clv__body *body = clv__onnx_body(graph, node);
  if (body != NULL && self->expands) {
    clv__onnx_write_expanded(out, graph, node, body);
    return CLV_OK;
  }
  size_t mark = clv__proto_begin(out, GRAPH_NODE, 0);
  for (uint32_t i = 0; i < node->input_count - node->capture_count; ++i) {
    clv__proto_write_string(out, NODE_INPUT, node->inputs[i] == CLV__NO_ID ? "" : graph->values[node->inputs[i]].name);
  }
  for (uint32_t i = 0; i < node->output_count; ++i) {
    clv__proto_write_string(out, NODE_OUTPUT, node->outputs[i] == CLV__NO_ID ? "" : graph->values[node->outputs[i]].name);
  }
  clv__proto_write_string(out, NODE_NAME, node->name);
  clv__proto_write_string(out, NODE_OP_TYPE, body != NULL ? body->function : node->op);
  for (uint32_t i = 0; i < node->attributes.count; ++i) {
    clv_status status = write_attribute(self, &node->attributes.items[i]);
    if (status != CLV_OK) return clv__error_prefix(self->error, status, "node '%s' (%s)", node->name, node->op);
  }
  if (body != NULL) clv__onnx_write_default(out, node, body);
  if (node->domain[0] != '\0') clv__proto_write_string(out, NODE_DOMAIN, node->domain);
  clv__proto_end(out, mark, 0);
  return CLV_OK;
}

/* ---- Graphs ---- */

typedef enum value_role {
  ROLE_INNER,    /* any other value of the view: produced by its nodes, or captured if the view is written as a body */
  ROLE_OUTPUT,   /* produced by a node of the view, and an output of the view */
  ROLE_INPUT,    /* an input of the view */
  ROLE_CAPTURE,  /* a capture of the view, which is a body written as a model: becomes an input */
  ROLE_CONSTANT, /* a constant that becomes an initializer */
  ROLE_LEFT_OUT  /* a constant that is omitted and becomes an input */
} value_role;

static void find_roles(const writer *self, const clv_graph_view *view, bool is_body, uint8_t *roles) {
  const clv_graph *graph = view->graph;
  for (uint32_t v = 0; v < view->value_count; ++v) {
    const clv_tensor *type = clv__view_type(view, v);
    size_t size_bytes;
    roles[v] = ROLE_INNER;
    if (graph->values[view->values[v]].capture != CLV__NO_ID && !is_body) roles[v] = ROLE_CAPTURE;
    if (graph->values[view->values[v]].is_unbound) roles[v] = ROLE_LEFT_OUT;
    if (type->data == NULL) continue;
    bool large = !is_body && type->dtype != CLV_STRING && clv__tensor_size_bytes(type, &size_bytes) &&
                 size_bytes > self->inline_limit_bytes;
    roles[v] = large ? ROLE_LEFT_OUT : ROLE_CONSTANT;
  }
  for (uint32_t n = 0; n < view->node_count; ++n) {
    const clv__node *node = clv__view_node(view, n);
    const uint32_t *outputs = view->operands + view->operand_offsets[n] + node->input_count;
    for (uint32_t i = 0; i < node->output_count; ++i) {
      if (outputs[i] != CLV_NO_VALUE) roles[outputs[i]] = ROLE_INNER;
    }
  }
  for (uint32_t i = 0; i < view->input_count; ++i) roles[view->inputs[i]] = ROLE_INPUT;
  for (uint32_t i = 0; i < view->output_count; ++i) {
    if (roles[view->outputs[i]] == ROLE_INNER) roles[view->outputs[i]] = ROLE_OUTPUT;
  }
}

static void write_values(const writer *self, const clv_graph_view *view, uint32_t field, const uint8_t *roles, value_role role) {
  for (uint32_t v = 0; v < view->value_count; ++v) {
    const clv_tensor *type = clv__view_type(view, v);
    if (roles[v] != role || (role == ROLE_INNER && type->dtype == CLV_DTYPE_NONE)) continue;
    const clv__value *value = &view->graph->values[view->values[v]];
    if (role == ROLE_INNER && value->capture != CLV__NO_ID) continue;
    write_value(self->out, field, view->graph, value->name, type);
  }
}

static clv_status write_constants(const writer *self, const clv_graph_view *view, bool is_body, const uint8_t *roles) {
  for (uint32_t v = 0; v < view->value_count; ++v) {
    const clv_tensor *type = clv__view_type(view, v);
    size_t size_bytes;
    bool small = type->data != NULL && data_bytes(type, &size_bytes) && size_bytes <= self->inline_limit_bytes;
    bool is_default = roles[v] == ROLE_INPUT && small; /* an input with a default value, which becomes its initializer */
    if (roles[v] != ROLE_CONSTANT && !is_default) continue;
    const char *name = view->graph->values[view->values[v]].name;
    if (self->outside != NULL && !is_body)
      CLV__TRY(write_initializer(self, type, view->values[v], name));
    else
      CLV__TRY(write_tensor(self, GRAPH_INITIALIZER, type, name));
  }
  return CLV_OK;
}

static size_t expected_bytes(const clv_graph_view *view, const uint8_t *roles) {
  size_t total = 0, size_bytes;
  for (uint32_t v = 0; v < view->value_count; ++v) {
    if (roles[v] == ROLE_CONSTANT && data_bytes(clv__view_type(view, v), &size_bytes)) total += size_bytes;
  }
  return total;
}

static clv_status write_graph(const writer *self, uint32_t field, const clv_graph_view *view, bool is_body) {
  const clv_allocator *allocator = self->out->allocator;
  const clv_graph *graph = view->graph;
  uint8_t *roles = clv__allocate(allocator, view->value_count);
  if (roles == NULL) return clv__error_memory(self->error, view->value_count);
  find_roles(self, view, is_body, roles);
  clv__text *out = self->out;
  size_t expected = self->outside != NULL && !is_body ? 0 : expected_bytes(view, roles);
  size_t mark = clv__proto_begin(out, field, expected);
  clv_status status = CLV_OK;
  for (uint32_t i = 0; i < view->node_count; ++i) CLV__TRY_GOTO(write_node(self, graph, clv__view_node(view, i)));
  clv__proto_write_string(out, GRAPH_NAME, graph->name[0] != '\0' ? graph->name : "graph");
  CLV__TRY_GOTO(write_constants(self, view, is_body, roles));
  for (uint32_t i = 0; i < view->input_count; ++i) {
    uint32_t v = view->inputs[i];
    write_value(out, GRAPH_INPUT, graph, graph->values[view->values[v]].name, clv__view_type(view, v));
  }
  write_values(self, view, GRAPH_INPUT, roles, ROLE_CAPTURE);
  write_values(self, view, GRAPH_INPUT, roles, ROLE_LEFT_OUT);
  for (uint32_t i = 0; i < view->output_count; ++i) {
    uint32_t v = view->outputs[i];
    write_value(out, GRAPH_OUTPUT, graph, graph->values[view->values[v]].name, clv__view_type(view, v));
  }
  write_values(self, view, GRAPH_VALUE_INFO, roles, ROLE_INNER);
  clv__proto_end(out, mark, expected);
cleanup:
  clv__release(allocator, roles);
  return status;
}

/* ---- The model ---- */

static bool uses_domain(const writer *self, const clv_graph_view *view, const char *domain) {
  for (uint32_t i = 0; i < view->node_count; ++i) {
    const clv__node *node = clv__view_node(view, i);
    bool is_expanded = self->expands && clv__onnx_body(view->graph, node) != NULL;
    if (strcmp(node->domain, domain) == 0 && !is_expanded) return true;
    for (uint32_t a = 0; a < node->attributes.count; ++a) {
      const clv_attribute *attribute = &node->attributes.items[a];
      if (attribute->kind == CLV_ATTRIBUTE_GRAPH && uses_domain(self, attribute->graph, domain)) return true;
    }
  }
  return false;
}

/* Returns whether `body` defines the operator of a node of the view, or of a node in a graph attribute inside it. */
static bool uses_body(const clv_graph_view *view, const clv__body *body) {
  for (uint32_t i = 0; i < view->node_count; ++i) {
    const clv__node *node = clv__view_node(view, i);
    if (clv__onnx_body(view->graph, node) == body) return true;
    for (uint32_t a = 0; a < node->attributes.count; ++a) {
      const clv_attribute *attribute = &node->attributes.items[a];
      if (attribute->kind == CLV_ATTRIBUTE_GRAPH && uses_body(attribute->graph, body)) return true;
    }
  }
  return false;
}

/* Writes the definitions of the operators that are not standard, if Cleave has them. */
static void write_functions(const writer *self, const clv_graph_view *view) {
  const clv__body *body;
  for (uint32_t i = 0; !self->expands && (body = clv__body_at(i)) != NULL; ++i) {
    if (uses_body(view, body)) clv__onnx_write_function(self->out, view->graph, body);
  }
}

static clv_status write_model(const writer *self, const clv_graph_view *view) {
  const clv_graph *graph = view->graph;
  clv__text *out = self->out;
  clv__proto_write_varint(out, MODEL_IR_VERSION, IR_WRITTEN);
  clv__proto_write_string(out, MODEL_PRODUCER_NAME, "cleave");
  CLV__TRY(write_graph(self, MODEL_GRAPH, view, false));
  for (uint32_t i = 0; i < graph->import_count; ++i) {
    const clv__opset_import *import = &graph->imports[i];
    if (import->domain[0] != '\0' && !uses_domain(self, view, import->domain))
      continue; /* omit unused domains, because some readers reject unknown ones */
    size_t mark = clv__proto_begin(out, MODEL_OPSET_IMPORT, 0);
    clv__proto_write_string(out, OPSET_DOMAIN, import->domain);
    clv__proto_write_varint(out, OPSET_VERSION, (uint64_t)import->version);
    clv__proto_end(out, mark, 0);
  }
  for (uint32_t i = 0; i < graph->metadata_count; ++i) {
    size_t mark = clv__proto_begin(out, MODEL_METADATA_PROPS, 0);
    clv__proto_write_string(out, ENTRY_KEY, graph->metadata[2 * i]);
    clv__proto_write_string(out, ENTRY_VALUE, graph->metadata[2 * i + 1]);
    clv__proto_end(out, mark, 0);
  }
  write_functions(self, view);
  return CLV_OK;
}

/* Passes the buffer to the caller, or frees it on failure. */
static clv_status hand_over(clv__text *out, clv_status status, void **data, size_t *size_bytes, clv_error *error) {
  if (status == CLV_OK && (out->failed || out->capacity == 0)) status = clv__error_memory(error, out->size_bytes * 2);
  if (status != CLV_OK) {
    clv__text_finish(out);
    return status;
  }
  *data = out->data;
  *size_bytes = out->size_bytes;
  return CLV_OK;
}

static clv_status write_view(const clv_graph_view *view, const writer *how, const clv_allocator *allocator, void **data,
                             size_t *size_bytes) {
  *data = NULL;
  *size_bytes = 0;
  clv__text out;
  clv__text_init(&out, allocator);
  writer self = *how;
  self.out = &out;
  return hand_over(&out, write_model(&self, view), data, size_bytes, how->error);
}

clv_status clv__onnx_write(const clv_graph_view *view, size_t inline_limit_bytes, const clv_allocator *allocator, void **data,
                           size_t *size_bytes, clv_error *error) {
  const writer how = {.inline_limit_bytes = inline_limit_bytes, .error = error};
  return write_view(view, &how, allocator, data, size_bytes);
}

clv_status clv__onnx_write_standard(const clv_graph_view *view, size_t inline_limit_bytes, const clv_allocator *allocator,
                                    void **data, size_t *size_bytes, clv_error *error) {
  const writer how = {.inline_limit_bytes = inline_limit_bytes, .expands = true, .error = error};
  return write_view(view, &how, allocator, data, size_bytes);
}

clv_status clv__onnx_write_beside(const clv_graph_view *view, const clv__onnx_outside *outside, const clv_allocator *allocator,
                                  void **data, size_t *size_bytes, clv_error *error) {
  const writer how = {.inline_limit_bytes = SIZE_MAX, .outside = outside, .error = error};
  return write_view(view, &how, allocator, data, size_bytes);
}

clv_status clv__onnx_tensor_write(const clv_tensor *tensor, const char *name, const clv_allocator *allocator, void **data,
                                  size_t *size_bytes, clv_error *error) {
  *data = NULL;
  *size_bytes = 0;
  clv__text out;
  clv__text_init(&out, allocator);
  return hand_over(&out, write_tensor_fields(&out, tensor, name, NULL, 0, error), data, size_bytes, error);
}
