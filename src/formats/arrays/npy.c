/* Reads and writes .npy files. The header is a Python dictionary. Only headers as NumPy writes them are supported. */
#include "formats/arrays/npy.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/files/file.h"
#include "base/memory.h"
#include "base/tensor/small.h"
#include "formats/arrays/npy_own.h"

static const uint8_t magic[6] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

/* ---- The header's dictionary ---- */

typedef struct cursor {
  const char *at, *end;
} cursor;

static void skip_space(cursor *text) {
  while (text->at < text->end && (*text->at == ' ' || *text->at == '\n' || *text->at == '\t' || *text->at == '\r')) ++text->at;
}

static bool accept_char(cursor *text, char expected) {
  skip_space(text);
  if (text->at == text->end || *text->at != expected) return false;
  ++text->at;
  return true;
}

static bool take_word(cursor *text, const char *word) {
  skip_space(text);
  size_t length = strlen(word);
  if ((size_t)(text->end - text->at) < length || memcmp(text->at, word, length) != 0) return false;
  text->at += length;
  return true;
}

static bool take_quoted(cursor *text, const char **string, size_t *length) {
  skip_space(text);
  if (text->at == text->end || (*text->at != '\'' && *text->at != '"')) return false;
  char quote = *text->at++;
  *string = text->at;
  while (text->at < text->end && *text->at != quote && *text->at != '\\') ++text->at;
  if (text->at == text->end || *text->at != quote) return false;
  *length = (size_t)(text->at++ - *string);
  return true;
}

static bool take_number(cursor *text, int64_t *number) {
  skip_space(text);
  const char *start = text->at;
  int64_t value = 0;
  for (; text->at < text->end && *text->at >= '0' && *text->at <= '9'; ++text->at) {
    if (__builtin_mul_overflow(value, (int64_t)10, &value) || __builtin_add_overflow(value, (int64_t)(*text->at - '0'), &value)) {
      return false;
    }
  }
  if (text->at == start) return false;
  if (text->at < text->end && *text->at == 'L') ++text->at; /* Python 2 wrote long integers this way */
  *number = value;
  return true;
}

static clv_status read_shape(cursor *text, clv_tensor *type, clv_error *error) {
  if (!accept_char(text, '(')) return clv__error_set(error, CLV_INVALID_MODEL, "npy header: 'shape' is not a tuple");
  type->rank = 0;
  while (!accept_char(text, ')')) {
    int64_t dim;
    if (!take_number(text, &dim))
      return clv__error_set(error, CLV_INVALID_MODEL, "npy header: dimension %d of 'shape' is not a whole number of 0 or more",
                            type->rank);
    if (type->rank == CLV_MAX_RANK) {
      return clv__error_set(error, CLV_NOT_SUPPORTED, "npy header: rank above the maximum of %d", CLV_MAX_RANK);
    }
    type->dims[type->rank++] = dim;
    if (!accept_char(text, ',') && (text->at == text->end || *text->at != ')')) {
      return clv__error_set(error, CLV_INVALID_MODEL, "npy header: expected ',' or ')' after a number in 'shape'");
    }
  }
  return CLV_OK;
}

static clv_dtype dtype_of(char kind, size_t bytes) {
  switch (kind) {
    case 'f':
      return bytes == 4 ? CLV_F32 : bytes == 8 ? CLV_F64 : bytes == 2 ? CLV_F16 : CLV_DTYPE_NONE;
    case 'i':
      return bytes == 1 ? CLV_I8 : bytes == 2 ? CLV_I16 : bytes == 4 ? CLV_I32 : bytes == 8 ? CLV_I64 : CLV_DTYPE_NONE;
    case 'u':
      return bytes == 1 ? CLV_U8 : bytes == 2 ? CLV_U16 : bytes == 4 ? CLV_U32 : bytes == 8 ? CLV_U64 : CLV_DTYPE_NONE;
    case 'b':
      return bytes == 1 ? CLV_BOOL : CLV_DTYPE_NONE;
    case 'V':
      return bytes == 2 ? CLV_BF16 : CLV_DTYPE_NONE;
    case 'U':
    case 'S':
      return CLV_STRING;
    default:
      return CLV_DTYPE_NONE;
  }
}

