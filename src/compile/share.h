/* Executables and weights that the sessions of one set of devices share. They are on a device already, and their uses are
 * counted.
 *
 * Two executables are the same if their keys without constants are equal, and their constants are the same memory or compare
 * equal. Two weights are the same if their bytes are. So no content is hashed, and it does not matter where constants come from.
 * Each use points to its user's own bytes, for later comparisons. They stay valid as long as the use lasts, and an executable or
 * weight exists only as long as it has a use. If the file behind the bytes was changed, the device still has the old ones, so
 * nothing is compared with such a use.
 *
 * The caller of every function holds the devices' lock. */
#ifndef CLEAVE_COMPILE_SHARE_H
#define CLEAVE_COMPILE_SHARE_H

#include "cache/cache.h"
#include "compile/key.h"

typedef struct clv__share clv__share; /* attached to the devices as CLV__ATTACHED_PROGRAMS */
typedef struct clv__shared_executable clv__shared_executable;
typedef struct clv__shared_weight clv__shared_weight;

/* Links an executable or a weight into a hash table. It must be the first member of their structs. */
typedef struct clv__share_link {
  struct clv__share_link *next;
  uint64_t hash;
} clv__share_link;

/* A session's use of an executable. It lives in the session's arena and never moves. */
typedef struct clv__executable_use {
  struct clv__executable_use *next, *previous;
  clv__shared_executable *of;
  const clv_graph *graph;
  const void **constants; /* the bytes of the view's constants, by value */
} clv__executable_use;

typedef struct clv__weight_use {
  struct clv__weight_use *next, *previous;
  clv__shared_weight *of;
  const clv_graph *graph;
  const void *data;
} clv__weight_use;

struct clv__shared_executable {
  clv__share_link link;
  uint32_t device;
  clv__key key;
  clv__executable_use *uses;
  clv_executable *executable;
  clv_executable_info info;
  uint32_t *weights; /* info.weight_count entries: for each weight, its value in the view */
};

struct clv__shared_weight {
  clv__share_link link;
  uint32_t device;
  clv_tensor type; /* without data */
  clv__weight_use *uses;
  clv_weight *weight;
};

/* Gets the share of the devices; creates it on the first call. */
clv_status clv__share_get(clv_devices *devices, clv__share **share, clv_error *error);

/* Begins a use of the executable with this key and view; NULL if there is none. The use is allocated in `arena`. The arena and
 * the constants of the view must outlive it. */
clv_status clv__share_find(clv__share *share, uint32_t device, const clv__key *key, const clv_graph_view *view, clv__arena *arena,
                           clv__executable_use **use, clv_error *error);
/* Adds an executable and begins its first use. Copies `weights`. On failure the caller still owns the executable. */
clv_status clv__share_add(clv__share *share, uint32_t device, const clv__key *key, const clv_graph_view *view, clv__arena *arena,
                          clv_executable *executable, const uint32_t *weights, clv__executable_use **use, clv_error *error);
/* Ends a use. The end of the last use destroys the executable. Accepts NULL. */
void clv__share_drop(clv__share *share, clv__executable_use *use);

/* Begins a use of a weight of `graph` with these bytes. `use` is the caller's memory. If the device has no such weight, uploads
 * it as `name`, and sets `uploaded`; bytes that are in a mapped file are then read from the file. The bytes must outlive the
 * use. If the call fails, `by_device` says whether the device is to blame. */
clv_status clv__share_weight(clv__share *share, uint32_t device, const clv_graph *graph, const char *name, const clv_tensor *data,
                             clv__weight_use *use, bool *uploaded, bool *by_device, clv_error *error);
/* Ends a use and clears it; accepts one that is all zero. */
void clv__share_drop_weight(clv__share *share, clv__weight_use *use);

#endif
