/* Partitions to executables: found among those that other sessions use, or on disk, or compiled; weights uploaded once a device.
 */
#ifndef CLEAVE_COMPILE_COMPILE_H
#define CLEAVE_COMPILE_COMPILE_H

#include "cleave/compiled.h"
#include "compile/share.h"
#include "plan/plan.h"

/* Where an executable came from. */
typedef enum clv__source {
  CLV__SOURCE_MEMORY,   /* another session of these devices has it */
  CLV__SOURCE_FOLDER,   /* compiled ahead of time */
  CLV__SOURCE_DISK,     /* the cache's directory had it */
  CLV__SOURCE_COMPILED, /* and is in the cache now */
  CLV__SOURCE_NOT_KEPT  /* compiled, and it will be again */
} clv__source;
const char *clv__source_word(clv__source source); /* "memory", "folder", "disk", "compiled", "not kept" */

typedef struct clv__origin {
  clv__source source;
  char reason[224];   /* of compiling: what the cache lacks, what is wrong with it, why it is not used; "" where it was found */
  bool is_missed;     /* it was not in the folder, or of no use: `reason` is why, even where it was found elsewhere */
  double ms;          /* that getting it took; uploading weights is apart */
  bool is_to_be_kept; /* compiled, and clv__executable_keep() is still to come */
} clv__origin;

typedef struct clv__compiled {
  clv_executable *executable; /* shared: only clv__program_drop() gives it back */
  clv_executable_info info;
  clv_weight **weights; /* info.weight_count of them, shared as well */
  clv__origin origin;
  const clv_graph_view *view; /* what it is of */
  clv__executable_use *use;
  clv__weight_use *weight_uses; /* of `weights` */
} clv__compiled;

/* What clv__program_init() and every clv__program_compile() came to, added up. */
typedef struct clv__program_counters {
  uint32_t from_memory, from_folder, from_disk, compiled, not_kept; /* executables, by source; `compiled` are those kept */
  double executables_ms, weights_ms;
  uint64_t uploaded_bytes, shared_bytes; /* of weights: brought to a device; found there */
} clv__program_counters;

typedef struct clv__program {
  const clv_plan *plan;
  clv__share *share;
  const clv_compiled *folder; /* NULL: nothing was compiled ahead of time */
  clv__arena arena;
  clv_compile_options options;
  clv__compiled *partitions;
  clv__program_counters counters;
  uint64_t uploaded_bytes; /* counters.uploaded_bytes */
  uint32_t failed_device;  /* whose call made clv__program_init() or _compile() fail, or CLV__NO_ID; kept by _finish() */
} clv__program;

/* Gets an executable for every partition of the plan, and uploads what they ask for. `program` is the caller's storage; the plan
 * and its graph outlive it, and so does `folder`, which may be NULL. All functions here take the devices' lock. */
clv_status clv__program_init(const clv_plan *plan, const clv_compile_options *options, const clv_compiled *folder,
                             clv__program *program, clv_error *error);
/* One partition again, as `view` sees it (other shapes); `compiled` is the caller's. What it lists is in `arena`, which, like the
 * constants that `view` sees, lives until it is dropped. */
clv_status clv__program_compile(clv__program *program, uint32_t partition, const clv_graph_view *view, clv__arena *arena,
                                clv__compiled *compiled, clv_error *error);
/* Gives back what clv__program_compile() made for the caller; accepts one that is all zero, and clears it. */
void clv__program_drop(clv__program *program, uint32_t partition, clv__compiled *compiled);
void clv__program_finish(clv__program *program);

/* Parts of clv__program_compile() (executable.c). An executable for `view` on `device`, from wherever it is to be had.
 * `by_device` tells whether a failure is the device's own. */
clv_status clv__executable_obtain(clv__share *share, const clv_compiled *folder, clv_devices *devices, uint32_t device,
                                  const clv_graph_view *view, const clv_compile_options *options, clv__arena *arena,
                                  clv__executable_use **use, clv__origin *origin, bool *by_device, clv_error *error);
/* What a file of it says of itself; the text and the weights are the executable's. */
void clv__executable_describe(const clv_devices *devices, const clv_graph_view *view, const clv__shared_executable *executable,
                              clv__cache_info *info);
/* Writes what was compiled to the cache; where that fails the origin says so. */
void clv__executable_keep(clv_devices *devices, const clv_graph_view *view, const clv__shared_executable *executable,
                          clv__origin *origin);
/* Takes it out of the cache. */
void clv__executable_forget(clv_devices *devices, const clv__shared_executable *executable);

#endif
