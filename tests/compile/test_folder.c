/* Folders compiled ahead of time, used through the public interface: counts of compile() calls, devices that fail to save, load
 * or compile, changed bytes, and failing allocations. */
#include "../cache/folder.h"
#include "machine.h"

#include "backends/vnpu/vnpu.h"
#include "compile/folder.h"
#include "execute/session.h"

enum { WIDTH = 24 };

typedef struct bench {
  machine m;
  interposer *counted; /* a virtual NPU that supports all operators and counts calls */
} bench;

static void bench_open(bench *b) {
  b->counted = interposer_create(&(interposer_options){.name = "counted", .query = clv__vnpu_backend_query, .spec = "all"});
  machine_open_with(&b->m, b->counted, "counted,cpu", 0, NULL);
}

static void bench_close(bench *b) {
  char misuse[256];
  machine_close(&b->m);
  assert_int_equal(interposer_left(b->counted), 0);
  assert_false(interposer_misused(b->counted, misuse, sizeof misuse));
  interposer_destroy(b->counted);
}

/* Two matrix products with weights of 2 KiB, and a Relu between them, which PINS puts on the CPU. */
#define PINS "first=counted,Relu#1=cpu,second=counted"

static clv_graph *build(const clv_allocator *allocator) {
  test_graph g;
  test_graph_begin(&g, allocator, 31);
  test_graph_input(&g, "x", CLV_F32, 2, DIMS(1, WIDTH));
  test_graph_weight(&g, "w", 2, DIMS(WIDTH, WIDTH));
  test_graph_weight(&g, "w2", 2, DIMS(WIDTH, WIDTH));
  test_graph_node(&g, "first", "MatMul", "x,w", "a");
  test_graph_node(&g, "", "Relu", "a", "b");
  test_graph_node(&g, "second", "MatMul", "b,w2", "y");
  return test_graph_end(&g, "y");
}

