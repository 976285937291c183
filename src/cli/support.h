/* What the command needs besides the library: texts of errors, memory that is freed together, growing texts, whole files, the
 * clock. */
#ifndef CLEAVE_CLI_SUPPORT_H
#define CLEAVE_CLI_SUPPORT_H

#include "cleave/types.h"

/* ---- Errors ---- */

/* Writes `format` into `error` (may be NULL) and returns `status`. Typical use: `return cli_error_set(…)`. */
clv_status cli_error_set(clv_error *error, clv_status status, const char *format, ...) CLV_PRINTF(3, 4);
/* Puts context in front of the text of `error`: "prefix: old". Sets the status of `error` and returns it. */
clv_status cli_error_prefix(clv_error *error, clv_status status, const char *format, ...) CLV_PRINTF(3, 4);
/* Reports a failed allocation. */
clv_status cli_error_memory(clv_error *error, size_t size_bytes);

/* Returns the status of `call` unless it is CLV_OK. For functions without cleanup. */
#define CLI_TRY(call)                                    \
  do {                                                   \
    clv_status cli_try_status = (call);                  \
    if (cli_try_status != CLV_OK) return cli_try_status; \
  } while (0)

/* Stores the status of `call` in `status` and goes to `cleanup:` unless it is CLV_OK. */
#define CLI_TRY_GOTO(call)              \
  do {                                  \
    status = (call);                    \
    if (status != CLV_OK) goto cleanup; \
  } while (0)

/* ---- Memory ---- */

/* Memory that is freed together. */
typedef struct cli_arena {
  struct cli_block *blocks;
} cli_arena;

void cli_arena_finish(cli_arena *arena); /* a zeroed arena is empty */
/* Return memory that is aligned for any type, or NULL if out of memory. Zero bytes give a valid pointer. */
void *cli_arena_allocate(cli_arena *arena, size_t size_bytes);
void *cli_arena_allocate_zero(cli_arena *arena, size_t count, size_t element_bytes); /* checks the product for overflow */
void *cli_arena_copy(cli_arena *arena, const void *data, size_t size_bytes);
char *cli_arena_string(cli_arena *arena, const char *text, size_t size_bytes); /* a terminated copy */

/* A growing, terminated text. After a failed append `failed` is true and further appends do nothing. */
typedef struct cli_buffer {
  char *data; /* never NULL after init */
  size_t size_bytes, capacity;
  bool failed;
} cli_buffer;

void cli_buffer_init(cli_buffer *buffer);
void cli_buffer_finish(cli_buffer *buffer);
void cli_buffer_append(cli_buffer *buffer, const char *format, ...) CLV_PRINTF(2, 3);

/* ---- Files ---- */

/* Reads a whole file, or what a pipe delivers, into memory that the caller frees with free(). The data of an empty file is not
 * NULL. Does not wait for another process to open a pipe: without a writer, a pipe is empty. */
clv_status cli_file_read(const char *path, char **data, size_t *size_bytes, clv_error *error);
/* Joins the folder of the file at `path` and `name`, in memory that the caller frees with free(). An absolute name stays as it
 * is. NULL if out of memory. */
char *cli_path_beside(const char *path, const char *name);

/* ---- Time ---- */

/* The time of the monotonic clock, in nanoseconds. */
uint64_t cli_now_ns(void);
static inline double cli_ms(uint64_t from_ns, uint64_t to_ns) {
  return (double)(to_ns - from_ns) / 1e6;
}

#endif
