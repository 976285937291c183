/* A model file that is truncated or overwritten after it was loaded: whatever reads it then fails with an error that names the
 * file. It never ends with a signal, and never gives the results of other weights. If the file is replaced or deleted, the
 * graph still has the old file. */
#define _GNU_SOURCE /* memmem */
#include <fcntl.h>
#include <sys/stat.h>

#include "../cache/folder.h"
#include "execute/session.h"
#include "formats/onnx/onnx.h"
#include "machine.h"

enum { LAYERS = 4, WIDTH = 512, WEIGHT_BYTES = WIDTH * WIDTH * (int)sizeof(float) };

typedef struct bench {
  machine m;
  folder f;
  char path[256];
  void *bytes; /* contents of the file */
  size_t size_bytes;
  size_t weight; /* offset of the weight "w1" in `bytes` */
} bench;

static void build(bench *b) {
  test_graph g;
  clv_error error = {0};
  test_graph_begin(&g, clv__allocator_default(), 7);
  test_graph_input(&g, "v0", CLV_F32, 2, DIMS(1, WIDTH));
  for (int i = 0; i < LAYERS; ++i) {
    char weight[8], inputs[16], output[8];
    snprintf(weight, sizeof weight, "w%d", i);
    snprintf(inputs, sizeof inputs, "v%d,w%d", i, i);
    snprintf(output, sizeof output, "v%d", i + 1);
    test_graph_weight(&g, weight, 2, DIMS(WIDTH, WIDTH));
    test_graph_node(&g, output, "MatMul", inputs, output);
  }
  clv_graph *graph = test_graph_end(&g, "v4");
  void *model;
  size_t size_bytes;
  assert_ok(clv__onnx_write(graph->whole, SIZE_MAX, clv__allocator_default(), &model, &size_bytes, &error), error);
  const void *weight = graph->values[clv__graph_find_value(graph, "w1")].type.data;
  const uint8_t *found = memmem(model, size_bytes, weight, WEIGHT_BYTES);
  assert_non_null(found);
  /* An unknown field of 2 to 5 bytes before the model aligns the weight, so that it is used in place. */
  size_t offset = (size_t)(found - (const uint8_t *)model), filler = (2 - offset) % 4;
  b->weight = 2 + filler + offset;
  b->size_bytes = 2 + filler + size_bytes;
  b->bytes = calloc(1, b->size_bytes);
  assert_non_null(b->bytes);
  memcpy(b->bytes, (const uint8_t[]){15 << 3 | 2, (uint8_t)filler}, 2);
  memcpy((uint8_t *)b->bytes + 2 + filler, model, size_bytes);
  clv__release(clv__allocator_default(), model);
  clv_graph_destroy(graph);
}

/* Writes a whole file and sets its time to an hour ago. Otherwise a change within one tick of the file system's clock could not
 * be noticed. */
static void write_file(const char *path, const void *bytes, size_t size_bytes) {
  struct timespec now, times[2];
  int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  assert_true(file >= 0 && write(file, bytes, size_bytes) == (ssize_t)size_bytes);
  clock_gettime(CLOCK_REALTIME, &now);
  now.tv_sec -= 3600;
  times[0] = times[1] = now;
  assert_int_equal(futimens(file, times), 0);
  close(file);
}

static void bench_open(bench *b, const char *list, const char *option) {
  clv_error error = {0};
  build(b);
  folder_make(&b->f);
  snprintf(b->path, sizeof b->path, "%s/model.onnx", b->f.path);
  write_file(b->path, b->bytes, b->size_bytes);
  test_allocator_init(&b->m.counting);
  clv_context_options context = CLV_CONTEXT_OPTIONS_INIT;
  context.allocator = &b->m.counting.allocator;
  assert_ok(clv_context_create(&context, &b->m.context, &error), error);
  clv_devices_options devices = CLV_DEVICES_OPTIONS_INIT;
  devices.list = list;
  devices.device_options = &option;
  devices.device_option_count = option != NULL;
  assert_ok(clv_devices_open(b->m.context, &devices, &b->m.devices, &error), error);
}

