/* Turns a node that ONNX cannot express into a node of domain `aten`, with the operator's name, its tensors as inputs, and the
 * whole call as a list of strings. A backend that knows the operator can rebuild the call from these. docs/ir-json.md has the
 * grammar.
 *
 * Of a "call" in the file, only the syntax and the inputs that it names are checked; the strings are stored as they are. If the
 * file has no "call", one is made from the inputs and attributes, without types and not in the order of the operator's schema.
 * This suffices for planning and for people to read, but not for running the operator. */
#include <stdio.h>
#include <stdlib.h>

#include "formats/irjson/file.h"

/* ---- "call" in the file ---- */

/* Checks that every %N outside quotes is the number of an input, and marks the input in `seen`. */
static bool check_inputs(const clv__aten_node *node, const char *text, bool *seen) {
  bool quoted = false;
  for (const char *at = text; *at != '\0'; ++at) {
    if (quoted && *at == '\\' && at[1] != '\0') {
      ++at;
      continue;
    }
    if (*at == '"') quoted = !quoted;
    if (quoted || *at != '%') continue;
    uint64_t index = 0;
    const char *digit = at + 1;
    for (; *digit >= '0' && *digit <= '9' && index <= UINT32_MAX; ++digit) index = index * 10 + (uint64_t)(*digit - '0');
    if (digit == at + 1 || index >= node->input_count) return false;
    seen[index] = true;
    at = digit - 1;
  }
  return !quoted;
}

/* Returns whether the text has the form "TYPE NAME=VALUE" and no control characters. */
static bool is_argument(const char *text) {
  const char *space = strchr(text, ' '), *equals = strchr(text, '=');
  if (space == NULL || equals == NULL || space == text || space + 1 >= equals || equals[1] == '\0') return false;
  for (const char *at = text; *at != '\0'; ++at) {
    if ((unsigned char)*at < ' ' || *at == 127) return false;
  }
  return true;
}

static clv_status check_call(const clv__irjson *file, const clv__aten_node *node, const json_t *call) {
  bool *seen = clv__arena_allocate_zero(node->arena, node->input_count, sizeof *seen);
  if (seen == NULL) return clv__error_memory(file->error, node->input_count);
  for (size_t i = 0; i < json_array_size(call); ++i) {
    const char *text = json_string_value(json_array_get(call, i));
    if (text != NULL && is_argument(text) && check_inputs(node, text, seen)) continue;
    return clv__error_set(file->error, CLV_INVALID_MODEL,
                          "call[%zu] is %s%.120s; expected \"TYPE NAME=VALUE\", where %%0 to %%%u are its inputs", i,
                          text == NULL ? clv__irjson_kind(json_array_get(call, i)) : "", text == NULL ? "" : text,
                          node->input_count - (node->input_count > 0));
  }
  for (uint32_t i = 0; i < node->input_count; ++i) {
    if (!seen[i]) return clv__error_set(file->error, CLV_INVALID_MODEL, "call: no argument uses input %u", i);
  }
  return CLV_OK;
}

static clv_status check_returns(const clv__irjson *file, const json_t *returns) {
  for (size_t i = 0; i < json_array_size(returns); ++i) {
    if (json_string_length(json_array_get(returns, i)) > 0) continue;
    return clv__error_set(file->error, CLV_INVALID_MODEL, "returns[%zu] is %s; expected a type", i,
                          clv__irjson_kind(json_array_get(returns, i)));
  }
  return CLV_OK;
}

/* ---- Lists of texts as attributes ---- */

static clv_status add_list(const clv__irjson *file, const json_t *list, const char *name, clv_attribute *attribute) {
  clv__arena *arena = clv__builder_arena(file->builder);
  size_t count = json_array_size(list);
  clv_string *strings = clv__arena_allocate_zero(arena, count, sizeof *strings);
  *attribute = (clv_attribute){
      .name = clv__arena_string(arena, name, strlen(name)), .kind = CLV_ATTRIBUTE_STRINGS, .is_list = true, .count = count};
  if (strings == NULL || attribute->name == NULL) return clv__error_memory(file->error, count * sizeof *strings);
  for (size_t i = 0; i < count; ++i) {
    const json_t *text = json_array_get(list, i);
    strings[i] =
        (clv_string){clv__arena_string(arena, json_string_value(text), json_string_length(text)), json_string_length(text)};
    if (strings[i].data == NULL) return clv__error_memory(file->error, json_string_length(text));
  }
  attribute->strings = strings;
  return CLV_OK;
}

/* ---- For a file without "call" ---- */

/* Makes a call from the inputs ("%0", …), then the attributes by name ("dim=-1", …). Returns NULL if memory runs out. */
static json_t *spell_call(const clv__aten_node *node) {
  json_t *call = json_array();
  char number[24];
  bool added = call != NULL;
  for (uint32_t i = 0; added && i < node->input_count; ++i) {
    snprintf(number, sizeof number, "%%%u", i);
    added = json_array_append_new(call, json_string(number)) == 0;
  }
  void *at = json_object_iter((json_t *)node->attrs);
  for (; added && at != NULL; at = json_object_iter_next((json_t *)node->attrs, at)) {
    char *value = json_dumps(json_object_iter_value(at), JSON_ENCODE_ANY | JSON_COMPACT);
    added = value != NULL && json_array_append_new(call, json_sprintf("%s=%s", json_object_iter_key(at), value)) == 0;
    free(value);
  }
  if (added) return call;
  json_decref(call);
  return NULL;
}

clv_status clv__irjson_keep(clv__irjson *file, const json_t *json, clv__aten_node *node) {
  clv_value_id *ids = clv__arena_allocate_zero(node->arena, (size_t)node->input_count + node->output_count, sizeof *ids);
  if (ids == NULL) return clv__error_memory(file->error, node->input_count * sizeof *ids);
  for (uint32_t i = 0; i < node->input_count; ++i) ids[i] = node->inputs[i].id;
  for (uint32_t i = 0; i < node->output_count; ++i) ids[node->input_count + i] = node->outputs[i].id;
  clv_attribute attributes[2];
  const json_t *call, *returns;
  CLV__TRY(clv__irjson_member(file, json, "", "call", true, &call));
  CLV__TRY(clv__irjson_member(file, json, "", "returns", true, &returns));
  uint32_t count = 0;
  json_t *spelled = NULL;
  clv_status status = CLV_OK;
  if (call != NULL) {
    CLV__TRY(check_call(file, node, call));
    CLV__TRY(check_returns(file, returns));
    CLV__TRY(add_list(file, returns, "returns", &attributes[count++]));
  } else {
    spelled = spell_call(node);
    if (spelled == NULL) return clv__error_memory(file->error, json_object_size(node->attrs));
  }
  status = add_list(file, call != NULL ? call : spelled, "call", &attributes[count++]);
  json_decref(spelled);
  const char *op = strncmp(node->op_type, "aten.", 5) == 0 ? node->op_type + 5 : node->op_type;
  if (status != CLV_OK) return status;
  return clv__builder_node(file->builder, node->name, "aten", op, ids, node->input_count, ids + node->input_count,
                           node->output_count, attributes, count, file->error);
}
