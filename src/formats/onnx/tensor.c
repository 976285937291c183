/* Reads tensors (TensorProto): dims, dtype and data. Raw data stays in place, and so does the data of typed fields that already
 * has the layout of a tensor in memory; other data is decoded. Both the file and the machine must be little-endian. */
#include <inttypes.h>
#include <string.h>

#include "formats/onnx/loader.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "tensors are used as they lie in the file");

/* The data of all tensors without elements. The pointer must not be NULL, because that would mean that the value is unknown. */
static const _Alignas(CLV__ALIGNMENT) uint8_t no_elements[CLV__ALIGNMENT];

static const char *const dtype_names[] = {
    "undefined",  "float",        "uint8",          "int8",       "uint16",         "int16",  "int32",     "int64",
    "string",     "bool",         "float16",        "double",     "uint32",         "uint64", "complex64", "complex128",
    "bfloat16",   "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "uint4",  "int4",      "float4e2m1",
    "float8e8m0", "uint2",        "int2",           "float6e2m3", "float6e3m2"};

static void add_dim(clv__onnx_tensor_message *tensor, uint64_t dim) {
  if (tensor->rank < CLV_MAX_RANK) tensor->dims[tensor->rank] = (int64_t)dim;
  if (tensor->rank < INT32_MAX) ++tensor->rank;
}

static clv_status scan_external_entry(clv__proto_span span, const uint8_t *origin, clv__onnx_tensor_message *tensor,
                                      clv_error *error) {
  clv__proto_reader reader = clv__proto_read(span, origin);
  clv__proto_span key = {0}, value = {0};
  for (clv__proto_field field;;) {
    CLV__TRY(clv__proto_next(&reader, &field, error));
    if (field.tag == 0) break;
    if (field.tag == BYTES_FIELD(ENTRY_KEY)) key = field.bytes;
    if (field.tag == BYTES_FIELD(ENTRY_VALUE)) value = field.bytes;
  }
  if (key.size_bytes == 8 && memcmp(key.data, "location", 8) == 0) tensor->location = value;
  if (key.size_bytes == 6 && memcmp(key.data, "offset", 6) == 0) tensor->offset = value;
  if (key.size_bytes == 6 && memcmp(key.data, "length", 6) == 0) tensor->length = value;
  return CLV_OK;
}

static clv_status scan_fields(clv__onnx_tensor_message *tensor, const uint8_t *origin, clv_error *error) {
  clv__proto_reader reader = clv__proto_read(tensor->message, origin);
  for (clv__proto_field field;;) {
    CLV__TRY(clv__proto_next(&reader, &field, error));
    switch (field.tag) {
      case 0:
        return CLV_OK;
      case VARINT_FIELD(TENSOR_DIMS):
        add_dim(tensor, field.number);
        break;
      case BYTES_FIELD(TENSOR_DIMS): {
        clv__proto_reader packed = clv__proto_read(field.bytes, origin);
        while (packed.at < packed.end) {
          uint64_t dim;
          CLV__TRY(clv__proto_varint(&packed, &dim, error));
          add_dim(tensor, dim);
        }
        break;
      }
      case VARINT_FIELD(TENSOR_DATA_TYPE):
        tensor->data_type = (int32_t)field.number;
        break;
      case BYTES_FIELD(TENSOR_SEGMENT):
        tensor->has_segment = true;
        break;
      case BYTES_FIELD(TENSOR_NAME):
        tensor->name = field.bytes;
        break;
      case BYTES_FIELD(TENSOR_RAW_DATA):
        tensor->has_raw = true;
        tensor->raw = field.bytes;
        break;
      case VARINT_FIELD(TENSOR_DATA_LOCATION):
        tensor->is_external = field.number == 1;
        break;
      case BYTES_FIELD(TENSOR_EXTERNAL_DATA):
        CLV__TRY(scan_external_entry(field.bytes, origin, tensor, error));
        break;
      default:
        break;
    }
  }
}

static clv_status check_type(const clv__onnx_tensor_message *tensor, clv_error *error) {
  if (tensor->rank > CLV_MAX_RANK) {
    return clv__error_set(error, CLV_NOT_SUPPORTED, "its rank %d is above the maximum of %d", tensor->rank, CLV_MAX_RANK);
  }
  for (int32_t i = 0; i < tensor->rank; ++i) {
    if (tensor->dims[i] < 0) return clv__error_set(error, CLV_INVALID_MODEL, "dimension %d is %" PRId64, i, tensor->dims[i]);
  }
  int64_t type = tensor->data_type;
  if (type == CLV_DTYPE_NONE) return clv__error_set(error, CLV_INVALID_MODEL, "has no element type");
  if (!clv__dtype_is_known(type)) {
    bool known = type > 0 && (size_t)type < sizeof dtype_names / sizeof *dtype_names;
    return clv__error_set(error, CLV_NOT_SUPPORTED, "elements of type %" PRId64 " (%s) are not supported", type,
                          known ? dtype_names[type] : "unknown");
  }
  if (tensor->has_segment) return clv__error_set(error, CLV_NOT_SUPPORTED, "segmented data is not supported");
  return CLV_OK;
}

