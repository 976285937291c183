/* Tests the measuring of costs: which blocks and sizes are measured, compared with an enumeration of all plans and all
 * shares; cancelling and the time limit; that blocks are left out if no good plan can contain them; and that nothing
 * remains in the cache. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "../cache/folder.h"
#include "gnn.h"
#include "gnn/measure/measure_own.h"
#include "gnn/plan/pep_cost.h"
#include "machines.h"
#include "support.h"

typedef struct scene {
  machine *m;
  test_gnn gnn;
  clv__gnn_model *model;
  clv__gnn_planning planning;
  clv__tables tables;
} scene;

static void make(scene *s, machine *m, clv__gnn_type type, uint32_t vertices, uint64_t edges, uint32_t width, uint64_t seed) {
  static const uint32_t ks[] = {1, 2, 5};
  clv_error error = {0};
  *s = (scene){.m = m};
  test_gnn_make(&s->gnn, clv__allocator_default(), vertices, edges, width, seed);
  s->model = test_gnn_model(clv__allocator_default(), type, 2, width, seed + 1);
  assert_ok(clv__gnn_planning_init(&s->planning, m->devices, s->model, s->gnn.graph, ks, 3, 0, 16, NULL, NULL, NULL, &error),
            error);
  clv__tables_init(&s->tables, clv__allocator_default());
}

static void finish(scene *s) {
  clv__tables_finish(&s->tables);
  clv__gnn_planning_finish(&s->planning);
  clv__gnn_model_destroy(s->model);
  test_gnn_finish(&s->gnn);
}

/* ---- Blocks ---- */

static bool runs(const clv__gnn_planning *p, uint32_t layer, uint32_t device, uint32_t first, uint32_t last) {
  for (uint32_t s = first; s < last; ++s) {
    if ((p->machine.devices[device].cannot >> p->chains[layer].stages[s] & 1u) != 0) return false;
  }
  return p->runs[layer]->runs[device][first][last] && !p->chains[layer].blocks[first][last].is_empty;
}

/* Returns whether some plan contains this block. Tries every two cuts of the layer (which may be at its ends) with every
 * assignment of devices to the blocks. */
static bool some_plan_holds(const clv__gnn_planning *p, uint32_t layer, uint32_t device, uint32_t first, uint32_t last) {
  uint32_t stages = p->chains[layer].stage_count, count = p->machine.device_count;
  for (uint32_t one = 0; one <= stages; ++one) {
    for (uint32_t two = one; two <= stages; ++two) {
      for (uint32_t code = 0; code < count * count * count; ++code) {
        const uint32_t cuts[4] = {0, one, two, stages}, given[3] = {code % count, code / count % count, code / count / count};
        bool fine = true, holds = false;
        for (uint32_t b = 0; b < 3; ++b) {
          if (cuts[b] == cuts[b + 1]) continue;
          fine = fine && runs(p, layer, given[b], cuts[b], cuts[b + 1]);
          for (uint32_t other = 0; other < b; ++other)
            fine = fine && (cuts[other] == cuts[other + 1] || given[other] != given[b]);
          holds = holds || (given[b] == device && cuts[b] == first && cuts[b + 1] == last);
        }
        if (fine && holds) return true;
      }
    }
  }
  return false;
}

static bool some_plan(const clv__gnn_planning *p, uint32_t layer) {
  for (uint32_t d = 0; d < p->machine.device_count; ++d) {
    for (uint32_t last = 1; last <= p->chains[layer].stage_count; ++last) {
      if (some_plan_holds(p, layer, d, 0, last)) return true;
    }
  }
  return false;
}

static void check_entries(const clv__measuring *m) {
  const clv__gnn_planning *p = m->planning;
  uint32_t wanted = 0;
  for (uint32_t layer = 0; layer < p->model->layer_count; ++layer) {
    bool is_seen = layer > 0 && strcmp(p->chains[0].layer, p->chains[layer].layer) == 0;
    for (uint32_t d = 0; d < p->machine.device_count && !is_seen; ++d) {
      uint32_t longest = 0, first_length = 0;
      for (uint32_t first = 0; first < p->chains[layer].stage_count; ++first) {
        for (uint32_t last = first + 1; last <= p->chains[layer].stage_count; ++last) {
          uint32_t found = 0;
          for (uint32_t e = 0; e < m->count; ++e) {
            const clv__measure_entry *entry = &m->entries[e];
            if (entry->layer != layer || entry->device != d || entry->first != first || entry->last != last) continue;
            ++found;
            if (entry->is_first) first_length = last - first;
          }
          bool is_wanted = some_plan_holds(p, layer, d, first, last);
          if (m->options->limit_s <= 0 || !some_plan(p, layer)) is_wanted = runs(p, layer, d, first, last);
          assert_int_equal(found, is_wanted);
          wanted += is_wanted;
          if (is_wanted && last - first > longest) longest = last - first;
        }
      }
      assert_int_equal(first_length, longest);
    }
  }
  assert_int_equal(m->count, wanted);
  assert_int_equal(m->measured->blocks, wanted);
}

