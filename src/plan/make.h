/* The steps of making a plan, except the strategies themselves (place/place.h): the user's choices, the devices' verdicts and
 * claims, and memory limits. Also makes plans from other plans: without some devices, with a divided partition, or with another
 * strategy. */
#ifndef CLEAVE_PLAN_MAKE_H
#define CLEAVE_PLAN_MAKE_H

#include "place/place.h"
#include "plan/plan.h"

/* Resolves pins, forces and homes to devices, in the plan's arena (pins.c). A pin on a device that does not support the node, or
 * a pattern that matches nothing, is an error. */
clv_status clv__fixed_resolve(clv_plan *plan, const clv_plan_options *options, clv__fixed *fixed, clv_error *error);

/* Marks the supposed operators as supported although their devices reject them (suppose.c). A pattern that matches nothing is an
 * error. */
clv_status clv__suppose(clv_plan *plan, const clv_assignment *items, uint32_t count, clv_error *error);

/* Returns an error with every device's reason if there is a node that no device supports (unsupported.c). If `whole` is not
 * NULL, also opens all devices found on this computer, and the message names those that support the node. */
clv_status clv__plan_check_supported(const clv_plan *plan, const clv_graph_view *whole, clv_error *error);
/* Turns plan->problem into the finished plan (make.c): places the nodes with `strategy`, cuts the placement into partitions,
 * makes them fit into the devices' memories, and computes the price. `given` is the input of the strategy. */
clv_status clv__plan_place(clv_plan *plan, const clv__strategy *strategy, const clv__place_input *given, clv_error *error);

/* Asks the devices for the groups that they claim, and sets plan->claims (claims.c). If a device fails, takes it out of the
 * plan: its verdicts become no, and `is_complete` becomes false. The caller must then make the problem again and repeat this
 * call. */
clv_status clv__plan_ask_claims(clv_plan *plan, const clv_graph_view *whole, bool *is_complete, clv_error *error);

/* Makes the same plan without the devices of `lost` (bits) and those removed before. Removed devices reject every node with the
 * reason "removed: <reason>", and none of their functions is called. Nodes of other devices keep their devices and partitions.
 * The plan's strategy places the nodes of lost devices again (cause "lost") within their partitions. If the result does not fit
 * into memory, it places everything again. Pins remain in force. plan->same_partitions lists the partitions that continue
 * unchanged. The original plan (plan->origin) must outlive the new one; `plan` need not. Errors: CLV_NOT_SUPPORTED if a node is
 * pinned to a lost device, or if no other device can run it. */
clv_status clv__plan_without_devices(const clv_plan *plan, uint32_t lost, const char *reason, clv_plan **out, clv_error *error);

/* Makes the same plan with one partition divided into two on the same device, because the device cannot compile it as a whole
 * (halves.c). `reason` goes into the notes of its nodes. The partition must have at least two nodes. plan->same_partitions lists
 * the other partitions. The original plan (plan->origin) must outlive the new one; `plan` need not. */
clv_status clv__plan_with_halves(const clv_plan *plan, uint32_t partition, const char *reason, clv_plan **out, clv_error *error);

/* Makes the same plan with another strategy (with_strategy.c), and, unless `only` is CLV__NONE, with all nodes on that device.
 * The original plan (plan->origin) must outlive the new one. CLV_NOT_SUPPORTED: there is no such plan within the memory limits,
 * or the device does not run every node. */
clv_status clv__plan_with_strategy(const clv_plan *plan, const clv__strategy *strategy, uint32_t only, clv__poll *poll,
                                   clv_plan **out, clv_error *error);

/* Makes the same plan, with the same partitions, for the same graph with other weights (clv__graph_with_weights()). Computes the
 * values that follow from constants again. The devices of `gone` (bits) are not asked whether they still run their nodes. `plan`
 * and its original must outlive the new plan, which is an original itself. Errors: CLV_NOT_SUPPORTED if with these weights a
 * type changes, a value is known or no longer known when planning, or a device rejects one of its nodes. */
clv_status clv__plan_with_weights(const clv_plan *plan, const clv_graph *graph, uint32_t gone, clv_plan **out, clv_error *error);

/* How a placing is cut into partitions: cut() sets placing->cut, which lives in `arena`. */
typedef struct clv__cutter {
  clv_status (*cut)(void *cookie, clv__placing *placing, clv__arena *arena, clv_error *error);
  void *cookie;
} clv__cutter;

/* Changes the plan, whose cut must be set, until every device has enough memory (memory.c). For a device that has too little,
 * it moves partitions to other devices or streams weights, whichever costs less. Updates `placing`, the notes and the cut of
 * the plan. `changed` is set to whether anything had to change. If neither remedy helps, returns CLV_NOT_SUPPORTED. The message
 * then states the least memory that the device would need, or that its compiler rejects even the smallest partitions as too
 * large. */
clv_status clv__place_within_memory(clv_plan *plan, clv__placing *placing, const clv__cutter *cutter, bool *changed,
                                    clv_error *error);

#endif
