/* Loads IR JSON: first reads the file's lists of tensors and nodes, then adds the nodes to the graph one by one. See irjson.h. */
#include <stdio.h>

#include "base/strict_json.h"
#include "formats/irjson/file.h"
#include "formats/irjson/irjson.h"

bool clv__irjson_recognise(const void *data, size_t size_bytes) {
  const unsigned char *bytes = data;
  size_t at = 0;
  while (at < size_bytes && (bytes[at] == ' ' || (bytes[at] >= '\t' && bytes[at] <= '\r'))) ++at;
  return at < size_bytes && bytes[at] == '{';
}

/* ---- Text to JSON ---- */

/* Python writes infinite numbers as the word Infinity, which is not valid JSON. Replaces these words with strings of the same
 * length. NaN stays an error. */
static void quote_infinity(char *text, size_t size_bytes) {
  static const char word[] = "Infinity";
  bool quoted = false;
  for (size_t i = 0; i < size_bytes; ++i) {
    if (quoted && text[i] == '\\') {
      ++i;
      continue;
    }
    if (text[i] == '"') quoted = !quoted;
    if (quoted || text[i] != 'I' || size_bytes - i < sizeof word - 1 || memcmp(text + i, word, sizeof word - 1) != 0) continue;
    bool negative = i > 0 && text[i - 1] == '-';
    memcpy(text + i - negative, negative ? "\"-inf\"   " : "\"inf\"   ", sizeof word - 1 + negative);
    i += sizeof word - 2;
  }
}

static clv_status parse(clv__irjson *file, const void *data, size_t size_bytes) {
  char *text = clv__allocate(file->allocator, size_bytes);
  if (text == NULL) return clv__error_memory(file->error, size_bytes);
  if (size_bytes > 0) memcpy(text, data, size_bytes);
  quote_infinity(text, size_bytes);
  clv_status status =
      clv__json_parse(&(clv__strict_json){.error = file->error}, text, size_bytes, SIZE_MAX, "model", &file->root);
  clv__release(file->allocator, text);
  if (status != CLV_OK) return status;
  if (!json_is_object(file->root)) return clv__error_set(file->error, CLV_INVALID_MODEL, "not a JSON object");
  if (json_object_get(file->root, "cleave_plan") != NULL) {
    return clv__error_set(file->error, CLV_INVALID_MODEL, "this is a plan, not a model: use a command that accepts plans");
  }
  static const char *const needed[] = {"graph_inputs", "graph_outputs", "nodes"};
  for (size_t i = 0; i < sizeof needed / sizeof *needed; ++i) {
    if (json_is_array(json_object_get(file->root, needed[i]))) continue;
    return clv__error_set(file->error, CLV_INVALID_MODEL, "JSON, but not a model: \"%s\" is %s; expected a list", needed[i],
                          clv__irjson_kind(json_object_get(file->root, needed[i])));
  }
  return CLV_OK;
}

/* ---- Names ---- */

clv_status clv__irjson_fresh(clv__irjson *file, const char *hint, bool numbered, clv_value_id *value) {
  clv__text name;
  clv__text_init(&name, file->allocator);
  clv_status status = CLV_OK;
  for (uint32_t k = 0;; ++k) {
    name.size_bytes = 0;
    clv__text_append(&name, "%s", hint);
    if (k > 0 || numbered) clv__text_append(&name, "#%u", file->fresh_count++);
    if (name.failed) {
      status = clv__error_memory(file->error, strlen(hint));
      break;
    }
    if (clv__map_find(&file->tensor_index, name.data) != CLV__MAP_NONE) continue;
    status = clv__builder_value(file->builder, name.data, value, file->error);
    break;
  }
  clv__text_finish(&name);
  return status;
}

static clv_status name_taken(const clv__irjson *file, const char *where, const char *name) {
  static const char *const origins[] = {"a graph input", "a weight", "an output of a node"};
  const clv__irjson_tensor *other = &file->tensors[clv__map_find(&file->tensor_index, name)];
  return clv__error_set(file->error, CLV_INVALID_MODEL, "%s: the name '%.200s' is already used by %s", where, name,
                        origins[other->origin]);
}

/* Adds a tensor to file->tensors and the index, and creates a value of the graph for it. */
static clv_status add_tensor(clv__irjson *file, const char *where, const char *name, clv__irjson_origin origin,
                             const clv_tensor *type, uint32_t *index) {
  if (clv__map_find(&file->tensor_index, name) != CLV__MAP_NONE) return name_taken(file, where, name);
  clv__irjson_tensor tensor = {.name = name, .origin = origin, .type = *type, .node = CLV__NO_ID};
  CLV__TRY(clv__builder_value(file->builder, name, &tensor.value, file->error));
  clv__builder_type(file->builder, tensor.value, type);
  if (!clv__array_reserve(file->allocator, (void **)&file->tensors, &file->tensor_capacity, file->tensor_count + 1, sizeof tensor,
                          file->tensor_count) ||
      !clv__map_set(&file->tensor_index, name, (uint32_t)file->tensor_count)) {
    return clv__error_memory(file->error, sizeof tensor);
  }
  *index = (uint32_t)file->tensor_count;
  file->tensors[file->tensor_count++] = tensor;
  return CLV_OK;
}

