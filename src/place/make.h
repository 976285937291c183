/* What making a plan consists of beside the strategy: what the user fixed, and what memory allows. */
#ifndef CLEAVE_PLACE_MAKE_H
#define CLEAVE_PLACE_MAKE_H

#include "place/place.h"
#include "split/plan.h"

/* Resolves pins, forces and homes to devices (pins.c), in the plan's arena. A pin on a device that does not support the node, or
 * a pattern that matches nothing, is an error. */
clv_status clv__fixed_resolve(clv_plan *plan, const clv_plan_options *options, clv__fixed *fixed, clv_error *error);

/* Turns the refusals of the operators supposed into a yes (suppose.c). A pattern that matches nothing is an error. */
clv_status clv__suppose(clv_plan *plan, const clv_assignment *items, uint32_t count, clv_error *error);

/* Looks for a partition that does not fit its device's memory (memory.c), and moves it to the next device that supports all of
 * its nodes, or has its weights streamed, in pieces where need be: whichever the prices favour. Changes devices, causes, groups
 * and streamed weights of `placing`, and the notes of the plan; `changed`: the plan must be cut again. CLV_NOT_SUPPORTED where
 * there is no way, as for pinned nodes whose weights do not fit even in pieces. */
clv_status clv__place_within_memory(clv_plan *plan, clv__placing *placing, bool *changed, clv_error *error);

#endif
