/* Makes small ONNX models with the project's own protobuf writer, to test the reader and as seeds for fuzzing. Each function
 * appends the bytes of a model, or of a part of a model, to a text. */
#ifndef CLEAVE_TESTS_FORMATS_ONNX_MODELS_H
#define CLEAVE_TESTS_FORMATS_ONNX_MODELS_H

#include <stdarg.h>
#include <string.h>

#include "base/memory.h"
#include "base/tensor/tensor.h"
#include "formats/onnx/protobuf.h"
#include "formats/onnx/schema.h"

#define MODEL_UNUSED __attribute__((unused))

/* Writes a tensor as field `field`. If `raw` is NULL, omits the data. */
MODEL_UNUSED static void model_tensor(clv__text *out, uint32_t field, const char *name, int dtype, const int64_t *dims,
                                      size_t rank, const void *raw, size_t raw_bytes) {
  size_t mark = clv__proto_begin(out, field, 0);
  clv__proto_write_ints(out, TENSOR_DIMS, dims, rank);
  clv__proto_write_varint(out, TENSOR_DATA_TYPE, (uint64_t)dtype);
  clv__proto_write_string(out, TENSOR_NAME, name);
  if (raw != NULL) clv__proto_write_bytes(out, TENSOR_RAW_DATA, raw, raw_bytes);
  clv__proto_end(out, mark, 0);
}

MODEL_UNUSED static void model_entry(clv__text *out, uint32_t field, const char *key, const char *value) {
  size_t mark = clv__proto_begin(out, field, 0);
  clv__proto_write_string(out, ENTRY_KEY, key);
  clv__proto_write_string(out, ENTRY_VALUE, value);
  clv__proto_end(out, mark, 0);
}

/* Writes an initializer with external data. An entry that is NULL is omitted. */
MODEL_UNUSED static void model_external(clv__text *out, const char *name, int dtype, const int64_t *dims, size_t rank,
                                        const char *location, const char *offset, const char *length) {
  size_t mark = clv__proto_begin(out, GRAPH_INITIALIZER, 0);
  clv__proto_write_ints(out, TENSOR_DIMS, dims, rank);
  clv__proto_write_varint(out, TENSOR_DATA_TYPE, (uint64_t)dtype);
  clv__proto_write_string(out, TENSOR_NAME, name);
  if (location != NULL) model_entry(out, TENSOR_EXTERNAL_DATA, "location", location);
  if (offset != NULL) model_entry(out, TENSOR_EXTERNAL_DATA, "offset", offset);
  if (length != NULL) model_entry(out, TENSOR_EXTERNAL_DATA, "length", length);
  clv__proto_write_varint(out, TENSOR_DATA_LOCATION, 1);
  clv__proto_end(out, mark, 0);
}

/* Writes a value with its type. A dim of -1 is the symbol "N", one of -2 the symbol "?". */
MODEL_UNUSED static void model_value(clv__text *out, uint32_t field, const char *name, int dtype, const int64_t *dims,
                                     size_t rank) {
  size_t mark = clv__proto_begin(out, field, 0);
  clv__proto_write_string(out, VALUE_NAME, name);
  size_t type = clv__proto_begin(out, VALUE_TYPE, 0), tensor = clv__proto_begin(out, TYPE_TENSOR, 0);
  clv__proto_write_varint(out, TENSOR_TYPE_ELEM, (uint64_t)dtype);
  size_t shape = clv__proto_begin(out, TENSOR_TYPE_SHAPE, 0);
  for (size_t i = 0; i < rank; ++i) {
    size_t dim = clv__proto_begin(out, SHAPE_DIM, 0);
    if (dims[i] < 0)
      clv__proto_write_string(out, DIM_PARAM, dims[i] == -1 ? "N" : "?");
    else
      clv__proto_write_varint(out, DIM_VALUE, (uint64_t)dims[i]);
    clv__proto_end(out, dim, 0);
  }
  clv__proto_end(out, shape, 0);
  clv__proto_end(out, tensor, 0);
  clv__proto_end(out, type, 0);
  clv__proto_end(out, mark, 0);
}

MODEL_UNUSED static void model_int(clv__text *out, const char *name, int64_t value) {
  size_t mark = clv__proto_begin(out, NODE_ATTRIBUTE, 0);
  clv__proto_write_string(out, ATTRIBUTE_NAME, name);
  clv__proto_write_varint(out, ATTRIBUTE_I, (uint64_t)value);
  clv__proto_write_varint(out, ATTRIBUTE_TYPE, ATTRIBUTE_TYPE_INT);
  clv__proto_end(out, mark, 0);
}