clv_status clv__onnx_tensor_scan(clv__proto_span message, const uint8_t *origin, clv__onnx_tensor_message *tensor,
                                 clv_error *error) {
  *tensor = (clv__onnx_tensor_message){.message = message};
  return scan_fields(tensor, origin, error);
}

/* ---- Typed data ---- */

typedef struct typed_field {
  uint32_t number;
  clv__proto_wire wire;
} typed_field;

static typed_field field_of(clv_dtype dtype) {
  switch (dtype) {
    case CLV_F32:
      return (typed_field){TENSOR_FLOAT_DATA, CLV__PROTO_FIXED32};
    case CLV_F64:
      return (typed_field){TENSOR_DOUBLE_DATA, CLV__PROTO_FIXED64};
    case CLV_I64:
      return (typed_field){TENSOR_INT64_DATA, CLV__PROTO_VARINT};
    case CLV_U32:
    case CLV_U64:
      return (typed_field){TENSOR_UINT64_DATA, CLV__PROTO_VARINT};
    case CLV_STRING:
      return (typed_field){TENSOR_STRING_DATA, CLV__PROTO_BYTES};
    default:
      return (typed_field){TENSOR_INT32_DATA, CLV__PROTO_VARINT};
  }
}

/* Returns how many bytes of memory one number of the typed field takes. For packed dtypes, each number is one byte that contains
 * several elements. */
static size_t number_bytes(clv_dtype dtype) {
  return clv__dtype_is_in(dtype, CLV__DTYPES_PACKED) ? 1 : clv_dtype_size_bytes(dtype);
}

static size_t fixed_bytes(clv__proto_wire wire) {
  return wire == CLV__PROTO_FIXED32 ? 4 : 8;
}

/* Counts the numbers of the typed field. If a single packed field contains all of them, sets `*run` to its bytes. */
static clv_status count_typed(const clv__onnx_tensor_message *message, const uint8_t *origin, typed_field typed, size_t *count,
                              clv__proto_span *run, clv_error *error) {
  clv__proto_reader reader = clv__proto_read(message->message, origin);
  size_t total = 0, runs = 0;
  for (clv__proto_field field;;) {
    CLV__TRY(clv__proto_next(&reader, &field, error));
    if (field.tag == 0) break;
    if (field.tag == CLV__PROTO_TAG(typed.number, typed.wire)) {
      ++total;
      runs += 2; /* an unpacked number, so no single packed field contains all numbers */
    } else if (field.tag == BYTES_FIELD(typed.number)) {
      ++runs;
      *run = field.bytes;
      if (typed.wire == CLV__PROTO_VARINT) {
        total += clv__proto_count_varints(field.bytes);
      } else if (field.bytes.size_bytes % fixed_bytes(typed.wire) != 0) {
        return clv__error_set(error, CLV_INVALID_MODEL,
                              "packed numbers of %zu bytes each have %zu bytes in total, which is not a multiple",
                              fixed_bytes(typed.wire), field.bytes.size_bytes);
      } else {
        total += field.bytes.size_bytes / fixed_bytes(typed.wire);
      }
    }
  }
  if (runs != 1 || typed.wire == CLV__PROTO_VARINT || typed.wire == CLV__PROTO_BYTES) *run = (clv__proto_span){0};
  *count = total;
  return CLV_OK;
}

/* Stores a number of the typed field as an element of `width` bytes: the number's low bytes. 16-bit floats are given as their
 * bits, and negative integers as two's complement. */
static void store(clv_dtype dtype, size_t width, uint64_t number, uint8_t *to) {
  if (dtype == CLV_BOOL)
    *to = number != 0;
  else
    memcpy(to, &number, width);
}

