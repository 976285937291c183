/* Tests making, reading, writing and generating graphs. Every reader is compared with edges in memory, and invalid files are
 * rejected. */
#define _GNU_SOURCE /* memmem */
#include "graphs.h"

#ifdef _OPENMP
#include <omp.h>
#endif
#include <zlib.h>

#include "formats/arrays/npz.h"
#include "gnn/data/readers.h"

static clv_error error;

static clv__gnn_graph *made_of(const edges *e) {
  clv__gnn_graph *graph;
  assert_ok(clv__gnn_graph_make(clv__allocator_default(), e->n, e->m, e->sources, e->destinations, NULL, NULL, &graph, &error),
            error);
  return graph;
}

static void rows_keep_the_order_of_edges(void **state) {
  (void)state;
  uint64_t random = 1;
  static const struct {
    uint32_t n;
    uint64_t m;
  } sizes[] = {{0, 0}, {1, 0}, {1, 5}, {7, 0}, {5, 40}, {1000, 3000}, {3000, 200000}};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    edges e;
    random_edges(&e, sizes[i].n, sizes[i].m, &random);
    clv__gnn_graph *graph = made_of(&e);
    assert_rows(graph, &e);
    clv__gnn_graph_destroy(graph);
    edges_finish(&e);
  }
  clv__gnn_graph_destroy(NULL);
}

static void more_than_one_piece_of_edges(void **state) {
  (void)state;
  uint64_t random = 2;
  edges e;
  random_edges(&e, 50000, 2500000, &random);
  clv__gnn_graph *graph = made_of(&e);
  assert_rows(graph, &e);
#ifdef _OPENMP
  for (int threads = 1; threads <= 5; threads += 2) {
    omp_set_num_threads(threads);
    clv__gnn_graph *again = made_of(&e);
    assert_true(same_rows(graph, again));
    clv__gnn_graph_destroy(again);
  }
  omp_set_num_threads(omp_get_num_procs());
#endif
  clv__gnn_graph_destroy(graph);
  edges_finish(&e);
}

static void what_does_not_fit_is_refused(void **state) {
  (void)state;
  const clv_allocator *allocator = clv__allocator_default();
  const uint32_t sources[] = {0, 1, 3}, destinations[] = {0, 1, 2};
  clv__gnn_graph *graph;
  assert_int_equal(clv__gnn_graph_make(allocator, 3, 3, sources, destinations, NULL, NULL, &graph, &error), CLV_INVALID_ARGUMENT);
  assert_non_null(strstr(error.message, "edge 2 goes from 3 to 2, but there are 3 vertices"));
  assert_null(graph);
  float values[8] = {0};
  clv_tensor features = clv__tensor_make(CLV_F32, 2, (const int64_t[]){4, 2}, values);
  assert_int_equal(clv__gnn_graph_make(allocator, 3, 2, sources, destinations, &features, NULL, &graph, &error),
                   CLV_INVALID_ARGUMENT);
  assert_non_null(strstr(error.message, "f32[4,2]"));
}

/* An edge source whose second pass differs from its first, like a file that changes while it is read. */
typedef struct changing {
  clv__edge_source source;
  const uint32_t (*passes)[2][4]; /* sources and destinations of each pass */
  const size_t *counts;
  int pass;
  bool given;
} changing;

static clv_status rewind_changing(clv__edge_source *source, clv_error *failed) {
  (void)failed;
  ++((changing *)source)->pass;
  ((changing *)source)->given = false;
  return CLV_OK;
}

static clv_status next_changing(clv__edge_source *source, uint32_t *sources, uint32_t *destinations, size_t room, size_t *count,
                                clv_error *failed) {
  changing *c = (changing *)source;
  (void)failed;
  *count = c->given ? 0 : c->counts[c->pass];
  assert_true(*count <= room);
  memcpy(sources, c->passes[c->pass][0], *count * sizeof *sources);
  memcpy(destinations, c->passes[c->pass][1], *count * sizeof *destinations);
  c->given = true;
  return CLV_OK;
}

static void files_that_change_are_noticed(void **state) {
  (void)state;
  static const uint32_t passes[][2][2][4] = {{{{0, 1, 2, 0}, {0, 1, 2, 1}}, {{0, 1, 2, 0}, {1, 1, 2, 1}}},
                                             {{{0, 1, 2, 0}, {0, 1, 2, 1}}, {{0, 1, 1, 0}, {0, 1, 2, 1}}},
                                             {{{0, 1, 2, 0}, {0, 1, 2, 1}}, {{0, 1, 2, 0}, {2, 2, 2, 2}}},
                                             {{{0, 1, 2, 0}, {0, 1, 2, 1}}, {{0, 1, 9, 0}, {0, 900, 2, 1}}},
                                             {{{0, 1, 2, 0}, {0, 1, 2, 1}}, {{0, 1, 2, 0}, {0, 1, 2, 1}}}};
  static const size_t counts[][2] = {{4, 4}, {4, 4}, {4, 4}, {4, 4}, {4, 3}};
  for (size_t i = 0; i < sizeof passes / sizeof *passes; ++i) {
    changing c = {{3, 4, rewind_changing, next_changing}, passes[i], counts[i], -1, false};
    clv__csr csr;
    assert_int_equal(clv__csr_build(clv__allocator_default(), &c.source, &csr, &error), CLV_IO_ERROR);
    assert_non_null(strstr(error.message, "changed while being read"));
    assert_null(csr.offsets);
  }
}

/* Graphs with equal offsets but different sources, or different offsets but equal sources, must have different hashes, because
 * cached partitions are found by the hash. */
