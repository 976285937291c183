/* The cache of captures: compared with a simple model of its rules under random calls; cyclic use, changing use, failed keys,
 * eviction of an entry that is entered (in use), bounded memory, and two threads. */
#include "execute/capture/cache.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "execute/capture/sightings.h"
#include "support.h"

enum { KEYS = 24, OWNERS = 64 };

/* A key without nodes, for the device named by a number. */
typedef struct made_key {
  clv__capture_key key;
  uint8_t bytes[16];
} made_key;

static made_key *make_key(made_key *made, uint32_t number) {
  char digits[12];
  int length = snprintf(digits, sizeof digits, "%u", number);
  uint8_t *at = made->bytes;
  *at++ = (uint8_t)length;
  memcpy(at, digits, (size_t)length);
  at += length;
  memset(at, 0, 3); /* length of the fingerprint, number of partitions, number of nodes: all 0 */
  made->key = (clv__capture_key){.size_bytes = (size_t)length + 4, .bytes = made->bytes};
  clv__hasher hasher;
  clv__hasher_init(&hasher);
  clv__hasher_update(&hasher, made->bytes, made->key.size_bytes);
  clv__hasher_finish(&hasher, &made->key.hash);
  return made;
}

static made_key keys[1000];

static void make_keys(void) {
  for (uint32_t i = 0; i < 1000; ++i) make_key(&keys[i], i);
}

typedef struct content {
  uint32_t number;
  atomic_uint destroyed;
  atomic_bool is_entered;
} content;

static void destroy(void *given) {
  content *c = given;
  if (atomic_load(&c->is_entered)) fail_msg("capture %u is destroyed while it is entered", c->number);
  atomic_fetch_add(&c->destroyed, 1);
}

static clv__capture_cache *create(uint32_t entries, uint64_t bytes, bool on_first_sight) {
  clv_error error = {0};
  clv__capture_cache *cache;
  assert_ok(clv__capture_cache_create(clv__allocator_default(), entries, bytes, on_first_sight, &cache, &error), error);
  return cache;
}

static clv__capture_counters counters_of(clv__capture_cache *cache) {
  clv__capture_counters counters;
  clv__capture_cache_counters(cache, &counters);
  return counters;
}

/* ---- The model: the rules of the cache, with plain arrays and linear searches ---- */

typedef struct model_key {
  uint32_t count;
  bool has_failed;
  uint64_t bytes;
} model_key;

typedef struct model_entry {
  bool is_owned, is_resident, is_entered;
  uint32_t key;
  uint64_t bytes, hits, counted, last_used;
  uint32_t destroyed;
} model_entry;

typedef struct model {
  uint32_t entry_limit;
  uint64_t byte_limit, window, sum, clock;
  bool on_first_sight;
  model_key keys[KEYS];
  model_entry entries[OWNERS];
  clv__capture_counters counters;
} model;

static uint32_t model_graphs_of(const model *m, uint32_t key) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < OWNERS; ++i) count += m->entries[i].is_resident && m->entries[i].key == key;
  return count;
}

static void model_count(model *m, uint32_t key, uint64_t times) {
  uint64_t count = m->keys[key].count + times;
  m->keys[key].count = (uint32_t)(count > m->window ? m->window : count);
  m->sum += times;
}

static void model_count_hits(model *m, model_entry *e) {
  model_count(m, e->key, e->hits - e->counted);
  e->counted = e->hits;
}

static void model_age(model *m) {
  for (; m->sum >= m->window; m->sum -= m->window) {
    for (uint32_t k = 0; k < KEYS; ++k) {
      bool has_graph = model_graphs_of(m, k) > 0;
      m->keys[k].count = has_graph ? m->keys[k].count / 2 + 1 : (m->keys[k].count + 1) / 2;
    }
  }
}

