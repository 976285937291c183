/* Tests memory pools, and compares them with a model that tracks every block: which block serves a request, and the
 * counters. Also tests a device out of memory, a lost device, several threads, and failing allocations. */
#include "device/memory_pool.h"

#include <pthread.h>

#include "backends/vnpu/vnpu.h"
#include "machine.h"

#define SMALL_NPU(name) "{\"name\": \"" name "\", \"operators\": \"all\", \"memory\": \"1M\", \"memory_space\": \"pad\"}"

enum { MOST = 64 };

typedef struct model {
  clv__memory_block kept[MOST], out[MOST]; /* blocks of one memory space: those that the pool keeps for reuse, and those in use */
  uint32_t kept_count, out_count;
  clv__memory_pool_counters counters;
} model;

static uint32_t smallest_kept(const model *m, uint32_t device, uint64_t need) {
  uint32_t best = MOST;
  for (uint32_t i = 0; i < m->kept_count; ++i) {
    const clv__memory_block *b = &m->kept[i];
    if (b->device != device || b->size_bytes < need || b->size_bytes > 2 * need + 1) continue;
    if (best == MOST || b->size_bytes < m->kept[best].size_bytes) best = i;
  }
  return best;
}

static bool same_memory(const clv__memory_block *a, const clv__memory_block *b) {
  return a->buffer == b->buffer && a->host == b->host && a->device == b->device && a->space == b->space &&
         a->size_bytes == b->size_bytes;
}

/* Checks that the block is one that the model expects, and records the allocation. */
static void model_take(model *m, uint32_t device, uint64_t size_bytes, const clv__memory_block *block) {
  uint64_t need = (size_bytes == 0 ? 64 : size_bytes + 63) / 64 * 64;
  uint32_t best = smallest_kept(m, device, need);
  for (uint32_t i = 0; i < m->out_count; ++i) {
    assert_true(block->buffer == NULL || block->buffer != m->out[i].buffer);
    assert_true(block->host == NULL || block->host != m->out[i].host);
  }
  if (best == MOST) {
    assert_true(block->size_bytes == need);
  } else {
    assert_true(block->size_bytes == m->kept[best].size_bytes);
    uint32_t i = 0;
    while (i < m->kept_count && !same_memory(block, &m->kept[i])) ++i;
    assert_true(i < m->kept_count);
    assert_true(block->generation > m->kept[i].generation);
    m->counters.kept_bytes -= block->size_bytes;
    m->kept[i] = m->kept[--m->kept_count];
    ++m->counters.reused;
  }
  ++m->counters.taken;
  m->counters.in_use_bytes += block->size_bytes;
  if (m->counters.in_use_bytes > m->counters.peak_bytes) m->counters.peak_bytes = m->counters.in_use_bytes;
  m->out[m->out_count++] = *block;
}

static void model_give(model *m, uint32_t index) {
  m->kept[m->kept_count] = m->out[index];
  m->counters.in_use_bytes -= m->out[index].size_bytes;
  m->counters.kept_bytes += m->out[index].size_bytes;
  m->out[index] = m->out[--m->out_count];
  ++m->kept_count;
  while (m->counters.kept_bytes > m->counters.peak_bytes) { /* frees the blocks that were allocated longest ago */
    uint32_t oldest = 0;
    for (uint32_t i = 1; i < m->kept_count; ++i) {
      if (m->kept[i].generation < m->kept[oldest].generation) oldest = i;
    }
    m->counters.kept_bytes -= m->kept[oldest].size_bytes;
    m->kept[oldest] = m->kept[--m->kept_count];
  }
}

static void check_counters(machine *m, const model *models) {
  for (uint32_t s = 0; s < m->devices->space_count; ++s) {
    clv__memory_pool_counters is;
    clv__memory_pool_counters_get(m->devices, s, &is);
    assert_true(is.in_use_bytes == models[s].counters.in_use_bytes && is.peak_bytes == models[s].counters.peak_bytes);
    assert_true(is.kept_bytes == models[s].counters.kept_bytes);
    assert_true(is.taken == models[s].counters.taken && is.reused == models[s].counters.reused);
  }
}

