/* Helpers shared by the calls of a launch list: locating memory, and one function for each kind of call that has its own file. */
#ifndef CLEAVE_BACKENDS_CPU_RUN_CALLS_H
#define CLEAVE_BACKENDS_CPU_RUN_CALLS_H

#include "list.h"

/* The address of a slot's memory: *data or, if that is NULL, *base + *addend. */
void clv__cpu_calls_locate(const clv__cpu_plan *plan, uint32_t slot, void **data, uint32_t *base, size_t *addend);
/* Stores the address of a slot at `place`, a pointer within the call appended last. CLV__CPU_NONE leaves it NULL. */
clv_status clv__cpu_calls_point(clv__cpu_list *list, void *place, uint32_t slot, clv_error *error);

/* A oneDNN primitive (calls_primitive.c); an elementwise function (calls_elementwise.c). */
clv_status clv__cpu_calls_primitive(clv__cpu_list *list, uint32_t step, clv_error *error);
clv_status clv__cpu_calls_elementwise(clv__cpu_list *list, uint32_t step, clv_error *error);

#endif