/* Sets `going` to the entries to evict for a capture. Returns false if the cache must not admit the capture. */
static bool model_room(const model *m, uint32_t key, uint64_t bytes, bool going[OWNERS]) {
  uint64_t entries = m->counters.entries, held = m->counters.bytes;
  memset(going, 0, OWNERS * sizeof *going);
  if (m->entry_limit == 0 || bytes > m->byte_limit) return false;
  while (entries + 1 > m->entry_limit || held + bytes > m->byte_limit) {
    uint32_t oldest = OWNERS;
    for (uint32_t i = 0; i < OWNERS; ++i) {
      if (!m->entries[i].is_resident || going[i]) continue;
      if (oldest == OWNERS || m->entries[i].last_used < m->entries[oldest].last_used) oldest = i;
    }
    uint32_t resident = m->keys[m->entries[oldest].key].count;
    if (m->keys[key].count <= resident + resident / 4) return false;
    going[oldest] = true;
    --entries;
    held -= m->entries[oldest].bytes;
  }
  return true;
}

static clv__capture_verdict model_ask(model *m, uint32_t key) {
  bool going[OWNERS];
  ++m->counters.misses;
  for (uint32_t i = 0; i < OWNERS; ++i) {
    if (m->entries[i].is_resident) model_count_hits(m, &m->entries[i]);
  }
  model_age(m);
  model_count(m, key, 1);
  if (m->keys[key].has_failed) return CLV__CAPTURE_EAGER_FAILED;
  if (!m->on_first_sight && m->keys[key].count < 2) return CLV__CAPTURE_EAGER_SIGHT;
  return model_room(m, key, m->keys[key].bytes, going) ? CLV__CAPTURE_NOW : CLV__CAPTURE_EAGER_FULL;
}

static void model_take_out(model *m, model_entry *e) {
  model_count_hits(m, e);
  e->is_resident = false;
  --m->counters.entries;
  m->counters.bytes -= e->bytes;
}

static bool model_insert(model *m, uint32_t owner, uint32_t key, uint64_t bytes) {
  bool going[OWNERS];
  ++m->counters.captures;
  m->keys[key].bytes = bytes;
  if (!model_room(m, key, bytes, going)) return false;
  for (uint32_t i = 0; i < OWNERS; ++i) {
    if (!going[i]) continue;
    model_take_out(m, &m->entries[i]);
    ++m->counters.evictions;
    m->entries[i].destroyed += !m->entries[i].is_entered;
  }
  m->entries[owner] = (model_entry){
      .is_owned = true, .is_resident = true, .is_entered = true, .key = key, .bytes = bytes, .last_used = ++m->clock};
  ++m->counters.entries;
  m->counters.bytes += bytes;
  return true;
}

static bool model_enter(model *m, uint32_t owner) {
  model_entry *e = &m->entries[owner];
  if (!e->is_resident) return false;
  e->is_entered = true;
  ++e->hits;
  ++m->counters.hits;
  e->last_used = ++m->clock;
  return true;
}

static void model_leave(model *m, uint32_t owner) {
  m->entries[owner].is_entered = false;
  m->entries[owner].destroyed += !m->entries[owner].is_resident;
}

static void model_remove(model *m, uint32_t owner) {
  model_entry *e = &m->entries[owner];
  if (e->is_resident) {
    model_take_out(m, e);
    ++e->destroyed;
  }
  e->is_owned = false;
}

/* ---- Random calls ---- */

typedef struct trial {
  uint64_t seed;
  model m;
  clv__capture_cache *cache;
  clv__capture_entry *entries[OWNERS];
  content contents[OWNERS];
} trial;

static void check(trial *t, uint64_t seed, uint32_t step) {
  clv__capture_counters is = counters_of(t->cache), should = t->m.counters;
  if (memcmp(&is, &should, sizeof is) != 0) {
    fail_msg(
        "seed %llu, call %u: counters differ from the model's: %llu entries, %llu bytes, %llu hits, %llu evictions; model: %llu, "
        "%llu, %llu, %llu",
        (unsigned long long)seed, step, (unsigned long long)is.entries, (unsigned long long)is.bytes, (unsigned long long)is.hits,
        (unsigned long long)is.evictions, (unsigned long long)should.entries, (unsigned long long)should.bytes,
        (unsigned long long)should.hits, (unsigned long long)should.evictions);
  }
  for (uint32_t i = 0; i < OWNERS; ++i) {
    if (t->m.entries[i].is_owned && t->contents[i].destroyed != t->m.entries[i].destroyed) {
      fail_msg("seed %llu, call %u: capture %u was destroyed %u times, expected %u", (unsigned long long)seed, step, i,
               t->contents[i].destroyed, t->m.entries[i].destroyed);
    }
  }
  assert_true(is.entries <= t->m.entry_limit && is.bytes <= t->m.byte_limit);
}

