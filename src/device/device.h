/* Open devices, the memory spaces they work in, and their verdicts about a graph's nodes. */
#ifndef CLEAVE_DEVICE_DEVICE_H
#define CLEAVE_DEVICE_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>

#include "analysis/open.h"
#include "cache/cache.h"
#include "cleave/devices.h"
#include "cleave/plan.h"
#include "device/settings.h"
#include "graph/view.h"

#define CLV__MAX_DEVICES 16
#define CLV__SPACE_HOST 0u

typedef struct clv__device {
  const clv_backend *backend;
  clv_device *handle;
  const char *name;
  clv_device_info info;
  uint32_t space;      /* index into clv_devices.spaces; CLV__SPACE_HOST for host memory */
  atomic_bool is_lost; /* given up while it was working: no slot but close() is called any more */
} clv__device;

/* What later layers keep with a set of open devices, shared by its sessions. Made under the devices' lock; let go when the set is
 * closed, the last first, before (or, from CLV__ATTACHED_ABANDONED on, after) the devices themselves. */
typedef enum clv__attachment_kind {
  CLV__ATTACHED_POOLS,     /* memory, device/pool.h */
  CLV__ATTACHED_PROGRAMS,  /* executables and weights, compile/ */
  CLV__ATTACHED_GRAPHS,    /* captured graphs, execute/ */
  CLV__ATTACHED_ABANDONED, /* memory that a device which was given up may still write to */
  CLV__ATTACHED_REQUESTS,  /* requests that one may still work for, execute/ */
  CLV__ATTACHMENT_COUNT
} clv__attachment_kind;

typedef struct clv__attachment {
  void *self; /* NULL: none */
  void (*finish)(void *self);
} clv__attachment;

/* A backend or plugin that "auto" did without. */
typedef struct clv__left_out {
  const char *name, *reason;
} clv__left_out;

struct clv_devices {
  clv_context *context;
  pthread_mutex_t lock; /* recursive */
  clv__attachment attachments[CLV__ATTACHMENT_COUNT];
  atomic_bool is_timed; /* a session's devices may be given up while they work: no session shows them its callers' memory */
  clv__arena arena;
  uint32_t count;
  clv__device items[CLV__MAX_DEVICES];
  uint32_t space_count;
  const char *spaces[CLV__MAX_DEVICES + 1]; /* spaces[0] is "host" */
  uint32_t left_out_count;
  clv__left_out *left_out;
};

const clv__settings *clv__context_settings(const clv_context *context);

const clv_allocator *clv__context_allocator(const clv_context *context);
void clv__context_log(const clv_context *context, int level, const char *format, ...) CLV_PRINTF(3, 4);
/* Somebody listens. */
bool clv__context_is_logged(const clv_context *context);
/* The cache that its settings name, opened when first asked for; NULL, and why, where there is none. Any thread. */
clv__cache *clv__context_cache(clv_context *context, const char **reason);
/* The services given to backends. */
const clv_host *clv__context_host(const clv_context *context);
uint32_t clv__context_backend_count(const clv_context *context);
const clv_backend *clv__context_backend(const clv_context *context, uint32_t index);
/* The backend that the user's word for a device means: "cpu" -> cpu, "npu" -> vnpu, "gpu" -> opencl. NULL when there is none. */
const clv_backend *clv__context_find(const clv_context *context, const char *device_name);
/* clv_context_load_plugin(), telling what was loaded. `name`: what its backend must be called; NULL: anything. */
clv_status clv__context_load_plugin(clv_context *context, const char *path, const char *name, const clv_backend **backend,
                                    clv_error *error);

/* Backends are promised one thread at a time for all but execution, copies, events and buffers: plans and sessions of several
 * threads take turns here. Never taken while a device runs something of the same session; backends call nothing that takes it. */
void clv__devices_lock(clv_devices *devices);
void clv__devices_unlock(clv_devices *devices);

/* What addresses in a memory space should be multiples of: the most that one of its devices asks for, CLV__ALIGNMENT at least. */
uint32_t clv__devices_alignment(const clv_devices *devices, uint32_t space);

/* CLV_DEVICE_ERROR where the device was given up: to be asked before its slots are called. */
clv_status clv__device_check(const clv__device *device, clv_error *error);

/* Index of the device called `name`, or CLV__NO_ID. */
uint32_t clv__devices_find(const clv_devices *devices, const char *name);

/* What every device says about every node. */
typedef struct clv__capability {
  clv__arena arena;
  uint32_t device_count;
  const char **reasons; /* [node * device_count + device]: NULL: supported; otherwise why not */
} clv__capability;

/* Asks. Nodes with folded[n] are not asked about (all NULL). `open` (NULL: every size is known) says which sizes are open: a
 * device of fixed shapes is asked about typical ones, where what it runs may be padded. `support` may be NULL. */
clv_status clv__capability_ask(const clv_devices *devices, const clv_graph_view *whole, const bool *folded, const clv__open *open,
                               clv_support_fn support, void *user_data, clv__capability *capability, clv_error *error);
void clv__capability_finish(clv__capability *capability);

static inline const char *clv__capability_reason(const clv__capability *capability, clv_node_id node, uint32_t device) {
  return capability->reasons[(size_t)node * capability->device_count + device];
}

#endif
