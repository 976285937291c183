/* Tests blocks. Layers are cut into blocks at all possible places and run over subgraphs with halos, in the open and the padded
 * form; the results are compared with sums in double. Also tests which values cross between blocks, and which stages devices
 * support. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "gnn.h"
#include "gnn/model/block.h"
#include "machines.h"
#include "support.h"

/* ---- The values of a subgraph, whole or padded ---- */

typedef struct packed {
  clv__layer_values values;
  uint32_t count;
  void *blocks[16];
} packed;

static clv_tensor *pack(packed *p, const clv__stages *stages, clv__layer_value which, clv__layer_sizes sizes) {
  clv__value_shape shape = clv__layer_value_shape(stages, which);
  const int64_t dims[] = {(int64_t)clv__layer_dimension_size(shape.dimension, sizes), shape.columns};
  p->values.items[which] = clv__tensor_make(shape.dtype, shape.columns == 0 ? 1 : 2, dims,
                                            calloc(1, 64 + clv__layer_value_bytes(stages, which, sizes)));
  p->blocks[p->count++] = p->values.items[which].data;
  assert_non_null(p->values.items[which].data);
  return &p->values.items[which];
}

static void pack_rows(packed *p, const clv__stages *stages, const clv__subgraph *sub, const float *x, const float *degrees,
                      clv__layer_sizes sizes) {
  uint32_t in = stages->layer->in;
  clv_tensor *rows = pack(p, stages, CLV__VALUE_ROWS, sizes), *own = pack(p, stages, CLV__VALUE_OWN, sizes);
  for (uint32_t i = 0; i < sub->owned_count + sub->halo_count; ++i) {
    for (uint32_t c = 0; c < in; ++c) {
      double from = x[(size_t)sub->vertices[i] * in + c];
      clv__tensor_put(rows, (size_t)i * in + c, from, 0, false);
      if (i < sizes.targets) clv__tensor_put(own, (size_t)i * in + c, from, 0, false);
    }
  }
  if (stages->type != CLV__GNN_GCN) return;
  float *all = pack(p, stages, CLV__VALUE_DEGREES, sizes)->data, *mine = pack(p, stages, CLV__VALUE_OWN_DEGREES, sizes)->data;
  for (uint32_t i = 0; i < sizes.rows; ++i) all[i] = i < sub->owned_count + sub->halo_count ? degrees[sub->vertices[i]] : 1;
  for (uint32_t i = 0; i < sizes.targets; ++i) mine[i] = all[i];
}

static void pack_edges(packed *p, const clv__stages *stages, const clv__subgraph *sub, clv__layer_sizes sizes) {
  int64_t *offsets = pack(p, stages, CLV__VALUE_OFFSETS, sizes)->data;
  int32_t *sources = pack(p, stages, CLV__VALUE_SOURCES, sizes)->data, *destinations = NULL, *positions = NULL;
  destinations = calloc(sizes.edges + 1, sizeof *destinations);
  positions = calloc(sizes.edges + 1, sizeof *positions);
  assert_true(destinations != NULL && positions != NULL);
  p->blocks[p->count++] = destinations;
  p->blocks[p->count++] = positions;
  for (uint64_t v = 0; v <= sizes.targets; ++v) offsets[v] = (int64_t)sub->offsets[v < sub->owned_count ? v : sub->owned_count];
  for (uint64_t e = 0; e < sizes.edges; ++e) {
    sources[e] = e < sub->edge_count ? (int32_t)sub->sources[e] : (int32_t)(sizes.rows - 1);
    destinations[e] = (int32_t)(sizes.targets - 1);
    positions[e] = (int32_t)e;
  }
  for (uint32_t v = 0; v < sub->owned_count; ++v) {
    for (uint64_t e = sub->offsets[v]; e < sub->offsets[v + 1]; ++e) destinations[e] = (int32_t)v;
  }
  p->values.items[CLV__VALUE_DESTINATIONS] = clv__tensor_make(CLV_I32, 1, (const int64_t[]){(int64_t)sizes.edges}, destinations);
  p->values.items[CLV__VALUE_POSITIONS] = clv__tensor_make(CLV_I32, 1, (const int64_t[]){(int64_t)sizes.edges}, positions);
}

