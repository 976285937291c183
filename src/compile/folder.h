/* Folders of executables that were compiled ahead of time (cleave/compiled.h): reading a folder, finding executables in it, and
 * the parts of writing one. Executables are files in the cache's format and are found by key, as in the cache. Unlike a cache,
 * the folder has a list of them, and they are never changed or removed, because the folder may be read-only or belong to another
 * user. */
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

/* An executable in the list. */
typedef struct clv__folder_executable {
  const char *file; /* its name in the folder */
  const char *path;
  uint64_t size_bytes;
  uint32_t partition;
  bool has_key;
  clv__key key;
  char problem[224]; /* why it has no key: the file is missing or damaged; "" otherwise */
} clv__folder_executable;

typedef struct clv__folder_partition {
  const char *device, *model; /* `model`: the name of its ONNX file */
  uint64_t model_bytes;
  uint32_t node_count;
  const char *reason; /* why it has no executable; NULL: it has one */
} clv__folder_partition;

struct clv_compiled {
  clv_context *context;
  clv__arena arena;
  const char *directory, *model_path, *plan_path, *source;
  uint64_t other_bytes; /* total size of the model, the weights, the plan and the list */
  clv_devices_options devices;
  clv_session_options session;
  uint32_t partition_count, executable_count;
  clv__folder_partition *partitions;
  clv__folder_executable *executables; /* sorted by partition */
  uint32_t key_count;
  const clv__folder_executable **by_key; /* the executables that have a key, sorted by it */
};

/* Returns whether `path` is a directory that has a list (which may be damaged). */
bool clv__folder_recognise(const char *path);

/* The result of clv__folder_find(): the executable with a given key, its file mapped and checked. If the folder has none,
 * `payload` is NULL, the status is CLV_NOT_FOUND, and the error explains how the most similar executable differs. Any other
 * error describes what is wrong with a file. */
typedef struct clv__folder_found {
  const char *file;
  clv__file_map map;
  clv__cache_info info;
  const void *payload;
  size_t payload_bytes;
} clv__folder_found;
clv_status clv__folder_find(const clv_compiled *compiled, const clv__key *key, clv__folder_found *found, clv_error *error);
void clv__folder_found_finish(const clv_compiled *compiled, clv__folder_found *found);

/* Checks, before the work starts, that a folder can be written at `directory`. */
clv_status clv__folder_check(const clv_allocator *allocator, const char *directory, clv_error *error);

/* ---- Writing: files go into a new folder beside the target (new_folder.c), which then replaces the target. folder_write.c
 * writes the files. ---- */

typedef struct clv__new_folder {
  const clv_allocator *allocator;
  char *target;  /* the path with links resolved */
  char *folder;  /* the new folder, beside the target */
  int lock;      /* descriptor of the new folder, with an exclusive lock; -1: none */
  bool replaces; /* the target is a folder with files, which the commit replaces */
} clv__new_folder;

/* Checks `directory`, removes the leftovers of killed processes beside it, and creates the folder. clv__new_folder_end() may be
 * called even if this fails. */
clv_status clv__new_folder_begin(const clv_allocator *allocator, const char *directory, clv__new_folder *made, clv_error *error);
clv_status clv__new_folder_commit(clv__new_folder *made, clv_error *error);
/* Removes everything that was not committed. */
void clv__new_folder_end(clv__new_folder *made);

typedef struct clv__folder_writer clv__folder_writer;

clv_status clv__folder_begin(const clv_plan *plan, const char *directory, clv__folder_writer **writer, clv_error *error);
/* Writes the model, every partition of the plan, and the weights of all of them. */
clv_status clv__folder_write_models(clv__folder_writer *writer, clv_error *error);
/* Writes the plan for `graph`, which was loaded from the model that clv__folder_write_models() wrote. */
clv_status clv__folder_write_plan(clv__folder_writer *writer, const clv_graph *graph, clv_error *error);
/* Returns the path of a file in the folder being written. It is valid until the next call on the writer. */
const char *clv__folder_path(clv__folder_writer *writer, const char *name, clv_error *error);
/* Writes the saved form of one more executable of a partition, or the reason why there is none. The caller holds the devices'
 * lock. */
clv_status clv__folder_add_executable(clv__folder_writer *writer, uint32_t partition, const clv__compiled *compiled,
                                      clv_error *error);
/* Writes the list, and moves the folder to its target. */
clv_status clv__folder_commit(clv__folder_writer *writer, const clv_compiled_options *options, clv_error *error);
/* Removes everything that was not committed; accepts NULL. */
void clv__folder_end(clv__folder_writer *writer);

#endif
