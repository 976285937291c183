/* Replays the fuzz corpus: inputs that once caused failures, and inputs that reach deep into the readers. Mainly of use with the
 * sanitizers. Some inputs are also checked for the expected result. */
#include "support.h"

#include <dirent.h>
#include <stdio.h>

#include "../../fuzz/gnn_seeds.h"
#include "../../fuzz/target_cache.h"
#include "../../fuzz/target_compiled.h"
#include "../../fuzz/target_gnn_graph.h"
#include "../../fuzz/target_gnn_model.h"
#include "../../fuzz/target_gnn_onnx.h"
#include "../../fuzz/target_gnn_plan.h"
#include "../../fuzz/target_gnn_state.h"
#include "../../fuzz/target_gnn_tables.h"
#include "../../fuzz/target_irjson.h"
#include "../../fuzz/target_npu_spec.h"
#include "../../fuzz/target_npubin.h"
#include "../../fuzz/target_params.h"
#include "../../fuzz/target_pins.h"
#include "../../fuzz/target_plan.h"
#include "../../fuzz/target_profile.h"
#include "../../fuzz/target_safetensors.h"
#include "../../fuzz/target_torch_call.h"
#include "../../fuzz/targets.h"
#include "base/files/file.h"

typedef void (*target)(const uint8_t *data, size_t size_bytes);

static void replay(const char *kind, target run) {
  char folder[512], path[1024];
  snprintf(folder, sizeof folder, "%s/fuzz/corpus/%s", CLEAVE_SOURCE_DIR, kind);
  DIR *listing = opendir(folder);
  if (listing == NULL) fail_msg("cannot open %s", folder);
  unsigned count = 0;
  for (const struct dirent *item = readdir(listing); item != NULL; item = readdir(listing)) {
    if (item->d_name[0] == '.') continue;
    int length = snprintf(path, sizeof path, "%s/%s", folder, item->d_name);
    assert_true(length > 0 && (size_t)length < sizeof path);
    clv__file_map map;
    clv_error error = {0};
    assert_ok(clv__file_map_open(path, &map, &error), error);
    run(map.data, map.size_bytes);
    clv__file_map_close(&map);
    ++count;
  }
  closedir(listing);
  assert_true(count > 0);
}

static void read_seed(const char *kind, const char *name, clv__file_map *map) {
  char path[1024];
  clv_error error = {0};
  snprintf(path, sizeof path, "%s/fuzz/corpus/%s/%s", CLEAVE_SOURCE_DIR, kind, name);
  assert_ok(clv__file_map_open(path, map, &error), error);
}

typedef struct corpus_seed {
  const char *name, *refused; /* a part of the expected error, or NULL if the input must be accepted */
} corpus_seed;

/* Checks that each input is accepted or fails with the expected error. */
static void check_seeds(const char *kind, const corpus_seed *seeds, size_t count,
                        clv_status (*read)(const uint8_t *, size_t, clv_error *)) {
  for (size_t i = 0; i < count; ++i) {
    clv__file_map map;
    clv_error error = {0};
    read_seed(kind, seeds[i].name, &map);
    clv_status status = read(map.data, map.size_bytes, &error);
    clv__file_map_close(&map);
    if ((status == CLV_OK) != (seeds[i].refused == NULL))
      fail_msg("%s must be %s: %s", seeds[i].name, seeds[i].refused == NULL ? "accepted" : "rejected", error.message);
    if (status != CLV_OK && strstr(error.message, seeds[i].refused) == NULL)
      fail_msg("%s: the error must contain '%s': %s", seeds[i].name, seeds[i].refused, error.message);
  }
}

static void onnx(void **state) {
  (void)state;
  replay("onnx", fuzz_onnx);
}

static void tensor(void **state) {
  (void)state;
  replay("tensor", fuzz_tensor);
}

static void npy(void **state) {
  (void)state;
  replay("npy", fuzz_npy);
}

static void npz(void **state) {
  (void)state;
  replay("npz", fuzz_npz);
}

/* Text inputs can become outdated when a format changes. So the test checks that valid inputs are still accepted, and that
 * invalid ones fail with the expected error. */
static void plan(void **state) {
  (void)state;
  static const corpus_seed seeds[] = {{"whole", NULL},
                                      {"streamed", NULL},
                                      {"cyclic", "partition"},
                                      {"out-of-order", "partition"},
                                      {"node-twice", "'Add#0' is in two partitions"},
                                      {"other-model", "hash"},
                                      {"truncated", "column"}};
  replay("plan", fuzz_plan);
  check_seeds("plan", seeds, sizeof seeds / sizeof *seeds, fuzz_plan_status);
}

static void profile(void **state) {
  (void)state;
  replay("profile", fuzz_profile);
}

static void npu_spec(void **state) {
  (void)state;
  replay("npu_spec", fuzz_npu_spec);
}

