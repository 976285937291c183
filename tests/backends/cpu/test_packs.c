/* Tests that a device stores equal packed weights only once. An allocator counts bytes while executables with equal and with
 * different weights are created and destroyed, also on several threads. */
#include <pthread.h>

#include "backends/cpu/constants/packs.h"
#include "cpu_host.h"

/* ---- An allocator that counts bytes. ---- */

enum { HEADER_BYTES = 64 };

static size_t live_bytes;

static void *counted(void *user_data, size_t size_bytes, size_t alignment) {
  const clv_allocator *base = clv__allocator_default();
  (void)user_data;
  if (alignment > HEADER_BYTES) return NULL;
  uint8_t *made = base->allocate(base->user_data, size_bytes + HEADER_BYTES, HEADER_BYTES);
  if (made == NULL) return NULL;
  memcpy(made, &size_bytes, sizeof size_bytes);
  __atomic_add_fetch(&live_bytes, size_bytes, __ATOMIC_RELAXED);
  return made + HEADER_BYTES;
}

static void released(void *user_data, void *pointer) {
  const clv_allocator *base = clv__allocator_default();
  size_t size_bytes;
  (void)user_data;
  if (pointer == NULL) return;
  memcpy(&size_bytes, (uint8_t *)pointer - HEADER_BYTES, sizeof size_bytes);
  __atomic_sub_fetch(&live_bytes, size_bytes, __ATOMIC_RELAXED);
  base->release(base->user_data, (uint8_t *)pointer - HEADER_BYTES);
}

static const clv_allocator counting = {NULL, counted, released};

/* ---- Graphs. ---- */

/* A convolution with 252 KiB of weights, a product with 400 KiB, and a table of 128 KiB that a kernel reads unpacked. With
 * `more`, there are additional nodes: a different program with the same weights. */
static clv_graph *make(uint64_t seed, bool more) {
  test_graph t;
  const int64_t image[4] = {2, 64, 4, 4}, kernel[4] = {112, 64, 3, 3}, square[2] = {256, 400}, table[2] = {256, 128};
  const int64_t pads[4] = {1, 1, 1, 1}, shape[2] = {14, 256};
  test_graph_begin(&t, &counting, seed);
  test_graph_input(&t, "x", CLV_F32, 4, image);
  test_graph_weight(&t, "w", 4, kernel);
  test_graph_weight(&t, "m", 2, square);
  test_graph_weight(&t, "t", 2, table);
  test_graph_ints(&t, "shape", 2, shape);
  if (more) test_graph_node(&t, "first", "Relu", "x", "x1");
  test_graph_node_ints(&t, "conv", "Conv", more ? "x1,w" : "x,w", "a", "pads", true, 4, pads);
  test_graph_node(&t, "flat", "Reshape", "a,shape", "b");
  test_graph_node(&t, "product", "MatMul", "b,m", "c");
  test_graph_node(&t, "sum", "ReduceSum", "c", "d0");
  test_graph_node(&t, "scale", "Mul", "t,d0", "d");
  if (more) test_graph_node(&t, "last", "Tanh", "c", "e");
  return test_graph_end(&t, more ? "c,d,e" : "c,d");
}

enum { WEIGHT_BYTES = (112 * 64 * 9 + 256 * 400 + 256 * 128) * 4 };

static void check_result(cpu_program *program, uint64_t seed) {
  clv_error error = {0};
  clv_graph *graph = program->graph;
  clv_tensor x = random_tensor(&counting, &seed, 4, graph->values[graph->inputs[0]].type.dims);
  clv_tensor made[3] = {{0}}, wanted[3] = {{0}};
  for (int i = 0; i < 3; ++i) made[i].rank = CLV_RANK_UNKNOWN;
  assert_ok(cpu_program_run(program, &x, made, &error), error);
  assert_ok(clv__graph_evaluate(graph, &x, NULL, wanted, NULL, NULL, &counting, &error), error);
  for (uint32_t i = 0; i < graph->output_count; ++i) {
    assert_tensor(&made[i], &wanted[i], "shared weights");
    clv__release(&counting, made[i].data);
    clv__release(&counting, wanted[i].data);
  }
  clv__release(&counting, x.data);
}

