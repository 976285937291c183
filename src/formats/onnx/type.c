/* Loads the declared type of a value (ValueInfoProto). Sequences, maps, optionals and unsupported element types get dtype none.
 */
#include <string.h>

#include "formats/onnx/loader.h"

/* Some exporters, such as paddle2onnx, name every dimension that they do not know "?". These are not the same size. */
static bool is_placeholder(clv__proto_field field) {
  return field.bytes.size_bytes == 1 && field.bytes.data[0] == '?';
}

static clv_status load_dim(clv__onnx_loader *loader, clv__builder *builder, const clv__onnx_scope *scope, clv__proto_span span,
                           int64_t *dim, clv_error *error) {
  *dim = CLV_DIM_UNKNOWN;
  clv__proto_reader reader = clv__proto_read(span, loader->origin);
  for (clv__proto_field field;;) {
    CLV__TRY(clv__proto_next(&reader, &field, error));
    if (field.tag == 0) return CLV_OK;
    if (field.tag == VARINT_FIELD(DIM_VALUE)) {
      *dim = (int64_t)field.number < 0 ? CLV_DIM_UNKNOWN : (int64_t)field.number;
    } else if (field.tag == BYTES_FIELD(DIM_PARAM) && field.bytes.size_bytes > 0 && scope == NULL && !is_placeholder(field)) {
      /* not inside functions: there, a name may mean a different size in every call, so the dim stays unknown */
      const char *name;
      uint32_t symbol;
      CLV__TRY(clv__onnx_string(&loader->scratch, field.bytes, loader->origin, &name, error));
      CLV__TRY(clv__builder_symbol(builder, name, &symbol, error));
      *dim = CLV_DIM_SYMBOL(symbol);
    }
  }
}

static clv_status load_shape(clv__onnx_loader *loader, clv__builder *builder, const clv__onnx_scope *scope, clv__proto_span span,
                             clv_tensor *type, clv_error *error) {
  int32_t rank = 0;
  clv__proto_reader reader = clv__proto_read(span, loader->origin);
  for (clv__proto_field field;;) {
    CLV__TRY(clv__proto_next(&reader, &field, error));
    if (field.tag == 0) break;
    if (field.tag != BYTES_FIELD(SHAPE_DIM)) continue;
    if (rank == CLV_MAX_RANK) {
      return clv__error_set(error, CLV_NOT_SUPPORTED, "its rank is above the maximum of %d", CLV_MAX_RANK);
    }
    CLV__TRY(load_dim(loader, builder, scope, field.bytes, &type->dims[rank], error));
    ++rank;
  }
  type->rank = rank;
  return CLV_OK;
}

static clv_status load_tensor_type(clv__onnx_loader *loader, clv__builder *builder, const clv__onnx_scope *scope,
                                   clv__proto_span span, clv_tensor *type, clv_error *error) {
  clv__proto_reader reader = clv__proto_read(span, loader->origin);
  for (clv__proto_field field;;) {
    CLV__TRY(clv__proto_next(&reader, &field, error));
    if (field.tag == 0) return CLV_OK;
    if (field.tag == VARINT_FIELD(TENSOR_TYPE_ELEM)) {
      type->dtype =
          field.number <= INT32_MAX && clv__dtype_is_known((int64_t)field.number) ? (clv_dtype)field.number : CLV_DTYPE_NONE;
    } else if (field.tag == BYTES_FIELD(TENSOR_TYPE_SHAPE)) {
      CLV__TRY(load_shape(loader, builder, scope, field.bytes, type, error));
    }
  }
}

clv_status clv__onnx_load_value(clv__onnx_loader *loader, clv__builder *builder, const clv__onnx_scope *scope,
                                clv__proto_span span, bool is_input, clv_value_id *value, clv_error *error) {
  *value = CLV__NO_ID;
  clv__proto_span name_bytes = {0}, type_bytes = {0};
  clv__proto_reader reader = clv__proto_read(span, loader->origin);
  for (clv__proto_field field;;) {
    CLV__TRY(clv__proto_next(&reader, &field, error));
    if (field.tag == 0) break;
    if (field.tag == BYTES_FIELD(VALUE_NAME)) name_bytes = field.bytes;
    if (field.tag == BYTES_FIELD(VALUE_TYPE)) type_bytes = field.bytes;
  }
  const char *name;
  CLV__TRY(clv__onnx_string(&loader->scratch, name_bytes, loader->origin, &name, error));
  clv_tensor type = {.rank = CLV_RANK_UNKNOWN};
  clv_status status = CLV_OK;
  reader = clv__proto_read(type_bytes, loader->origin);
  for (clv__proto_field field; status == CLV_OK;) {
    status = clv__proto_next(&reader, &field, error);
    if (status != CLV_OK || field.tag == 0) break;
    if (field.tag == BYTES_FIELD(TYPE_TENSOR)) status = load_tensor_type(loader, builder, scope, field.bytes, &type, error);
  }
  if (status != CLV_OK) return clv__error_prefix(error, status, "value '%s'", name);
  CLV__TRY(clv__onnx_value(loader, builder, scope, name, value, error));
  if (*value == CLV__NO_ID) return CLV_OK;
  if (type.dtype != CLV_DTYPE_NONE || type.rank != CLV_RANK_UNKNOWN) clv__builder_type(builder, *value, &type);
  return is_input ? clv__builder_input(builder, *value, error) : CLV_OK;
}
