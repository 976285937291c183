/* Shared by the files that build the calls of a launch list: how to locate memory, and the kinds of calls that have their own
 * files. */
#ifndef CLEAVE_BACKENDS_CPU_RUN_CALLS_H
#define CLEAVE_BACKENDS_CPU_RUN_CALLS_H

#include "list.h"

/* Locates the memory of a slot: at *data or, if that is NULL, *addend bytes after the base with the index *base (list.h). */
void clv__cpu_calls_locate(const clv__cpu_variant *variant, uint32_t slot, void **data, uint32_t *base, size_t *addend);
/* Stores the address of a slot at `place`, a pointer within the call appended last. CLV__CPU_NONE leaves it NULL. */
clv_status clv__cpu_calls_point(clv__cpu_list *list, void *place, uint32_t slot, clv_error *error);

/* Append the call of a oneDNN primitive (calls_primitive.c) or an elementwise function (calls_elementwise.c). */
clv_status clv__cpu_calls_primitive(clv__cpu_list *list, uint32_t step, clv_error *error);
clv_status clv__cpu_calls_elementwise(clv__cpu_list *list, uint32_t step, clv_error *error);

#endif
