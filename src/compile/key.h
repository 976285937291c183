/* Identifies an executable by five hashes. Two partitions with the same five hashes have the same executable, even if their
 * models or the names of their nodes and values differ. Comparing the hashes one by one explains why a partition misses an
 * executable that almost matches. */
#ifndef CLEAVE_COMPILE_KEY_H
#define CLEAVE_COMPILE_KEY_H

#include "cache/key.h"
#include "device/device.h"

/* Computes the two parts that depend only on the graph: structure and types. The other parts become zero. */
void clv__key_make_graph(const clv_graph_view *view, clv__key *key);
/* Computes all parts except that of the constants, which is zero. This is cheap: it reads no weight. */
void clv__key_make(const clv_graph_view *view, const clv__device *device, const clv_compile_options *options, clv__key *key);
/* Adds the part of the constants. Constants of the graph itself are hashed once per graph. */
clv_status clv__key_add_constants(const clv_graph_view *view, clv__key *key, clv_error *error);

/* Returns whether the view has the bytes of a value. The key's part for constants covers these values; they may be weights. */
static inline bool clv__key_has_bytes(const clv_graph_view *view, uint32_t value) {
  return clv__value_is_constant(view->graph, view->types, view->values[value]) && clv__view_type(view, value)->data != NULL;
}

#endif
