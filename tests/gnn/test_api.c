/* Tests cleave/gnn.h as a program uses it: graphs from arrays, parts, models, plans and runs, their documents, and bad input. */
#include <jansson.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "cleave/cleave.h"
#include "support.h"

#define MODELS CLEAVE_SOURCE_DIR "/tests/gnn/models/"

static char work[64];
static test_allocator counting;
static clv_context *context;

static const char *in_work(const char *name) {
  static char path[256];
  snprintf(path, sizeof path, "%s/%s", work, name);
  return path;
}

static int set_up(void **state) {
  clv_error error = {0};
  clv_context_options options = CLV_CONTEXT_OPTIONS_INIT;
  (void)state;
  strcpy(work, "/tmp/cleave-gnn-api-XXXXXX");
  test_allocator_init(&counting);
  options.allocator = &counting.allocator;
  options.cache_directory = "";
  return mkdtemp(work) == NULL || clv_context_create(&options, &context, &error) != CLV_OK ? -1 : 0;
}

static int tear_down(void **state) {
  char line[128];
  (void)state;
  clv_context_destroy(context);
  snprintf(line, sizeof line, "rm -r '%s'", work);
  return counting.live != 0 || system(line) != 0;
}

static clv_devices *open_devices(const char *list) {
  /* A virtual NPU with memory of its own that runs all operators, also those on sparse data. */
  static const char *const spec = "{\"name\": \"whole\", \"static_shapes\": true, \"max_rank\": 4, \"operators\": \"all\"}";
  clv_error error = {0};
  clv_devices *devices;
  clv_devices_options options = CLV_DEVICES_OPTIONS_INIT;
  options.list = list;
  options.thread_count = 2;
  options.npu_specs = &spec;
  options.npu_spec_count = 1;
  assert_ok(clv_devices_open(context, &options, &devices, &error), error);
  return devices;
}

static void expect_error(clv_status is, clv_status wanted, const clv_error *error, const char *part, const char *what) {
  if (is != wanted || strstr(error->message, part) == NULL)
    fail_msg("%s: expected %s with '%s'; it is %s: %s", what, clv_status_name(wanted), part, clv_status_name(is), error->message);
}

static void expect_parts(const char *text, const char *const *parts) {
  for (; *parts != NULL; ++parts) {
    if (strstr(text, *parts) == NULL) fail_msg("the text lacks '%s':\n%s", *parts, text);
  }
}

/* ---- Graphs from arrays ---- */

/* 0 -> 1 twice, 1 -> 2, 2 -> 0, 4 -> 4, 3 -> 0; vertex 5 has no edges. */
enum { N = 6, M = 6, F = 2 };
static const int64_t sources[M] = {0, 0, 1, 2, 4, 3}, destinations[M] = {1, 1, 2, 0, 4, 0};
static const int64_t row_offsets[N + 1] = {0, 2, 4, 5, 5, 6, 6}, row_sources[M] = {2, 3, 0, 0, 1, 4};
static float numbers[N * F] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};

static clv_tensor matrix(clv_dtype dtype, int64_t rows, int64_t columns, void *data) {
  return clv__tensor_make(dtype, 2, (const int64_t[]){rows, columns}, data);
}

static clv_gnn_graph *make_graph(const clv_gnn_arrays *arrays) {
  clv_error error = {0};
  clv_gnn_graph *graph;
  assert_ok(clv_gnn_graph_make(context, arrays, &graph, &error), error);
  return graph;
}

static clv_gnn_graph_info info_of(const clv_gnn_graph *graph) {
  clv_gnn_graph_info info = {.struct_size = sizeof info};
  clv_gnn_graph_get_info(graph, &info);
  return info;
}

static void check_rows(const clv_gnn_graph *graph) {
  const clv_gnn_graph_info info = info_of(graph);
  assert_int_equal(info.vertex_count, N);
  assert_int_equal(info.edge_count, M);
  for (int v = 0; v <= N; ++v) assert_int_equal(info.offsets[v], row_offsets[v]);
  for (int e = 0; e < M; ++e) assert_int_equal(info.sources[e], row_sources[e]);
}

static void pairs_and_rows_give_the_same_graph(void **state) {
  (void)state;
  clv_gnn_arrays arrays = CLV_GNN_ARRAYS_INIT;
  clv_tensor features = matrix(CLV_F32, N, F, numbers);
  arrays.edge_count = M;
  arrays.sources = sources, arrays.destinations = destinations;
  arrays.vertex_count = N;
  clv_gnn_graph *pairs = make_graph(&arrays);
  check_rows(pairs);
  assert_string_equal(info_of(pairs).name, "graph");
  assert_int_equal(info_of(pairs).feature_count, 0);
  assert_int_equal(info_of(pairs).features.dtype, CLV_DTYPE_NONE);
  arrays.vertex_count = 0; /* the largest id is 4 */
  clv_gnn_graph *smaller = make_graph(&arrays);
  assert_int_equal(info_of(smaller).vertex_count, 5);
  arrays.features = &features; /* which has six rows */
  arrays.name = "ring";
  clv_gnn_graph *featured = make_graph(&arrays);
  check_rows(featured);
  assert_string_equal(info_of(featured).name, "ring");
  arrays.destinations = NULL;
  arrays.offsets = row_offsets, arrays.sources = row_sources;
  clv_gnn_graph *rows = make_graph(&arrays);
  check_rows(rows);
  assert_string_equal(info_of(rows).hash, info_of(pairs).hash);
  assert_string_not_equal(info_of(smaller).hash, info_of(pairs).hash);
  clv_gnn_graph_destroy(rows);
  clv_gnn_graph_destroy(featured);
  clv_gnn_graph_destroy(smaller);
  clv_gnn_graph_destroy(pairs);
}

static void features_are_copied_or_borrowed(void **state) {
  (void)state;
  double doubles[N * F];
  int64_t labels[N] = {5, 4, 3, 2, 1, 0};
  clv_error error = {0};
  for (int i = 0; i < N * F; ++i) doubles[i] = numbers[i];
  clv_tensor features = matrix(CLV_F32, N, F, numbers), wide = matrix(CLV_F64, N, F, doubles);
  clv_tensor label = clv__tensor_make(CLV_I64, 1, (const int64_t[]){N}, labels);
  clv_gnn_arrays arrays = CLV_GNN_ARRAYS_INIT;
  arrays.vertex_count = N;
  arrays.features = &features;
  arrays.labels = &label;
  clv_gnn_graph *copied = make_graph(&arrays);
  arrays.features_ownership = CLV_BORROW;
  clv_gnn_graph *borrowed = make_graph(&arrays);
  assert_ptr_equal(info_of(borrowed).features.data, numbers);
  assert_ptr_not_equal(info_of(copied).features.data, numbers);
  assert_ptr_not_equal(info_of(copied).labels.data, labels);
  assert_memory_equal(info_of(copied).labels.data, labels, sizeof labels);
  assert_memory_equal(info_of(copied).features.data, numbers, sizeof numbers);
  /* Features in another dtype are converted; new features replace borrowed ones, and the other way round. */
  assert_ok(clv_gnn_graph_set_features(borrowed, &wide, CLV_COPY, &error), error);
  assert_int_equal(info_of(borrowed).features.dtype, CLV_F32);
  assert_memory_equal(info_of(borrowed).features.data, numbers, sizeof numbers);
  assert_ok(clv_gnn_graph_set_features(copied, &features, CLV_BORROW, &error), error);
  assert_ptr_equal(info_of(copied).features.data, numbers);
  assert_ok(clv_gnn_graph_draw_features(copied, 3, 7, &error), error);
  assert_int_equal(info_of(copied).feature_count, 3);
  /* Written and read, the graph is the same. */
  const char *path = in_work("six.npz");
  clv_gnn_graph *again;
  assert_ok(clv_gnn_graph_write(borrowed, path, &error), error);
  assert_ok(clv_gnn_graph_read(context, path, &again, &error), error);
  assert_string_equal(info_of(again).hash, info_of(borrowed).hash);
  assert_memory_equal(info_of(again).features.data, numbers, sizeof numbers);
  assert_memory_equal(info_of(again).labels.data, labels, sizeof labels);
  clv_gnn_graph_destroy(again);
  clv_gnn_graph_destroy(borrowed);
  clv_gnn_graph_destroy(copied);
}

