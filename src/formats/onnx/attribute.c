/* Loads attributes (AttributeProto): copies numbers into arrays, points to strings and tensors in the file, and loads bodies as
 * separate graphs. */
#include <string.h>

#include "formats/onnx/loader.h"
#include "graph/view.h"

/* The fields of an AttributeProto, read before its type is known. */
typedef struct attribute_message {
  int64_t type;
  int64_t i;
  float f;
  bool has_i, has_f, has_s, has_t, has_g;
  clv__proto_span s, t, g;
  size_t int_count, float_count, string_count;
} attribute_message;

typedef struct decoder {
  clv__onnx_loader *loader;
  clv__builder *builder;
  clv__arena *arena;
  uint32_t depth;
} decoder;

static const char *const type_names[] = {"undefined",      "float",      "int",        "string",  "tensor", "graph",
                                         "floats",         "ints",       "strings",    "tensors", "graphs", "sparse_tensor",
                                         "sparse_tensors", "type_proto", "type_protos"};

static float float_of(uint64_t bits) {
  uint32_t narrow = (uint32_t)bits;
  float number;
  memcpy(&number, &narrow, sizeof number);
  return number;
}

static clv_status scan(const decoder *self, clv__proto_span span, attribute_message *message, clv_error *error) {
  *message = (attribute_message){0};
  clv__proto_reader reader = clv__proto_read(span, self->loader->origin);
  for (clv__proto_field field;;) {
    CLV__TRY(clv__proto_next(&reader, &field, error));
    switch (field.tag) {
      case 0:
        return CLV_OK;
      case VARINT_FIELD(ATTRIBUTE_TYPE):
        message->type = (int32_t)field.number;
        break;
      case FLOAT_FIELD(ATTRIBUTE_F):
        message->f = float_of(field.number);
        message->has_f = true;
        break;
      case VARINT_FIELD(ATTRIBUTE_I):
        message->i = (int64_t)field.number;
        message->has_i = true;
        break;
      case BYTES_FIELD(ATTRIBUTE_S):
        message->s = field.bytes;
        message->has_s = true;
        break;
      case BYTES_FIELD(ATTRIBUTE_T):
        message->t = field.bytes;
        message->has_t = true;
        break;
      case BYTES_FIELD(ATTRIBUTE_G):
        message->g = field.bytes;
        message->has_g = true;
        break;
      case FLOAT_FIELD(ATTRIBUTE_FLOATS):
        ++message->float_count;
        break;
      case BYTES_FIELD(ATTRIBUTE_FLOATS):
        if (field.bytes.size_bytes % 4 != 0) {
          return clv__error_set(error, CLV_INVALID_MODEL, "packed floats have %zu bytes, which is not a multiple of 4",
                                field.bytes.size_bytes);
        }
        message->float_count += field.bytes.size_bytes / 4;
        break;
      case VARINT_FIELD(ATTRIBUTE_INTS):
        ++message->int_count;
        break;
      case BYTES_FIELD(ATTRIBUTE_INTS):
        message->int_count += clv__proto_count_varints(field.bytes);
        break;
      case BYTES_FIELD(ATTRIBUTE_STRINGS):
        ++message->string_count;
        break;
      default:
        break;
    }
  }
}

/* Returns the attribute's type. Files of the first IR version do not state it, so it is derived from the fields that are present.
 */
static int64_t type_of_message(const attribute_message *message) {
  if (message->type != ATTRIBUTE_TYPE_UNDEFINED) return message->type;
  if (message->has_f) return ATTRIBUTE_TYPE_FLOAT;
  if (message->has_i) return ATTRIBUTE_TYPE_INT;
  if (message->has_s) return ATTRIBUTE_TYPE_STRING;
  if (message->has_t) return ATTRIBUTE_TYPE_TENSOR;
  if (message->has_g) return ATTRIBUTE_TYPE_GRAPH;
  if (message->float_count > 0) return ATTRIBUTE_TYPE_FLOATS;
  if (message->string_count > 0) return ATTRIBUTE_TYPE_STRINGS;
  return ATTRIBUTE_TYPE_INTS;
}

