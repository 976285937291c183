/* The backends of a context: built in, added by the program, or loaded as plugins. They never move, and they stay until the
 * context is destroyed. */
#ifndef CLEAVE_DEVICE_BACKENDS_H
#define CLEAVE_DEVICE_BACKENDS_H

#include <pthread.h>
#include <stdatomic.h>

#include "cleave/context.h"
#include "cleave/plugin/backend.h"

enum { CLV__MAX_BACKENDS = 64 };

/* Whether a backend's group of optional slots contains `slot`. A backend built for an earlier version may have a shorter
 * group. */
#define CLV__GROUP_HAS(group, slot) ((group)->struct_size >= (size_t)((const char *)(&(group)->slot + 1) - (const char *)(group)))

/* The shared library that a backend was loaded from. */
typedef struct clv__plugin {
  void *handle; /* NULL: no file, the backend is part of the program */
  char *path;
  uint64_t device, inode; /* identify the file under any name */
} clv__plugin;

typedef struct clv__loaded {
  clv_backend table; /* a copy; slots missing from the backend's version are NULL */
  clv__plugin plugin;
} clv__loaded;

typedef struct clv__backends {
  pthread_mutex_t lock; /* held while adding; recursive, because a query may add another backend */
  atomic_uint count;    /* items[0] to items[count - 1] are complete and do not change */
  clv__loaded items[CLV__MAX_BACKENDS];
} clv__backends;

void clv__backends_init(clv__backends *backends);
/* Closes the plugins in reverse order. */
void clv__backends_finish(clv__backends *backends, const clv_allocator *allocator);

clv__backends *clv__context_backends(clv_context *context);
clv_status clv__backends_add_built_in(clv_context *context, clv_error *error);

/* Calls `query` for the backend's table, checks it, and adds it as `name` (NULL: any name). On success the context takes
 * ownership of the plugin's handle and path. `plugin` may be NULL. */
clv_status clv__backends_add(clv_context *context, clv_backend_query_fn query, void *user_data, const char *name,
                             const clv__plugin *plugin, const clv_backend **backend, clv_error *error);

/* Finds the backend of a device name: the name itself, the part before its colon, or the part before its trailing digits
 * ("gpu1", "opencl:0"). "npu" means vnpu and "gpu" means opencl if no backend has that name. NULL: none. `rest` (may be NULL)
 * is the remainder of the name. */
const clv_backend *clv__backends_find(const clv__backends *backends, const char *device_name, const char **rest);

/* ---- Plugins (plugin.c) ---- */

/* Loads `cleave_<backend>.so` for a backend that `device_name` may mean, from the first plugin folder that has it.
 * CLV_NOT_FOUND with an empty message if no folder has it. */
clv_status clv__plugin_find(clv_context *context, const char *device_name, clv_error *error);

/* Loads all plugins in the plugin folders that are not loaded yet. Reports each plugin that fails to load, with the reason, to
 * `left_out`. */
typedef void (*clv__left_out_fn)(void *cookie, const char *name, const char *reason);
clv_status clv__plugin_load_all(clv_context *context, clv__left_out_fn left_out, void *cookie, clv_error *error);

#endif
