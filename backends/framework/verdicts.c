/* The table of verdicts, and its file: see verdicts.h. */
#include "verdicts.h"

#include <stdio.h>
#include <string.h>

#include "base/files/sealed.h"
#include "base/memory.h"

enum {
  MOST_ENTRIES = 8192, /* maximum number of entries of the table; each has a few hundred bytes at most */
  ENOUGH_NEW = 64      /* the table is stored at once if at least this many entries, and a quarter of all, are new */
};

static const clv__sealed_kind kind = {.what = "verdicts", .magic = "CLVTRIED", .version = 1};

void clv__verdicts_init(clv__verdicts *verdicts, const clv_host *host, const char *backend, const char *key) {
  *verdicts = (clv__verdicts){.host = host, .backend = backend, .key = key};
}

/* ---- The table ---- */

static uint64_t number_of(const clv__hash *signature) {
  uint64_t number;
  memcpy(&number, signature->bytes, sizeof number);
  return number;
}

static uint32_t *slot_of(const clv__verdicts *verdicts, const clv__hash *signature) {
  size_t at = number_of(signature) & (verdicts->slot_count - 1);
  while (verdicts->slots[at] != 0) {
    if (memcmp(&verdicts->entries[verdicts->slots[at] - 1].signature, signature, sizeof *signature) == 0) break;
    at = (at + 1) & (verdicts->slot_count - 1);
  }
  return &verdicts->slots[at];
}

static const clv__verdict_entry *find(const clv__verdicts *verdicts, const clv__hash *signature) {
  if (verdicts->slot_count == 0) return NULL;
  uint32_t found = *slot_of(verdicts, signature);
  return found == 0 ? NULL : &verdicts->entries[found - 1];
}

static bool grow_slots(clv__verdicts *verdicts) {
  size_t count = verdicts->slot_count == 0 ? 256 : 2 * verdicts->slot_count;
  uint32_t *slots = clv__allocate_zero(verdicts->host->allocator, count * sizeof *slots);
  if (slots == NULL) return false;
  clv__release(verdicts->host->allocator, verdicts->slots);
  verdicts->slots = slots;
  verdicts->slot_count = count;
  for (size_t i = 0; i < verdicts->count; ++i) *slot_of(verdicts, &verdicts->entries[i].signature) = (uint32_t)i + 1;
  return true;
}

/* Adds a verdict. `reason` is NULL if the node is supported. Returns false if the signature already has a verdict, the table is
 * full, or memory runs out. */
static bool insert(clv__verdicts *verdicts, const clv__hash *signature, const char *reason) {
  const clv_allocator *allocator = verdicts->host->allocator;
  if (verdicts->count == MOST_ENTRIES || find(verdicts, signature) != NULL) return false;
  if (2 * (verdicts->count + 1) > verdicts->slot_count && !grow_slots(verdicts)) return false;
  if (!clv__array_reserve(allocator, (void **)&verdicts->entries, &verdicts->capacity, verdicts->count + 1,
                          sizeof *verdicts->entries, verdicts->count)) {
    return false;
  }
  clv__verdict_entry *entry = &verdicts->entries[verdicts->count];
  *entry = (clv__verdict_entry){.signature = *signature};
  if (reason != NULL) {
    size_t size_bytes = strlen(reason) + 1;
    if ((entry->reason = clv__allocate(allocator, size_bytes)) == NULL) return false;
    memcpy(entry->reason, reason, size_bytes);
  }
  *slot_of(verdicts, signature) = (uint32_t)++verdicts->count;
  return true;
}

/* ---- The file: the key, u32 number of entries; per entry: signature, u8 (1: supported), and if it is 0 the reason ---- */

static bool read_entry(clv__sealed_reader *reader, clv__arena *arena, clv__hash *signature, const char **reason) {
  const uint8_t *bytes = clv__sealed_take_bytes(reader, sizeof signature->bytes);
  if (bytes == NULL) return false;
  memcpy(signature->bytes, bytes, sizeof signature->bytes);
  *reason = NULL;
  uint64_t yes = clv__sealed_take(reader, 1);
  if (yes > 1 || reader->failed) return false;
  if (yes == 1) return true;
  *reason = clv__sealed_take_text(reader, arena);
  return *reason != NULL && strlen(*reason) < sizeof((clv_verdict *)0)->reason;
}