static clv_status read_descr(cursor *text, clv__npy_header *header, clv_error *error) {
  const char *descr;
  size_t length;
  skip_space(text);
  if (text->at < text->end && *text->at == '[') {
    return clv__error_set(error, CLV_NOT_SUPPORTED, "npy header: structured arrays are not supported");
  }
  if (!take_quoted(text, &descr, &length)) return clv__error_set(error, CLV_INVALID_MODEL, "npy header: 'descr' is not a string");
  if (length == 8 && memcmp(descr, "bfloat16", 8) == 0) {
    header->type.dtype = CLV_BF16;
    header->element_bytes = 2;
    return CLV_OK;
  }
  cursor inside = {descr, descr + length};
  char order = length > 0 && strchr("<>|=", descr[0]) != NULL && descr[0] != '\0' ? *inside.at++ : '=';
  header->swap = order == '>';
  char kind = inside.at < inside.end ? *inside.at++ : '?';
  int64_t number = 0;
  if (kind == '?')
    number = 1, kind = 'b';
  else if (!take_number(&inside, &number))
    number = 0;
  header->kind = kind == 'U' || kind == 'S' ? kind : 0;
  header->type.dtype = dtype_of(kind, (size_t)number);
  if (header->type.dtype == CLV_DTYPE_NONE || inside.at != inside.end) {
    return clv__error_set(error, CLV_NOT_SUPPORTED, "npy header: elements of type '%.*s' are not supported%s",
                          (int)(length < 40 ? length : 40), descr,
                          kind == 'O'                  ? " (Python objects)"
                          : kind == 'V' && number == 1 ? " (the file does not say which one-byte type they have: use a .pb file)"
                                                       : "");
  }
  /* rejects a width of 0, with which an empty file could claim any number of strings */
  if (number == 0 || !clv__multiply((size_t)number, kind == 'U' ? 4 : 1, &header->element_bytes)) {
    return clv__error_set(error, CLV_INVALID_MODEL, "npy header: strings of %" PRId64 " characters are not supported", number);
  }
  return CLV_OK;
}

static clv_status read_dictionary(cursor *text, clv__npy_header *header, clv_error *error) {
  bool has_descr = false, has_order = false, has_shape = false;
  if (!accept_char(text, '{')) return clv__error_set(error, CLV_INVALID_MODEL, "npy header: not a dictionary");
  while (!accept_char(text, '}')) {
    const char *key;
    size_t length;
    if (!take_quoted(text, &key, &length) || !accept_char(text, ':')) {
      return clv__error_set(error, CLV_INVALID_MODEL, "npy header: expected a quoted key and ':' in the dictionary");
    }
    if (length == 5 && memcmp(key, "descr", 5) == 0) {
      has_descr = true;
      CLV__TRY(read_descr(text, header, error));
    } else if (length == 13 && memcmp(key, "fortran_order", 13) == 0) {
      has_order = true;
      header->is_fortran = take_word(text, "True");
      if (!header->is_fortran && !take_word(text, "False")) {
        return clv__error_set(error, CLV_INVALID_MODEL, "npy header: 'fortran_order' is neither True nor False");
      }
    } else if (length == 5 && memcmp(key, "shape", 5) == 0) {
      has_shape = true;
      CLV__TRY(read_shape(text, &header->type, error));
    } else {
      return clv__error_set(error, CLV_INVALID_MODEL, "npy header: unknown key '%.*s'", (int)(length < 40 ? length : 40), key);
    }
    if (!accept_char(text, ',') && (text->at == text->end || *text->at != '}')) {
      return clv__error_set(error, CLV_INVALID_MODEL, "npy header: expected ',' or '}' after an entry of the dictionary");
    }
  }
  if (!has_descr || !has_order || !has_shape) {
    return clv__error_set(error, CLV_INVALID_MODEL, "npy header: '%s' is missing",
                          !has_descr   ? "descr"
                          : !has_order ? "fortran_order"
                                       : "shape");
  }
  return CLV_OK;
}

