/* See sightings.h. */
#include "execute/capture/sightings.h"

void clv__sightings_init(clv__sightings *sightings, const clv_allocator *allocator, uint64_t window) {
  *sightings = (clv__sightings){.allocator = allocator, .free = CLV__NO_ID, .window = window};
}

void clv__sightings_finish(clv__sightings *sightings) {
  for (uint32_t i = 0; i < sightings->used; ++i) clv__release(sightings->allocator, (void *)sightings->items[i].key.bytes);
  clv__release(sightings->allocator, sightings->items);
  clv__release(sightings->allocator, sightings->buckets);
}

static size_t bucket_of(const clv__sightings *sightings, const clv__hash *hash) {
  size_t number; /* any bytes of a hash serve as a number */
  memcpy(&number, hash->bytes, sizeof number);
  return number & (sightings->bucket_count - 1);
}

static bool is_free(const clv__sighting *item) {
  return item->last_seen == 0;
}

/* Rehashes if there are more items than buckets. Returns false if memory runs out. */
static bool spread(clv__sightings *s) {
  size_t count = s->bucket_count == 0 ? 64 : s->bucket_count;
  while (count <= s->used) count *= 2;
  if (count == s->bucket_count) return true;
  uint32_t *buckets = clv__allocate(s->allocator, count * sizeof *buckets);
  if (buckets == NULL) return false;
  clv__release(s->allocator, s->buckets);
  memset(buckets, 0xff, count * sizeof *buckets);
  s->buckets = buckets;
  s->bucket_count = count;
  for (uint32_t i = 0; i < s->used; ++i) {
    if (is_free(&s->items[i])) continue;
    size_t bucket = bucket_of(s, &s->items[i].hash);
    s->items[i].next = buckets[bucket];
    buckets[bucket] = i;
  }
  return true;
}

static void forget(clv__sightings *s, uint32_t index) {
  clv__sighting *item = &s->items[index];
  uint32_t *link = &s->buckets[bucket_of(s, &item->hash)];
  while (*link != index) link = &s->items[*link].next;
  *link = item->next;
  item->last_seen = 0;
  item->next = s->free;
  s->free = index;
  --s->uncaptured;
}

/* Returns the key to evict among those without a capture, of which there is at least one. */
static uint32_t least_wanted(const clv__sightings *s) {
  uint32_t worst = CLV__NO_ID;
  for (uint32_t i = 0; i < s->used; ++i) {
    const clv__sighting *item = &s->items[i], *other = worst == CLV__NO_ID ? NULL : &s->items[worst];
    if (is_free(item) || item->capture_count > 0) continue;
    if (other == NULL || item->has_failed < other->has_failed ||
        (item->has_failed == other->has_failed && item->last_seen < other->last_seen)) {
      worst = i;
    }
  }
  return worst;
}

uint32_t clv__sightings_index(clv__sightings *s, const clv__hash *hash) {
  uint32_t index = s->bucket_count > 0 ? s->buckets[bucket_of(s, hash)] : CLV__NO_ID;
  while (index != CLV__NO_ID && memcmp(s->items[index].hash.bytes, hash->bytes, sizeof hash->bytes) != 0) {
    index = s->items[index].next;
  }
  if (index != CLV__NO_ID) {
    s->items[index].last_seen = ++s->clock;
    return index;
  }
  if (s->uncaptured >= CLV__SIGHTINGS_KEPT) forget(s, least_wanted(s));
  if (s->free == CLV__NO_ID &&
      (s->used == UINT32_MAX - 1 || !spread(s) ||
       !clv__array_reserve(s->allocator, (void **)&s->items, &s->capacity, (size_t)s->used + 1, sizeof *s->items, s->used))) {
    return CLV__NO_ID;
  }
  index = s->free != CLV__NO_ID ? s->free : s->used++;
  if (index == s->free) s->free = s->items[index].next;
  size_t bucket = bucket_of(s, hash);
  s->items[index] = (clv__sighting){.hash = *hash, .next = s->buckets[bucket], .last_seen = ++s->clock};
  s->buckets[bucket] = index;
  ++s->uncaptured;
  return index;
}

void clv__sightings_count(clv__sightings *s, uint32_t index, uint64_t times) {
  clv__sighting *item = &s->items[index];
  uint64_t count = item->count + (times < s->window ? times : s->window);
  item->count = (uint32_t)(count < s->window ? count : s->window);
  s->sum = times < UINT64_MAX - s->sum ? s->sum + times : UINT64_MAX;
}

void clv__sightings_age(clv__sightings *s) {
  uint64_t halvings = s->sum / s->window;
  s->sum %= s->window;
  for (uint64_t i = 0; i < halvings && i < 32; ++i) { /* 32 halvings suffice for any count */
    for (uint32_t k = 0; k < s->used; ++k) {
      clv__sighting *other = &s->items[k];
      other->count = other->capture_count > 0 ? other->count / 2 + 1 : (other->count + 1) / 2;
    }
  }
}

bool clv__sightings_add_capture(clv__sightings *s, uint32_t index, const clv__capture_key *key) {
  clv__sighting *item = &s->items[index];
  if (item->capture_count > 0) {
    if (!clv__capture_key_equal(&item->key, key)) return false;
    ++item->capture_count;
    return true;
  }
  uint8_t *bytes = clv__allocate(s->allocator, key->size_bytes);
  if (bytes == NULL) return false;
  memcpy(bytes, key->bytes, key->size_bytes);
  item->key = (clv__capture_key){.hash = key->hash, .size_bytes = key->size_bytes, .bytes = bytes};
  item->capture_count = 1;
  --s->uncaptured;
  return true;
}

void clv__sightings_drop_capture(clv__sightings *s, uint32_t index) {
  clv__sighting *item = &s->items[index];
  if (--item->capture_count > 0) return;
  clv__release(s->allocator, (void *)item->key.bytes);
  item->key = (clv__capture_key){0};
  ++s->uncaptured;
  if (s->uncaptured > CLV__SIGHTINGS_KEPT) forget(s, least_wanted(s));
}