static clv_status decode_ints(const decoder *self, clv__proto_span span, clv_attribute *attribute, clv_error *error) {
  int64_t *numbers = clv__arena_allocate_zero(self->arena, attribute->count, sizeof *numbers);
  if (numbers == NULL) return clv__error_memory(error, attribute->count * sizeof *numbers);
  size_t at = 0;
  clv__proto_reader reader = clv__proto_read(span, self->loader->origin);
  for (clv__proto_field field;;) {
    CLV__TRY(clv__proto_next(&reader, &field, error));
    if (field.tag == 0) break;
    if (field.tag == VARINT_FIELD(ATTRIBUTE_INTS)) numbers[at++] = (int64_t)field.number;
    if (field.tag != BYTES_FIELD(ATTRIBUTE_INTS)) continue;
    clv__proto_reader packed = clv__proto_read(field.bytes, self->loader->origin);
    while (packed.at < packed.end) {
      uint64_t number;
      CLV__TRY(clv__proto_varint(&packed, &number, error));
      numbers[at++] = (int64_t)number;
    }
  }
  attribute->ints = numbers;
  return CLV_OK;
}

static clv_status decode_floats(const decoder *self, clv__proto_span span, clv_attribute *attribute, clv_error *error) {
  float *numbers = clv__arena_allocate_zero(self->arena, attribute->count, sizeof *numbers);
  if (numbers == NULL) return clv__error_memory(error, attribute->count * sizeof *numbers);
  size_t at = 0;
  clv__proto_reader reader = clv__proto_read(span, self->loader->origin);
  for (clv__proto_field field;;) {
    CLV__TRY(clv__proto_next(&reader, &field, error));
    if (field.tag == 0) break;
    if (field.tag == FLOAT_FIELD(ATTRIBUTE_FLOATS)) numbers[at++] = float_of(field.number);
    if (field.tag != BYTES_FIELD(ATTRIBUTE_FLOATS)) continue;
    for (size_t i = 0; i < field.bytes.size_bytes; i += 4) numbers[at++] = float_of(clv__proto_fixed32(field.bytes.data + i));
  }
  attribute->floats = numbers;
  return CLV_OK;
}

static clv_string string_of(clv__proto_span bytes) {
  return (clv_string){bytes.size_bytes > 0 ? (const char *)bytes.data : "", bytes.size_bytes};
}

static clv_status decode_strings(const decoder *self, clv__proto_span span, clv_attribute *attribute, clv_error *error) {
  clv_string *strings = clv__arena_allocate_zero(self->arena, attribute->count, sizeof *strings);
  if (strings == NULL) return clv__error_memory(error, attribute->count * sizeof *strings);
  size_t at = 0;
  clv__proto_reader reader = clv__proto_read(span, self->loader->origin);
  for (clv__proto_field field;;) {
    CLV__TRY(clv__proto_next(&reader, &field, error));
    if (field.tag == 0) break;
    if (field.tag == BYTES_FIELD(ATTRIBUTE_STRINGS)) strings[at++] = string_of(field.bytes);
  }
  attribute->strings = strings;
  return CLV_OK;
}

static clv_status decode_tensor(const decoder *self, const clv__onnx_scope *scope, clv__proto_span span, clv_attribute *attribute,
                                clv_error *error) {
  clv_tensor *tensor = clv__arena_allocate_zero(self->arena, 1, sizeof *tensor);
  if (tensor == NULL) return clv__error_memory(error, sizeof *tensor);
  const char *name;
  CLV__TRY(clv__onnx_load_tensor(self->loader, self->builder, span, tensor, &name, error));
  const uint8_t *data = tensor->data;
  bool decoded = data < span.data || data >= span.data + span.size_bytes;
  if (scope != NULL) CLV__TRY(clv__onnx_charge(self->loader, 0, decoded ? 8 * span.size_bytes : sizeof *tensor, error));
  attribute->tensor = tensor;
  return CLV_OK;
}