static void capture(trial *t, uint32_t owner, uint32_t key, uint64_t bytes) {
  clv_error error = {0};
  t->contents[owner] = (content){.number = owner};
  assert_ok(clv__capture_cache_insert(t->cache, &keys[key].key, &t->contents[owner], bytes, destroy, &t->entries[owner], &error),
            error);
  bool is_kept = model_insert(&t->m, owner, key, bytes);
  assert_int_equal(t->entries[owner] != NULL, is_kept);
  if (!is_kept) assert_int_equal(t->contents[owner].destroyed, 0);
}

static void one_call(trial *t, uint32_t key_count, uint64_t most_bytes) {
  uint32_t owner = (uint32_t)(test_random(&t->seed) % OWNERS), key = (uint32_t)(test_random(&t->seed) % key_count);
  key = test_random(&t->seed) % 3 == 0 ? key / 4 : key; /* low keys are used more often */
  model_entry *e = &t->m.entries[owner];
  if (e->is_owned && e->is_entered) {
    clv__capture_entry_leave(t->entries[owner]);
    model_leave(&t->m, owner);
  } else if (e->is_owned && test_random(&t->seed) % 16 == 0) {
    clv__capture_entry_remove(t->cache, t->entries[owner]);
    model_remove(&t->m, owner);
    assert_int_equal(t->contents[owner].destroyed, 1);
  } else if (e->is_owned) {
    void *entered = clv__capture_entry_enter(t->cache, t->entries[owner]);
    bool should = model_enter(&t->m, owner);
    assert_ptr_equal(entered, should ? &t->contents[owner] : NULL);
    if (!should) { /* the entry was evicted, so its owner removes it; a later call may ask for a capture again */
      clv__capture_entry_remove(t->cache, t->entries[owner]);
      model_remove(&t->m, owner);
    }
  } else if (test_random(&t->seed) % 64 == 0) { /* insert without asking first: there may be no room */
    capture(t, owner, key, test_random(&t->seed) % most_bytes);
  } else {
    clv__capture_verdict verdict = clv__capture_cache_ask(t->cache, &keys[key].key, NULL, 0), should = model_ask(&t->m, key);
    if (verdict != should) fail_msg("key %u: the verdict is %d, expected %d", key, (int)verdict, (int)should);
    if (verdict != CLV__CAPTURE_NOW) return;
    if (test_random(&t->seed) % 40 == 0) {
      clv__capture_cache_fail(t->cache, &keys[key].key);
      t->m.keys[key].has_failed = true;
      ++t->m.counters.failures;
    } else {
      capture(t, owner, key, test_random(&t->seed) % most_bytes);
    }
  }
}

static void as_the_model(void **state) {
  (void)state;
  static const uint32_t limits[] = {0, 1, 2, 5, 12, 40};
  static const uint64_t bytes[] = {0, 50, 400, 1u << 20};
  uint64_t evictions = 0, refused = 0;
  for (uint64_t seed = 1; seed <= 96; ++seed) {
    static trial t;
    uint32_t limit = limits[seed % 6], key_count = seed % 3 == 0 ? 8 : KEYS;
    memset(&t, 0, sizeof t);
    t.seed = seed;
    t.m.entry_limit = limit;
    t.m.byte_limit = bytes[seed / 6 % 4];
    t.m.on_first_sight = seed % 2 == 0;
    t.m.window = limit * 16 < 64 ? 64 : limit * 16;
    t.cache = create(limit, t.m.byte_limit, t.m.on_first_sight);
    for (uint32_t step = 0; step < 2000; ++step) {
      one_call(&t, key_count, seed % 5 == 0 ? 1 : 101);
      check(&t, seed, step);
    }
    evictions += t.m.counters.evictions;
    for (uint32_t k = 0; k < KEYS; ++k) refused += t.m.keys[k].has_failed;
    bool is_owned[OWNERS], was_evicted[OWNERS];
    for (uint32_t i = 0; i < OWNERS; ++i) {
      is_owned[i] = t.m.entries[i].is_owned;
      was_evicted[i] = is_owned[i] && !t.m.entries[i].is_resident;
      if (is_owned[i] && t.m.entries[i].is_entered) clv__capture_entry_leave(t.entries[i]);
      if (is_owned[i] && was_evicted[i]) assert_int_equal(t.contents[i].destroyed, 1);
    }
    clv__capture_cache_destroy(t.cache);
    for (uint32_t i = 0; i < OWNERS; ++i) {
      if (is_owned[i]) assert_int_equal(t.contents[i].destroyed, 1);
    }
  }
  assert_true(evictions > 500 && refused > 10);
}

