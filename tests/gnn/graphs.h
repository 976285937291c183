/* Shared by the tests of graphs: a temporary folder, the paths of files in it, and random graphs. */
#ifndef CLEAVE_TESTS_GNN_GRAPHS_H
#define CLEAVE_TESTS_GNN_GRAPHS_H

#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "gnn/data/graph.h"

static char work[64]; /* the path of the temporary folder */

static inline int make_work(void **state) {
  (void)state;
  strcpy(work, "/tmp/cleave-gnn-XXXXXX");
  return mkdtemp(work) == NULL ? -1 : 0;
}

static inline int remove_work(void **state) {
  (void)state;
  char line[128];
  snprintf(line, sizeof line, "rm -r '%s'", work);
  return system(line);
}

static inline const char *in_work(const char *name) {
  static char path[256];
  snprintf(path, sizeof path, "%s/%s", work, name);
  return path;
}

/* Random edges with all special cases: self loops, repeated edges, isolated vertices and a hub. */
typedef struct edges {
  uint32_t n;
  uint64_t m;
  uint32_t *sources, *destinations;
} edges;

static inline void random_edges(edges *made, uint32_t n, uint64_t m, uint64_t *random) {
  *made = (edges){n, m, malloc((m + 1) * sizeof(uint32_t)), malloc((m + 1) * sizeof(uint32_t))};
  uint32_t hub = n > 0 ? (uint32_t)(test_random(random) % n) : 0, used = n > 3 ? n - n / 4 : n;
  for (uint64_t e = 0; e < m; ++e) {
    uint32_t u = (uint32_t)(test_random(random) % used), v = (uint32_t)(test_random(random) % used);
    switch (test_random(random) % 8) {
      case 0:
        u = v;
        break;
      case 1:
      case 2:
        v = hub;
        break;
      case 3:
        if (e > 0) {
          u = made->sources[e - 1];
          v = made->destinations[e - 1];
        }
        break;
      default:
        break;
    }
    made->sources[e] = u;
    made->destinations[e] = v;
  }
}

static inline void edges_finish(edges *made) {
  free(made->sources);
  free(made->destinations);
}

/* Checks that the graph's rows have exactly these edges, in the same order. */
static inline void assert_rows(const clv__gnn_graph *graph, const edges *expected) {
  const clv__csr *csr = &graph->csr;
  assert_int_equal(csr->vertex_count, expected->n);
  assert_int_equal(csr->edge_count, expected->m);
  uint64_t at = 0, *cursors = malloc(((size_t)expected->n + 1) * sizeof *cursors);
  assert_int_equal(csr->offsets[0], 0);
  for (uint32_t v = 0; v < expected->n; ++v) cursors[v] = csr->offsets[v];
  for (uint64_t e = 0; e < expected->m; ++e) {
    uint32_t v = expected->destinations[e];
    at = cursors[v]++;
    assert_true(at < csr->offsets[v + 1]);
    if (csr->sources[at] != expected->sources[e]) {
      fail_msg("edge %llu: the source is %u, expected %u", (unsigned long long)e, csr->sources[at], expected->sources[e]);
    }
  }
  for (uint32_t v = 0; v < expected->n; ++v) assert_int_equal(cursors[v], csr->offsets[v + 1]);
  free(cursors);
}

static inline bool same_rows(const clv__gnn_graph *a, const clv__gnn_graph *b) {
  return a->csr.vertex_count == b->csr.vertex_count && a->csr.edge_count == b->csr.edge_count &&
         memcmp(a->csr.offsets, b->csr.offsets, ((size_t)a->csr.vertex_count + 1) * sizeof *a->csr.offsets) == 0 &&
         memcmp(a->csr.sources, b->csr.sources, (size_t)a->csr.edge_count * sizeof *a->csr.sources) == 0 &&
         memcmp(&a->hash, &b->hash, sizeof a->hash) == 0;
}

#endif