static clv_status decode_graph(const decoder *self, const clv__onnx_scope *scope, clv__proto_span span, clv_attribute *attribute,
                               clv_error *error) {
  clv__onnx_loader *loader = self->loader;
  CLV__TRY(clv__onnx_check_depth(self->depth + 1, error));
  clv__builder *body;
  CLV__TRY(clv__builder_create(loader->allocator, &body, error));
  clv_status status = clv__onnx_load_graph(loader, body, scope, span, self->depth + 1, error);
  if (status != CLV_OK) {
    clv__builder_destroy(body);
    return status;
  }
  return clv__builder_finish_body(body, loader->root, &attribute->graph, error);
}

static clv_status decode_scalar_or_list(const decoder *self, const clv__onnx_argument *argument, const attribute_message *message,
                                        int64_t type, clv_attribute *attribute, clv_error *error) {
  attribute->count = 1;
  switch (type) {
    case ATTRIBUTE_TYPE_FLOAT:
      attribute->kind = CLV_ATTRIBUTE_FLOATS;
      attribute->floats = clv__arena_copy(self->arena, &message->f, sizeof message->f);
      return attribute->floats == NULL ? clv__error_memory(error, sizeof message->f) : CLV_OK;
    case ATTRIBUTE_TYPE_INT:
      attribute->kind = CLV_ATTRIBUTE_INTS;
      attribute->ints = clv__arena_copy(self->arena, &message->i, sizeof message->i);
      return attribute->ints == NULL ? clv__error_memory(error, sizeof message->i) : CLV_OK;
    case ATTRIBUTE_TYPE_STRING: {
      clv_string string = string_of(message->s);
      attribute->kind = CLV_ATTRIBUTE_STRINGS;
      attribute->strings = clv__arena_copy(self->arena, &string, sizeof string);
      return attribute->strings == NULL ? clv__error_memory(error, sizeof string) : CLV_OK;
    }
    case ATTRIBUTE_TYPE_TENSOR:
      if (!message->has_t) return clv__error_set(error, CLV_INVALID_MODEL, "is of type tensor, but has no tensor");
      attribute->kind = CLV_ATTRIBUTE_TENSOR;
      return decode_tensor(self, argument->scope, message->t, attribute, error);
    case ATTRIBUTE_TYPE_GRAPH:
      if (!message->has_g) return clv__error_set(error, CLV_INVALID_MODEL, "is of type graph, but has no graph");
      attribute->kind = CLV_ATTRIBUTE_GRAPH;
      return decode_graph(self, argument->scope, message->g, attribute, error);
    case ATTRIBUTE_TYPE_FLOATS:
      *attribute =
          (clv_attribute){attribute->name, CLV_ATTRIBUTE_FLOATS, true, message->float_count, NULL, NULL, NULL, NULL, NULL};
      return decode_floats(self, argument->message, attribute, error);
    case ATTRIBUTE_TYPE_INTS:
      *attribute = (clv_attribute){attribute->name, CLV_ATTRIBUTE_INTS, true, message->int_count, NULL, NULL, NULL, NULL, NULL};
      return decode_ints(self, argument->message, attribute, error);
    case ATTRIBUTE_TYPE_STRINGS:
      *attribute =
          (clv_attribute){attribute->name, CLV_ATTRIBUTE_STRINGS, true, message->string_count, NULL, NULL, NULL, NULL, NULL};
      return decode_strings(self, argument->message, attribute, error);
    default: {
      bool known = type >= 0 && (size_t)type < sizeof type_names / sizeof *type_names;
      return clv__error_set(error, CLV_NOT_SUPPORTED, "attributes of type %lld (%s) are not supported", (long long)type,
                            known ? type_names[type] : "unknown");
    }
  }
}

static clv_status decode(const decoder *self, const clv__onnx_scope *outer, const clv__onnx_argument *argument,
                         clv_attribute *attribute, clv_error *error) {
  attribute_message message;
  attribute->name = clv__arena_string(self->arena, argument->name, strlen(argument->name));
  if (attribute->name == NULL) return clv__error_memory(error, strlen(argument->name));
  clv_status status = scan(self, argument->message, &message, error);
  int64_t type = 0;
  if (status == CLV_OK) {
    type = type_of_message(&message);
    if (outer != NULL && type != ATTRIBUTE_TYPE_TENSOR) {
      status = clv__onnx_charge(self->loader, 0, argument->message.size_bytes, error);
    }
  }
  if (status == CLV_OK) status = decode_scalar_or_list(self, argument, &message, type, attribute, error);
  /* an error from inside a body already names its location */
  if (status != CLV_OK && !self->loader->located) clv__error_prefix(error, status, "attribute '%s'", argument->name);
  return status;
}

