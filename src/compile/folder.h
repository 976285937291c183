/* Folders of what was compiled ahead of time (cleave/compiled.h): how they are read, how executables are found in them, and the
 * parts of writing one. Executables are files as the cache has them, found by key like there, but named by a list, never changed
 * and never removed: the folder may be anybody's and read-only. */
#ifndef CLEAVE_COMPILE_FOLDER_H
#define CLEAVE_COMPILE_FOLDER_H

#include "cleave/compiled.h"
#include "compile/compile.h"

#define CLV__FOLDER_LIST "compiled.json"
#define CLV__FOLDER_PLAN "plan.json"
#define CLV__FOLDER_MODEL "model.onnx"
#define CLV__FOLDER_WEIGHTS "weights.data"
#define CLV__FOLDER_PROFILE "profile.json"
enum { CLV__FOLDER_VERSION = 1 };

/* An executable that the list names. */
typedef struct clv__folder_executable {
  const char *file; /* its name in the folder */
  const char *path;
  uint64_t size_bytes;
  uint32_t partition;
  bool has_key;
  clv__key key;
  char problem[224]; /* why it has none: it is not there, damaged; "" otherwise */
} clv__folder_executable;

typedef struct clv__folder_partition {
  const char *device, *model; /* its ONNX file */
  uint64_t model_bytes;
  uint32_t node_count;
  const char *reason; /* why it has no executable; NULL: it has */
} clv__folder_partition;

struct clv_compiled {
  clv_context *context;
  clv__arena arena;
  const char *directory, *model_path, *plan_path, *source;
  uint64_t other_bytes; /* of model, weights, plan and list */
  clv_devices_options devices;
  clv_session_options session;
  uint32_t partition_count, executable_count;
  clv__folder_partition *partitions;
  clv__folder_executable *executables; /* by partition */
  uint32_t key_count;
  const clv__folder_executable **by_key; /* those that have one, in order */
};

/* Whether `path` is a directory that has a list (which may be damaged). */
bool clv__folder_recognise(const char *path);

/* The executable of a key, its file mapped and checked; `found->data` is NULL and the status CLV_NOT_FOUND where there is none,
 * with what the nearest one differs in. Any other error is what is wrong with the one that there is. */
typedef struct clv__folder_found {
  const char *file;
  clv__file_map map;
  clv__cache_info info;
  const void *payload;
  size_t payload_bytes;
} clv__folder_found;
clv_status clv__folder_find(const clv_compiled *compiled, const clv__key *key, clv__folder_found *found, clv_error *error);
void clv__folder_found_finish(const clv_compiled *compiled, clv__folder_found *found);

/* Whether a folder can be written there: asked before the work. */
clv_status clv__folder_check(const clv_allocator *allocator, const char *directory, clv_error *error);

/* ---- Writing: into a folder beside the one that is asked for (folder_stage.c), which then takes its place; the files of it
 * (folder_write.c). ---- */

typedef struct clv__folder_stage {
  const clv_allocator *allocator;
  char *target;  /* as it will be found: a link is followed */
  char *folder;  /* beside it */
  int lock;      /* -1: there is no folder */
  bool replaces; /* there is one to be replaced */
} clv__folder_stage;

/* Checks `directory`, removes what killed processes left beside it, and makes the folder. Whatever it comes to,
 * clv__folder_stage_end() may be called. */
clv_status clv__folder_stage_begin(const clv_allocator *allocator, const char *directory, clv__folder_stage *stage,
                                   clv_error *error);
clv_status clv__folder_stage_commit(clv__folder_stage *stage, clv_error *error);
/* Removes what was not committed. */
void clv__folder_stage_end(clv__folder_stage *stage);

typedef struct clv__folder_writer clv__folder_writer;

clv_status clv__folder_begin(const clv_plan *plan, const char *directory, clv__folder_writer **writer, clv_error *error);
/* Writes the model, every partition of the plan, and the weights of all of them. */
clv_status clv__folder_write_models(clv__folder_writer *writer, clv_error *error);
/* Writes the plan as one of `graph`, which was loaded from the model. */
clv_status clv__folder_write_plan(clv__folder_writer *writer, const clv_graph *graph, clv_error *error);
/* The path of a file of the folder that is being written, until the writer does something else. */
const char *clv__folder_path(clv__folder_writer *writer, const char *name, clv_error *error);
/* Writes what is saved of one more executable of a partition, or why nothing is. The devices are locked. */
clv_status clv__folder_add_executable(clv__folder_writer *writer, uint32_t partition, const clv__compiled *compiled,
                                      clv_error *error);
/* Writes the list, and puts the folder in its place. */
clv_status clv__folder_commit(clv__folder_writer *writer, const clv_compiled_options *options, clv_error *error);
/* Removes what was not committed; accepts NULL. */
void clv__folder_end(clv__folder_writer *writer);

#endif
