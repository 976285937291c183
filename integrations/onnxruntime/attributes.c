/* Reads the attributes of nodes. */
#include <string.h>

#include "provider.h"

/* Reads an attribute's value of any size into the arena. A call with too little room fails, but tells the size. */
static clv_status read_bytes(const clv__ep *provider, const OrtOpAttr *from, int kind, clv__ep_arena *arena, void **data,
                             size_t *size_bytes, clv_error *error) {
  *size_bytes = 0;
  OrtStatus *status = provider->api->ReadOpAttr(from, kind, NULL, 0, size_bytes);
  if (status != NULL) provider->api->ReleaseStatus(status);
  *data = clv__ep_take(arena, *size_bytes + 1, 1);
  if (*data == NULL) return clv__ep_no_memory(error);
  if (*size_bytes > 0) ORT(provider, ReadOpAttr, from, kind, *data, *size_bytes, size_bytes);
  return CLV_OK;
}

/* Several texts follow each other, each with a zero byte at its end. One text has one, too. */
static clv_status read_strings(const clv__ep *provider, const OrtOpAttr *from, int kind, clv__ep_arena *arena,
                               clv_attribute *attribute, clv_error *error) {
  void *data;
  size_t size_bytes, count = 0;
  TRY(read_bytes(provider, from, kind, arena, &data, &size_bytes, error));
  const char *text = data;
  for (size_t i = 0; i < size_bytes; ++i) count += text[i] == '\0';
  if (kind == ORT_ATTRIBUTE_STRING) count = 1;
  clv_string *strings = clv__ep_take(arena, count + 1, sizeof *strings);
  if (strings == NULL) return clv__ep_no_memory(error);
  if (kind == ORT_ATTRIBUTE_STRING) {
    strings[0] = (clv_string){text, size_bytes > 0 && text[size_bytes - 1] == '\0' ? size_bytes - 1 : size_bytes};
  } else {
    for (size_t i = 0; i < count; ++i, text += strlen(text) + 1) strings[i] = (clv_string){text, strlen(text)};
  }
  attribute->kind = CLV_ATTRIBUTE_STRINGS;
  attribute->strings = strings;
  attribute->count = count;
  return CLV_OK;
}

static clv_status read_tensor(const clv__ep *provider, const OrtOpAttr *from, clv__ep_arena *arena, clv_attribute *attribute,
                              clv_error *error) {
  OrtValue *value = NULL;
  clv_tensor *tensor = clv__ep_take(arena, 1, sizeof *tensor);
  if (tensor == NULL) return clv__ep_no_memory(error);
  ORT(provider, OpAttr_GetTensorAttributeAsOrtValue, from, &value);
  clv_status status = clv__ep_read_tensor(provider, value, arena, tensor, error);
  if (status == CLV_OK && tensor->dtype != CLV_STRING) { /* `value` is released here, so its bytes are copied */
    size_t count = 1;
    for (int32_t i = 0; i < tensor->rank; ++i) count *= (size_t)tensor->dims[i];
    tensor->data = clv__ep_copy_text(arena, tensor->data, (count * clv_dtype_size_bits(tensor->dtype) + 7) / 8);
    if (tensor->data == NULL) status = clv__ep_no_memory(error);
  }
  provider->api->ReleaseValue(value);
  attribute->kind = CLV_ATTRIBUTE_TENSOR;
  attribute->tensor = tensor;
  attribute->count = 1;
  return status;
}

static clv_status read_one(const clv__ep *provider, const OrtOpAttr *from, int kind, clv__ep_arena *arena,
                           clv_attribute *attribute, clv_error *error) {
  void *data;
  size_t size_bytes;
  attribute->is_list = kind == ORT_ATTRIBUTE_INTS || kind == ORT_ATTRIBUTE_FLOATS || kind == ORT_ATTRIBUTE_STRINGS;
  switch (kind) {
    case ORT_ATTRIBUTE_INT:
    case ORT_ATTRIBUTE_INTS:
      TRY(read_bytes(provider, from, kind, arena, &data, &size_bytes, error));
      attribute->kind = CLV_ATTRIBUTE_INTS;
      attribute->ints = data;
      attribute->count = size_bytes / sizeof *attribute->ints;
      return CLV_OK;
    case ORT_ATTRIBUTE_FLOAT:
    case ORT_ATTRIBUTE_FLOATS:
      TRY(read_bytes(provider, from, kind, arena, &data, &size_bytes, error));
      attribute->kind = CLV_ATTRIBUTE_FLOATS;
      attribute->floats = data;
      attribute->count = size_bytes / sizeof *attribute->floats;
      return CLV_OK;
    case ORT_ATTRIBUTE_STRING:
    case ORT_ATTRIBUTE_STRINGS:
      return read_strings(provider, from, kind, arena, attribute, error);
    case ORT_ATTRIBUTE_TENSOR:
      return read_tensor(provider, from, arena, attribute, error);
    default:
      return clv__ep_error(error, CLV_NOT_SUPPORTED, "attribute '%s' has a kind that Cleave does not have", attribute->name);
  }
}

clv_status clv__ep_read_attributes(const clv__ep *provider, const OrtNode *node, clv__ep_arena *arena, clv_attribute **attributes,
                                   uint32_t *count, uint32_t extra_room, clv_error *error) {
  size_t given = 0;
  *count = 0;
  ORT(provider, Node_GetNumAttributes, node, &given);
  const OrtOpAttr **list = clv__ep_take(arena, given + 1, sizeof *list);
  *attributes = clv__ep_take(arena, given + extra_room + 1, sizeof **attributes);
  if (list == NULL || *attributes == NULL) return clv__ep_no_memory(error);
  if (given > 0) ORT(provider, Node_GetAttributes, node, list, given);
  for (size_t i = 0; i < given; ++i) {
    int kind;
    clv_attribute *attribute = &(*attributes)[*count];
    if (list[i] == NULL) continue;
    ORT(provider, OpAttr_GetName, list[i], &attribute->name);
    OrtStatus *status = provider->api->OpAttr_GetType(list[i], &kind);
    if (status != NULL) { /* it fails for kinds that its list does not have, such as types */
      provider->api->ReleaseStatus(status);
      kind = ORT_ATTRIBUTE_UNDEFINED;
    }
    if (kind == ORT_ATTRIBUTE_GRAPH) continue;
    TRY(read_one(provider, list[i], kind, arena, attribute, error));
    ++*count;
  }
  return CLV_OK;
}