static clv_status store_typed(const clv__onnx_tensor_message *message, const uint8_t *origin, typed_field typed,
                              clv_tensor *tensor, clv_error *error) {
  size_t width = number_bytes(tensor->dtype);
  uint8_t *to = tensor->data;
  clv__proto_reader reader = clv__proto_read(message->message, origin);
  for (clv__proto_field field;;) {
    CLV__TRY(clv__proto_next(&reader, &field, error));
    if (field.tag == 0) return CLV_OK;
    if (field.tag == CLV__PROTO_TAG(typed.number, typed.wire)) {
      if (tensor->dtype == CLV_STRING) {
        const char *text = field.bytes.size_bytes > 0 ? (const char *)field.bytes.data : "";
        *(clv_string *)(void *)to = (clv_string){text, field.bytes.size_bytes};
      } else {
        store(tensor->dtype, width, field.number, to);
      }
      to += width;
    } else if (field.tag == BYTES_FIELD(typed.number)) {
      clv__proto_reader packed = clv__proto_read(field.bytes, origin);
      while (packed.at < packed.end) {
        uint64_t number = 0;
        if (typed.wire == CLV__PROTO_VARINT) {
          CLV__TRY(clv__proto_varint(&packed, &number, error));
        } else {
          memcpy(&number, packed.at, fixed_bytes(typed.wire));
          packed.at += fixed_bytes(typed.wire);
        }
        store(tensor->dtype, width, number, to);
        to += width;
      }
    }
  }
}

static clv_status decode_typed(const clv__onnx_tensor_message *message, const uint8_t *origin, clv__arena *arena, size_t count,
                               size_t size_bytes, clv_tensor *tensor, clv_error *error) {
  typed_field typed = field_of(tensor->dtype);
  clv__proto_span run = {0};
  size_t found = 0;
  CLV__TRY(count_typed(message, origin, typed, &found, &run, error));
  const bool packed = clv__dtype_is_in(tensor->dtype, CLV__DTYPES_PACKED);
  if (found != (packed ? size_bytes : count)) {
    return clv__error_set(error, CLV_INVALID_MODEL, "has %zu %s of data, but its shape needs %zu", found,
                          packed ? "bytes" : "elements", packed ? size_bytes : count);
  }
  if (run.data != NULL) {
    tensor->data = (void *)run.data;
    return CLV_OK;
  }
  tensor->data = clv__arena_allocate_data(arena, size_bytes);
  if (tensor->data == NULL) return clv__error_memory(error, size_bytes);
  return store_typed(message, origin, typed, tensor, error);
}

clv_status clv__onnx_tensor_decode(const clv__onnx_tensor_message *message, const uint8_t *origin, clv__arena *arena,
                                   clv_tensor *tensor, clv_error *error) {
  CLV__TRY(check_type(message, error));
  clv_tensor made = clv__tensor_make((clv_dtype)message->data_type, message->rank, message->dims, NULL);
  size_t count, size_bytes;
  if (!clv__tensor_count(&made, &count) || !clv__tensor_size_bytes(&made, &size_bytes)) {
    char text[128];
    clv__tensor_text(&made, text, sizeof text);
    return clv__error_set(error, CLV_INVALID_MODEL, "%s is too large for any memory", text);
  }
  if (message->is_external) {
    *tensor = made; /* the caller sets the data */
    return CLV_OK;
  }
  if (message->has_raw && made.dtype == CLV_STRING) {
    return clv__error_set(error, CLV_INVALID_MODEL, "has strings in raw_data, which is only for numbers");
  }
  if (message->has_raw && message->raw.size_bytes > 0) {
    if (message->raw.size_bytes != size_bytes) {
      char text[128];
      clv__tensor_text(&made, text, sizeof text);
      return clv__error_set(error, CLV_INVALID_MODEL, "has %zu bytes of raw_data, but %s needs %zu", message->raw.size_bytes,
                            text, size_bytes);
    }
    made.data = (void *)message->raw.data;
  } else {
    CLV__TRY(decode_typed(message, origin, arena, count, size_bytes, &made, error));
    if (count == 0) made.data = (void *)no_elements;
  }
  CLV__TRY(clv__onnx_check_bools(arena, &made, error));
  *tensor = made;
  return CLV_OK;
}

clv_status clv__onnx_check_bools(clv__arena *arena, clv_tensor *tensor, clv_error *error) {
  size_t count;
  if (tensor->dtype != CLV_BOOL || !clv__tensor_count(tensor, &count)) return CLV_OK;
  const uint8_t *from = tensor->data;
  size_t i = 0;
  while (i < count && from[i] <= 1) ++i;
  if (i == count) return CLV_OK;
  uint8_t *to = clv__arena_allocate_data(arena, count);
  if (to == NULL) return clv__error_memory(error, count);
  for (i = 0; i < count; ++i) to[i] = from[i] != 0;
  tensor->data = to;
  return CLV_OK;
}