static void the_hash_is_of_the_whole_structure(void **state) {
  (void)state;
  static const uint32_t sources[][2] = {{0, 1}, {1, 0}, {0, 1}, {0, 1}}, destinations[][2] = {{0, 0}, {0, 0}, {0, 1}, {1, 1}};
  clv__gnn_graph *graphs[5];
  for (size_t i = 0; i < 4; ++i) graphs[i] = made_of(&(edges){2, 2, (uint32_t *)sources[i], (uint32_t *)destinations[i]});
  graphs[4] = made_of(&(edges){3, 2, (uint32_t *)sources[0], (uint32_t *)destinations[0]});
  for (size_t i = 0; i < 5; ++i) {
    for (size_t k = 0; k < i; ++k) assert_memory_not_equal(&graphs[i]->hash, &graphs[k]->hash, sizeof(clv__hash));
  }
  for (size_t i = 0; i < 5; ++i) clv__gnn_graph_destroy(graphs[i]);
}

static void every_vertex_gets_one_loop(void **state) {
  (void)state;
  uint64_t random = 3;
  edges e;
  random_edges(&e, 400, 3000, &random);
  float values[400 * 2];
  for (size_t i = 0; i < 800; ++i) values[i] = test_random_float(&random);
  clv_tensor features = clv__tensor_make(CLV_F32, 2, (const int64_t[]){400, 2}, values);
  clv__gnn_graph *graph, *looped;
  assert_ok(clv__gnn_graph_make(clv__allocator_default(), e.n, e.m, e.sources, e.destinations, &features, NULL, &graph, &error),
            error);
  assert_ok(clv__gnn_graph_with_loops(graph, &looped, &error), error);
  uint64_t loops = 0;
  for (uint32_t v = 0; v < e.n; ++v) {
    uint64_t from = graph->csr.offsets[v], count = graph->csr.offsets[v + 1] - from, start = looped->csr.offsets[v];
    uint64_t others = 0;
    for (uint64_t i = 0; i < count; ++i) {
      if (graph->csr.sources[from + i] == v)
        ++loops;
      else
        assert_int_equal(looped->csr.sources[start + others++], graph->csr.sources[from + i]);
    }
    assert_int_equal(looped->csr.sources[start + others], v);
    assert_int_equal(looped->csr.offsets[v + 1] - start, others + 1);
  }
  assert_int_equal(looped->csr.edge_count, e.m - loops + e.n);
  assert_true(loops > 50);
  assert_ptr_equal(looped->features.data, graph->features.data);
  assert_int_not_equal(memcmp(&looped->hash, &graph->hash, sizeof graph->hash), 0);
  clv__gnn_graph_destroy(looped);
  clv__gnn_graph_destroy(graph);
  edges_finish(&e);
}

/* ---- Files ---- */

static void write_file(const char *name, const void *data, size_t size_bytes) {
  assert_ok(clv__file_write(in_work(name), data, size_bytes, &error), error);
}

static void write_gzip(const char *name, const char *data, size_t size_bytes, bool in_two) {
  for (int part = 0; part < (in_two ? 2 : 1); ++part) {
    size_t half = size_bytes / 2, from = part == 1 ? half : 0, to = in_two && part == 0 ? half : size_bytes;
    gzFile file = gzopen(in_work(name), part == 0 ? "wb" : "ab");
    assert_non_null(file);
    assert_int_equal(gzwrite(file, data + from, (unsigned)(to - from)), (int)(to - from));
    assert_int_equal(gzclose(file), Z_OK);
  }
}

static clv__gnn_graph *read_whole(const char *name) {
  clv__gnn_graph *graph;
  assert_ok(clv__gnn_graph_read(clv__allocator_default(), in_work(name), &graph, &error), error);
  return graph;
}

static void assert_reads_as(const char *name, const edges *e) {
  clv__gnn_graph *graph = read_whole(name);
  assert_rows(graph, e);
  clv__gnn_graph_destroy(graph);
}

static void lists_of_edges(void **state) {
  (void)state;
  const uint32_t sources[] = {0, 4, 2, 2, 4294}, destinations[] = {1, 4, 3, 3, 0};
  const edges e = {4295, 5, (uint32_t *)sources, (uint32_t *)destinations};
  static const char text[] =
      "# a comment\n% another\r\n\n0 1\n  4\t4  \r\n2,3 # behind\n   \n2 , 3\r\n4294 0"; /* the last line has no newline */
  write_file("a.txt", text, sizeof text - 1);
  assert_reads_as("a.txt", &e);
  write_gzip("b.csv.gz", text, sizeof text - 1, false);
  assert_reads_as("b.csv.gz", &e);
  write_gzip("c.csv.gz", text, sizeof text - 1, true);
  assert_reads_as("c.csv.gz", &e);
  const edges none = {0, 0, NULL, NULL};
  write_file("empty.txt", "", 0);
  assert_reads_as("empty.txt", &none);
  write_file("comments.txt", "# 1 2\n%", 7);
  assert_reads_as("comments.txt", &none);
}

/* A list that is longer than the block that a reader reads at a time, read by several threads, with comments, compressed and
 * uncompressed. */
