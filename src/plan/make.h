/* What making a plan consists of beside the strategy: what the user fixed, and what memory allows. */
#ifndef CLEAVE_PLAN_MAKE_H
#define CLEAVE_PLAN_MAKE_H

#include "place/place.h"
#include "plan/plan.h"

/* Resolves pins, forces and homes to devices (pins.c), in the plan's arena. A pin on a device that does not support the node, or
 * a pattern that matches nothing, is an error. */
clv_status clv__fixed_resolve(clv_plan *plan, const clv_plan_options *options, clv__fixed *fixed, clv_error *error);

/* Turns the refusals of the operators supposed into a yes (suppose.c). A pattern that matches nothing is an error. */
clv_status clv__suppose(clv_plan *plan, const clv_assignment *items, uint32_t count, clv_error *error);

/* A node that no device supports refuses the plan, with every device's reason (make.c, as the next). */
clv_status clv__plan_check_supported(const clv_plan *plan, clv_error *error);
/* Places, cuts, fits into memory and prices: from plan->problem to the finished plan. */
clv_status clv__plan_place(clv_plan *plan, const clv__strategy *strategy, const clv__place_input *given, clv_error *error);

/* The same plan without the devices of `lost` (bits) and those that it had lost before: they answer "taken out: <reason>" to
 * every node, and no slot of theirs is called. Nodes of other devices stay where they are, in the partitions that they are in,
 * and nodes that were on a lost one are placed again by the plan's strategy (cause "lost") within their partitions; where that
 * does not fit, everything is placed again. Pins hold. plan->same_partitions says what can go on as it is. The new plan needs the
 * first one of its kind (plan->origin), not `plan`. Errors: CLV_NOT_SUPPORTED where a pin or no other device is left for a node.
 */
clv_status clv__plan_without(const clv_plan *plan, uint32_t lost, const char *reason, clv_plan **out, clv_error *error);

/* Looks for a partition that does not fit its device's memory (memory.c), and moves it to the next device that supports all of
 * its nodes, or has its weights streamed, in pieces where need be: whichever the prices favour. Changes devices, causes, groups
 * and streamed weights of `placing`, and the notes of the plan; `changed`: the plan must be cut again. CLV_NOT_SUPPORTED where
 * there is no way, as for pinned nodes whose weights do not fit even in pieces. */
clv_status clv__place_within_memory(clv_plan *plan, clv__placing *placing, bool *changed, clv_error *error);

#endif