static void bad_arrays_are_rejected(void **state) {
  (void)state;
  const int64_t negative[M] = {0, 0, -1, 2, 4, 3}, large[M] = {0, 0, 1, 2, 6, 3}, huge[M] = {0, 0, 1, 2, INT64_C(1) << 40, 3};
  const int64_t late[N + 1] = {1, 2, 4, 5, 5, 6, 6}, falling[N + 1] = {0, 2, 4, 3, 5, 6, 6}, few[N + 1] = {0, 2, 4, 5, 5, 5, 5};
  float infinite[N * F] = {0};
  infinite[7] = INFINITY;
  const clv_tensor short_features = matrix(CLV_F32, N - 1, F, numbers),
                   no_matrix = clv__tensor_make(CLV_F32, 1, &(int64_t){N}, numbers);
  const clv_tensor not_finite = matrix(CLV_F32, N, F, infinite), doubles = matrix(CLV_F64, N, F, numbers);
  const clv_tensor text = matrix(CLV_STRING, N, F, numbers), no_data = matrix(CLV_F32, N, F, NULL);
  const clv_tensor odd = matrix(CLV_F32, N, 1, (char *)numbers + 1),
                   labels = clv__tensor_make(CLV_I32, 1, &(int64_t){N}, numbers);
  const clv_tensor large_features = matrix(CLV_F32, N, INT64_MAX / 2, numbers);
#define PAIRS(n, from, to) .vertex_count = n, .edge_count = M, .sources = from, .destinations = to
#define ROWS(n, o, from) .vertex_count = n, .edge_count = M, .sources = from, .offsets = o
#define PLAIN .vertex_count = N
  const struct {
    clv_gnn_arrays arrays;
    const char *message;
  } cases[] = {
      {{PAIRS(N, negative, destinations)}, "edge 2 has the source -1, but there are 6 vertices"},
      {{PAIRS(N, sources, large)}, "edge 4 has the destination 6, but there are 6 vertices"},
      {{PAIRS(0, huge, destinations)}, "edge 4 has the source 1099511627776, but ids are 0 to 4294967294"},
      {{PAIRS(UINT64_C(1) << 32, sources, destinations)}, "4294967296 vertices; at most 4294967295 are possible"},
      {{PAIRS(N, NULL, destinations)}, "sources must not be NULL"},
      {{PAIRS(N, sources, NULL)}, "give destinations or offsets"},
      {{ROWS(N, late, row_sources)}, "offsets[0] is 1, but must be 0"},
      {{ROWS(N, falling, row_sources)}, "offsets[3] is 3, which is below offsets[2] = 4"},
      {{ROWS(N, few, row_sources)}, "offsets[6] is 5, but there are 6 edges"},
      {{ROWS(N, row_offsets, large)}, "edge 4 has the source 6, but there are 6 vertices"},
      {{ROWS(N, row_offsets, negative)}, "edge 2 has the source -1"},
      {{ROWS(0, row_offsets, row_sources)}, "offsets need vertex_count"},
      {{PAIRS(N, sources, destinations), .offsets = row_offsets}, "either destinations or offsets"},
      {{.vertex_count = N, .edge_count = UINT64_MAX / 8, .sources = sources, .destinations = destinations},
       "do not fit the memory"},
      {{PLAIN, .features = &short_features}, "features: it is f32[5,2]; expected numbers [6, F]"},
      {{PLAIN, .features = &no_matrix}, "features: it is f32[6]; expected numbers [6, F]"},
      {{PLAIN, .features = &text}, "expected numbers [6, F]"},
      {{PLAIN, .features = &not_finite}, "vertex 3: feature 1 is inf, but must be finite"},
      {{PLAIN, .features = &no_data}, "the features have no data"},
      {{PLAIN, .features = &doubles, .features_ownership = CLV_BORROW}, "dtype f64 cannot be borrowed"},
      {{PLAIN, .features = &odd, .features_ownership = CLV_BORROW}, "at an odd address cannot be borrowed"},
      {{PLAIN, .labels = &labels}, "labels are i32[6]; expected i64[6]"},
  };
  clv_error error = {0};
  clv_gnn_graph *graph;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    clv_gnn_arrays arrays = cases[i].arrays;
    arrays.struct_size = sizeof arrays;
    clv_status status = clv_gnn_graph_make(context, &arrays, &graph, &error);
    expect_error(status, CLV_INVALID_ARGUMENT, &error, cases[i].message, "clv_gnn_graph_make()");
    assert_null(graph);
    assert_int_equal(strncmp(error.message, "graph: ", 7), 0);
  }
  clv_gnn_arrays arrays = CLV_GNN_ARRAYS_INIT;
  arrays.vertex_count = N;
  arrays.features = &large_features;
  assert_int_equal(clv_gnn_graph_make(context, &arrays, &graph, &error), CLV_OUT_OF_MEMORY);
  arrays.struct_size = 0;
  expect_error(clv_gnn_graph_make(context, &arrays, &graph, &error), CLV_INVALID_ARGUMENT, &error, "CLV_GNN_ARRAYS_INIT", "size");
  expect_error(clv_gnn_graph_make(NULL, &arrays, &graph, &error), CLV_INVALID_ARGUMENT, &error, "context must not be", "NULL");
  expect_error(clv_gnn_graph_make(context, NULL, &graph, &error), CLV_INVALID_ARGUMENT, &error, "arrays must not be", "NULL");
  expect_error(clv_gnn_graph_make(context, &arrays, NULL, &error), CLV_INVALID_ARGUMENT, &error, "graph must not be", "NULL");
  assert_int_equal(clv_gnn_graph_make(context, NULL, &graph, NULL), CLV_INVALID_ARGUMENT); /* without an error struct */
  clv_gnn_generate_options generated = CLV_GNN_GENERATE_OPTIONS_INIT;
  generated.scale = 32;
  expect_error(clv_gnn_graph_generate(context, &generated, &graph, &error), CLV_INVALID_ARGUMENT, &error, "scale 32", "scale");
  expect_error(clv_gnn_graph_read(context, in_work("absent.npz"), &graph, &error), CLV_NOT_FOUND, &error, "absent.npz", "read");
  clv_gnn_graph_destroy(NULL);
}

/* If an allocation fails, making a graph fails with CLV_OUT_OF_MEMORY and keeps no memory. */
static void graphs_survive_a_lack_of_memory(void **state) {
  (void)state;
  clv_tensor features = matrix(CLV_F32, N, F, numbers);
  clv_gnn_arrays arrays = CLV_GNN_ARRAYS_INIT;
  arrays.edge_count = M;
  arrays.features = &features;
  for (int form = 0; form < 2; ++form) {
    arrays.sources = form == 0 ? sources : row_sources;
    arrays.destinations = form == 0 ? destinations : NULL;
    arrays.offsets = form == 0 ? NULL : row_offsets;
    size_t live = counting.live, failures = 0;
    for (;;) {
      clv_error error = {0};
      clv_gnn_graph *graph;
      counting.fail_at = counting.calls + failures + 1;
      clv_status status = clv_gnn_graph_make(context, &arrays, &graph, &error);
      counting.fail_at = 0;
      if (status == CLV_OK) {
        clv_gnn_graph_destroy(graph);
        break;
      }
      assert_int_equal(status, CLV_OUT_OF_MEMORY);
      assert_null(graph);
      assert_int_equal(counting.live, live);
      ++failures;
    }
    assert_true(failures >= 5);
  }
}

/* ---- Parts and the report of a graph ---- */

