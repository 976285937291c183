/* Explains the placement of nodes, as text or JSON. */
#ifndef CLEAVE_REPORT_EXPLAIN_H
#define CLEAVE_REPORT_EXPLAIN_H

#include <jansson.h>

#include "base/text.h"
#include "plan/plan.h"

/* Explains the placement of every node whose name or operator matches `pattern` (NULL: of all nodes): its device, the cause, and
 * for every other device whether it could run the node. Returns the number of matching nodes. */
uint32_t clv__report_explain(const clv_plan *plan, const char *pattern, clv__text *text);

/* Appends an object for each of these nodes to a JSON array. Returns false if memory runs out. */
bool clv__report_explain_json(const clv_plan *plan, const char *pattern, json_t *list);

/* explain.c: whether the node's name or operator matches `pattern`. NULL matches every node. */
bool clv__explain_matches(const clv__node *node, const char *pattern);
/* explain.c: returns the partition of every node, CLV__NO_ID for nodes that do not run, in memory that the caller releases. NULL
 * if out of memory. */
uint32_t *clv__explain_partitions(const clv_plan *plan, const clv_allocator *allocator);

#endif
