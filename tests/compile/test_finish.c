/* A device that builds all executables at once: compile() and save->load() only prepare them, finish() builds them. The device is
 * a virtual NPU that counts each use of an executable that is not finished. */
#include "../cache/folder.h"
#include "machine.h"

#include "backends/vnpu/vnpu.h"
#include "compile/compile.h"

struct clv_executable {
  clv_executable *inner;
  bool is_built, is_from_disk;
};

static struct late {
  clv_backend table;
  const clv_backend *inner;
  char log[512];          /* the calls so far, such as "compile compile finish(2) save save" */
  bool fail;              /* finish() fails */
  bool fail_from_disk;    /* finish() fails if an executable was loaded from disk */
  uint32_t live, misused; /* executables that exist; uses of executables that were not finished */
} late;

static void note(const char *format, uint32_t count) {
  size_t used = strlen(late.log);
  if (used > 0 && used < sizeof late.log - 1) late.log[used++] = ' ';
  snprintf(late.log + used, sizeof late.log - used, format, count);
}

static clv_status late_open(void *self, const clv_host *host, const clv_device_config *config, clv_device **device,
                            clv_error *error) {
  const clv_option spec = {"spec", "all"};
  clv_device_config all = *config;
  all.options = &spec;
  all.option_count = 1;
  return late.inner->open(self, host, &all, device, error);
}

static clv_status wrap(clv_executable *inner, bool is_from_disk, clv_executable **executable) {
  *executable = calloc(1, sizeof **executable);
  assert_non_null(*executable);
  **executable = (clv_executable){.inner = inner, .is_from_disk = is_from_disk};
  ++late.live;
  return CLV_OK;
}

static clv_status late_compile(clv_device *device, const clv_graph_view *graph, const clv_compile_options *options,
                               clv_executable **executable, clv_error *error) {
  clv_executable *inner;
  note("compile", 0);
  CLV__TRY(late.inner->compile(device, graph, options, &inner, error));
  return wrap(inner, false, executable);
}

static clv_status late_load(clv_device *device, const void *data, size_t size_bytes, clv_executable **executable,
                            clv_error *error) {
  clv_executable *inner;
  note("load", 0);
  CLV__TRY(late.inner->save->load(device, data, size_bytes, &inner, error));
  return wrap(inner, true, executable);
}

static void late_destroy(clv_device *device, clv_executable *executable) {
  note("destroy", 0);
  late.inner->executable_destroy(device, executable->inner);
  free(executable);
  --late.live;
}

/* The memory that an executable holds is known only after it is built. */
static void late_info(clv_device *device, clv_executable *executable, clv_executable_info *info) {
  late.inner->executable_info(device, executable->inner, info);
  info->resident_bytes = executable->is_built ? 4711 : 0;
}

static clv_status late_finish(clv_device *device, clv_executable *const *executables, uint32_t count, clv_error *error) {
  (void)device;
  note("finish(%u)", count);
  for (uint32_t i = 0; i < count; ++i) {
    if (executables[i]->is_built) ++late.misused;
    if (late.fail || (late.fail_from_disk && executables[i]->is_from_disk)) {
      return clv__error_set(error, CLV_DEVICE_ERROR, "the build failed");
    }
  }
  for (uint32_t i = 0; i < count; ++i) executables[i]->is_built = true;
  return CLV_OK;
}

static clv_status late_save(clv_device *device, clv_executable *executable, clv_write_fn write, void *cookie, clv_error *error) {
  note("save", 0);
  late.misused += !executable->is_built;
  return late.inner->save->save(device, executable->inner, write, cookie, error);
}

static clv_status late_instance(clv_device *device, clv_executable *executable, const clv_tensor *inputs, uint32_t input_count,
                                clv_weight *const *weights, uint32_t weight_count, clv_instance **instance, clv_error *error) {
  late.misused += !executable->is_built;
  return late.inner->instance_create(device, executable->inner, inputs, input_count, weights, weight_count, instance, error);
}

static const clv_save_slots late_save_slots = {.struct_size = sizeof late_save_slots, .save = late_save, .load = late_load};

