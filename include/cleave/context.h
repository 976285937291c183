/* A context: the allocator, the log, and the backends that a program uses. Everything else is made from one. */
#ifndef CLEAVE_CONTEXT_H
#define CLEAVE_CONTEXT_H

#include "plugin/backend.h"
#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clv_context clv_context;

typedef struct clv_context_options {
  uint32_t struct_size;
  const clv_allocator *allocator;                            /* NULL: malloc and free. Must outlive the context */
  void (*log)(void *user_data, int level, const char *text); /* 0 error … 3 debug; NULL: nothing is logged. From any thread */
  void *log_user_data;
} clv_context_options;
#define CLV_CONTEXT_OPTIONS_INIT \
  { sizeof(clv_context_options), NULL, NULL, NULL }

/* Makes a context with the built-in backends (cpu, vnpu). `options` may be NULL.
 * Errors: CLV_OUT_OF_MEMORY, CLV_INVALID_ARGUMENT. Any thread. */
CLV_API CLV_MUST_USE clv_status clv_context_create(const clv_context_options *options, clv_context **context, clv_error *error);

/* Everything made from the context must have been destroyed before. Accepts NULL. */
CLV_API void clv_context_destroy(clv_context *context);

/* Adds a backend of the program's own, through the same ABI as plugins. `query` is called once, here; its table must outlive the
 * context. Errors: CLV_NOT_SUPPORTED for another ABI version, CLV_INVALID_ARGUMENT for a table that lacks a slot or repeats a
 * name. */
CLV_API CLV_MUST_USE clv_status clv_context_add_backend(clv_context *context, clv_backend_query_fn query, void *user_data,
                                                        clv_error *error);

/* The library's version, "0.1.0". Static storage. */
CLV_API const char *clv_version(void);

#ifdef __cplusplus
}
#endif
#endif
