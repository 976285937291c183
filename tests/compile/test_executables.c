/* Executables of plans: which ones sessions share, which ones the cache returns, and the reasons that are reported if it
 * returns none. The virtual NPU can save executables and has weights above 4 KiB uploaded; the CPU does neither. */
#include "../cache/folder.h"
#include "machine.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "backends/vnpu/vnpu.h"
#include "compile/compile.h"

/* ---- A device that is slow to save ---- */

/* A virtual NPU that saves slowly if `pause_us` is set, so that a process is usually killed while it saves. */
static struct slow {
  clv_backend table;
  clv_save_slots save;
  const clv_backend *inner;
  useconds_t pause_us; /* wait after every 64 bytes */
  int begun[2];        /* a pipe that gets a byte when a slow save begins */
} slow;

typedef struct slow_writer {
  clv_write_fn write;
  void *cookie;
} slow_writer;

static clv_status write_slowly(void *cookie, const void *data, size_t size_bytes) {
  const slow_writer *w = cookie;
  enum { PIECE = 64 };
  for (size_t at = 0; at < size_bytes; at += PIECE) {
    CLV__TRY(w->write(w->cookie, (const char *)data + at, size_bytes - at < PIECE ? size_bytes - at : PIECE));
    if (slow.pause_us > 0) usleep(slow.pause_us);
  }
  return CLV_OK;
}

static clv_status save_slowly(clv_device *device, clv_executable *executable, clv_write_fn to, void *cookie, clv_error *error) {
  if (slow.pause_us > 0 && write(slow.begun[1], "", 1) != 1) return clv__error_set(error, CLV_IO_ERROR, "the pipe is full");
  return slow.inner->save->save(device, executable, write_slowly, &(slow_writer){to, cookie}, error);
}

static clv_status open_slow(void *self, const clv_host *host, const clv_device_config *config, clv_device **device,
                            clv_error *error) {
  const clv_option spec = {"spec", "all"};
  clv_device_config all = *config;
  all.options = &spec;
  all.option_count = 1;
  return slow.inner->open(self, host, &all, device, error);
}

static clv_status query_slow(const clv_host *host, void *user_data, const clv_backend **backend, clv_error *error) {
  CLV__TRY(clv__vnpu_backend_query(host, user_data, &slow.inner, error));
  slow.table = *slow.inner;
  slow.table.name = "slow";
  slow.table.open = open_slow;
  slow.save = *slow.inner->save;
  slow.save.save = save_slowly;
  slow.table.save = &slow.save;
  *backend = &slow.table;
  return CLV_OK;
}

/* ---- Machines with a cache, and a small model in variants ---- */

static void open_with_cache(machine *m, const char *list, const char *spec, const char *directory) {
  clv_error error = {0};
  test_allocator_init(&m->counting);
  clv_context_options context = CLV_CONTEXT_OPTIONS_INIT;
  context.allocator = &m->counting.allocator;
  context.cache_directory = directory;
  assert_ok(clv_context_create(&context, &m->context, &error), error);
  assert_ok(clv_context_add_backend(m->context, query_slow, NULL, &error), error);
  clv_devices_options devices = CLV_DEVICES_OPTIONS_INIT;
  devices.list = list;
  devices.npu_spec_count = strstr(list, "npu") != NULL;
  devices.npu_specs = &spec;
  assert_ok(clv_devices_open(m->context, &devices, &m->devices, &error), error);
}

typedef struct variant {
  const char *prefix;           /* begins all names in the model */
  int64_t batch, axis, padding; /* the input's first dim; the axis of Softmax; if padding is above 0, there is one more node */
  uint32_t flip;                /* number of the bit to flip in the second weight, from 1; 0: none */
} variant;

enum { WIDTH = 48 };