static void bench_close(bench *b) {
  machine_close(&b->m);
  folder_remove(b->f.path);
  free(b->bytes);
}

static clv_graph *load(bench *b) {
  clv_error error = {0};
  clv_graph *graph;
  assert_ok(clv_graph_load(b->m.context, b->path, &graph, &error), error);
  return graph;
}

static void truncate_file(const bench *b) {
  assert_int_equal(truncate(b->path, 100), 0);
}

/* Changes a few numbers of a weight, none of which is among the numbers that are hashed when weights are compared. */
static void overwrite_file(const bench *b) {
  float numbers[16];
  for (int i = 0; i < 16; ++i) numbers[i] = 100;
  int file = open(b->path, O_WRONLY);
  assert_true(file >= 0);
  assert_int_equal(pwrite(file, numbers, sizeof numbers, (off_t)b->weight + WEIGHT_BYTES / 4), sizeof numbers);
  close(file);
}

static void assert_changed(clv_status status, const clv_error *error) {
  if (status != CLV_IO_ERROR || strstr(error->message, "model.onnx: the file was changed after it was loaded") == NULL) {
    fail_msg("expected CLV_IO_ERROR and a message that model.onnx was changed, got %s: %s", clv_status_name(status),
             error->message);
  }
}

typedef void (*change_fn)(const bench *b);
static const change_fn changes[] = {truncate_file, overwrite_file};
enum { CHANGES = sizeof changes / sizeof *changes };
static const char *const lists[] = {"cpu", "npu", "npu,cpu"};
enum { LISTS = sizeof lists / sizeof *lists };

/* ---- Changed before a session exists ---- */

static void changed_before_the_plan(void **state) {
  (void)state;
  for (int i = 0; i < CHANGES; ++i) {
    bench b;
    clv_error error = {0};
    clv_plan *plan;
    bench_open(&b, "cpu", NULL);
    clv_graph *graph = load(&b);
    changes[i](&b);
    assert_changed(clv_plan_make(graph, b.m.devices, NULL, &plan, &error), &error);
    assert_null(plan);
    clv_graph_destroy(graph);
    bench_close(&b);
  }
}