static void long_lists_of_edges(void **state) {
  (void)state;
  uint64_t random = 4;
  edges e;
  random_edges(&e, 70000, 900000, &random);
  for (uint64_t i = 0; i < 300000; ++i) e.sources[i] = e.destinations[i] = (uint32_t)(test_random(&random) % 10);
  e.sources[5] = e.n - 1;
  char *text = malloc(16 << 20);
  size_t used = 0;
  for (uint64_t i = 0; i < e.m; ++i) {
    used += (size_t)sprintf(text + used, "%u %u\n", e.sources[i], e.destinations[i]);
    if (i % 1000 == 7) used += (size_t)sprintf(text + used, "# %llu of them\n\n", (unsigned long long)i);
  }
  assert_true(used > 6 << 20); /* a block is 4 MiB */
#ifdef _OPENMP
  omp_set_num_threads(4);
#endif
  write_file("long.txt", text, used);
  assert_reads_as("long.txt", &e);
  write_gzip("long.gz", text, used, true);
  assert_reads_as("long.gz", &e);
  memcpy(text + used, "12 x\n", 5);
  write_file("wrong.txt", text, used + 5);
  clv__gnn_graph *graph;
  assert_int_equal(clv__gnn_graph_read(clv__allocator_default(), in_work("wrong.txt"), &graph, &error), CLV_INVALID_MODEL);
  assert_non_null(strstr(error.message, "line 901801: 'x' is not a valid destination"));
#ifdef _OPENMP
  omp_set_num_threads(omp_get_num_procs());
#endif
  free(text);
  edges_finish(&e);
}

/* An undirected graph in METIS's format, with every kind of weights. */
static void metis_files(void **state) {
  (void)state;
  static const char *const texts[] = {
      "5 4\n2 3\n1 3 4\n1 2\n2\n\n",
      "% a comment\n5 4 0\r\n2 3\r\n% inside\r\n1 3 4\r\n1 2\n 2 \n\n",
      "\n5 4 1\n2 7 3 7\n1 7 3 7 4 7\n1 7 2 7\n2 7\n\n",
      "5 4 10\n9 2 3\n9 1 3 4\n9 1 2\n9 2\n9",
      "5 4 011 2\n8 9 2 7 3 7\n8 9 1 7 3 7 4 7\n8 9 1 7 2 7\n8 9 2 7\n8 9\n",
      "5 4 100\n3 2 3\n3 1 3 4\n3 1 2\n3 2\n3\n\n\n% the end\n",
      "5 4 111 1\n3 9 2 7 3 7\n3 9 1 7 3 7 4 7\n3 9 1 7 2 7\n3 9 2 7\n3 9\n",
  };
  const uint32_t sources[] = {1, 2, 0, 2, 3, 0, 1, 1}, destinations[] = {0, 0, 1, 1, 1, 2, 2, 3};
  const edges e = {5, 8, (uint32_t *)sources, (uint32_t *)destinations};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i) {
    write_file("a.graph", texts[i], strlen(texts[i]));
    assert_reads_as("a.graph", &e);
    write_gzip("a.graph.gz", texts[i], strlen(texts[i]), true);
    assert_reads_as("a.graph.gz", &e);
  }
  write_file("none.graph", "0 0\n", 4);
  assert_reads_as("none.graph", &(const edges){0, 0, NULL, NULL});
  write_file("alone.graph", "2 0\n\n\n", 6);
  assert_reads_as("alone.graph", &(const edges){2, 0, NULL, NULL});
}

/* A vertex may have so many neighbours that its line is longer than the block that the reader reads at a time. */
static void long_lines_of_metis(void **state) {
  (void)state;
  uint32_t n = 700000;
  edges e = {n, 2 * ((uint64_t)n - 1), malloc(2 * (size_t)n * sizeof(uint32_t)), malloc(2 * (size_t)n * sizeof(uint32_t))};
  char *text = malloc(16 << 20);
  size_t used = (size_t)sprintf(text, "%u %u\n", n, n - 1);
  for (uint32_t v = 1; v < n; ++v) {
    used += (size_t)sprintf(text + used, " %u", v + 1);
    e.sources[v - 1] = v;
    e.destinations[v - 1] = 0;
  }
  text[used++] = '\n';
  for (uint32_t v = 1; v < n; ++v) {
    used += (size_t)sprintf(text + used, "1\n");
    e.sources[n - 2 + v] = 0;
    e.destinations[n - 2 + v] = v;
  }
  write_file("hub.graph", text, used);
  assert_reads_as("hub.graph", &e);
  free(text);
  edges_finish(&e);
}

typedef struct wrong {
  const char *name, *text, *part;
} wrong;

