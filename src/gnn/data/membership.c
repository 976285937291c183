/* Determines each vertex's part: from the cache, or by METIS, whose result is then cached. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "gnn/data/metis.h"
#include "gnn/data/partition.h"

/* ---- The cache entry: k, the vertex count, then the part of each vertex, all u32 in this machine's byte order ---- */

static void hash_text(const char *text, uint64_t first, uint64_t second, clv__hash *hash) {
  clv__hasher hasher;
  clv__hasher_init(&hasher);
  clv__hasher_string(&hasher, text);
  clv__hasher_u64(&hasher, first);
  clv__hasher_u64(&hasher, second);
  clv__hasher_finish(&hasher, hash);
}

/* This key never equals an executable's key, because its structure part is the hash of a fixed text instead of a graph. */
static clv__key membership_key(const clv__gnn_graph *graph, uint32_t k, uint64_t seed) {
  clv__key key = {0};
  hash_text("parts of a graph", 0x01020304 /* makes the key depend on the byte order */, 0, &key.parts[CLV__KEY_STRUCTURE]);
  const uint32_t order = 0x01020304;
  uint8_t bytes[sizeof order];
  memcpy(bytes, &order, sizeof order);
  hash_text(clv__metis_identity(), bytes[0], 0, &key.parts[CLV__KEY_DEVICE]);
  hash_text("k and seed", k, seed, &key.parts[CLV__KEY_OPTIONS]);
  key.parts[CLV__KEY_CONSTANTS] = graph->hash;
  return key;
}

/* Reads the membership from the cache. Returns false if there is no entry, or if the entry is unusable; evicts an unusable
 * entry. */
static bool recall(clv__cache *cache, const clv__key *key, uint32_t k, uint32_t vertex_count, uint32_t *parts) {
  clv__cached cached;
  if (clv__cache_get(cache, key, &cached, NULL) != CLV_OK) return false;
  uint32_t head[2];
  size_t parts_bytes = (size_t)vertex_count * sizeof *parts;
  bool fits = cached.payload_bytes == sizeof head + parts_bytes;
  if (fits) {
    memcpy(head, cached.payload, sizeof head);
    memcpy(parts, (const uint8_t *)cached.payload + sizeof head, parts_bytes);
    fits = head[0] == k && head[1] == vertex_count;
    for (uint32_t v = 0; v < vertex_count && fits; ++v) fits = parts[v] < k;
  }
  clv__cached_finish(cache, &cached);
  if (!fits) clv__cache_remove(cache, key);
  return fits;
}

typedef struct kept {
  uint32_t head[2];
  const uint32_t *parts;
} kept;

static clv_status save_kept(void *self, clv_write_fn write, void *cookie, clv_error *error) {
  const kept *k = self;
  (void)error;
  CLV__TRY(write(cookie, k->head, sizeof k->head));
  return write(cookie, k->parts, (size_t)k->head[1] * sizeof *k->parts);
}

/* Stores the membership in the cache. Ignores failures: METIS then only runs again next time. */
static void remember(clv__cache *cache, const clv__key *key, const clv__gnn_graph *graph, uint32_t k, uint64_t seed,
                     const uint32_t *parts) {
  clv__cache_info info = {.key = *key};
  char hash[2 * CLV__HASH_BYTES + 1];
  clv__hash_text(&graph->hash, hash);
  snprintf(info.backend, sizeof info.backend, "METIS");
  snprintf(info.version, sizeof info.version, "%s", clv__metis_identity());
  snprintf(info.device, sizeof info.device, "graph");
  snprintf(info.description, sizeof info.description, "graph %.16s, k %u, seed %" PRIu64, hash, k, seed);
  snprintf(info.operators, sizeof info.operators, "parts of %u vertices", graph->csr.vertex_count);
  (void)clv__cache_put(cache, &info, save_kept, &(kept){{k, graph->csr.vertex_count}, parts}, NULL);
}

/* ---- Computing the membership ---- */

/* Assigns consecutive runs of vertices of nearly equal weight to the parts. Used if no edge joins two different vertices, because
 * METIS could then do no better. */
static void deal(const clv__csr *csr, uint32_t k, uint32_t *parts) {
  uint64_t total = csr->vertex_count + csr->edge_count, before = 0;
  for (uint32_t v = 0; v < csr->vertex_count; ++v) {
    uint64_t weight = 1 + csr->offsets[v + 1] - csr->offsets[v];
    parts[v] = (uint32_t)((double)before / (double)total * k);
    if (parts[v] >= k) parts[v] = k - 1;
    before += weight;
  }
}

static double now_s(void) {
  return (double)clv__clock_ns() * 1e-9;
}

static clv_status ask_metis(const clv_allocator *allocator, const clv__gnn_graph *graph, uint32_t k, uint64_t seed,
                            uint32_t *parts, double *seconds, clv_error *error) {
  clv__metis_graph undirected;
  double begin_s = now_s();
  CLV__TRY(clv__metis_graph_make(allocator, &graph->csr, &undirected, error));
  clv_status status = CLV_OK;
  if (undirected.offsets[undirected.vertex_count] == 0) {
    deal(&graph->csr, k, parts);
  } else {
    status = clv__metis_part(&undirected, k, seed, parts, error);
    *seconds = now_s() - begin_s;
  }
  clv__metis_graph_finish(allocator, &undirected);
  if (status != CLV_OK) return clv__error_prefix(error, status, "k %u", k);
  return CLV_OK;
}

clv_status clv__membership_make(const clv_allocator *allocator, const clv__gnn_graph *graph, uint32_t k, uint64_t seed,
                                clv__cache *cache, clv__membership *membership, clv_error *error) {
  uint32_t vertex_count = graph->csr.vertex_count;
  size_t parts_bytes = (size_t)vertex_count * sizeof(uint32_t);
  *membership = (clv__membership){0};
  if (k < 1 || (k > vertex_count && k > 1)) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "k = %u: a graph with %u vertices can have 1 to %u parts", k, vertex_count,
                          vertex_count > 0 ? vertex_count : 1);
  }
  uint32_t *parts = clv__allocate(allocator, parts_bytes);
  if (parts == NULL) return clv__error_memory(error, parts_bytes);
  double seconds = 0;
  bool from_cache = false;
  if (k == 1) {
    memset(parts, 0, parts_bytes);
  } else {
    clv__key key = membership_key(graph, k, seed);
    from_cache = cache != NULL && recall(cache, &key, k, vertex_count, parts);
    if (!from_cache) {
      clv_status status = ask_metis(allocator, graph, k, seed, parts, &seconds, error);
      if (status != CLV_OK) {
        clv__release(allocator, parts);
        return status;
      }
      if (cache != NULL && seconds > 0) remember(cache, &key, graph, k, seed, parts);
    }
  }
  *membership = (clv__membership){k, vertex_count, parts, seconds, from_cache};
  return CLV_OK;
}

void clv__membership_finish(const clv_allocator *allocator, clv__membership *membership) {
  clv__release(allocator, (void *)membership->parts);
  *membership = (clv__membership){0};
}