static void unpack(packed *p) {
  for (uint32_t i = 0; i < p->count; ++i) free(p->blocks[i]);
}

/* ---- One layer over one subgraph, cut at `cuts` ---- */

typedef struct scene {
  machine m;
  clv__stages stages;
  const float *x, *degrees;
  double *expected; /* [n, width] */
  float *result;    /* [n, width] */
} scene;

/* Copies the values that a block has computed, because they must outlive its session. */
static void keep(packed *p, clv__value_set made) {
  for (uint32_t v = 0; v < CLV__LAYER_VALUES; ++v) {
    clv_tensor *tensor = &p->values.items[v];
    size_t size_bytes;
    if ((made & CLV__VALUE_BIT(v)) == 0) continue;
    assert_true(clv__tensor_size_bytes(tensor, &size_bytes));
    void *copy = malloc(size_bytes + 1);
    assert_non_null(copy);
    if (size_bytes > 0) memcpy(copy, tensor->data, size_bytes);
    p->blocks[p->count++] = tensor->data = copy;
  }
}

static void check_shape(const scene *s, const clv_tensor *tensor, clv__layer_value value, clv__layer_sizes sizes) {
  clv__value_shape shape = clv__layer_value_shape(&s->stages, value);
  if (tensor->dtype == shape.dtype && tensor->rank == (shape.columns == 0 ? 1 : 2) &&
      tensor->dims[0] == (int64_t)clv__layer_dimension_size(shape.dimension, sizes) &&
      (shape.columns == 0 || tensor->dims[1] == shape.columns))
    return;
  char text[64];
  clv__tensor_text(tensor, text, sizeof text);
  fail_msg("value %s has the wrong type: %s", clv__layer_value_name(value), text);
}

static void run_cut(scene *s, const clv__subgraph *sub, clv__block_form form, const uint32_t cuts[4]) {
  clv__layer_sizes sizes = {sub->owned_count + sub->halo_count, sub->owned_count, sub->edge_count};
  clv_error error = {0};
  packed p = {0};
  uint32_t width = clv__gnn_layer_width(s->stages.layer);
  if (form.is_fixed) sizes = form.sizes;
  pack_rows(&p, &s->stages, sub, s->x, s->degrees, sizes);
  pack_edges(&p, &s->stages, sub, sizes);
  clv__value_set there = CLV__VALUES_GIVEN;
  for (uint32_t b = 0; cuts[b] < s->stages.count; ++b) {
    clv__block block;
    clv__block_run run;
    assert_ok(clv__block_make(clv__allocator_default(), &s->stages, cuts[b], cuts[b + 1], &form, &block, &error), error);
    assert_int_equal(block.reads & ~there, 0); /* every value that it reads is given or comes from an earlier block */
    there |= block.makes;
    assert_ok(clv__block_open(s->m.devices, 0, &block, NULL, &run, &error), error);
    assert_ok(clv__block_execute(&run, &p.values, &error), error);
    for (uint32_t i = 0; i < run.block.output_count; ++i)
      check_shape(s, &p.values.items[run.block.outputs[i]], run.block.outputs[i], sizes);
    keep(&p, run.block.makes);
    clv__block_close(&run);
  }
  const float *result = p.values.items[CLV__VALUE_RESULT].data;
  for (uint32_t v = 0; v < sub->owned_count; ++v)
    memcpy(s->result + (size_t)sub->vertices[v] * width, result + (size_t)v * width, width * sizeof *result);
  unpack(&p);
}

/* ---- Layers ---- */

typedef void (*cutter)(scene *s, const clv__partitioned *parts, uint32_t n, const char *what);

static void clear(scene *s, uint32_t n) {
  for (size_t i = 0; i < (size_t)n * clv__gnn_layer_width(s->stages.layer); ++i) s->result[i] = NAN;
}