clv_status clv__npy_header_read(const void *data, size_t size_bytes, clv__npy_header *header, clv_error *error) {
  const uint8_t *bytes = data;
  *header = (clv__npy_header){0};
  if (size_bytes < 10 || memcmp(bytes, magic, sizeof magic) != 0) {
    return clv__error_set(error, CLV_INVALID_MODEL, "not an npy file: it does not start with \\x93NUMPY");
  }
  if (bytes[6] < 1 || bytes[6] > 3)
    return clv__error_set(error, CLV_NOT_SUPPORTED, "npy version %u.%u is not supported; expected 1 to 3", bytes[6], bytes[7]);
  size_t start = bytes[6] == 1 ? 10 : 12;
  size_t length = (size_t)bytes[8] | (size_t)bytes[9] << 8;
  if (bytes[6] > 1 && size_bytes >= 12) length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
  if (start + length > CLV__NPY_HEADER_LIMIT)
    return clv__error_set(error, CLV_INVALID_MODEL, "npy header of %zu bytes is too large; the maximum is %zu", length,
                          CLV__NPY_HEADER_LIMIT - start);
  if (start > size_bytes || length > size_bytes - start) {
    return clv__error_set(error, CLV_INVALID_MODEL, "the npy header has %zu bytes, but the whole file has only %zu", length,
                          size_bytes);
  }
  cursor text = {(const char *)bytes + start, (const char *)bytes + start + length};
  CLV__TRY(read_dictionary(&text, header, error));
  header->header_bytes = start + length;
  size_t tensor_bytes;
  if (!clv__tensor_count(&header->type, &header->count) || !clv__tensor_size_bytes(&header->type, &tensor_bytes) ||
      !clv__multiply(header->count, header->element_bytes, &header->data_bytes)) {
    char shape[160];
    clv__tensor_text(&header->type, shape, sizeof shape);
    return clv__error_set(error, CLV_INVALID_MODEL, "npy header: %s is too large for any memory", shape);
  }
  return CLV_OK;
}

/* ---- Data ---- */

bool clv__npy_header_is_plain(const clv__npy_header *header) {
  return header->kind == 0 && (!header->is_fortran || header->type.rank < 2 || header->count == 0);
}

void clv__npy_fix_plain(const clv__npy_header *header, void *data) {
  uint8_t *bytes = data;
  if (header->type.dtype == CLV_BOOL) {
    for (size_t i = 0; i < header->count; ++i) bytes[i] = bytes[i] != 0;
  }
  if (!header->swap || header->kind != 0) return;
  size_t width = header->element_bytes;
  for (size_t i = 0; i < header->count; ++i, bytes += width) {
    for (size_t k = 0; k < width / 2; ++k) {
      uint8_t kept = bytes[k];
      bytes[k] = bytes[width - 1 - k];
      bytes[width - 1 - k] = kept;
    }
  }
}

/* Walks the output in row-major order and reads the input, in which the first dim varies fastest. */
static void from_fortran(const clv__npy_header *header, const uint8_t *from, uint8_t *to, size_t width) {
  const clv_tensor *type = &header->type;
  size_t strides[CLV_MAX_RANK], stride = width;
  int64_t index[CLV_MAX_RANK] = {0};
  for (int32_t i = 0; i < type->rank; ++i) {
    strides[i] = stride;
    stride *= (size_t)type->dims[i];
  }
  size_t offset = 0;
  for (size_t n = 0; n < header->count; ++n) {
    memcpy(to + n * width, from + offset, width);
    for (int32_t i = type->rank - 1; i >= 0; --i) {
      offset += strides[i];
      if (++index[i] < type->dims[i]) break;
      offset -= strides[i] * (size_t)type->dims[i];
      index[i] = 0;
    }
  }
}

