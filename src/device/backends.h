/* The backends of a context: built in, added by the program, loaded as plugins. They are never removed before the context goes,
 * and stay where they are. */
#ifndef CLEAVE_DEVICE_BACKENDS_H
#define CLEAVE_DEVICE_BACKENDS_H

#include <pthread.h>
#include <stdatomic.h>

#include "cleave/context.h"

enum { CLV__MAX_BACKENDS = 64 };

/* The file that a backend came from. */
typedef struct clv__plugin {
  void *handle; /* NULL: none, the backend is part of the program */
  char *path;
  uint64_t device, inode; /* the same file by any name */
} clv__plugin;

typedef struct clv__loaded {
  clv_backend table; /* a copy: slots that the backend's version does not have are NULL */
  clv__plugin plugin;
} clv__loaded;

typedef struct clv__backends {
  pthread_mutex_t lock; /* of adding; recursive, for a query that adds another */
  atomic_uint count;    /* items below it are complete and do not change */
  clv__loaded items[CLV__MAX_BACKENDS];
} clv__backends;

void clv__backends_init(clv__backends *backends);
/* Closes the plugins, the last first. */
void clv__backends_finish(clv__backends *backends, const clv_allocator *allocator);

clv__backends *clv__context_backends(clv_context *context);
clv_status clv__backends_add_built_in(clv_context *context, clv_error *error);

/* Asks `query` for its table, checks it, and adds it as `name` (NULL: whatever it is called). On success the plugin's handle and
 * path are the context's; `plugin` may be NULL. */
clv_status clv__backends_add(clv_context *context, clv_backend_query_fn query, void *user_data, const char *name,
                             const clv__plugin *plugin, const clv_backend **backend, clv_error *error);

/* The backend that a device's name means: the name itself, what stands before its colon, or before the digits at its end ("gpu1",
 * "opencl:0"); "npu" and "gpu" where no backend is called so. NULL: none. `rest` (may be NULL) is what is behind that. */
const clv_backend *clv__backends_find(const clv__backends *backends, const char *device_name, const char **rest);

/* ---- Plugins (plugin.c) ---- */

/* Loads `cleave_<backend>.so`, for the backend that `device_name` may mean, from the first folder of plugins that has it.
 * CLV_NOT_FOUND, with an empty message, where none has. */
clv_status clv__plugin_find(clv_context *context, const char *device_name, clv_error *error);

/* Loads all plugins of those folders that are not loaded; `left_out` gets those that cannot be, and why. */
typedef void (*clv__left_out_fn)(void *cookie, const char *name, const char *reason);
clv_status clv__plugin_load_all(clv_context *context, clv__left_out_fn left_out, void *cookie, clv_error *error);

#endif