static uint64_t resident(cpu_program *program) {
  clv_executable_info info = {.struct_size = sizeof info};
  program->cpu->backend->executable_info(program->cpu->device, program->executable, &info);
  return info.resident_bytes;
}

static void test_shared(void **state) {
  (void)state;
  clv_error error = {0};
  cpu_host cpu;
  cpu_program programs[4];
  clv_graph *graph = make(1, false), *longer = make(1, true), *other = make(2, false);
  assert_ok(cpu_host_open(&cpu, &counting, NULL, NULL, &error), error);
  const size_t begin = live_bytes;
  assert_ok(cpu_program_open(&programs[0], &cpu, graph, NULL, &error), error);
  const size_t one = live_bytes - begin;
  assert_true(one > WEIGHT_BYTES);
  assert_ok(cpu_program_open(&programs[1], &cpu, longer, NULL, &error), error);
  const size_t two = live_bytes - begin;
  /* The second executable adds only its program and its serialised partition, but no packed weights. */
  assert_true(resident(&programs[0]) - resident(&programs[1]) > WEIGHT_BYTES * 9 / 10);
  assert_true(two - one < one - WEIGHT_BYTES * 9 / 10);
  assert_ok(cpu_program_open(&programs[2], &cpu, other, NULL, &error), error);
  const size_t three = live_bytes - begin;
  assert_true(three - two > one * 9 / 10); /* the third program has other weights, so it shares nothing */
  for (int i = 0; i < 3; ++i) check_result(&programs[i], 5);
  cpu_program_close(&programs[0]); /* packs remain while another executable uses them */
  check_result(&programs[1], 6);
  assert_ok(cpu_program_open(&programs[3], &cpu, graph, NULL, &error), error);
  cpu_program_close(&programs[1]);
  check_result(&programs[3], 7);
  check_result(&programs[2], 8);
  cpu_program_close(&programs[2]);
  cpu_program_close(&programs[3]);
  assert_true(live_bytes - begin < 1024); /* only the store's list remains */
  cpu_host_close(&cpu);
  clv__graph_destroy(graph);
  clv__graph_destroy(longer);
  clv__graph_destroy(other);
  assert_int_equal(live_bytes, 0);
}

/* Loads models one after the other. Their weights differ, but have the same names, sizes and often addresses, so that a store
 * which compares only these would return the packs of an earlier model. */
static void test_reloaded(void **state) {
  (void)state;
  clv_error error = {0};
  cpu_host cpu;
  cpu_program kept, program;
  clv_graph *first = make(9, false);
  assert_ok(cpu_host_open(&cpu, &counting, NULL, NULL, &error), error);
  assert_ok(cpu_program_open(&kept, &cpu, first, NULL, &error), error);
  for (uint64_t seed = 1; seed < 5; ++seed) {
    clv_graph *graph = make(seed, seed % 2 == 0);
    assert_ok(cpu_program_open(&program, &cpu, graph, NULL, &error), error);
    check_result(&program, seed);
    cpu_program_close(&program);
    clv__graph_destroy(graph);
  }
  check_result(&kept, 1);
  cpu_program_close(&kept);
  cpu_host_close(&cpu);
  clv__graph_destroy(first);
  assert_int_equal(live_bytes, 0);
}

/* ---- The store alone. ---- */

static void *bytes_of(const void *data, size_t size_bytes) {
  void *copy = clv__allocate(&counting, size_bytes);
  assert_non_null(copy);
  memcpy(copy, data, size_bytes);
  return copy;
}

