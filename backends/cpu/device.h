/* The device, and definitions shared by all files of the backend. */
#ifndef CLEAVE_BACKENDS_CPU_DEVICE_H
#define CLEAVE_BACKENDS_CPU_DEVICE_H

#include <stdatomic.h>

#include "backends/cpu/constants/packs.h"
#include "backends/cpu/onednn/onednn.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/tensor/tensor.h"
#include "cleave/plugin/backend.h"
#include "cores.h"

struct clv_device {
  const clv_host *host;
  const clv_allocator *allocator;
  clv__dnn *dnn;
  clv__cpu_packs *packs;
  struct clv__cpu_notes *notes; /* choices made by --tune (tune.h) */
  clv__cpu_cores *cores;        /* the cores that the device's threads run on; NULL: any core */
  int thread_count;             /* number of threads per call; 0: OpenMP's default */
  bool profile;                 /* log the time of each step when an instance is destroyed */
  bool fuse;                    /* false: every node is a separate step */
  bool onednn;                  /* false: run portable kernels only */
  bool winograd;                /* allow Winograd's algorithm, which rounds differently from the direct one */
  atomic_uint_fast64_t changes; /* counts resizes of instances and changes of their memory; after a change, a capture
                                   checks the instances that it recorded */
  atomic_bool told_refused;     /* it was logged that fewer threads than requested can be created */
  atomic_uint compiled_threads; /* the most threads that a partition was compiled for */
  char name[32];
  char description[192];
  char fingerprint[256];
};

uint32_t clv__cpu_threads_team(void); /* number of threads that a parallel region started here would have */
/* The enter functions set the number of threads that OpenMP uses for the calling thread: enter() to that of the device, or to
 * as many as the system allows if those are fewer, enter_one() to one. They return the previous number; enter() stores it in
 * *before. Pass this number to leave(), which restores it. enter_compiling() is like enter(), but usually leaves no new thread
 * running: inside it, parallel work must be between enter_packing() and leave_one(). Primitives of oneDNN run on as many
 * threads as they were compiled for; enter() fails, without an effect, if the calling thread cannot have that many. */
clv_status clv__cpu_threads_enter(clv_device *device, int *before, clv_error *error);
int clv__cpu_threads_enter_compiling(clv_device *device);
int clv__cpu_threads_enter_one(void);
/* Sets one thread if `size_bytes` is too small to justify waking other threads, otherwise as many as the system allows. */
int clv__cpu_threads_enter_packing(size_t size_bytes);
void clv__cpu_threads_leave(int before);
void clv__cpu_threads_leave_one(int before); /* ends enter_one() or enter_packing() */

/* Reports whether the device can run a node (supports.c). */
void clv__cpu_supports(clv_device *device, const clv_graph_view *graph, uint32_t node, clv_verdict *verdict);

#endif