/* ---- Inputs and weights ---- */

static clv_status declare_inputs(clv__irjson *file) {
  const json_t *list = json_object_get(file->root, "graph_inputs");
  for (size_t i = 0; i < json_array_size(list); ++i) {
    char where[48];
    const char *name;
    clv_tensor type;
    uint32_t index;
    snprintf(where, sizeof where, "graph_inputs[%zu]", i);
    CLV__TRY(clv__irjson_read_tensor(file, json_array_get(list, i), where, &name, &type));
    CLV__TRY(add_tensor(file, where, name, CLV__IRJSON_INPUT, &type, &index));
    CLV__TRY(clv__builder_input(file->builder, file->tensors[index].value, file->error));
  }
  return CLV_OK;
}

static clv_status declare_weights(clv__irjson *file) {
  const json_t *list;
  CLV__TRY(clv__irjson_member(file, file->root, "", "weights", true, &list));
  for (size_t i = 0; i < json_array_size(list); ++i) {
    char where[48];
    const char *name;
    clv_tensor type;
    uint32_t index;
    snprintf(where, sizeof where, "weights[%zu]", i);
    CLV__TRY(clv__irjson_read_tensor(file, json_array_get(list, i), where, &name, &type));
    CLV__TRY(add_tensor(file, where, name, CLV__IRJSON_WEIGHT, &type, &index));
    clv__builder_unbound(file->builder, file->tensors[index].value);
  }
  return CLV_OK;
}

/* Reads {"data": numbers, "dtype": "float32", "shape"?: [...]}. This is the data of the weight `name` or, if there is no such
 * weight, a new constant. */
static clv_status bind_constant(clv__irjson *file, const char *name, const json_t *json) {
  char where[280];
  snprintf(where, sizeof where, "constants.%.200s", name);
  const json_t *numbers = json_object_get(json, "data");
  if (numbers == NULL) {
    return clv__error_set(file->error, CLV_INVALID_MODEL, "%s is %s; expected an object with \"data\"", where,
                          json_is_object(json) ? "an object without \"data\"" : clv__irjson_kind(json));
  }
  clv_tensor type = {0};
  const char *dtype = json_string_value(json_object_get(json, "dtype"));
  uint32_t index = clv__map_find(&file->tensor_index, name);
  if (index == CLV__MAP_NONE) {
    if (dtype != NULL) type.dtype = clv__irjson_dtype(dtype);
    if (type.dtype == CLV_DTYPE_NONE) {
      return clv__error_set(file->error, CLV_INVALID_MODEL, "%s.dtype is %s%.60s, which is not a known dtype", where,
                            dtype == NULL ? clv__irjson_kind(json_object_get(json, "dtype")) : "", dtype == NULL ? "" : dtype);
    }
    CLV__TRY(clv__irjson_measure(file, numbers, where, &type));
    CLV__TRY(add_tensor(file, where, name, CLV__IRJSON_WEIGHT, &type, &index));
  } else if (file->tensors[index].origin != CLV__IRJSON_WEIGHT) {
    return name_taken(file, where, name);
  }
  type = file->tensors[index].type;
  if (dtype != NULL && clv__irjson_dtype(dtype) != type.dtype) {
    return clv__error_set(file->error, CLV_INVALID_MODEL, "%s.dtype is '%.60s', but the weight is %s", where, dtype,
                          clv_dtype_name(type.dtype));
  }
  CLV__TRY(clv__irjson_read_numbers(file, numbers, where, &type));
  clv__builder_type(file->builder, file->tensors[index].value, &type);
  return CLV_OK;
}

static clv_status bind_constants(clv__irjson *file) {
  const json_t *constants;
  CLV__TRY(clv__irjson_member(file, file->root, "", "constants", false, &constants));
  for (void *at = json_object_iter((json_t *)constants); at != NULL; at = json_object_iter_next((json_t *)constants, at)) {
    CLV__TRY(bind_constant(file, json_object_iter_key(at), json_object_iter_value(at)));
  }
  return CLV_OK;
}

