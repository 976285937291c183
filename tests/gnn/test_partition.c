/* Tests memberships and subgraphs: METIS on all kinds of small graphs, the cache, and every subgraph against its definition. */
#include "graphs.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "gnn/data/metis.h"
#include "gnn/data/partition.h"

static clv_error error;

static clv__gnn_graph *random_graph(uint32_t n, uint64_t m, uint64_t *random) {
  edges e;
  clv__gnn_graph *graph;
  random_edges(&e, n, m, random);
  assert_ok(clv__gnn_graph_make(clv__allocator_default(), n, m, e.sources, e.destinations, NULL, NULL, &graph, &error), error);
  edges_finish(&e);
  return graph;
}

/* ---- Subgraphs ---- */

static void assert_ascending(const uint32_t *ids, uint32_t count) {
  for (uint32_t i = 1; i < count; ++i) assert_true(ids[i - 1] < ids[i]);
}

/* Checks a subgraph against its definition, going over all vertices and edges. */
static void assert_subgraph(const clv__csr *csr, const uint32_t *parts, uint32_t p, const clv__subgraph *sub) {
  bool *halo = calloc((size_t)csr->vertex_count + 1, sizeof *halo);
  uint32_t owned = 0, outside = 0;
  uint64_t edge_count = 0, cut = 0;
  for (uint32_t v = 0; v < csr->vertex_count; ++v) {
    if (parts[v] != p) continue;
    assert_true(owned < sub->owned_count);
    assert_int_equal(sub->vertices[owned], v);
    assert_int_equal(sub->offsets[owned], edge_count);
    for (uint64_t e = csr->offsets[v]; e < csr->offsets[v + 1]; ++e, ++edge_count) {
      uint32_t u = csr->sources[e], local = sub->sources[edge_count];
      assert_true(local < sub->owned_count + sub->halo_count);
      assert_int_equal(sub->vertices[local], u);
      assert_int_equal(local < sub->owned_count, parts[u] == p);
      cut += parts[u] != p;
      outside += parts[u] != p && !halo[u];
      halo[u] = halo[u] || parts[u] != p;
    }
    ++owned;
  }
  assert_int_equal(sub->owned_count, owned);
  assert_int_equal(sub->halo_count, outside);
  assert_int_equal(sub->edge_count, edge_count);
  assert_int_equal(sub->cut_edge_count, cut);
  assert_int_equal(sub->offsets[owned], edge_count);
  assert_ascending(sub->vertices, owned);
  assert_ascending(sub->vertices + owned, outside);
  free(halo);
}

static void assert_partitioned(const clv__gnn_graph *graph, const clv__membership *membership) {
  clv__partitioned made;
  uint64_t volume = 0;
  assert_ok(clv__partitioned_make(clv__allocator_default(), graph, membership, &made, &error), error);
  assert_int_equal(made.k, membership->k);
  for (uint32_t p = 0; p < made.k; ++p) {
    assert_subgraph(&graph->csr, membership->parts, p, &made.subgraphs[p]);
    volume += made.subgraphs[p].halo_count;
  }
  assert_int_equal(made.communication_volume, volume);
  clv__partitioned_finish(&made);
}

/* Random memberships; some of their parts are empty. */
static void subgraphs_are_those_of_the_definition(void **state) {
  (void)state;
  uint64_t random = 1;
  static const struct {
    uint32_t n;
    uint64_t m;
    uint32_t k;
  } sizes[] = {{0, 0, 1}, {1, 0, 1}, {1, 4, 3}, {6, 20, 2}, {40, 100, 7}, {500, 4000, 9}, {900, 0, 5}, {60000, 300000, 3}};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    clv__gnn_graph *graph = random_graph(sizes[i].n, sizes[i].m, &random);
    uint32_t *parts = malloc(((size_t)sizes[i].n + 1) * sizeof *parts);
    for (uint32_t v = 0; v < sizes[i].n; ++v) parts[v] = (uint32_t)(test_random(&random) % sizes[i].k);
    for (uint32_t v = 0; v < sizes[i].n; ++v) parts[v] = parts[v] == 1 && i % 2 == 1 ? 0 : parts[v];
    assert_partitioned(graph, &(clv__membership){sizes[i].k, sizes[i].n, parts, 0, false});
    free(parts);
    clv__gnn_graph_destroy(graph);
  }
}