clv_status clv__npy_convert(const clv_allocator *allocator, const clv__npy_header *header, const void *data, clv_tensor *tensor,
                            clv_error *error) {
  *tensor = (clv_tensor){0};
  uint8_t *ordered = NULL;
  clv_tensor made = header->type;
  if (header->is_fortran && header->type.rank > 1 && header->count > 0) {
    ordered = clv__allocate(allocator, header->data_bytes);
    if (ordered == NULL) return clv__error_memory(error, header->data_bytes);
    from_fortran(header, data, ordered, header->element_bytes);
  }
  const uint8_t *from = ordered != NULL ? ordered : data;
  if (header->kind != 0) {
    clv_status status = clv__npy_strings_decode(allocator, header, from, &made.data, error);
    clv__release(allocator, ordered);
    if (status == CLV_OK) *tensor = made;
    return status;
  }
  if (ordered == NULL) {
    ordered = clv__allocate(allocator, header->data_bytes);
    if (ordered == NULL) return clv__error_memory(error, header->data_bytes);
    if (header->data_bytes > 0) memcpy(ordered, from, header->data_bytes);
  }
  clv__npy_fix_plain(header, ordered);
  made.data = ordered;
  *tensor = made;
  return CLV_OK;
}

clv_status clv__npy_read_memory(const clv_allocator *allocator, const void *data, size_t size_bytes, clv_tensor *tensor,
                                clv_error *error) {
  *tensor = (clv_tensor){0};
  clv__npy_header header;
  CLV__TRY(clv__npy_header_read(data, size_bytes, &header, error));
  size_t available = size_bytes - header.header_bytes;
  if (available != header.data_bytes) {
    char shape[160];
    clv__tensor_text(&header.type, shape, sizeof shape);
    return clv__error_set(error, CLV_INVALID_MODEL, "npy: %s needs %zu bytes, but the file has %zu bytes of data", shape,
                          header.data_bytes, available);
  }
  return clv__npy_convert(allocator, &header, (const uint8_t *)data + header.header_bytes, tensor, error);
}

clv_status clv__npy_read(const clv_allocator *allocator, const char *path, clv_tensor *tensor, clv_error *error) {
  *tensor = (clv_tensor){0};
  clv__file_map map;
  CLV__TRY(clv__file_map_open(path, &map, error));
  clv_status status = clv__npy_read_memory(allocator, map.data, map.size_bytes, tensor, error);
  clv__file_map_close(&map);
  if (status != CLV_OK) return clv__error_prefix(error, status, "%s", path);
  return CLV_OK;
}

/* ---- Writing ---- */