/* Reads "weight_name_mapping": the names that nodes use for weights. */
static clv_status map_weights(clv__irjson *file) {
  const json_t *mapping;
  CLV__TRY(clv__irjson_member(file, file->root, "", "weight_name_mapping", false, &mapping));
  for (void *at = json_object_iter((json_t *)mapping); at != NULL; at = json_object_iter_next((json_t *)mapping, at)) {
    const char *alias = json_object_iter_key(at), *name = json_string_value(json_object_iter_value(at));
    char where[280];
    snprintf(where, sizeof where, "weight_name_mapping.%.200s", alias);
    uint32_t index = name == NULL ? CLV__MAP_NONE : clv__map_find(&file->tensor_index, name);
    if (index == CLV__MAP_NONE || file->tensors[index].origin != CLV__IRJSON_WEIGHT) {
      return clv__error_set(file->error, CLV_INVALID_MODEL, "%s is %s%.200s, which is not a weight", where,
                            name == NULL ? clv__irjson_kind(json_object_iter_value(at)) : "", name == NULL ? "" : name);
    }
    uint32_t taken = clv__map_find(&file->tensor_index, alias);
    if (taken != CLV__MAP_NONE && taken != index) return name_taken(file, where, alias);
    if (!clv__map_set(&file->tensor_index, alias, index)) return clv__error_memory(file->error, sizeof(clv__map_slot));
  }
  return CLV_OK;
}

/* Reads weights from separate files, by the name of the weight or by a name that nodes use for it. Weights with data in the
 * model's file are skipped. */
static clv_status bind_params(clv__irjson *file, clv__params *params) {
  if (params == NULL) return CLV_OK;
  const json_t *mapping = json_object_get(file->root, "weight_name_mapping");
  for (void *at = json_object_iter((json_t *)mapping); at != NULL; at = json_object_iter_next((json_t *)mapping, at)) {
    const char *alias = json_object_iter_key(at);
    clv__irjson_tensor *tensor = &file->tensors[clv__map_find(&file->tensor_index, alias)];
    if (!clv__params_has(params, tensor->name) && clv__params_has(params, alias)) tensor->param = alias;
  }
  for (size_t i = 0; i < file->tensor_count; ++i) {
    const clv__irjson_tensor *tensor = &file->tensors[i];
    if (tensor->origin != CLV__IRJSON_WEIGHT || clv__builder_type_of(file->builder, tensor->value)->data != NULL) continue;
    clv_tensor bound;
    CLV__TRY(clv__params_bind(params, file->builder, tensor->param != NULL ? tensor->param : tensor->name, &tensor->type, &bound,
                              file->error));
    clv__builder_type(file->builder, tensor->value, &bound);
  }
  return CLV_OK;
}

/* ---- Nodes ---- */

static clv_status declare_outputs(clv__irjson *file, uint32_t index, const json_t *outputs) {
  clv__irjson_node *node = &file->nodes[index];
  node->first_output = (uint32_t)file->tensor_count;
  for (size_t i = 0; i < json_array_size(outputs); ++i) {
    char where[48];
    const char *name;
    clv_tensor type;
    uint32_t tensor;
    snprintf(where, sizeof where, "outputs[%zu]", i);
    CLV__TRY(clv__irjson_read_tensor(file, json_array_get(outputs, i), where, &name, &type));
    CLV__TRY(add_tensor(file, where, name, CLV__IRJSON_OUTPUT, &type, &tensor));
    file->tensors[tensor].node = index;
    ++node->output_count;
  }
  return CLV_OK;
}

static clv_status declare_node(clv__irjson *file, uint32_t index, const json_t *json) {
  clv__irjson_node *node = &file->nodes[index];
  const json_t *name = json_object_get(json, "name"), *op = json_object_get(json, "op_type"), *outputs;
  if (json_string_length(name) == 0 || json_string_length(op) == 0) {
    return clv__error_set(file->error, CLV_INVALID_MODEL, "nodes[%u]: %s is %s; expected a name", index,
                          json_string_length(name) == 0 ? "name" : "op_type",
                          json_is_string(json_string_length(name) == 0 ? name : op)
                              ? "empty"
                              : clv__irjson_kind(json_string_length(name) == 0 ? name : op));
  }
  *node = (clv__irjson_node){.json = json, .name = json_string_value(name), .op_type = json_string_value(op)};
  if (clv__map_find(&file->node_index, node->name) != CLV__MAP_NONE) {
    return clv__error_set(file->error, CLV_INVALID_MODEL, "nodes[%u]: the name '%.200s' is already used by nodes[%u]", index,
                          node->name, clv__map_find(&file->node_index, node->name));
  }
  if (!clv__map_set(&file->node_index, node->name, index)) return clv__error_memory(file->error, sizeof(clv__map_slot));
  clv_status status = clv__irjson_member(file, json, "", "outputs", true, &outputs);
  if (status == CLV_OK) status = declare_outputs(file, index, outputs);
  if (status == CLV_OK) return CLV_OK;
  return clv__error_prefix(file->error, status, "node '%.200s' (%.100s)", node->name, node->op_type);
}