static void test_store(void **state) {
  (void)state;
  clv_error error = {0};
  clv__cpu_packs *packs;
  clv__cpu_shared *a, *b, *c, *d;
  clv__arena arena;
  bool is_new;
  static float numbers[4096];
  const int64_t dims[2] = {64, 64}, turned[2] = {1, 64}, line[1] = {4096};
  for (int i = 0; i < 4096; ++i) numbers[i] = (float)i;
  clv__arena_init(&arena, &counting);
  const clv__dnn_layout *row = clv__dnn_layout_dense(&arena, CLV_F32, 2, dims),
                        *column = clv__dnn_layout_strided(&arena, CLV_F32, 2, dims, turned);
  assert_true(row != NULL && column != NULL && clv__dnn_layout_dense(&arena, CLV_F32, 1, line) != NULL);
  assert_ok(clv__cpu_packs_create(&counting, &packs, &error), error);
  assert_ok(clv__cpu_packs_keep(packs, row, bytes_of(numbers, sizeof numbers), sizeof numbers, &a, &is_new, &error), error);
  assert_true(is_new);
  assert_ok(clv__cpu_packs_keep(packs, row, bytes_of(numbers, sizeof numbers), sizeof numbers, &b, &is_new, &error), error);
  assert_true(a == b && !is_new);
  assert_ok(clv__cpu_packs_keep(packs, column, bytes_of(numbers, sizeof numbers), sizeof numbers, &c, &is_new, &error), error);
  assert_true(is_new);
  assert_ok(clv__cpu_packs_keep(packs, NULL, bytes_of(numbers, sizeof numbers), sizeof numbers, &d, &is_new, &error), error);
  assert_true(is_new);
  clv__cpu_packs_release(packs, d);
  /* Data that differs in one number, whether or not the store samples it for its hash, must become a separate pack. */
  for (int i = 0; i < 4096; ++i) {
    numbers[i] += 0.5f;
    assert_ok(clv__cpu_packs_keep(packs, row, bytes_of(numbers, sizeof numbers), sizeof numbers, &d, &is_new, &error), error);
    assert_true(is_new && d != a && memcmp(d->data, numbers, sizeof numbers) == 0);
    clv__cpu_packs_release(packs, d);
    numbers[i] -= 0.5f;
  }
  clv__cpu_packs_release(packs, a);
  assert_memory_equal(b->data, numbers, sizeof numbers);
  clv__cpu_packs_release(packs, b);
  clv__cpu_packs_release(packs, c);
  clv__cpu_packs_release(packs, NULL);
  clv__cpu_packs_destroy(packs);
  clv__arena_finish(&arena);
  assert_int_equal(live_bytes, 0);
}

static void *keep_and_release(void *cookie) {
  clv__cpu_packs *packs = cookie;
  float numbers[256];
  for (int round = 0; round < 300; ++round) {
    clv__cpu_shared *shared[4];
    for (int i = 0; i < 4; ++i) {
      for (int k = 0; k < 256; ++k) numbers[k] = (float)(k * (i + 1));
      void *data = clv__allocate(&counting, sizeof numbers);
      if (data == NULL) return "out of memory";
      memcpy(data, numbers, sizeof numbers);
      if (clv__cpu_packs_keep(packs, NULL, data, sizeof numbers, &shared[i], NULL, NULL) != CLV_OK)
        return "storing a pack failed";
      if (memcmp(shared[i]->data, numbers, sizeof numbers) != 0) return "a pack has wrong bytes";
    }
    for (int i = 0; i < 4; ++i) clv__cpu_packs_release(packs, shared[i]);
  }
  return NULL;
}

static void test_store_threads(void **state) {
  (void)state;
  clv_error error = {0};
  clv__cpu_packs *packs;
  pthread_t threads[3];
  assert_ok(clv__cpu_packs_create(&counting, &packs, &error), error);
  for (int i = 0; i < 3; ++i) assert_int_equal(pthread_create(&threads[i], NULL, keep_and_release, packs), 0);
  for (int i = 0; i < 3; ++i) {
    void *wrong;
    assert_int_equal(pthread_join(threads[i], &wrong), 0);
    if (wrong != NULL) fail_msg("thread %d: %s", i, (const char *)wrong);
  }
  clv__cpu_packs_destroy(packs);
  assert_int_equal(live_bytes, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_shared),
      cmocka_unit_test(test_reloaded),
      cmocka_unit_test(test_store),
      cmocka_unit_test(test_store_threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