/* ---- Sizes ---- */

static void widen(double value, double bounds[2]) {
  bounds[0] = fmin(bounds[0], value), bounds[1] = fmax(bounds[1], value);
}

static bool is_within(double value, const double bounds[2]) {
  return value >= bounds[0] * (1 - CLV__TABLE_TOLERANCE) && value <= bounds[1] * (1 + CLV__TABLE_TOLERANCE);
}

/* Checks that the sizes of every share are within the range of the selected sizes (tables.h), and that each selected size
 * is that of its share. */
static void check_sizes(const clv__gnn_planning *p, const clv__measure_entry *entry) {
  const clv__chain_block *block = &p->chains[entry->layer].blocks[entry->first][entry->last];
  const clv__measure_sizes *sizes = &entry->sizes;
  bool is_static = p->machine.devices[entry->device].is_static;
  double rows[2] = {INFINITY, -INFINITY}, edges[2] = {INFINITY, -INFINITY}, slopes[2] = {INFINITY, -INFINITY};
  uint32_t needed = 0;
  assert_true(sizes->count >= 4 && sizes->count <= CLV__MEASURE_MOST_SIZES);
  for (uint32_t i = 0; i < sizes->count; ++i) needed += sizes->items[i].is_needed;
  assert_true(needed == sizes->count || needed >= CLV__MEASURE_ENOUGH);
  assert_true(entry->trial == CLV__NO_ID || entry->trial + 1 >= CLV__MEASURE_ENOUGH ||
              sizes->items[entry->trial + 1].share.targets == 0 || entry->trial + 1 == sizes->count);
  for (uint32_t i = 0; i < sizes->count; ++i) {
    const clv__layer_sizes *at = &sizes->items[i].sizes;
    assert_true(at->rows > 0 && at->targets <= at->rows && (block->reads_edges || at->edges == 0));
    if (is_static) assert_true(at->rows % p->machine.pad_step == 0 && at->edges % p->machine.pad_step == 0);
    if (i > 0)
      assert_true(at->rows + at->edges >= (at - 1)->rows + (at - 1)->edges || sizes->items[i - 1].sizes.rows <= at->rows);
    widen((double)at->rows, rows), widen((double)at->edges, edges), widen((double)at->edges / (double)at->rows, slopes);
    if (sizes->items[i].share.targets == 0) continue;
    const clv__layer_sizes again = clv__measure_sizes_of(p, block, is_static, &sizes->items[i].share);
    assert_memory_equal(&again, at, sizeof again);
  }
  for (uint32_t c = 0; c < p->cut_count; ++c) {
    for (uint32_t i = 0; i < p->cuts[c].membership.k; ++i) {
      for (uint32_t from = 0; from < CLV__PEP_SHARES; ++from) {
        for (uint32_t to = from + 1; to <= CLV__PEP_SHARES; ++to) {
          clv__share share;
          if (block->is_whole && to - from < CLV__PEP_SHARES) continue;
          clv__subgraph_share(&p->cuts[c].subgraphs[i], (double)from / CLV__PEP_SHARES, (double)to / CLV__PEP_SHARES, &share);
          if (share.targets == 0) continue;
          const clv__layer_sizes at = clv__measure_sizes_of(p, block, is_static, &share);
          assert_true(is_within((double)at.rows, rows) && is_within((double)at.edges, edges));
          assert_true(is_within((double)at.edges / (double)at.rows, slopes));
        }
      }
    }
  }
}

/* Adds to the tables a device that is not open. It is unknown which blocks that device runs, so a plan with both devices may
 * begin or end with any block of the open device. */
static void check_stranger(scene *s, clv__measuring *m) {
  clv_error error = {0};
  uint32_t stages = s->planning.chains[0].stage_count;
  assert_ok(clv__tables_put_device(&s->tables, "another", "its fingerprint", &error), error);
  m->entries = NULL, m->count = 0;
  assert_ok(clv__measure_entries_find(m, &error), error);
  for (uint32_t e = 0; e < m->count && m->options->limit_s > 0; ++e)
    assert_true(m->entries[e].first == 0 || m->entries[e].last == s->planning.chains[m->entries[e].layer].stage_count);
  assert_true(m->count >=
              2 * stages - 1 - 2); /* the whole layer, its beginnings and its ends, except blocks that compute nothing */
  clv__measure_entries_finish(m);
}

