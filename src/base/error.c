/* See error.h. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

clv_status clv__error_set(clv_error *error, clv_status status, const char *format, ...) {
  if (error == NULL) return status;
  error->status = status;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(error->message, sizeof error->message, format, arguments);
  va_end(arguments);
  return status;
}

clv_status clv__error_prefix(clv_error *error, clv_status status, const char *format, ...) {
  if (error == NULL) return status;
  error->status = status;
  error->message[sizeof error->message - 1] = '\0'; /* a plugin may have filled the whole buffer without a terminator */
  char prefix[sizeof error->message];
  va_list arguments;
  va_start(arguments, format);
  int written = vsnprintf(prefix, sizeof prefix, format, arguments);
  va_end(arguments);
  if (written < 0) return status;
  size_t length = (size_t)written < sizeof prefix ? (size_t)written : sizeof prefix - 1;
  size_t room = sizeof error->message - 1;
  if (length + 2 > room) return status;
  if (error->message[0] == '\0') snprintf(error->message, sizeof error->message, "%s", clv_status_name(status));
  size_t old = strlen(error->message);
  if (old > room - length - 2) old = room - length - 2;
  memmove(error->message + length + 2, error->message, old);
  memcpy(error->message, prefix, length);
  memcpy(error->message + length, ": ", 2);
  error->message[length + 2 + old] = '\0';
  return status;
}

void clv__error_clear(clv_error *error) {
  if (error == NULL) return;
  error->status = CLV_OK;
  error->message[0] = '\0';
}

clv_status clv__error_memory(clv_error *error, size_t size_bytes) {
  return clv__error_set(error, CLV_OUT_OF_MEMORY, "out of memory: %zu bytes were requested", size_bytes);
}