static void parts_are_checked(void **state) {
  (void)state;
  clv_error error = {0};
  clv_gnn_arrays arrays = CLV_GNN_ARRAYS_INIT;
  arrays.vertex_count = N;
  arrays.edge_count = M;
  arrays.sources = sources, arrays.destinations = destinations;
  clv_gnn_graph *graph = make_graph(&arrays), *other;
  arrays.vertex_count = N + 1;
  other = make_graph(&arrays);
  static const uint32_t halves[N] = {0, 0, 0, 1, 1, 1}, wrong[N] = {0, 0, 0, 1, 2, 1}, empty[N] = {0};
  clv_gnn_parts *parts, *failed, *metis;
  clv_gnn_parts_info info = {.struct_size = sizeof info};
  assert_ok(clv_gnn_parts_from(graph, halves, 2, &parts, &error), error);
  clv_gnn_parts_get_info(parts, &info);
  assert_int_equal(info.k, 2);
  assert_int_equal(info.vertex_count, N);
  assert_memory_equal(info.part_of, halves, sizeof halves);
  expect_error(clv_gnn_parts_from(graph, wrong, 2, &failed, &error), CLV_INVALID_ARGUMENT, &error,
               "vertex 4 is in part 2, but there are 2 parts", "parts");
  expect_error(clv_gnn_parts_from(graph, empty, 2, &failed, &error), CLV_INVALID_ARGUMENT, &error, "no vertex is in part 1 of 2",
               "parts");
  expect_error(clv_gnn_parts_from(graph, halves, 7, &failed, &error), CLV_INVALID_ARGUMENT, &error, "has 1 to 6 parts", "parts");
  expect_error(clv_gnn_parts_from(graph, NULL, 2, &failed, &error), CLV_INVALID_ARGUMENT, &error, "part_of must not", "parts");
  expect_error(clv_gnn_parts_make(graph, 0, 0, &failed, &error), CLV_INVALID_ARGUMENT, &error, "k is 0", "METIS");
  expect_error(clv_gnn_parts_make(graph, 7, 0, &failed, &error), CLV_INVALID_ARGUMENT, &error, "k = 7", "METIS");
  assert_null(failed);
  assert_ok(clv_gnn_parts_make(graph, 2, 0, &metis, &error), error);
  clv_gnn_parts_get_info(metis, &info);
  assert_int_equal(info.k, 2);
  /* A file of parts, and its errors. */
  clv_gnn_parts *read;
  assert_ok(clv__file_write(in_work("good"), "0\n0\n0\n1\n1\n1\n", 12, &error), error);
  assert_ok(clv_gnn_parts_read(graph, in_work("good"), &read, &error), error);
  clv_gnn_parts_get_info(read, &info);
  assert_memory_equal(info.part_of, halves, sizeof halves);
  expect_error(clv_gnn_parts_read(other, in_work("good"), &failed, &error), CLV_INVALID_MODEL, &error, "good", "file");
  /* The report. Edges 3 -> 0 alone crosses the halves. */
  clv_gnn_graph_report_options how = CLV_GNN_GRAPH_REPORT_OPTIONS_INIT;
  const clv_gnn_parts *const both[] = {parts, metis};
  char *text;
  how.parts = both, how.part_count = 2, how.list_subgraphs = true;
  assert_ok(clv_gnn_graph_report(graph, &how, CLV_FORM_TEXT, &text, &error), error);
  expect_parts(text,
               (const char *[]){"in-degree    0 to 2; 2 without in-edges", "isolated     2", "repeated     1", "volume", NULL});
  assert_null(strchr(text, '\033'));
  clv_text_free(text);
  assert_ok(clv_gnn_graph_report(graph, &how, CLV_FORM_TERMINAL, &text, &error), error);
  assert_non_null(strchr(text, '\033'));
  clv_text_free(text);
  assert_ok(clv_gnn_graph_report(graph, &how, CLV_FORM_JSON, &text, &error), error);
  json_t *root = json_loads(text, 0, NULL), *first = json_array_get(json_object_get(root, "per_k"), 0);
  assert_int_equal(json_integer_value(json_object_get(first, "cut_edges")), 1);
  assert_int_equal(json_array_size(json_object_get(first, "subgraphs")), 2);
  json_decref(root);
  clv_text_free(text);
  expect_error(clv_gnn_graph_report(other, &how, CLV_FORM_TEXT, &text, &error), CLV_INVALID_ARGUMENT, &error, "graph", "parts");
  expect_error(clv_gnn_graph_report(graph, &how, (clv_form)9, &text, &error), CLV_INVALID_ARGUMENT, &error, "form 9", "form");
  assert_null(text);
  clv_gnn_parts_destroy(read);
  clv_gnn_parts_destroy(metis);
  clv_gnn_parts_destroy(parts);
  clv_gnn_parts_destroy(NULL);
  clv_gnn_graph_destroy(other);
  clv_gnn_graph_destroy(graph);
}

/* ---- Models ---- */

static clv_gnn_model *read_model(const char *name) {
  char path[512];
  clv_error error = {0};
  clv_gnn_model *model;
  snprintf(path, sizeof path, MODELS "%s", name);
  assert_ok(clv_gnn_model_read(context, path, &model, &error), error);
  return model;
}

static void models_come_from_files_and_memory(void **state) {
  (void)state;
  clv_error error = {0};
  clv__file_map map;
  clv_gnn_model *file = read_model("graphsage_script.onnx"), *json = read_model("graphsage.json"), *memory, *failed;
  assert_ok(clv__file_map_open(MODELS "graphsage_script.onnx", &map, &error), error);
  void *copy = malloc(map.size_bytes); /* the bytes are not needed after the call */
  assert_non_null(copy);
  memcpy(copy, map.data, map.size_bytes);
  assert_ok(clv_gnn_model_read_memory(context, copy, map.size_bytes, "sage", &memory, &error), error);
  memset(copy, 0xff, map.size_bytes);
  clv_gnn_model_info a = {.struct_size = sizeof a}, b = {.struct_size = sizeof b}, c = {.struct_size = sizeof c};
  clv_gnn_model_get_info(file, &a);
  clv_gnn_model_get_info(memory, &b);
  clv_gnn_model_get_info(json, &c);
  assert_string_equal(a.hash, b.hash);
  assert_string_equal(a.hash, c.hash);
  assert_string_equal(b.name, "sage");
  assert_string_equal(a.name, MODELS "graphsage_script.onnx");
  assert_string_equal(a.type, "graphsage");
  uint32_t columns = a.feature_count;
  for (uint32_t l = 0; l < a.layer_count; ++l) {
    clv_gnn_layer_info layer = {.struct_size = sizeof layer};
    assert_true(clv_gnn_model_layer(memory, l, &layer));
    assert_int_equal(layer.in, columns);
    columns = layer.out;
    assert_true(layer.stage_count >= 4 && layer.weight_bytes > 0);
    for (uint32_t s = 0; s < layer.stage_count; ++s) assert_non_null(clv_gnn_model_stage(memory, l, s));
    assert_null(clv_gnn_model_stage(memory, l, layer.stage_count));
  }
  assert_int_equal(columns, a.class_count);
  clv_gnn_layer_info none = {.struct_size = sizeof none, .in = 7};
  assert_false(clv_gnn_model_layer(memory, a.layer_count, &none));
  assert_int_equal(none.in, 0);
  char *text;
  assert_ok(clv_gnn_model_report(memory, CLV_FORM_TEXT, &text, &error), error);
  expect_parts(text, (const char *[]){"sage: graphsage, ", "gather", "relu", NULL});
  clv_text_free(text);
  assert_ok(clv_gnn_model_report(memory, CLV_FORM_JSON, &text, &error), error);
  json_t *root = json_loads(text, 0, NULL);
  assert_int_equal(json_array_size(json_object_get(root, "layers")), a.layer_count);
  json_decref(root);
  clv_text_free(text);
  /* Other models, and memory that is no model. */
  expect_error(clv_gnn_model_read(context, MODELS "refused_gin.onnx", &failed, &error), CLV_NOT_SUPPORTED, &error,
               "refused_gin.onnx", "GIN");
  expect_error(clv_gnn_model_read_memory(context, copy, map.size_bytes, NULL, &failed, &error), CLV_INVALID_MODEL, &error,
               "model: ", "bytes");
  expect_error(clv_gnn_model_read_memory(context, NULL, 1, NULL, &failed, &error), CLV_INVALID_ARGUMENT, &error, "data must", "");
  assert_null(failed);
  free(copy);
  clv__file_map_close(&map);
  clv_gnn_model_destroy(memory);
  clv_gnn_model_destroy(json);
  clv_gnn_model_destroy(file);
  clv_gnn_model_destroy(NULL);
}

