/* See define.h. */
#include "formats/onnx/define.h"

#include <stdlib.h>
#include <string.h>

#include "formats/onnx/protobuf.h"
#include "formats/onnx/schema.h"

static int32_t standard_opset(const clv_graph *graph) {
  for (uint32_t i = 0; i < graph->import_count; ++i) {
    if (graph->imports[i].domain[0] == '\0') return graph->imports[i].version;
  }
  return 0;
}

const clv__body *clv__onnx_body(const clv_graph *graph, const clv__node *node) {
  const clv__attributes attributes = {node->attributes.items, node->attributes.count};
  if (node->domain[0] == '\0' || standard_opset(graph) < CLV__BODY_OPSET) return NULL;
  return clv__body_find(node->domain, node->op, attributes);
}

/* ---- Names ---- */

/* The place where a body is written: the node that it replaces, or a function, if `node` is NULL. */
typedef struct place {
  clv__text *out;
  const clv__body *body;
  const clv_graph *graph;
  const clv__node *node;
} place;

/* Returns the position of the word in a list of words separated by spaces; UINT32_MAX if the list does not have it. */
static uint32_t word_index(const char *list, const char *word, size_t length) {
  for (uint32_t i = 0; *list != '\0'; ++i) {
    size_t next = strcspn(list, " ");
    if (next == length && memcmp(list, word, length) == 0) return i;
    list += next + strspn(list + next, " ");
  }
  return UINT32_MAX;
}

static const char *value_name(const place *at, clv_value_id value) {
  return value == CLV__NO_ID ? "" : at->graph->values[value].name;
}

/* Writes a name of the body: of an operand of the node, or of a value that belongs to the body. */
static void write_name(const place *at, uint32_t field, const char *name, size_t length) {
  uint32_t input = at->node == NULL ? UINT32_MAX : word_index(at->body->inputs, name, length);
  size_t mark = clv__proto_begin(at->out, field, 0);
  if (input != UINT32_MAX) {
    clv__text_append(at->out, "%s", input < at->node->input_count ? value_name(at, at->node->inputs[input]) : "");
  } else {
    if (at->node != NULL) clv__text_append(at->out, "%s", value_name(at, at->node->outputs[0]));
    bool is_output = word_index(at->body->output, name, length) == 0;
    if (at->node == NULL || !is_output) clv__text_append(at->out, "%s%.*s", at->node == NULL ? "" : "@", (int)length, name);
  }
  clv__proto_end(at->out, mark, 0);
}

static void write_names(const place *at, uint32_t field, const char *names) {
  while (*names != '\0') {
    size_t length = strcspn(names, " ");
    write_name(at, field, names, length);
    names += length + strspn(names + length, " ");
  }
}

/* ---- Attributes ---- */

static void write_kind(clv__text *out, int kind) {
  clv__proto_write_varint(out, ATTRIBUTE_TYPE, (uint64_t)kind);
}

static void write_float(clv__text *out, float number) {
  clv__proto_write_float(out, ATTRIBUTE_F, number);
  write_kind(out, ATTRIBUTE_TYPE_FLOAT);
}

static void write_text(clv__text *out, const char *text, size_t length) {
  clv__proto_write_bytes(out, ATTRIBUTE_S, text, length);
  write_kind(out, ATTRIBUTE_TYPE_STRING);
}

/* Writes an attribute of the call: in a function, a reference to it; in place of a node, its value. */
static void write_reference(const place *at, const char *name, size_t length) {
  if (at->node == NULL) {
    clv__proto_write_bytes(at->out, ATTRIBUTE_REF_NAME, name, length);
    write_kind(at->out, ATTRIBUTE_TYPE_FLOAT);
    return;
  }
  const clv__attributes attributes = {at->node->attributes.items, at->node->attributes.count};
  write_float(at->out, clv__attribute_float(attributes, at->body->number, at->body->number_default));
}