clv_status clv__onnx_load_tensor(clv__onnx_loader *loader, clv__builder *builder, clv__proto_span span, clv_tensor *tensor,
                                 const char **name, clv_error *error) {
  clv__onnx_tensor_message message;
  CLV__TRY(clv__onnx_tensor_scan(span, loader->origin, &message, error));
  CLV__TRY(clv__onnx_string(&loader->scratch, message.name, loader->origin, name, error));
  clv__arena *arena = clv__builder_arena(builder);
  clv_status status = clv__onnx_tensor_decode(&message, loader->origin, arena, tensor, error);
  if (status == CLV_OK && message.is_external) {
    status = clv__onnx_external_data(loader, &message, tensor, error);
    if (status == CLV_OK && tensor->data == NULL) tensor->data = (void *)no_elements;
    if (status == CLV_OK) status = clv__onnx_check_bools(arena, tensor, error);
  }
  if (status != CLV_OK) return clv__error_prefix(error, status, "tensor '%s'", *name);
  return CLV_OK;
}

/* ---- Tensors outside models ---- */

/* Copies the tensor's data into one block from the allocator. For strings, the block is the array of clv_string, then their text.
 */
static clv_status copy_out(const clv_allocator *allocator, clv_tensor *tensor, clv_error *error) {
  size_t count, size_bytes, total;
  if (!clv__tensor_count(tensor, &count) || !clv__tensor_size_bytes(tensor, &size_bytes)) {
    return clv__error_set(error, CLV_INTERNAL_ERROR, "a tensor's size changed while being read");
  }
  total = size_bytes;
  const clv_string *strings = tensor->data;
  for (size_t i = 0; tensor->dtype == CLV_STRING && i < count; ++i) total += strings[i].size_bytes;
  uint8_t *block = clv__allocate(allocator, total);
  if (block == NULL) return clv__error_memory(error, total);
  if (size_bytes > 0) memcpy(block, tensor->data, size_bytes);
  if (tensor->dtype == CLV_STRING) {
    clv_string *copies = (clv_string *)(void *)block;
    uint8_t *text = block + size_bytes;
    for (size_t i = 0; i < count; ++i) {
      if (strings[i].size_bytes > 0) memcpy(text, strings[i].data, strings[i].size_bytes);
      copies[i].data = (const char *)text;
      text += strings[i].size_bytes;
    }
  }
  tensor->data = block;
  return CLV_OK;
}

clv_status clv__onnx_tensor_read(const clv_allocator *allocator, const void *data, size_t size_bytes, clv_tensor *tensor,
                                 char **name, clv_error *error) {
  *tensor = (clv_tensor){0};
  if (name != NULL) *name = NULL;
  clv__arena arena;
  clv__arena_init(&arena, allocator);
  clv__onnx_tensor_message message;
  clv_tensor made = {0};
  const char *read_name = "";
  clv_status status;
  CLV__TRY_GOTO(clv__onnx_tensor_scan((clv__proto_span){data, size_bytes}, data, &message, error));
  CLV__TRY_GOTO(clv__onnx_string(&arena, message.name, data, &read_name, error));
  CLV__TRY_GOTO(clv__onnx_tensor_decode(&message, data, &arena, &made, error));
  if (message.is_external) {
    status = clv__error_set(error, CLV_NOT_SUPPORTED, "tensor '%s' has its data in another file", read_name);
    goto cleanup;
  }
  char *copy = NULL;
  if (name != NULL) {
    size_t length = strlen(read_name) + 1;
    copy = clv__allocate(allocator, length);
    if (copy == NULL) {
      status = clv__error_memory(error, length);
      goto cleanup;
    }
    memcpy(copy, read_name, length);
  }
  status = copy_out(allocator, &made, error);
  if (status != CLV_OK) {
    clv__release(allocator, copy);
    goto cleanup;
  }
  if (name != NULL) *name = copy;
  *tensor = made;
cleanup:
  clv__arena_finish(&arena);
  return status;
}

clv_status clv__onnx_tensor_read_file(const clv_allocator *allocator, const char *path, clv_tensor *tensor, char **name,
                                      clv_error *error) {
  *tensor = (clv_tensor){0};
  if (name != NULL) *name = NULL;
  clv__file_map map;
  CLV__TRY(clv__file_map_open(path, &map, error));
  clv_status status = clv__onnx_tensor_read(allocator, map.data, map.size_bytes, tensor, name, error);
  clv__file_map_close(&map);
  if (status != CLV_OK) return clv__error_prefix(error, status, "%s", path);
  return CLV_OK;
}