static clv_status late_query(const clv_host *host, void *user_data, const clv_backend **backend, clv_error *error) {
  CLV__TRY(clv__vnpu_backend_query(host, user_data, &late.inner, error));
  late.table = *late.inner;
  late.table.name = "late";
  late.table.open = late_open;
  late.table.compile = late_compile;
  late.table.executable_destroy = late_destroy;
  late.table.executable_info = late_info;
  late.table.save = &late_save_slots;
  late.table.instance_create = late_instance;
  late.table.finish = late_finish;
  *backend = &late.table;
  return CLV_OK;
}

/* ---- A model with two partitions on this device, and one on the CPU between them ---- */

typedef struct scene {
  machine m;
  clv_graph *graph;
  clv_plan *plan;
} scene;

static void scene_open(scene *s, const char *directory) {
  clv_error error = {0};
  late.log[0] = '\0';
  late.fail = late.fail_from_disk = false;
  late.misused = 0;
  test_allocator_init(&s->m.counting);
  clv_context_options context = CLV_CONTEXT_OPTIONS_INIT;
  context.allocator = &s->m.counting.allocator;
  context.cache_directory = directory;
  assert_ok(clv_context_create(&context, &s->m.context, &error), error);
  assert_ok(clv_context_add_backend(s->m.context, late_query, NULL, &error), error);
  clv_devices_options devices = CLV_DEVICES_OPTIONS_INIT;
  devices.list = "late,cpu";
  assert_ok(clv_devices_open(s->m.context, &devices, &s->m.devices, &error), error);
  test_graph g;
  test_graph_begin(&g, &s->m.counting.allocator, 3);
  test_graph_input(&g, "x", CLV_F32, 2, DIMS(8, 48));
  test_graph_weight(&g, "w", 2, DIMS(48, 48));
  test_graph_weight(&g, "w2", 2, DIMS(48, 48));
  test_graph_node(&g, "first", "MatMul", "x,w", "a");
  test_graph_node(&g, "between", "Relu", "a", "b");
  test_graph_node(&g, "second", "MatMul", "b,w2", "c");
  test_graph_node(&g, "last", "Tanh", "c", "y");
  s->graph = test_graph_end(&g, "y");
  static const clv_assignment force = {"Relu", "cpu"}; /* no pins, so that partitions of a failed device can move */
  clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
  options.strategy = "contiguous";
  options.force_count = 1;
  options.forces = &force;
  s->plan = machine_plan(&s->m, s->graph, NULL, options);
  assert_int_equal(s->plan->partition_count, 3);
}

static void scene_close(scene *s) {
  clv_plan_destroy(s->plan);
  clv_graph_destroy(s->graph);
  machine_close(&s->m);
  assert_int_equal(late.live, 0);
  assert_int_equal(late.misused, 0);
}

static void scene_run(scene *s, const char *what) {
  clv_session *session = machine_session(s->plan);
  clv_tensor input = s->graph->values[s->graph->inputs[0]].type;
  float data[8 * 48];
  uint64_t seed = 5;
  for (size_t i = 0; i < sizeof data / sizeof *data; ++i) data[i] = test_random_float(&seed);
  input.data = data;
  machine_check_run(session, s->plan, &input, what);
  clv_session_destroy(session);
}

static clv_status start(scene *s, clv__executables *executables, clv_error *error) {
  const clv_compile_options options = {.struct_size = sizeof options};
  return clv__executables_init(s->plan, &options, NULL, executables, error);
}

/* ---- Tests ---- */

static void all_at_once(void **state) {
  (void)state;
  folder f;
  scene s;
  clv__executables executables, other;
  clv_error error = {0};
  folder_make(&f);
  scene_open(&s, f.path);
  assert_ok(start(&s, &executables, &error), error);
  assert_string_equal(late.log, "compile compile finish(2) save save");
  assert_int_equal(executables.counters.compiled, 2);
  assert_int_equal(executables.counters.not_kept, 1); /* the CPU's partition */
  assert_int_equal(executables.partitions[0].info.resident_bytes, 4711);
  /* A second session shares the executables: finish() is not called. */
  late.log[0] = '\0';
  assert_ok(start(&s, &other, &error), error);
  assert_string_equal(late.log, "");
  assert_int_equal(other.counters.from_memory, 3);
  assert_int_equal(other.partitions[0].info.resident_bytes, 4711);
  clv__executables_finish(&other);
  scene_run(&s, "compiled");
  /* Compiles one partition again, as for other sizes: its executable is found in memory. */
  clv__compiled one;
  clv__arena arena;
  clv__arena_init(&arena, &s.m.counting.allocator);
  assert_ok(clv__executables_compile(&executables, 0, clv__partition_sized(&s.plan->partitions[0]), &arena, &one, &error), error);
  assert_int_equal(one.origin.source, CLV__SOURCE_MEMORY);
  clv__executables_drop(&executables, 0, &one);
  clv__executables_finish(&executables);
  late.log[0] = '\0';
  /* No session has the executables any more, so they are loaded from the cache. */
  assert_ok(start(&s, &executables, &error), error);
  assert_string_equal(late.log, "load load finish(2)");
  assert_int_equal(executables.counters.from_disk, 2);
  scene_run(&s, "loaded");
  clv__executables_finish(&executables);
  clv__arena_finish(&arena);
  scene_close(&s);
  folder_remove(f.path);
}

