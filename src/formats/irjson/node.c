/* Converts one node of an IR JSON file: finds its inputs, then lowers it to ONNX or keeps it in domain `aten`. See file.h. */
#include <stdio.h>

#include "formats/irjson/file.h"

/* ---- References ---- */

static clv_status refuse(const clv__irjson *file, const char *where, const char *name, const char *what) {
  return clv__error_set(file->error, CLV_INVALID_MODEL, "%s ('%.200s'): %s", where, name, what);
}

/* Finds the tensor that "producer_node" and "producer_output_idx" refer to. */
static clv_status resolve_producer(const clv__irjson *file, const json_t *json, const char *where, const char *name,
                                   uint32_t *tensor) {
  const json_t *producer = json_object_get(json, "producer_node"), *at = json_object_get(json, "producer_output_idx");
  const char *producer_name = json_string_value(producer);
  if (producer_name == NULL || (at != NULL && !json_is_integer(at))) {
    return clv__error_set(file->error, CLV_INVALID_MODEL,
                          "%s ('%.200s'): producer_node is %s and producer_output_idx is %s; expected a string and an integer",
                          where, name, clv__irjson_kind(producer), clv__irjson_kind(at));
  }
  long long output = at == NULL ? 0 : json_integer_value(at);
  uint32_t node = clv__map_find(&file->node_index, producer_name);
  uint32_t input = clv__map_find(&file->tensor_index, producer_name);
  if (node == CLV__MAP_NONE) { /* a graph input is its own producer */
    if (input == CLV__MAP_NONE || file->tensors[input].origin != CLV__IRJSON_INPUT) {
      return clv__error_set(file->error, CLV_INVALID_MODEL,
                            "%s ('%.200s'): its producer '%.200s' is neither a node nor a graph input", where, name,
                            producer_name);
    }
    *tensor = input;
    return output == 0 ? CLV_OK
                       : refuse(file, where, name, "producer_output_idx must be 0, because the producer is a graph input");
  }
  const clv__irjson_node *made_by = &file->nodes[node];
  if (output < 0 || output >= made_by->output_count) {
    return clv__error_set(file->error, CLV_INVALID_MODEL, "%s ('%.200s') is output %lld of node '%.200s', which has %u output%s",
                          where, name, output, producer_name, made_by->output_count, CLV__S(made_by->output_count));
  }
  *tensor = made_by->first_output + (uint32_t)output;
  return CLV_OK;
}

clv_status clv__irjson_resolve(const clv__irjson *file, const json_t *json, const char *where, uint32_t *tensor) {
  const char *name;
  clv_tensor type;
  CLV__TRY(clv__irjson_read_tensor(file, json, where, &name, &type));
  uint32_t named = clv__map_find(&file->tensor_index, name);
  if (json_object_get(json, "producer_node") != NULL && !json_is_null(json_object_get(json, "producer_node"))) {
    CLV__TRY(resolve_producer(file, json, where, name, tensor));
    if (named != CLV__MAP_NONE && named != *tensor) {
      return refuse(file, where, name, "its producer and its name refer to different tensors");
    }
  } else if (named == CLV__MAP_NONE) {
    return refuse(file, where, name, "no graph input, weight or node's output has this name");
  } else {
    *tensor = named;
  }
  const clv_tensor *declared = &file->tensors[*tensor].type;
  if (clv__tensor_same_type(declared, &type)) return CLV_OK;
  char text[128], declared_text[128];
  clv__tensor_text(&type, text, sizeof text);
  clv__tensor_text(declared, declared_text, sizeof declared_text);
  return clv__error_set(file->error, CLV_INVALID_MODEL, "%s ('%.200s') is %s here, but was declared as %s", where, name, text,
                        declared_text);
}

static bool is_getitem(const char *op_type) {
  return strcmp(op_type, "<built-in function getitem>") == 0;
}

/* A getitem lists all outputs of its producer as inputs, but reads only one. Sets `*index` to this one. */
static clv_status getitem_index(const clv__irjson *file, const json_t *json, size_t count, size_t *index) {
  const json_t *value = json_object_get(json_object_get(json, "attrs"), "index");
  if (!json_is_integer(value)) {
    return clv__error_set(file->error, CLV_INVALID_MODEL, "attrs.index is %s; expected an integer", clv__irjson_kind(value));
  }
  long long at = json_integer_value(value);
  if (at < -(long long)count || at >= (long long)count) {
    return clv__error_set(file->error, CLV_INVALID_MODEL, "attrs.index is %lld, but the node has %zu input%s", at, count,
                          CLV__S(count));
  }
  *index = (size_t)(at < 0 ? at + (long long)count : at);
  return CLV_OK;
}

static bool is_read(const clv__irjson *file, const clv__irjson_node *node) {
  return node->output_count > 0 && file->tensors[node->first_output].reads > 0;
}