static void each_layer(uint64_t seed, clv_dtype storage, uint32_t n, uint64_t m, uint32_t k, int rounds, cutter cut) {
  scene s = {.m = open_machine("cpu")};
  clv_error error = {0};
  for (int round = 0; round < rounds; ++round) {
    for (int type = 0; type < 3; ++type) {
      test_gnn gnn;
      char what[64];
      uint32_t features = 1 + (uint32_t)(test_random(&seed) % 14), *parts = malloc(n * sizeof *parts);
      test_gnn_make(&gnn, clv__allocator_default(), n, m, features, test_random(&seed));
      clv__gnn_model *model = test_gnn_model(clv__allocator_default(), (clv__gnn_type)type, 1, features, test_random(&seed));
      clv__gnn_graph *looped = NULL, *graph = gnn.graph;
      if (type != CLV__GNN_SAGE) assert_ok(clv__gnn_graph_with_loops(gnn.graph, &looped, &error), error);
      if (looped != NULL) graph = looped;
      float *degrees = malloc(n * sizeof *degrees);
      assert_true(parts != NULL && degrees != NULL);
      for (uint32_t v = 0; v < n; ++v) parts[v] = (uint32_t)(test_random(&seed) % k);
      for (uint32_t v = 0; v < n; ++v) degrees[v] = (float)(graph->csr.offsets[v + 1] - graph->csr.offsets[v]);
      clv__membership membership = {.k = k, .vertex_count = n, .parts = parts};
      clv__partitioned partitioned;
      assert_ok(clv__partitioned_make(clv__allocator_default(), graph, &membership, &partitioned, &error), error);
      clv__stages_of((clv__gnn_type)type, model->layers, storage, &s.stages);
      s.x = gnn.features.data;
      s.degrees = degrees;
      s.expected = test_gnn_expected(&gnn, model);
      s.result = malloc((size_t)n * clv__gnn_layer_width(model->layers) * sizeof *s.result);
      assert_non_null(s.result);
      snprintf(what, sizeof what, "round %d, type %d, %s", round, type,
               s.stages.transform_first ? "transform first" : "transform last");
      cut(&s, &partitioned, n, what);
      free(s.result), free(s.expected), free(degrees), free(parts);
      clv__partitioned_finish(&partitioned);
      clv__gnn_graph_destroy(looped);
      clv__gnn_model_destroy(model);
      test_gnn_finish(&gnn);
    }
  }
  close_machine(&s.m);
}

static void every_cut(scene *s, const clv__partitioned *parts, uint32_t n, const char *what) {
  uint32_t count = s->stages.count, width = clv__gnn_layer_width(s->stages.layer);
  for (uint32_t a = 1; a <= count; ++a) {
    for (uint32_t b = a; b <= count; ++b) {
      if (b == a && a != count) continue; /* no block is empty; a == b == count: a single block */
      const uint32_t cuts[4] = {0, a, b, count};
      char where[128];
      clear(s, n);
      for (uint32_t i = 0; i < parts->k; ++i) run_cut(s, &parts->subgraphs[i], clv__block_form_open(false), cuts);
      snprintf(where, sizeof where, "%s, cut at %u and %u", what, a, b);
      test_gnn_compare(s->expected, s->result, n, width, where);
    }
  }
}

static void test_every_cut(void **state) {
  (void)state;
  each_layer(11, CLV_F32, 40, 130, 2, 2, every_cut);
  each_layer(12, CLV_F32, 3, 0, 1, 1, every_cut); /* no edges */
  each_layer(13, CLV_F32, 5, 9, 8, 1, every_cut); /* some subgraphs own no vertices */
}