static void wrong_text_is_refused(void **state) {
  (void)state;
  static const wrong files[] = {
      {"a.txt", "0 1\n1 -2\n", "line 2: '-2' is not a valid destination"},
      {"a.txt", "0 1\n\n# c\n1.5 2\n", "line 4: '1.5' is not a valid source"},
      {"a.txt", "0 1 0.5\n", "'0.5' after source and destination"},
      {"a.txt", "0 1\n7\n", "line 2: destination is missing"},
      {"a.txt", "0 1e3\n", "'1e3' is not a valid destination"},
      {"a.txt", "0 4294967295\n", "'4294967295' is not a valid destination: vertices are whole numbers from 0 to 4294967294"},
      {"a.txt", "0 99999999999999999999999999\n", "is not a valid destination"},
      {"a.txt", "0 4294967294\n", "renumber the vertices"},
      {"a.txt", "nodes edges\n", "'nodes' is not a valid source"},
      {"a.txt", "\x1f\x8b\x08", "truncated"},
      {"a.txt", "\x1f\x8b\x09zzzzzzzzzz", "gzip: damaged"},
      {"a.npz", "0 1\n", "not an npz file"},
      {"a.npz", "PK\3\4zzzz", "no zip directory"},
      {"a.graph", "", "line 1: 0 numbers in the header"},
      {"a.graph", "% c\n5\n", "line 2: 1 numbers in the header"},
      {"a.graph", "2 1 0 1 5\n2\n1\n", "a fifth number 5 in the header"},
      {"a.graph", "2 x\n2\n1\n", "line 1: 'x' is not a whole number"},
      {"a.graph", "2 -1\n2\n1\n", "'-1' is not a whole number"},
      {"a.graph", "2 1 2\n2\n1\n", "format 2 in the header"},
      {"a.graph", "2 1 20\n2\n1\n", "format 20 in the header"},
      {"a.graph", "2 1 0 3\n2\n1\n", "weights per vertex 3 in the header"},
      {"a.graph", "5000000000 1\n2\n1\n", "vertices 5000000000 in the header"},
      {"a.graph", "4000000000 1\n2\n1\n", "the header says 4000000000 vertices, but there are lines for 2"},
      {"a.graph", "2 9000000000000000000\n2\n1\n", "but 2 neighbours are listed"},
      {"a.graph", "2 1\n2\n\n", "says 1 edges, which appear in the lines of both ends, but 1 neighbours are listed"},
      {"a.graph", "2 1\n2\n1\n1\n", "line 4: more lines than the 2 vertices"},
      {"a.graph", "2 1\n3\n1\n", "line 2: vertex 1 has the neighbour 3, but vertices are 1 to 2"},
      {"a.graph", "2 1\n2\n0\n", "line 3: vertex 2 has the neighbour 0"},
      {"a.graph", "2 1 1\n2 5\n1\n", "vertex 2: its last neighbour has no edge weight"},
      {"a.graph", "2 1 10 2\n1 1 2\n1\n", "vertex 2 has 1 of the 2 sizes and weights"},
      {"a.graph", "2 1\n2.0\n1\n", "line 2: '2.0' is not a whole number"},
      {"a.graph", "2 1\n2\n99999999999999999999999\n", "is not a whole number"},
  };
  for (size_t i = 0; i < sizeof files / sizeof *files; ++i) {
    clv__gnn_graph *graph;
    size_t length = strlen(files[i].text);
    write_file(files[i].name, files[i].text, length);
    clv_status from_file = clv__gnn_graph_read(clv__allocator_default(), in_work(files[i].name), &graph, &error);
    if (from_file != CLV_INVALID_MODEL || strstr(error.message, files[i].part) == NULL ||
        strncmp(error.message, in_work(files[i].name), strlen(in_work(files[i].name))) != 0) {
      fail_msg("%s: expected an error with '%s', but %s", files[i].text, files[i].part,
               from_file == CLV_OK ? "it was read" : error.message);
    }
    assert_null(graph);
    assert_int_equal(clv__gnn_graph_read_memory(clv__allocator_default(), files[i].name, files[i].text, length, &graph, &error),
                     CLV_INVALID_MODEL);
    assert_non_null(strstr(error.message, files[i].part));
  }
  clv__gnn_graph *graph;
  assert_int_equal(clv__gnn_graph_read(clv__allocator_default(), in_work("absent"), &graph, &error), CLV_NOT_FOUND);
  assert_int_equal(clv__gnn_graph_read(clv__allocator_default(), work, &graph, &error), CLV_INVALID_ARGUMENT);
}

static void cut_off_gzip_is_refused(void **state) {
  (void)state;
  char text[4000];
  size_t used = 0;
  clv_error own = {0};
  for (uint32_t i = 0; used < 3900; ++i) used += (size_t)sprintf(text + used, "%u %u\n", i * 7919 % 1000, i * 104729 % 1000);
  write_gzip("whole.gz", text, used, false);
  clv__file_map map;
  assert_ok(clv__file_map_open(in_work("whole.gz"), &map, &error), error);
  for (size_t length = 2; length < map.size_bytes; length += 1 + length / 16) {
    clv__gnn_graph *graph;
    assert_int_equal(clv__gnn_graph_read_memory(clv__allocator_default(), "x", map.data, length, &graph, &own),
                     CLV_INVALID_MODEL);
    assert_non_null(strstr(own.message, "gzip"));
  }
  clv__file_map_close(&map);
}

/* ---- npz ---- */

static void assert_features(const clv__gnn_graph *graph, const float *expected, size_t count) {
  size_t found;
  assert_int_equal(graph->features.dtype, CLV_F32);
  assert_true(clv__tensor_count(&graph->features, &found) && found == count);
  assert_memory_equal(graph->features.data, expected, count * sizeof *expected);
}

static void npz_goes_round(void **state) {
  (void)state;
  uint64_t random = 5;
  edges e;
  random_edges(&e, 3000, 150000, &random);
  float *values = malloc(3000 * 40 * sizeof *values);
  int64_t labels[3000];
  for (size_t i = 0; i < 3000 * 40; ++i) values[i] = test_random_float(&random);
  for (size_t i = 0; i < 3000; ++i) labels[i] = (int64_t)(test_random(&random) % 9);
  clv_tensor x = clv__tensor_make(CLV_F32, 2, (const int64_t[]){3000, 40}, values);
  clv_tensor y = clv__tensor_make(CLV_I64, 1, (const int64_t[]){3000}, labels);
  test_allocator counting;
  test_allocator_init(&counting);
  clv__gnn_graph *graph, *again;
  assert_ok(clv__gnn_graph_make(&counting.allocator, e.n, e.m, e.sources, e.destinations, &x, &y, &graph, &error), error);
  assert_ok(clv__gnn_graph_write(graph, in_work("round.npz"), &error), error);
  assert_ok(clv__gnn_graph_read(&counting.allocator, in_work("round.npz"), &again, &error), error);
  assert_true(same_rows(graph, again));
  assert_features(again, values, 3000 * 40);
  assert_memory_equal(again->labels.data, labels, sizeof labels);
  clv__gnn_graph_destroy(again);
  clv__gnn_graph_destroy(graph);
  assert_int_equal(counting.live, 0);
  free(values);
  edges_finish(&e);
}