/* Two matrix products and a softmax. The weights have 9 KiB each and are equal unless a bit is flipped. */
static clv_graph *build(const clv_allocator *allocator, variant v) {
  test_graph g;
  char names[12][64], list[256];
  static const char *const base[] = {"x", "w", "w2", "a", "b", "y", "n1", "n2", "n3", "c", "n4"};
  for (int i = 0; i < 11; ++i) snprintf(names[i], sizeof names[i], "%s%s", v.prefix, base[i]);
  test_graph_begin(&g, allocator, 31);
  test_graph_input(&g, names[0], CLV_F32, 2, DIMS(v.batch, WIDTH));
  uint64_t before = g.seed;
  test_graph_weight(&g, names[1], 2, DIMS(WIDTH, WIDTH));
  g.seed = before;
  test_graph_weight(&g, names[2], 2, DIMS(WIDTH, WIDTH)); /* same seed, so both weights have the same bytes */
  if (v.flip > 0) {
    clv_error error = {0};
    clv_value_id id;
    assert_ok(clv__builder_value(g.builder, names[2], &id, &error), error);
    uint8_t *data = clv__builder_type_of(g.builder, id)->data;
    data[(v.flip - 1) / 8] ^= (uint8_t)(1u << (v.flip - 1) % 8);
  }
  snprintf(list, sizeof list, "%s,%s", names[0], names[1]);
  test_graph_node(&g, names[6], "MatMul", list, names[3]);
  snprintf(list, sizeof list, "%s,%s", names[3], names[2]);
  test_graph_node(&g, names[7], "MatMul", list, names[4]);
  if (v.padding > 0) test_graph_node(&g, names[10], "Relu", names[4], names[9]);
  test_graph_node_ints(&g, names[8], "Softmax", v.padding > 0 ? names[9] : names[4], names[5], "axis", false, 1, &v.axis);
  return test_graph_end(&g, names[5]);
}
#define PLAIN ((variant){.prefix = "", .batch = 4, .axis = 1})

static clv_dtype asked_precision; /* the precision that start() requests */

static void start(machine *m, const clv_plan *plan, bool deterministic, clv__executables *executables) {
  (void)m;
  clv_error error = {0};
  clv_compile_options options = {.struct_size = sizeof options, .deterministic = deterministic, .precision = asked_precision};
  assert_ok(clv__executables_init(plan, &options, NULL, executables, &error), error);
}

static void check_run(const clv_graph *graph, const clv_plan *plan, const char *what) {
  clv_session *session = machine_session(plan);
  clv_tensor input = graph->values[graph->inputs[0]].type;
  uint64_t seed = 5;
  size_t count;
  assert_true(clv__tensor_count(&input, &count));
  float *data = malloc(count * sizeof *data);
  for (size_t i = 0; i < count; ++i) data[i] = test_random_float(&seed);
  input.data = data;
  machine_check_run(session, plan, &input, what);
  free(data);
  clv_session_destroy(session);
}

