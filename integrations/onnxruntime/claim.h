/* What the provider finds out about the nodes of one graph (claim.c), and reports (report.c). */
#ifndef CLEAVE_INTEGRATIONS_ONNXRUNTIME_CLAIM_H
#define CLEAVE_INTEGRATIONS_ONNXRUNTIME_CLAIM_H

#include <stdio.h>

#include "provider.h"

enum node_state { POSSIBLE, REFUSED };
#define ANY UINT32_MAX

typedef struct claims {
  const clv__ep *provider;
  const OrtGraph *graph;
  clv__ep_arena *arena;
  clv__ep_nodes nodes;
  bool is_left;            /* the graph is a body, none of whose nodes may be taken alone */
  enum node_state *state;  /* by node, as the next two */
  const char **reasons;    /* why it was refused; NULL: it was not */
  uint32_t *level;         /* nodes of one even level are a group */
  uint32_t top;            /* the highest level */
  uint32_t *numbers;       /* room for the places of all nodes */
  clv__ep_names producers; /* the node that computes a value */
} claims;

/* Asks the devices about all nodes, and sets their states and reasons. */
clv_status clv__ep_ask_all(claims *c, clv_error *error);
/* Sets the levels of all nodes. */
clv_status clv__ep_set_levels(claims *c, clv_error *error);

/* Appends a line of JSON about the graph to the file that the option `report` names: what ONNX Runtime says of it, which nodes
 * the provider takes, and why not the others. README.md has its fields. */
clv_status clv__ep_report(const claims *c, clv_error *error);

#endif
