/* See hash.h. libb2's own parallel hash (BLAKE2bp) is not used: it runs on libgomp, whose barriers ThreadSanitizer reports as
 * races, and it always uses four threads. Our own threads are clean, and their number follows the number of cores. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "base/hash.h"

#include <blake2.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>

_Static_assert(sizeof(blake2b_state) <= sizeof(((clv__hasher *)0)->state), "clv__hasher must hold libb2's state");

static blake2b_state *state_of(clv__hasher *hasher) {
  /* libb2's state may need stricter alignment than uint64_t; the array has spare room for that. */
  uintptr_t address = (uintptr_t)hasher->state;
  return (blake2b_state *)((address + _Alignof(blake2b_state) - 1) / _Alignof(blake2b_state) * _Alignof(blake2b_state));
}
_Static_assert(sizeof(blake2b_state) + _Alignof(blake2b_state) <= sizeof(((clv__hasher *)0)->state), "room to align");

void clv__hasher_init(clv__hasher *hasher) {
  blake2b_init(state_of(hasher), CLV__HASH_BYTES);
}

void clv__hasher_update(clv__hasher *hasher, const void *data, size_t size_bytes) {
  if (size_bytes > 0) blake2b_update(state_of(hasher), data, size_bytes);
}

void clv__hasher_u64(clv__hasher *hasher, uint64_t number) {
  clv__hasher_update(hasher, &number, sizeof number);
}

void clv__hasher_string(clv__hasher *hasher, const char *text) {
  size_t length = strlen(text);
  clv__hasher_u64(hasher, length);
  clv__hasher_update(hasher, text, length);
}

void clv__hasher_finish(clv__hasher *hasher, clv__hash *hash) {
  blake2b_final(state_of(hasher), hash->bytes, CLV__HASH_BYTES);
}

/* ---- Blocks: each lane (piece) of a block is hashed separately, then the lanes' hashes are hashed together. ---- */

enum {
  LANE_BYTES = 256 << 10, /* the shortest lane of a block that has several lanes */
  THREAD_BYTES = 1 << 20, /* the least work that makes one more thread worthwhile */
  MOST_THREADS = 8        /* more threads do not help: memory is the limit */
};

static size_t lanes_of(size_t size_bytes) {
  size_t lanes = size_bytes / LANE_BYTES;
  return lanes < 1 ? 1 : lanes > CLV__HASH_LANES ? CLV__HASH_LANES : lanes;
}

static void hash_lane(clv__hash_block *block, size_t lane) {
  size_t lanes = lanes_of(block->size_bytes), length = block->size_bytes / lanes;
  size_t from = lane * length, to = lane + 1 == lanes ? block->size_bytes : from + length;
  clv__hasher hasher;
  clv__hasher_init(&hasher);
  const uint8_t *bytes = block->data; /* may be NULL if the block is empty */
  clv__hasher_update(&hasher, from == 0 ? bytes : bytes + from, to - from);
  clv__hasher_finish(&hasher, &block->lanes[lane]);
}

static void join_lanes(clv__hash_block *block) {
  clv__hasher hasher;
  clv__hasher_init(&hasher);
  clv__hasher_u64(&hasher, block->size_bytes);
  clv__hasher_update(&hasher, block->lanes, lanes_of(block->size_bytes) * sizeof *block->lanes);
  clv__hasher_finish(&hasher, &block->hash);
}

/* The lanes still to hash, shared by the threads: each thread takes the next lane until none is left. */
typedef struct work {
  clv__hash_block *blocks;
  size_t count;
  pthread_mutex_t lock;
  size_t block, lane; /* the next lane to take: lane `lane` of block `block` */
} work;

static bool next_lane(work *w, clv__hash_block **block, size_t *lane) {
  pthread_mutex_lock(&w->lock);
  bool any = w->block < w->count;
  if (any) {
    *block = &w->blocks[w->block];
    *lane = w->lane++;
    if (w->lane == lanes_of((*block)->size_bytes)) {
      ++w->block;
      w->lane = 0;
    }
  }
  pthread_mutex_unlock(&w->lock);
  return any;
}

static void *hash_lanes(void *argument) {
  clv__hash_block *block;
  size_t lane;
  while (next_lane(argument, &block, &lane)) hash_lane(block, lane);
  return NULL;
}

static size_t count_threads(const clv__hash_block *blocks, size_t count) {
  size_t total = 0;
  for (size_t i = 0; i < count && total / THREAD_BYTES < MOST_THREADS; ++i) total += blocks[i].size_bytes;
  size_t wanted = total / THREAD_BYTES + 1;
  cpu_set_t cores;
  size_t allowed = sched_getaffinity(0, sizeof cores, &cores) == 0 ? (size_t)CPU_COUNT(&cores) : 1;
  if (wanted > allowed) wanted = allowed;
  return wanted > MOST_THREADS ? MOST_THREADS : wanted;
}

void clv__hash_blocks(clv__hash_block *blocks, size_t count) {
  work w = {.blocks = blocks, .count = count, .lock = PTHREAD_MUTEX_INITIALIZER};
  pthread_t threads[MOST_THREADS];
  size_t wanted = count_threads(blocks, count), started = 0;
  if (wanted > 1) { /* these threads must not handle the program's signals */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (started + 1 < wanted && pthread_create(&threads[started], NULL, hash_lanes, &w) == 0) ++started;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
  }
  hash_lanes(&w);
  while (started > 0) pthread_join(threads[--started], NULL);
  pthread_mutex_destroy(&w.lock);
  for (size_t i = 0; i < count; ++i) join_lanes(&blocks[i]);
}

void clv__hash_bytes(const void *data, size_t size_bytes, clv__hash *hash) {
  clv__hash_block block = {.data = data, .size_bytes = size_bytes};
  clv__hash_blocks(&block, 1);
  *hash = block.hash;
}

void clv__hash_text(const clv__hash *hash, char text[2 * CLV__HASH_BYTES + 1]) {
  static const char digits[] = "0123456789abcdef";
  for (size_t i = 0; i < CLV__HASH_BYTES; ++i) {
    text[2 * i] = digits[hash->bytes[i] >> 4];
    text[2 * i + 1] = digits[hash->bytes[i] & 15];
  }
  text[2 * CLV__HASH_BYTES] = '\0';
}
