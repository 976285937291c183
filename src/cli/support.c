/* See support.h. */
#include "cli/support.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- Errors ---- */

clv_status cli_error_set(clv_error *error, clv_status status, const char *format, ...) {
  if (error == NULL) return status;
  char message[sizeof error->message]; /* the arguments may point into `error` */
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  memcpy(error->message, message, sizeof message);
  error->status = status;
  return status;
}

clv_status cli_error_prefix(clv_error *error, clv_status status, const char *format, ...) {
  if (error == NULL) return status;
  char prefix[sizeof error->message], old[sizeof error->message];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(prefix, sizeof prefix, format, arguments);
  va_end(arguments);
  snprintf(old, sizeof old, "%s", error->message[0] != '\0' ? error->message : clv_status_name(status));
  return cli_error_set(error, status, "%s: %s", prefix, old);
}

clv_status cli_error_memory(clv_error *error, size_t size_bytes) {
  return cli_error_set(error, CLV_OUT_OF_MEMORY, "out of memory: %zu bytes were requested", size_bytes);
}

/* ---- Memory ---- */

typedef struct cli_block {
  struct cli_block *next;
  _Alignas(max_align_t) char data[];
} cli_block;

void cli_arena_finish(cli_arena *arena) {
  while (arena->blocks != NULL) {
    cli_block *next = arena->blocks->next;
    free(arena->blocks);
    arena->blocks = next;
  }
}

void *cli_arena_allocate(cli_arena *arena, size_t size_bytes) {
  cli_block *block = size_bytes > SIZE_MAX - sizeof *block ? NULL : malloc(sizeof *block + size_bytes);
  if (block == NULL) return NULL;
  block->next = arena->blocks;
  arena->blocks = block;
  return block->data;
}

void *cli_arena_allocate_zero(cli_arena *arena, size_t count, size_t element_bytes) {
  if (element_bytes > 0 && count > SIZE_MAX / element_bytes) return NULL;
  void *data = cli_arena_allocate(arena, count * element_bytes);
  return data == NULL ? NULL : memset(data, 0, count * element_bytes);
}

void *cli_arena_copy(cli_arena *arena, const void *data, size_t size_bytes) {
  void *copy = cli_arena_allocate(arena, size_bytes);
  if (copy != NULL && size_bytes > 0) memcpy(copy, data, size_bytes);
  return copy;
}

char *cli_arena_string(cli_arena *arena, const char *text, size_t size_bytes) {
  char *copy = size_bytes == SIZE_MAX ? NULL : cli_arena_allocate(arena, size_bytes + 1);
  if (copy == NULL) return NULL;
  if (size_bytes > 0) memcpy(copy, text, size_bytes);
  copy[size_bytes] = '\0';
  return copy;
}

static char nothing[1] = "";

void cli_buffer_init(cli_buffer *buffer) {
  *buffer = (cli_buffer){.data = nothing};
}

void cli_buffer_finish(cli_buffer *buffer) {
  if (buffer->capacity > 0) free(buffer->data);
  cli_buffer_init(buffer);
}

static bool reserve(cli_buffer *buffer, size_t more) {
  if (buffer->failed) return false;
  const size_t needed = buffer->size_bytes + more + 1;
  if (needed <= buffer->capacity) return true;
  const size_t capacity = needed < 2 * buffer->capacity ? 2 * buffer->capacity : needed;
  char *data = realloc(buffer->capacity > 0 ? buffer->data : NULL, capacity);
  if (data == NULL) return false;
  buffer->data = data;
  buffer->capacity = capacity;
  return true;
}

void cli_buffer_append(cli_buffer *buffer, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int length = vsnprintf(NULL, 0, format, arguments);
  va_end(arguments);
  if (length < 0 || !reserve(buffer, (size_t)length)) {
    buffer->failed = true;
    return;
  }
  va_start(arguments, format);
  vsnprintf(buffer->data + buffer->size_bytes, (size_t)length + 1, format, arguments);
  va_end(arguments);
  buffer->size_bytes += (size_t)length;
}

/* ---- Files ---- */

static clv_status read_all(const char *path, int file, char **data, size_t *size_bytes, clv_error *error) {
  size_t capacity = 0;
  *size_bytes = 0;
  for (ssize_t got = 1; got != 0;) {
    if (*size_bytes == capacity) {
      char *larger = realloc(*data, capacity = 2 * capacity + 65536);
      if (larger == NULL) return cli_error_memory(error, capacity);
      *data = larger;
    }
    got = read(file, *data + *size_bytes, capacity - *size_bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return cli_error_set(error, CLV_IO_ERROR, "%s: cannot read: %s", path, strerror(errno));
    *size_bytes += (size_t)got;
  }
  return CLV_OK;
}

clv_status cli_file_read(const char *path, char **data, size_t *size_bytes, clv_error *error) {
  struct stat info;
  *data = NULL;
  const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0)
    return cli_error_set(error, errno == ENOENT ? CLV_NOT_FOUND : CLV_IO_ERROR, "%s: cannot open: %s", path, strerror(errno));
  clv_status status = CLV_OK;
  if (fstat(file, &info) != 0 || (!S_ISREG(info.st_mode) && !S_ISFIFO(info.st_mode)))
    status = cli_error_set(error, CLV_INVALID_ARGUMENT, "%s: not a regular file", path);
  else if (fcntl(file, F_SETFL, 0) != 0) /* from now on read() waits for data or the end */
    status = cli_error_set(error, CLV_IO_ERROR, "%s: cannot read: %s", path, strerror(errno));
  else
    status = read_all(path, file, data, size_bytes, error);
  close(file);
  if (status == CLV_OK) return status;
  free(*data);
  *data = NULL;
  return status;
}

char *cli_path_beside(const char *path, const char *name) {
  const char *slash = strrchr(path, '/');
  const size_t room = strlen(path) + strlen(name) + 3;
  char *joined = malloc(room);
  if (joined == NULL) return NULL;
  if (name[0] == '/')
    snprintf(joined, room, "%s", name);
  else if (slash == NULL)
    snprintf(joined, room, "./%s", name);
  else
    snprintf(joined, room, "%.*s/%s", (int)(slash - path), path, name);
  return joined;
}

/* ---- Time ---- */

uint64_t cli_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}
