/* A graph with its inferred types and a view of all its nodes, for tests of nodes. */
#ifndef CLEAVE_TESTS_COST_INFERRED_H
#define CLEAVE_TESTS_COST_INFERRED_H

#include "analysis/shapes.h"
#include "graph/view.h"
#include "support.h"

typedef struct inferred {
  clv_graph *graph;
  clv__shapes *shapes;
  clv__arena arena;
  clv_graph_view *whole;
} inferred;

/* Takes ownership of `graph` and infers its types. */
static inline void infer_whole(inferred *i, clv_graph *graph) {
  clv_error error = {0};
  i->graph = graph;
  clv__arena_init(&i->arena, graph->allocator);
  assert_ok(clv__shapes_infer(graph, NULL, 0, SIZE_MAX, &i->shapes, &error), error);
  assert_ok(clv__view_create_whole(graph, i->shapes->types, &i->arena, &i->whole, &error), error);
}

static inline void inferred_done(inferred *i) {
  clv__shapes_destroy(i->shapes);
  clv__arena_finish(&i->arena);
  clv__graph_destroy(i->graph);
}

#endif