/* Pads to multiples of different steps, some of which divide the sizes exactly. */
static void every_padding(scene *s, const clv__partitioned *parts, uint32_t n, const char *what) {
  uint32_t count = s->stages.count, width = clv__gnn_layer_width(s->stages.layer);
  const clv__subgraph *sub = &parts->subgraphs[0];
  const uint64_t steps[] = {1, 7, 64, sub->owned_count + sub->halo_count, sub->edge_count};
  const uint32_t cuts[][4] = {{0, count, count, count}, {0, 1, 3, count}, {0, 2, count, count}, {0, 4, 5, count}};
  for (size_t i = 0; i < sizeof steps / sizeof *steps; ++i) {
    for (size_t c = 0; c < sizeof cuts / sizeof *cuts; ++c) {
      char where[128];
      clear(s, n);
      for (uint32_t k = 0; k < parts->k; ++k) {
        sub = &parts->subgraphs[k];
        run_cut(s, sub, clv__block_form_padded(sub->owned_count + sub->halo_count, sub->edge_count, steps[i] == 0 ? 1 : steps[i]),
                cuts[c]);
      }
      snprintf(where, sizeof where, "%s, padded to multiples of %llu, cuts %zu", what, (unsigned long long)steps[i], c);
      test_gnn_compare(s->expected, s->result, n, width, where);
    }
  }
}

static void test_every_padding(void **state) {
  (void)state;
  each_layer(21, CLV_F32, 40, 130, 2, 2, every_padding);
}

static void test_padded_sizes(void **state) {
  (void)state;
  static const uint64_t cases[][4] = {{1000, 5000, 1000, 5000}, {1000, 5001, 2000, 6000}, {999, 5001, 1000, 6000},
                                      {1, 0, 1000, 0},          {1001, 1000, 2000, 1000}, {0, 0, 0, 0}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    clv__block_form form = clv__block_form_padded(cases[i][0], cases[i][1], 1000);
    assert_int_equal(form.sizes.rows, cases[i][2]);
    assert_int_equal(form.sizes.targets, cases[i][2]);
    assert_int_equal(form.sizes.edges, cases[i][3]);
  }
}

/* Runs with rows stored as bf16. The tolerance allows for the rounding to bf16. */
static void halves(scene *s, const clv__partitioned *parts, uint32_t n, const char *what) {
  uint32_t count = s->stages.count, width = clv__gnn_layer_width(s->stages.layer);
  const uint32_t cuts[][4] = {{0, count, count, count}, {0, 1, 2, count}, {0, 3, 5, count}};
  for (size_t c = 0; c < sizeof cuts / sizeof *cuts; ++c) {
    double largest = 1;
    clear(s, n);
    for (uint32_t i = 0; i < parts->k; ++i) run_cut(s, &parts->subgraphs[i], clv__block_form_open(false), cuts[c]);
    for (size_t i = 0; i < (size_t)n * width; ++i) largest = fmax(largest, fabs(s->expected[i]));
    for (size_t i = 0; i < (size_t)n * width; ++i) {
      if (fabs(s->expected[i] - (double)s->result[i]) > 0.03 * largest || isnan(s->result[i]))
        fail_msg("%s, cuts %zu: a result is %g, expected %g", what, c, (double)s->result[i], s->expected[i]);
    }
  }
}

static void test_halves(void **state) {
  (void)state;
  each_layer(31, CLV_BF16, 40, 130, 2, 2, halves);
}

/* ---- The values of stages, and the stages that devices support ---- */

