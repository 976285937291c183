/* Open devices, their memory spaces, and their verdicts on the nodes of a graph. */
#ifndef CLEAVE_DEVICE_DEVICE_H
#define CLEAVE_DEVICE_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>

#include "analysis/open.h"
#include "base/error.h"
#include "base/stop.h"
#include "cache/cache.h"
#include "cleave/devices.h"
#include "cleave/plan.h"
#include "device/settings.h"
#include "graph/view.h"

#define CLV__MAX_DEVICES 16
#define CLV__SPACE_HOST 0u

typedef struct clv__device {
  /* The functions to call, always in this way: `device->backend->slot(device->handle, …)`. Once the device is lost, this is
   * `lost`, so no caller needs to ask. Reading it takes one instruction and no fence on x86 and 64-bit ARM. */
  const clv_backend *_Atomic backend;
  const clv_backend *opened_by; /* the backend that opened the device: only for close() */
  clv_backend lost;             /* clv__lost_backend(opened_by) */
  clv_device *handle;
  const char *name;
  clv_device_info info;
  uint32_t space; /* index into clv_devices.spaces; CLV__SPACE_HOST for host memory */
} clv__device;

/* Objects that other folders attach to a set of open devices; the sessions of the set share them. They are created under the
 * devices' lock. Closing the set first closes its lost devices, and then destroys the kinds before CLV__ATTACHED_ABANDONED, the
 * last one first. After that it closes the remaining devices, and destroys the remaining kinds, again the last one first. */
typedef enum clv__attachment_kind {
  CLV__ATTACHED_MEMORY,    /* memory (device/memory_pool.h) */
  CLV__ATTACHED_PROGRAMS,  /* executables and weights (compile/) */
  CLV__ATTACHED_CAPTURES,  /* captures (execute/) */
  CLV__ATTACHED_ABANDONED, /* memory that a lost device may still write to */
  CLV__ATTACHED_REQUESTS,  /* requests that a lost device may still be working on (execute/) */
  CLV__ATTACHMENT_COUNT
} clv__attachment_kind;

typedef struct clv__attachment {
  void *self; /* NULL: none */
  void (*finish)(void *self);
} clv__attachment;

/* A backend or plugin that "auto" skipped. */
typedef struct clv__left_out {
  const char *name, *reason;
} clv__left_out;

struct clv_devices {
  clv_context *context;
  pthread_mutex_t lock; /* recursive */
  clv__attachment attachments[CLV__ATTACHMENT_COUNT];
  atomic_bool is_timed; /* a session has a device time limit, so devices may be removed while they work: they get no access to
                           callers' memory */
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
/* Whether a log function is set. */
bool clv__context_is_logged(const clv_context *context);
/* The cache named by the settings, opened on first use. NULL, with the reason, if there is none. Callable from any thread. */
clv__cache *clv__context_cache(clv_context *context, const char **reason);
/* The services for backends. */
const clv_host *clv__context_host(const clv_context *context);
uint32_t clv__context_backend_count(const clv_context *context);
const clv_backend *clv__context_backend(const clv_context *context, uint32_t index);
/* The backend that a user's device name means: "cpu" -> cpu, "npu" -> vnpu, "gpu" -> opencl. NULL if there is none. */
const clv_backend *clv__context_find(const clv_context *context, const char *device_name);
/* Like clv_context_load_plugin(), but also returns the backend. `name`: the required name of the backend; NULL: any. */
clv_status clv__context_load_plugin(clv_context *context, const char *path, const char *name, const clv_backend **backend,
                                    clv_error *error);

/* Backends are called by one thread at a time, except for execution, copies, events and buffers. Plans and sessions on several
 * threads take turns with this lock. It is never taken while a device runs work of the same session, and backends call nothing
 * that takes it. */
void clv__devices_lock(clv_devices *devices);
void clv__devices_unlock(clv_devices *devices);

/* The alignment of addresses in a memory space: the largest that one of its devices requires, at least CLV__ALIGNMENT. */
uint32_t clv__devices_alignment(const clv_devices *devices, uint32_t space);

/* Calls a slot of a device's backend: CLV__CALL(device, error, compile, view, options, &executable). The text of an error begins
 * with the slot's name, "compile: ", so that every report of a failed call says which one it was. */
#define CLV__CALL(device, error, slot, ...) \
  clv__call_ended((clv__error_clear(error), (device)->backend->slot((device)->handle, __VA_ARGS__, (error))), #slot, (error))
static inline clv_status clv__call_ended(clv_status status, const char *slot, clv_error *error) {
  return status == CLV_OK ? status : clv__error_prefix(error, status, "%s", slot);
}

/* Index of the device called `name`, or CLV__NO_ID. */
uint32_t clv__devices_find(const clv_devices *devices, const char *name);

/* ---- Devices that were removed while they were working (lost.c) ---- */

/* The reason that reports give for a lost device: why it rejects a node, and why the plan does not use it. */
#define CLV__LOST_REASON "removed: it did not answer in time"

/* Returns the table of functions that replaces `backend` once its device is lost. It has the same optional slots and groups as
 * `backend`. None of its functions calls the device: those that free something do nothing, and those that return a status
 * fail. */
clv_backend clv__lost_backend(const clv_backend *backend);
/* Marks the device as lost. From now on no call reaches it, except close(); calls that have begun already go on. Returns false
 * if it was lost before. Any thread may call this. */
bool clv__device_lose(clv__device *device);
/* Returns whether the device is lost, for code that then takes another way. Do not test this before each call of the backend: a
 * call through device->backend does not reach a lost device. */
static inline bool clv__device_is_lost(const clv__device *device) {
  return device->backend == &device->lost;
}
/* CLV_DEVICE_ERROR if the device is lost. For work that should not even be prepared for a lost device. */
clv_status clv__device_check(const clv__device *device, clv_error *error);

/* ---- Verdicts ---- */

/* Which devices support which nodes. */
typedef struct clv__capability {
  clv__arena arena;
  uint32_t device_count;
  const char **reasons; /* [node * device_count + device]: NULL if supported, otherwise the reason why not */
  uint16_t *hosted;     /* by node: bit d: a view that device d rejects, and that the host renames in its memory; NULL: none */
} clv__capability;

/* Asks every device about every node. Folded nodes are skipped; their entries are NULL. `open` marks the open sizes (NULL:
 * every size is known). supports() of a device with static shapes gets typical sizes if the node may be padded. `support` is
 * the program's own check of what a device supports, and may be NULL. Returns CLV_CANCELLED if `poll`, which may be NULL, says
 * that planning should end. */
clv_status clv__capability_ask(const clv_devices *devices, const clv_graph_view *whole, const bool *folded, const clv__open *open,
                               clv_support_fn support, void *user_data, clv__poll *poll, clv__capability *capability,
                               clv_error *error);
void clv__capability_finish(clv__capability *capability);

/* Returns the device's own verdict: NULL if it supports the node, otherwise the reason why not. */
static inline const char *clv__capability_answer(const clv__capability *capability, clv_node_id node, uint32_t device) {
  return capability->reasons[(size_t)node * capability->device_count + device];
}
/* Why the node cannot be on the device; NULL if it can, because the device supports it or the host renames it there. */
static inline const char *clv__capability_reason(const clv__capability *capability, clv_node_id node, uint32_t device) {
  if (capability->hosted != NULL && (capability->hosted[node] >> device & 1u) != 0) return NULL;
  return clv__capability_answer(capability, node, device);
}

#endif