static void alone(void **state) {
  (void)state;
  scene s;
  clv__executables executables;
  clv_error error = {0};
  scene_open(&s, "");
  assert_ok(start(&s, &executables, &error), error);
  assert_string_equal(late.log, "compile compile finish(2)");
  late.log[0] = '\0';
  executables.options.deterministic = true; /* changes the key, so the partition is compiled again */
  clv__compiled one;
  clv__arena arena;
  clv__arena_init(&arena, &s.m.counting.allocator);
  assert_ok(clv__executables_compile(&executables, 2, clv__partition_sized(&s.plan->partitions[2]), &arena, &one, &error), error);
  assert_string_equal(late.log, "compile finish(1)");
  clv__executables_drop(&executables, 2, &one);
  late.fail = true;
  assert_int_equal(clv__executables_compile(&executables, 2, clv__partition_sized(&s.plan->partitions[2]), &arena, &one, &error),
                   CLV_DEVICE_ERROR);
  assert_string_equal(error.message, "partition 2 on late: finish: the build failed");
  assert_int_equal(executables.failed_device, 0);
  assert_null(one.executable);
  clv__arena_finish(&arena);
  clv__executables_finish(&executables);
  scene_close(&s);
}

/* If finish() fails, all executables are destroyed, none is cached, and the error names the device. */
static void failure(void **state) {
  (void)state;
  folder f;
  scene s;
  clv__executables executables;
  clv_error error = {0};
  folder_make(&f);
  scene_open(&s, f.path);
  late.fail = true;
  assert_int_equal(start(&s, &executables, &error), CLV_DEVICE_ERROR);
  assert_string_equal(error.message, "partitions 0 to 2 on late: finish: the build failed");
  assert_string_equal(late.log, "compile compile finish(2) destroy destroy");
  assert_int_equal(executables.failed_device, 0);
  assert_int_equal(late.live, 0);
  late.log[0] = '\0';
  scene_run(&s, "after the build failed"); /* the session moves the partitions to the other device */
  assert_non_null(strstr(late.log, "compile compile finish(2) destroy destroy"));
  assert_null(strstr(late.log, "save"));
  scene_close(&s);
  folder_remove(f.path);
}

/* Cached executables that cannot be built are removed from the cache, compiled again, and cached again. */
static void kept_ones_that_cannot_be_built(void **state) {
  (void)state;
  folder f;
  scene s;
  clv__executables executables;
  clv_error error = {0};
  folder_make(&f);
  scene_open(&s, f.path);
  assert_ok(start(&s, &executables, &error), error);
  clv__executables_finish(&executables);
  late.log[0] = '\0';
  late.fail_from_disk = true;
  assert_ok(start(&s, &executables, &error), error);
  assert_string_equal(late.log, "load load finish(2) destroy destroy compile compile finish(2) save save");
  assert_int_equal(executables.counters.compiled, 2);
  assert_int_equal(executables.counters.from_disk, 0);
  clv__executables_finish(&executables);
  late.fail_from_disk = false;
  late.log[0] = '\0';
  scene_run(&s, "loaded again from the cache");
  assert_int_equal(strncmp(late.log, "load load finish(2)", 19), 0);
  scene_close(&s);
  folder_remove(f.path);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_at_once),
      cmocka_unit_test(alone),
      cmocka_unit_test(failure),
      cmocka_unit_test(kept_ones_that_cannot_be_built),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
