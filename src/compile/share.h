/* What the sessions of one set of devices have in common: executables and weights that are on a device already, counted by use.
 *
 * Two things are the same when their bytes are: an executable's key without its constants is equal, and the constants are the
 * same memory or compare equal; likewise for a weight. So nothing has to be hashed, and nothing to be known of where constants
 * come from: whoever uses a thing lends its own bytes to compare with, which stay as long as the use does, and as long as
 * anything is kept somebody uses it.
 *
 * All functions are called under the devices' lock. */
#ifndef CLEAVE_COMPILE_SHARE_H
#define CLEAVE_COMPILE_SHARE_H

#include "cache/cache.h"
#include "compile/key.h"

typedef struct clv__share clv__share; /* CLV__ATTACHED_PROGRAMS */
typedef struct clv__shared_executable clv__shared_executable;
typedef struct clv__shared_weight clv__shared_weight;

/* A thing in a table by hash: first in what it is a part of. */
typedef struct clv__share_link {
  struct clv__share_link *next;
  uint64_t hash;
} clv__share_link;

/* One use: it stays where it is, in the arena of whoever uses the thing. */
typedef struct clv__executable_use {
  struct clv__executable_use *next, *previous;
  clv__shared_executable *of;
  const void **constants; /* the bytes of the view's constants, by value */
} clv__executable_use;

typedef struct clv__weight_use {
  struct clv__weight_use *next, *previous;
  clv__shared_weight *of;
  const void *data;
} clv__weight_use;

struct clv__shared_executable {
  clv__share_link link;
  uint32_t device;
  clv__key key;
  clv__executable_use *uses;
  clv_executable *executable;
  clv_executable_info info;
  uint32_t *weights; /* info.weight_count: the value of the view that each is */
};

struct clv__shared_weight {
  clv__share_link link;
  uint32_t device;
  clv_tensor type; /* without data */
  clv__weight_use *uses;
  clv_weight *weight;
};

/* Made when first asked for. */
clv_status clv__share_get(clv_devices *devices, clv__share **share, clv_error *error);

/* Begins a use of the executable of this key and view; NULL where there is none. It is made in `arena`, which outlives it, as do
 * the constants of the view. */
clv_status clv__share_find(clv__share *share, uint32_t device, const clv__key *key, const clv_graph_view *view, clv__arena *arena,
                           clv__executable_use **use, clv_error *error);
/* Adds an executable and begins its first use. `weights` is copied. On failure the executable stays the caller's. */
clv_status clv__share_add(clv__share *share, uint32_t device, const clv__key *key, const clv_graph_view *view, clv__arena *arena,
                          clv_executable *executable, const uint32_t *weights, clv__executable_use **use, clv_error *error);
/* Ends a use, and with the last one the executable. Accepts NULL. */
void clv__share_drop(clv__share *share, clv__executable_use *use);

/* Begins a use, in the caller's memory, of a weight with these bytes, which is uploaded as `name` where there is none. The bytes
 * stay as long as the use. */
clv_status clv__share_weight(clv__share *share, uint32_t device, const char *name, const clv_tensor *data, clv__weight_use *use,
                             bool *uploaded, clv_error *error);
/* Accepts one that is zero, and clears it. */
void clv__share_drop_weight(clv__share *share, clv__weight_use *use);

#endif