/* Writes the header: magic, version, length and dictionary, padded so that the data is aligned to 64 bytes. */
static void append_header(clv__text *out, const clv_tensor *tensor, const char *descr) {
  size_t start = out->size_bytes;
  clv__text_append_bytes(out, magic, sizeof magic);
  clv__text_append_bytes(out, "\1\0\0\0", 4);
  clv__text_append(out, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
  for (int32_t i = 0; i < tensor->rank; ++i) {
    clv__text_append(out, "%s%" PRId64 "%s", i > 0 ? " " : "", tensor->dims[i],
                     i + 1 < tensor->rank || tensor->rank == 1 ? "," : "");
  }
  clv__text_append(out, "), }");
  while (!out->failed && (out->size_bytes - start + 1) % 64 != 0) clv__text_append(out, " ");
  clv__text_append(out, "\n");
  if (out->failed) return;
  size_t length = out->size_bytes - start - 10;
  out->data[start + 8] = (char)(length & 0xff);
  out->data[start + 9] = (char)(length >> 8);
}

static const char *descr_of(clv_dtype dtype) {
  switch (dtype) {
    case CLV_F32:
      return "<f4";
    case CLV_F64:
      return "<f8";
    case CLV_F16:
      return "<f2";
    case CLV_BF16:
      return "<V2";
    case CLV_I8:
      return "|i1";
    case CLV_U8:
      return "|u1";
    case CLV_I16:
      return "<i2";
    case CLV_U16:
      return "<u2";
    case CLV_I32:
      return "<i4";
    case CLV_U32:
      return "<u4";
    case CLV_I64:
      return "<i8";
    case CLV_U64:
      return "<u8";
    case CLV_BOOL:
      return "|b1";
    case CLV_F8E4M3FN: /* NumPy has no such types: the file contains untyped bytes */
    case CLV_F8E4M3FNUZ:
    case CLV_F8E5M2:
    case CLV_F8E5M2FNUZ:
    case CLV_F8E8M0:
      return "|V1";
    default:
      return NULL;
  }
}

/* Writes a tensor whose elements share bytes in memory. In the file each element has a byte: integers their number, floats their
 * bits. */
static void append_packed(clv__text *out, const clv_tensor *tensor, size_t count) {
  const bool is_signed = tensor->dtype == CLV_I4 || tensor->dtype == CLV_I2;
  append_header(out, tensor, tensor->dtype == CLV_F4E2M1 ? "|V1" : is_signed ? "|i1" : "|u1");
  uint8_t bytes[256];
  for (size_t first = 0; first < count; first += sizeof bytes) {
    const size_t some = count - first < sizeof bytes ? count - first : sizeof bytes;
    for (size_t i = 0; i < some; ++i) {
      bytes[i] = tensor->dtype == CLV_F4E2M1 ? clv__small_bits(tensor->dtype, tensor->data, first + i)
                                             : (uint8_t)clv__packed_get(tensor->dtype, tensor->data, first + i);
    }
    clv__text_append_bytes(out, bytes, some);
  }
}

clv_status clv__npy_append_header(clv__text *out, const clv_tensor *type, clv_error *error) {
  size_t size_bytes;
  const char *descr = descr_of(type->dtype);
  if (descr == NULL || !clv__tensor_size_bytes(type, &size_bytes)) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "npy: the tensor's element type cannot be stored, or its size is unknown");
  }
  append_header(out, type, descr);
  return out->failed ? clv__error_memory(error, 128) : CLV_OK;
}

clv_status clv__npy_append(clv__text *out, const clv_tensor *tensor, clv_error *error) {
  size_t size_bytes;
  if (tensor->data == NULL || !clv__tensor_size_bytes(tensor, &size_bytes)) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "npy: the tensor has no data or an unknown size");
  }
  if (tensor->dtype == CLV_STRING) {
    char descr[32];
    size_t characters;
    CLV__TRY(clv__npy_strings_measure(tensor, &characters, error));
    snprintf(descr, sizeof descr, "<U%zu", characters);
    append_header(out, tensor, descr);
    clv__npy_strings_append(out, tensor, characters);
  } else if (clv__dtype_is_in(tensor->dtype, CLV__DTYPES_PACKED)) {
    size_t count = 0;
    (void)clv__tensor_count(tensor, &count);
    append_packed(out, tensor, count);
  } else {
    append_header(out, tensor, descr_of(tensor->dtype));
    clv__text_append_bytes(out, tensor->data, size_bytes);
  }
  return out->failed ? clv__error_memory(error, size_bytes) : CLV_OK;
}

clv_status clv__npy_write(const clv_allocator *allocator, const char *path, const clv_tensor *tensor, clv_error *error) {
  clv__text out;
  clv__text_init(&out, allocator);
  clv_status status = clv__npy_append(&out, tensor, error);
  if (status == CLV_OK)
    status = clv__file_write(path, out.data, out.size_bytes, error);
  else
    clv__error_prefix(error, status, "%s", path);
  clv__text_finish(&out);
  return status;
}