/* Gets the executable of a variant in a new context and checks a run. Returns the origin of its only partition. */
static clv__origin fresh(const folder *f, const char *list, const char *spec, variant v, bool deterministic) {
  machine m;
  clv__executables executables;
  open_with_cache(&m, list, spec, f == NULL ? "" : f->path);
  clv_graph *graph = build(&m.counting.allocator, v);
  clv_plan *plan = machine_plan(&m, graph, NULL, (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
  assert_int_equal(plan->partition_count, 1);
  start(&m, plan, deterministic, &executables);
  clv__origin origin = executables.partitions[0].origin;
  check_run(graph, plan, v.prefix);
  clv__executables_finish(&executables);
  clv_plan_destroy(plan);
  clv_graph_destroy(graph);
  machine_close(&m);
  return origin;
}

static void assert_origin(clv__origin origin, clv__source source, const char *reason) {
  if (origin.source != source || (reason == NULL ? origin.reason[0] != '\0' : strstr(origin.reason, reason) == NULL)) {
    fail_msg("the source of the executable is '%s' (%s), expected '%s' (%s)", clv__source_word(origin.source), origin.reason,
             clv__source_word(source), reason == NULL ? "" : reason);
  }
}

/* ---- In memory ---- */

static void sessions_share(void **state) {
  (void)state;
  machine m;
  open_with_cache(&m, "npu,cpu", "all", "");
  clv_graph *graph = build(&m.counting.allocator, PLAIN);
  clv_plan *plan = machine_plan(&m, graph, "n3=cpu", (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
  assert_int_equal(plan->partition_count, 2);
  clv__executables first, second, third;
  start(&m, plan, false, &first);
  assert_origin(first.partitions[0].origin, CLV__SOURCE_NOT_KEPT, "no cache directory");
  assert_origin(first.partitions[1].origin, CLV__SOURCE_NOT_KEPT, "cannot save executables");
  assert_int_equal(first.counters.not_kept, 2);
  assert_int_equal(first.counters.uploaded_bytes, WIDTH * WIDTH * 4); /* both weights have the same bytes */
  assert_int_equal(first.counters.shared_bytes, WIDTH * WIDTH * 4);
  assert_true(first.partitions[0].weights[0] == first.partitions[0].weights[1]);
  start(&m, plan, false, &second);
  for (uint32_t p = 0; p < 2; ++p) {
    assert_origin(second.partitions[p].origin, CLV__SOURCE_MEMORY, NULL);
    assert_ptr_equal(first.partitions[p].executable, second.partitions[p].executable);
  }
  assert_int_equal(second.counters.from_memory, 2);
  assert_int_equal(second.counters.uploaded_bytes, 0);
  start(&m, plan, true, &third); /* with other options, the executables differ, but the weights are shared */
  assert_true(third.partitions[0].executable != first.partitions[0].executable);
  assert_int_equal(third.counters.not_kept, 2);
  assert_int_equal(third.counters.uploaded_bytes, 0);
  clv__executables_finish(&first);
  clv__executables_finish(&third);
  check_run(graph, plan, "after the first and the third executables were destroyed");
  clv__executables_finish(&second);
  start(&m, plan, false, &first); /* the executables and weights were freed with their last user, so they are made again */
  assert_int_equal(first.counters.from_memory, 0);
  assert_int_equal(first.counters.uploaded_bytes, WIDTH * WIDTH * 4);
  clv__executables_finish(&first);
  clv_plan_destroy(plan);
  clv_graph_destroy(graph);
  machine_close(&m);
}

/* Two models that differ only in names share executables, whichever is destroyed first. */
static void equal_models_share(void **state) {
  (void)state;
  for (int order = 0; order < 2; ++order) {
    machine m;
    open_with_cache(&m, "npu,cpu", "all", "");
    clv_graph *graphs[2];
    clv_plan *plans[2];
    clv__executables programs[2];
    for (int i = 0; i < 2; ++i) {
      graphs[i] = build(&m.counting.allocator, (variant){i == 0 ? "one/" : "another.", 4, 1, 0, 0});
      plans[i] = machine_plan(&m, graphs[i], i == 0 ? "one/n3=cpu" : "another.n3=cpu", (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
      start(&m, plans[i], false, &programs[i]);
    }
    for (uint32_t p = 0; p < 2; ++p) {
      assert_origin(programs[1].partitions[p].origin, CLV__SOURCE_MEMORY, NULL);
      assert_ptr_equal(programs[0].partitions[p].executable, programs[1].partitions[p].executable);
    }
    assert_int_equal(programs[1].counters.uploaded_bytes, 0);
    clv__executables_finish(&programs[order]);
    clv_plan_destroy(plans[order]);
    clv_graph_destroy(graphs[order]);
    check_run(graphs[1 - order], plans[1 - order], "the model that remains");
    /* Constants are now compared with those of the remaining model: a third equal model still finds the executables. */
    clv_graph *third = build(&m.counting.allocator, (variant){"third", 4, 1, 0, 0});
    clv_plan *plan = machine_plan(&m, third, "thirdn3=cpu", (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
    clv__executables executables;
    start(&m, plan, false, &executables);
    assert_int_equal(executables.counters.from_memory, 2);
    clv__executables_finish(&executables);
    clv_plan_destroy(plan);
    clv_graph_destroy(third);
    clv__executables_finish(&programs[1 - order]);
    clv_plan_destroy(plans[1 - order]);
    clv_graph_destroy(graphs[1 - order]);
    machine_close(&m);
  }
}

/* Any difference leads to another executable, and different bytes to another weight. */
static void different_models_do_not_share(void **state) {
  (void)state;
  static const variant others[] = {{"", 5, 1, 0, 0},
                                   {"", 4, 0, 0, 0},
                                   {"", 4, 1, 1, 0},
                                   {"", 4, 1, 0, 1},
                                   {"", 4, 1, 0, WIDTH * WIDTH * 32},
                                   {"", 4, 1, 0, WIDTH * WIDTH * 8 + 17}};
  machine m;
  open_with_cache(&m, "npu,cpu", "all", "");
  clv_graph *graph = build(&m.counting.allocator, PLAIN);
  clv_plan *plan = machine_plan(&m, graph, NULL, (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
  clv__executables executables;
  start(&m, plan, false, &executables);
  for (size_t i = 0; i < sizeof others / sizeof *others; ++i) {
    clv_graph *other = build(&m.counting.allocator, others[i]);
    clv_plan *other_plan = machine_plan(&m, other, NULL, (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
    clv__executables other_program;
    start(&m, other_plan, false, &other_program);
    assert_int_equal(other_program.counters.from_memory, 0);
    assert_int_equal(other_program.counters.uploaded_bytes, others[i].flip > 0 ? WIDTH * WIDTH * 4 : 0);
    check_run(other, other_plan, "a variant");
    clv__executables_finish(&other_program);
    clv_plan_destroy(other_plan);
    clv_graph_destroy(other);
  }
  clv__executables_finish(&executables);
  clv_plan_destroy(plan);
  clv_graph_destroy(graph);
  machine_close(&m);
}

/* Creates and destroys models and their executables at random, and checks runs of them: an executable that several models
 * share must work until the last of them is destroyed. */
static void coming_and_going(void **state) {
  (void)state;
  enum { PLACES = 6, STEPS = 150 };
  folder f;
  folder_make(&f);
  machine m;
  open_with_cache(&m, "npu,cpu", "all", f.path);
  struct {
    clv_graph *graph;
    clv_plan *plan;
    clv__executables executables;
  } places[PLACES] = {0};
  uint64_t seed = 77;
  for (int step = 0; step < STEPS; ++step) {
    uint32_t i = (uint32_t)(test_random(&seed) % PLACES);
    if (places[i].graph != NULL) {
      if (test_random(&seed) % 2 == 0) check_run(places[i].graph, places[i].plan, "a model before it is destroyed");
      clv__executables_finish(&places[i].executables);
      clv_plan_destroy(places[i].plan);
      clv_graph_destroy(places[i].graph);
      places[i].graph = NULL;
      continue;
    }
    variant v = {test_random(&seed) % 2 == 0 ? "p" : "q", 1 + (int64_t)(test_random(&seed) % 2), 1, 0,
                 (uint32_t)(test_random(&seed) % 3)};
    places[i].graph = build(&m.counting.allocator, v);
    places[i].plan = machine_plan(&m, places[i].graph, test_random(&seed) % 2 == 0 ? "*n1=cpu" : NULL,
                                  (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
    start(&m, places[i].plan, false, &places[i].executables);
    check_run(places[i].graph, places[i].plan, "a new model");
  }
  for (int i = 0; i < PLACES; ++i) {
    if (places[i].graph == NULL) continue;
    clv__executables_finish(&places[i].executables);
    clv_plan_destroy(places[i].plan);
    clv_graph_destroy(places[i].graph);
  }
  machine_close(&m);
  folder_remove(f.path);
}

/* ---- On disk ---- */

static void hits_and_misses(void **state) {
  (void)state;
  folder f;
  folder_make(&f);
  const variant plain = PLAIN;
  assert_origin(fresh(&f, "npu", "all", plain, false), CLV__SOURCE_COMPILED, "no executable with this graph structure");
  assert_origin(fresh(&f, "npu", "all", plain, false), CLV__SOURCE_DISK, NULL);
  assert_origin(fresh(&f, "npu", "all", (variant){"other names/", 4, 1, 0, 0}, false), CLV__SOURCE_DISK, NULL);
  /* One part of the key differs at a time. */
  assert_origin(fresh(&f, "npu", "all", plain, true), CLV__SOURCE_COMPILED, "other options than");
  asked_precision = CLV_BF16;
  assert_origin(fresh(&f, "npu", "all", plain, true), CLV__SOURCE_COMPILED, "other options than");
  asked_precision = CLV_DTYPE_NONE;
  assert_origin(fresh(&f, "npu", "all", (variant){"", 5, 1, 0, 0}, false), CLV__SOURCE_COMPILED, "other shapes or dtypes than");
  assert_origin(fresh(&f, "npu", "all", (variant){"", 4, 1, 0, WIDTH * WIDTH * 8 + 17}, false), CLV__SOURCE_COMPILED,
                "other weights than");
  assert_origin(fresh(&f, "npu", "all", (variant){"", 4, 0, 0, 0}, false), CLV__SOURCE_COMPILED,
                "no executable with this graph structure");
  assert_origin(fresh(&f, "npu", "all", (variant){"", 4, 1, 1, 0}, false), CLV__SOURCE_COMPILED,
                "no executable with this graph structure");
  assert_origin(fresh(&f, "npu", "default", plain, false), CLV__SOURCE_COMPILED, "other device or driver than");
  assert_int_equal(folder_look(f.path).whole, 8);
  /* The next time, all of these executables are in the cache. */
  assert_origin(fresh(&f, "npu", "all", plain, true), CLV__SOURCE_DISK, NULL);
  assert_origin(fresh(&f, "npu", "all", (variant){"x", 4, 1, 0, WIDTH * WIDTH * 8 + 17}, false), CLV__SOURCE_DISK, NULL);
  assert_origin(fresh(&f, "npu", "default", plain, false), CLV__SOURCE_DISK, NULL);
  assert_origin(fresh(&f, "cpu", NULL, plain, false), CLV__SOURCE_NOT_KEPT, "cannot save executables");
  assert_origin(fresh(NULL, "npu", "all", plain, false), CLV__SOURCE_NOT_KEPT, "no cache directory");
  folder_remove(f.path);
}

static void path_of_only(const folder *f, char *path, size_t size_bytes) {
  folder_count count = folder_look(f->path);
  assert_int_equal(count.whole + count.damaged, 1);
  assert_true(snprintf(path, size_bytes, "%s/%s", f->path, count.name) < (int)size_bytes);
}

static void overwrite(const char *path, long at, const void *bytes, size_t size_bytes) {
  FILE *file = fopen(path, "r+b");
  assert_non_null(file);
  assert_int_equal(fseek(file, at, at < 0 ? SEEK_END : SEEK_SET), 0);
  assert_int_equal(fwrite(bytes, 1, size_bytes, file), size_bytes);
  fclose(file);
}

/* If the file is damaged in any way, the run is correct and reports why it compiled. The next run finds the executable in the
 * cache again. */
static void damaged_files(void **state) {
  (void)state;
  folder f;
  char path[512];
  folder_make(&f);
  const variant plain = PLAIN;
  fresh(&f, "npu", "all", plain, false);
  path_of_only(&f, path, sizeof path);
  uint64_t seed = 3;
  struct stat info;
  assert_int_equal(stat(path, &info), 0);
  for (int i = 0; i < 40; ++i) {
    uint8_t byte = 0;
    FILE *file = fopen(path, "rb");
    long at = 60 + (long)(test_random(&seed) % (uint64_t)(info.st_size - 60));
    assert_true(fseek(file, at, SEEK_SET) == 0 && fread(&byte, 1, 1, file) == 1);
    fclose(file);
    byte ^= (uint8_t)(1u << test_random(&seed) % 8);
    overwrite(path, at, &byte, 1);
    assert_origin(fresh(&f, "npu", "all", plain, false), CLV__SOURCE_COMPILED, "damaged");
  }
  assert_origin(fresh(&f, "npu", "all", plain, false), CLV__SOURCE_DISK, NULL);
  assert_int_equal(truncate(path, 100), 0);
  assert_origin(fresh(&f, "npu", "all", plain, false), CLV__SOURCE_COMPILED, "truncated");
  overwrite(path, 8, "\x09", 1);
  assert_origin(fresh(&f, "npu", "all", plain, false), CLV__SOURCE_COMPILED, "format version 9");
  assert_int_equal(chmod(path, 0606), 0);
  assert_origin(fresh(&f, "npu", "all", plain, false), CLV__SOURCE_COMPILED, "other users can write");
  assert_origin(fresh(&f, "npu", "all", plain, false), CLV__SOURCE_DISK, NULL);
  folder_remove(f.path);
}

typedef struct forged {
  const void *payload;
  size_t payload_bytes;
} forged;

static clv_status save_forged(void *self, clv_write_fn write, void *cookie, clv_error *error) {
  (void)error;
  const forged *what = self;
  return write(cookie, what->payload, what->payload_bytes);
}

/* The contents of the only file of the cache. */
typedef struct stored {
  clv__file_map map;
  clv__cache_info info;
  forged what;
} stored;

static void stored_open(const folder *f, stored *s) {
  char path[512];
  clv_error error = {0};
  path_of_only(f, path, sizeof path);
  assert_ok(clv__file_map_open(path, &s->map, &error), error);
  assert_ok(clv__cache_file_read(clv__allocator_default(), s->map.data, s->map.size_bytes, &s->info, &s->what.payload,
                                 &s->what.payload_bytes, &error),
            error);
}

static void stored_close(stored *s) {
  clv__cache_info_finish(clv__allocator_default(), &s->info);
  clv__file_map_close(&s->map);
}

/* Writes a file with a valid hash: the key and the weights of `info`, and the program in `what`. */
static void forge(const folder *f, const clv__cache_info *info, forged what) {
  clv_error error = {0};
  clv__cache *cache;
  assert_ok(clv__cache_open(clv__allocator_default(), f->path, 1 << 20, false, &cache, &error), error);
  assert_ok(clv__cache_put(cache, info, save_forged, &what, &error), error);
  clv__cache_close(cache);
}

/* Files with a valid hash, but a forged payload or forged weights, are rejected, and the executable is compiled again. */
static void lying_files(void **state) {
  (void)state;
  folder f;
  folder_make(&f);
  const variant plain = PLAIN;
  fresh(&f, "npu", "all", plain, false);
  for (int lie = 0; lie < 5; ++lie) {
    stored s;
    stored_open(&f, &s);
    uint32_t weights[3] = {s.info.weights[0], s.info.weights[1], 0};
    assert_int_equal(s.info.weight_count, 2);
    clv__cache_info told = s.info;
    told.weights = weights;
    if (lie == 1) told.weight_count = 1;
    if (lie == 2) told.weight_count = 3;
    if (lie == 3) weights[1] = UINT32_MAX;
    if (lie == 4) weights[0] = 0; /* value 0 is the input, which is not a constant */
    forge(&f, &told, lie == 0 ? (forged){"nonsense", 8} : s.what);
    stored_close(&s);
    assert_origin(fresh(&f, "npu", "all", plain, false), CLV__SOURCE_COMPILED,
                  lie == 0 ? "the device rejected the stored executable" : "the weights of the stored executable differ");
    assert_origin(fresh(&f, "npu", "all", plain, false), CLV__SOURCE_DISK, NULL);
  }
  folder_remove(f.path);
}

/* A stored program that computes another graph, under the key of this graph, is rejected. If only names differ, it is
 * accepted. */
static void programs_of_other_graphs(void **state) {
  (void)state;
  const variant plain = PLAIN;
  static const struct {
    variant other;
    const char *reason; /* NULL: the program is accepted */
  } cases[] = {
      {{.prefix = "other.", .batch = 4, .axis = 1}, NULL},
      {{.prefix = "", .batch = 4, .axis = 0}, "the stored executable computes another graph: other nodes"},
      {{.prefix = "", .batch = 4, .axis = 1, .padding = 1}, "the stored executable computes another graph: other nodes"},
      {{.prefix = "", .batch = 5, .axis = 1}, "the stored executable computes another graph: other shapes or dtypes"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    folder f, other;
    stored mine, theirs;
    folder_make(&f);
    folder_make(&other);
    fresh(&f, "npu", "all", plain, false);
    fresh(&other, "npu", "all", cases[i].other, false);
    stored_open(&f, &mine);
    stored_open(&other, &theirs);
    forge(&f, &mine.info, theirs.what);
    stored_close(&theirs);
    stored_close(&mine);
    assert_origin(fresh(&f, "npu", "all", plain, false), cases[i].reason == NULL ? CLV__SOURCE_DISK : CLV__SOURCE_COMPILED,
                  cases[i].reason);
    assert_origin(fresh(&f, "npu", "all", plain, false), CLV__SOURCE_DISK, NULL);
    folder_remove(other.path);
    folder_remove(f.path);
  }
}

/* A stored program whose two weights, of the same type, are bound in the wrong order is rejected. */
static void swapped_weights(void **state) {
  (void)state;
  folder f;
  stored s;
  const variant flipped = {.prefix = "", .batch = 4, .axis = 1, .flip = 1};
  folder_make(&f);
  fresh(&f, "npu", "all", flipped, false);
  stored_open(&f, &s);
  assert_int_equal(s.info.weight_count, 2);
  const uint32_t weights[2] = {s.info.weights[1], s.info.weights[0]};
  clv__cache_info told = s.info;
  told.weights = weights;
  forge(&f, &told, s.what);
  stored_close(&s);
  assert_origin(fresh(&f, "npu", "all", flipped, false), CLV__SOURCE_COMPILED,
                "the stored executable computes another graph: other weights");
  folder_remove(f.path);
}

static void nowhere_to_write(void **state) {
  (void)state;
  folder f;
  folder_make(&f);
  char path[256];
  snprintf(path, sizeof path, "%s/file", f.path);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fclose(file);
  folder below;
  assert_true(snprintf(below.path, sizeof below.path, "%s/file/cache", f.path) < (int)sizeof below.path);
  assert_origin(fresh(&below, "npu", "all", PLAIN, false), CLV__SOURCE_NOT_KEPT, "Not a directory");
  /* A full disk, simulated with a limit on the size of files. The limit applies to a whole process, so the test uses a child. */
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    struct rlimit limit = {300, 300};
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(2);
    clv__origin origin = fresh(&f, "npu", "all", PLAIN, false);
    _exit(origin.source == CLV__SOURCE_NOT_KEPT && strstr(origin.reason, "not cached: cannot write the file") != NULL ? 0 : 1);
  }
  folder_wait(child);
  assert_origin(fresh(&f, "npu", "all", PLAIN, false), CLV__SOURCE_COMPILED, "no executable with this graph structure");
  folder_remove(f.path);
}

/* A cache without write permission is still read. Each run is correct and reports why its executable is not cached. */
static int run_without_rights(const folder *f, const folder *of_root) {
  static const char no_folder[] = "not cached: cannot create the cache folder: Permission denied";
  static const char no_file[] = "not cached: cannot write the file: Permission denied";
  const variant plain = PLAIN, other = {"", 4, 1, 1, 0}, other_weights = {"", 4, 1, 0, WIDTH * WIDTH * 8 + 17};
  char path[512];
  uint8_t byte = 0xa5;
  bool is_root = geteuid() == 0;
  if (!folder_without_rights(f)) return FOLDER_SKIPPED;
  if (is_root) assert_origin(fresh(of_root, "npu", "all", plain, false), CLV__SOURCE_NOT_KEPT, "belongs to user 0");
  folder_rights(f, 0500);
  for (int i = 0; i < 2; ++i) assert_origin(fresh(f, "npu", "all", plain, false), CLV__SOURCE_NOT_KEPT, no_folder);
  folder_rights(f, 0700);
  assert_origin(fresh(f, "npu", "all", plain, false), CLV__SOURCE_COMPILED, "no executable with this graph structure");
  path_of_only(f, path, sizeof path);
  folder_rights(f, 0500);
  assert_int_equal(chmod(path, 0400), 0);
  for (int i = 0; i < 2; ++i) assert_origin(fresh(f, "npu", "all", plain, false), CLV__SOURCE_DISK, NULL);
  assert_origin(fresh(f, "npu", "all", other, false), CLV__SOURCE_NOT_KEPT, no_folder);
  assert_origin(fresh(f, "npu", "all", other_weights, false), CLV__SOURCE_NOT_KEPT, no_file);
  assert_origin(fresh(f, "npu", "all", plain, false), CLV__SOURCE_DISK, NULL);
  assert_int_equal(chmod(path, 0600), 0);
  overwrite(path, -1, &byte, 1); /* a damaged file that cannot be removed */
  for (int i = 0; i < 2; ++i) assert_origin(fresh(f, "npu", "all", plain, false), CLV__SOURCE_NOT_KEPT, no_file);
  folder_rights(f, 0700);
  assert_origin(fresh(f, "npu", "all", plain, false), CLV__SOURCE_COMPILED, "damaged");
  assert_origin(fresh(f, "npu", "all", plain, false), CLV__SOURCE_DISK, NULL);
  return 0;
}

static void read_only(void **state) {
  (void)state;
  folder f, of_root;
  folder_make(&f);
  folder_make(&of_root);
  assert_int_equal(chmod(of_root.path, 0755), 0);
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) _exit(run_without_rights(&f, &of_root));
  folder_wait(child);
  folder_count count = folder_look(of_root.path);
  assert_int_equal(count.whole + count.damaged + count.unfinished, 0);
  folder_remove(of_root.path);
  folder_remove(f.path);
}

/* Each allocation fails in turn: the result is an error or a correct executable, and nothing leaks. */
static void no_memory(void **state) {
  (void)state;
  folder f;
  folder_make(&f);
  for (int warm = 0; warm < 2; ++warm) {
    bool done = false;
    for (size_t fail_at = 1; !done; ++fail_at) {
      if (warm == 0) folder_remove(f.path);
      machine m;
      clv__executables executables;
      clv_error error = {0};
      open_with_cache(&m, "npu,cpu", "all", f.path);
      clv_graph *graph = build(&m.counting.allocator, PLAIN);
      clv_plan *plan = machine_plan(&m, graph, "n3=cpu", (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
      clv_compile_options options = {.struct_size = sizeof options};
      m.counting.fail_at = m.counting.calls + fail_at;
      clv_status status = clv__executables_init(plan, &options, NULL, &executables, &error);
      done = m.counting.calls < m.counting.fail_at;
      m.counting.fail_at = 0;
      if (status == CLV_OK) {
        check_run(graph, plan, "after an allocation failed");
        clv__executables_finish(&executables);
      } else {
        assert_int_equal(status, CLV_OUT_OF_MEMORY);
      }
      clv_plan_destroy(plan);
      clv_graph_destroy(graph);
      machine_close(&m);
    }
  }
  folder_remove(f.path);
}

/* ---- Several threads, several processes ---- */

typedef struct job {
  machine *m;
  const clv_graph *graph;
  const clv_plan *plan;
  clv_status status;
  clv_error error;
} job;

static void *start_often(void *argument) {
  job *j = argument;
  clv_compile_options options = {.struct_size = sizeof options};
  for (int i = 0; i < 20 && j->status == CLV_OK; ++i) {
    clv__executables executables;
    j->status = clv__executables_init(j->plan, &options, NULL, &executables, &j->error);
    if (j->status == CLV_OK) clv__executables_finish(&executables);
  }
  return NULL;
}

static void threads(void **state) {
  (void)state;
  enum { THREADS = 4 };
  folder f;
  folder_make(&f);
  machine m;
  open_with_cache(&m, "npu,cpu", "all", f.path);
  clv_graph *graph = build(&m.counting.allocator, PLAIN);
  clv_plan *plan = machine_plan(&m, graph, "n3=cpu", (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
  job jobs[THREADS];
  pthread_t ids[THREADS];
  for (int i = 0; i < THREADS; ++i) {
    jobs[i] = (job){.m = &m, .graph = graph, .plan = plan};
    assert_int_equal(pthread_create(&ids[i], NULL, start_often, &jobs[i]), 0);
  }
  for (int i = 0; i < THREADS; ++i) pthread_join(ids[i], NULL);
  for (int i = 0; i < THREADS; ++i) assert_ok(jobs[i].status, jobs[i].error);
  check_run(graph, plan, "after all");
  clv_plan_destroy(plan);
  clv_graph_destroy(graph);
  machine_close(&m);
  folder_remove(f.path);
}

/* Fills the cache with executables of random models and checks a run of each. If `rounds` is 0, goes on until the process is
 * killed. */
static int fill(const folder *f, uint64_t seed, uint32_t rounds) {
  for (uint32_t i = 0; rounds == 0 || i < rounds; ++i) {
    machine m;
    open_with_cache(&m, "slow,cpu", NULL, f->path);
    clv_graph *graph =
        build(&m.counting.allocator, (variant){"", 1 + (int64_t)(test_random(&seed) % 40), 1, (int64_t)(test_random(&seed) % 2),
                                               (uint32_t)(test_random(&seed) % 6)});
    clv_plan *plan =
        machine_plan(&m, graph, test_random(&seed) % 2 == 0 ? "n2=cpu" : NULL, (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
    check_run(graph, plan, "a model with a shared cache");
    clv_plan_destroy(plan);
    clv_graph_destroy(graph);
    machine_close(&m);
  }
  return 0;
}

/* Calls fill() in a child process, which exits with its result, or at the first assertion that fails. */
static pid_t fork_fill(const folder *f, uint64_t seed, uint32_t rounds) {
  fflush(NULL);
  pid_t child = fork();
  if (child != 0) return child;
  FILE *none = freopen("/dev/null", "w", stdout);
  (void)none;
  _exit(fill(f, seed, rounds));
}

/* Waits for a child process, which must exit with 0. */
static void expect_end(pid_t child, const char *what, int round) {
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    fail_msg("%s, round %d: the process ended with wait status %#x, expected 0", what, round, (unsigned)status);
}

static void killed(void **state) {
  (void)state;
  folder f;
  folder_make(&f);
  uint64_t seed = 123;
  uint32_t left = 0, at_it = 0, whole = 0;
  const int rounds = (int)test_some(100);
  for (int round = 0; round < rounds; ++round) {
    assert_int_equal(pipe(slow.begun), 0);
    slow.pause_us = 1000;
    pid_t child = fork_fill(&f, (uint64_t)round, 0);
    slow.pause_us = 0;
    struct pollfd begun = {.fd = slow.begun[0], .events = POLLIN};
    assert_int_equal(poll(&begun, 1, 60000), 1);
    usleep((useconds_t)(test_random(&seed) % 20000));
    kill(child, SIGKILL);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    close(slow.begun[0]);
    close(slow.begun[1]);
    folder_count count = folder_look(f.path);
    if (count.damaged > 0) fail_msg("round %d: the file %s is damaged: %s", round, count.name, count.problem);
    at_it += count.unfinished > left;
    left = count.unfinished;
    whole = count.whole;
    /* Runs the same models again, including the ones that were being written, and then others. */
    expect_end(fork_fill(&f, (uint64_t)round, 5), "a run after one that was killed", round);
    expect_end(fork_fill(&f, test_random(&seed), 1), "a run after one that was killed", round);
  }
  print_message("%u of %d processes were killed while they wrote; %u complete files\n", at_it, rounds, whole);
  assert_true(at_it > 0 && whole > 0);
  folder_remove(f.path);
}

static void racing(void **state) {
  (void)state;
  folder f;
  folder_make(&f);
  pid_t children[2];
  for (int i = 0; i < 2; ++i) children[i] = fork_fill(&f, 4, 15); /* the same models in the same order */
  for (int i = 0; i < 2; ++i) {
    int status;
    assert_int_equal(waitpid(children[i], &status, 0), children[i]);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
      fail_msg("process %d ended with wait status %#x, expected 0", i, (unsigned)status);
  }
  folder_count count = folder_look(f.path);
  assert_int_equal(count.damaged + count.unfinished, 0);
  assert_true(count.whole > 0);
  folder_remove(f.path);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(killed), /* first, because it forks: no thread may be running */
      cmocka_unit_test(racing),
      cmocka_unit_test(nowhere_to_write),
      cmocka_unit_test(read_only),
      cmocka_unit_test(sessions_share),
      cmocka_unit_test(equal_models_share),
      cmocka_unit_test(different_models_do_not_share),
      cmocka_unit_test(coming_and_going),
      cmocka_unit_test(hits_and_misses),
      cmocka_unit_test(damaged_files),
      cmocka_unit_test(lying_files),
      cmocka_unit_test(programs_of_other_graphs),
      cmocka_unit_test(swapped_weights),
      cmocka_unit_test(no_memory),
      cmocka_unit_test(threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
