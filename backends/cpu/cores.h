/* The cores that a device's threads run on: those of a list, those of a NUMA node, or any. OpenMP's threads are bound together
 * with the caller's. Memory follows, because the system places a page near the core that first writes it. */
#ifndef CLEAVE_BACKENDS_CPU_CORES_H
#define CLEAVE_BACKENDS_CPU_CORES_H

#include "cleave/types.h"

typedef struct clv__cpu_cores clv__cpu_cores;

/* `list` is "0-3,8" or NULL, `node` is "1" or NULL; exactly one of them is given. Errors: CLV_INVALID_ARGUMENT, listing the
 * available cores or nodes. */
clv_status clv__cpu_cores_create(const clv_allocator *allocator, const char *list, const char *node, clv__cpu_cores **cores,
                                 clv_error *error);
void clv__cpu_cores_destroy(const clv_allocator *allocator, clv__cpu_cores *cores); /* accepts NULL */
int clv__cpu_cores_count(const clv__cpu_cores *cores);
/* Writes the cores as a list, for example "0-3,8". */
void clv__cpu_cores_text(const clv__cpu_cores *cores, char *text, size_t size_bytes);

/* enter() binds the calling thread, and the OpenMP threads that work for it, to these cores. leave() gives the calling thread
 * its previous cores back; its OpenMP threads stay bound until the next enter() with other cores. If `cores` is NULL, the
 * calling thread keeps its cores, and its OpenMP threads get the same cores if an earlier enter() has bound them to others.
 * Calls must not be nested. */
void clv__cpu_cores_enter(const clv__cpu_cores *cores);
void clv__cpu_cores_leave(void);

/* The CPU model, as the system names it. */
void clv__cpu_model(char *text, size_t size_bytes);

#endif
