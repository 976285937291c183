/* Model functions: keeps a table of them, and replaces each call by the function's nodes. Values inside a call get names that are
 * unique in the model. */
#include <string.h>

#include "formats/onnx/loader.h"

/* Limits on what inlining adds to a model. Functions that call each other can expand a file of a hundred bytes to billions of
 * nodes. */
enum { MAX_INLINED_NODES = 1 << 20, MAX_INLINED_BYTES = 1 << 28 };

clv_status clv__onnx_charge(clv__onnx_loader *loader, size_t nodes, size_t bytes, clv_error *error) {
  loader->inlined_nodes += nodes;
  loader->inlined_bytes += bytes;
  if (loader->inlined_nodes > MAX_INLINED_NODES) {
    return clv__error_set(error, CLV_NOT_SUPPORTED, "the model's functions expand to more than %d nodes", MAX_INLINED_NODES);
  }
  if (loader->inlined_bytes > MAX_INLINED_BYTES) {
    return clv__error_set(error, CLV_NOT_SUPPORTED, "the model's functions expand to more than %d bytes", MAX_INLINED_BYTES);
  }
  return CLV_OK;
}

const char *clv__onnx_function_key(clv__arena *arena, const char *domain, const char *name, const char *overload) {
  size_t domain_bytes = strlen(domain), name_bytes = strlen(name), overload_bytes = strlen(overload);
  char *key = clv__arena_allocate(arena, domain_bytes + name_bytes + overload_bytes + 3);
  if (key == NULL) return NULL;
  memcpy(key, domain, domain_bytes);
  key[domain_bytes] = '\x1f';
  memcpy(key + domain_bytes + 1, name, name_bytes);
  key[domain_bytes + 1 + name_bytes] = '\x1f';
  memcpy(key + domain_bytes + 2 + name_bytes, overload, overload_bytes + 1);
  return key;
}

const clv__onnx_function *clv__onnx_find_function(const clv__onnx_loader *loader, const char *key) {
  uint32_t index = clv__map_find(&loader->function_index, key);
  return index == CLV__MAP_NONE ? NULL : &loader->functions[index];
}

/* Imports an operator domain that a function's nodes need. The model's own imports are added later and take precedence. */
static clv_status import_domain(clv__onnx_loader *loader, clv__proto_span span, clv_error *error) {
  clv__proto_reader reader = clv__proto_read(span, loader->origin);
  const char *domain = "";
  uint64_t version = 0;
  for (clv__proto_field field;;) {
    CLV__TRY(clv__proto_next(&reader, &field, error));
    if (field.tag == 0) break;
    if (field.tag == BYTES_FIELD(OPSET_DOMAIN)) {
      CLV__TRY(clv__onnx_domain(&loader->scratch, field.bytes, loader->origin, &domain, error));
    }
    if (field.tag == VARINT_FIELD(OPSET_VERSION)) version = field.number;
  }
  if (version == 0 || version > INT32_MAX) return CLV_OK;
  return clv__builder_import(loader->root, domain, (int32_t)version, error);
}