static void irjson(void **state) {
  (void)state;
  replay("irjson", fuzz_irjson);
}

static void gnn_model(void **state) {
  (void)state;
  static const char *const whole[] = {"sage", "gcn", "gat"};
  replay("gnn_model", fuzz_gnn_model);
  for (size_t i = 0; i < sizeof whole / sizeof *whole; ++i) { /* these must be accepted */
    char path[256];
    clv__file_map map;
    clv_error error = {0};
    snprintf(path, sizeof path, "%s/fuzz/corpus/gnn_model/%s", CLEAVE_SOURCE_DIR, whole[i]);
    assert_ok(clv__file_map_open(path, &map, &error), error);
    assert_ok(fuzz_gnn_model_status(map.data, map.size_bytes, &error), error);
    clv__file_map_close(&map);
  }
}

/* Valid inputs must be accepted, and invalid ones must fail with the expected error. */
static void gnn_graph(void **state) {
  (void)state;
  static const char *const seeds[][3] = {{"edges", "x.txt", NULL},
                                         {"edges-gz", "x.txt", NULL},
                                         {"two-members", "x.txt", NULL},
                                         {"metis", "x.graph", NULL},
                                         {"weighted", "x.graph", NULL},
                                         {"npz", "x.npz", NULL},
                                         {"npz-stored", "x.npz", NULL},
                                         {"npz-turned", "x.npz", NULL},
                                         {"far-id", "x.txt", "renumber the vertices"},
                                         {"negative", "x.txt", "'-1' is not a valid destination"},
                                         {"metis-gz-cut", "x.graph", "truncated"},
                                         {"claims", "x.graph", "edges 18446744073709551615 in the header"},
                                         {"npz-nan", "x.npz", "must be finite"},
                                         {"npz-claims", "x.npz", "4000000000 vertices without features"}};
  replay("gnn_graph", fuzz_gnn_graph);
  for (size_t i = 0; i < sizeof seeds / sizeof *seeds; ++i) {
    char path[1024];
    clv__file_map map;
    clv_error error = {0};
    snprintf(path, sizeof path, "%s/fuzz/corpus/gnn_graph/%s", CLEAVE_SOURCE_DIR, seeds[i][0]);
    assert_ok(clv__file_map_open(path, &map, &error), error);
    clv_status status = fuzz_gnn_graph_status(seeds[i][1], map.data, map.size_bytes, &error);
    clv__file_map_close(&map);
    if ((status == CLV_OK) != (seeds[i][2] == NULL))
      fail_msg("%s must be %s: %s", seeds[i][0], seeds[i][2] == NULL ? "accepted" : "rejected", error.message);
    if (status != CLV_OK && strstr(error.message, seeds[i][2]) == NULL)
      fail_msg("%s: the error must contain '%s': %s", seeds[i][0], seeds[i][2], error.message);
  }
}

/* Valid inputs, from the corpus and newly made by fuzz_gnn_seeds(), must be accepted. Invalid ones must fail with the expected
 * error. */
static void gnn_tables(void **state) {
  (void)state;
  static const corpus_seed seeds[] = {{"tables", NULL},
                                      {"csv", NULL},
                                      {"truncated", "near end of file"},
                                      {"twice", "appears twice"},
                                      {"negative", "'time_ns' is -"},
                                      {"status", "status is 'OK', but a time is -1"}};
  clv__text tables, plan;
  clv_error error = {0};
  replay("gnn_tables", fuzz_gnn_tables);
  check_seeds("gnn_tables", seeds, sizeof seeds / sizeof *seeds, fuzz_gnn_tables_status);
  clv__text_init(&tables, clv__allocator_default());
  clv__text_init(&plan, clv__allocator_default());
  assert_ok(fuzz_gnn_seeds(&tables, &plan, &error), error);
  assert_ok(fuzz_gnn_tables_status((const uint8_t *)tables.data, tables.size_bytes, &error), error);
  assert_ok(fuzz_gnn_plan_status((const uint8_t *)plan.data, plan.size_bytes, &error), error);
  fuzz_gnn_tables((const uint8_t *)tables.data, tables.size_bytes);
  fuzz_gnn_plan((const uint8_t *)plan.data, plan.size_bytes);
  clv__text_finish(&plan);
  clv__text_finish(&tables);
}

static void gnn_plan(void **state) {
  (void)state;
  static const corpus_seed seeds[] = {{"plan", NULL},
                                      {"truncated", "near end of file"},
                                      {"version", "version 7 is unknown"},
                                      {"device-twice", "has two parts"},
                                      {"sequence", "sequence"},
                                      {"unknown-key", "extra"}};
  replay("gnn_plan", fuzz_gnn_plan);
  check_seeds("gnn_plan", seeds, sizeof seeds / sizeof *seeds, fuzz_gnn_plan_status);
}