/* ---- Plans and runs ---- */

static clv_gnn_graph *generate(const clv_gnn_model *model) {
  clv_error error = {0};
  clv_gnn_graph *graph;
  clv_gnn_model_info info = {.struct_size = sizeof info};
  clv_gnn_generate_options how = CLV_GNN_GENERATE_OPTIONS_INIT;
  clv_gnn_model_get_info(model, &info);
  how.scale = 9;
  how.edges_per_vertex = 6;
  how.feature_count = info.feature_count;
  how.seed = 3;
  assert_ok(clv_gnn_graph_generate(context, &how, &graph, &error), error);
  return graph;
}

typedef struct heard {
  uint32_t count[3];
  bool has_cuts;
} heard;

static void hear(void *user_data, clv_gnn_message kind, const char *text) {
  heard *h = user_data;
  ++h->count[kind];
  if (strstr(text, "partitioned by METIS") != NULL) h->has_cuts = true;
}

static bool collect(void *user_data, const char *bytes, size_t size) {
  size_t *sum = user_data;
  (void)bytes;
  *sum += size;
  return true;
}

static bool refuse(void *user_data, const char *bytes, size_t size) {
  (void)user_data, (void)bytes, (void)size;
  return false;
}

/* Prices with which two subgraphs, one per device, take half as long as any other plan: the device runs whole layers only, and a
 * layer's time grows with its vertices. It is so long that the measured times of copies do not matter. */
static clv_gnn_costs *make_costs(const clv_gnn_model *model, const clv_gnn_graph *graph, clv_devices *devices) {
  clv_error error = {0};
  clv_gnn_costs *costs;
  clv_gnn_model_info info = {.struct_size = sizeof info};
  clv_gnn_measure_options how = CLV_GNN_MEASURE_OPTIONS_INIT;
  clv_gnn_model_get_info(model, &info);
  assert_ok(clv_gnn_costs_create(context, &costs, &error), error);
  how.only_copies = true;
  assert_ok(clv_gnn_costs_measure(costs, model, graph, devices, NULL, &how, &error), error);
  for (uint32_t l = 0; l < info.layer_count; ++l) {
    clv_gnn_layer_info layer = {.struct_size = sizeof layer};
    clv_gnn_point points[8];
    char key[64];
    assert_true(clv_gnn_costs_layer(model, l, key));
    assert_true(clv_gnn_model_layer(model, l, &layer));
    for (uint32_t i = 0; i < 8; ++i) {
      /* From 1 row and edge up to more than the whole graph, whose padded sizes count. */
      const uint64_t rows = UINT64_C(1) << (2 * i), edges = rows * (i % 2 == 0 ? 1 : 40);
      points[i] = (clv_gnn_point){.rows = rows, .edges = edges, .time_ns = 5e6 + 5e5 * (double)rows};
    }
    for (uint32_t d = 0; d < clv_devices_count(devices); ++d)
      assert_ok(clv_gnn_costs_add(costs, clv_devices_name(devices, d), key, 0, layer.stage_count, points, 8, &error), error);
  }
  return costs;
}

static void check_accessors(const clv_gnn_plan *plan, const clv_gnn_plan_info *info, const clv_gnn_graph *graph) {
  uint64_t owned = 0, cut = 0;
  for (uint32_t p = 0; p < info->k; ++p) {
    clv_gnn_subgraph_info sub = {.struct_size = sizeof sub};
    assert_true(clv_gnn_plan_subgraph(plan, p, &sub));
    owned += sub.owned_count;
    cut += sub.cut_edge_count;
    assert_true(sub.cut_edge_count <= sub.edge_count && (sub.halo_count == 0) == (sub.cut_edge_count == 0));
  }
  assert_int_equal(owned, info_of(graph).vertex_count);
  assert_int_equal(cut > 0, info->k > 1);
  clv_gnn_subgraph_info beyond = {.struct_size = sizeof beyond, .owned_count = 5};
  assert_false(clv_gnn_plan_subgraph(plan, info->k, &beyond));
  assert_int_equal(beyond.owned_count, 0);
  bool has_k = false;
  for (uint32_t i = 0; i < info->k_count; ++i) {
    clv_gnn_k_info item = {.struct_size = sizeof item};
    assert_true(clv_gnn_plan_k(plan, i, &item));
    if (item.k != info->k) continue;
    has_k = true;
    assert_true(item.reason == NULL && item.predicted_ns == info->predicted_ns);
  }
  assert_true(has_k);
  double end_ns = 0;
  for (uint32_t t = 0; t < info->task_count; ++t) {
    clv_gnn_task_info task = {.struct_size = sizeof task};
    assert_true(clv_gnn_plan_task(plan, t, &task));
    assert_true(task.layer < info->layer_count && task.subgraph < info->k && task.device < info->device_count);
    assert_true(task.first_stage < task.end_stage && task.start_ns <= task.end_ns && !task.has_run);
    end_ns = fmax(end_ns, task.end_ns);
  }
  assert_true(fabs(end_ns - info->predicted_ns) <= 1e-6 * info->predicted_ns + 1);
  for (uint32_t d = 0; d < info->device_count; ++d) assert_non_null(clv_gnn_plan_device(plan, d));
  assert_null(clv_gnn_plan_device(plan, info->device_count));
  assert_true(info->bound_ns <= info->predicted_ns && info->gap >= 0);
}

static void check_documents(const clv_gnn_plan *plan, bool is_read) {
  clv_error error = {0};
  clv_gnn_report_options how = CLV_GNN_REPORT_OPTIONS_INIT;
  char *text;
  size_t size_bytes = 0;
  how.detailed = true;
  how.list_candidates = !is_read;
  assert_ok(clv_gnn_plan_report(plan, &how, CLV_FORM_TEXT, &text, &error), error);
  expect_parts(text, (const char *[]){"makespan, ms", "of the subgraphs: ", "predicted, ms", "device switches", NULL});
  assert_int_equal(strstr(text, "ways to assign its stages") != NULL, !is_read);
  clv_text_free(text);
  assert_ok(clv_gnn_plan_report(plan, &how, CLV_FORM_JSON, &text, &error), error);
  json_t *root = json_loads(text, 0, NULL);
  assert_true(json_is_real(json_object_get(root, "makespan_ms")) && json_is_array(json_object_get(root, "blocks")));
  assert_int_equal(json_is_array(json_object_get(root, "peps")), !is_read);
  json_decref(root);
  clv_text_free(text);
  how.list_candidates = true;
  if (is_read)
    expect_error(clv_gnn_plan_report(plan, &how, CLV_FORM_JSON, &text, &error), CLV_NOT_SUPPORTED, &error, "has no prices",
                 "read");
  else
    assert_ok(clv_gnn_plan_page(plan, in_work("plan.html"), NULL, NULL, &error), error);
  assert_ok(clv_gnn_plan_page(plan, NULL, collect, &size_bytes, &error), error);
  assert_true(size_bytes > 1000);
  assert_int_equal(clv_gnn_plan_page(plan, NULL, refuse, NULL, &error), CLV_CANCELLED);
  assert_int_equal(clv_gnn_plan_page(plan, NULL, NULL, NULL, &error), CLV_INVALID_ARGUMENT);
}

static bool count_tasks(void *user_data, const clv_gnn_progress *progress) {
  uint32_t *most = user_data;
  *most = progress->of;
  return true;
}

static bool cancel(void *user_data, const clv_gnn_progress *progress) {
  (void)user_data, (void)progress;
  return false;
}

static void same_numbers(const clv_tensor *a, const clv_tensor *b, const char *what) {
  const float *x = a->data, *y = b->data;
  size_t count;
  assert_true(clv__tensor_same_type(a, b) && clv__tensor_count(a, &count));
  float largest = 0, worst = 0;
  for (size_t i = 0; i < count; ++i) {
    largest = fmaxf(largest, fabsf(y[i]));
    worst = fmaxf(worst, fabsf(x[i] - y[i]));
  }
  if (!(worst <= 1e-5f * largest)) fail_msg("%s: differs by %g of %g", what, (double)worst, (double)largest);
}