static void test_choice(void **state) {
  (void)state;
  static const char *const lists[] = {"cpu", "cpu,npu", "npu", "cpu,npu1", "cpu,npu,npu1,npu2"};
  for (uint64_t round = 0; round < 15; ++round) {
    machine m = open_machine(lists[round % 5]);
    scene s;
    uint64_t seed = 100 + round;
    uint32_t vertices = 20 + (uint32_t)(test_random(&seed) % 400);
    make(&s, &m, (clv__gnn_type)(round % 3), vertices, vertices * (1 + test_random(&seed) % 9), 4, seed);
    clv__gnn_measure_options how = CLV__GNN_MEASURE_OPTIONS_INIT;
    clv__gnn_measured measured = {0};
    how.limit_s = round % 4 == 3 ? 0 : 60;
    clv__measuring measuring = {.planning = &s.planning, .options = &how, .tables = &s.tables, .measured = &measured};
    clv_error error = {0};
    assert_ok(clv__measure_entries_find(&measuring, &error), error);
    check_entries(&measuring);
    for (uint32_t e = 0; e < measuring.count; ++e) check_sizes(&s.planning, &measuring.entries[e]);
    assert_true(clv__measure_entries_bytes(&measuring, false) <= clv__measure_entries_bytes(&measuring, true));
    clv__measure_entries_finish(&measuring);
    if (round % 5 == 0) check_stranger(&s, &measuring);
    finish(&s);
    close_machine(&m);
  }
}

/* ---- Cancelling and the time limit ---- */

typedef struct listener {
  uint32_t calls, stop_after, last_done;
  bool knows; /* whether the remaining time is known */
} listener;

static bool listen(void *user_data, const clv__gnn_measure_progress *at) {
  listener *l = user_data;
  assert_true(at->done < at->of && at->done >= l->last_done && at->device != NULL);
  if (l->calls > 0) assert_true(at->left_s >= 0);
  l->last_done = at->done;
  return ++l->calls != l->stop_after;
}

static void test_limits(void **state) {
  (void)state;
  machine m = open_machine("cpu,npu");
  scene s;
  make(&s, &m, CLV__GNN_SAGE, 300, 1500, 6, 9);
  clv__gnn_measure_options how = CLV__GNN_MEASURE_OPTIONS_INIT;
  clv__gnn_measured measured;
  listener l = {.stop_after = 3};
  clv_error error = {0};
  how.runs = 1;
  how.progress = listen, how.user_data = &l;
  assert_int_equal(clv__gnn_measure(&s.planning, &how, &s.tables, &measured, &error), CLV_CANCELLED);
  assert_non_null(strstr(error.message, "cancelled"));
  assert_int_equal(l.calls, 3);
  clv__error_clear(&error);
  how.limit_s = -1;
  assert_int_equal(clv__gnn_measure(&s.planning, &how, &s.tables, &measured, &error), CLV_INVALID_ARGUMENT);
  clv__error_clear(&error);
  clv__tables_finish(&s.tables);
  clv__tables_init(&s.tables, clv__allocator_default());
  l = (listener){0};
  how.limit_s = 1e-9; /* no time: only one block of each layer is measured on each device */
  assert_ok(clv__gnn_measure(&s.planning, &how, &s.tables, &measured, &error), error);
  uint32_t layers = strcmp(s.planning.chains[0].layer, s.planning.chains[1].layer) == 0 ? 1 : 2;
  assert_int_equal(s.tables.table_count, 2 * layers);
  assert_int_equal(measured.cut_off, measured.blocks - 2 * layers);
  assert_int_equal(measured.points, l.calls);
  uint32_t few = measured.points;
  l = (listener){0};
  how.limit_s = 0;
  assert_ok(clv__gnn_measure(&s.planning, &how, &s.tables, &measured, &error), error);
  assert_true(s.tables.table_count > 2 * layers);
  assert_int_equal(s.tables.table_count, measured.blocks);
  assert_true(measured.cut_off == 0 && measured.needless == 0 && measured.points > few);
  finish(&s);
  close_machine(&m);
}

/* ---- Needless blocks ---- */

/* Blocks that write, copy or read messages must be left out. The times come from the devices' speed models, by which moving
 * messages, one long row for each of many edges, takes longer than the whole layer, which does not store messages. */
