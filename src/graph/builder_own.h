/* State shared by the two halves of the builder: everything added so far. builder.c adds to it; builder_finish.c turns it into
 * a graph. */
#ifndef CLEAVE_GRAPH_BUILDER_OWN_H
#define CLEAVE_GRAPH_BUILDER_OWN_H

#include "graph/graph.h"

typedef struct clv__builder_nodes {
  clv__node *items;
  size_t count, capacity;
} clv__builder_nodes;

typedef struct clv__builder_ids {
  clv_value_id *items;
  size_t count, capacity;
} clv__builder_ids;

typedef struct clv__builder_names {
  const char **items;
  size_t count, capacity;
} clv__builder_names;

struct clv__builder {
  clv_graph *graph; /* its arena is in use from the start; clv__builder_finish() fills its arrays */
  clv__map names;
  clv__map symbols;
  clv__builder_nodes nodes;
  clv__builder_ids inputs, outputs;
  clv__builder_names symbol_names, metadata;
  clv__value *values;
  size_t value_count, value_capacity;
  clv__opset_import *imports;
  size_t import_count, import_capacity;
  const char *source_name, *source_op; /* for the nodes added next; may be "" */
};

/* Frees the builder and its lists, but not the graph. */
void clv__builder_free(clv__builder *builder);

#endif
