/* See options.h. */
#include "base/options.h"

#include <string.h>

#include "base/error.h"

clv_status clv__options_read(void *options, size_t size_bytes, const void *given, const char *initializer, clv_error *error) {
  uint32_t struct_size;
  if (given == NULL) return CLV_OK;
  memcpy(&struct_size, given, sizeof struct_size);
  if (struct_size < sizeof struct_size) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "options have struct_size %u, which is too small: initialise them with %s",
                          struct_size, initializer);
  }
  memcpy(options, given, struct_size < size_bytes ? struct_size : size_bytes);
  return CLV_OK;
}

clv_status clv__options_list(const void *items, uint32_t count, const char *what, clv_error *error) {
  if (count == 0 || items != NULL) return CLV_OK;
  return clv__error_set(error, CLV_INVALID_ARGUMENT, "options: the count says %u %s, but the array is NULL", count, what);
}

clv_status clv__options_texts(const char *const *items, uint32_t count, const char *what, clv_error *error) {
  CLV__TRY(clv__options_list((const void *)items, count, what, error));
  for (uint32_t i = 0; i < count; ++i) {
    if (items[i] == NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "options: entry %u of the %s is NULL", i, what);
  }
  return CLV_OK;
}

void clv__info_fill(void *info, const void *filled, uint32_t size_bytes) {
  uint32_t struct_size;
  memcpy(&struct_size, info, sizeof struct_size);
  if (struct_size < size_bytes) size_bytes = struct_size;
  if (size_bytes <= sizeof struct_size) return;
  memcpy((char *)info + sizeof struct_size, (const char *)filled + sizeof struct_size, size_bytes - sizeof struct_size);
}