static bool read_all(clv__verdicts *verdicts, const void *data, size_t size_bytes) {
  clv__sealed_reader reader;
  clv_error ignored = {0};
  if (clv__sealed_open(&kind, data, size_bytes, &reader, &ignored) != CLV_OK) return false;
  if (clv__sealed_check_fingerprint(&reader, verdicts->key) != CLV_OK) return false;
  clv__arena arena;
  clv__arena_init(&arena, verdicts->host->allocator);
  uint64_t count = clv__sealed_take(&reader, 4);
  bool good = count <= MOST_ENTRIES;
  for (uint64_t i = 0; i < count && good; ++i) {
    clv__hash signature;
    const char *reason;
    good = read_entry(&reader, &arena, &signature, &reason);
    if (good) insert(verdicts, &signature, reason);
  }
  clv__arena_finish(&arena);
  return good;
}

static bool has_service(const clv_host *host, size_t end) {
  return host->struct_size >= end;
}
#define HAS(host, service) (has_service(host, offsetof(clv_host, service) + sizeof((host)->service)) && (host)->service != NULL)

static void recall(clv__verdicts *verdicts) {
  const clv_host *host = verdicts->host;
  void *data = NULL;
  size_t size_bytes;
  clv_error ignored = {0};
  verdicts->is_recalled = true;
  if (!HAS(host, recall)) return;
  if (host->recall(host->self, verdicts->backend, verdicts->key, &data, &size_bytes, &ignored) != CLV_OK) return;
  if (!read_all(verdicts, data, size_bytes) && host->log != NULL) {
    char text[200];
    snprintf(text, sizeof text, "%s: the stored results of operator checks are not valid: checking again", verdicts->backend);
    host->log(host->self, 2, text);
  }
  clv__release(host->allocator, data);
}

static clv_status append(void *cookie, const void *data, size_t size_bytes) {
  clv__text_append_bytes(cookie, data, size_bytes);
  return CLV_OK;
}

static void store_entries(clv__verdicts *verdicts) {
  const clv_host *host = verdicts->host;
  if (verdicts->new_count == 0 || !HAS(host, remember)) return;
  recall(verdicts); /* another process may have stored entries in the meantime */
  clv__text payload, file;
  clv_error ignored = {0};
  clv__text_init(&payload, host->allocator);
  clv__text_init(&file, host->allocator);
  clv__sealed_put_text(&payload, verdicts->key);
  clv__sealed_put(&payload, verdicts->count, 4);
  for (size_t i = 0; i < verdicts->count; ++i) {
    const clv__verdict_entry *entry = &verdicts->entries[i];
    clv__text_append_bytes(&payload, entry->signature.bytes, sizeof entry->signature.bytes);
    clv__sealed_put(&payload, entry->reason == NULL, 1);
    if (entry->reason != NULL) clv__sealed_put_text(&payload, entry->reason);
  }
  clv_status status = clv__sealed_write(&kind, &payload, append, &file, &ignored);
  if (status == CLV_OK && !file.failed) {
    status = host->remember(host->self, verdicts->backend, verdicts->key, file.data, file.size_bytes, &ignored);
  }
  verdicts->new_count = 0; /* if storing failed, a later process tries these nodes again */
  clv__text_finish(&file);
  clv__text_finish(&payload);
}

/* ---- Finding and adding ---- */

bool clv__verdicts_find(clv__verdicts *verdicts, const clv__hash *signature, clv_verdict *verdict) {
  if (!verdicts->is_recalled) recall(verdicts);
  const clv__verdict_entry *entry = find(verdicts, signature);
  if (entry == NULL) return false;
  *verdict = (clv_verdict){.supported = entry->reason == NULL};
  if (entry->reason != NULL) snprintf(verdict->reason, sizeof verdict->reason, "%s", entry->reason);
  return true;
}

void clv__verdicts_add(clv__verdicts *verdicts, const clv__hash *signature, const clv_verdict *verdict) {
  if (!insert(verdicts, signature, verdict->supported ? NULL : verdict->reason)) return;
  if (++verdicts->new_count >= ENOUGH_NEW && 4 * verdicts->new_count >= verdicts->count) store_entries(verdicts);
}

void clv__verdicts_finish(clv__verdicts *verdicts) {
  const clv_allocator *allocator = verdicts->host->allocator;
  store_entries(verdicts);
  for (size_t i = 0; i < verdicts->count; ++i) clv__release(allocator, verdicts->entries[i].reason);
  clv__release(allocator, verdicts->entries);
  clv__release(allocator, verdicts->slots);
}