static void gnn_onnx(void **state) {
  (void)state;
  static const corpus_seed seeds[] = {{"graphsage", NULL}, {"sum", "mean"}};
  replay("gnn_onnx", fuzz_gnn_onnx);
  check_seeds("gnn_onnx", seeds, sizeof seeds / sizeof *seeds, fuzz_gnn_onnx_status);
}

static void gnn_state(void **state) {
  (void)state;
  static const corpus_seed seeds[] = {{"file-1", NULL},
                                      {"file-2", NULL},
                                      {"sealed-1", NULL},
                                      {"sealed-2", NULL},
                                      {"cut-off", "it is damaged"},
                                      {"last-layer", "it is damaged"},
                                      {"other-key", "another graph, model or plan"},
                                      {"other-rows", "its rows are damaged"}};
  replay("gnn_state", fuzz_gnn_state);
  check_seeds("gnn_state", seeds, sizeof seeds / sizeof *seeds, fuzz_gnn_state_status);
}

static void params(void **state) {
  (void)state;
  static const char *const whole[] = {"safetensors", "stored", "deflated"};
  replay("params", fuzz_params);
  for (size_t i = 0; i < sizeof whole / sizeof *whole; ++i) { /* with each of these files, all weights are found */
    clv__file_map map;
    clv_error error = {0};
    read_seed("params", whole[i], &map);
    assert_int_equal(fuzz_params_bound(map.data, map.size_bytes, &error), 4);
    clv__file_map_close(&map);
  }
}

static void compiled(void **state) {
  (void)state;
  static const corpus_seed seeds[] = {
      {"whole", NULL},   {"leads-out", "'executables'"}, {"spec-outside", "'npu_specs'"}, {"newer", "version 2"},
      {"cut", "line 4"}, {"no-devices", "'devices'"},    {"bucket", "'options'"}};
  replay("compiled", fuzz_compiled);
  check_seeds("compiled", seeds, sizeof seeds / sizeof *seeds, fuzz_compiled_status);
}

static void pins(void **state) {
  (void)state;
  static const corpus_seed seeds[] = {
      {"whole", NULL}, {"no-device", "line 1: "}, {"no-equals", "line 2: "}, {"zero-byte", "line 1: "}};
  replay("pins", fuzz_pins);
  check_seeds("pins", seeds, sizeof seeds / sizeof *seeds, fuzz_pins_status);
}

static void torch_call(void **state) {
  (void)state;
  static const corpus_seed seeds[] = {
      {"sum", NULL}, {"index", NULL}, {"no-end", "the list has no closing bracket"}, {"no-type", "has no type"}};
  replay("torch_call", fuzz_torch_call);
  check_seeds("torch_call", seeds, sizeof seeds / sizeof *seeds, fuzz_torch_call_status);
}

static void safetensors(void **state) {
  (void)state;
  replay("safetensors", fuzz_safetensors);
}

static void cache(void **state) {
  (void)state;
  replay("cache", fuzz_cache);
}

/* Programs of the virtual NPU (.npubin) become outdated when their layout changes; fuzz/make_corpus.c then writes new ones. */
static void npubin(void **state) {
  (void)state;
  replay("npubin", fuzz_npubin);
  for (int i = 0; i < FUZZ_NPUBIN_SEEDS; ++i) {
    clv__text seed;
    clv__text_init(&seed, clv__allocator_default());
    const char *name = fuzz_npubin_seed(i, &seed);
    assert_non_null(name);
    char path[1024];
    clv__file_map map;
    clv_error error = {0};
    snprintf(path, sizeof path, "%s/fuzz/corpus/npubin/%s", CLEAVE_SOURCE_DIR, name);
    assert_ok(clv__file_map_open(path, &map, &error), error);
    assert_ok(fuzz_npubin_status(map.data, map.size_bytes, &error), error);
    assert_true(seed.size_bytes == map.size_bytes && memcmp(seed.data, map.data, map.size_bytes) == 0);
    clv__file_map_close(&map);
    clv__text_finish(&seed);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(onnx),      cmocka_unit_test(tensor),     cmocka_unit_test(npy),         cmocka_unit_test(npz),
      cmocka_unit_test(plan),      cmocka_unit_test(profile),    cmocka_unit_test(npu_spec),    cmocka_unit_test(irjson),
      cmocka_unit_test(npubin),    cmocka_unit_test(cache),      cmocka_unit_test(safetensors), cmocka_unit_test(gnn_graph),
      cmocka_unit_test(gnn_model), cmocka_unit_test(gnn_tables), cmocka_unit_test(gnn_plan),    cmocka_unit_test(gnn_onnx),
      cmocka_unit_test(gnn_state), cmocka_unit_test(params),     cmocka_unit_test(pins),        cmocka_unit_test(torch_call),
      cmocka_unit_test(compiled),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
