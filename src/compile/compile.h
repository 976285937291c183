/* Gets an executable for each partition: shared with another session, loaded from disk, or compiled. Uploads each weight once per
 * device. */
#ifndef CLEAVE_COMPILE_COMPILE_H
#define CLEAVE_COMPILE_COMPILE_H

#include "cleave/compiled.h"
#include "compile/share.h"
#include "plan/plan.h"

/* The source of an executable. */
typedef enum clv__source {
  CLV__SOURCE_MEMORY,   /* another session of these devices uses it */
  CLV__SOURCE_FOLDER,   /* compiled ahead of time */
  CLV__SOURCE_DISK,     /* found in the cache's directory */
  CLV__SOURCE_COMPILED, /* compiled, and now in the cache */
  CLV__SOURCE_NOT_KEPT, /* compiled, but not cached: the next session compiles it again */
  CLV__SOURCE_HOSTED    /* there is none: the host renames the partition's views */
} clv__source;
const char *clv__source_word(clv__source source); /* "memory", "folder", "disk", "compiled", "not kept", "hosted" */

typedef struct clv__origin {
  clv__source source;
  char reason[224]; /* why it was compiled: how cached executables differ, what is wrong with a file, or why there is no cache; ""
                       if it was found */
  bool is_missed;   /* the folder lacks it or its file is unusable; `reason` then explains this, even if it was found elsewhere */
  double ms;        /* milliseconds that it took to get it, without uploading weights */
  bool is_to_be_kept; /* compiled, and still to be written to the cache by clv__executable_keep() */
} clv__origin;

typedef struct clv__compiled {
  clv_executable *executable; /* shared: only clv__executables_drop() releases it */
  clv_executable_info info;
  clv_weight **weights; /* info.weight_count of them, also shared */
  clv__origin origin;
  const clv_graph_view *view; /* the view that it was compiled for */
  clv__executable_use *use;
  clv__weight_use *weight_uses; /* of `weights` */
} clv__compiled;

/* Totals over clv__executables_init() and every clv__executables_compile(). */
typedef struct clv__executables_counters {
  uint32_t from_memory, from_folder, from_disk, compiled, not_kept; /* executables by source */
  double executables_ms, weights_ms;
  uint64_t uploaded_bytes, shared_bytes; /* bytes of weights copied to devices, and of weights that were already there */
} clv__executables_counters;

typedef struct clv__executables {
  const clv_plan *plan;
  clv__share *share;
  const clv_compiled *folder; /* NULL: nothing was compiled ahead of time */
  clv__arena arena;
  clv_compile_options options;
  clv__compiled *partitions;
  clv__executables_counters counters;
  uint64_t uploaded_bytes; /* equals counters.uploaded_bytes */
  /* The device whose call made clv__executables_init() or clv__executables_compile() fail, or CLV__NO_ID.
   * clv__executables_finish() does not reset them. */
  uint32_t failed_device, failed_partition; /* failed_partition: CLV__NO_ID unless compiling it failed */
} clv__executables;

/* Gets an executable for every partition of the plan, and uploads their weights. `executables` is the caller's storage. The
 * plan, its graph and `folder` (may be NULL) must outlive it. This and the other clv__executables_ functions take the devices'
 * lock. */
clv_status clv__executables_init(const clv_plan *plan, const clv_compile_options *options, const clv_compiled *folder,
                                 clv__executables *executables, clv_error *error);
/* Gets an executable for one partition again, for the shapes of `view`. `compiled` is the caller's storage. Its arrays live in
 * `arena`. The arena and the constants of `view` must live until clv__executables_drop(). */
clv_status clv__executables_compile(clv__executables *executables, uint32_t partition, const clv_graph_view *view,
                                    clv__arena *arena, clv__compiled *compiled, clv_error *error);
/* Releases the result of clv__executables_compile() and clears it; accepts one that is all zero. */
void clv__executables_drop(clv__executables *executables, uint32_t partition, clv__compiled *compiled);
void clv__executables_finish(clv__executables *executables);

/* Parts of clv__executables_compile() (executable.c). The caller holds the devices' lock. Gets an executable of the partition
 * for `view` from the first source that has one. `by_device` says whether the device itself caused a failure. */
clv_status clv__executable_obtain(const clv__executables *executables, uint32_t partition, const clv_graph_view *view,
                                  clv__arena *arena, clv__executable_use **use, clv__origin *origin, bool *by_device,
                                  clv_error *error);
/* Fills the description for a cache file. `info->weights` belongs to the executable. */
void clv__executable_describe(const clv_devices *devices, const clv_graph_view *view, const clv__shared_executable *executable,
                              clv__cache_info *info);
/* Writes a compiled executable to the cache. If that fails, the origin has the reason. */
void clv__executable_keep(clv_devices *devices, const clv_graph_view *view, const clv__shared_executable *executable,
                          clv__origin *origin);
/* Removes the executable from the cache. */
void clv__executable_forget(clv_devices *devices, const clv__shared_executable *executable);

#endif