/* Writes the arrays to an npz file and reads it as a graph. */
static clv_status read_arrays(const char *const *names, const clv_tensor *arrays, size_t count, bool deflate,
                              clv__gnn_graph **graph) {
  assert_ok(clv__npz_write(clv__allocator_default(), in_work("a.npz"), names, arrays, count, deflate, &error), error);
  return clv__gnn_graph_read(clv__allocator_default(), in_work("a.npz"), graph, &error);
}

static void every_integer_type_is_read(void **state) {
  (void)state;
  static const clv_dtype dtypes[] = {CLV_I8, CLV_U8, CLV_I16, CLV_U16, CLV_I32, CLV_U32, CLV_I64, CLV_U64};
  uint64_t random = 6;
  edges e;
  random_edges(&e, 120, 90000, &random);
  e.sources[0] = 119;
  uint64_t *data = calloc(2 * e.m, sizeof *data);
  for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; ++d) {
    clv_tensor edge_index = clv__tensor_make(dtypes[d], 2, (const int64_t[]){2, (int64_t)e.m}, data);
    for (size_t i = 0; i < e.m; ++i) {
      clv__tensor_put(&edge_index, i, 0, e.sources[i], false);
      clv__tensor_put(&edge_index, e.m + i, 0, e.destinations[i], false);
    }
    for (int deflate = 0; deflate < 2; ++deflate) {
      clv__gnn_graph *graph;
      assert_ok(read_arrays((const char *const[]){"edge_index"}, &edge_index, 1, deflate != 0, &graph), error);
      assert_rows(graph, &e);
      clv__gnn_graph_destroy(graph);
    }
  }
  free(data);
  edges_finish(&e);
}

static void npz_with_only_a_count(void **state) {
  (void)state;
  int64_t count = 7, edge_data[4] = {0, 1, 2, 3};
  float unused[1];
  const clv_tensor arrays[] = {clv__tensor_make(CLV_I64, 2, (const int64_t[]){2, 2}, edge_data),
                               clv__tensor_make(CLV_I64, 0, NULL, &count),
                               clv__tensor_make(CLV_F32, 2, (const int64_t[]){7, 0}, unused)};
  const char *const names[] = {"edge_index", "num_nodes", "x"};
  const uint32_t sources[] = {0, 1}, destinations[] = {2, 3};
  for (size_t arrays_given = 1; arrays_given <= 3; ++arrays_given) {
    clv__gnn_graph *graph;
    assert_ok(read_arrays(names, arrays, arrays_given, false, &graph), error);
    assert_rows(graph, &(const edges){arrays_given == 1 ? 4 : 7, 2, (uint32_t *)sources, (uint32_t *)destinations});
    clv__gnn_graph_destroy(graph);
  }
  clv_tensor none = clv__tensor_make(CLV_I64, 2, (const int64_t[]){2, 0}, edge_data);
  clv__gnn_graph *graph;
  assert_ok(read_arrays(names, &none, 1, true, &graph), error);
  assert_int_equal(graph->csr.vertex_count, 0);
  clv__gnn_graph_destroy(graph);
}