/* ---- Scenes ---- */

/* Takes the part of a session: looks up keys, and owns the captures for them. */
typedef struct user {
  clv__capture_cache *cache;
  clv__capture_entry *entries[1000];
  content contents[1000];
} user;

static user *new_user(uint32_t entries, bool on_first_sight) {
  user *u = calloc(1, sizeof *u);
  assert_non_null(u);
  u->cache = create(entries, 1u << 20, on_first_sight);
  return u;
}

static void delete_user(user *u) {
  for (uint32_t k = 0; k < 1000; ++k) clv__capture_entry_remove(u->cache, u->entries[k]);
  clv__capture_cache_destroy(u->cache);
  free(u);
}

/* Looks the key up as a run would. After a miss, inserts an entry for the key if the cache says that the run may be captured.
 * Returns true for a hit. */
static bool use(user *u, uint32_t key, clv__capture_verdict *verdict) {
  clv_error error = {0};
  if (u->entries[key] != NULL && clv__capture_entry_enter(u->cache, u->entries[key]) != NULL) {
    clv__capture_entry_leave(u->entries[key]);
    return true;
  }
  clv__capture_entry_remove(u->cache, u->entries[key]);
  u->entries[key] = NULL;
  clv__capture_verdict said = clv__capture_cache_ask(u->cache, &keys[key].key, NULL, 0);
  if (verdict != NULL) *verdict = said;
  if (said != CLV__CAPTURE_NOW) return false;
  u->contents[key] = (content){.number = key};
  assert_ok(clv__capture_cache_insert(u->cache, &keys[key].key, &u->contents[key], 1, destroy, &u->entries[key], &error), error);
  assert_non_null(u->entries[key]);
  clv__capture_entry_leave(u->entries[key]);
  return false;
}

static void first_and_second_sight(void **state) {
  (void)state;
  clv__capture_verdict verdict;
  user *on = new_user(12, true), *when_seen = new_user(12, false), *none = new_user(0, true);
  assert_false(use(on, 1, &verdict));
  assert_int_equal(verdict, CLV__CAPTURE_NOW);
  assert_true(use(on, 1, NULL));
  assert_false(use(when_seen, 1, &verdict));
  assert_int_equal(verdict, CLV__CAPTURE_EAGER_SIGHT);
  /* The cache halves its counts of how often a key was seen, but a count of one stays one. */
  for (uint32_t i = 0; i < 300; ++i) use(when_seen, 2, NULL);
  assert_false(use(when_seen, 1, &verdict));
  assert_int_equal(verdict, CLV__CAPTURE_NOW);
  assert_true(use(when_seen, 1, NULL));
  for (uint32_t i = 0; i < 5; ++i) {
    assert_false(use(none, 1, &verdict));
    assert_int_equal(verdict, CLV__CAPTURE_EAGER_FULL);
  }
  clv__capture_counters counters = counters_of(none->cache);
  assert_true(counters.misses == 5 && counters.hits == 0 && counters.captures == 0);
  delete_user(on);
  delete_user(when_seen);
  delete_user(none);
}

static void the_thirteenth(void **state) {
  (void)state;
  clv__capture_verdict verdict;
  user *u = new_user(12, true);
  for (uint32_t k = 0; k < 12; ++k) assert_false(use(u, k, NULL));
  assert_true(use(u, 0, NULL)); /* now key 1 is the least recently used */
  assert_false(use(u, 12, &verdict));
  assert_int_equal(verdict, CLV__CAPTURE_EAGER_FULL); /* key 12 would evict key 1, but was not seen more often */
  assert_false(use(u, 12, &verdict));
  assert_int_equal(verdict, CLV__CAPTURE_NOW);
  assert_true(use(u, 12, NULL));
  for (uint32_t k = 0; k <= 12; ++k) assert_int_equal(u->contents[k].destroyed, k == 1);
  clv__capture_counters counters = counters_of(u->cache);
  assert_true(counters.evictions == 1 && counters.entries == 12 && counters.captures == 13);
  delete_user(u);
}