static void memberships_of_other_graphs_are_refused(void **state) {
  (void)state;
  uint64_t random = 2;
  clv__gnn_graph *graph = random_graph(5, 9, &random);
  const uint32_t parts[] = {0, 1, 0, 2, 1};
  clv__partitioned made;
  const clv__membership wrong[] = {{3, 4, parts, 0, false}, {2, 5, parts, 0, false}, {0, 5, parts, 0, false}};
  for (size_t i = 0; i < 3; ++i) {
    assert_int_equal(clv__partitioned_make(clv__allocator_default(), graph, &wrong[i], &made, &error), CLV_INVALID_ARGUMENT);
  }
  assert_non_null(strstr(error.message, "the partition has 5 vertices in 0 parts"));
  clv__gnn_graph_destroy(graph);
}

/* ---- The graph for METIS ---- */

static void the_undirected_graph_has_every_edge_once(void **state) {
  (void)state;
  uint64_t random = 3;
  enum { N = 60 };
  for (int round = 0; round < 20; ++round) {
    clv__gnn_graph *graph = random_graph(N, (uint64_t)round * 40, &random);
    static bool joined[N][N];
    memset(joined, 0, sizeof joined);
    for (uint32_t v = 0; v < N; ++v) {
      for (uint64_t e = graph->csr.offsets[v]; e < graph->csr.offsets[v + 1]; ++e) {
        uint32_t u = graph->csr.sources[e];
        joined[u][v] = joined[v][u] = u != v;
      }
      joined[v][v] = false;
    }
    clv__metis_graph undirected;
    assert_ok(clv__metis_graph_make(clv__allocator_default(), &graph->csr, &undirected, &error), error);
    for (uint32_t v = 0; v < N; ++v) {
      assert_int_equal(undirected.weights[v], 1 + graph->csr.offsets[v + 1] - graph->csr.offsets[v]);
      for (int32_t e = undirected.offsets[v]; e < undirected.offsets[v + 1]; ++e) {
        assert_true(joined[v][undirected.neighbours[e]]);
        joined[v][undirected.neighbours[e]] = false;
      }
      for (uint32_t u = 0; u < N; ++u) assert_false(joined[v][u]);
    }
    clv__metis_graph_finish(clv__allocator_default(), &undirected);
    clv__gnn_graph_destroy(graph);
  }
}

static void graphs_beyond_32_bits_are_refused(void **state) {
  (void)state;
  const clv__csr large = {1u << 20, INT32_MAX, NULL, NULL};
  clv__metis_graph undirected;
  assert_int_equal(clv__metis_graph_make(clv__allocator_default(), &large, &undirected, &error), CLV_INVALID_ARGUMENT);
  assert_non_null(strstr(error.message,
                         "METIS counts in 32 bits: 1048576 vertices and 2147483647 edges exceed "
                         "2147483647 in total; use k = 1"));
}

/* ---- METIS ---- */

static void assert_membership(const clv__gnn_graph *graph, uint32_t k, uint64_t seed) {
  clv__membership membership, again;
  assert_ok(clv__membership_make(clv__allocator_default(), graph, k, seed, NULL, &membership, &error), error);
  assert_int_equal(membership.k, k);
  assert_partitioned(graph, &membership);
  assert_ok(clv__membership_make(clv__allocator_default(), graph, k, seed, NULL, &again, &error), error);
  assert_memory_equal(membership.parts, again.parts, membership.vertex_count * sizeof *again.parts);
  clv__membership_finish(clv__allocator_default(), &membership);
  clv__membership_finish(clv__allocator_default(), &again);
}