/* NumPy stores transposed arrays in Fortran order, column by column. Here both arrays are stored that way. */
static void fortran_order_is_read(void **state) {
  (void)state;
  enum { N = 700, F = 150, M = 100000 };
  uint64_t random = 7;
  edges e;
  random_edges(&e, N, M, &random);
  static const char *const heads[] = {"{'descr': '<i4'", "{'descr': '<f4'"};
  float *values = malloc(N * F * sizeof *values), *turned = malloc(N * F * sizeof *turned);
  uint32_t *pairs = malloc(2 * M * sizeof *pairs);
  for (size_t i = 0; i < M; ++i) {
    pairs[2 * i] = e.sources[i];
    pairs[2 * i + 1] = e.destinations[i];
  }
  for (size_t r = 0; r < N; ++r) {
    for (size_t c = 0; c < F; ++c) turned[c * N + r] = values[r * F + c] = test_random_float(&random);
  }
  clv__npz_writer *writer;
  /* the writer supports only row-major order, so the test edits the headers */
  clv__text file;
  clv__text_init(&file, clv__allocator_default());
  assert_ok(clv__npz_writer_open(clv__allocator_default(), in_work("f.npz"), false, &writer, &error), error);
  for (int which = 0; which < 2; ++which) {
    const int64_t dims[] = {which == 0 ? 2 : N, which == 0 ? M : F};
    clv_tensor type = clv__tensor_make(which == 0 ? CLV_I32 : CLV_F32, 2, dims, which == 0 ? (void *)pairs : (void *)turned);
    assert_ok(clv__npz_writer_put(writer, which == 0 ? "edge_index" : "x", &type, &error), error);
  }
  assert_ok(clv__npz_writer_commit(writer, &error), error);
  clv__npz_writer_close(writer);
  clv__file_map map;
  assert_ok(clv__file_map_open(in_work("f.npz"), &map, &error), error);
  clv__text_append_bytes(&file, map.data, map.size_bytes);
  clv__file_map_close(&map);
  for (int which = 0; which < 2; ++which) { /* change fortran_order from False to True; the checksums then no longer match */
    char *at = memmem(file.data, file.size_bytes, heads[which], 15);
    assert_non_null(at);
    char *order = memmem(at, 128, "False", 5);
    assert_non_null(order);
    memcpy(order, "True ", 5);
  }
  clv__gnn_graph *graph;
  assert_int_equal(clv__gnn_graph_read_memory(clv__allocator_default(), "f.npz", file.data, file.size_bytes, &graph, &error),
                   CLV_INVALID_MODEL);
  assert_non_null(strstr(error.message, "checksum"));
  for (int which = 0; which < 2; ++which) {
    char *at = memmem(file.data, file.size_bytes, heads[which], 15);
    const uint8_t *npy = (const uint8_t *)at - 10;
    size_t npy_bytes = 128 + (which == 0 ? sizeof *pairs * 2 * M : sizeof *turned * N * F);
    uint32_t crc = (uint32_t)crc32(crc32(0, NULL, 0), npy, (uInt)npy_bytes);
    const char *name = which == 0 ? "edge_index.npy" : "x.npy";
    for (char *record = file.data; record + 60 < file.data + file.size_bytes; ++record) {
      if (memcmp(record, "PK\3\4", 4) == 0 && memcmp(record + 30, name, strlen(name)) == 0) memcpy(record + 14, &crc, 4);
      if (memcmp(record, "PK\1\2", 4) == 0 && memcmp(record + 46, name, strlen(name)) == 0) memcpy(record + 16, &crc, 4);
    }
  }
  assert_ok(clv__gnn_graph_read_memory(clv__allocator_default(), "f.npz", file.data, file.size_bytes, &graph, &error), error);
  assert_rows(graph, &e);
  assert_features(graph, values, N * F);
  clv__gnn_graph_destroy(graph);
  clv__text_finish(&file);
  free(values);
  free(turned);
  free(pairs);
  edges_finish(&e);
}

static void wrong_arrays_are_refused(void **state) {
  (void)state;
  int64_t edge_data[] = {0, 1, 2, 2, 1, 0}, bad_edges[] = {0, 1, 2, 2, -1, 0}, far_edges[] = {0, 1, 2, 2, 3, 0}, three = 3,
          many = 4000000000, labels[] = {0, 1, 2, 3};
  uint64_t large[] = {0, 1, UINT64_MAX, 2, 1, 0}, large_labels[] = {1, 2, UINT64_MAX};
  float floats[] = {0, 1, 2, 2, 1, 0}, nan_values[] = {0, 1, 2, -__builtin_nanf(""), 4, 5};
  double huge_values[] = {0, 1, 2, 3, 1e300, 5};
#define ARRAY(type, data, rank, ...) clv__tensor_make(type, rank, (const int64_t[]){__VA_ARGS__}, data)
  clv_tensor edges3 = ARRAY(CLV_I64, edge_data, 2, 2, 3);
  const struct {
    clv_tensor edge_index;
    const char *name; /* name of a second array; NULL: none */
    clv_tensor array;
    const char *part;
  } files[] = {
      {ARRAY(CLV_F32, floats, 2, 2, 3), NULL, {0}, "array 'edge_index': it is f32[2,3]; expected integers [2,m]"},
      {ARRAY(CLV_I64, edge_data, 2, 3, 2), NULL, {0}, "transpose it"},
      {ARRAY(CLV_I64, edge_data, 1, 6), NULL, {0}, "it is i64[6]"},
      {ARRAY(CLV_I64, bad_edges, 2, 2, 3), NULL, {0}, "edge 1 has the destination -1, but ids are 0 to 4294967294"},
      {ARRAY(CLV_U64, large, 2, 2, 3), NULL, {0}, "edge 2 has the source 18446744073709551615"},
      {ARRAY(CLV_I64, far_edges, 2, 2, 3), "num_nodes", ARRAY(CLV_I64, &three, 1, 1),
       "edge 1 has the destination 3, but there are 3 vertices"},
      {edges3, "num_nodes", ARRAY(CLV_I64, &many, 1, 1), "4000000000 vertices without features for 3 edges"},
      {edges3, "num_nodes", ARRAY(CLV_I64, edge_data, 1, 2), "array 'num_nodes' is i64[2]; expected one integer"},
      {edges3, "num_nodes", ARRAY(CLV_I64, bad_edges + 4, 1, 1), "array 'num_nodes': -1 vertices"},
      {edges3, "x", ARRAY(CLV_F32, nan_values, 2, 3, 2), "array 'x': vertex 1: feature 1 is nan, but must be finite"},
      {edges3, "x", ARRAY(CLV_F64, huge_values, 2, 3, 2), "vertex 2: feature 0 is 1e+300, but must be finite in f32"},
      {edges3, "x", ARRAY(CLV_F32, floats, 1, 3), "array 'x': it is f32[3]; expected numbers [n,F]"},
      {edges3, "x", ARRAY(CLV_F32, floats, 2, 2, 3), "edge 2 has the source 2, but there are 2 vertices"},
      {edges3, "x", ARRAY(CLV_F32, floats, 2, 4000000000, 0), "4000000000 vertices without features"},
      {edges3, "x", ARRAY(CLV_F32, floats, 2, 5000000000, 0), "5000000000 vertices; at most"},
      {edges3, "y", ARRAY(CLV_I64, labels, 1, 4), "array 'y' is i64[4]; expected integers [3], one per vertex"},
      {edges3, "y", ARRAY(CLV_F32, floats, 1, 3), "array 'y' is f32[3]"},
      {edges3, "y", ARRAY(CLV_U64, large_labels, 1, 3), "the label of vertex 2 does not fit"},
  };
#undef ARRAY
  for (size_t i = 0; i < sizeof files / sizeof *files; ++i) {
    const char *const names[] = {"edge_index", files[i].name};
    const clv_tensor arrays[] = {files[i].edge_index, files[i].array};
    for (int deflate = 0; deflate < 2; ++deflate) {
      clv__gnn_graph *graph;
      clv_status status = read_arrays(names, arrays, files[i].name == NULL ? 1 : 2, deflate != 0, &graph);
      if (status != CLV_INVALID_MODEL || strstr(error.message, files[i].part) == NULL ||
          strncmp(error.message, work, strlen(work)) != 0 || strstr(error.message + 1, work) != NULL) {
        fail_msg("file %zu: %s; expected an error with '%s'", i, status == CLV_OK ? "was read" : error.message, files[i].part);
      }
      assert_null(graph);
    }
  }
  const char *const other[] = {"edges"};
  clv__gnn_graph *graph;
  assert_int_equal(read_arrays(other, &edges3, 1, false, &graph), CLV_NOT_FOUND);
  assert_non_null(strstr(error.message, "no array 'edge_index'; the arrays are: edges"));
}

