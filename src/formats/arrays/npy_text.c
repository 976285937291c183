/* Converts the strings in .npy files. See npy_own.h. */
#include "formats/arrays/npy_own.h"

#include <string.h>

#include "base/memory.h"
#include "base/tensor/tensor.h"

static uint32_t read_unit(const uint8_t *at, bool swap) {
  return swap ? (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3]
              : (uint32_t)at[3] << 24 | (uint32_t)at[2] << 16 | (uint32_t)at[1] << 8 | at[0];
}

/* Writes `code` as UTF-8 unless `to` is NULL. Returns the number of UTF-8 bytes, or 0 if `code` is not a character. */
static size_t encode(uint32_t code, uint8_t *to) {
  size_t size_bytes = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : code < 0x110000 ? 4 : 0;
  if (size_bytes == 0 || (code >= 0xd800 && code < 0xe000)) return 0;
  if (to == NULL) return size_bytes;
  static const uint8_t lead[5] = {0, 0, 0xc0, 0xe0, 0xf0};
  for (size_t i = size_bytes; i-- > 1; code >>= 6) to[i] = (uint8_t)(0x80 | (code & 0x3f));
  to[0] = (uint8_t)(lead[size_bytes] | code);
  return size_bytes;
}

/* Sets `*code` to the character at `from`. Returns its number of bytes, or 0 if the UTF-8 is invalid. */
static size_t decode(const uint8_t *from, size_t available, uint32_t *code) {
  uint8_t first = from[0];
  size_t size_bytes = first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 0;
  if (size_bytes == 0 || size_bytes > available) return 0;
  *code = size_bytes == 1 ? first : first & (0xffu >> (size_bytes + 1));
  for (size_t i = 1; i < size_bytes; ++i) {
    if ((from[i] & 0xc0) != 0x80) return 0;
    *code = *code << 6 | (from[i] & 0x3f);
  }
  return encode(*code, NULL) == size_bytes ? size_bytes : 0;
}

/* Returns the number of bytes without trailing zero characters. A character has `unit` bytes. */
static size_t trimmed(const uint8_t *from, size_t size_bytes, size_t unit) {
  while (size_bytes >= unit) {
    for (size_t i = 0; i < unit; ++i) {
      if (from[size_bytes - unit + i] != 0) return size_bytes;
    }
    size_bytes -= unit;
  }
  return 0;
}

static clv_status element_bytes(const clv__npy_header *header, const uint8_t *from, uint8_t *to, size_t *size_bytes,
                                clv_error *error) {
  if (header->kind == 'S') {
    *size_bytes = trimmed(from, header->element_bytes, 1);
    if (to != NULL && *size_bytes > 0) memcpy(to, from, *size_bytes);
    return CLV_OK;
  }
  size_t used = trimmed(from, header->element_bytes, 4), total = 0;
  for (size_t i = 0; i < used; i += 4) {
    uint32_t code = read_unit(from + i, header->swap);
    size_t step = encode(code, to == NULL ? NULL : to + total);
    if (step == 0) return clv__error_set(error, CLV_INVALID_MODEL, "npy: 0x%x is not a valid Unicode character", code);
    total += step;
  }
  *size_bytes = total;
  return CLV_OK;
}

clv_status clv__npy_strings_decode(const clv_allocator *allocator, const clv__npy_header *header, const uint8_t *from,
                                   void **block, clv_error *error) {
  size_t total;
  if (!clv__multiply(header->count, sizeof(clv_string), &total)) return clv__error_memory(error, SIZE_MAX);
  size_t text_start = total, length;
  for (size_t i = 0; i < header->count; ++i) {
    CLV__TRY(element_bytes(header, from + i * header->element_bytes, NULL, &length, error));
    if (!clv__add(total, length, &total)) return clv__error_memory(error, SIZE_MAX);
  }
  uint8_t *made = clv__allocate(allocator, total);
  if (made == NULL) return clv__error_memory(error, total);
  clv_string *strings = (clv_string *)(void *)made;
  uint8_t *text = made + text_start;
  for (size_t i = 0; i < header->count; ++i) {
    clv_status status = element_bytes(header, from + i * header->element_bytes, text, &length, error);
    if (status != CLV_OK) {
      clv__release(allocator, made);
      return status;
    }
    strings[i] = (clv_string){(const char *)text, length};
    text += length;
  }
  *block = made;
  return CLV_OK;
}

clv_status clv__npy_strings_measure(const clv_tensor *tensor, size_t *characters, clv_error *error) {
  const clv_string *strings = tensor->data;
  size_t count;
  *characters = 1;
  if (!clv__tensor_count(tensor, &count))
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "npy: the tensor has an unknown size");
  for (size_t i = 0; i < count; ++i) {
    size_t length = 0;
    for (size_t at = 0, step; at < strings[i].size_bytes; at += step, ++length) {
      uint32_t code;
      step = decode((const uint8_t *)strings[i].data + at, strings[i].size_bytes - at, &code);
      if (step == 0) return clv__error_set(error, CLV_NOT_SUPPORTED, "npy: string %zu is not UTF-8", i);
    }
    if (length > *characters) *characters = length;
  }
  return CLV_OK;
}

void clv__npy_strings_append(clv__text *out, const clv_tensor *tensor, size_t characters) {
  const clv_string *strings = tensor->data;
  static const uint8_t padding[4] = {0};
  size_t count = 0;
  if (!clv__tensor_count(tensor, &count)) return;
  for (size_t i = 0; i < count && !out->failed; ++i) {
    size_t length = 0;
    for (size_t at = 0, step; at < strings[i].size_bytes; at += step, ++length) {
      uint32_t code = 0;
      step = decode((const uint8_t *)strings[i].data + at, strings[i].size_bytes - at, &code);
      uint8_t unit[4] = {(uint8_t)code, (uint8_t)(code >> 8), (uint8_t)(code >> 16), (uint8_t)(code >> 24)};
      clv__text_append_bytes(out, unit, sizeof unit);
    }
    for (; length < characters && !out->failed; ++length) clv__text_append_bytes(out, padding, sizeof padding);
  }
}
