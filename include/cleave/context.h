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
  /* Folders that plugins are looked for in, separated by colons, each beginning with '/'; "": none. NULL: those of
   * CLEAVE_PLUGIN_PATH, then the one of this installation, <libdir>/cleave/plugins. */
  const char *plugin_path;
} clv_context_options;
#define CLV_CONTEXT_OPTIONS_INIT \
  { sizeof(clv_context_options), NULL, NULL, NULL, CLV_GRAPH_UNSET, -1, 0, CLV_SWITCH_UNSET, NULL, 0, NULL }

/* Makes a context with the built-in backends. `options` may be NULL.
 * Errors: CLV_OUT_OF_MEMORY, CLV_INVALID_ARGUMENT (text in the environment that cannot be read is one). Any thread. */
CLV_API CLV_MUST_USE clv_status clv_context_create(const clv_context_options *options, clv_context **context, clv_error *error);

/* Everything made from the context must have been destroyed before. Accepts NULL. */
CLV_API void clv_context_destroy(clv_context *context);

/* Adds a backend of the program's own, through the same ABI as plugins. `query` is called once, here; its table must outlive the
 * context. Errors: CLV_NOT_SUPPORTED for another ABI version, CLV_INVALID_ARGUMENT for a table that lacks a slot, and for a name
 * that another has, or that cannot be told from a list of devices; what `query` answers. Any thread. */
CLV_API CLV_MUST_USE clv_status clv_context_add_backend(clv_context *context, clv_backend_query_fn query, void *user_data,
                                                        clv_error *error);

/* Loads a plugin, a shared library with `clv_backend_query` (plugin/backend.h), whose backend devices are then opened by its
 * name. `path` has a '/': a name alone is refused, since the current directory is no place to find plugins in. So is a file that
 * anyone may write to. A plugin stays until the context is destroyed; loading it again is no error and does nothing.
 *
 * Plugins need not be loaded by hand: clv_devices_open() looks for `cleave_<backend>.so` in the folders of plugin_path when it
 * meets a name that no backend has, and for all plugins there when it is told "auto". Folders that anyone may write to are not
 * searched.
 *
 * Errors: CLV_NOT_FOUND, CLV_INVALID_ARGUMENT as above, CLV_NOT_SUPPORTED for what is no plugin, is of another ABI version, or
 * does not find its libraries; what its query answers. The message begins with the path. Any thread. */
CLV_API CLV_MUST_USE clv_status clv_context_load_plugin(clv_context *context, const char *path, clv_error *error);

/* The library's version, "0.1.0". Static storage. */
CLV_API const char *clv_version(void);

#ifdef __cplusplus
}
#endif
#endif