static void check_run(clv_gnn_plan *plan, const clv_gnn_plan_info *planned, const clv_tensor *expected) {
  clv_error error = {0};
  clv_gnn_run *run;
  clv_gnn_run_info info = {.struct_size = sizeof info};
  clv_gnn_task_info task = {.struct_size = sizeof task};
  clv_gnn_execute_options how = CLV_GNN_EXECUTE_OPTIONS_INIT;
  clv_tensor output = {.data = NULL};
  char *text;
  double difference = -1;
  uint32_t tasks = 0, done = 0;
  assert_ok(clv_gnn_run_create(plan, &run, &error), error);
  expect_error(clv_gnn_run_report(run, NULL, CLV_FORM_TEXT, &text, &error), CLV_INVALID_ARGUMENT, &error, "not been executed",
               "");
  assert_true(clv_gnn_run_task(run, 0, &task) && !task.has_run);
  how.progress = count_tasks;
  how.user_data = &tasks;
  assert_ok(clv_gnn_run_execute(run, NULL, &output, &how, &error), error);
  same_numbers(&output, expected, "the run of the plan");
  for (uint32_t t = 0; t < planned->task_count; ++t) {
    assert_true(clv_gnn_run_task(run, t, &task));
    if (task.has_run)
      assert_true(task.begin_ns <= task.packed_ns && task.packed_ns <= task.computed_ns && task.computed_ns <= task.done_ns);
    done += task.has_run;
  }
  assert_int_equal(done, tasks);
  assert_false(clv_gnn_run_task(run, planned->task_count, &task));
  /* The result can be written to the caller's memory, and a part that was changed is found. */
  size_t count;
  assert_true(clv__tensor_count(expected, &count));
  float *own = calloc(count, sizeof *own);
  assert_non_null(own);
  clv_tensor given = *expected;
  given.data = own;
  assert_ok(clv_gnn_run_execute(run, NULL, &given, NULL, &error), error);
  assert_ptr_equal(given.data, own);
  same_numbers(&given, expected, "the second run");
  assert_ok(clv_gnn_run_verify(run, NULL, &given, CLV_GNN_TOLERANCE, &difference, &error), error);
  assert_true(difference >= 0 && difference <= CLV_GNN_TOLERANCE);
  own[count / 2] += 3;
  expect_error(clv_gnn_run_verify(run, NULL, &given, CLV_GNN_TOLERANCE, &difference, &error), CLV_INTERNAL_ERROR, &error,
               "if the graph is run in one piece", "a changed number");
  assert_true(difference > CLV_GNN_TOLERANCE);
  /* After the blocks were closed, the run goes on. */
  assert_ok(clv_gnn_run_report(run, NULL, CLV_FORM_TEXT, &text, &error), error);
  expect_parts(text, (const char *[]){"measured, ms", "first run in", "median of 1", "peak memory", NULL});
  clv_text_free(text);
  assert_ok(clv_gnn_run_execute(run, NULL, &given, NULL, &error), error);
  same_numbers(&given, expected, "the run after verifying");
  clv_gnn_run_get_info(run, &info);
  assert_int_equal(info.run_count, 3);
  assert_true(info.first_ns > 0 && info.warm_ns > 0 && info.compile_ns > 0);
  assert_ok(clv_gnn_run_report(run, NULL, CLV_FORM_JSON, &text, &error), error);
  json_t *root = json_loads(text, 0, NULL);
  assert_int_equal(json_integer_value(json_object_get(root, "warm_runs")), 2);
  json_decref(root);
  clv_text_free(text);
  size_t size_bytes = 0;
  assert_ok(clv_gnn_run_page(run, in_work("run.html"), NULL, NULL, &error), error);
  assert_ok(clv_gnn_run_trace(run, NULL, collect, &size_bytes, &error), error);
  assert_true(size_bytes > 200);
  assert_ok(clv_gnn_run_write(run, &given, in_work("out.npz"), &error), error);
  /* Cancelled, and wrong tensors. */
  how.progress = cancel;
  assert_int_equal(clv_gnn_run_execute(run, NULL, &given, &how, &error), CLV_CANCELLED);
  clv_tensor wrong = given;
  wrong.dims[1] += 1;
  expect_error(clv_gnn_run_execute(run, NULL, &wrong, NULL, &error), CLV_INVALID_ARGUMENT, &error, "the outputs are", "output");
  expect_error(clv_gnn_run_execute(run, &wrong, &given, NULL, &error), CLV_INVALID_ARGUMENT, &error, "the features are",
               "features");
  expect_error(clv_gnn_run_verify(run, NULL, &wrong, 1, NULL, &error), CLV_INVALID_ARGUMENT, &error, "the outputs are", "verify");
  expect_error(clv_gnn_run_verify(run, NULL, &given, NAN, NULL, &error), CLV_INVALID_ARGUMENT, &error, "tolerance nan", "verify");
  expect_error(clv_gnn_run_execute(run, NULL, NULL, NULL, &error), CLV_INVALID_ARGUMENT, &error, "output must not be NULL",
               "NULL");
  free(own);
  clv_gnn_run_destroy(run);
}

/* Runs the graph in one piece; the caller frees the data. */
static clv_tensor expected_of(const clv_gnn_model *model, const clv_gnn_graph *graph, clv_devices *devices, uint32_t device) {
  clv_error error = {0};
  clv_gnn_run *run;
  clv_gnn_task_info task = {.struct_size = sizeof task};
  clv_tensor output = {.data = NULL};
  size_t size_bytes;
  char *text;
  assert_ok(clv_gnn_run_create_whole(model, graph, devices, device, &run, &error), error);
  assert_ok(clv_gnn_run_execute(run, NULL, &output, NULL, &error), error);
  assert_true(clv__tensor_size_bytes(&output, &size_bytes));
  void *copy = malloc(size_bytes);
  assert_non_null(copy);
  memcpy(copy, output.data, size_bytes);
  assert_ok(clv_gnn_run_report(run, NULL, CLV_FORM_TEXT, &text, &error), error);
  expect_parts(text, (const char *[]){"compiled in", "run in", NULL});
  clv_text_free(text);
  assert_false(clv_gnn_run_task(run, 0, &task));
  expect_error(clv_gnn_run_trace(run, in_work("t"), NULL, NULL, &error), CLV_NOT_SUPPORTED, &error, "has no plan", "trace");
  clv_gnn_execute_options how = CLV_GNN_EXECUTE_OPTIONS_INIT;
  how.state_path = in_work("state");
  expect_error(clv_gnn_run_execute(run, NULL, &output, &how, &error), CLV_INVALID_ARGUMENT, &error, "has no plan", "state");
  clv_gnn_run_destroy(run);
  output.data = copy;
  return output;
}

static void check_plan_file(clv_gnn_plan *plan, const clv_gnn_plan_info *info, const clv_gnn_model *model,
                            const clv_gnn_graph *graph, clv_devices *devices, const clv_tensor *expected) {
  clv_error error = {0};
  clv_gnn_plan *again;
  clv_gnn_plan_info read = {.struct_size = sizeof read};
  clv_gnn_parts *parts, *same;
  clv_gnn_parts_info a = {.struct_size = sizeof a}, b = {.struct_size = sizeof b};
  char path[128];
  snprintf(path, sizeof path, "%s", in_work("plan.json"));
  assert_ok(clv_gnn_plan_write(plan, path, &error), error);
  assert_ok(clv_gnn_plan_read(model, graph, devices, path, NULL, &again, &error), error);
  clv_gnn_plan_get_info(again, &read);
  assert_int_equal(read.k, info->k);
  assert_true(fabs(read.predicted_ns - info->predicted_ns) <= 1);
  assert_string_equal(read.why, info->why);
  check_accessors(again, &read, graph);
  check_documents(again, true);
  assert_ok(clv_gnn_plan_parts(plan, &parts, &error), error);
  assert_ok(clv_gnn_plan_parts(again, &same, &error), error);
  clv_gnn_parts_get_info(parts, &a);
  clv_gnn_parts_get_info(same, &b);
  assert_int_equal(a.k, b.k);
  assert_memory_equal(a.part_of, b.part_of, a.vertex_count * sizeof *a.part_of);
  check_run(again, &read, expected);
  clv_gnn_plan_destroy(again);
  /* The plan's parts, given to the reader, are those of the plan; other parts are not. */
  const clv_gnn_parts *const given[] = {parts};
  clv_gnn_plan_options options = CLV_GNN_PLAN_OPTIONS_INIT;
  options.parts = given;
  options.part_count = 1;
  assert_ok(clv_gnn_plan_read(model, graph, devices, path, &options, &again, &error), error);
  clv_gnn_plan_destroy(again);
  if (info->k > 1) {
    uint32_t *turned = malloc(a.vertex_count * sizeof *turned);
    assert_non_null(turned);
    for (uint32_t v = 0; v < a.vertex_count; ++v) turned[v] = (a.part_of[v] + 1) % a.k;
    clv_gnn_parts *other;
    assert_ok(clv_gnn_parts_from(graph, turned, a.k, &other, &error), error);
    const clv_gnn_parts *const wrong[] = {other};
    options.parts = wrong;
    expect_error(clv_gnn_plan_read(model, graph, devices, path, &options, &again, &error), CLV_INVALID_ARGUMENT, &error,
                 "not the parts that the plan was made for", "other parts");
    assert_null(again);
    clv_gnn_parts_destroy(other);
    free(turned);
  }
  clv_gnn_parts_destroy(same);
  clv_gnn_parts_destroy(parts);
}