/* Writes an attribute `name` that refers to the function's attribute `reference`. */
MODEL_UNUSED static void model_reference(clv__text *out, const char *name, const char *reference, int type) {
  size_t mark = clv__proto_begin(out, NODE_ATTRIBUTE, 0);
  clv__proto_write_string(out, ATTRIBUTE_NAME, name);
  clv__proto_write_string(out, ATTRIBUTE_REF_NAME, reference);
  clv__proto_write_varint(out, ATTRIBUTE_TYPE, (uint64_t)type);
  clv__proto_end(out, mark, 0);
}

/* Begins a node. `inputs` and `outputs` are names separated by commas. End the node with clv__proto_end(out, mark, 0). */
MODEL_UNUSED static size_t model_node(clv__text *out, uint32_t field, const char *name, const char *domain, const char *op,
                                      const char *inputs, const char *outputs) {
  size_t mark = clv__proto_begin(out, field, 0);
  for (int pass = 0; pass < 2; ++pass) {
    const char *at = pass == 0 ? inputs : outputs;
    while (*at != '\0') {
      size_t length = strcspn(at, ",");
      clv__proto_write_bytes(out, pass == 0 ? NODE_INPUT : NODE_OUTPUT, at, length);
      at += length + (at[length] == ',');
    }
  }
  if (name[0] != '\0') clv__proto_write_string(out, NODE_NAME, name);
  clv__proto_write_string(out, NODE_OP_TYPE, op);
  if (domain[0] != '\0') clv__proto_write_string(out, NODE_DOMAIN, domain);
  return mark;
}

MODEL_UNUSED static void model_plain_node(clv__text *out, const char *op, const char *inputs, const char *outputs) {
  clv__proto_end(out, model_node(out, GRAPH_NODE, "", "", op, inputs, outputs), 0);
}

MODEL_UNUSED static void model_import(clv__text *out, uint32_t field, const char *domain, int version) {
  size_t mark = clv__proto_begin(out, field, 0);
  if (domain[0] != '\0') clv__proto_write_string(out, OPSET_DOMAIN, domain);
  clv__proto_write_varint(out, OPSET_VERSION, (uint64_t)version);
  clv__proto_end(out, mark, 0);
}

/* Begins a model and its graph; model_close() ends the graph. */
MODEL_UNUSED static size_t model_open(clv__text *out, int ir_version) {
  clv__proto_write_varint(out, MODEL_IR_VERSION, (uint64_t)ir_version);
  model_import(out, MODEL_OPSET_IMPORT, "", 17);
  return clv__proto_begin(out, MODEL_GRAPH, 0);
}

MODEL_UNUSED static void model_close(clv__text *out, size_t mark) {
  clv__proto_end(out, mark, 0);
}

/* Writes an attribute, "then_branch" or "else_branch", whose body has one node that reads outer values. */
MODEL_UNUSED static void model_branch(clv__text *out, const char *attribute, const char *op, const char *inputs,
                                      const char *output) {
  static const int64_t dims[] = {-1, 3};
  size_t mark = clv__proto_begin(out, NODE_ATTRIBUTE, 0);
  clv__proto_write_string(out, ATTRIBUTE_NAME, attribute);
  size_t graph = clv__proto_begin(out, ATTRIBUTE_G, 0);
  clv__proto_write_string(out, GRAPH_NAME, attribute);
  model_plain_node(out, op, inputs, output);
  model_value(out, GRAPH_OUTPUT, output, CLV_F32, dims, 2);
  clv__proto_end(out, graph, 0);
  clv__proto_write_varint(out, ATTRIBUTE_TYPE, ATTRIBUTE_TYPE_GRAPH);
  clv__proto_end(out, mark, 0);
}

/* Writes a model that uses most of ONNX: initializers of many dtypes, raw and typed; attributes of all kinds; an If with
 * captures; a function that calls another, with attribute references and defaults; metadata; symbols; an initializer that is also
 * an input. */