static void test_needless(void **state) {
  (void)state;
  enum { VERTICES = 4000, EDGES = 200000, WIDTH = 64 };
#define MODELLED(name)                                                                                    \
  "{\"name\": \"" name "\", \"operators\": \"all\", \"memory_space\": \"" name                            \
  "\", \"speed\": {\"launch_overhead_us\": 1000, \"bytes_per_second\": 1e9, \"flops_per_second\": 1e11, " \
  "\"copy_latency_us\": 1, "                                                                              \
  "\"copy_bytes_per_second\": 1e9}}"
  static const char *const specs[] = {MODELLED("v"), MODELLED("w")};
  machine m;
  scene s;
  clv_context_options context = CLV_CONTEXT_OPTIONS_INIT;
  clv_devices_options devices = CLV_DEVICES_OPTIONS_INIT;
  clv_error error = {0};
  context.cache_directory = "";
  devices.list = "v,w";
  devices.npu_specs = specs, devices.npu_spec_count = 2;
  assert_ok(clv_context_create(&context, &m.context, &error), error);
  assert_ok(clv_devices_open(m.context, &devices, &m.devices, &error), error);
  make(&s, &m, CLV__GNN_GCN, VERTICES, EDGES, WIDTH, 21);
  clv__gnn_measure_options how = CLV__GNN_MEASURE_OPTIONS_INIT;
  clv__gnn_measured measured = {0};
  how.asks_models = true;
  how.limit_s = 1e6;
  assert_ok(clv__gnn_measure(&s.planning, &how, &s.tables, &measured, &error), error);
  uint32_t needless = 0;
  clv__measuring measuring = {.planning = &s.planning, .options = &how, .tables = &s.tables, .measured = &measured};
  assert_ok(clv__measure_entries_find(&measuring, &error), error);
  for (uint32_t e = 0; e < measuring.count; ++e) {
    const clv__measure_entry *entry = &measuring.entries[e];
    const clv__stages *stages = &s.planning.stages[entry->layer];
    const clv__value_set messages = CLV__VALUE_BIT(CLV__VALUE_GATHERED) | CLV__VALUE_BIT(CLV__VALUE_MESSAGES);
    bool moves =
        ((clv__block_reads(stages, entry->first, entry->last, false) | clv__block_makes(stages, entry->first, entry->last)) &
         messages) != 0;
    bool is_kept = clv__tables_find(&s.tables, s.planning.machine.devices[entry->device].name,
                                    s.planning.chains[entry->layer].layer, entry->first, entry->last) != NULL;
    assert_true(is_kept || moves);
    /* Layer 1 is not compared: its rows are so short that copying messages may pay. */
    if (entry->layer == 0) assert_int_equal(is_kept, !moves);
    needless += !is_kept;
  }
  assert_int_equal(measured.needless, needless);
  assert_true(needless > 0 && needless < measuring.count);
  clv__measure_entries_finish(&measuring);
  finish(&s);
  close_machine(&m);
}

/* ---- The cache ---- */

static void test_nothing_kept(void **state) {
  (void)state;
  folder f;
  clv_error error = {0};
  machine m;
  scene s;
  clv_context_options context = CLV_CONTEXT_OPTIONS_INIT;
  clv_devices_options devices = CLV_DEVICES_OPTIONS_INIT;
  folder_make(&f);
  context.cache_directory = f.path;
  devices.list = "npu";
  assert_ok(clv_context_create(&context, &m.context, &error), error);
  assert_ok(clv_devices_open(m.context, &devices, &m.devices, &error), error);
  make(&s, &m, CLV__GNN_SAGE, 200, 900, 6, 5);
  clv__gnn_measure_options how = CLV__GNN_MEASURE_OPTIONS_INIT;
  how.runs = 1;
  clv_status status = clv__gnn_measure(&s.planning, &how, &s.tables, NULL, &error);
  if (status != CLV_OK) fail_msg("the measurement fails: %s", error.message);
  uint32_t compiled = 0;
  for (uint32_t t = 0; t < s.tables.table_count; ++t) compiled += s.tables.tables[t].compile_ns > 0;
  assert_true(compiled > 0 && compiled == s.tables.table_count);
  const folder_count count = folder_look(f.path);
  assert_int_equal(count.whole + count.damaged + count.unfinished, 0);
  finish(&s);
  close_machine(&m);
  folder_remove(f.path);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_choice),
      cmocka_unit_test(test_limits),
      cmocka_unit_test(test_needless),
      cmocka_unit_test(test_nothing_kept),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