static clv_status count_node(clv__irjson *file, const clv__irjson_node *node) {
  const json_t *inputs, *attrs;
  CLV__TRY(clv__irjson_member(file, node->json, "", "inputs", true, &inputs));
  CLV__TRY(clv__irjson_member(file, node->json, "", "attrs", false, &attrs));
  size_t chosen = SIZE_MAX;
  if (is_getitem(node->op_type)) CLV__TRY(getitem_index(file, node->json, json_array_size(inputs), &chosen));
  for (size_t i = 0; i < json_array_size(inputs); ++i) {
    char where[48];
    uint32_t tensor;
    snprintf(where, sizeof where, "inputs[%zu]", i);
    CLV__TRY(clv__irjson_resolve(file, json_array_get(inputs, i), where, &tensor));
    if (chosen == SIZE_MAX || (chosen == i && is_read(file, node))) ++file->tensors[tensor].reads;
  }
  return CLV_OK;
}

static clv_status count_nodes(clv__irjson *file, bool getitems) {
  for (size_t i = 0; i < file->node_count; ++i) {
    const clv__irjson_node *node = &file->nodes[i];
    clv_status status = is_getitem(node->op_type) == getitems ? count_node(file, node) : CLV_OK;
    if (status == CLV_OK) continue;
    return clv__error_prefix(file->error, status, "node '%.200s' (%.100s)", node->name, node->op_type);
  }
  return CLV_OK;
}

/* Counts getitems last, because a getitem counts as a reader only if its own result is read. */
clv_status clv__irjson_count_reads(clv__irjson *file) {
  CLV__TRY(count_nodes(file, false));
  const json_t *outputs = json_object_get(file->root, "graph_outputs");
  for (size_t i = 0; i < json_array_size(outputs); ++i) {
    char where[48];
    uint32_t tensor;
    snprintf(where, sizeof where, "graph_outputs[%zu]", i);
    CLV__TRY(clv__irjson_resolve(file, json_array_get(outputs, i), where, &tensor));
    ++file->tensors[tensor].reads;
  }
  return count_nodes(file, true);
}

/* ---- Lowering ---- */

clv_status clv__irjson_lowerings_init(clv__irjson *file) {
#define LIST(family) clv__aten_##family,
  static const clv__aten_lowering *const families[] = {CLV__ATEN_FAMILIES(LIST)};
#undef LIST
  for (size_t f = 0; f < sizeof families / sizeof *families; ++f) {
    for (const clv__aten_lowering *l = families[f]; l->stem != NULL; ++l) {
      if (!clv__array_reserve(file->allocator, (void **)&file->lowering_list, &file->lowering_capacity, file->lowering_count + 1,
                              sizeof l, file->lowering_count) ||
          !clv__map_set(&file->lowerings, l->stem, (uint32_t)file->lowering_count)) {
        return clv__error_memory(file->error, sizeof l);
      }
      file->lowering_list[file->lowering_count++] = l;
    }
  }
  return CLV_OK;
}

/* Splits an operator such as "aten.add.Tensor" into stem "add" and overload "Tensor". Returns false if it is not an ATen
 * operator. */
static bool split_name(const clv__irjson *file, clv__aten_node *node) {
  node->stem = node->overload = "";
  if (strncmp(node->op_type, "aten.", 5) != 0) return false;
  const char *stem = node->op_type + 5, *dot = strchr(stem, '.');
  size_t length = dot != NULL ? (size_t)(dot - stem) : strlen(stem);
  node->stem = clv__arena_string(node->arena, stem, length);
  node->overload = dot != NULL ? dot + 1 : "";
  if (node->stem == NULL) node->status = clv__error_memory(file->error, length);
  return node->stem != NULL;
}

static clv__aten_value value_of(const clv__irjson_tensor *tensor) {
  clv__aten_value value = {tensor->value, tensor->type};
  value.type.data = NULL;
  return value;
}

static clv_status fill_operands(clv__irjson *file, const clv__irjson_node *source, clv__aten_node *node) {
  const json_t *list = json_object_get(source->json, "inputs");
  size_t count = json_array_size(list);
  clv__aten_value *inputs = clv__arena_allocate_zero(node->arena, count, sizeof *inputs);
  clv__aten_value *outputs = clv__arena_allocate_zero(node->arena, source->output_count, sizeof *outputs);
  bool *read = clv__arena_allocate_zero(node->arena, source->output_count, sizeof *read);
  const char **arguments = clv__arena_allocate_zero(node->arena, count, sizeof *arguments);
  if (inputs == NULL || outputs == NULL || read == NULL || arguments == NULL)
    return clv__error_memory(file->error, count * sizeof *inputs);
  for (size_t i = 0; i < count; ++i) {
    uint32_t tensor;
    CLV__TRY(clv__irjson_resolve(file, json_array_get(list, i), "inputs", &tensor));
    inputs[i] = value_of(&file->tensors[tensor]);
    arguments[i] = json_string_value(json_object_get(json_array_get(list, i), "argument"));
    node->has_arguments = i == 0 ? arguments[i] != NULL : node->has_arguments && arguments[i] != NULL;
  }
  for (uint32_t i = 0; i < source->output_count; ++i) {
    outputs[i] = value_of(&file->tensors[source->first_output + i]);
    read[i] = file->tensors[source->first_output + i].reads > 0;
  }
  node->input_count = (uint32_t)count;
  node->inputs = inputs;
  node->arguments = arguments;
  node->output_count = source->output_count;
  node->outputs = outputs;
  node->output_read = read;
  return CLV_OK;
}