clv_status clv__onnx_resolve_attribute(clv__onnx_loader *loader, const clv__onnx_scope *scope, clv__proto_span span,
                                       clv__arena *arena, clv__onnx_argument *argument, bool *present, clv_error *error) {
  *present = false;
  const char *name = "", *reference = NULL;
  clv__proto_reader reader = clv__proto_read(span, loader->origin);
  for (clv__proto_field field;;) {
    CLV__TRY(clv__proto_next(&reader, &field, error));
    if (field.tag == 0) break;
    if (field.tag == BYTES_FIELD(ATTRIBUTE_NAME)) {
      CLV__TRY(clv__onnx_string(arena, field.bytes, loader->origin, &name, error));
    } else if (field.tag == BYTES_FIELD(ATTRIBUTE_REF_NAME) && field.bytes.size_bytes > 0) {
      CLV__TRY(clv__onnx_string(arena, field.bytes, loader->origin, &reference, error));
    }
  }
  if (name[0] == '\0') return clv__error_set(error, CLV_INVALID_MODEL, "an attribute has no name");
  *argument = (clv__onnx_argument){name, span, scope};
  if (reference == NULL) {
    *present = true;
    return CLV_OK;
  }
  if (scope == NULL) {
    return clv__error_set(error, CLV_INVALID_MODEL, "attribute '%s' refers to function attribute '%s', but is not in a function",
                          name, reference);
  }
  for (uint32_t i = 0; i < scope->argument_count && !*present; ++i) {
    if (strcmp(scope->arguments[i].name, reference) != 0) continue;
    argument->message = scope->arguments[i].message;
    argument->scope = scope->arguments[i].scope;
    *present = true;
  }
  return CLV_OK;
}

void clv__onnx_release_attributes(const clv_attribute *attributes, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    if (attributes[i].kind == CLV_ATTRIBUTE_GRAPH && attributes[i].graph != NULL) {
      clv__graph_destroy((clv_graph *)attributes[i].graph->graph);
    }
  }
}

clv_status clv__onnx_load_attributes(clv__onnx_loader *loader, clv__builder *builder, const clv__onnx_scope *scope,
                                     clv__proto_span node, uint32_t depth, clv_attribute **attributes, uint32_t *count,
                                     clv_error *error) {
  *attributes = NULL;
  *count = 0;
  size_t room = 0;
  clv__proto_reader reader = clv__proto_read(node, loader->origin);
  for (clv__proto_field field;;) {
    CLV__TRY(clv__proto_next(&reader, &field, error));
    if (field.tag == 0) break;
    room += field.tag == BYTES_FIELD(NODE_ATTRIBUTE);
  }
  if (room == 0) return CLV_OK;
  decoder self = {loader, builder, clv__builder_arena(builder), depth};
  clv_attribute *made = clv__arena_allocate_zero(&loader->scratch, room, sizeof *made);
  if (made == NULL) return clv__error_memory(error, room * sizeof *made);
  uint32_t done = 0;
  clv_status status = CLV_OK;
  reader = clv__proto_read(node, loader->origin);
  for (clv__proto_field field;;) {
    CLV__TRY_GOTO(clv__proto_next(&reader, &field, error));
    if (field.tag == 0) break;
    if (field.tag != BYTES_FIELD(NODE_ATTRIBUTE)) continue;
    bool present;
    clv__onnx_argument argument;
    CLV__TRY_GOTO(clv__onnx_resolve_attribute(loader, scope, field.bytes, &loader->scratch, &argument, &present, error));
    if (!present) continue;
    CLV__TRY_GOTO(decode(&self, scope, &argument, &made[done], error));
    ++done;
  }
  *attributes = made;
  *count = done;
cleanup:
  if (status != CLV_OK) clv__onnx_release_attributes(made, done);
  return status;
}
