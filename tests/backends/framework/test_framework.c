/* Tests of the code that all frameworks share, with the fake framework (fake.h): whole models on synchronous and asynchronous
 * devices, verdicts by trial and their storage, executables on disk, failures, and lack of memory. */
#include "../../cache/folder.h"
#include "analysis/shapes.h"
#include "base/files/sealed.h"
#include "fake.h"

/* Makes a graph that computes Add, Mul, Relu and Add of x [4] and a weight. If `open`, it has a second output: the positions of
 * the nonzero elements of Relu's result, whose number depends on the data. */
static clv_graph *make_graph(const clv_allocator *allocator, bool open) {
  test_graph g;
  test_graph_begin(&g, allocator, 7);
  test_graph_input(&g, "x", CLV_F32, 1, DIMS(4));
  test_graph_weight(&g, "w", 1, DIMS(4));
  test_graph_node(&g, "first", "Add", "x,w", "a");
  test_graph_node(&g, "second", "Mul", "a,x", "y");
  test_graph_node(&g, "third", "Relu", "y", "z");
  test_graph_node(&g, "fourth", "Add", "z,x", "out");
  if (open) test_graph_node(&g, "fifth", "NonZero", "z", "places");
  return test_graph_end(&g, open ? "out,places" : "out");
}

static void run_all(machine *m, clv_graph *graph, const char *pins, const char *what) {
  static float x[] = {1, -2, 0.5f, 3};
  clv_tensor input = clv__tensor_make(CLV_F32, 1, DIMS(4), x);
  clv_plan *plan = machine_plan(m, graph, pins, (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
  clv_session *session = machine_session(plan);
  for (int i = 0; i < 3; ++i) {
    x[0] += 1;
    machine_check_run(session, plan, &input, what);
  }
  clv_session_destroy(session);
  clv_plan_destroy(plan);
}

static void whole_models(void **state) {
  (void)state;
  static const char *const options[] = {NULL, "fake:ONE:async=yes", "fake:ONE:async=no", "fake:ONE:level=3"};
  for (size_t o = 0; o < sizeof options / sizeof *options; ++o) {
    for (int open = 0; open < 2; ++open) {
      machine m;
      fake_reset();
      fake_machine(&m, "fake:ONE,cpu", options[o], "");
      clv_device_info info = {.struct_size = sizeof info};
      clv_devices_info(m.devices, 0, &info);
      assert_int_equal(info.is_synchronous, o != 1);
      assert_string_equal(info.memory_space, "host");
      clv_graph *graph = make_graph(&m.counting.allocator, open == 1);
      run_all(&m, graph, NULL, "all on the fake");
      run_all(&m, graph, "second=cpu", "one on the CPU");
      assert_true(atomic_load(&fake.runs) > 0);
      clv_graph_destroy(graph);
      machine_close(&m);
      assert_int_equal(atomic_load(&fake.live), 0);
    }
  }
}

static void devices_and_options(void **state) {
  (void)state;
  clv_error error = {0};
  clv_devices *devices = NULL;
  fake_reset();
  clv_context *context = fake_context(NULL, "");
  assert_int_equal(atomic_load(&fake.loads), 0); /* the library is loaded only when one of its devices is requested */
  assert_ok(fake_open_devices(context, "cpu", NULL, &devices, &error), error);
  clv_devices_close(devices);
  assert_int_equal(atomic_load(&fake.loads), 0);
  fake.refuses_library = true;
  assert_int_not_equal(fake_open_devices(context, "fake:ONE", NULL, &devices, &error), CLV_OK);
  fake.refuses_library = false; /* a failed load is tried again; a loaded library is kept */
  assert_ok(fake_open_devices(context, "fake", NULL, &devices, &error), error);
  clv_device_info info = {.struct_size = sizeof info};
  clv_devices_info(devices, 0, &info);
  assert_string_equal(info.fingerprint, "fake one");
  clv_devices_close(devices);
  int loads = atomic_load(&fake.loads);
  assert_ok(fake_open_devices(context, "fake:TWO,fake:ONE", NULL, &devices, &error), error);
  clv_devices_close(devices);
  assert_int_equal(atomic_load(&fake.loads), loads);
  assert_int_equal(fake_open_devices(context, "fake:THREE", NULL, &devices, &error), CLV_NOT_SUPPORTED);
  assert_non_null(strstr(error.message, "THREE"));
  assert_int_equal(fake_open_devices(context, "fake:ONE", "fake:ONE:async=perhaps", &devices, &error), CLV_INVALID_ARGUMENT);
  assert_non_null(strstr(error.message, "async"));
  assert_int_equal(fake_open_devices(context, "fake:ONE", "fake:ONE:speed=9", &devices, &error), CLV_INVALID_ARGUMENT);
  assert_non_null(strstr(error.message, "speed"));
  clv_context_destroy(context);
  assert_int_equal(atomic_load(&fake.live), 0);
}

static clv_verdict ask(const machine *m, const clv_graph *graph, uint32_t node) {
  clv_verdict verdict = {0};
  clv_error error = {0};
  clv__shapes *shapes;
  clv__arena arena;
  clv_graph_view *whole;
  const clv__device *device = &m->devices->items[0];
  clv__arena_init(&arena, graph->allocator);
  assert_ok(clv__shapes_infer(graph, NULL, 0, 0, &shapes, &error), error);
  assert_ok(clv__view_create_whole(graph, shapes->types, &arena, &whole, &error), error);
  device->backend->supports(device->handle, whole, node, &verdict);
  clv__arena_finish(&arena);
  clv__shapes_destroy(shapes);
  return verdict;
}

static void verdicts(void **state) {
  (void)state;
  machine m;
  fake_reset();
  fake_machine(&m, "fake:ONE", NULL, "");
  clv_graph *graph = make_graph(&m.counting.allocator, true);
  fake.refused = "Mul";
  fake.uncompiled = "Relu";
  assert_true(ask(&m, graph, 0).supported);
  assert_int_equal(atomic_load(&fake.tries), 1);
  assert_true(ask(&m, graph, 0).supported);
  assert_int_equal(atomic_load(&fake.tries), 1); /* there was no second trial, because the verdict was kept */
  assert_false(ask(&m, graph, 1).supported);
  assert_string_equal(ask(&m, graph, 1).reason, "in no table");
  assert_int_equal(atomic_load(&fake.tries), 1); /* a no from may_support() needs no trial */
  assert_false(ask(&m, graph, 2).supported);
  assert_string_equal(ask(&m, graph, 2).reason, "the fake cannot build it"); /* the message's line break was removed */
  assert_int_equal(atomic_load(&fake.tries), 2);
  assert_true(ask(&m, graph, 3).supported); /* a second Add, without a constant, has another signature */
  assert_int_equal(atomic_load(&fake.tries), 3);
  clv_graph_destroy(graph);
  machine_close(&m);
}

/* Returns how many trials two graphs of one node need: one for each distinct signature. They differ in `attribute` (numbers[0]
 * and numbers[1]) and in the size of an axis (8 and `size`). */
static int tries_of(const char *op, const char *attribute, const int64_t *numbers, int64_t size, bool is_static) {
  machine m;
  fake.is_static = is_static;
  fake_machine(&m, "fake:ONE", NULL, "");
  atomic_store(&fake.tries, 0);
  for (int i = 0; i < 2; ++i) {
    test_graph g;
    test_graph_begin(&g, &m.counting.allocator, (uint64_t)i);
    test_graph_input(&g, "x", CLV_F32, 2, DIMS(4, i == 0 ? 8 : size));
    test_graph_node_ints(&g, "n", op, "x", "y", attribute, false, 1, &numbers[i]);
    clv_graph *graph = test_graph_end(&g, "y");
    assert_true(ask(&m, graph, 0).supported);
    clv_graph_destroy(graph);
  }
  machine_close(&m);
  return atomic_load(&fake.tries);
}

static void signatures(void **state) {
  (void)state;
  fake_reset();
  assert_int_equal(tries_of("Softmax", "axis", DIMS(1, 1), 8, false), 1);
  assert_int_equal(tries_of("Softmax", "axis", DIMS(1, 0), 8, false), 2);  /* two trials, because the attribute differs */
  assert_int_equal(tries_of("Softmax", "axis", DIMS(1, 1), 16, false), 1); /* one trial, because sizes do not matter */
  assert_int_equal(tries_of("Softmax", "axis", DIMS(1, 1), 16, true), 2);  /* two, because sizes matter if shapes are fixed */
}

/* Returns how many trials the nodes of make_graph() need in a new context, which has no verdicts in memory, as in a new process.
 * `relu` receives the verdict on the Relu. */
static int tries_with(const char *cache, const char *list, const char *refused, bool *relu) {
  machine m;
  fake_reset();
  fake.uncompiled = refused;
  fake_machine(&m, list, NULL, cache);
  clv_graph *graph = make_graph(&m.counting.allocator, false);
  for (uint32_t n = 0; n < graph->node_count; ++n) {
    clv_verdict verdict = ask(&m, graph, n);
    if (n == 2) *relu = verdict.supported;
    if (n == 2 && !verdict.supported) assert_string_equal(verdict.reason, "the fake cannot build it");
  }
  clv_graph_destroy(graph);
  machine_close(&m);
  return atomic_load(&fake.tries);
}

static void damage(const char *path) {
  DIR *listing = opendir(path);
  assert_non_null(listing);
  for (const struct dirent *item; (item = readdir(listing)) != NULL;) {
    char name[600];
    struct stat info;
    snprintf(name, sizeof name, "%s/%s", path, item->d_name);
    if (item->d_name[0] == '.' || stat(name, &info) != 0) continue;
    if (S_ISDIR(info.st_mode)) {
      damage(name);
      continue;
    }
    FILE *file = fopen(name, "r+b");
    if (file == NULL) continue;
    fseek(file, info.st_size / 2, SEEK_SET);
    fputc(0x5a, file);
    fclose(file);
  }
  closedir(listing);
}

static void remembered(void **state) {
  (void)state;
  folder f;
  bool relu;
  folder_make(&f);
  assert_int_equal(tries_with(f.path, "fake:ONE", "Relu", &relu), 4);
  assert_false(relu);
  assert_int_equal(tries_with(f.path, "fake:ONE", NULL, &relu), 0); /* both verdicts of yes and verdicts of no were stored */
  assert_false(relu);
  assert_int_equal(tries_with(f.path, "fake:TWO", NULL, &relu), 4); /* no verdicts are stored for this device */
  assert_true(relu);
  damage(f.path);
  assert_int_equal(tries_with(f.path, "fake:ONE", NULL, &relu), 4);
  assert_true(relu);
  assert_int_equal(tries_with(f.path, "fake:ONE", NULL, &relu), 0);
  folder_remove(f.path);
}

#define KEY CLEAVE_VERSION " fake 1|fake one"

static clv_status append(void *cookie, const void *data, size_t size_bytes) {
  clv__text_append_bytes(cookie, data, size_bytes);
  return CLV_OK;
}

/* Stored verdicts with random contents, of many lengths: they are ignored. */
static void doubted(void **state) {
  (void)state;
  folder f;
  bool relu;
  uint64_t random = 3;
  clv_error error = {0};
  folder_make(&f);
  for (size_t size_bytes = 0; size_bytes < 200; size_bytes += 7) {
    uint8_t bytes[200];
    fake_reset();
    clv_context *context = fake_context(NULL, f.path);
    const clv_host *host = clv__context_host(context);
    for (size_t i = 0; i < sizeof bytes; ++i) bytes[i] = (uint8_t)test_random(&random);
    memcpy(bytes, "CLVTRIED\1\0\0\0\0\0\0\0", 16);
    const void *left = bytes;
    clv__text payload, file; /* used in every other round: a valid header and checksum around random bytes */
    clv__text_init(&payload, clv__allocator_default());
    clv__text_init(&file, clv__allocator_default());
    clv__sealed_put_text(&payload, KEY);
    clv__sealed_put(&payload, size_bytes % 4 == 0 ? UINT32_MAX : 3, 4);
    clv__text_append_bytes(&payload, bytes, size_bytes);
    assert_ok(clv__sealed_write(&(clv__sealed_kind){"verdicts", "CLVTRIED", 1}, &payload, append, &file, &error), error);
    if (size_bytes % 2 == 0) left = file.data;
    assert_ok(host->remember(host->self, "fake", KEY, left, size_bytes % 2 == 0 ? file.size_bytes : size_bytes, &error), error);
    clv__text_finish(&file);
    clv__text_finish(&payload);
    clv_context_destroy(context);
    assert_int_equal(tries_with(f.path, "fake:ONE", NULL, &relu), 4);
    assert_true(relu);
  }
  folder_remove(f.path);
}

/* Stored verdicts that are valid, but for another device: they are ignored. */
static void of_another_device(void **state) {
  (void)state;
  folder f;
  bool relu;
  void *data;
  size_t size_bytes;
  clv_error error = {0};
  clv__sealed_reader reader;
  folder_make(&f);
  assert_int_equal(tries_with(f.path, "fake:ONE", NULL, &relu), 4);
  assert_int_equal(tries_with(f.path, "fake:ONE", NULL, &relu), 0); /* the verdicts were stored */
  clv_context *context = fake_context(NULL, f.path);
  const clv_host *host = clv__context_host(context);
  assert_ok(host->recall(host->self, "fake", KEY, &data, &size_bytes, &error), error);
  assert_ok(clv__sealed_open(&(clv__sealed_kind){"verdicts", "CLVTRIED", 1}, data, size_bytes, &reader, &error), error);
  clv__text payload, file;
  clv__text_init(&payload, clv__allocator_default());
  clv__text_init(&file, clv__allocator_default());
  clv__sealed_put_text(&payload, KEY "?");
  const size_t behind = 4 + strlen(KEY);
  clv__text_append_bytes(&payload, reader.data + behind, reader.size_bytes - behind);
  assert_ok(clv__sealed_write(&(clv__sealed_kind){"verdicts", "CLVTRIED", 1}, &payload, append, &file, &error), error);
  assert_ok(host->remember(host->self, "fake", KEY, file.data, file.size_bytes, &error), error);
  host->allocator->release(host->allocator->user_data, data);
  clv__text_finish(&file);
  clv__text_finish(&payload);
  clv_context_destroy(context);
  assert_int_equal(tries_with(f.path, "fake:ONE", NULL, &relu), 4);
  folder_remove(f.path);
}

static void executables_on_disk(void **state) {
  (void)state;
  folder f;
  folder_make(&f);
  for (int i = 0; i < 2; ++i) {
    machine m;
    fake_reset();
    fake_machine(&m, "fake:ONE", NULL, f.path);
    clv_graph *graph = make_graph(&m.counting.allocator, false);
    run_all(&m, graph, NULL, i == 0 ? "compiled" : "from disk");
    clv_graph_destroy(graph);
    machine_close(&m);
    assert_int_equal(atomic_load(&fake.compiles), i == 0 ? 1 : 0);
  }
  folder_remove(f.path);
}

/* A node that is supported alone but does not compile in its partition, and a run that fails: both run on the CPU instead. */
static void failures(void **state) {
  (void)state;
  for (int async = 0; async < 2; ++async) {
    for (int kind = 0; kind < 2; ++kind) {
      machine m;
      fake_reset();
      if (kind == 0) fake.in_company = "Relu";
      if (kind == 1) atomic_store(&fake.fail_run, 2);
      fake_machine(&m, "fake:ONE,cpu", async == 1 ? "fake:ONE:async=yes" : NULL, "");
      clv_graph *graph = make_graph(&m.counting.allocator, false);
      run_all(&m, graph, NULL, "with a failure");
      clv_graph_destroy(graph);
      machine_close(&m);
      assert_int_equal(atomic_load(&fake.live), 0);
    }
  }
}

/* A partition whose results no node and no output reads is not run. */
static void nobody_reads(void **state) {
  (void)state;
  machine m;
  test_graph g;
  fake_reset();
  fake_machine(&m, "fake:ONE,cpu", NULL, "");
  test_graph_begin(&g, &m.counting.allocator, 7);
  test_graph_input(&g, "x", CLV_F32, 1, DIMS(4));
  test_graph_node(&g, "read", "Neg", "x", "out");
  test_graph_node(&g, "unread", "Relu", "x", "nothing");
  clv_graph *graph = test_graph_end(&g, "out");
  run_all(&m, graph, "read=cpu,unread=fake:ONE", "a node whose result is not read");
  assert_int_equal(atomic_load(&fake.runs), 0);
  clv_graph_destroy(graph);
  machine_close(&m);
}

/* Opens the device, plans and runs a graph, with one allocation failing: each of the first 200 in turn, then every seventh. */
static void memory_runs_out(void **state) {
  (void)state;
  size_t most = SIZE_MAX;
  for (size_t fail_at = 1; fail_at <= most; fail_at += fail_at < 200 ? 1 : 7) {
    test_allocator counting;
    clv_error error = {0};
    float x[] = {1, -2, 0.5f, 3};
    clv_tensor input = clv__tensor_make(CLV_F32, 1, DIMS(4), x), outputs[2] = {{0}};
    clv_devices *devices = NULL;
    clv_plan *plan = NULL;
    clv_session *session = NULL;
    fake_reset();
    test_allocator_init(&counting);
    clv_context *context = fake_context(&counting.allocator, "");
    clv_graph *graph = make_graph(&counting.allocator, true);
    counting.fail_at = counting.calls + fail_at;
    clv_status status = fake_open_devices(context, "fake:ONE", fail_at % 2 == 0 ? "fake:ONE:async=yes" : NULL, &devices, &error);
    if (status == CLV_OK) status = clv_plan_make(graph, devices, NULL, &plan, &error);
    if (status == CLV_OK) status = clv_session_create(plan, NULL, &session, &error);
    if (status == CLV_OK) status = clv_session_run(session, &input, 1, outputs, 2, &error);
    if (status != CLV_OK) assert_true(error.message[0] != '\0');
    if (status == CLV_OK && counting.calls < counting.fail_at) most = fail_at;
    clv_session_destroy(session);
    clv_plan_destroy(plan);
    clv_graph_destroy(graph);
    clv_devices_close(devices);
    clv_context_destroy(context);
    assert_int_equal(counting.live, 0);
    assert_int_equal(atomic_load(&fake.live), 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(devices_and_options), cmocka_unit_test(whole_models),        cmocka_unit_test(verdicts),
      cmocka_unit_test(signatures),          cmocka_unit_test(remembered),          cmocka_unit_test(doubted),
      cmocka_unit_test(of_another_device),   cmocka_unit_test(executables_on_disk), cmocka_unit_test(failures),
      cmocka_unit_test(nobody_reads),        cmocka_unit_test(memory_runs_out),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
