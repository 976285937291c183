/* Groups that a delegate chose for itself, made to stand together in the list. */
#ifndef CLEAVE_PLACE_GROUPS_H
#define CLEAVE_PLACE_GROUPS_H

#include "split/problem.h"

/* A topological order of the nodes in which those of one group (by node, below node_count; CLV__NONE: in none) follow each other,
 * as far as groups are convex and do not wait for each other: a group that does is broken where that lets the order go on. Else
 * the order is the list's. */
clv_status clv__groups_order(const clv__problem *problem, const uint32_t *groups, clv__arena *arena, uint32_t **order,
                             clv_error *error);

#endif