static void test_values(void **state) {
  (void)state;
  clv__gnn_layer wide = {.in = 8, .out = 16, .heads = 1, .concat = true},
                 narrow = {.in = 16, .out = 8, .heads = 1, .concat = true};
  clv__stages stages;
  clv__layer_sizes sizes = {.rows = 100, .targets = 80, .edges = 1000};
  clv__stages_of(CLV__GNN_SAGE, &wide, CLV_F32, &stages);
  assert_int_equal(stages.count, 7);
  assert_string_equal(clv__stage_name(stages.items[0]), "gather");
  assert_string_equal(clv__stage_name(stages.items[5]), "transform");
  const uint32_t head[] = {0, 5}, tail[] = {5, 7}, gather[] = {0, 1}, rest[] = {1, 7};
  assert_int_equal(clv__block_crossing(&stages, head, tail),
                   CLV__VALUE_BIT(CLV__VALUE_MEAN)); /* no value that crosses has one row per edge */
  assert_int_equal(clv__block_crossing(&stages, gather, rest), CLV__VALUE_BIT(CLV__VALUE_GATHERED));
  assert_int_equal(clv__layer_set_bytes(&stages, CLV__VALUE_BIT(CLV__VALUE_MEAN), sizes), 80 * 8 * 4);
  assert_int_equal(clv__layer_set_bytes(&stages, clv__block_crossing(&stages, gather, rest), sizes), 1000 * 8 * 4);
  assert_int_equal(clv__block_reads(&stages, 5, 7, true),
                   CLV__VALUE_BIT(CLV__VALUE_MEAN) | CLV__VALUE_BIT(CLV__VALUE_OWN)); /* reads neither halo rows nor edges */
  assert_true(clv__block_is_empty(&stages, 1, 2));
  assert_false(clv__block_is_empty(&stages, 1, 3));
  clv__stages_of(CLV__GNN_SAGE, &narrow, CLV_F32, &stages);
  assert_string_equal(clv__stage_name(stages.items[0]), "transform");
  const uint32_t first[] = {0, 1}, middle[] = {1, 6}, last[] = {6, 7};
  assert_int_equal(clv__block_crossing(&stages, first, middle), CLV__VALUE_BIT(CLV__VALUE_PROJECTED));
  assert_int_equal(clv__block_crossing(&stages, first, last),
                   CLV__VALUE_BIT(CLV__VALUE_OWN_PROJECTED)); /* the value skips the middle block */
  assert_int_equal(clv__layer_value_shape(&stages, CLV__VALUE_SCORES).dtype, CLV_DTYPE_NONE);
}

static void test_devices(void **state) {
  (void)state;
  machine m = open_machine("npu,cpu");
  clv_error error = {0};
  for (int type = 0; type < 3; ++type) {
    clv__gnn_model *model = test_gnn_model(clv__allocator_default(), (clv__gnn_type)type, 2, 9, 5);
    clv__stages stages;
    clv__stage_table *table = malloc(sizeof *table);
    assert_non_null(table);
    clv__stages_of((clv__gnn_type)type, model->layers, CLV_F32, &stages);
    assert_ok(clv__stage_table_make(m.devices, &stages, table, &error), error);
    for (uint32_t first = 0; first < stages.count; ++first) {
      clv__stage stage = stages.items[first];
      bool reduces = stage == CLV__STAGE_REDUCE_SUM || stage == CLV__STAGE_REDUCE_COUNT || stage == CLV__STAGE_SOFTMAX;
      if (table->runs[0][first][first + 1] == reduces)
        fail_msg("npu %s stage %s, reason '%s'", reduces ? "must not support" : "must support", clv__stage_name(stage),
                 table->reasons[0][first]);
      assert_int_equal(table->reasons[0][first][0] != '\0', reduces);
      for (uint32_t last = first + 1; last <= stages.count; ++last) {
        bool all = true;
        for (uint32_t s = first; s < last; ++s) all = all && table->runs[0][s][s + 1];
        assert_true(table->runs[1][first][last]);
        assert_int_equal(table->runs[0][first][last], all);
      }
    }
    free(table);
    clv__gnn_model_destroy(model);
  }
  close_machine(&m);
}

/* Runs the last stages of a layer on the virtual NPU and the earlier stages on the CPU, all padded. */
static void npu_tail(scene *s, const clv__partitioned *parts, uint32_t n, const char *what) {
  uint32_t count = s->stages.count, width = clv__gnn_layer_width(s->stages.layer);
  const uint32_t tail = s->stages.items[count - 2] == CLV__STAGE_TRANSFORM ? count - 2 : count - 1;
  machine m = open_machine("npu,cpu");
  clv_error error = {0};
  clear(s, n);
  for (uint32_t k = 0; k < parts->k; ++k) {
    const clv__subgraph *sub = &parts->subgraphs[k];
    clv__block_form form = clv__block_form_padded(sub->owned_count + sub->halo_count, sub->edge_count, 100);
    packed p = {0};
    pack_rows(&p, &s->stages, sub, s->x, s->degrees, form.sizes);
    pack_edges(&p, &s->stages, sub, form.sizes);
    for (uint32_t b = 0; b < 2; ++b) {
      clv__block block;
      clv__block_run run;
      assert_ok(
          clv__block_make(clv__allocator_default(), &s->stages, b == 0 ? 0 : tail, b == 0 ? tail : count, &form, &block, &error),
          error);
      assert_ok(clv__block_open(m.devices, b == 0 ? 1 : 0, &block, NULL, &run, &error), error);
      assert_ok(clv__block_execute(&run, &p.values, &error), error);
      keep(&p, run.block.makes);
      clv__block_close(&run);
    }
    const float *result = p.values.items[CLV__VALUE_RESULT].data;
    for (uint32_t v = 0; v < sub->owned_count; ++v)
      memcpy(s->result + (size_t)sub->vertices[v] * width, result + (size_t)v * width, width * sizeof *result);
    unpack(&p);
  }
  test_gnn_compare(s->expected, s->result, n, width, what);
  close_machine(&m);
}