/* Cycles over more shapes than entries have many hits and few captures, whatever was in the cache before. */
static void cycles_hit(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    uint64_t random = seed, hits = 0;
    user *u = new_user(12, seed % 2 == 0);
    for (uint32_t i = 0; i < seed * 10; ++i) use(u, (uint32_t)(test_random(&random) % 20), NULL);
    uint64_t captures = counters_of(u->cache).captures;
    for (uint32_t i = 0; i < 10000; ++i) hits += use(u, (uint32_t)((i + seed) % 20), NULL);
    captures = counters_of(u->cache).captures - captures;
    if (hits < 5600 || captures > 60) {
      fail_msg("seed %llu: %llu hits in 10000 runs, expected at least 5600; %llu captures, expected at most 60",
               (unsigned long long)seed, (unsigned long long)hits, (unsigned long long)captures);
    }
    delete_user(u);
  }
}

/* Twelve keys run 10,000 times each, and then twelve other keys. After 40 runs each, the other keys have all captures,
 * although they ran much less often in total. */
static void habits_change(void **state) {
  (void)state;
  user *u = new_user(12, false);
  for (uint32_t i = 0; i < 120000; ++i) use(u, i % 12, NULL);
  uint32_t hits = 0;
  for (uint32_t round = 0; round < 60; ++round) {
    for (uint32_t k = 12; k < 24; ++k) hits += use(u, k, NULL) && round >= 40;
  }
  assert_int_equal(hits, 20 * 12);
  assert_int_equal(counters_of(u->cache).evictions, 12);
  delete_user(u);
}

static void failed_once(void **state) {
  (void)state;
  clv__capture_cache *cache = create(12, 1000, true);
  assert_int_equal(clv__capture_cache_ask(cache, &keys[0].key, NULL, 0), CLV__CAPTURE_NOW);
  clv__capture_cache_fail(cache, &keys[0].key);
  for (uint32_t i = 0; i < 100000; ++i) { /* keys seen only once do not evict the record of the failure */
    made_key other;
    clv__capture_cache_ask(cache, &make_key(&other, 1000 + i)->key, NULL, 0);
  }
  assert_int_equal(clv__capture_cache_ask(cache, &keys[0].key, NULL, 0), CLV__CAPTURE_EAGER_FAILED);
  assert_int_equal(counters_of(cache).failures, 1);
  clv__capture_cache_destroy(cache);
}

/* A capture larger than the cache is captured once, not in every run. */
static void too_large(void **state) {
  (void)state;
  clv_error error = {0};
  clv__capture_entry *entry;
  content c = {0};
  clv__capture_cache *cache = create(12, 1000, true);
  assert_int_equal(clv__capture_cache_ask(cache, &keys[0].key, NULL, 0), CLV__CAPTURE_NOW);
  assert_ok(clv__capture_cache_insert(cache, &keys[0].key, &c, 1001, destroy, &entry, &error), error);
  assert_null(entry);
  assert_int_equal(c.destroyed, 0);
  assert_int_equal(clv__capture_cache_ask(cache, &keys[0].key, NULL, 0), CLV__CAPTURE_EAGER_FULL);
  clv__capture_cache_destroy(cache);
}

/* If an entry is evicted while a run has entered it (uses its content), the content is destroyed only after the run has left
 * the entry. */
