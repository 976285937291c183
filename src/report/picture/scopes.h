/* Divides the names of nodes into scopes, and orders the nodes so that the nodes of a scope follow each other. */
#ifndef CLEAVE_REPORT_PICTURE_SCOPES_H
#define CLEAVE_REPORT_PICTURE_SCOPES_H

#include "base/memory.h"

/* Nodes are numbered in a topological order: each follows the nodes that it reads. Parts, such as the partitions of a plan, are
 * optional. No path may leave a part and return to it, and nodes of earlier parts should have lower numbers. */
typedef struct clv__groups_input {
  uint32_t node_count, edge_count;
  const char *const *names;     /* indexed by node, such as "/encoder/layer.3/output/MatMul" or "layers.3.output.linear" */
  const char *const *operators; /* indexed by node */
  const uint32_t *parts;        /* indexed by node: the number of its part; NULL: there are no parts */
  const uint32_t *from, *to;    /* indexed by edge */
} clv__groups_input;

enum { CLV__MOST_SCOPES = 16 /* around a node: deeper ones are ignored */, CLV__NO_SCOPE = 0 };

typedef struct clv__scopes {
  uint32_t (*paths)[CLV__MOST_SCOPES]; /* indexed by node: the scopes around it from the outside, then CLV__NO_SCOPE */
  uint32_t count;                      /* number of scopes, including CLV__NO_SCOPE */
  const char **names;                  /* by scope: the whole path, such as "encoder/layer.3"; NULL for a part */
  uint32_t *parts;                     /* by scope: the number of the part, if the scope is a part */
} clv__scopes;

/* clv__scopes_make() finds the scopes; if there are parts, they are the outermost scopes. clv__scopes_order() writes the
 * ordered nodes to `order`. Both return false if memory runs out. */
bool clv__scopes_make(const clv__groups_input *input, clv__arena *arena, clv__scopes *scopes);
bool clv__scopes_order(const clv__groups_input *input, const clv__scopes *scopes, clv__arena *arena, uint32_t *order);

#endif
