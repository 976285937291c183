/* Tests cost tables: fits recover known coefficients; sizes outside the measured range are unknown; sizes that ran out of
 * memory are infeasible. Also tests reading and writing files of tables. */
#include "gnn/tables/tables.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gnx.h"

static clv_error error;

static double uniform(uint64_t *state) {
  return (test_random_float(state) + 1) / 2;
}

/* The measured times are linear in n rows and m edges, with non-negative coefficients. The fit must predict the times between
 * the measured sizes. */
static void test_recovers(void **unused) {
  (void)unused;
  uint64_t state = 1;
  for (int round = 0; round < 50; ++round) {
    clv__tables tables;
    clv__tables_init(&tables, clv__allocator_default());
    double a = 1e5 * uniform(&state), b = round % 3 == 0 ? 0 : 100 * uniform(&state),
           c = round % 5 == 0 ? 0 : 10 * uniform(&state);
    for (uint64_t n = 100; n <= 51200; n *= 2) {
      for (uint64_t density = 1; density <= 16; density *= 4) {
        clv__table_point point = {.n = n, .m = n * density, .time_ns = a + b * (double)n + c * (double)(n * density)};
        point.peak_bytes = 1000 + 8 * n;
        assert_ok(clv__tables_put(&tables, "cpu", "l", 0, 4, &point, &error), error);
      }
    }
    assert_ok(clv__tables_fit(&tables, &error), error);
    const clv__block_table *table = clv__tables_find(&tables, "cpu", "l", 0, 4);
    double time;
    assert_true(table->time.is_good);
    assert_true(table->time.base >= 0 && table->time.per_n >= 0 && table->time.per_m >= 0);
    assert_true(table->time.error < 1e-3 && table->time.worst_error < 0.1);
    for (int q = 0; q < 20; ++q) {
      uint64_t n = 100 + test_random(&state) % 51000, m = n * (1 + test_random(&state) % 16);
      assert_int_equal(clv__table_time(table, n, m, n, &time), CLV__KNOWN);
      assert_true(fabs(time - (a + b * (double)n + c * (double)m)) <= 1e-3 * time + 1);
      assert_true(llabs((long long)clv__table_peak(table, n, m, n) - (long long)(1000 + 8 * n)) <= 1 + (long long)n / 100);
    }
    assert_null(clv__tables_find(&tables, "cpu", "l", 0, 3));
    clv__tables_finish(&tables);
  }
}

/* Computed rows get a coefficient of their own if some point computes fewer rows than it reads. Without such a point, computed
 * and read rows have one coefficient together. */
static void test_targets(void **unused) {
  (void)unused;
  clv__tables tables, again;
  clv__text text;
  double time;
  clv__tables_init(&tables, clv__allocator_default());
  clv__tables_init(&again, clv__allocator_default());
  for (int round = 0; round < 2; ++round) {
    for (uint64_t n = 100; n <= 51200; n *= 2) {
      for (uint64_t m = n; m <= 16 * n; m *= 4) {
        for (uint64_t part = 1; part <= (round == 0 ? 1 : 4); part *= 4) {
          clv__table_point point = {.n = n, .m = m, .targets = n / part, .origin = CLV__SYNTHETIC};
          point.time_ns = 5e4 + 3 * (double)n + 2 * (double)m + 40 * (double)(n / part);
          assert_ok(clv__tables_put(&tables, "gpu", "l", 0, 7, &point, &error), error);
        }
      }
    }
    assert_ok(clv__tables_fit(&tables, &error), error);
    const clv__block_table *table = clv__tables_find(&tables, "gpu", "l", 0, 7);
    assert_int_equal(clv__table_time(table, 10000, 50000, 1000, &time), CLV__KNOWN);
    double expected = 5e4 + 3e4 + 1e5 + 40 * (round == 0 ? 1e4 : 1e3);
    if (fabs(time - expected) > 1e-3 * expected) fail_msg("round %d: the time is %g, expected %g", round, time, expected);
    if (round == 0) assert_true(table->time.per_target == 0);
  }
  clv__text_init(&text, clv__allocator_default());
  assert_ok(clv__tables_print(&tables, &text, &error), error);
  assert_ok(clv__tables_parse(&again, text.data, text.size_bytes, "t", &error), error);
  assert_int_equal(clv__table_time(clv__tables_find(&again, "gpu", "l", 0, 7), 10000, 50000, 1000, &time), CLV__KNOWN);
  assert_true(fabs(time - 2.2e5) <= 220);
  clv__table_point wrong = {.n = 5, .targets = 6};
  assert_int_equal(clv__tables_put(&tables, "gpu", "l", 0, 7, &wrong, &error), CLV_INVALID_ARGUMENT);
  clv__text_finish(&text);
  clv__tables_finish(&again);
  clv__tables_finish(&tables);
}