static void evicted_while_entered(void **state) {
  (void)state;
  clv_error error = {0};
  clv__capture_entry *entries[2];
  content contents[2] = {{.number = 0}, {.number = 1}};
  clv__capture_cache *cache = create(1, 1000, true);
  clv__capture_cache_ask(cache, &keys[0].key, NULL, 0);
  assert_ok(clv__capture_cache_insert(cache, &keys[0].key, &contents[0], 1, destroy, &entries[0], &error), error);
  contents[0].is_entered = true; /* insertion also enters the entry */
  clv__capture_cache_ask(cache, &keys[1].key, NULL, 0);
  assert_int_equal(clv__capture_cache_ask(cache, &keys[1].key, NULL, 0), CLV__CAPTURE_NOW);
  assert_ok(clv__capture_cache_insert(cache, &keys[1].key, &contents[1], 1, destroy, &entries[1], &error), error);
  assert_non_null(entries[1]);
  assert_int_equal(contents[0].destroyed, 0);
  assert_int_equal(counters_of(cache).evictions, 1);
  contents[0].is_entered = false;
  clv__capture_entry_leave(entries[0]);
  assert_int_equal(contents[0].destroyed, 1);
  assert_null(clv__capture_entry_enter(cache, entries[0]));
  clv__capture_entry_remove(cache, entries[0]);
  clv__capture_entry_leave(entries[1]);
  clv__capture_cache_destroy(cache);
  assert_int_equal(contents[0].destroyed, 1);
  assert_int_equal(contents[1].destroyed, 1);
}

typedef struct slow_content {
  atomic_bool has_begun, is_over;
} slow_content;

static void destroy_slowly(void *given) {
  slow_content *c = given;
  atomic_store(&c->has_begun, true);
  usleep(20000);
  atomic_store(&c->is_over, true);
}

static void *evict_first(void *given) {
  clv_error error = {0};
  clv__capture_entry *entry;
  static content c;
  clv__capture_cache *cache = given;
  clv__capture_cache_ask(cache, &keys[1].key, NULL, 0);
  clv__capture_cache_ask(cache, &keys[1].key, NULL, 0);
  if (clv__capture_cache_insert(cache, &keys[1].key, &c, 1, destroy, &entry, &error) != CLV_OK || entry == NULL) abort();
  clv__capture_entry_leave(entry);
  return NULL;
}

/* The owner removes an entry while another thread destroys its content. The removal waits, because the content may still use the
 * owner's memory. */
static void removal_waits(void **state) {
  (void)state;
  clv_error error = {0};
  clv__capture_entry *entry;
  pthread_t thread;
  slow_content slow = {0};
  clv__capture_cache *cache = create(1, 1000, true);
  clv__capture_cache_ask(cache, &keys[0].key, NULL, 0);
  assert_ok(clv__capture_cache_insert(cache, &keys[0].key, &slow, 1, destroy_slowly, &entry, &error), error);
  clv__capture_entry_leave(entry);
  assert_int_equal(pthread_create(&thread, NULL, evict_first, cache), 0);
  while (!atomic_load(&slow.has_begun)) usleep(100);
  clv__capture_cache_fail(cache, &keys[2].key); /* other calls do not wait for the destruction */
  assert_false(atomic_load(&slow.is_over));
  clv__capture_entry_remove(cache, entry);
  assert_true(atomic_load(&slow.is_over));
  pthread_join(thread, NULL);
  clv__capture_cache_destroy(cache);
}

/* A lookup does not read the bytes of the key, so its time does not depend on the number of nodes. Here the bytes are at an
 * invalid address. */
static void lookups_read_no_key(void **state) {
  (void)state;
  clv__capture_cache *cache = create(12, 1000, true);
  clv__capture_key nowhere = {.hash = {{1, 2, 3}}, .size_bytes = (size_t)1 << 40, .bytes = (const uint8_t *)16};
  assert_int_equal(clv__capture_cache_ask(cache, &nowhere, NULL, 0), CLV__CAPTURE_NOW);
  clv__capture_cache_fail(cache, &nowhere);
  assert_int_equal(clv__capture_cache_ask(cache, &nowhere, NULL, 0), CLV__CAPTURE_EAGER_FAILED);
  clv__capture_cache_destroy(cache);
}

