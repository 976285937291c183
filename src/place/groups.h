/* Orders the list so that groups chosen by a delegate are contiguous. */
#ifndef CLEAVE_PLACE_GROUPS_H
#define CLEAVE_PLACE_GROUPS_H

#include "split/problem.h"

/* Computes a topological order in which the nodes of one group are consecutive, as far as groups are convex and do not wait for
 * each other. A group that blocks the order is broken up. Apart from that, nodes keep the order of their numbers. `groups` is
 * by node: a number below node_count; CLV__NONE: no group. */
clv_status clv__groups_order(const clv__problem *problem, const uint32_t *groups, clv__arena *arena, uint32_t **order,
                             clv_error *error);

#endif