static clv_status declare_nodes(clv__irjson *file) {
  const json_t *list = json_object_get(file->root, "nodes");
  size_t count = json_array_size(list);
  if (count >= CLV__NO_ID) return clv__error_set(file->error, CLV_TOO_LARGE, "more than 2^32 nodes");
  file->nodes = clv__arena_allocate_zero(&file->scratch, count, sizeof *file->nodes);
  if (file->nodes == NULL) return clv__error_memory(file->error, count * sizeof *file->nodes);
  file->node_count = count;
  for (uint32_t i = 0; i < count; ++i) CLV__TRY(declare_node(file, i, json_array_get(list, i)));
  return CLV_OK;
}

static clv_status add_outputs(clv__irjson *file) {
  const json_t *list = json_object_get(file->root, "graph_outputs");
  for (size_t i = 0; i < json_array_size(list); ++i) {
    char where[48];
    uint32_t tensor;
    snprintf(where, sizeof where, "graph_outputs[%zu]", i);
    CLV__TRY(clv__irjson_resolve(file, json_array_get(list, i), where, &tensor));
    CLV__TRY(clv__builder_output(file->builder, file->tensors[tensor].value, file->error));
  }
  return CLV_OK;
}

/* ---- The model ---- */

static clv_status describe(clv__irjson *file, const char *path) {
  static const char *const texts[] = {"model_name", "pytorch_version"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i) {
    const char *text = json_string_value(json_object_get(file->root, texts[i]));
    if (text != NULL) CLV__TRY(clv__builder_metadata(file->builder, texts[i], text, file->error));
  }
  const char *name = json_string_value(json_object_get(file->root, "model_name"));
  clv__builder_info(file->builder, name != NULL ? name : "", path != NULL ? path : "", 10);
  CLV__TRY(clv__builder_import(file->builder, "", CLV__ATEN_OPSET, file->error));
  return clv__builder_import(file->builder, "aten", 1, file->error);
}

static clv_status read_model(clv__irjson *file, const char *path, const void *data, size_t size_bytes, clv__params *params) {
  CLV__TRY(parse(file, data, size_bytes));
  CLV__TRY(describe(file, path));
  CLV__TRY(clv__irjson_lowerings_init(file));
  CLV__TRY(declare_inputs(file));
  CLV__TRY(declare_weights(file));
  CLV__TRY(bind_constants(file));
  CLV__TRY(map_weights(file));
  CLV__TRY(bind_params(file, params));
  CLV__TRY(declare_nodes(file));
  CLV__TRY(clv__irjson_count_reads(file));
  for (uint32_t i = 0; i < file->node_count; ++i) {
    clv_status status = clv__irjson_lower_node(file, i);
    if (status == CLV_OK) continue;
    return clv__error_prefix(file->error, status, "node '%.200s' (%.100s)", file->nodes[i].name, file->nodes[i].op_type);
  }
  return add_outputs(file);
}

clv_status clv__irjson_load(const clv_allocator *allocator, const char *path, const void *data, size_t size_bytes,
                            clv__params *params, clv_graph **graph, clv_error *error) {
  *graph = NULL;
  clv_error local = {0};
  clv__irjson file = {.allocator = allocator, .error = error != NULL ? error : &local};
  clv__arena_init(&file.scratch, allocator);
  clv__map_init(&file.tensor_index, allocator);
  clv__map_init(&file.node_index, allocator);
  clv__map_init(&file.constants, allocator);
  clv__map_init(&file.lowerings, allocator);
  clv_graph *made = NULL;
  clv_status status = clv__builder_create(allocator, &file.builder, file.error);
  if (status == CLV_OK) status = read_model(&file, path, data, size_bytes, params);
  if (status == CLV_OK) {
    status = clv__builder_finish(file.builder, &made, file.error);
    file.builder = NULL; /* finish() always consumes the builder */
  }
  if (status == CLV_OK) status = clv__irjson_check(&file, made);
  clv__builder_destroy(file.builder);
  if (status == CLV_OK)
    *graph = made;
  else
    clv__graph_destroy(made);
  clv__release(allocator, (void *)file.lowering_list);
  clv__release(allocator, file.tensors);
  clv__map_finish(&file.lowerings);
  clv__map_finish(&file.constants);
  clv__map_finish(&file.node_index);
  clv__map_finish(&file.tensor_index);
  clv__arena_finish(&file.scratch);
  json_decref(file.root);
  return status == CLV_OK ? CLV_OK : clv__error_prefix(file.error, status, "%s", path != NULL ? path : "model in memory");
}
