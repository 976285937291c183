/* Emits the nodes of a block. This is the interface between block.c and block_emit.c. */
#ifndef CLEAVE_GNN_MODEL_BLOCK_EMIT_H
#define CLEAVE_GNN_MODEL_BLOCK_EMIT_H

#include "gnn/model/stage.h"
#include "graph/graph.h"

/* A graph under construction for one block. After a failure, `status` is not CLV_OK and all further calls do nothing, so that
 * callers check it once, at the end. */
typedef struct clv__emitter {
  clv__builder *builder;
  const clv__stages *stages;
  const int64_t *dims;                 /* indexed by clv__layer_dimension: a fixed size or a symbol */
  clv_value_id ids[CLV__LAYER_VALUES]; /* CLV__NO_ID: not emitted (yet) */
  const char *prefix;                  /* prefix of names: the current stage */
  uint32_t made;                       /* counts the names made so far, so that names are unique */
  clv_status status;
  clv_error *error;
} clv__emitter;

/* Returns the graph value for a layer value. Declares it with its shape on first use. */
clv_value_id clv__emit_value(clv__emitter *emitter, clv__layer_value value);
/* Emits the nodes of a step. Its inputs must exist. */
void clv__emit_step(clv__emitter *emitter, const clv__layer_step *step);

#endif
