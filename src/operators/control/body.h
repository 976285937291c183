/* Shared by inference and evaluation of the bodies of If, Loop and Scan. */
#ifndef CLEAVE_OPERATORS_CONTROL_BODY_H
#define CLEAVE_OPERATORS_CONTROL_BODY_H

#include "graph/graph.h"

/* The rank of a scalar passed to input `index` of a body: 1 if the body declares [1], otherwise 0. */
static inline int32_t clv__body_scalar_rank(const clv_graph *body, uint32_t index) {
  return body->values[body->inputs[index]].type.dtype != CLV_DTYPE_NONE && body->values[body->inputs[index]].type.rank == 1;
}

#endif
