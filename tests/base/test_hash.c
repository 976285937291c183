/* Content hashes of blocks, with any number of threads, and of texts. */
#include "support.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

static void random_bytes(uint8_t *data, size_t size_bytes, uint64_t seed) {
  for (size_t i = 0; i < size_bytes; ++i) data[i] = (uint8_t)test_random(&seed);
}

/* Computes the hash of a block in one thread: lane by lane, then over the hashes of the lanes, as hash.c describes it. */
static void expected_hash(const uint8_t *data, size_t size_bytes, clv__hash *hash) {
  size_t lanes = size_bytes / (256 << 10);
  lanes = lanes < 1 ? 1 : lanes > 16 ? 16 : lanes;
  clv__hasher all;
  clv__hasher_init(&all);
  clv__hasher_u64(&all, size_bytes);
  for (size_t lane = 0; lane < lanes; ++lane) {
    size_t from = lane * (size_bytes / lanes), to = lane + 1 == lanes ? size_bytes : from + size_bytes / lanes;
    clv__hasher one;
    clv__hash part;
    clv__hasher_init(&one);
    clv__hasher_update(&one, data + from, to - from);
    clv__hasher_finish(&one, &part);
    clv__hasher_update(&all, part.bytes, sizeof part.bytes);
  }
  clv__hasher_finish(&all, hash);
}

static void sizes(void **state) {
  (void)state;
  static const size_t some[] = {0,      1,      127,     128,     129,     262143,  262144, 524287,
                                524288, 524289, 1 << 20, 4194303, 4194304, 5000011, 9 << 20};
  uint8_t *data = malloc(9 << 20);
  random_bytes(data, 9 << 20, 1);
  for (size_t i = 0; i < sizeof some / sizeof *some; ++i) {
    clv__hash actual, expected;
    clv__hash_bytes(data, some[i], &actual);
    expected_hash(data, some[i], &expected);
    if (memcmp(actual.bytes, expected.bytes, sizeof actual.bytes) != 0) fail_msg("wrong hash of %zu bytes", some[i]);
  }
  clv__hash nothing, empty;
  clv__hash_bytes(NULL, 0, &nothing);
  clv__hash_bytes(data, 0, &empty);
  assert_memory_equal(nothing.bytes, empty.bytes, sizeof empty.bytes);
  free(data);
}

/* BLAKE2b-256 of "abc" and of the empty text. */
static void known_answers(void **state) {
  (void)state;
  static const char *const texts[] = {"abc", ""};
  static const char *const answers[] = {"bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319",
                                        "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8"};
  for (size_t i = 0; i < 2; ++i) {
    clv__hasher hasher;
    clv__hash hash;
    char text[2 * CLV__HASH_BYTES + 1];
    clv__hasher_init(&hasher);
    clv__hasher_update(&hasher, texts[i], strlen(texts[i]));
    clv__hasher_finish(&hasher, &hash);
    clv__hash_text(&hash, text);
    assert_string_equal(text, answers[i]);
  }
}

static void every_byte_counts(void **state) {
  (void)state;
  enum { BYTES = 3 << 20 };
  uint8_t *data = malloc(BYTES);
  clv__hash before, after;
  uint64_t seed = 2;
  random_bytes(data, BYTES, 3);
  clv__hash_bytes(data, BYTES, &before);
  for (int i = 0; i < 24; ++i) {
    size_t at = i == 0 ? 0 : i == 1 ? BYTES - 1 : test_random(&seed) % BYTES;
    data[at] ^= (uint8_t)(1u << test_random(&seed) % 8);
    clv__hash_bytes(data, BYTES, &after);
    assert_memory_not_equal(before.bytes, after.bytes, sizeof after.bytes);
    before = after;
  }
  free(data);
}

static void blocks(void **state) {
  (void)state;
  enum { COUNT = 40 };
  clv__hash_block *some = calloc(COUNT, sizeof *some);
  uint64_t seed = 4;
  for (int i = 0; i < COUNT; ++i) {
    some[i].size_bytes = test_random(&seed) % (i % 8 == 0 ? 2000000 : 3000);
    uint8_t *data = malloc(some[i].size_bytes + 1);
    random_bytes(data, some[i].size_bytes, seed);
    some[i].data = data;
  }
  clv__hash_blocks(some, COUNT);
  for (int i = 0; i < COUNT; ++i) {
    clv__hash alone;
    clv__hash_bytes(some[i].data, some[i].size_bytes, &alone);
    assert_memory_equal(alone.bytes, some[i].hash.bytes, sizeof alone.bytes);
    free((void *)some[i].data);
  }
  free(some);
  clv__hash_blocks(NULL, 0);
}

static void *hash_often(void *argument) {
  clv__hash hash;
  for (int i = 0; i < 4; ++i) clv__hash_bytes(argument, 3 << 20, &hash);
  clv__hash *kept = malloc(sizeof *kept);
  *kept = hash;
  return kept;
}

static void many_threads(void **state) {
  (void)state;
  uint8_t *data = malloc(3 << 20);
  random_bytes(data, 3 << 20, 5);
  pthread_t threads[4];
  clv__hash expected;
  expected_hash(data, 3 << 20, &expected);
  for (int i = 0; i < 4; ++i) assert_int_equal(pthread_create(&threads[i], NULL, hash_often, data), 0);
  for (int i = 0; i < 4; ++i) {
    void *result;
    pthread_join(threads[i], &result);
    assert_memory_equal(result, &expected, sizeof expected);
    free(result);
  }
  free(data);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(known_answers), cmocka_unit_test(sizes),
                                     cmocka_unit_test(every_byte_counts), cmocka_unit_test(blocks),
                                     cmocka_unit_test(many_threads)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