/* A truncated file is rejected. A file with one flipped bit is rejected or gives the same graph. */
static void damaged_npz_is_refused(void **state) {
  (void)state;
  uint64_t random = 8;
  edges e;
  random_edges(&e, 300, 2000, &random);
  clv__gnn_graph *graph = made_of(&e), *again;
  assert_ok(clv__gnn_graph_write(graph, in_work("d.npz"), &error), error);
  clv__file_map map;
  assert_ok(clv__file_map_open(in_work("d.npz"), &map, &error), error);
  uint8_t *copy = malloc(map.size_bytes);
  for (size_t length = 4; length < map.size_bytes; length += 1 + length / 7) {
    assert_int_not_equal(clv__gnn_graph_read_memory(clv__allocator_default(), "d.npz", map.data, length, &again, &error), CLV_OK);
  }
  for (int i = 0; i < 300; ++i) {
    memcpy(copy, map.data, map.size_bytes);
    copy[test_random(&random) % map.size_bytes] ^= (uint8_t)(1u << test_random(&random) % 8);
    if (clv__gnn_graph_read_memory(clv__allocator_default(), "d.npz", copy, map.size_bytes, &again, &error) != CLV_OK) continue;
    assert_true(same_rows(graph, again)); /* the file is accepted only if the flipped bit is in an unused part */
    clv__gnn_graph_destroy(again);
  }
  free(copy);
  clv__file_map_close(&map);
  clv__gnn_graph_destroy(graph);
  edges_finish(&e);
}

static void every_failed_allocation_gets_a_status(void **state) {
  (void)state;
  float values[6] = {0, 1, 2, 3, 4, 5};
  int64_t labels[] = {3, 4, 5};
  const uint32_t sources[] = {0, 1, 2, 2}, destinations[] = {1, 2, 0, 1};
  clv_tensor x = clv__tensor_make(CLV_F32, 2, (const int64_t[]){3, 2}, values);
  clv_tensor y = clv__tensor_make(CLV_I64, 1, (const int64_t[]){3}, labels);
  static const char list[] = "0 1\n1 2\n2 0\n", metis[] = "2 1\n2\n1\n";
  clv__gnn_graph *graph, *looped;
  assert_ok(clv__gnn_graph_make(clv__allocator_default(), 3, 4, sources, destinations, &x, &y, &graph, &error), error);
  assert_ok(clv__gnn_graph_write(graph, in_work("m.npz"), &error), error);
  clv__gnn_graph_destroy(graph);
  write_gzip("m.gz", list, sizeof list - 1, false);
  for (int what = 0; what < 6; ++what) {
    bool passed = false;
    for (size_t fail_at = 1; !passed; ++fail_at) {
      test_allocator counting;
      test_allocator_init(&counting);
      counting.fail_at = fail_at;
      const clv_allocator *a = &counting.allocator;
      clv_status status;
      graph = looped = NULL;
      if (what == 0) status = clv__gnn_graph_read(a, in_work("m.npz"), &graph, &error);
      if (what == 1) status = clv__gnn_graph_read(a, in_work("m.gz"), &graph, &error);
      if (what == 2) status = clv__gnn_graph_read_memory(a, "m.graph", metis, sizeof metis - 1, &graph, &error);
      if (what == 3) status = clv__gnn_graph_make(a, 3, 4, sources, destinations, &x, &y, &graph, &error);
      if (what == 4) status = clv__gnn_graph_generate(a, 4, 3, 2, 1, &graph, &error);
      if (what == 5) {
        status = clv__gnn_graph_make(a, 3, 4, sources, destinations, &x, &y, &graph, &error);
        if (status == CLV_OK) status = clv__gnn_graph_with_loops(graph, &looped, &error);
        if (status == CLV_OK) status = clv__gnn_graph_write(graph, in_work("m2.npz"), &error);
      }
      passed = counting.calls < fail_at;
      assert_int_equal(status, passed ? CLV_OK : CLV_OUT_OF_MEMORY);
      clv__gnn_graph_destroy(looped);
      clv__gnn_graph_destroy(graph);
      assert_int_equal(counting.live, 0);
      assert_true(fail_at < 1000);
    }
  }
}