/* A size outside the measured range of n, m or edges per row is unknown. A size that is at least as large, in n and m, as one
 * that ran out of memory is infeasible. */
static void test_domain(void **unused) {
  (void)unused;
  clv__tables tables;
  clv__tables_init(&tables, clv__allocator_default());
  for (uint64_t n = 1000; n <= 8000; n *= 2) {
    for (uint64_t density = 2; density <= 8; density *= 2) {
      clv__table_point point = {.n = n, .m = n * density, .time_ns = 1e4 + (double)n};
      if (n == 8000 && density == 8) point.infeasible = true;
      assert_ok(clv__tables_put(&tables, "gpu", "l", 0, 4, &point, &error), error);
    }
  }
  assert_ok(clv__tables_fit(&tables, &error), error);
  const clv__block_table *table = clv__tables_find(&tables, "gpu", "l", 0, 4);
  static const struct {
    uint64_t n, m;
    clv__known known;
  } asked[] = {{4000, 16000, CLV__KNOWN},   {951, 3000, CLV__KNOWN},        {940, 3000, CLV__UNKNOWN},
               {8300, 30000, CLV__KNOWN},   {8500, 30000, CLV__UNKNOWN},    {4000, 4000, CLV__UNKNOWN},
               {2000, 20000, CLV__UNKNOWN}, {8000, 64000, CLV__INFEASIBLE}, {9000, 90000, CLV__INFEASIBLE},
               {7999, 64000, CLV__UNKNOWN}, {8000, 31000, CLV__KNOWN},      {0, 0, CLV__UNKNOWN}};
  for (size_t i = 0; i < sizeof asked / sizeof *asked; ++i) {
    double time;
    char reason[256];
    clv__table_reason(table, asked[i].n, asked[i].m, reason, sizeof reason);
    if (clv__table_time(table, asked[i].n, asked[i].m, asked[i].n, &time) != asked[i].known)
      fail_msg("%u rows, %u edges: clv__table_time() does not return the expected clv__known %d: %s", (unsigned)asked[i].n,
               (unsigned)asked[i].m, asked[i].known, reason);
  }
  clv__tables_finish(&tables);
}

static void test_copies(void **unused) {
  (void)unused;
  clv__tables tables;
  double time, before = 0;
  clv__tables_init(&tables, clv__allocator_default());
  for (uint64_t bytes = 1024; bytes <= 1 << 24; bytes *= 4) {
    clv__copy_point point = {.size_bytes = bytes, .time_ns = 5000 + (double)bytes / 4};
    assert_ok(clv__tables_put_copy(&tables, "host", "npu", &point, &error), error);
  }
  assert_ok(clv__tables_fit(&tables, &error), error);
  const clv__copy_table *table = clv__tables_find_copy(&tables, "host", "npu");
  assert_null(clv__tables_find_copy(&tables, "npu", "host"));
  assert_true(clv__copy_table_time(table, 0, &time) && time == 0);
  for (uint64_t bytes = 1; bytes < 1 << 24; bytes = bytes * 3 + 1) {
    assert_true(clv__copy_table_time(table, bytes, &time));
    assert_true(time >= before && time > 0);
    before = time;
  }
  assert_true(clv__copy_table_time(table, 1 << 20, &time) && fabs(time / (5000 + (1 << 18)) - 1) < 1e-3);
  assert_false(clv__copy_table_time(table, 1 << 26, &time));
  clv__tables_finish(&tables);
}

