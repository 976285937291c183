/* A context: the allocator, the log, and the backends that a program uses. Everything else is made from one. */
#ifndef CLEAVE_CONTEXT_H
#define CLEAVE_CONTEXT_H

#include "plugin/backend.h"
#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clv_context clv_context;

/* When launches are captured, to be issued again as one. */
typedef enum clv_graph_mode {
  CLV_GRAPH_UNSET = 0, /* as the environment says (CLEAVE_GRAPH: off, on, auto), else auto */
  CLV_GRAPH_OFF = 1,   /* never */
  CLV_GRAPH_ON = 2,    /* on the first run of a shape */
  CLV_GRAPH_AUTO = 3   /* on the second */
} clv_graph_mode;

typedef enum clv_switch { CLV_SWITCH_UNSET = 0, CLV_SWITCH_OFF = 1, CLV_SWITCH_ON = 2 } clv_switch;

typedef struct clv_context_options {
  uint32_t struct_size;
  const clv_allocator *allocator;                            /* NULL: malloc and free. Must outlive the context */
  void (*log)(void *user_data, int level, const char *text); /* 0 error … 3 debug; NULL: nothing is logged. From any thread */
  void *log_user_data;
  /* What is not said here is read from the environment, once, now. */
  clv_graph_mode graph;
  int32_t graph_cache_entries; /* captured graphs kept a device; negative: CLEAVE_GRAPH_CACHE, else 12; 0: none is made */
  uint64_t graph_cache_bytes;  /* what they may hold a device; 0: 256 MiB */
  clv_switch prefill_graph;    /* capture attention over several queries too; unset: CLEAVE_PREFILL_GRAPH, else off */
  const char
      *cache_directory; /* of executables; NULL: CLEAVE_CACHE_DIR, else "cleave" under the user's cache directory; "": none */
  uint64_t cache_bytes; /* its limit; 0: 1 GiB */
} clv_context_options;
#define CLV_CONTEXT_OPTIONS_INIT \
  { sizeof(clv_context_options), NULL, NULL, NULL, CLV_GRAPH_UNSET, -1, 0, CLV_SWITCH_UNSET, NULL, 0 }

/* Makes a context with the built-in backends (cpu, vnpu, opencl). `options` may be NULL.
 * Errors: CLV_OUT_OF_MEMORY, CLV_INVALID_ARGUMENT (text in the environment that cannot be read is one). Any thread. */
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
