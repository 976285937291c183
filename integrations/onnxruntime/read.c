/* Reads graphs of ONNX Runtime: lists of nodes and values, names, types and tensors. */
#include <string.h>

#include "provider.h"

clv_dtype clv__ep_dtype(int ort_dtype) {
  switch (ort_dtype) {
    case ORT_DTYPE_U2:
      return CLV_U2;
    case ORT_DTYPE_I2:
      return CLV_I2;
    case ORT_DTYPE_F8E8M0:
      return CLV_F8E8M0;
    default:
      return ort_dtype > 0 && ort_dtype < ORT_DTYPE_U2 && clv_dtype_size_bits((clv_dtype)ort_dtype) > 0 ? (clv_dtype)ort_dtype
                                                                                                        : CLV_DTYPE_NONE;
  }
}

static clv_status count_values(const clv__ep *provider, const void *owner, clv__ep_list list, size_t *count, clv_error *error) {
  switch (list) {
    case CLV__EP_GRAPH_INPUTS:
      ORT(provider, Graph_GetNumInputs, owner, count);
      break;
    case CLV__EP_GRAPH_OUTPUTS:
      ORT(provider, Graph_GetNumOutputs, owner, count);
      break;
    case CLV__EP_GRAPH_INITIALIZERS:
      ORT(provider, Graph_GetNumInitializers, owner, count);
      break;
    case CLV__EP_NODE_INPUTS:
      ORT(provider, Node_GetNumInputs, owner, count);
      break;
    case CLV__EP_NODE_OUTPUTS:
      ORT(provider, Node_GetNumOutputs, owner, count);
      break;
    case CLV__EP_NODE_CAPTURES:
      ORT(provider, Node_GetNumImplicitInputs, owner, count);
      break;
  }
  return CLV_OK;
}

clv_status clv__ep_read_values(const clv__ep *provider, const void *owner, clv__ep_list list, clv__ep_arena *arena,
                               clv__ep_values *values, clv_error *error) {
  values->count = 0;
  TRY(count_values(provider, owner, list, &values->count, error));
  values->items = clv__ep_take(arena, values->count, sizeof *values->items);
  if (values->items == NULL) return clv__ep_no_memory(error);
  if (values->count == 0) return CLV_OK;
  switch (list) {
    case CLV__EP_GRAPH_INPUTS:
      ORT(provider, Graph_GetInputs, owner, values->items, values->count);
      break;
    case CLV__EP_GRAPH_OUTPUTS:
      ORT(provider, Graph_GetOutputs, owner, values->items, values->count);
      break;
    case CLV__EP_GRAPH_INITIALIZERS:
      ORT(provider, Graph_GetInitializers, owner, values->items, values->count);
      break;
    case CLV__EP_NODE_INPUTS:
      ORT(provider, Node_GetInputs, owner, values->items, values->count);
      break;
    case CLV__EP_NODE_OUTPUTS:
      ORT(provider, Node_GetOutputs, owner, values->items, values->count);
      break;
    case CLV__EP_NODE_CAPTURES:
      ORT(provider, Node_GetImplicitInputs, owner, values->items, values->count);
      break;
  }
  return CLV_OK;
}

clv_status clv__ep_read_nodes(const clv__ep *provider, const OrtGraph *graph, clv__ep_arena *arena, clv__ep_nodes *nodes,
                              clv_error *error) {
  ORT(provider, Graph_GetNumNodes, graph, &nodes->count);
  nodes->items = clv__ep_take(arena, nodes->count, sizeof *nodes->items);
  if (nodes->items == NULL) return clv__ep_no_memory(error);
  if (nodes->count > 0) ORT(provider, Graph_GetNodes, graph, nodes->items, nodes->count);
  return CLV_OK;
}

clv_status clv__ep_value_name(const clv__ep *provider, const OrtValueInfo *value, const char **name, clv_error *error) {
  *name = "";
  if (value != NULL) ORT(provider, GetValueInfoName, value, name);
  return CLV_OK;
}

/* Whether a dimension's name says nothing. Exporters give such names to all unknown dimensions, whose sizes then differ. */
static bool is_placeholder(const char *symbol) {
  static const char *const words[] = {"", "?", "-1", "None", "none", "unknown", "unk", "dynamic"};
  for (size_t i = 0; i < sizeof words / sizeof *words; ++i) {
    if (strcmp(symbol, words[i]) == 0) return true;
  }
  return false;
}