static clv_status import(const char *text, clv__tables *tables) {
  static const clv__import_column columns[] = {{"cpu_ms", "cpu", 0, 4, true}, {"npu_ms", "npu", 4, 7, false}};
  clv__tables_init(tables, clv__allocator_default());
  return clv__tables_import(tables, "l", columns, 2, text, strlen(text), "t.csv", &error);
}

static void test_csv(void **unused) {
  (void)unused;
  clv__tables tables;
  assert_ok(
      import("n_nodes,n_edges,cpu_ms,npu_ms,status\r\n100, 500 ,1.5,2,OK\n\n100,1000,None,4,OK\n200,500,-1,9,CPU_OOM", &tables),
      error);
  const clv__block_table *cpu = clv__tables_find(&tables, "cpu", "l", 0, 4), *npu = clv__tables_find(&tables, "npu", "l", 4, 7);
  assert_int_equal(cpu->point_count, 2); /* a time of None gives no point */
  assert_true(cpu->points[1].infeasible && !cpu->points[0].infeasible);
  assert_true(cpu->points[0].time_ns == 1.5e6 && cpu->origin == CLV__IMPORTED);
  assert_int_equal(npu->point_count, 2); /* the block reads no edges, so the two lines with 100 rows become one point */
  assert_true(npu->points[0].time_ns == 3e6 && npu->points[0].m == 0 && npu->points[0].spread_ns == 2e6);
  clv__tables_finish(&tables);
  static const struct {
    const char *text, *says;
  } wrong[] = {{"", "no rows"},
               {"n_nodes,cpu_ms,npu_ms\n1,2,3", "n_edges"},
               {"n_nodes,n_edges,cpu_ms,status\n1,2,3,OK", "npu_ms"},
               {"n_nodes,n_edges,cpu_ms,npu_ms,gpu_ms\n1,2,3,4,5", "gpu_ms"},
               {"n_nodes,n_edges,cpu_ms,npu_ms\n1,2,3", "line 2: 3 fields"},
               {"n_nodes,n_edges,cpu_ms,npu_ms\n1,2,3,x", "line 2: npu_ms is 'x'"},
               {"n_nodes,n_edges,cpu_ms,npu_ms\n1,2,nan,4", "cpu_ms is 'nan'"},
               {"n_nodes,n_edges,cpu_ms,npu_ms\n1,2,-2,4", "must be above 0"},
               {"n_nodes,n_edges,cpu_ms,npu_ms\n1,2,0,4", "must be above 0"},
               {"n_nodes,n_edges,cpu_ms,npu_ms\n-1,2,3,4", "n_nodes is '-1'"},
               {"n_nodes,n_edges,cpu_ms,npu_ms\n1,99999999999999999999,3,4", "n_edges"},
               {"n_nodes,n_edges,cpu_ms,npu_ms,cpu_ms\n1,2,3,4,5", "twice"},
               {"n_nodes,n_edges,cpu_ms,npu_ms,status\n1,2,3,4,", "line 2: status is ''"},
               {"n_nodes,n_edges,cpu_ms,npu_ms,status\n1,2,3,4,OK\n1,2,3,4,good", "line 3: status is 'good'"},
               {"n_nodes,n_edges,cpu_ms,npu_ms,status\n1,2,3,4,OOM", "status is 'OOM', but no time is -1"},
               {"n_nodes,n_edges,cpu_ms,npu_ms,status\n1,2,3,-1,OK", "status is 'OK', but a time is -1"}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    assert_int_not_equal(import(wrong[i].text, &tables), CLV_OK);
    if (strstr(error.message, wrong[i].says) == NULL)
      fail_msg("the message '%s' does not contain '%s'", error.message, wrong[i].says);
    clv__tables_finish(&tables);
  }
}