static void against_the_model(void **state) {
  (void)state;
  static const char *const specs[] = {SMALL_NPU("a"), SMALL_NPU("b"), "all"};
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    uint64_t random = seed, last_generation = 0;
    machine m;
    machine_open(&m, "a,b,npu2,cpu", 3, specs);
    model models[4] = {{.kept_count = 0}};
    assert_int_equal(m.devices->space_count, 3);
    for (uint32_t i = 0; i < 400; ++i) {
      uint32_t device = (uint32_t)(test_random(&random) % 5);
      if (device == 4) device = CLV__NO_ID;
      model *here = &models[device == CLV__NO_ID ? CLV__SPACE_HOST : m.devices->items[device].space];
      if (here->out_count > 0 && (test_random(&random) % 2 == 0 || here->out_count == 8)) {
        uint32_t index = (uint32_t)(test_random(&random) % here->out_count);
        clv__memory_block block = here->out[index];
        uint8_t *host = block.host;
        for (uint64_t k = 0; host != NULL && k < block.size_bytes; ++k) assert_true(host[k] == (uint8_t)block.generation);
        clv__memory_pool_free(m.devices, &block);
        assert_true(block.generation == 0 && block.buffer == NULL && block.host == NULL);
        clv__memory_pool_free(m.devices, &block); /* does nothing: the block was cleared */
        model_give(here, index);
      } else if (test_random(&random) % 100 == 0) {
        clv__memory_pool_trim(m.devices);
        for (uint32_t s = 0; s < 3; ++s) models[s].kept_count = 0, models[s].counters.kept_bytes = 0;
      } else {
        clv_error error = {0};
        clv__memory_block block;
        uint64_t size_bytes = test_random(&random) % 20 == 0 ? 0 : test_random(&random) % (64u << test_random(&random) % 9);
        assert_ok(clv__memory_pool_allocate(m.devices, device, size_bytes, &block, &error), error);
        assert_true(block.generation > last_generation && block.size_bytes >= size_bytes && block.device == device);
        assert_true(block.space == (device == CLV__NO_ID ? CLV__SPACE_HOST : m.devices->items[device].space));
        assert_true((block.buffer == NULL) == (device == CLV__NO_ID));
        last_generation = block.generation;
        if (block.host != NULL) memset(block.host, (uint8_t)block.generation, block.size_bytes);
        assert_true((uintptr_t)block.host % CLV__ALIGNMENT == 0);
        assert_true((block.host != NULL) == (block.space == CLV__SPACE_HOST));
        model_take(here, device, size_bytes, &block);
      }
      check_counters(&m, models);
    }
    for (uint32_t s = 0; s < 3; ++s) {
      while (models[s].out_count > 0) {
        clv__memory_pool_free(m.devices, &models[s].out[0]);
        models[s].out[0] = models[s].out[--models[s].out_count];
      }
    }
    machine_close(&m); /* checks that nothing leaked */
  }
}

static void kept_memory_makes_room(void **state) {
  (void)state;
  static const char *const specs[] = {SMALL_NPU("a"), SMALL_NPU("b")};
  clv_error error = {0};
  clv__memory_block blocks[4];
  clv__memory_pool_counters counters;
  machine m;
  machine_open(&m, "a,b,cpu", 2, specs);
  for (uint32_t i = 0; i < 3; ++i) assert_ok(clv__memory_pool_allocate(m.devices, i % 2, 300 << 10, &blocks[i], &error), error);
  for (uint32_t i = 0; i < 3; ++i) clv__memory_pool_free(m.devices, &blocks[i]);
  clv__memory_pool_counters_get(m.devices, m.devices->items[0].space, &counters);
  assert_int_equal(counters.kept_bytes, 900 << 10);
  assert_int_equal(counters.limit_bytes, 1 << 20);
  assert_ok(clv__memory_pool_allocate(m.devices, 0, 900 << 10, &blocks[0], &error),
            error); /* fits only if the kept blocks are freed */
  clv__memory_pool_counters_get(m.devices, m.devices->items[0].space, &counters);
  assert_int_equal(counters.kept_bytes, 0);
  assert_int_equal(counters.in_use_bytes, 900 << 10);
  assert_int_equal(clv__memory_pool_allocate(m.devices, 1, 900 << 10, &blocks[1], &error), CLV_OUT_OF_MEMORY);
  assert_non_null(strstr(error.message,
                         "921600 bytes (921600 bytes of at most 1048576 are in use; freeing 0 unused bytes did not help): b: "));
  assert_true(blocks[1].generation == 0);
  assert_int_equal(clv__memory_pool_allocate(m.devices, CLV__NO_ID, UINT64_MAX, &blocks[1], &error), CLV_OUT_OF_MEMORY);
  assert_int_equal(clv__memory_pool_allocate(m.devices, CLV__NO_ID, UINT64_MAX / 4 + 1, &blocks[1], &error), CLV_OUT_OF_MEMORY);
  clv__memory_pool_counters_get(m.devices, m.devices->items[0].space, &counters);
  assert_int_equal(counters.in_use_bytes, 900 << 10);
  assert_int_equal(counters.taken, 4);
  clv__memory_pool_free(m.devices, &blocks[0]);
  assert_ok(clv__memory_pool_allocate(m.devices, 1, 900 << 10, &blocks[1], &error), error);
  clv__memory_pool_free(m.devices, &blocks[1]);
  machine_close(&m);
}