static void small_odd_graphs_are_cut(void **state) {
  (void)state;
  uint64_t random = 4;
  for (int round = 0; round < 60; ++round) {
    uint32_t n = 1 + (uint32_t)(test_random(&random) % 40);
    clv__gnn_graph *graph = random_graph(n, test_random(&random) % (4 * n), &random);
    assert_membership(graph, 1 + (uint32_t)(test_random(&random) % n), test_random(&random));
    clv__gnn_graph_destroy(graph);
  }
}

/* Two dense halves (even and odd ids) joined by one edge. METIS cuts only that edge; dividing the ids into consecutive ranges
 * would cut both halves. */
static void cuts_are_good(void **state) {
  (void)state;
  enum { N = 200, M = 2 * N * 20 };
  edges e = {N, M, malloc((M + 1) * sizeof(uint32_t)), malloc((M + 1) * sizeof(uint32_t))};
  uint64_t random = 5;
  for (uint64_t i = 0; i < M; ++i) {
    e.sources[i] = (uint32_t)(test_random(&random) % N);
    e.destinations[i] = (uint32_t)((test_random(&random) % (N / 2)) * 2 + e.sources[i] % 2);
  }
  e.sources[0] = 0;
  e.destinations[0] = 1;
  clv__gnn_graph *graph;
  clv__membership membership;
  assert_ok(clv__gnn_graph_make(clv__allocator_default(), N, M, e.sources, e.destinations, NULL, NULL, &graph, &error), error);
  assert_ok(clv__membership_make(clv__allocator_default(), graph, 2, 0, NULL, &membership, &error), error);
  for (uint32_t v = 2; v < N; ++v) assert_int_equal(membership.parts[v], membership.parts[v % 2]);
  assert_int_not_equal(membership.parts[0], membership.parts[1]);
  assert_true(membership.metis_seconds > 0);
  clv__membership_finish(clv__allocator_default(), &membership);
  clv__gnn_graph_destroy(graph);
  edges_finish(&e);
}

/* Parts have nearly the same number of in-edges, not of vertices: degrees in an R-MAT graph differ by hundreds. */
static void work_is_balanced_not_vertices(void **state) {
  (void)state;
  enum { K = 4 };
  clv__gnn_graph *graph;
  clv__membership membership;
  assert_ok(clv__gnn_graph_generate(clv__allocator_default(), 11, 16, 0, 9, &graph, &error), error);
  assert_ok(clv__membership_make(clv__allocator_default(), graph, K, 0, NULL, &membership, &error), error);
  uint64_t weights[K] = {0}, total = 0, most = 0;
  for (uint32_t v = 0; v < graph->csr.vertex_count; ++v) {
    uint64_t weight = 1 + graph->csr.offsets[v + 1] - graph->csr.offsets[v];
    weights[membership.parts[v]] += weight;
    total += weight;
  }
  for (uint32_t p = 0; p < K; ++p) most = weights[p] > most ? weights[p] : most;
  assert_true(most < total / K + total / K / 10);
  clv__membership_finish(clv__allocator_default(), &membership);
  clv__gnn_graph_destroy(graph);
}

