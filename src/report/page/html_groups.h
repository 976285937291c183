/* Writes the groups of a graph's nodes as JSON, for page/fold.js. */
#ifndef CLEAVE_REPORT_PAGE_HTML_GROUPS_H
#define CLEAVE_REPORT_PAGE_HTML_GROUPS_H

#include "base/text.h"
#include "graph/graph.h"

/* Appends {"order":[node, …],"groups":[[parent or -1, first, end, kind, name or number, total], …]} for `count` nodes in a
 * topological order. `parts` (by position in `nodes`) may be NULL; see picture/groups.h. The kinds are the numbers of
 * clv__group_kind. */
void clv__html_groups(const clv_graph *graph, const clv_node_id *nodes, uint32_t count, const uint32_t *parts, clv__text *text);

#endif
