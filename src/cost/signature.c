/* See signature.h. Optimised for speed: a plan computes one signature per node of its graph. */
#include "cost/signature.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ATTRIBUTES = 16, LONGEST_ATTRIBUTES = 240, FEW_OPERANDS = 16 };

static void put(clv__text *text, const char *string) {
  clv__text_append_bytes(text, string, strlen(string));
}

/* Prints a name from a model. Escapes quotes, backslashes, spaces and everything outside printable ASCII, so that the signature
 * can be written to JSON unchanged. */
static void put_name(clv__text *text, const char *name, size_t size_bytes) {
  for (size_t i = 0; i < size_bytes; ++i) {
    unsigned char c = (unsigned char)name[i];
    if (c > ' ' && c < 0x7f && c != '"' && c != '\\')
      clv__text_append_bytes(text, &name[i], 1);
    else
      clv__text_append(text, "%%%02x", c);
  }
}

static void put_integer(clv__text *text, int64_t number) {
  char digits[24];
  size_t at = sizeof digits;
  uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
  do {
    digits[--at] = (char)('0' + rest % 10);
    rest /= 10;
  } while (rest > 0);
  if (number < 0) digits[--at] = '-';
  clv__text_append_bytes(text, digits + at, sizeof digits - at);
}

/* ---- Operands ---- */

static const clv_tensor *type_of(const clv_graph_view *whole, clv_value_id value) {
  return whole->types != NULL ? &whole->types[value] : &whole->graph->values[value].type;
}

static bool is_constant(const clv_graph_view *whole, clv_value_id value) {
  return clv__value_is_constant(whole->graph, whole->types, value);
}

/* Whether the cost depends on the value of this constant. It does for the exponent of Pow: a square costs less than a general
 * power. */
static bool value_matters(const clv__node *node, uint32_t input, const clv_tensor *type) {
  size_t count;
  return input == 1 && strcmp(node->op, "Pow") == 0 && (type->dtype == CLV_F32 || type->dtype == CLV_F64) &&
         clv__tensor_count(type, &count) && count == 1;
}

static void put_type(clv__text *text, const clv_tensor *type) {
  put(text, clv_dtype_name(type->dtype));
  if (type->rank < 0) {
    put(text, "[?]");
    return;
  }
  put(text, "[");
  for (int32_t i = 0; i < type->rank; ++i) {
    if (i > 0) put(text, ",");
    if (type->dims[i] < 0)
      put(text, "?");
    else
      put_integer(text, type->dims[i]);
  }
  put(text, "]");
}

static void put_operand(clv__text *text, const clv_graph_view *whole, const clv__node *node, uint32_t input, clv_value_id value) {
  if (value == CLV__NO_ID) {
    put(text, "-");
    return;
  }
  const clv_tensor *type = type_of(whole, value);
  put_type(text, type);
  if (input == UINT32_MAX || !is_constant(whole, value)) return;
  put(text, "*");
  if (type->data == NULL || !value_matters(node, input, type)) return;
  double copy; /* constants may be unaligned in their file */
  clv_tensor aligned = *type;
  memcpy(&copy, type->data, clv_dtype_size_bytes(type->dtype));
  aligned.data = &copy;
  clv__text_append(text, "=%.9g", clv__tensor_get(&aligned, 0));
}

/* ---- Attributes ---- */

static void put_hash(clv__text *text, const clv__hash *hash) {
  char digits[2 * CLV__HASH_BYTES + 1];
  clv__hash_text(hash, digits);
  put(text, "#");
  clv__text_append_bytes(text, digits, 16);
}

static void put_tensor(clv__text *text, const clv_tensor *tensor) {
  clv__hash hash;
  size_t size_bytes = 0;
  put_type(text, tensor);
  if (tensor->data == NULL || tensor->dtype == CLV_STRING || !clv__tensor_size_bytes(tensor, &size_bytes)) return;
  clv__hash_bytes(tensor->data, size_bytes, &hash);
  put_hash(text, &hash);
}

static void put_attribute(clv__text *text, const clv_attribute *attribute) {
  clv__hash hash;
  put_name(text, attribute->name, strlen(attribute->name));
  put(text, "=");
  for (size_t i = 0; i < attribute->count && text->size_bytes < 2 * LONGEST_ATTRIBUTES; ++i) {
    if (i > 0) put(text, ",");
    if (attribute->kind == CLV_ATTRIBUTE_INTS) put_integer(text, attribute->ints[i]);
    if (attribute->kind == CLV_ATTRIBUTE_FLOATS) clv__text_append(text, "%.9g", (double)attribute->floats[i]);
    if (attribute->kind == CLV_ATTRIBUTE_STRINGS) put_name(text, attribute->strings[i].data, attribute->strings[i].size_bytes);
  }
  if (attribute->kind == CLV_ATTRIBUTE_TENSOR) put_tensor(text, attribute->tensor);
  if (attribute->kind == CLV_ATTRIBUTE_GRAPH) {
    clv__graph_hash(attribute->graph->graph, &hash);
    put_hash(text, &hash);
  }
}

static int compare_names(const void *a, const void *b) {
  return strcmp((*(const clv_attribute *const *)a)->name, (*(const clv_attribute *const *)b)->name);
}