static void limits_of_k(void **state) {
  (void)state;
  uint64_t random = 7;
  clv__gnn_graph *graph = random_graph(6, 20, &random), *none = random_graph(0, 0, &random),
                 *apart = random_graph(50, 0, &random);
  clv__membership membership;
  const clv_allocator *allocator = clv__allocator_default();
  assert_int_equal(clv__membership_make(allocator, graph, 0, 0, NULL, &membership, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv__membership_make(allocator, graph, 7, 0, NULL, &membership, &error), CLV_INVALID_ARGUMENT);
  assert_string_equal(error.message, "k = 7: a graph with 6 vertices can have 1 to 6 parts");
  assert_int_equal(clv__membership_make(allocator, none, 2, 0, NULL, &membership, &error), CLV_INVALID_ARGUMENT);
  assert_membership(graph, 6, 0);
  assert_membership(none, 1, 0);
  assert_membership(apart, 7, 0);
  assert_membership(apart, 50, 0);
  assert_ok(clv__membership_make(allocator, apart, 5, 0, NULL, &membership, &error), error);
  uint32_t counts[5] = {0};
  for (uint32_t v = 0; v < 50; ++v) ++counts[membership.parts[v]];
  for (uint32_t p = 0; p < 5; ++p) assert_int_equal(counts[p], 10);
  clv__membership_finish(allocator, &membership);
  clv__gnn_graph_destroy(graph);
  clv__gnn_graph_destroy(none);
  clv__gnn_graph_destroy(apart);
}

/* ---- METIS in its own process ---- */

static atomic_bool stop_drawing;
static atomic_int drawn;

static void *draw(void *unused) {
  (void)unused;
  while (!atomic_load(&stop_drawing)) {
    atomic_store(&drawn, rand());
    for (int i = 0; i < 50; ++i) atomic_fetch_add(&drawn, 1); /* rand()'s lock is free most of the time, as in any program */
  }
  return NULL;
}

/* METIS does not affect this process: it leaves the random numbers and signal handlers alone, and other threads' random
 * numbers do not affect its result. It prints nothing here, although METIS prints a message if a bisection is empty, as may
 * happen if k is close to n. */
static void metis_is_a_guest(void **state) {
  (void)state;
  uint64_t random = 8;
  clv__gnn_graph *graph;
  clv__membership first, second;
  struct sigaction before, after;
  pthread_t thread;
  int next[2];
  assert_ok(clv__gnn_graph_generate(clv__allocator_default(), 11, 8, 0, 3, &graph, &error), error);
  sigaction(SIGTERM, NULL, &before);
  srand(77);
  next[0] = rand();
  srand(77);
  assert_ok(clv__membership_make(clv__allocator_default(), graph, 9, 5, NULL, &first, &error), error);
  next[1] = rand();
  assert_int_equal(next[0], next[1]);
  atomic_store(&stop_drawing, false);
  assert_int_equal(pthread_create(&thread, NULL, draw, NULL), 0);
  for (int i = 0; i < 5; ++i) {
    assert_ok(clv__membership_make(clv__allocator_default(), graph, 9, 5, NULL, &second, &error), error);
    assert_memory_equal(first.parts, second.parts, first.vertex_count * sizeof *first.parts);
    clv__membership_finish(clv__allocator_default(), &second);
  }
  atomic_store(&stop_drawing, true);
  pthread_join(thread, NULL);
  sigaction(SIGTERM, NULL, &after);
  assert_ptr_equal(before.sa_handler, after.sa_handler);
  clv__membership_finish(clv__allocator_default(), &first);
  clv__gnn_graph_destroy(graph);

  fflush(stdout);
  int kept = dup(STDOUT_FILENO), file = fileno(tmpfile());
  assert_true(kept >= 0 && file >= 0 && dup2(file, STDOUT_FILENO) >= 0);
  for (uint32_t n = 2; n < 30; ++n) {
    graph = random_graph(n, 3 * n, &random);
    clv_status status = clv__membership_make(clv__allocator_default(), graph, n, 1, NULL, &first, &error);
    if (status == CLV_OK) clv__membership_finish(clv__allocator_default(), &first);
    clv__gnn_graph_destroy(graph);
  }
  fflush(stdout);
  struct stat info;
  assert_int_equal(fstat(file, &info), 0);
  dup2(kept, STDOUT_FILENO);
  close(kept);
  close(file);
  assert_int_equal(info.st_size, 0);
}

/* ---- The cache ---- */

static clv_status damage(void *self, const clv__cache_item *item, clv_error *failed) {
  char path[512];
  (void)failed;
  snprintf(path, sizeof path, "%s/%s", (const char *)self, item->name);
  assert_non_null(item->info);
  assert_non_null(strstr(item->info->description, "k 8, seed 3"));
  struct stat info;
  assert_int_equal(stat(path, &info), 0);
  FILE *file = fopen(path, "r+b");
  assert_non_null(file);
  fseek(file, info.st_size - 3, SEEK_SET);
  fputc(0x77, file);
  fclose(file);
  return CLV_OK;
}

static void metis_runs_once_for_each_k_and_seed(void **state) {
  (void)state;
  const clv_allocator *allocator = clv__allocator_default();
  clv__gnn_graph *graph, *other;
  clv__membership first, again;
  clv__cache *cache;
  char path[256];
  snprintf(path, sizeof path, "%s", in_work("cache"));
  assert_ok(clv__gnn_graph_generate(allocator, 10, 8, 0, 3, &graph, &error), error);
  assert_ok(clv__gnn_graph_generate(allocator, 10, 8, 0, 4, &other, &error), error);
  assert_ok(clv__cache_open(allocator, path, 1 << 20, true, &cache, &error), error);
  assert_ok(clv__membership_make(allocator, graph, 8, 3, cache, &first, &error), error);
  assert_true(first.metis_seconds > 0);
  assert_ok(clv__membership_make(allocator, graph, 8, 3, cache, &again, &error), error);
  assert_true(again.metis_seconds == 0 && again.from_cache && !first.from_cache);
  assert_memory_equal(first.parts, again.parts, first.vertex_count * sizeof *first.parts);
  clv__membership_finish(allocator, &again);

  /* if the cached file is damaged, METIS runs once more and the file is replaced */
  assert_ok(clv__cache_walk(cache, CLV__CACHE_HEADERS, damage, path, &error), error);
  for (int round = 0; round < 2; ++round) {
    assert_ok(clv__membership_make(allocator, graph, 8, 3, cache, &again, &error), error);
    assert_int_equal(again.metis_seconds > 0, round == 0);
    assert_memory_equal(first.parts, again.parts, first.vertex_count * sizeof *first.parts);
    clv__membership_finish(allocator, &again);
  }
  const struct {
    const clv__gnn_graph *graph;
    uint32_t k;
    uint64_t seed;
  } others[] = {{graph, 7, 3}, {graph, 8, 4}, {other, 8, 3}};
  for (size_t i = 0; i < 3; ++i) {
    assert_ok(clv__membership_make(allocator, others[i].graph, others[i].k, others[i].seed, cache, &again, &error), error);
    assert_true(again.metis_seconds > 0);
    assert_memory_not_equal(first.parts, again.parts, first.vertex_count * sizeof *first.parts);
    clv__membership_finish(allocator, &again);
  }
  clv__membership_finish(allocator, &first);
  clv__cache_close(cache);
  clv__gnn_graph_destroy(other);
  clv__gnn_graph_destroy(graph);
}

static void every_failed_allocation_gets_a_status(void **state) {
  (void)state;
  uint64_t random = 10;
  clv__gnn_graph *graph = random_graph(20, 60, &random);
  bool passed = false;
  for (size_t fail_at = 1; !passed; ++fail_at) {
    test_allocator counting;
    clv__membership membership = {0};
    clv__partitioned made = {0};
    test_allocator_init(&counting);
    counting.fail_at = fail_at;
    clv_status status = clv__membership_make(&counting.allocator, graph, 3, 0, NULL, &membership, &error);
    if (status == CLV_OK) {
      status = clv__partitioned_make(&counting.allocator, graph, &membership, &made, &error);
      if (status == CLV_OK) clv__partitioned_finish(&made);
      clv__membership_finish(&counting.allocator, &membership);
    }
    passed = counting.calls < fail_at;
    assert_int_equal(status, passed ? CLV_OK : CLV_OUT_OF_MEMORY);
    assert_int_equal(counting.live, 0);
    assert_true(fail_at < 1000);
  }
  clv__gnn_graph_destroy(graph);
}

/* ---- Known graphs, if available ---- */

static void citation_graphs(void **state) {
  (void)state;
  static const struct {
    const char *name;
    uint32_t n;
    uint64_t m;
    int64_t features;
  } known[] = {{"cora", 2708, 10556, 1433}, {"pubmed_edges", 19717, 88648, 0}};
  for (size_t i = 0; i < 2; ++i) {
    char path[512];
    snprintf(path, sizeof path, "%s/../shared/data/graphs/%s.npz", CLEAVE_SOURCE_DIR, known[i].name);
    if (access(path, R_OK) != 0) {
      print_message("skipped: there is no file %s\n", path);
      continue;
    }
    clv__gnn_graph *graph;
    clv__membership membership;
    assert_ok(clv__gnn_graph_read(clv__allocator_default(), path, &graph, &error), error);
    assert_int_equal(graph->csr.vertex_count, known[i].n);
    assert_int_equal(graph->csr.edge_count, known[i].m);
    if (known[i].features > 0) {
      assert_int_equal(graph->features.dims[1], known[i].features);
      assert_int_equal(graph->labels.dims[0], known[i].n);
    }
    for (uint32_t k = 1; k <= 32; k *= 8) {
      assert_ok(clv__membership_make(clv__allocator_default(), graph, k, 0, NULL, &membership, &error), error);
      assert_partitioned(graph, &membership);
      clv__membership_finish(clv__allocator_default(), &membership);
    }
    clv__gnn_graph_destroy(graph);
  }
}

/* With k = 1, the subgraph uses the graph's own arrays, so that the edges are not in memory twice. */
static void one_part_copies_no_edges(void **state) {
  (void)state;
  uint64_t random = 21;
  clv__gnn_graph *graph = random_graph(50, 300, &random);
  uint32_t parts[50] = {0};
  clv__membership membership = {.k = 1, .vertex_count = 50, .parts = parts};
  clv__partitioned made;
  assert_partitioned(graph, &membership);
  assert_ok(clv__partitioned_make(clv__allocator_default(), graph, &membership, &made, &error), error);
  assert_ptr_equal(made.subgraphs[0].sources, graph->csr.sources);
  assert_ptr_equal(made.subgraphs[0].offsets, graph->csr.offsets);
  clv__partitioned_finish(&made);
  parts[49] = 1;
  assert_int_equal(clv__partitioned_make(clv__allocator_default(), graph, &membership, &made, &error), CLV_INVALID_ARGUMENT);
  assert_non_null(strstr(error.message, "vertex 49 is in part 1, but there is 1 part"));
  clv__gnn_graph_destroy(graph);
}

/* ---- Memberships from files ---- */

static clv_status read_parts(const char *name, const char *text, uint32_t n, clv__membership *membership) {
  error = (clv_error){0};
  return clv__membership_read_memory(clv__allocator_default(), name, text, strlen(text), n, membership, &error);
}

/* Random memberships are read from text with white space around the numbers, with empty lines, and with or without a newline
 * at the end. */
static void parts_are_read(void **state) {
  (void)state;
  static const char *const ends[] = {"\n", "\r\n", " \t\n", "\n\n"};
  uint64_t random = 11;
  for (int round = 0; round < 60; ++round) {
    uint32_t n = 1 + (uint32_t)(test_random(&random) % 300), k = 1 + (uint32_t)(test_random(&random) % (n < 9 ? n : 9));
    uint32_t *parts = malloc(n * sizeof *parts);
    char *text = malloc(20 * (size_t)n + 20), name[32], *at = text;
    assert_true(parts != NULL && text != NULL);
    for (uint32_t v = 0; v < n; ++v) {
      parts[v] = v < k ? v : (uint32_t)(test_random(&random) % k);
      bool is_open = v + 1 == n && test_random(&random) % 2 == 0;
      at += sprintf(at, "%s%u%s", test_random(&random) % 5 == 0 ? " " : "", parts[v],
                    is_open ? "" : ends[test_random(&random) % 4]);
    }
    clv__membership membership;
    snprintf(name, sizeof name, round % 2 == 0 ? "parts" : "a.part.1/g.part.%u", k);
    assert_ok(read_parts(name, text, n, &membership), error);
    assert_true(membership.k == k && membership.vertex_count == n && membership.metis_seconds == 0);
    assert_memory_equal(membership.parts, parts, n * sizeof *parts);
    clv__membership_finish(clv__allocator_default(), &membership);
    free(parts);
    free(text);
  }
}

static void wrong_parts_are_refused(void **state) {
  (void)state;
  static const struct {
    const char *name, *text;
    uint32_t n;
    const char *told[3];
  } wrong[] = {
      {"x.txt", "0\n1\n0\n", 4, {"x.txt: ", "3 vertices", "has 4"}},
      {"x.txt", "0\n1\n0\n1\n", 3, {"x.txt: line 4", "more part numbers", "3 vertices"}},
      {"x.txt", "", 2, {"x.txt: ", "0 vertices", "has 2"}},
      {"x.txt", "0\n7\n1\n", 3, {"x.txt: line 2", "part 7 of vertex 1", "at most 3"}},
      {"x.txt", "0\n4294967296\n1\n", 3, {"line 2", "4294967296"}},
      {"x.txt", "0\n99999999999999999999999\n1\n", 3, {"line 2"}},
      {"x.txt", "0\n-1\n1\n", 3, {"line 2", "'-1' is not a valid part number"}},
      {"x.txt", "0\n1.5\n1\n", 3, {"line 2", "'1.5'"}},
      {"x.txt", "0 1\n1\n", 2, {"line 1", "'0 1'"}},
      {"x.txt", "0\n2\n2\n", 3, {"x.txt: part 1 of 3 has no vertices"}},
      {"g.part.4", "0\n1\n2\n0\n", 4, {"g.part.4: part 3 of 4 has no vertices"}},
      {"g.part.2", "0\n1\n2\n0\n", 4, {"g.part.2: line 3", "part 2 of vertex 2", "there are 2 parts"}},
      {"g.part.9", "0\n1\n", 2, {"g.part.9: ", "says 9 parts", "1 to 2"}},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    clv__membership membership;
    assert_int_equal(read_parts(wrong[i].name, wrong[i].text, wrong[i].n, &membership), CLV_INVALID_MODEL);
    assert_null(membership.parts);
    for (int t = 0; t < 3 && wrong[i].told[t] != NULL; ++t) {
      if (strstr(error.message, wrong[i].told[t]) == NULL)
        fail_msg("'%s' is not in the error message: %s", wrong[i].told[t], error.message);
    }
  }
  clv__membership membership;
  assert_int_equal(clv__membership_read(clv__allocator_default(), "no such parts", 3, &membership, &error), CLV_NOT_FOUND);
}

static void reading_parts_without_memory(void **state) {
  (void)state;
  bool passed = false;
  for (size_t fail_at = 1; !passed; ++fail_at) {
    test_allocator counting;
    clv__membership membership;
    test_allocator_init(&counting);
    counting.fail_at = fail_at;
    clv_status status = clv__membership_read_memory(&counting.allocator, "g.part.2", "0\n1\n1\n", 6, 3, &membership, &error);
    clv__membership_finish(&counting.allocator, &membership);
    passed = counting.calls < fail_at;
    assert_int_equal(status, passed ? CLV_OK : CLV_OUT_OF_MEMORY);
    assert_int_equal(counting.live, 0);
    assert_true(fail_at < 100);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reading_parts_without_memory),
      cmocka_unit_test(one_part_copies_no_edges),
      cmocka_unit_test(parts_are_read),
      cmocka_unit_test(wrong_parts_are_refused),
      cmocka_unit_test(subgraphs_are_those_of_the_definition),
      cmocka_unit_test(memberships_of_other_graphs_are_refused),
      cmocka_unit_test(the_undirected_graph_has_every_edge_once),
      cmocka_unit_test(graphs_beyond_32_bits_are_refused),
      cmocka_unit_test(small_odd_graphs_are_cut),
      cmocka_unit_test(cuts_are_good),
      cmocka_unit_test(work_is_balanced_not_vertices),
      cmocka_unit_test(limits_of_k),
      cmocka_unit_test(metis_is_a_guest),
      cmocka_unit_test(metis_runs_once_for_each_k_and_seed),
      cmocka_unit_test(every_failed_allocation_gets_a_status),
      cmocka_unit_test(citation_graphs),
  };
  return cmocka_run_group_tests(tests, make_work, remove_work);
}
