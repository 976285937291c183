/* A context holds the allocator, the log and the backends of a program. Every other object is created from a context. */
#ifndef CLEAVE_CONTEXT_H
#define CLEAVE_CONTEXT_H

#include "info.h"
#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clv_context clv_context;

/* When to capture launches. A captured sequence can be issued again as one launch. */
typedef enum clv_capture_policy {
  CLV_CAPTURE_UNSET = 0, /* CLEAVE_GRAPH in the environment (off, on, auto); if that is not set, auto */
  CLV_CAPTURE_OFF = 1,   /* never capture */
  CLV_CAPTURE_ON = 2,    /* capture on the first run with given input shapes */
  CLV_CAPTURE_AUTO = 3   /* capture on the second run with the same input shapes */
} clv_capture_policy;

typedef enum clv_switch { CLV_SWITCH_UNSET = 0, CLV_SWITCH_OFF = 1, CLV_SWITCH_ON = 2 } clv_switch;

typedef struct clv_context_options {
  uint32_t struct_size;
  const clv_allocator *allocator;                            /* NULL: malloc and free. Must outlive the context */
  void (*log)(void *user_data, int level, const char *text); /* level 0 error … 3 debug; called from any thread. NULL: no log */
  void *log_user_data;
  /* A field left unset is read from the environment once, when the context is created. */
  clv_capture_policy capture;
  int32_t capture_cache_entries; /* captures kept per device; 0: capture nothing; negative: CLEAVE_GRAPH_CACHE, or 12 if that is
                                    not set */
  uint64_t capture_cache_bytes;  /* limit on the memory of captures per device; 0: 256 MiB */
  clv_switch capture_prefill;  /* also capture the prefill of a model with a cache or a causal mask; unset: CLEAVE_PREFILL_GRAPH,
                                  or off if that is not set */
  const char *cache_directory; /* where executables are cached; NULL: CLEAVE_CACHE_DIR, else "cleave" in the user's cache
                                  directory; "": no cache */
  uint64_t cache_bytes;        /* limit of the cache directory; 0: 1 GiB */
  /* Folders to search for plugins: absolute paths, separated by colons. "": none. NULL: the folders of CLEAVE_PLUGIN_PATH, then
   * this installation's <libdir>/cleave/plugins. */
  const char *plugin_path;
  /* Planning computes values that follow from constants. The limit on their memory is this number, plus four bytes for each
   * byte of the graph's weights; 0: 64 MiB instead of this number. A node whose results would exceed the limit is not computed
   * while planning: it runs on a device, in every run. A plan file is read with the limit that the plan was made with. */
  uint64_t fold_bytes;
} clv_context_options;
#define CLV_CONTEXT_OPTIONS_INIT \
  { sizeof(clv_context_options), NULL, NULL, NULL, CLV_CAPTURE_UNSET, -1, 0, CLV_SWITCH_UNSET, NULL, 0, NULL, 0 }

/* Creates a context with the built-in backends. `options` may be NULL.
 * Errors: CLV_OUT_OF_MEMORY; CLV_INVALID_ARGUMENT, also for an environment variable that cannot be parsed.
 * Any thread may call it. */
CLV_API CLV_MUST_USE clv_status clv_context_create(const clv_context_options *options, clv_context **context, clv_error *error);

/* Destroy everything created from the context first. Accepts NULL. */
CLV_API void clv_context_destroy(clv_context *context);

/* Adds a backend that the program itself provides, through the same ABI as plugins. Calls `query` once, before it returns. The
 * table that `query` returns must outlive the context.
 * Errors: CLV_NOT_SUPPORTED for another ABI version; CLV_INVALID_ARGUMENT if the table lacks a required slot, if another backend
 * has the same name, or if the name is not valid in a device list; any error of `query`. Any thread may call it. */
CLV_API CLV_MUST_USE clv_status clv_context_add_backend(clv_context *context, clv_backend_query_fn query, void *user_data,
                                                        clv_error *error);

/* Loads a plugin: a shared library that exports `clv_backend_query` (plugin/backend.h). Its devices can then be opened by the
 * backend's name. `path` must contain a '/', so that plugins are never picked up from the current directory by accident. A
 * world-writable file is rejected. A plugin stays loaded until the context is destroyed. Loading it again does nothing and
 * succeeds.
 *
 * Plugins need not be loaded by hand. If clv_devices_open() meets a name that no backend has, it looks for `cleave_<backend>.so`
 * in the folders of plugin_path. For "auto" it loads all plugins there. World-writable folders are not searched.
 *
 * Errors: CLV_NOT_FOUND; CLV_INVALID_ARGUMENT as for clv_context_add_backend(); CLV_NOT_SUPPORTED if the file is not a plugin,
 * has another ABI version, or depends on a library that cannot be loaded; any error of its query function. The message begins
 * with the path. Any thread may call it.
 */
CLV_API CLV_MUST_USE clv_status clv_context_load_plugin(clv_context *context, const char *path, clv_error *error);

/* The library's version, "0.1.0". Static storage. */
CLV_API const char *clv_version(void);

#ifdef __cplusplus
}
#endif
#endif