static void check_model(const char *name, bool has_costs) {
  clv_error error = {0};
  clv_devices *devices = open_devices("npu,cpu");
  clv_gnn_model *model = read_model(name);
  clv_gnn_graph *graph = generate(model);
  clv_gnn_costs *costs = has_costs ? make_costs(model, graph, devices) : NULL;
  clv_gnn_plan *plan;
  clv_gnn_plan_info info = {.struct_size = sizeof info};
  clv_gnn_plan_options options = CLV_GNN_PLAN_OPTIONS_INIT;
  heard h = {0};
  options.ks = (const uint32_t[]){4, 2, 2};
  options.k_count = 3;
  options.costs = costs;
  options.pad_step = 16;
  options.tell = hear;
  options.user_data = &h;
  clv_tensor expected = expected_of(model, graph, devices, 1), any = expected_of(model, graph, devices, CLV_GNN_ANY_DEVICE);
  same_numbers(&any, &expected, "the graph in one piece");
  assert_ok(clv_gnn_plan_make(model, graph, devices, &options, &plan, &error), error);
  clv_gnn_costs_destroy(costs); /* the plan has its own copy of the prices */
  clv_gnn_plan_get_info(plan, &info);
  assert_int_equal(info.k_count, 3); /* 1, 2 and 4 */
  assert_string_equal(info.prices, has_costs ? "imported" : "nominal");
  if (has_costs) assert_true(info.k > 1);
  assert_true(h.count[CLV_GNN_PROGRESS] >= 4 && h.has_cuts);
  check_accessors(plan, &info, graph);
  check_documents(plan, false);
  expect_error(clv_gnn_graph_draw_features(graph, 2, 0, &error), CLV_INVALID_ARGUMENT, &error, "while plans or runs", "in use");
  uint32_t files = 0;
  assert_ok(clv_gnn_plan_export(plan, in_work("blocks"), false, &files, &error), error);
  assert_true(files >= info.layer_count);
  check_run(plan, &info, &expected);
  check_plan_file(plan, &info, model, graph, devices, &expected);
  clv_gnn_plan_destroy(plan);
  assert_ok(clv_gnn_graph_draw_features(graph, 1, 0, &error), error); /* now the graph is free again */
  free(any.data);
  free(expected.data);
  clv_gnn_graph_destroy(graph);
  clv_gnn_model_destroy(model);
  clv_devices_close(devices);
}

static void graphsage_is_planned_and_run(void **state) {
  (void)state;
  check_model("graphsage_script.onnx", false);
  check_model("graphsage.json", true);
}

static void gcn_and_gat_are_planned_and_run(void **state) {
  (void)state;
  check_model("gcn.json", true);
  check_model("gat_script.onnx", true);
}

static void bad_plans_are_rejected(void **state) {
  (void)state;
  clv_error error = {0};
  clv_devices *devices = open_devices("cpu");
  clv_gnn_model *model = read_model("gat.json"), *sage = read_model("graphsage.json");
  clv_gnn_graph *graph = generate(model);
  clv_gnn_plan *plan;
  clv_gnn_run *run;
  clv_gnn_plan_options options = CLV_GNN_PLAN_OPTIONS_INIT;
  clv_gnn_parts *parts, *twice;
  char path[128];
  expect_error(clv_gnn_plan_make(NULL, graph, devices, NULL, &plan, &error), CLV_INVALID_ARGUMENT, &error, "model must", "NULL");
  expect_error(clv_gnn_plan_make(model, NULL, devices, NULL, &plan, &error), CLV_INVALID_ARGUMENT, &error, "graph must", "NULL");
  expect_error(clv_gnn_plan_make(model, graph, NULL, NULL, &plan, &error), CLV_INVALID_ARGUMENT, &error, "devices must", "NULL");
  expect_error(clv_gnn_plan_make(model, graph, devices, NULL, NULL, &error), CLV_INVALID_ARGUMENT, &error, "plan must", "NULL");
  options.k_count = 1;
  expect_error(clv_gnn_plan_make(model, graph, devices, &options, &plan, &error), CLV_INVALID_ARGUMENT, &error, "NULL", "ks");
  options.ks = (const uint32_t[]){0};
  expect_error(clv_gnn_plan_make(model, graph, devices, &options, &plan, &error), CLV_INVALID_ARGUMENT, &error, "ks[0] is 0",
               "0");
  options.ks = (const uint32_t[]){100000};
  expect_error(clv_gnn_plan_make(model, graph, devices, &options, &plan, &error), CLV_INVALID_ARGUMENT, &error, "100000", "k");
  assert_ok(clv_gnn_parts_make(graph, 2, 0, &parts, &error), error);
  assert_ok(clv_gnn_parts_make(graph, 2, 1, &twice, &error), error);
  options.parts = (const clv_gnn_parts *const[]){parts, twice};
  options.part_count = 2;
  expect_error(clv_gnn_plan_make(model, graph, devices, &options, &plan, &error), CLV_INVALID_ARGUMENT, &error,
               "either ks or parts", "both");
  options.k_count = 0;
  expect_error(clv_gnn_plan_make(model, graph, devices, &options, &plan, &error), CLV_INVALID_ARGUMENT, &error, "have k = 2",
               "twice");
  options.struct_size = 1;
  expect_error(clv_gnn_plan_make(model, graph, devices, &options, &plan, &error), CLV_INVALID_ARGUMENT, &error,
               "CLV_GNN_PLAN_OPTIONS_INIT", "size");
  assert_null(plan);
  /* Features that do not fit the model. */
  assert_ok(clv_gnn_graph_draw_features(graph, 77, 0, &error), error);
  expect_error(clv_gnn_plan_make(model, graph, devices, NULL, &plan, &error), CLV_INVALID_ARGUMENT, &error,
               "77 features per vertex", "wide");
  expect_error(clv_gnn_run_create_whole(model, graph, devices, 0, &run, &error), CLV_INVALID_ARGUMENT, &error,
               "77 features per vertex", "wide");
  expect_error(clv_gnn_run_create_whole(model, graph, devices, 1, &run, &error), CLV_INVALID_ARGUMENT, &error,
               "device 1 does not exist", "device");
  assert_null(run);
  expect_error(clv_gnn_run_create(NULL, &run, &error), CLV_INVALID_ARGUMENT, &error, "plan must not be NULL", "NULL");
  clv_gnn_graph_destroy(graph);
  /* Plan files: absent, damaged, of another model, of another graph. */
  graph = generate(model);
  snprintf(path, sizeof path, "%s", in_work("bad.json"));
  expect_error(clv_gnn_plan_read(model, graph, devices, path, NULL, &plan, &error), CLV_NOT_FOUND, &error, "bad.json", "absent");
  assert_ok(clv__file_write(path, "{\"a\": 1}", 8, &error), error);
  expect_error(clv_gnn_plan_read(model, graph, devices, path, NULL, &plan, &error), CLV_INVALID_MODEL, &error, "bad.json",
               "damaged");
  assert_ok(clv_gnn_plan_make(model, graph, devices, NULL, &plan, &error), error);
  assert_ok(clv_gnn_plan_write(plan, path, &error), error);
  expect_error(clv_gnn_plan_write(plan, "/no/where.json", &error), CLV_IO_ERROR, &error, "/no/where", "folder");
  clv_gnn_plan_destroy(plan);
  expect_error(clv_gnn_plan_read(sage, graph, devices, path, NULL, &plan, &error), CLV_INVALID_ARGUMENT, &error, "another model",
               "model");
  clv_gnn_graph *other;
  clv_gnn_generate_options generated = CLV_GNN_GENERATE_OPTIONS_INIT;
  generated.scale = 5;
  assert_ok(clv_gnn_graph_generate(context, &generated, &other, &error), error);
  expect_error(clv_gnn_plan_read(model, other, devices, path, NULL, &plan, &error), CLV_INVALID_ARGUMENT, &error, "another graph",
               "graph");
  assert_null(plan);
  clv_gnn_graph_destroy(other);
  clv_gnn_parts_destroy(twice);
  clv_gnn_parts_destroy(parts);
  clv_gnn_plan_destroy(NULL);
  clv_gnn_run_destroy(NULL);
  clv_gnn_graph_destroy(graph);
  clv_gnn_model_destroy(sage);
  clv_gnn_model_destroy(model);
  clv_devices_close(devices);
}