static void test_npu_tail(void **state) {
  (void)state;
  each_layer(41, CLV_F32, 40, 130, 2, 2, npu_tail);
}

static void test_refusals(void **state) {
  (void)state;
  machine m = open_machine("npu,cpu");
  clv__gnn_model *model = test_gnn_model(clv__allocator_default(), CLV__GNN_SAGE, 1, 9, 5);
  clv__block_form form = clv__block_form_padded(10, 20, 8), wrong = {.is_fixed = true, .sizes = {1, 2, 3}};
  clv__stages stages;
  clv__block block;
  clv__block_run run;
  clv_error error = {0};
  clv__stages_of(CLV__GNN_SAGE, model->layers, CLV_F32, &stages);
  assert_int_equal(clv__block_make(clv__allocator_default(), &stages, 3, 3, &form, &block, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv__block_make(clv__allocator_default(), &stages, 0, 2, &wrong, &block, &error), CLV_INVALID_ARGUMENT);
  wrong.sizes = (clv__layer_sizes){(uint64_t)INT32_MAX + 1, 2, 3};
  assert_int_equal(clv__block_make(clv__allocator_default(), &stages, 0, 2, &wrong, &block, &error), CLV_NOT_SUPPORTED);
  assert_ok(clv__block_make(clv__allocator_default(), &stages, 0, stages.count, &form, &block, &error), error);
  assert_int_equal(clv__block_open(m.devices, 0, &block, NULL, &run, &error), CLV_NOT_SUPPORTED);
  assert_non_null(strstr(error.message, "SparseAggregate"));
  assert_ok(clv__block_make(clv__allocator_default(), &stages, 0, stages.count, &form, &block, &error), error);
  assert_ok(clv__block_open(m.devices, 1, &block, NULL, &run, &error), error);
  clv__layer_values values = {0};
  assert_int_equal(clv__block_execute(&run, &values, &error), CLV_INVALID_ARGUMENT);
  clv__block_close(&run);
  clv__gnn_model_destroy(model);
  close_machine(&m);
}

/* Each allocation fails in turn; nothing may leak. */
static void test_memory(void **state) {
  (void)state;
  for (int type = 0; type < 3; ++type) {
    clv__gnn_model *model = test_gnn_model(clv__allocator_default(), (clv__gnn_type)type, 1, 9, 5);
    clv__block_form form = clv__block_form_open(false);
    clv__stages stages;
    clv__stages_of((clv__gnn_type)type, model->layers, CLV_BF16, &stages);
    for (size_t fail_at = 1;; ++fail_at) {
      test_allocator counting;
      clv__block block;
      clv_error error = {0};
      test_allocator_init(&counting);
      counting.fail_at = fail_at;
      clv_status status = clv__block_make(&counting.allocator, &stages, 0, stages.count, &form, &block, &error);
      clv__block_finish(&block);
      assert_int_equal(counting.live, 0);
      if (status == CLV_OK) break;
      assert_int_equal(status, CLV_OUT_OF_MEMORY);
    }
    clv__gnn_model_destroy(model);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_cut), cmocka_unit_test(test_every_padding), cmocka_unit_test(test_padded_sizes),
      cmocka_unit_test(test_halves),    cmocka_unit_test(test_values),        cmocka_unit_test(test_devices),
      cmocka_unit_test(test_npu_tail),  cmocka_unit_test(test_refusals),      cmocka_unit_test(test_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
