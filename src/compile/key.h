/* What an executable is of, in five hashes: two partitions with the same five have the same executable, whatever their nodes and
 * values are called and whichever model they are part of. Apart, they tell why a partition misses one that is nearly its own. */
#ifndef CLEAVE_COMPILE_KEY_H
#define CLEAVE_COMPILE_KEY_H

#include "cache/key.h"
#include "device/device.h"

/* All parts but the constants', which are zero: cheap, no weight is read. */
void clv__key_make(const clv_graph_view *view, const clv__device *device, const clv_compile_options *options, clv__key *key);
/* Adds the constants'. Those of the graph itself are hashed once a graph. */
clv_status clv__key_add_constants(const clv_graph_view *view, clv__key *key, clv_error *error);

/* Whether a value of the view has its bytes: such are what the constants' part is of, and may be weights. */
static inline bool clv__key_has_bytes(const clv_graph_view *view, uint32_t value) {
  return clv__value_is_constant(view->graph, view->types, view->values[value]) && clv__view_type(view, value)->data != NULL;
}

#endif