static clv_status write_folder(bench *b, const char *path, const char *pins, clv_error *error) {
  clv_graph *graph = build(&b->m.counting.allocator);
  clv_plan *plan = machine_plan(&b->m, graph, pins, (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
  clv_status status = clv_compiled_write(plan, NULL, path, error);
  clv_plan_destroy(plan);
  clv_graph_destroy(graph);
  return status;
}

/* Runs the folder as a program would, checks the result, and returns the session's counters. */
static clv_status run_folder(machine *m, const char *path, clv__executables_counters *counters, clv_error *error) {
  clv_compiled *compiled = NULL;
  clv_graph *graph = NULL;
  clv_plan *plan = NULL;
  clv_session *session = NULL;
  clv_status status;
  CLV__TRY_GOTO(clv_compiled_open(m->context, path, &compiled, error));
  CLV__TRY_GOTO(clv_graph_load(m->context, clv_compiled_model_path(compiled), &graph, error));
  CLV__TRY_GOTO(clv_plan_read(graph, m->devices, clv_compiled_plan_path(compiled), NULL, &plan, error));
  CLV__TRY_GOTO(clv_session_create(plan, clv_compiled_session_options(compiled), &session, error));
  clv__session_stats stats;
  clv__session_stats_get(session, &stats);
  *counters = stats.executables;
  if (m->counting.fail_at == 0) {
    float data[WIDTH];
    uint64_t seed = 9;
    for (uint32_t i = 0; i < WIDTH; ++i) data[i] = test_random_float(&seed);
    clv_tensor input = f32(2, DIMS(1, WIDTH), data);
    machine_check_run(session, plan, &input, path);
  }
cleanup:
  clv_session_destroy(session);
  clv_plan_destroy(plan);
  clv_graph_destroy(graph);
  clv_compiled_close(compiled);
  return status;
}

static void expect_run(const char *path, uint32_t from_folder, uint32_t compiled) {
  bench b;
  clv_error error = {0};
  clv__executables_counters counters = {0};
  bench_open(&b);
  assert_ok(run_folder(&b.m, path, &counters, &error), error);
  assert_int_equal(counters.from_folder, from_folder);
  assert_int_equal(interposer_count(b.counted, INTERPOSER_compile), compiled);
  assert_int_equal(counters.not_kept, compiled + 1); /* the CPU's partition is compiled too */
  bench_close(&b);
}

/* Counts the items in a directory. After a write there must be at most one: the folder that was written. */
static uint32_t count_items(const char *path) {
  uint32_t count = 0;
  DIR *listing = opendir(path);
  assert_non_null(listing);
  while (readdir(listing) != NULL) ++count;
  closedir(listing);
  return count - 2;
}

static void target_in(const folder *f, char path[256]) {
  snprintf(path, 256, "%s/made", f->path);
}

static void test_no_compiler(void **state) {
  (void)state;
  folder f;
  bench b;
  char path[256];
  clv_error error = {0};
  folder_make(&f);
  target_in(&f, path);
  bench_open(&b);
  assert_ok(write_folder(&b, path, PINS, &error), error);
  assert_true(interposer_count(b.counted, INTERPOSER_compile) == 2);
  bench_close(&b);
  expect_run(path, 2, 0);
  assert_int_equal(count_items(f.path), 1);
  folder_remove(f.path);
}

/* ---- Devices that fail ---- */

static interposer_fate fail_slot(void *user_data, const interposer_call *call) {
  bool fails = call->slot == *(interposer_slot *)user_data;
  return (interposer_fate){.action = fails ? INTERPOSER_FAIL : INTERPOSER_PASS, .message = "not today"};
}

static void test_failing_devices(void **state) {
  (void)state;
  folder f;
  bench b;
  char path[256];
  clv_error error = {0};
  clv__executables_counters counters;
  interposer_slot slot = INTERPOSER_compile;
  folder_make(&f);
  target_in(&f, path);
  bench_open(&b);
  interposer_set_hook(b.counted, fail_slot, &slot);
  assert_int_not_equal(write_folder(&b, path, NULL, &error),
                       CLV_OK); /* an error, because the partition must not move to another device */
  assert_non_null(strstr(error.message, "not today"));
  assert_int_equal(count_items(f.path), 0);
  bench_close(&b);

  slot = INTERPOSER_executable_save;
  bench_open(&b);
  interposer_set_hook(b.counted, fail_slot, &slot);
  assert_ok(write_folder(&b, path, PINS, &error), error);
  clv_compiled *compiled;
  assert_ok(clv_compiled_open(b.m.context, path, &compiled, &error), error);
  assert_int_equal(compiled->executable_count, 0);
  assert_string_equal(compiled->partitions[0].reason, "not today");
  assert_string_equal(compiled->partitions[1].reason, "its backend cannot save executables");
  clv_compiled_close(compiled);
  bench_close(&b);
  expect_run(path, 0, 2);

  bench_open(&b);
  assert_ok(write_folder(&b, path, PINS, &error), error); /* replaces the earlier folder */
  bench_close(&b);
  slot = INTERPOSER_executable_load;
  bench_open(&b);
  interposer_set_hook(b.counted, fail_slot, &slot);
  assert_ok(run_folder(&b.m, path, &counters, &error), error);
  assert_int_equal(counters.from_folder, 0);
  assert_int_equal(interposer_count(b.counted, INTERPOSER_compile), 2);
  bench_close(&b);
  expect_run(path, 2, 0);
  folder_remove(f.path);
}

/* ---- Hostile files ---- */

static void write_whole(const char *path, const void *data, size_t size_bytes) {
  clv_error error = {0};
  assert_ok(clv__file_write(path, data, size_bytes, &error), error);
}

static char *read_whole(const char *path, size_t *size_bytes) {
  clv__file_map map;
  clv_error error = {0};
  assert_ok(clv__file_map_open(path, &map, &error), error);
  char *data = malloc(map.size_bytes + 1);
  assert_non_null(data);
  memcpy(data, map.data, map.size_bytes);
  *size_bytes = map.size_bytes;
  clv__file_map_close(&map);
  return data;
}

/* The file that lists the folder's contents gets one changed byte, or is cut off at a byte. Opening the folder must succeed or
 * return an error that names the folder. */
static void test_list_bytes(void **state) {
  (void)state;
  folder f;
  bench b;
  char path[256], list[300];
  clv_error error = {0};
  size_t size_bytes;
  folder_make(&f);
  target_in(&f, path);
  snprintf(list, sizeof list, "%s/" CLV__FOLDER_LIST, path);
  bench_open(&b);
  assert_ok(write_folder(&b, path, PINS, &error), error);
  char *text = read_whole(list, &size_bytes);
  uint64_t seed = 77;
  uint32_t refused = 0;
  for (size_t at = 0; at < size_bytes; at += 1 + test_random(&seed) % 7) {
    char was = text[at];
    bool cut = test_random(&seed) % 4 == 0;
    text[at] = (char)(test_random(&seed) % 2 == 0 ? '9' : 'x');
    FILE *file = fopen(list, "w");
    assert_non_null(file);
    fwrite(text, 1, cut ? at : size_bytes, file);
    fclose(file);
    text[at] = was;
    clv_compiled *compiled = NULL;
    clv__error_clear(&error);
    if (clv_compiled_open(b.m.context, path, &compiled, &error) != CLV_OK) {
      assert_null(compiled);
      assert_non_null(strstr(error.message, path));
      ++refused;
    }
    clv_compiled_close(compiled);
  }
  assert_true(refused > 20);
  free(text);
  bench_close(&b);
  folder_remove(f.path);
}

/* A bit of an executable file is flipped: that partition is compiled again, the other is loaded, and the result is correct. */
static void test_executable_bits(void **state) {
  (void)state;
  folder f;
  bench b;
  char path[256], file[300];
  clv_error error = {0};
  size_t size_bytes;
  folder_make(&f);
  target_in(&f, path);
  snprintf(file, sizeof file, "%s/partition-0.clvx", path);
  bench_open(&b);
  assert_ok(write_folder(&b, path, PINS, &error), error);
  bench_close(&b);
  char *data = read_whole(file, &size_bytes);
  uint64_t seed = 5;
  for (uint32_t i = 0; i < 24; ++i) {
    size_t at = i < 8 ? i * 30 : (size_t)(test_random(&seed) % size_bytes);
    data[at] ^= (char)(1u << i % 8);
    write_whole(file, data, size_bytes);
    expect_run(path, 1, 1);
    data[at] ^= (char)(1u << i % 8);
  }
  write_whole(file, data, size_bytes);
  expect_run(path, 2, 0);
  free(data);
  folder_remove(f.path);
}

/* ---- Memory ---- */

/* Single allocations fail: the result is an error, or correct in spite of the failure. No partial files remain. */
static void test_memory(void **state) {
  (void)state;
  folder f;
  bench b;
  char path[256];
  clv_error error = {0};
  folder_make(&f);
  target_in(&f, path);
  bench_open(&b);
  clv_graph *graph = build(&b.m.counting.allocator);
  clv_plan *plan = machine_plan(&b.m, graph, PINS, (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
  assert_ok(clv_compiled_write(plan, NULL, path, &error), error);
  folder_remove(path);
  size_t before = b.m.counting.calls;
  assert_ok(clv_compiled_write(plan, NULL, path, &error), error);
  size_t calls = b.m.counting.calls - before;
  folder_remove(path);
  size_t step = calls / 60 + 1, live = b.m.counting.live;
  for (size_t n = 1; n <= calls; n += step) {
    b.m.counting.fail_at = b.m.counting.calls + n;
    clv_status status = clv_compiled_write(plan, NULL, path, &error);
    b.m.counting.fail_at = 0;
    assert_int_equal(count_items(f.path), status == CLV_OK);
    assert_true(b.m.counting.live <= live + 8); /* devices may keep up to 8 allocations for reuse */
    folder_remove(path);
  }
  assert_ok(clv_compiled_write(plan, NULL, path, &error), error);
  clv_plan_destroy(plan);
  clv_graph_destroy(graph);
  bench_close(&b);

  clv__executables_counters counters;
  for (size_t n = 1; n < 2000; n += 1 + n / 40) {
    bench_open(&b);
    b.m.counting.fail_at = b.m.counting.calls + n;
    clv_status status = run_folder(&b.m, path, &counters, &error);
    bool reached = b.m.counting.calls >= b.m.counting.fail_at;
    b.m.counting.fail_at = 0;
    if (status == CLV_OK && !reached) n = 2000;
    bench_close(&b);
  }
  expect_run(path, 2, 0);
  folder_remove(f.path);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_no_compiler),     cmocka_unit_test(test_failing_devices), cmocka_unit_test(test_list_bytes),
      cmocka_unit_test(test_executable_bits), cmocka_unit_test(test_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