/* ---- R-MAT ---- */

static void generated_graphs_are_seeded(void **state) {
  (void)state;
  const clv_allocator *allocator = clv__allocator_default();
  clv__gnn_graph *a, *b, *c;
  assert_ok(clv__gnn_graph_generate(allocator, 14, 16, 3, 42, &a, &error), error);
  assert_int_equal(a->csr.vertex_count, 1 << 14);
  assert_int_equal(a->csr.edge_count, 16 << 14);
#ifdef _OPENMP
  omp_set_num_threads(3);
#endif
  assert_ok(clv__gnn_graph_generate(allocator, 14, 16, 3, 42, &b, &error), error);
#ifdef _OPENMP
  omp_set_num_threads(omp_get_num_procs());
#endif
  assert_ok(clv__gnn_graph_generate(allocator, 14, 16, 0, 43, &c, &error), error);
  assert_true(same_rows(a, b));
  assert_false(same_rows(a, c));
  assert_memory_equal(a->features.data, b->features.data, (3 << 14) * sizeof(float));
  assert_int_equal(c->features.dtype, CLV_DTYPE_NONE);
  double sum = 0;
  const float *values = a->features.data;
  for (size_t i = 0; i < 3 << 14; ++i) {
    assert_true(values[i] >= -1 && values[i] < 1);
    sum += values[i];
  }
  assert_true(sum / (3 << 14) < 0.02 && sum / (3 << 14) > -0.02);
  clv__gnn_graph_destroy(a);
  clv__gnn_graph_destroy(b);
  clv__gnn_graph_destroy(c);
  assert_int_equal(clv__gnn_graph_generate(allocator, 32, 1, 0, 0, &a, &error), CLV_INVALID_ARGUMENT);
  assert_non_null(strstr(error.message, "above the maximum of 31"));
  assert_ok(clv__gnn_graph_generate(allocator, 0, 5, 0, 0, &a, &error), error);
  assert_int_equal(a->csr.edge_count, 5);
  clv__gnn_graph_destroy(a);
  assert_ok(clv__gnn_graph_generate(allocator, 3, 0, 0, 0, &a, &error), error);
  assert_int_equal(a->csr.edge_count, 0);
  clv__gnn_graph_destroy(a);
}

/* In R-MAT, each bit of an edge's source id is 0 with probability a + b = 0.76, and each bit of its destination id with
 * probability a + c = 0.76. This determines the moments of the degrees, however the ids are shuffled: the sum of squared
 * in-degrees divided by m^2 tends to ((a + c)^2 + (b + d)^2)^scale. */
static void generated_degrees_are_those_of_rmat(void **state) {
  (void)state;
  enum { SCALE = 12, EDGES = 64 };
  clv__gnn_graph *graph;
  assert_ok(clv__gnn_graph_generate(clv__allocator_default(), SCALE, EDGES, 0, 7, &graph, &error), error);
  double squares_in = 0, squares_out = 0, m = (double)graph->csr.edge_count, expected = m * m;
  uint32_t *out = calloc(1 << SCALE, sizeof *out), best = 0;
  for (uint32_t v = 0; v < 1 << SCALE; ++v) {
    double degree = (double)(graph->csr.offsets[v + 1] - graph->csr.offsets[v]);
    squares_in += degree * (degree - 1);
    for (uint64_t e = graph->csr.offsets[v]; e < graph->csr.offsets[v + 1]; ++e) ++out[graph->csr.sources[e]];
  }
  for (uint32_t v = 0; v < 1 << SCALE; ++v) {
    squares_out += (double)out[v] * (out[v] - 1.0);
    if (out[v] > out[best]) best = v;
  }
  for (int level = 0; level < SCALE; ++level) expected *= 0.76 * 0.76 + 0.24 * 0.24;
  assert_true(squares_in > 0.9 * expected && squares_in < 1.1 * expected);
  assert_true(squares_out > 0.9 * expected && squares_out < 1.1 * expected);
  assert_true(best != 0 && best != (1 << SCALE) - 1); /* ids are shuffled: the hub is neither the first nor the last vertex */
  free(out);
  clv__gnn_graph_destroy(graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rows_keep_the_order_of_edges),
      cmocka_unit_test(more_than_one_piece_of_edges),
      cmocka_unit_test(what_does_not_fit_is_refused),
      cmocka_unit_test(files_that_change_are_noticed),
      cmocka_unit_test(the_hash_is_of_the_whole_structure),
      cmocka_unit_test(every_vertex_gets_one_loop),
      cmocka_unit_test(lists_of_edges),
      cmocka_unit_test(long_lists_of_edges),
      cmocka_unit_test(metis_files),
      cmocka_unit_test(long_lines_of_metis),
      cmocka_unit_test(wrong_text_is_refused),
      cmocka_unit_test(cut_off_gzip_is_refused),
      cmocka_unit_test(npz_goes_round),
      cmocka_unit_test(every_integer_type_is_read),
      cmocka_unit_test(npz_with_only_a_count),
      cmocka_unit_test(fortran_order_is_read),
      cmocka_unit_test(wrong_arrays_are_refused),
      cmocka_unit_test(damaged_npz_is_refused),
      cmocka_unit_test(every_failed_allocation_gets_a_status),
      cmocka_unit_test(generated_graphs_are_seeded),
      cmocka_unit_test(generated_degrees_are_those_of_rmat),
  };
  return cmocka_run_group_tests(tests, make_work, remove_work);
}