/* The compile time is the median over the points that have one. Files without overheads can be read. */
static void test_overheads(void **unused) {
  (void)unused;
  clv__tables tables;
  clv__text text;
  clv__tables_init(&tables, clv__allocator_default());
  for (uint32_t i = 0; i < 7; ++i) {
    clv__table_point point = {.n = 10 + i, .time_ns = 5, .compile_ns = i < 2 ? 0 : 100.0 * ((3 * i) % 7)};
    assert_ok(clv__tables_put(&tables, "npu", "a", 0, 1, &point, &error), error);
  }
  assert_ok(clv__tables_fit(&tables, &error), error);
  assert_true(tables.tables[0].compile_ns == 400); /* the median of 600, 200, 500, 100, 400 */
  assert_int_equal(tables.overhead_count, 0);
  clv__text_init(&text, clv__allocator_default());
  assert_ok(clv__tables_print(&tables, &text, &error), error);
  assert_null(strstr(text.data, "overheads")); /* the key is omitted, as in older files */
  assert_ok(clv__tables_parse(&tables, text.data, text.size_bytes, "old", &error), error);
  assert_null(clv__tables_find_overhead(&tables, CLV__OVERHEAD_MERGE, ""));
  clv__table_overhead overhead = {CLV__OVERHEAD_MERGE, "", CLV__MEASURED, 7, 1};
  assert_ok(clv__tables_put_overhead(&tables, &overhead, &error), error);
  overhead.time_ns = 9; /* a second measurement replaces the first */
  assert_ok(clv__tables_put_overhead(&tables, &overhead, &error), error);
  assert_true(tables.overhead_count == 1 && tables.overheads[0].time_ns == 9);
  overhead.time_ns = NAN;
  assert_int_equal(clv__tables_put_overhead(&tables, &overhead, &error), CLV_INVALID_ARGUMENT);
  overhead = (clv__table_overhead){CLV__OVERHEAD_SWITCH, "", CLV__MEASURED, 7, 1};
  assert_int_equal(clv__tables_put_overhead(&tables, &overhead, &error), CLV_INVALID_ARGUMENT); /* a switch needs a device */
  clv__text_finish(&text);
  clv__tables_finish(&tables);
}

/* Tables that were measured on another machine: sizes that ran out of memory are infeasible, and the fits' errors are as small
 * as expected of linear fits. */
static void test_measured(void **unused) {
  (void)unused;
  gnx g;
  clv__file_map map;
  double time;
  if (!gnx_text("profile_185h_fused.csv", &map)) return;
  gnx_chain(&g, CLV__GNN_SAGE, 500, 256);
  clv__tables_init(&g.tables, clv__allocator_default());
  assert_ok(gnx_import(&g, (const char *)map.data, map.size_bytes, &error), error);
  clv__file_map_close(&map);
  const clv__block_table *cpu = clv__tables_find(&g.tables, "cpu", g.chain.layer, 0, 4);
  const clv__block_table *gpu = clv__tables_find(&g.tables, "gpu", g.chain.layer, 0, 4);
  const clv__block_table *npu = clv__tables_find(&g.tables, "npu", g.chain.layer, 4, 7);
  assert_true(cpu->time.is_good && gpu->time.is_good && npu->time.is_good);
  assert_true(cpu->time.error < 0.25 && gpu->time.error < 0.05 && npu->time.error < 0.06);
  assert_true(cpu->time.error > 0.01);    /* the error is measured at points that were left out of the fit, so it is not 0 */
  assert_int_equal(cpu->point_count, 41); /* one time is missing */
  assert_int_equal(clv__table_time(gpu, 50000, 2500000, 50000, &time), CLV__INFEASIBLE);
  assert_int_equal(clv__table_time(gpu, 60000, 2600000, 60000, &time), CLV__INFEASIBLE);
  assert_int_equal(clv__table_time(gpu, 60000, 1200000, 60000, &time), CLV__KNOWN);
  assert_int_equal(clv__table_time(gpu, 20000, 60000, 20000, &time),
                   CLV__UNKNOWN); /* 3 edges per row, but the measured range begins at 10 */
  assert_int_equal(clv__table_time(npu, 40000, 0, 40000, &time), CLV__KNOWN);
  assert_true(time > 85e6 && time < 120e6);
  clv__tables_finish(&g.tables);
}

