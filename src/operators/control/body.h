/* What inference and evaluation of If, Loop and Scan share of a body. */
#ifndef CLEAVE_OPERATORS_CONTROL_BODY_H
#define CLEAVE_OPERATORS_CONTROL_BODY_H

#include "graph/graph.h"

/* The rank of a scalar that is handed to input `index` of a body: 1 where the body declares [1], else 0. */
static inline int32_t clv__body_scalar_rank(const clv_graph *body, uint32_t index) {
  return body->values[body->inputs[index]].type.dtype != CLV_DTYPE_NONE && body->values[body->inputs[index]].type.rank == 1;
}

#endif