static void changed_before_the_session(void **state) {
  (void)state;
  for (int i = 0; i < CHANGES * LISTS; ++i) {
    bench b;
    clv_error error = {0};
    clv_session *session;
    char copy[300];
    bench_open(&b, lists[i / CHANGES], NULL);
    clv_graph *graph = load(&b);
    clv_plan *plan = machine_plan(&b.m, graph, i / CHANGES == 2 ? "v2=cpu" : NULL, (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
    snprintf(copy, sizeof copy, "%s/plan.json", b.f.path);
    changes[i % CHANGES](&b);
    assert_changed(clv_session_create(plan, NULL, &session, &error), &error);
    assert_null(session);
    assert_changed(clv_plan_write(plan, copy, &error), &error);
    snprintf(copy, sizeof copy, "%s/compiled", b.f.path);
    assert_changed(clv_compiled_write(plan, NULL, copy, &error), &error);
    clv_plan_destroy(plan);
    clv_graph_destroy(graph);
    bench_close(&b);
  }
}

/* ---- Changed while a session exists ---- */

typedef struct running {
  clv_graph *graph;
  clv_plan *plan;
  clv_session *session;
} running;

static running start(bench *b, const char *keep) {
  clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
  options.keeps = &keep;
  options.keep_count = keep != NULL;
  running r = {.graph = load(b)};
  r.plan = machine_plan(&b->m, r.graph, NULL, options);
  r.session = machine_session(r.plan);
  return r;
}

static void stop(running *r) {
  clv_session_destroy(r->session);
  clv_plan_destroy(r->plan);
  clv_graph_destroy(r->graph);
}

static float input_data[WIDTH];

static clv_status run(const running *r, float output[WIDTH], clv_error *error) {
  clv_tensor input = f32(2, DIMS(1, WIDTH), input_data), outputs[2] = {f32(2, DIMS(1, WIDTH), output), {0}};
  for (int i = 0; i < WIDTH; ++i) input_data[i] = (float)(i % 7) - 3;
  return clv_session_run(r->session, &input, 1, outputs, 1 + r->plan->kept_count, error);
}

/* Devices have copied the weights, so the session gives the old results. Another session cannot be created. */
static void devices_keep_their_weights(void **state) {
  (void)state;
  for (int i = 0; i < CHANGES * LISTS; ++i) {
    bench b;
    clv_error error = {0};
    clv_session *another;
    clv__mismatch mismatch;
    float before[WIDTH], after[WIDTH];
    bench_open(&b, lists[i / CHANGES], NULL);
    running r = start(&b, NULL);
    assert_ok(run(&r, before, &error), error);
    changes[i % CHANGES](&b);
    assert_ok(run(&r, after, &error), error);
    assert_memory_equal(before, after, sizeof before);
    assert_changed(clv_session_create(r.plan, NULL, &another, &error), &error);
    clv_tensor input = f32(2, DIMS(1, WIDTH), input_data);
    assert_changed(clv__session_verify(r.session, &input, 1, NULL, &mismatch, &error), &error);
    stop(&r);
    bench_close(&b);
  }
}

/* Runs that read the changed file fail. Such runs are those of sessions that stream weights, and of sessions that return a
 * weight as an output. */
static void runs_that_read_the_file(void **state) {
  (void)state;
  for (int i = 0; i < CHANGES * 2; ++i) {
    bench b;
    clv_error error = {0};
    float output[WIDTH];
    bool streams = i >= CHANGES;
    bench_open(&b, streams ? "npu" : "cpu", streams ? "npu:memory=4500K" : NULL);
    running r = start(&b, streams ? NULL : "w1");
    assert_int_equal(streamed_of(r.plan) > 0, streams);
    assert_ok(run(&r, output, &error), error);
    changes[i % CHANGES](&b);
    assert_changed(run(&r, output, &error), &error);
    assert_changed(run(&r, output, &error), &error);
    stop(&r);
    bench_close(&b);
  }
}

/* A second model is loaded after the file was overwritten. It must not get the weights of the first model, which the device
 * still has. */
static void another_model_gets_its_own_weights(void **state) {
  (void)state;
  for (int i = 0; i < LISTS; ++i) {
    bench b;
    clv_error error = {0};
    float first[WIDTH], second[WIDTH], alone[WIDTH];
    bench_open(&b, lists[i], NULL);
    running old = start(&b, NULL);
    overwrite_file(&b);
    running changed = start(&b, NULL);
    assert_ok(run(&old, first, &error), error);
    assert_ok(run(&changed, second, &error), error);
    stop(&old);
    stop(&changed);
    running last = start(&b, NULL);
    assert_ok(run(&last, alone, &error), error);
    assert_memory_equal(second, alone, sizeof alone);
    assert_memory_not_equal(first, second, sizeof first);
    stop(&last);
    bench_close(&b);
  }
}

/* ---- Not changed ---- */

/* The file is replaced by renaming another file, as installers do, or is deleted. The graph keeps the old file, so the results
 * do not change. */
static void replaced_and_deleted(void **state) {
  (void)state;
  for (int i = 0; i < 2; ++i) {
    bench b;
    clv_error error = {0};
    char other[300];
    float before[WIDTH], after[WIDTH];
    bench_open(&b, "npu", "npu:memory=4500K");
    running r = start(&b, NULL);
    assert_ok(run(&r, before, &error), error);
    snprintf(other, sizeof other, "%s/other.onnx", b.f.path);
    write_file(other, "short", 5);
    assert_int_equal(i == 0 ? rename(other, b.path) : unlink(b.path), 0);
    assert_ok(run(&r, after, &error), error);
    assert_memory_equal(before, after, sizeof before);
    stop(&r);
    bench_close(&b);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(changed_before_the_plan),
      cmocka_unit_test(changed_before_the_session),
      cmocka_unit_test(devices_keep_their_weights),
      cmocka_unit_test(runs_that_read_the_file),
      cmocka_unit_test(another_model_gets_its_own_weights),
      cmocka_unit_test(replaced_and_deleted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