clv_status clv__onnx_add_function(clv__onnx_loader *loader, clv__proto_span span, clv_error *error) {
  const char *name = "", *domain = "", *overload = "";
  clv__arena *arena = &loader->scratch;
  size_t field_count = 0;
  clv__proto_reader reader = clv__proto_read(span, loader->origin);
  for (clv__proto_field field;; ++field_count) {
    CLV__TRY(clv__proto_next(&reader, &field, error));
    if (field.tag == 0) break;
    if (field.tag == BYTES_FIELD(FUNCTION_NAME)) {
      CLV__TRY(clv__onnx_string(arena, field.bytes, loader->origin, &name, error));
    } else if (field.tag == BYTES_FIELD(FUNCTION_DOMAIN)) {
      CLV__TRY(clv__onnx_domain(arena, field.bytes, loader->origin, &domain, error));
    } else if (field.tag == BYTES_FIELD(FUNCTION_OVERLOAD)) {
      CLV__TRY(clv__onnx_string(arena, field.bytes, loader->origin, &overload, error));
    } else if (field.tag == BYTES_FIELD(FUNCTION_OPSET_IMPORT)) {
      CLV__TRY(import_domain(loader, field.bytes, error));
    }
  }
  const char *key = clv__onnx_function_key(arena, domain, name, overload);
  if (key == NULL) return clv__error_memory(error, strlen(name));
  if (clv__onnx_find_function(loader, key) != NULL) {
    return clv__error_set(error, CLV_INVALID_MODEL, "function '%s' of domain '%s' is defined twice", name, domain);
  }
  if (!clv__array_reserve(loader->allocator, (void **)&loader->functions, &loader->function_capacity, loader->function_count + 1,
                          sizeof *loader->functions, loader->function_count) ||
      !clv__map_set(&loader->function_index, key, (uint32_t)loader->function_count)) {
    return clv__error_memory(error, sizeof *loader->functions);
  }
  loader->functions[loader->function_count++] = (clv__onnx_function){span, key, field_count};
  return CLV_OK;
}

/* ---- Names ---- */

const char *clv__onnx_translate(clv__onnx_loader *loader, const clv__onnx_scope *scope, const char *name) {
  if (scope == NULL || name[0] == '\0') return name;
  uint32_t formal = clv__map_find(&scope->formals, name);
  if (formal != CLV__MAP_NONE) return scope->actuals[formal];
  loader->name.size_bytes = 0;
  clv__text_append(&loader->name, "%s%s%u", name, loader->marker, scope->call);
  return loader->name.failed ? NULL : loader->name.data;
}

clv_status clv__onnx_value(clv__onnx_loader *loader, clv__builder *builder, const clv__onnx_scope *scope, const char *name,
                           clv_value_id *value, clv_error *error) {
  *value = CLV__NO_ID;
  const char *translated = clv__onnx_translate(loader, scope, name);
  if (translated == NULL) return clv__error_memory(error, strlen(name) + sizeof loader->marker);
  return translated[0] == '\0' ? CLV_OK : clv__builder_value(builder, translated, value, error);
}

/* ---- A call ---- */

typedef struct call {
  clv__onnx_loader *loader;
  clv__builder *builder;
  const clv__onnx_scope *outer;
  clv__proto_span function, node;
  clv__onnx_scope scope;
  clv__arena arena;
  uint32_t input_count; /* of the function */
  /* Per output of the function: its name if an input or an earlier output has the same name, else NULL. */
  const char **output_names;
  uint32_t output_count;
} call;

static uint32_t count_fields(clv__proto_span span, const uint8_t *origin, uint32_t tag) {
  clv__proto_reader reader = clv__proto_read(span, origin);
  uint32_t count = 0;
  for (clv__proto_field field; clv__proto_next(&reader, &field, NULL) == CLV_OK && field.tag != 0;) count += field.tag == tag;
  return count;
}

/* Copies the strings of a repeated field into the call's arena. */
static clv_status read_names(call *self, clv__proto_span span, uint32_t tag, const char ***names, uint32_t *count,
                             clv_error *error) {
  *count = count_fields(span, self->loader->origin, tag);
  *names = clv__arena_allocate_zero(&self->arena, *count, sizeof **names);
  if (*names == NULL) return clv__error_memory(error, *count * sizeof **names);
  uint32_t at = 0;
  clv__proto_reader reader = clv__proto_read(span, self->loader->origin);
  for (clv__proto_field field; at < *count;) {
    CLV__TRY(clv__proto_next(&reader, &field, error));
    if (field.tag == 0) break;
    if (field.tag != tag) continue;
    CLV__TRY(clv__onnx_charge(self->loader, 0, sizeof **names + field.bytes.size_bytes, error));
    CLV__TRY(clv__onnx_string(&self->arena, field.bytes, self->loader->origin, &(*names)[at++], error));
  }
  return CLV_OK;
}

