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
  clv__cpu_cores *cores;        /* NULL: any */
  int thread_count;             /* 0: OpenMP's default */
  bool profile;                 /* log the time of each step when an instance is destroyed */
  bool fuse;                    /* false: every node is a separate step */
  bool onednn;                  /* false: portable kernels only */
  bool winograd;                /* allow Winograd's algorithm, which rounds differently from the direct one */
  atomic_uint_fast64_t changes; /* counts resizes of instances and changes of their memory; after a change, a capture
                                   checks the instances that it recorded */
  atomic_bool told_refused;     /* that there are fewer threads than `thread_count` */
  char name[32];
  char description[192];
  char fingerprint[256];
};

uint32_t clv__cpu_threads_team(void); /* threads that a parallel region started here would have */
/* enter() sets the device's number of threads, or as many as the system allows, and returns the previous number; pass it to
 * leave(), which restores it. */
int clv__cpu_threads_enter(clv_device *device);
int clv__cpu_threads_enter_one(void);
int clv__cpu_threads_enter_packing(size_t size_bytes); /* one thread if there are too few bytes to justify waking others */
void clv__cpu_threads_leave(int before);
void clv__cpu_threads_leave_one(int before); /* after enter_one() and enter_packing() */

/* Reports whether the device can run a node (supports.c). */
void clv__cpu_supports(clv_device *device, const clv_graph_view *graph, uint32_t node, clv_verdict *verdict);

#endif
