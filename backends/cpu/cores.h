/* Which cores a device's threads run on: those of a list or of a NUMA node, or wherever the system puts them. OpenMP's threads
 * are bound with the caller's; memory follows, as the system places a page near the core that first writes it. */
#ifndef CLEAVE_BACKENDS_CPU_CORES_H
#define CLEAVE_BACKENDS_CPU_CORES_H

#include "cleave/types.h"

typedef struct clv__cpu_cores clv__cpu_cores;

/* `list`: "0-3,8", or NULL; `node`: "1", or NULL; one of them is given. Errors: CLV_INVALID_ARGUMENT with what is there. */
clv_status clv__cpu_cores_create(const clv_allocator *allocator, const char *list, const char *node, clv__cpu_cores **cores,
                                 clv_error *error);
void clv__cpu_cores_destroy(const clv_allocator *allocator, clv__cpu_cores *cores); /* accepts NULL */
int clv__cpu_cores_count(const clv__cpu_cores *cores);
/* "0-3,8". */
void clv__cpu_cores_text(const clv__cpu_cores *cores, char *text, size_t size_bytes);

/* From enter to leave the calling thread runs on these cores, and OpenMP's threads that work for it from then on; NULL: on any,
 * which costs nothing where it was never otherwise. Not nested. */
void clv__cpu_cores_enter(const clv__cpu_cores *cores);
void clv__cpu_cores_leave(void);

/* The model of the CPU, as the system names it. */
void clv__cpu_model(char *text, size_t size_bytes);

#endif
