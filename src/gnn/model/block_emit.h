/* The nodes of a block: what block.c asks of block_emit.c. */
#ifndef CLEAVE_GNN_MODEL_BLOCK_EMIT_H
#define CLEAVE_GNN_MODEL_BLOCK_EMIT_H

#include "gnn/model/stage.h"
#include "graph/graph.h"

/* A block on its way into a graph. After a failure `status` is not CLV_OK and nothing more happens: checked once, at the end. */
typedef struct clv__emitter {
  clv__builder *builder;
  const clv__stages *stages;
  const int64_t *dims;                 /* by clv__layer_dimension: fixed, or a symbol */
  clv_value_id ids[CLV__LAYER_VALUES]; /* CLV__NO_ID: not made (yet) */
  const char *prefix;                  /* of names: the stage at work */
  uint32_t made;                       /* values between */
  clv_status status;
  clv_error *error;
} clv__emitter;

/* The value of a layer, declared with its shape; made when first asked for. */
clv_value_id clv__emit_value(clv__emitter *emitter, clv__layer_value value);
/* The nodes of a step, whose inputs are there. */
void clv__emit_step(clv__emitter *emitter, const clv__layer_step *step);

#endif