/* A run that keeps its rows can be continued by another one. */
static void runs_are_resumed(void **state) {
  (void)state;
  clv_error error = {0};
  clv_devices *devices = open_devices("cpu");
  clv_gnn_model *model = read_model("graphsage.json");
  clv_gnn_graph *graph = generate(model);
  clv_gnn_plan *plan;
  clv_gnn_run *run;
  clv_gnn_run_info info = {.struct_size = sizeof info};
  clv_gnn_execute_options how = CLV_GNN_EXECUTE_OPTIONS_INIT;
  clv_tensor expected = expected_of(model, graph, devices, 0), output = {.data = NULL};
  struct stat about;
  char *text;
  assert_ok(clv_gnn_plan_make(model, graph, devices, NULL, &plan, &error), error);
  assert_ok(clv_gnn_run_create(plan, &run, &error), error);
  how.resume = true;
  expect_error(clv_gnn_run_execute(run, NULL, &output, &how, &error), CLV_INVALID_ARGUMENT, &error, "give the state_path",
               "resume");
  how.state_path = in_work("rows");
  assert_ok(clv_gnn_run_execute(run, NULL, &output, &how, &error), error);
  same_numbers(&output, &expected, "the run that keeps its rows");
  assert_int_equal(stat(how.state_path, &about), 0);
  assert_ok(clv_gnn_run_execute(run, NULL, &output, &how, &error), error);
  same_numbers(&output, &expected, "the resumed run");
  assert_ok(clv_gnn_run_report(run, NULL, CLV_FORM_TEXT, &text, &error), error);
  expect_parts(text, (const char *[]){"done in an earlier run", "more to save layers", NULL});
  clv_text_free(text);
  clv_gnn_run_get_info(run, &info);
  assert_true(info.state_ns > 0);
  clv_gnn_run_destroy(run);
  clv_gnn_plan_destroy(plan);
  free(expected.data);
  clv_gnn_graph_destroy(graph);
  clv_gnn_model_destroy(model);
  clv_devices_close(devices);
}

/* If an allocation fails, planning or running fails with CLV_OUT_OF_MEMORY, or does without it, and keeps no memory. */
static clv_status plan_and_run(const clv_gnn_model *model, const clv_gnn_graph *graph, clv_devices *devices,
                               const clv_gnn_parts *parts, clv_error *error) {
  clv_gnn_plan *plan;
  clv_gnn_run *run = NULL;
  clv_gnn_plan_options options = CLV_GNN_PLAN_OPTIONS_INIT;
  clv_tensor output = {.data = NULL};
  char *text = NULL, *json = NULL;
  options.parts = &parts;
  options.part_count = 1;
  clv_status status = clv_gnn_plan_make(model, graph, devices, &options, &plan, error);
  if (status == CLV_OK) status = clv_gnn_plan_report(plan, NULL, CLV_FORM_TEXT, &text, error);
  if (status == CLV_OK) status = clv_gnn_run_create(plan, &run, error);
  if (status == CLV_OK) status = clv_gnn_run_execute(run, NULL, &output, NULL, error);
  if (status == CLV_OK) status = clv_gnn_run_report(run, NULL, CLV_FORM_JSON, &json, error);
  if (status == CLV_OK) status = clv_gnn_run_verify(run, NULL, &output, CLV_GNN_TOLERANCE, NULL, error);
  clv_text_free(json);
  clv_text_free(text);
  clv_gnn_run_destroy(run);
  clv_gnn_plan_destroy(plan);
  return status;
}

static void plans_and_runs_survive_a_lack_of_memory(void **state) {
  (void)state;
  clv_error error = {0};
  clv_devices *devices = open_devices("cpu");
  clv_gnn_model *model = read_model("gat.json");
  clv_gnn_graph *graph = generate(model);
  clv_gnn_parts *parts;
  uint64_t seed = 5;
  uint32_t failures = 0;
  assert_ok(clv_gnn_parts_make(graph, 3, 0, &parts, &error), error);
  for (uint32_t round = 0; round < 2; ++round) /* the first one fills the pools of the devices */
    assert_ok(plan_and_run(model, graph, devices, parts, &error), error);
  size_t calls = counting.calls;
  assert_ok(plan_and_run(model, graph, devices, parts, &error), error);
  calls = counting.calls - calls;
  for (uint32_t i = 0; i < test_some(80); ++i) {
    clv_error failed = {0};
    counting.fail_at = counting.calls + 1 + test_random(&seed) % calls;
    clv_status status = plan_and_run(model, graph, devices, parts, &failed);
    counting.fail_at = 0;
    if (status != CLV_OK && status != CLV_OUT_OF_MEMORY) fail_msg("%s: %s", clv_status_name(status), failed.message);
    failures += status != CLV_OK;
  }
  assert_true(failures > 0);
  assert_ok(plan_and_run(model, graph, devices, parts, &error), error);
  clv_gnn_parts_destroy(parts);
  clv_gnn_graph_destroy(graph);
  clv_gnn_model_destroy(model);
  clv_devices_close(devices); /* and tear_down() checks that no memory is left */
}

/* Threads share a graph, a model, devices and a plan: each executes a run of its own and one that all share. */
typedef struct sharing {
  clv_gnn_plan *plan;
  clv_gnn_run *run;
  const clv_tensor *expected;
  clv_status status;
  clv_error error;
  double worst;
} sharing;

static void *share(void *user_data) {
  sharing *s = user_data;
  clv_gnn_run *own;
  size_t size_bytes, count;
  s->status = clv_gnn_run_create(s->plan, &own, &s->error);
  if (s->status != CLV_OK || !clv__tensor_size_bytes(s->expected, &size_bytes) || !clv__tensor_count(s->expected, &count))
    return s;
  clv_tensor output = *s->expected;
  float *numbers_out = malloc(size_bytes);
  output.data = numbers_out;
  for (uint32_t i = 0; i < 6 && s->status == CLV_OK; ++i) {
    memset(numbers_out, 0xff, size_bytes);
    s->status = clv_gnn_run_execute(i % 2 == 0 ? own : s->run, NULL, &output, NULL, &s->error);
    for (size_t at = 0; at < count; ++at) {
      double off = fabs((double)numbers_out[at] - (double)((const float *)s->expected->data)[at]);
      if (!(off <= s->worst)) s->worst = isnan(off) ? INFINITY : off;
    }
  }
  free(numbers_out);
  clv_gnn_run_destroy(own);
  return s;
}