/* Reads the names of the call's inputs or outputs, translated from the caller's scope to the model's. */
static clv_status read_operands(call *self, uint32_t tag, const char ***names, uint32_t *count, clv_error *error) {
  CLV__TRY(read_names(self, self->node, tag, names, count, error));
  for (uint32_t i = 0; i < *count; ++i) {
    const char *translated = clv__onnx_translate(self->loader, self->outer, (*names)[i]);
    char *copy = translated == NULL ? NULL : clv__arena_string(&self->arena, translated, strlen(translated));
    if (copy == NULL) return clv__error_memory(error, strlen((*names)[i]));
    (*names)[i] = copy;
  }
  return CLV_OK;
}

static clv_status bind_operands(call *self, clv_error *error) {
  const char **inputs, **outputs, **actual_inputs, **actual_outputs;
  uint32_t input_count, output_count, given_inputs, given_outputs;
  CLV__TRY(read_names(self, self->function, BYTES_FIELD(FUNCTION_INPUT), &inputs, &input_count, error));
  CLV__TRY(read_names(self, self->function, BYTES_FIELD(FUNCTION_OUTPUT), &outputs, &output_count, error));
  CLV__TRY(read_operands(self, BYTES_FIELD(NODE_INPUT), &actual_inputs, &given_inputs, error));
  CLV__TRY(read_operands(self, BYTES_FIELD(NODE_OUTPUT), &actual_outputs, &given_outputs, error));
  if (given_inputs > input_count || given_outputs > output_count) {
    return clv__error_set(error, CLV_INVALID_MODEL, "calls a function with %u input%s and %u output%s, but gives %u and %u",
                          input_count, CLV__S(input_count), output_count, CLV__S(output_count), given_inputs, given_outputs);
  }
  self->input_count = input_count;
  self->output_count = output_count;
  self->scope.actuals = clv__arena_allocate_zero(&self->arena, (size_t)input_count + output_count, sizeof(char *));
  self->output_names = clv__arena_allocate_zero(&self->arena, output_count, sizeof(char *));
  if (self->scope.actuals == NULL || self->output_names == NULL) return clv__error_memory(error, input_count * sizeof(char *));
  for (uint32_t i = 0; i < input_count; ++i) {
    self->scope.actuals[i] = i < given_inputs ? actual_inputs[i] : "";
    if (!clv__map_set(&self->scope.formals, inputs[i], i)) return clv__error_memory(error, sizeof(clv__map_slot));
  }
  for (uint32_t i = 0; i < output_count; ++i) {
    if (i >= given_outputs || actual_outputs[i][0] == '\0') continue;
    uint32_t slot = input_count + i;
    self->scope.actuals[slot] = actual_outputs[i];
    if (clv__map_find(&self->scope.formals, outputs[i]) != CLV__MAP_NONE) {
      self->output_names[i] = outputs[i];
    } else if (!clv__map_set(&self->scope.formals, outputs[i], slot)) {
      return clv__error_memory(error, sizeof(clv__map_slot));
    }
  }
  return CLV_OK;
}

/* Lists the attributes of the call, then the defaults of the function. If several have the same name, the first one applies. */
static clv_status bind_attributes(call *self, clv_error *error) {
  clv__onnx_loader *loader = self->loader;
  uint32_t room = count_fields(self->node, loader->origin, BYTES_FIELD(NODE_ATTRIBUTE)) +
                  count_fields(self->function, loader->origin, BYTES_FIELD(FUNCTION_ATTRIBUTE_PROTO));
  clv__onnx_argument *arguments = clv__arena_allocate_zero(&self->arena, room, sizeof *arguments);
  if (arguments == NULL) return clv__error_memory(error, room * sizeof *arguments);
  self->scope.arguments = arguments;
  for (int pass = 0; pass < 2; ++pass) {
    clv__proto_reader reader = clv__proto_read(pass == 0 ? self->node : self->function, loader->origin);
    uint32_t tag = pass == 0 ? BYTES_FIELD(NODE_ATTRIBUTE) : BYTES_FIELD(FUNCTION_ATTRIBUTE_PROTO);
    for (clv__proto_field field;;) {
      CLV__TRY(clv__proto_next(&reader, &field, error));
      if (field.tag == 0) break;
      if (field.tag != tag) continue;
      bool present;
      clv__onnx_argument argument;
      CLV__TRY(clv__onnx_resolve_attribute(loader, pass == 0 ? self->outer : NULL, field.bytes, &self->arena, &argument, &present,
                                           error));
      if (present) arguments[self->scope.argument_count++] = argument;
    }
  }
  return CLV_OK;
}