MODEL_UNUSED static void model_everything(clv__text *out) {
  static const int64_t x_dims[] = {-1, 3}, three[] = {3}, two[] = {2};
  static const float floats[] = {1.0f, -2.5f, 3.25f};
  static const uint8_t raw[24] = {1, 0, 1, 0x80, 0x3f, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25};
  size_t graph = model_open(out, 10);
  size_t node = model_node(out, GRAPH_NODE, "add", "", "Add", "X,w", "a");
  clv__proto_end(out, node, 0);
  node = model_node(out, GRAPH_NODE, "sum", "", "ReduceSum", "a,,", "s");
  model_int(out, "keepdims", 0);
  clv__proto_end(out, node, 0);
  node = model_node(out, GRAPH_NODE, "constant", "", "Constant", "", "c");
  size_t attribute = clv__proto_begin(out, NODE_ATTRIBUTE, 0);
  clv__proto_write_string(out, ATTRIBUTE_NAME, "value");
  model_tensor(out, ATTRIBUTE_T, "", CLV_F32, three, 1, floats, sizeof floats);
  clv__proto_write_varint(out, ATTRIBUTE_TYPE, ATTRIBUTE_TYPE_TENSOR);
  clv__proto_end(out, attribute, 0);
  clv__proto_end(out, node, 0);
  node = model_node(out, GRAPH_NODE, "lists", "custom", "Lists", "a", "l,,m");
  attribute = clv__proto_begin(out, NODE_ATTRIBUTE, 0);
  clv__proto_write_string(out, ATTRIBUTE_NAME, "ints");
  clv__proto_write_ints(out, ATTRIBUTE_INTS, (const int64_t[]){-1, 0, 1LL << 62}, 3);
  clv__proto_write_varint(out, ATTRIBUTE_INTS, 5);
  clv__proto_write_varint(out, ATTRIBUTE_TYPE, ATTRIBUTE_TYPE_INTS);
  clv__proto_end(out, attribute, 0);
  attribute = clv__proto_begin(out, NODE_ATTRIBUTE, 0);
  clv__proto_write_string(out, ATTRIBUTE_NAME, "floats");
  clv__proto_write_floats(out, ATTRIBUTE_FLOATS, floats, 3);
  clv__proto_write_varint(out, ATTRIBUTE_TYPE, ATTRIBUTE_TYPE_FLOATS);
  clv__proto_end(out, attribute, 0);
  attribute = clv__proto_begin(out, NODE_ATTRIBUTE, 0);
  clv__proto_write_string(out, ATTRIBUTE_NAME, "strings");
  clv__proto_write_bytes(out, ATTRIBUTE_STRINGS, "a\0b", 3);
  clv__proto_write_bytes(out, ATTRIBUTE_STRINGS, "", 0);
  clv__proto_write_varint(out, ATTRIBUTE_TYPE, ATTRIBUTE_TYPE_STRINGS);
  clv__proto_end(out, attribute, 0);
  clv__proto_end(out, node, 0);
  node = model_node(out, GRAPH_NODE, "if", "", "If", "flag", "branch");
  model_branch(out, "then_branch", "Add", "a,c", "t");
  model_branch(out, "else_branch", "Sub", "a,w", "e");
  clv__proto_end(out, node, 0);
  node = model_node(out, GRAPH_NODE, "call", "local", "scale", "branch", "Y");
  model_int(out, "axis", 1);
  clv__proto_end(out, node, 0);
  clv__proto_write_string(out, GRAPH_NAME, "everything");
  model_tensor(out, GRAPH_INITIALIZER, "w", CLV_F32, three, 1, floats, sizeof floats);
  static const int dtypes[] = {CLV_U8,   CLV_I8,  CLV_U16, CLV_I16, CLV_I32, CLV_I64,
                               CLV_BOOL, CLV_F16, CLV_F64, CLV_U32, CLV_U64, CLV_BF16};
  for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; ++i) {
    char name[8] = {'r', (char)('a' + i), '\0'};
    model_tensor(out, GRAPH_INITIALIZER, name, dtypes[i], three, 1, raw, 3 * clv_dtype_size_bytes((clv_dtype)dtypes[i]));
  }
  size_t tensor = clv__proto_begin(out, GRAPH_INITIALIZER, 0);
  clv__proto_write_ints(out, TENSOR_DIMS, two, 1);
  clv__proto_write_varint(out, TENSOR_DATA_TYPE, CLV_I8);
  clv__proto_write_ints(out, TENSOR_INT32_DATA, (const int64_t[]){-3, 100}, 2);
  clv__proto_write_string(out, TENSOR_NAME, "typed");
  clv__proto_end(out, tensor, 0);
  tensor = clv__proto_begin(out, GRAPH_INITIALIZER, 0);
  clv__proto_write_ints(out, TENSOR_DIMS, two, 1);
  clv__proto_write_varint(out, TENSOR_DATA_TYPE, CLV_STRING);
  clv__proto_write_string(out, TENSOR_STRING_DATA, "one");
  clv__proto_write_string(out, TENSOR_STRING_DATA, "");
  clv__proto_write_string(out, TENSOR_NAME, "text");
  clv__proto_end(out, tensor, 0);
  model_value(out, GRAPH_INPUT, "X", CLV_F32, x_dims, 2);
  model_value(out, GRAPH_INPUT, "flag", CLV_BOOL, NULL, 0);
  model_value(out, GRAPH_INPUT, "w", CLV_F32, three, 1);
  model_value(out, GRAPH_INPUT, "small", 14 /* complex64 */, three, 1);
  model_value(out, GRAPH_OUTPUT, "Y", CLV_F32, x_dims, 2);
  model_value(out, GRAPH_OUTPUT, "s", CLV_F32, NULL, 0);
  model_value(out, GRAPH_VALUE_INFO, "a", CLV_F32, x_dims, 2);
  model_close(out, graph);
  model_import(out, MODEL_OPSET_IMPORT, "custom", 3);
  model_import(out, MODEL_OPSET_IMPORT, "local", 1);
  model_entry(out, MODEL_METADATA_PROPS, "author", "test");

  size_t function = clv__proto_begin(out, MODEL_FUNCTIONS, 0);
  clv__proto_write_string(out, FUNCTION_NAME, "scale");
  clv__proto_write_string(out, FUNCTION_INPUT, "A");
  clv__proto_write_string(out, FUNCTION_INPUT, "B");
  clv__proto_write_string(out, FUNCTION_OUTPUT, "C");
  attribute = clv__proto_begin(out, FUNCTION_ATTRIBUTE_PROTO, 0);
  clv__proto_write_string(out, ATTRIBUTE_NAME, "epsilon");
  clv__proto_write_float(out, ATTRIBUTE_F, 0.5f);
  clv__proto_write_varint(out, ATTRIBUTE_TYPE, ATTRIBUTE_TYPE_FLOAT);
  clv__proto_end(out, attribute, 0);
  node = model_node(out, FUNCTION_NODE, "soft", "", "Softmax", "A", "a");
  model_reference(out, "axis", "axis", ATTRIBUTE_TYPE_INT);
  model_reference(out, "epsilon", "epsilon", ATTRIBUTE_TYPE_FLOAT);
  model_reference(out, "absent", "absent", ATTRIBUTE_TYPE_FLOAT);
  clv__proto_end(out, node, 0);
  node = model_node(out, FUNCTION_NODE, "", "local", "twice", "a", "C");
  clv__proto_end(out, node, 0);
  clv__proto_write_string(out, FUNCTION_DOMAIN, "local");
  model_import(out, FUNCTION_OPSET_IMPORT, "", 17);
  clv__proto_end(out, function, 0);

  function = clv__proto_begin(out, MODEL_FUNCTIONS, 0);
  clv__proto_write_string(out, FUNCTION_NAME, "twice");
  clv__proto_write_string(out, FUNCTION_INPUT, "a");
  clv__proto_write_string(out, FUNCTION_OUTPUT, "b");
  node = model_node(out, FUNCTION_NODE, "", "", "Add", "a,a", "t");
  clv__proto_end(out, node, 0);
  node = model_node(out, FUNCTION_NODE, "", "ai.onnx", "Neg", "t", "b");
  clv__proto_end(out, node, 0);
  clv__proto_write_string(out, FUNCTION_DOMAIN, "local");
  clv__proto_end(out, function, 0);
}

/* Writes `depth` nested Ifs, with about ten bytes per level. */
MODEL_UNUSED static void model_nested(clv__text *out, unsigned depth, size_t *marks) {
  size_t graph = model_open(out, 8);
  for (unsigned i = 0; i < depth; ++i) {
    marks[3 * i] = clv__proto_begin(out, GRAPH_NODE, 0);
    clv__proto_write_string(out, NODE_OP_TYPE, "If");
    marks[3 * i + 1] = clv__proto_begin(out, NODE_ATTRIBUTE, 0);
    clv__proto_write_string(out, ATTRIBUTE_NAME, "b");
    marks[3 * i + 2] = clv__proto_begin(out, ATTRIBUTE_G, 0);
  }
  for (unsigned i = depth; i-- > 0;) {
    clv__proto_end(out, marks[3 * i + 2], 0);
    clv__proto_end(out, marks[3 * i + 1], 0);
    clv__proto_end(out, marks[3 * i], 0);
  }
  model_close(out, graph);
}

#endif