static void differences(void **state) {
  (void)state;
  char text[200];
  user *u = new_user(12, true);
  clv__capture_cache_ask(u->cache, &keys[5].key, text, sizeof text);
  assert_string_equal(text, "no earlier capture is kept");
  use(u, 5, NULL);
  use(u, 6, NULL);
  clv__capture_cache_ask(u->cache, &keys[7].key, text, sizeof text);
  assert_string_equal(text, "device '7', was '6'");
  use(u, 5, NULL);
  clv__capture_cache_ask(u->cache, &keys[7].key, text, sizeof text);
  assert_string_equal(text, "device '7', was '5'"); /* compared with the entry used last */
  clv__capture_cache_ask(u->cache, &keys[5].key, text, sizeof text);
  assert_string_equal(text, "the same shapes were captured for another request");
  delete_user(u);
}

static void other_counters(void **state) {
  (void)state;
  clv__capture_cache *cache = create(1, 1, true);
  clv__capture_cache_add(cache, 3, 1, 1000);
  clv__capture_cache_add(cache, 1, 0, 500);
  clv__capture_counters counters = counters_of(cache);
  assert_true(counters.patches == 4 && counters.recaptures == 1 && counters.saved_ns == 1500);
  clv__capture_cache_destroy(cache);
}

/* The number of keys is bounded. Keys with a capture are never evicted; of the others, failed keys are evicted last. */
static void memory_is_bounded(void **state) {
  (void)state;
  clv__sightings s;
  made_key key;
  clv__sightings_init(&s, clv__allocator_default(), 64);
  for (uint32_t i = 0; i < 20000; ++i) {
    uint32_t index = clv__sightings_index(&s, &make_key(&key, i)->key.hash);
    assert_true(index != CLV__NO_ID);
    clv__sightings_count(&s, index, 1);
    if (i % 100 == 0 && i < 1000) assert_true(clv__sightings_add_capture(&s, index, &key.key));
    if (i % 100 == 1 && i < 1000) s.items[index].has_failed = true;
    assert_true(s.used <= CLV__SIGHTINGS_KEPT + 10);
    assert_true(s.uncaptured <= CLV__SIGHTINGS_KEPT);
  }
  for (uint32_t i = 0; i < 1000; i += 100) {
    uint32_t index = clv__sightings_index(&s, &make_key(&key, i)->key.hash);
    assert_int_equal(s.items[index].capture_count, 1);
    assert_true(clv__capture_key_equal(&s.items[index].key, &key.key));
    assert_true(s.items[clv__sightings_index(&s, &make_key(&key, i + 1)->key.hash)].has_failed);
  }
  uint32_t recent = 0;
  for (uint32_t i = 20000 - 1000; i < 20000; ++i) {
    recent += s.items[clv__sightings_index(&s, &make_key(&key, i)->key.hash)].count > 0;
  }
  assert_int_equal(recent, 1000);
  uint32_t first = clv__sightings_index(&s, &make_key(&key, 0)->key.hash);
  made_key wrong = key; /* a key with the same hash but other bytes is rejected */
  wrong.bytes[1] ^= 1;
  wrong.key.bytes = wrong.bytes;
  assert_false(clv__sightings_add_capture(&s, first, &wrong.key));
  for (uint32_t i = 0; i < 1000; i += 100)
    clv__sightings_drop_capture(&s, clv__sightings_index(&s, &make_key(&key, i)->key.hash));
  assert_true(s.uncaptured <= CLV__SIGHTINGS_KEPT);
  clv__sightings_finish(&s);
}

static void memory_fails(void **state) {
  (void)state;
  for (size_t at = 1; at < 40; ++at) {
    test_allocator counting;
    clv_error error = {0};
    clv__capture_cache *cache;
    content contents[4] = {{0}};
    clv__capture_entry *entries[4] = {0};
    test_allocator_init(&counting);
    counting.fail_at = at;
    if (clv__capture_cache_create(&counting.allocator, 2, 1000, true, &cache, &error) == CLV_OK) {
      for (uint32_t k = 0; k < 4; ++k) {
        for (uint32_t i = 0; i < k; ++i) clv__capture_cache_ask(cache, &keys[k].key, NULL, 0);
        clv_status status = clv__capture_cache_insert(cache, &keys[k].key, &contents[k], 1, destroy, &entries[k], &error);
        assert_true(status == CLV_OK || (status == CLV_OUT_OF_MEMORY && entries[k] == NULL));
        if (entries[k] != NULL) clv__capture_entry_leave(entries[k]);
      }
      for (uint32_t k = 0; k < 4; ++k) {
        bool was_kept = entries[k] != NULL;
        if (k % 2 == 0) clv__capture_entry_remove(cache, entries[k]);
        if (k % 2 == 0) assert_int_equal(contents[k].destroyed, was_kept);
      }
      clv__capture_cache_destroy(cache);
    } else {
      assert_null(cache);
    }
    assert_int_equal(counting.live, 0);
  }
}