static void sizes_that_change_do_not_pile_up(void **state) {
  (void)state;
  clv_error error = {0};
  machine m;
  machine_open(&m, "cpu", 0, NULL);
  for (uint64_t size = 1000; size < 4000000; size += size / 2) { /* no kept block is ever large enough */
    clv__memory_block block;
    clv__memory_pool_counters counters;
    for (uint32_t k = 0; k < 2; ++k) {
      assert_ok(clv__memory_pool_allocate(m.devices, k == 0 ? 0 : CLV__NO_ID, size, &block, &error), error);
      clv__memory_pool_free(m.devices, &block);
    }
    clv__memory_pool_counters_get(m.devices, CLV__SPACE_HOST, &counters);
    assert_true(counters.kept_bytes <= counters.peak_bytes && counters.peak_bytes < size + 64);
  }
  machine_close(&m);
}

static interposer_fate refuse_large(void *user_data, const interposer_call *call) {
  (void)user_data;
  if (call->slot != INTERPOSER_buffer_alloc || call->size_bytes < 5000) return (interposer_fate){0};
  return (interposer_fate){.action = INTERPOSER_FAIL, .status = CLV_DEVICE_ERROR, .message = "broken"};
}

static void lost_devices(void **state) {
  (void)state;
  clv_error error = {0};
  char misuse[200];
  interposer *faulty = interposer_create(
      &(interposer_options){.name = "faulty", .query = clv__vnpu_backend_query, .spec = "all", .hook = refuse_large});
  machine m;
  machine_open_with(&m, faulty, "faulty,npu,cpu", 0, NULL);
  clv__memory_block own, kept, before, after, other, broken;
  assert_ok(clv__memory_pool_allocate(m.devices, 0, 1000, &own, &error), error);
  assert_ok(clv__memory_pool_allocate(m.devices, 0, 3000, &kept, &error), error);
  clv__memory_pool_free(m.devices, &kept);
  assert_int_equal(clv__memory_pool_allocate(m.devices, 0, 6000, &broken, &error),
                   CLV_DEVICE_ERROR); /* not an out-of-memory error, so there is no second attempt */
  assert_string_equal(error.message, "faulty: buffer_alloc: broken");
  assert_int_equal(interposer_count(faulty, INTERPOSER_buffer_alloc), 3);
  assert_ok(clv__memory_pool_allocate(m.devices, 1, 1000, &other, &error), error);
  assert_ok(clv__memory_pool_allocate(m.devices, CLV__NO_ID, 1000, &before, &error), error);
  float *reachable = before.host;
  assert_true(clv__device_lose(&m.devices->items[0]));
  uint64_t calls = interposer_calls(faulty);
  assert_int_equal(clv__memory_pool_allocate(m.devices, 0, 1000, &kept, &error), CLV_DEVICE_ERROR);
  assert_non_null(strstr(error.message, "faulty"));
  clv__memory_pool_free(m.devices, &own);
  clv__memory_pool_free(m.devices, &before);
  clv_buffer *buffer = other.buffer;
  clv__memory_pool_free(m.devices, &other);
  assert_ok(clv__memory_pool_allocate(m.devices, 1, 1000, &other, &error),
            error); /* reuses the block, because the lost device cannot access the block's memory space */
  assert_ptr_equal(other.buffer, buffer);
  clv__memory_pool_free(m.devices, &other);
  assert_ok(clv__memory_pool_allocate(m.devices, CLV__NO_ID, 1000, &after, &error), error);
  assert_ptr_not_equal(after.host, reachable);
  memset(reachable, 1, 1000); /* the lost device may still write to this block */
  void *usual = after.host;
  clv__memory_pool_free(m.devices, &after);
  assert_ok(clv__memory_pool_allocate(m.devices, CLV__NO_ID, 1000, &after, &error),
            error); /* allocated after the loss, so it can be reused */
  assert_ptr_equal(after.host, usual);
  clv__memory_pool_free(m.devices, &after);
  clv__memory_pool_trim(m.devices);
  memset(reachable, 2, 1000);
  assert_int_equal(interposer_calls(faulty), calls);
  machine_close(&m);
  assert_int_equal(interposer_count(faulty, INTERPOSER_buffer_free), 0);
  assert_int_equal(interposer_left(faulty), 2); /* not freed block by block: only close() frees the memory of a lost device */
  assert_false(interposer_misused(faulty, misuse, sizeof misuse));
  interposer_destroy(faulty);
}