/* Returns whether an operator that modifies its first input in place, such as add_, can be lowered like its pure form. This is
 * safe if nothing else reads the input's memory: the input has one reader, and its producer returns new memory instead of a view.
 */
static bool is_safe_in_place(const clv__irjson *file, const clv__aten_node *node) {
  if (node->input_count == 0) return false;
  const clv__irjson_tensor *first =
      &file->tensors[node->inputs[0].id]; /* the first values of the graph are the tensors, in order */
  static const char *const fresh[] = {
      "conv", "batch_norm", "linear", "add",  "mul",  "sub", "div",
      "mm",   "bmm",        "matmul", "norm", "relu", "cat"}; /* operators whose result is in new memory */
  if (first->origin != CLV__IRJSON_OUTPUT || first->reads != 1) return false;
  for (size_t i = 0; i < sizeof fresh / sizeof *fresh; ++i) {
    if (strstr(file->nodes[first->node].op_type, fresh[i]) != NULL) return true;
  }
  return false;
}

static void lower(clv__irjson *file, const clv__irjson_node *source, clv__aten_node *node) {
  if (is_getitem(node->op_type)) {
    size_t index = 0;
    if (node->output_count != 1)
      clv__aten_fail(node, "it has %u output%s; expected 1", node->output_count, CLV__S(node->output_count));
    if (node->status == CLV_OK) node->status = getitem_index(file, source->json, node->input_count, &index);
    if (node->status == CLV_OK) clv__aten_return(node, 0, node->inputs[index]);
    return;
  }
  if (!split_name(file, node)) {
    clv__aten_keep(node);
    return;
  }
  uint32_t found = clv__map_find(&file->lowerings, node->stem);
  size_t length = strlen(node->stem);
  if (found == CLV__MAP_NONE && length > 1 && node->stem[length - 1] == '_' && is_safe_in_place(file, node)) {
    ((char *)node->stem)[length - 1] = '\0';
    found = clv__map_find(&file->lowerings, node->stem);
  }
  if (found == CLV__MAP_NONE)
    clv__aten_keep(node);
  else
    file->lowering_list[found]->lower(node);
}

/* ---- Adding to the graph ---- */

/* Adds the emitted nodes to the graph. A single node gets the name of the ATen node. Several nodes get this name with a number;
 * all have the ATen node's name as their source name. */
static clv_status add_emitted(clv__irjson *file, const clv__aten_node *node) {
  clv__text name;
  clv__text_init(&name, file->allocator);
  clv_status status = CLV_OK;
  for (size_t i = 0; i < node->emitted_count && status == CLV_OK; ++i) {
    const clv__aten_emitted *made = &node->emitted[i];
    name.size_bytes = 0;
    clv__text_append(&name, "%s", node->name);
    if (node->emitted_count > 1) clv__text_append(&name, "/%zu", i);
    if (name.failed) {
      status = clv__error_memory(file->error, strlen(node->name));
      break;
    }
    status = clv__builder_node(file->builder, name.data, "", made->op, made->inputs, made->input_count, made->outputs,
                               made->output_count, made->attributes, made->attribute_count, file->error);
  }
  clv__text_finish(&name);
  return status;
}

/* Skips nodes without outputs, such as assertions, because they do not affect the result. */
clv_status clv__irjson_lower_node(clv__irjson *file, uint32_t index) {
  const clv__irjson_node *source = &file->nodes[index];
  if (source->output_count == 0) return CLV_OK;
  clv__aten_node node = {.file = file,
                         .arena = &file->scratch,
                         .name = source->name,
                         .op_type = source->op_type,
                         .attrs = json_object_get(source->json, "attrs"),
                         .error = file->error};
  CLV__TRY(fill_operands(file, source, &node));
  lower(file, source, &node);
  clv_status status = node.status;
  if (status == CLV_OK || status == CLV_NOT_SUPPORTED) {
    clv_status added = clv__builder_source(file->builder, node.name, node.op_type, file->error);
    if (added == CLV_OK) added = status == CLV_OK ? add_emitted(file, &node) : clv__irjson_keep(file, source->json, &node);
    status = added;
  }
  clv__release(file->allocator, node.emitted);
  return status;
}