static clv_status read_dims(const clv__ep *provider, const OrtTensorInfo *info, clv_tensor *type,
                            const char *symbols[CLV_MAX_RANK], clv_error *error) {
  size_t rank;
  type->rank = CLV_RANK_UNKNOWN;
  if (!provider->api->TensorTypeAndShape_HasShape(info)) return CLV_OK;
  ORT(provider, GetDimensionsCount, info, &rank);
  if (rank > CLV_MAX_RANK) {
    type->dtype = CLV_DTYPE_NONE;
    return CLV_OK;
  }
  type->rank = (int32_t)rank;
  if (rank == 0) return CLV_OK;
  ORT(provider, GetDimensions, info, type->dims, rank);
  ORT(provider, GetSymbolicDimensions, info, symbols, rank);
  for (size_t i = 0; i < rank; ++i) {
    if (type->dims[i] >= 0 || (symbols[i] != NULL && is_placeholder(symbols[i]))) symbols[i] = NULL;
    if (type->dims[i] < 0) type->dims[i] = CLV_DIM_UNKNOWN;
  }
  return CLV_OK;
}

clv_status clv__ep_value_type(const clv__ep *provider, const OrtValueInfo *value, clv_tensor *type,
                              const char *symbols[CLV_MAX_RANK], clv_error *error) {
  const OrtTypeInfo *known = NULL;
  const OrtTensorInfo *info = NULL;
  int kind = 0, dtype = 0;
  memset(type, 0, sizeof *type);
  memset((void *)symbols, 0, CLV_MAX_RANK * sizeof *symbols);
  type->rank = CLV_RANK_UNKNOWN;
  ORT(provider, GetValueInfoTypeInfo, value, &known);
  if (known == NULL) return CLV_OK;
  ORT(provider, GetOnnxTypeFromTypeInfo, known, &kind);
  if (kind != ORT_TYPE_TENSOR) return CLV_OK;
  ORT(provider, CastTypeInfoToTensorInfo, known, &info);
  if (info == NULL) return CLV_OK;
  ORT(provider, GetTensorElementType, info, &dtype);
  type->dtype = clv__ep_dtype(dtype);
  return read_dims(provider, info, type, symbols, error);
}

static clv_status read_strings(const clv__ep *provider, const OrtValue *value, clv__ep_arena *arena, clv_tensor *tensor,
                               clv_error *error) {
  size_t count = 1, size_bytes = 0;
  for (int32_t i = 0; i < tensor->rank; ++i) count *= (size_t)tensor->dims[i];
  ORT(provider, GetStringTensorDataLength, value, &size_bytes);
  char *text = clv__ep_take(arena, size_bytes + 1, 1);
  size_t *offsets = clv__ep_take(arena, count + 1, sizeof *offsets);
  clv_string *strings = clv__ep_take(arena, count + 1, sizeof *strings);
  if (text == NULL || offsets == NULL || strings == NULL) return clv__ep_no_memory(error);
  if (count > 0) ORT(provider, GetStringTensorContent, value, text, size_bytes, offsets, count);
  for (size_t i = 0; i < count; ++i) {
    strings[i] = (clv_string){text + offsets[i], (i + 1 < count ? offsets[i + 1] : size_bytes) - offsets[i]};
  }
  tensor->data = strings;
  return CLV_OK;
}

clv_status clv__ep_read_tensor(const clv__ep *provider, const OrtValue *value, clv__ep_arena *arena, clv_tensor *tensor,
                               clv_error *error) {
  static const char nothing[16];
  int dtype = 0;
  const int64_t *dims = NULL;
  size_t rank = 0;
  const void *data = NULL;
  ORT(provider, GetTensorElementTypeAndShapeDataReference, value, &dtype, &dims, &rank);
  *tensor = (clv_tensor){.dtype = clv__ep_dtype(dtype), .rank = (int32_t)rank};
  if (tensor->dtype == CLV_DTYPE_NONE || rank > CLV_MAX_RANK) {
    return clv__ep_error(error, CLV_NOT_SUPPORTED, "a tensor of rank %zu with ONNX Runtime's element type %d", rank, dtype);
  }
  if (rank > 0) memcpy(tensor->dims, dims, rank * sizeof *dims);
  if (tensor->dtype == CLV_STRING && arena == NULL) return clv__ep_error(error, CLV_NOT_SUPPORTED, "a tensor of strings");
  if (tensor->dtype == CLV_STRING) return read_strings(provider, value, arena, tensor, error);
  ORT(provider, GetTensorData, value, &data);
  tensor->data = data != NULL ? (void *)data : (void *)nothing; /* without elements, there may be no data */
  return CLV_OK;
}

clv_status clv__ep_constant(const clv__ep *provider, const OrtValueInfo *value, const OrtValue **tensor, clv_error *error) {
  bool is_constant = false;
  *tensor = NULL;
  ORT(provider, ValueInfo_IsConstantInitializer, value, &is_constant);
  if (is_constant) ORT(provider, ValueInfo_GetInitializerValue, value, tensor);
  return CLV_OK;
}