/* A table says why it has no fit, or why its error is large at some size. */
static void test_reasons(void **state) {
  (void)state;
  static const struct {
    uint32_t points;
    clv__table_fit fit;
    const char *part; /* a part of the reason */
  } cases[] = {{8, {.is_good = true, .error = 0.02, .worst_error = 0.4, .points = 8}, NULL},
               {8, {.is_good = true, .worst_error = 0.62, .spread = 0.3, .points = 8}, "off by 62 % at one of 8 sizes"},
               {8, {.is_good = true, .worst_error = 0.62, .spread = 0.3, .points = 8}, "vary by 30 %: measure again on an idle"},
               {8, {.is_good = true, .worst_error = 0.62, .points = 8}, "measure more sizes"},
               {1, {.points = 1}, "1 size was measured, at least 4 are needed"},
               {5, {.points = 3}, "3 sizes were measured, at least 4 are needed"},
               {2, {.points = 0}, "every size ran out of memory"},
               {9, {.points = 9, .error = 0.5}, "off by 50 % at the median, 35 % are allowed"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    const clv__block_table table = {.point_count = cases[i].points, .time = cases[i].fit};
    char reason[240];
    clv__table_fit_reason(&table, reason, sizeof reason);
    if (cases[i].part == NULL ? reason[0] != '\0' : strstr(reason, cases[i].part) == NULL)
      fail_msg("case %zu: the reason is '%s', expected '%s'", i, reason, cases[i].part == NULL ? "" : cases[i].part);
  }
}

static void make_tables(clv__tables *tables, const clv_allocator *allocator, bool backwards) {
  clv__tables_init(tables, allocator);
  for (uint32_t i = 0; i < 24; ++i) {
    uint32_t at = backwards ? 23 - i : i;
    clv__table_point point = {
        .n = 100 + at % 6 * 50, .m = at % 4 * 300, .time_ns = 1e6 / (3 + at), .spread_ns = at, .peak_bytes = at * 7};
    point.infeasible = at % 11 == 10;
    if (at % 2 == 0) point.compile_ns = 1e6 + at / 3.0;
    if (point.infeasible) point.time_ns = point.spread_ns = point.compile_ns = 0, point.peak_bytes = 0;
    point.origin = (clv__table_origin)(at % 4);
    if (clv__tables_put(tables, at % 2 == 0 ? "npu \"1\"" : "cpu", at % 5 == 0 ? "b" : "a", at % 3, 4 + at % 2, &point, &error) !=
        CLV_OK)
      return;
    clv__copy_point copy = {.size_bytes = 64u << at % 7, .time_ns = 10 + at / 7.0, .origin = CLV__SYNTHETIC};
    if (clv__tables_put_copy(tables, at % 2 == 0 ? "host" : "cpu", "host", &copy, &error) != CLV_OK) return;
    static const char *const devices[] = {"", "npu \"1\"", "", "", "cpu", ""};
    clv__overhead_kind kind = (clv__overhead_kind)(at % 3);
    const clv__table_overhead overhead = {kind, devices[at % 6], CLV__MEASURED, 100.0 + at % 6 / 3.0, at % 6};
    if (clv__tables_put_overhead(tables, &overhead, &error) != CLV_OK) return;
  }
}

static void test_json(void **unused) {
  (void)unused;
  const clv_allocator *allocator = clv__allocator_default();
  clv__tables tables, other;
  clv__text text, again;
  make_tables(&tables, allocator, false);
  make_tables(&other, allocator, true);
  assert_ok(clv__tables_fit(&tables, &error), error);
  clv__text_init(&text, allocator);
  clv__text_init(&again, allocator);
  assert_ok(clv__tables_print(&tables, &text, &error), error);
  assert_ok(clv__tables_parse(&other, text.data, text.size_bytes, "t.json", &error), error);
  assert_ok(clv__tables_print(&other, &again, &error), error);
  assert_string_equal(text.data, again.data);
  assert_int_equal(tables.table_count, other.table_count);
  for (uint32_t t = 0; t < tables.table_count; ++t) {
    const clv__table_fit *x = &tables.tables[t].time, *y = &other.tables[t].time;
    assert_true(x->is_good == y->is_good && x->base == y->base && x->per_n == y->per_n && x->error == y->error);
  }
  assert_int_equal(other.overhead_count, 4);
  for (int kind = 0; kind < CLV__OVERHEADS; ++kind)
    assert_int_equal(clv__tables_find_overhead(&other, (clv__overhead_kind)kind, "") != NULL, kind != CLV__OVERHEAD_SWITCH);
  const clv__table_overhead *of_cpu = clv__tables_find_overhead(&other, CLV__OVERHEAD_SWITCH, "cpu");
  assert_true(of_cpu != NULL && of_cpu->time_ns == 100.0 + 4 / 3.0 && of_cpu->spread_ns == 4);
  assert_null(clv__tables_find_overhead(&other, CLV__OVERHEAD_SWITCH, "gpu"));
  for (size_t cut = 0; cut < text.size_bytes - 2; cut += 37) /* a truncated file is rejected */
    assert_int_equal(clv__tables_parse(&other, text.data, cut, "cut", &error), CLV_INVALID_MODEL);
  static const char *const wrong[][2] = {{"\"version\": 1", "\"version\": 2"},
                                         {"\"time_ns\"", "\"time\""},
                                         {"\"first\": 0", "\"first\": 6"},
                                         {"\"n\": 150", "\"n\": -1"},
                                         {"\"n\": 150", "\"n\": 1.5"},
                                         {"measured", "guessed"},
                                         {"\"infeasible\": true", "\"infeasible\": false"},
                                         {"\"compile_ns\": ", "\"compile_ns\": -"},
                                         {"\"kind\": \"merge\"", "\"kind\": \"pause\""},
                                         {"\"kind\": \"merge\"", "\"kind\": \"switch\""},
                                         {"\"kind\": \"merge\"", "\"kind\": \"exchange\""},
                                         {"\"kind\": \"switch\"", "\"kind\": \"merge\""}};
  for (size_t w = 0; w < sizeof wrong / sizeof *wrong; ++w) {
    const char *at = strstr(text.data, wrong[w][0]);
    assert_non_null(at);
    clv__text edited;
    clv__text_init(&edited, allocator);
    clv__text_append(&edited, "%.*s%s%s", (int)(at - text.data), text.data, wrong[w][1], at + strlen(wrong[w][0]));
    if (clv__tables_parse(&other, edited.data, edited.size_bytes, "edited", &error) == CLV_OK)
      fail_msg("a file with %s was accepted", wrong[w][1]);
    clv__text_finish(&edited);
  }
  clv__text_finish(&again);
  clv__text_finish(&text);
  clv__tables_finish(&other);
  clv__tables_finish(&tables);
}

static void test_memory(void **unused) {
  (void)unused;
  test_allocator counting;
  bool done = false;
  for (size_t fail = 1; !done; ++fail) {
    clv__tables tables;
    test_allocator_init(&counting);
    counting.fail_at = fail;
    clv__error_clear(&error);
    make_tables(&tables, &counting.allocator, false);
    done = error.message[0] == '\0' && clv__tables_fit(&tables, &error) == CLV_OK;
    clv__tables_finish(&tables);
    assert_int_equal(counting.live, 0);
    assert_true(fail < 1000);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_reasons),  cmocka_unit_test(test_recovers),
                                     cmocka_unit_test(test_targets),  cmocka_unit_test(test_domain),
                                     cmocka_unit_test(test_copies),   cmocka_unit_test(test_csv),
                                     cmocka_unit_test(test_measured), cmocka_unit_test(test_overheads),
                                     cmocka_unit_test(test_json),     cmocka_unit_test(test_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