/* Prints the attributes sorted by name. Prints only a hash of them if they are long. */
static void put_attributes(clv__text *text, const clv__node *node) {
  const clv_attribute *sorted[MOST_ATTRIBUTES];
  uint32_t count = node->attributes.count;
  bool is_sorted = count <= MOST_ATTRIBUTES; /* an operator with more attributes keeps them in the model's order */
  if (count == 0) return;
  for (uint32_t i = 0; i < count && is_sorted; ++i) sorted[i] = &node->attributes.items[i];
  if (count > 1 && is_sorted) qsort(sorted, count, sizeof *sorted, compare_names);
  clv__text all;
  clv__text_init(&all, text->allocator);
  for (uint32_t i = 0; i < count; ++i) {
    if (i > 0) put(&all, ";");
    put_attribute(&all, is_sorted ? sorted[i] : &node->attributes.items[i]);
  }
  put(text, "{");
  if (all.size_bytes <= LONGEST_ATTRIBUTES) {
    clv__text_append_bytes(text, all.data, all.size_bytes);
  } else {
    clv__hash hash;
    clv__hash_bytes(all.data, all.size_bytes, &hash);
    put_hash(text, &hash);
  }
  put(text, "}");
  text->failed = text->failed || all.failed;
  clv__text_finish(&all);
}

/* ---- The whole ---- */

void clv__signature_write(const clv_graph_view *whole, clv_node_id id, clv__text *text) {
  const clv__node *node = &whole->graph->nodes[id];
  text->size_bytes = 0;
  if (node->domain[0] != '\0') {
    put_name(text, node->domain, strlen(node->domain));
    put(text, ":");
  }
  put_name(text, node->op, strlen(node->op));
  put(text, "(");
  for (uint32_t i = 0; i < node->input_count; ++i) {
    if (i > 0) put(text, ",");
    put_operand(text, whole, node, i, node->inputs[i]);
  }
  put(text, ")>");
  for (uint32_t i = 0; i < node->output_count; ++i) {
    if (i > 0) put(text, ",");
    put_operand(text, whole, node, UINT32_MAX, node->outputs[i]);
  }
  put_attributes(text, node);
}

static bool is_static(const clv_graph_view *whole, const clv_value_id *values, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    if (values[i] == CLV__NO_ID) continue;
    const clv_tensor *type = type_of(whole, values[i]);
    if (type->dtype == CLV_STRING || !clv__tensor_is_static(type)) return false;
  }
  return true;
}

bool clv__signature_is_static(const clv_graph_view *whole, clv_node_id id) {
  const clv__node *node = &whole->graph->nodes[id];
  return is_static(whole, node->inputs, node->input_count) && is_static(whole, node->outputs, node->output_count);
}

void clv__signature_family(const char *signature, char *family, size_t room) {
  const char *open = strchr(signature, '('), *end = open;
  if (open != NULL) end = open + 1 + strcspn(open + 1, "[,)");
  snprintf(family, room, "%.*s %.*s", open == NULL ? 0 : (int)(open - signature), signature,
           open == NULL ? 0 : (int)(end - open - 1), open == NULL ? "" : open + 1);
}

/* ---- Nodes ---- */

static void fill_types(const clv_graph_view *whole, const clv_value_id *values, uint32_t count, clv_tensor *types) {
  for (uint32_t i = 0; i < count; ++i) {
    types[i] = (clv_tensor){.rank = CLV_RANK_UNKNOWN};
    if (values[i] != CLV__NO_ID) types[i] = *type_of(whole, values[i]);
    types[i].data = NULL; /* work depends on shapes only; data may be unaligned */
  }
}

bool clv__node_work(const clv_graph_view *whole, clv_node_id id, clv__work *work) {
  const clv__node *node = &whole->graph->nodes[id];
  const clv__op *op = clv__op_find(node->domain, node->op);
  *work = (clv__work){0, 0};
  size_t count = (size_t)node->input_count + node->output_count;
  clv_tensor few[FEW_OPERANDS], *types = few;
  if (count > FEW_OPERANDS) types = clv__allocate(whole->graph->allocator, count * sizeof *types);
  if (types == NULL) return false;
  fill_types(whole, node->inputs, node->input_count, types);
  fill_types(whole, node->outputs, node->output_count, types + node->input_count);
  static const clv__op stranger = {.name = ""};
  const clv__infer infer = {
      .op = node->op,
      .opset = node->opset,
      .attributes = node->attributes,
      .inputs = types,
      .input_count = node->input_count,
      .outputs = types + node->input_count,
      .output_count = node->output_count,
      .allocator = whole->graph->allocator,
  };
  clv__op_work(op != NULL ? op : &stranger, &infer, work);
  if (types != few) clv__release(whole->graph->allocator, types);
  return true;
}

bool clv__node_is_view(const clv__node *node) {
  const clv__op *op = clv__op_find(node->domain, node->op);
  return op != NULL && (op->flags & CLV__OP_VIEW) != 0;
}

/* How often the node reads a value: 1 for once, 2 for twice or more. A value's readers are sorted by node id. */
static uint32_t uses_by(const clv_graph *graph, clv_value_id value, clv_node_id id) {
  uint32_t low = graph->use_offsets[value], high = graph->use_offsets[value + 1], end = high;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (graph->use_nodes[middle] < id) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low + 1 < end && graph->use_nodes[low + 1] == id ? 2 : 1;
}

clv_node_id clv__node_producer(const clv_graph_view *whole, clv_node_id id, uint32_t input) {
  const clv__node *node = &whole->graph->nodes[id];
  clv_value_id value = node->inputs[input];
  if (value == CLV__NO_ID || is_constant(whole, value)) return CLV__NO_ID;
  bool is_repeated = uses_by(whole->graph, value, id) > 1;
  for (uint32_t i = 0; i < input && is_repeated; ++i) {
    if (node->inputs[i] == value) return CLV__NO_ID;
  }
  return whole->graph->values[value].producer;
}

double clv__value_bytes(const clv_graph_view *whole, clv_value_id value) {
  size_t size_bytes;
  return clv__tensor_size_bytes(type_of(whole, value), &size_bytes) ? (double)size_bytes : 0;
}
