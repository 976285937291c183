/* The device, and what every file of the backend shares. */
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
  struct clv__cpu_notes *notes; /* what --tune chose (tune.h) */
  clv__cpu_cores *cores;        /* NULL: any */
  int thread_count;             /* 0: whatever OpenMP has */
  bool profile;                 /* log what each step took when an instance dies */
  bool fuse;                    /* false: every node is a step of its own */
  bool onednn;                  /* false: portable kernels only */
  int lanes;                    /* 0: none, 1: where they pay, more: so many, wherever they can be */
  bool winograd;                /* allow Winograd's algorithm, which rounds otherwise than the direct one */
  atomic_uint_fast64_t changes; /* instances that were resized or got other memory: what was captured before looks at its own */
  char name[32];
  char description[128];
  char fingerprint[192];
};

uint32_t clv__cpu_threads_team(void); /* of a parallel region that began here and now */
/* Runs what lies between the two calls on the device's number of threads; restores the caller's. */
int clv__cpu_threads_enter(const clv_device *device);
int clv__cpu_threads_enter_one(void);
int clv__cpu_threads_enter_packing(size_t size_bytes); /* one, where so much to write is not worth waking others */
void clv__cpu_threads_leave(int before);
void clv__cpu_threads_leave_one(int before); /* of enter_one() and enter_packing() */

/* What the device can run (supports.c). */
void clv__cpu_supports(clv_device *device, const clv_graph_view *graph, uint32_t node, clv_verdict *verdict);

#endif