static void threads_share_a_plan(void **state) {
  (void)state;
  enum { THREADS = 3 };
  clv_error error = {0};
  clv_devices *devices = open_devices("npu,cpu");
  clv_gnn_model *model = read_model("gcn.json");
  clv_gnn_graph *graph = generate(model);
  clv_gnn_costs *costs = make_costs(model, graph, devices);
  clv_gnn_plan_options options = CLV_GNN_PLAN_OPTIONS_INIT;
  clv_gnn_plan *plan;
  clv_gnn_run *run;
  clv_tensor expected = expected_of(model, graph, devices, 1);
  sharing threads[THREADS];
  pthread_t ids[THREADS];
  options.costs = costs;
  options.pad_step = 16;
  assert_ok(clv_gnn_plan_make(model, graph, devices, &options, &plan, &error), error);
  assert_ok(clv_gnn_run_create(plan, &run, &error), error);
  for (int t = 0; t < THREADS; ++t) {
    threads[t] = (sharing){.plan = plan, .run = run, .expected = &expected};
    assert_int_equal(pthread_create(&ids[t], NULL, share, &threads[t]), 0);
  }
  for (int t = 0; t < THREADS; ++t) {
    pthread_join(ids[t], NULL);
    assert_ok(threads[t].status, threads[t].error);
    if (!(threads[t].worst <= 1e-4)) fail_msg("thread %d: a result differs by %g", t, threads[t].worst);
  }
  clv_gnn_run_destroy(run);
  clv_gnn_plan_destroy(plan);
  clv_gnn_costs_destroy(costs);
  free(expected.data);
  clv_gnn_graph_destroy(graph);
  clv_gnn_model_destroy(model);
  clv_devices_close(devices);
}

/* ---- Costs ---- */

static void costs_are_kept_and_checked(void **state) {
  (void)state;
  clv_error error = {0};
  clv_devices *devices = open_devices("cpu");
  clv_gnn_model *model = read_model("graphsage.json");
  clv_gnn_graph *graph = generate(model);
  clv_gnn_costs *costs = make_costs(model, graph, devices), *again, *failed;
  clv_gnn_costs_info info = {.struct_size = sizeof info};
  clv_gnn_costs_block_info block = {.struct_size = sizeof block};
  char key[64], path[128], *text;
  double time_ns = 0;
  assert_true(clv_gnn_costs_layer(model, 0, key));
  assert_int_equal(strncmp(key, "graphsage-", 10), 0);
  assert_false(clv_gnn_costs_layer(model, 99, key));
  clv_gnn_costs_get_info(costs, &info);
  assert_true(info.block_count >= 1 && info.name == NULL);
  assert_true(clv_gnn_costs_block(costs, 0, &block));
  assert_true(block.has_fit && block.point_count == 8 && block.error < 0.01);
  assert_true(clv_gnn_costs_time(costs, "cpu", key, block.first_stage, block.end_stage, 64, 500, 64, &time_ns));
  assert_true(fabs(time_ns - (5e6 + 320e5)) < 5e5);
  assert_false(clv_gnn_costs_time(costs, "cpu", key, block.first_stage, block.end_stage, 1u << 30, 500, 64, &time_ns));
  assert_false(clv_gnn_costs_time(costs, "gpu", key, block.first_stage, block.end_stage, 64, 500, 64, &time_ns));
  assert_false(clv_gnn_costs_block(costs, info.block_count, &block));
  snprintf(path, sizeof path, "%s", in_work("costs.json"));
  assert_ok(clv_gnn_costs_write(costs, path, &error), error);
  assert_ok(clv_gnn_costs_read(context, path, &again, &error), error);
  clv_gnn_costs_get_info(again, &info);
  assert_string_equal(info.name, path);
  double same_ns = 0;
  assert_true(clv_gnn_costs_block(again, 0, &block));
  assert_true(clv_gnn_costs_time(again, "cpu", key, block.first_stage, block.end_stage, 64, 500, 64, &same_ns));
  assert_true(fabs(same_ns - time_ns) <= 1e-6 * time_ns);
  assert_ok(clv_gnn_costs_check(again, devices, &error), error);
  assert_ok(clv_gnn_costs_report(again, CLV_FORM_TEXT, &text, &error), error);
  expect_parts(text, (const char *[]){key, "merge: ", "exchange: ", NULL});
  clv_text_free(text);
  assert_ok(clv_gnn_costs_report(again, CLV_FORM_JSON, &text, &error), error);
  json_t *root = json_loads(text, 0, NULL);
  assert_int_equal(json_array_size(json_object_get(root, "tables")), info.block_count);
  json_decref(root);
  clv_text_free(text);
  /* Bad points, files and ranges. */
  const clv_gnn_point bad = {.rows = 10, .targets = 20, .time_ns = 1}, negative = {.rows = 10, .time_ns = -1};
  expect_error(clv_gnn_costs_add(costs, "cpu", key, 0, 2, &bad, 1, &error), CLV_INVALID_ARGUMENT, &error,
               "points[0]: ", "targets");
  expect_error(clv_gnn_costs_add(costs, "cpu", key, 0, 2, &negative, 1, &error), CLV_INVALID_ARGUMENT, &error,
               "points[0]: ", "time");
  expect_error(clv_gnn_costs_add(costs, "cpu", key, 2, 2, &bad, 1, &error), CLV_INVALID_ARGUMENT, &error, "first < end",
               "stages");
  expect_error(clv_gnn_costs_add(costs, NULL, key, 0, 2, &bad, 1, &error), CLV_INVALID_ARGUMENT, &error, "device must", "NULL");
  assert_ok(clv__file_write(path, "[]", 2, &error), error);
  expect_error(clv_gnn_costs_read(context, path, &failed, &error), CLV_INVALID_MODEL, &error, "costs.json", "file");
  assert_null(failed);
  static const char csv[] = "n_nodes,n_edges,fpga_ms,status\n10,20,1.5,OK\n20,30,2.5,OK\n";
  const clv_gnn_stage_range far = {"fpga", 0, 99}, other = {"tpu", 0, 2};
  assert_ok(clv__file_write(path, csv, sizeof csv - 1, &error), error);
  assert_ok(clv_gnn_costs_import(again, model, path, NULL, 0, &error), error);
  clv_gnn_costs_get_info(again, &info);
  clv_gnn_costs_info before = {.struct_size = sizeof before};
  clv_gnn_costs_get_info(costs, &before);
  assert_true(info.block_count > before.block_count);
  expect_error(clv_gnn_costs_import(again, model, path, &far, 1, &error), CLV_INVALID_ARGUMENT, &error, "0-99 is out of range",
               "far");
  expect_error(clv_gnn_costs_import(again, model, path, &other, 1, &error), CLV_INVALID_ARGUMENT, &error,
               "no column for device 'tpu'", "other");
  /* Prices of one device are not used for another. */
  clv_devices *wide = open_devices("npu,cpu");
  clv_gnn_plan *plan;
  clv_gnn_plan_options options = CLV_GNN_PLAN_OPTIONS_INIT;
  options.costs = costs;
  expect_error(clv_gnn_plan_make(model, graph, wide, &options, &plan, &error), CLV_NOT_FOUND, &error, "npu", "no prices");
  clv_devices_close(wide);
  clv_gnn_costs_destroy(again);
  clv_gnn_costs_destroy(costs);
  clv_gnn_costs_destroy(NULL);
  clv_gnn_graph_destroy(graph);
  clv_gnn_model_destroy(model);
  clv_devices_close(devices);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(pairs_and_rows_give_the_same_graph),
      cmocka_unit_test(features_are_copied_or_borrowed),
      cmocka_unit_test(bad_arrays_are_rejected),
      cmocka_unit_test(graphs_survive_a_lack_of_memory),
      cmocka_unit_test(parts_are_checked),
      cmocka_unit_test(models_come_from_files_and_memory),
      cmocka_unit_test(graphsage_is_planned_and_run),
      cmocka_unit_test(gcn_and_gat_are_planned_and_run),
      cmocka_unit_test(bad_plans_are_rejected),
      cmocka_unit_test(runs_are_resumed),
      cmocka_unit_test(plans_and_runs_survive_a_lack_of_memory),
      cmocka_unit_test(threads_share_a_plan),
      cmocka_unit_test(costs_are_kept_and_checked),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