/* Writes a value, whose form determines the kind of the attribute (clv__body_line). */
static void write_value(const place *at, const char *value, size_t length) {
  char *end;
  if (value[0] == '@') {
    write_reference(at, value + 1, length - 1);
  } else if (value[0] == '[') {
    clv__proto_write_varint(at->out, ATTRIBUTE_INTS, (uint64_t)strtoll(value + 1, &end, 10));
    for (; *end == ',';) clv__proto_write_varint(at->out, ATTRIBUTE_INTS, (uint64_t)strtoll(end + 1, &end, 10));
    write_kind(at->out, ATTRIBUTE_TYPE_INTS);
  } else if (strtod(value, &end), end != value + length) {
    write_text(at->out, value, length);
  } else if (strcspn(value, ".i") < length) {
    write_float(at->out, strtof(value, NULL));
  } else {
    clv__proto_write_varint(at->out, ATTRIBUTE_I, (uint64_t)strtoll(value, NULL, 10));
    write_kind(at->out, ATTRIBUTE_TYPE_INT);
  }
}

static void write_attributes(const place *at, const char *attributes) {
  while (attributes != NULL && *attributes != '\0') {
    size_t name = strcspn(attributes, "="), length = strcspn(attributes + name + 1, " ");
    size_t mark = clv__proto_begin(at->out, NODE_ATTRIBUTE, 0);
    clv__proto_write_bytes(at->out, ATTRIBUTE_NAME, attributes, name);
    write_value(at, attributes + name + 1, length);
    clv__proto_end(at->out, mark, 0);
    attributes += name + 1 + length;
    attributes += strspn(attributes, " ");
  }
}

/* ---- Bodies ---- */

static void write_line(const place *at, uint32_t field, const clv__body_line *line) {
  size_t mark = clv__proto_begin(at->out, field, 0);
  write_names(at, NODE_INPUT, line->inputs);
  write_names(at, NODE_OUTPUT, line->output);
  write_name(at, NODE_NAME, line->output, strlen(line->output));
  clv__proto_write_string(at->out, NODE_OP_TYPE, line->op);
  write_attributes(at, line->attributes);
  clv__proto_end(at->out, mark, 0);
}

static void write_lines(const place *at, uint32_t field) {
  for (const clv__body_line *const *part = at->body->parts; *part != NULL; ++part) {
    for (const clv__body_line *line = *part; line->op != NULL; ++line) write_line(at, field, line);
  }
}

static void write_attribute(clv__text *out, uint32_t field, const char *name, const char *text, float number) {
  if (name == NULL) return;
  size_t mark = clv__proto_begin(out, field, 0);
  clv__proto_write_string(out, ATTRIBUTE_NAME, name);
  if (text != NULL)
    write_text(out, text, strlen(text));
  else
    write_float(out, number);
  clv__proto_end(out, mark, 0);
}

void clv__onnx_write_function(clv__text *out, const clv_graph *graph, const clv__body *body) {
  const place at = {out, body, graph, NULL};
  size_t mark = clv__proto_begin(out, MODEL_FUNCTIONS, 0);
  clv__proto_write_string(out, FUNCTION_NAME, body->function);
  write_names(&at, FUNCTION_INPUT, body->inputs);
  write_names(&at, FUNCTION_OUTPUT, body->output);
  write_lines(&at, FUNCTION_NODE);
  size_t import = clv__proto_begin(out, FUNCTION_OPSET_IMPORT, 0);
  clv__proto_write_string(out, OPSET_DOMAIN, "");
  clv__proto_write_varint(out, OPSET_VERSION, (uint64_t)standard_opset(graph));
  clv__proto_end(out, import, 0);
  clv__proto_write_string(out, FUNCTION_DOMAIN, body->domain);
  write_attribute(out, FUNCTION_ATTRIBUTE_PROTO, body->attribute, body->value, 0);
  write_attribute(out, FUNCTION_ATTRIBUTE_PROTO, body->number, NULL, body->number_default);
  clv__proto_end(out, mark, 0);
}

void clv__onnx_write_default(clv__text *out, const clv__node *node, const clv__body *body) {
  const clv__attributes attributes = {node->attributes.items, node->attributes.count};
  if (body->number == NULL || clv__attribute_find(attributes, body->number) != NULL) return;
  write_attribute(out, NODE_ATTRIBUTE, body->number, NULL, body->number_default);
}

void clv__onnx_write_expanded(clv__text *out, const clv_graph *graph, const clv__node *node, const clv__body *body) {
  const place at = {out, body, graph, node};
  write_lines(&at, GRAPH_NODE);
}