/* Adds an Identity for each output of the function that is also an input or an earlier output. */
static clv_status add_copies(call *self, clv_error *error) {
  for (uint32_t i = 0; i < self->output_count; ++i) {
    if (self->output_names[i] == NULL) continue;
    clv_value_id from, to;
    CLV__TRY(clv__onnx_value(self->loader, self->builder, &self->scope, self->output_names[i], &from, error));
    CLV__TRY(clv__builder_value(self->builder, self->scope.actuals[self->input_count + i], &to, error));
    CLV__TRY(clv__onnx_charge(self->loader, 1, 0, error));
    CLV__TRY(clv__builder_node(self->builder, self->scope.prefix, "", "Identity", &from, 1, &to, 1, NULL, 0, error));
  }
  return CLV_OK;
}

static clv_status add_nodes(call *self, uint32_t depth, clv_error *error) {
  clv__proto_reader reader = clv__proto_read(self->function, self->loader->origin);
  for (clv__proto_field field;;) {
    CLV__TRY(clv__proto_next(&reader, &field, error));
    if (field.tag == 0) return CLV_OK;
    if (field.tag == BYTES_FIELD(FUNCTION_NODE)) {
      CLV__TRY(clv__onnx_load_node(self->loader, self->builder, &self->scope, field.bytes, depth + 1, error));
    } else if (field.tag == BYTES_FIELD(FUNCTION_VALUE_INFO)) {
      clv_value_id value;
      CLV__TRY(clv__onnx_charge(self->loader, 0, field.bytes.size_bytes, error));
      CLV__TRY(clv__onnx_load_value(self->loader, self->builder, &self->scope, field.bytes, false, &value, error));
    }
  }
}

clv_status clv__onnx_inline_call(clv__onnx_loader *loader, clv__builder *builder, const clv__onnx_scope *scope,
                                 const clv__onnx_function *function, clv__proto_span node, const char *node_name, uint32_t depth,
                                 clv_error *error) {
  CLV__TRY(clv__onnx_check_depth(depth, error));
  CLV__TRY(clv__onnx_charge(loader, 1, function->field_count * sizeof(void *),
                            error)); /* counts reading the function's message, which every call does again */
  call self = {.loader = loader, .builder = builder, .outer = scope, .function = function->message, .node = node};
  self.scope.call = ++loader->call_count;
  clv__arena_init(&self.arena, loader->allocator);
  clv__map_init(&self.scope.formals, loader->allocator);
  clv_status status = CLV_OK;
  size_t length = strlen(node_name);
  char *prefix = clv__arena_allocate(&self.arena, length + 2);
  if (prefix == NULL) {
    status = clv__error_memory(error, length + 2);
    goto cleanup;
  }
  memcpy(prefix, node_name, length);
  memcpy(prefix + length, "/", 2);
  self.scope.prefix = prefix;
  CLV__TRY_GOTO(bind_operands(&self, error));
  CLV__TRY_GOTO(bind_attributes(&self, error));
  CLV__TRY_GOTO(add_nodes(&self, depth, error));
  CLV__TRY_GOTO(add_copies(&self, error));
cleanup:
  clv__map_finish(&self.scope.formals);
  clv__arena_finish(&self.arena);
  return status;
}