enum { THREADS = 4, ROUNDS = 2000 };

typedef struct worker {
  machine *m;
  uint64_t random;
  uint64_t generations[ROUNDS];
  bool is_wrong;
} worker;

static void *work(void *user_data) {
  worker *w = user_data;
  clv__memory_block held[4] = {{0}};
  for (uint32_t i = 0; i < ROUNDS; ++i) {
    clv__memory_block *block = &held[i % 4];
    uint8_t *host = block->host;
    for (uint64_t k = 0; host != NULL && k < block->size_bytes; ++k) w->is_wrong |= host[k] != (uint8_t)block->generation;
    clv__memory_pool_free(w->m->devices, block);
    uint64_t kind = test_random(&w->random) % 4;
    uint32_t device = kind == 3 ? CLV__NO_ID : (uint32_t)kind;
    w->is_wrong |= clv__memory_pool_allocate(w->m->devices, device, test_random(&w->random) % 4096, block, NULL) != CLV_OK;
    w->generations[i] = block->generation;
    if (block->host != NULL) memset(block->host, (uint8_t)block->generation, block->size_bytes);
    if (test_random(&w->random) % 50 == 0) clv__memory_pool_trim(w->m->devices);
  }
  for (uint32_t k = 0; k < 4; ++k) clv__memory_pool_free(w->m->devices, &held[k]);
  return NULL;
}

static int compare_numbers(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static void several_threads(void **state) {
  (void)state;
  static const char *const specs[] = {SMALL_NPU("a"), SMALL_NPU("b")};
  static worker workers[THREADS];
  static uint64_t all[THREADS * ROUNDS];
  pthread_t threads[THREADS];
  machine m;
  machine_open(&m, "a,b,cpu", 2, specs);
  for (uint32_t t = 0; t < THREADS; ++t) { /* several threads try to create the pool at the same time */
    workers[t] = (worker){.m = &m, .random = t + 1};
    assert_int_equal(pthread_create(&threads[t], NULL, work, &workers[t]), 0);
  }
  for (uint32_t t = 0; t < THREADS; ++t) pthread_join(threads[t], NULL);
  for (uint32_t t = 0; t < THREADS; ++t) {
    assert_false(workers[t].is_wrong);
    memcpy(all + (size_t)t * ROUNDS, workers[t].generations, sizeof workers[t].generations);
  }
  qsort(all, THREADS * ROUNDS, sizeof *all, compare_numbers);
  for (size_t i = 1; i < THREADS * ROUNDS; ++i) assert_true(all[i] != all[i - 1]); /* no generation repeats */
  for (uint32_t s = 0; s < m.devices->space_count; ++s) {
    clv__memory_pool_counters counters;
    clv__memory_pool_counters_get(m.devices, s, &counters);
    assert_int_equal(counters.in_use_bytes, 0);
  }
  machine_close(&m);
}

static void every_allocation_fails_once(void **state) {
  (void)state;
  bool reached = true;
  for (size_t fail_at = 1; reached; ++fail_at) {
    machine m;
    machine_open(&m, "npu,cpu", 0, NULL);
    clv__memory_block blocks[24] = {{0}};
    m.counting.fail_at = m.counting.calls + fail_at;
    for (uint32_t i = 0; i < 24; ++i) {
      clv_error error = {0};
      clv_status status =
          clv__memory_pool_allocate(m.devices, i % 3 == 2 ? CLV__NO_ID : i % 3, 100 + 100 * i, &blocks[i], &error);
      assert_true(status == CLV_OK || status == CLV_OUT_OF_MEMORY);
      assert_true((status == CLV_OK) == (blocks[i].generation != 0));
      if (i % 4 == 3) clv__memory_pool_free(m.devices, &blocks[i - 2]);
    }
    reached = m.counting.calls >= m.counting.fail_at;
    for (uint32_t i = 0; i < 24; ++i) clv__memory_pool_free(m.devices, &blocks[i]);
    machine_close(&m);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(against_the_model),
      cmocka_unit_test(kept_memory_makes_room),
      cmocka_unit_test(sizes_that_change_do_not_pile_up),
      cmocka_unit_test(lost_devices),
      cmocka_unit_test(several_threads),
      cmocka_unit_test(every_allocation_fails_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
