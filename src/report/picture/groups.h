/* Groups the nodes of a graph, so that a picture can fold them: by partition, by the scope in their names, by repeated blocks,
 * and otherwise by runs of neighbours. The groups are intervals of one topological order, nested in each other. A folded group
 * can therefore be drawn as one node: no path leaves a group and returns to it. The result depends only on the input. */
#ifndef CLEAVE_REPORT_PICTURE_GROUPS_H
#define CLEAVE_REPORT_PICTURE_GROUPS_H

#include "report/picture/scopes.h"

typedef enum clv__group_kind {
  CLV__GROUP_PART,  /* `number` is the number of the partition */
  CLV__GROUP_SCOPE, /* `name` is the scope */
  CLV__GROUP_BLOCK, /* number `number` of `total` repetitions of the same operators */
  CLV__GROUP_RUN    /* neighbours, because there would be too many nodes otherwise */
} clv__group_kind;

typedef struct clv__group {
  clv__group_kind kind;
  uint32_t parent;     /* an earlier group, or UINT32_MAX */
  uint32_t first, end; /* its nodes are order[first] up to but excluding order[end] */
  uint32_t number, total;
  const char *name; /* NULL, except for a scope */
} clv__group;

typedef struct clv__groups {
  uint32_t *order; /* the nodes, in a topological order that keeps the nodes of a scope together if possible */
  uint32_t count;
  clv__group *items; /* outer groups precede inner groups; siblings are in order */
} clv__groups;

/* Returns false if memory runs out. */
bool clv__groups_make(const clv__groups_input *input, clv__arena *arena, clv__groups *groups);

#endif
