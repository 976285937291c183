/* Orders the nodes so that the nodes of each group that a delegate chose are consecutive. */
#ifndef CLEAVE_PLACE_GROUPS_H
#define CLEAVE_PLACE_GROUPS_H

#include "split/problem.h"

/* Computes a topological order in which the nodes of one group are consecutive, as far as groups are convex and do not wait for
 * each other. A group that blocks the order is broken up. Apart from that, nodes keep the order of their numbers. `groups` is
 * by node: a number below node_count; CLV__NONE: no group. */
clv_status clv__groups_order(const clv__problem *problem, const uint32_t *groups, clv__arena *arena, uint32_t **order,
                             clv_error *error);

#endif