/* ---- Two threads ---- */

typedef struct worker {
  clv__capture_cache *cache;
  uint64_t seed, runs, hits, asked;
} worker;

static void *work(void *given) {
  enum { SHAPES = 20 };
  worker *w = given;
  clv_error error = {0};
  clv__capture_entry *entries[SHAPES] = {0};
  static _Thread_local content contents[SHAPES];
  for (uint32_t i = 0; i < w->runs; ++i) {
    uint32_t k = test_random(&w->seed) % 4 == 0 ? (uint32_t)(test_random(&w->seed) % SHAPES) : i % SHAPES;
    content *c = entries[k] != NULL ? clv__capture_entry_enter(w->cache, entries[k]) : NULL;
    if (c != NULL) {
      ++w->hits;
      if (c != &contents[k] || atomic_load(&c->destroyed) != 0) abort();
    } else {
      clv__capture_entry_remove(w->cache, entries[k]);
      if (entries[k] != NULL && atomic_load(&contents[k].destroyed) != 1) abort();
      entries[k] = NULL;
      char text[64];
      ++w->asked;
      if (clv__capture_cache_ask(w->cache, &keys[k].key, i % 2 == 0 ? text : NULL, sizeof text) != CLV__CAPTURE_NOW) continue;
      contents[k].number = k;
      atomic_store(&contents[k].destroyed, 0);
      if (clv__capture_cache_insert(w->cache, &keys[k].key, &contents[k], 1 + k, destroy, &entries[k], &error) != CLV_OK) abort();
      if (entries[k] == NULL) continue;
      c = &contents[k];
    }
    atomic_store(&c->is_entered, true); /* the other thread may evict it from here on */
    atomic_store(&c->is_entered, false);
    clv__capture_entry_leave(entries[k]);
    if (test_random(&w->seed) % 50 != 0) continue;
    clv__capture_entry_remove(w->cache, entries[k]);
    if (atomic_load(&contents[k].destroyed) != 1) abort();
    entries[k] = NULL;
  }
  for (uint32_t k = 0; k < SHAPES; ++k) clv__capture_entry_remove(w->cache, entries[k]);
  return NULL;
}

static void two_threads(void **state) {
  (void)state;
  static const uint32_t limits[] = {1, 4, 12};
  for (uint32_t round = 0; round < 6; ++round) {
    pthread_t threads[2];
    worker workers[2];
    clv__capture_cache *cache = create(limits[round % 3], round < 3 ? 60 : 1000, round % 2 == 0);
    for (uint32_t i = 0; i < 2; ++i) {
      workers[i] = (worker){.cache = cache, .seed = round * 2 + i, .runs = 10000};
      assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (uint32_t i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
    clv__capture_counters counters = counters_of(cache);
    assert_int_equal(counters.hits, workers[0].hits + workers[1].hits);
    assert_int_equal(counters.misses, workers[0].asked + workers[1].asked);
    assert_int_equal(counters.entries, 0);
    assert_int_equal(counters.bytes, 0);
    assert_true(counters.evictions > 0 && counters.hits > 0);
    clv__capture_cache_destroy(cache);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(as_the_model),      cmocka_unit_test(first_and_second_sight),
      cmocka_unit_test(the_thirteenth),    cmocka_unit_test(cycles_hit),
      cmocka_unit_test(habits_change),     cmocka_unit_test(failed_once),
      cmocka_unit_test(too_large),         cmocka_unit_test(evicted_while_entered),
      cmocka_unit_test(removal_waits),     cmocka_unit_test(lookups_read_no_key),
      cmocka_unit_test(differences),       cmocka_unit_test(other_counters),
      cmocka_unit_test(memory_is_bounded), cmocka_unit_test(memory_fails),
      cmocka_unit_test(two_threads),
  };
  make_keys();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
