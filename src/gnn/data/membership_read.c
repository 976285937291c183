/* Reads a membership that another tool computed: text with one part number per line, in vertex order, as METIS's gpmetis
 * writes it to GRAPH.part.K. Checks that every vertex has a part and every part a vertex. */
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "gnn/data/partition.h"
#include "gnn/data/readers.h"

typedef struct reading {
  uint32_t vertex_count, filled, limit; /* filled: vertices with a part so far; limit: part numbers must be below this */
  uint32_t most;                        /* the largest part number read */
  bool is_named;                        /* the file name determines the limit */
  uint64_t lines;
  uint32_t *parts;
} reading;

/* Returns the K of "GRAPH.part.K", also if ".gz" follows; 0 if the name has no such ending. */
static uint32_t named_k(const char *path) {
  static const char mark[] = ".part.";
  const char *last = NULL;
  uint64_t k = 0;
  for (const char *at = strstr(path, mark); at != NULL; at = strstr(at + 1, mark)) last = at;
  if (last == NULL) return 0;
  const char *at = last + sizeof mark - 1;
  while ((unsigned)(*at - '0') <= 9 && k <= UINT32_MAX) k = 10 * k + (unsigned)(*at++ - '0');
  bool ends = *at == '\0' || strcmp(at, ".gz") == 0;
  return ends && k <= UINT32_MAX ? (uint32_t)k : 0;
}

static bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

static clv_status read_part(reading *r, const char *at, const char *end, clv_error *error) {
  const char *begin = at;
  uint64_t part = 0;
  while (at < end && (unsigned)(*at - '0') <= 9 && part <= UINT32_MAX) part = 10 * part + (unsigned)(*at++ - '0');
  while (at > begin && at < end && is_blank(*at)) ++at;
  if (at < end)
    return clv__error_set(error, CLV_INVALID_MODEL,
                          "'%.*s' is not a valid part number: each line must be one whole number, 0 or more",
                          (int)(end - begin < 40 ? end - begin : 40), begin);
  if (r->filled == r->vertex_count)
    return clv__error_set(error, CLV_INVALID_MODEL, "more part numbers than the graph's %u vertices", r->vertex_count);
  if (part >= r->limit) {
    if (r->is_named)
      return clv__error_set(error, CLV_INVALID_MODEL,
                            "part %llu of vertex %u is too large: the file's name says that there are %u parts, numbered from 0",
                            (unsigned long long)part, r->filled, r->limit);
    return clv__error_set(error, CLV_INVALID_MODEL,
                          "part %llu of vertex %u is too large: %u vertices can have at most %u parts, numbered from 0",
                          (unsigned long long)part, r->filled, r->vertex_count, r->vertex_count);
  }
  if (part > r->most) r->most = (uint32_t)part;
  r->parts[r->filled++] = (uint32_t)part;
  return CLV_OK;
}

static clv_status read_block(reading *r, const char *at, const char *end, clv_error *error) {
  while (at < end) {
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    if (stop == NULL) stop = end;
    ++r->lines;
    while (at < stop && is_blank(*at)) ++at;
    if (at < stop) CLV__TRY(read_part(r, at, stop, error));
    at = stop + 1;
  }
  return CLV_OK;
}

static clv_status read_all(reading *r, clv__text_blocks *blocks, clv_error *error) {
  const char *data;
  size_t size_bytes;
  do {
    CLV__TRY(clv__text_blocks_next(blocks, &data, &size_bytes, error));
    clv_status status = read_block(r, data, data + size_bytes, error);
    if (status != CLV_OK) return clv__error_prefix(error, status, "line %llu", (unsigned long long)r->lines);
  } while (size_bytes > 0);
  if (r->filled < r->vertex_count)
    return clv__error_set(error, CLV_INVALID_MODEL, "it has parts for %u vertices, but the graph has %u", r->filled,
                          r->vertex_count);
  return CLV_OK;
}

static clv_status check_parts(const clv_allocator *allocator, const reading *r, uint32_t k, clv_error *error) {
  uint8_t *has = clv__allocate_zero(allocator, k);
  uint32_t empty = 0;
  if (has == NULL) return clv__error_memory(error, k);
  for (uint32_t v = 0; v < r->vertex_count; ++v) has[r->parts[v]] = 1;
  while (empty < k && has[empty] != 0) ++empty;
  clv__release(allocator, has);
  if (empty == k) return CLV_OK;
  return clv__error_set(error, CLV_INVALID_MODEL, "part %u of %u has no vertices: number the parts from 0 without gaps", empty,
                        k);
}

static clv_status read_membership(const clv_allocator *allocator, const clv__bytes_at *bytes, uint32_t vertex_count,
                                  clv__membership *membership, clv_error *error) {
  uint32_t k = named_k(bytes->path);
  reading r = {.vertex_count = vertex_count, .limit = k > 0 ? k : vertex_count, .is_named = k > 0};
  size_t size_bytes = (size_t)vertex_count * sizeof *r.parts;
  clv__text_blocks *blocks;
  if (k > vertex_count)
    return clv__error_set(error, CLV_INVALID_MODEL, "its name says %u parts, but a graph with %u vertices can have 1 to %u", k,
                          vertex_count, vertex_count > 0 ? vertex_count : 1);
  r.parts = clv__allocate(allocator, size_bytes);
  if (r.parts == NULL) return clv__error_memory(error, size_bytes);
  clv_status status = clv__text_blocks_open(allocator, bytes, false, &blocks, error);
  if (status == CLV_OK) {
    status = read_all(&r, blocks, error);
    clv__text_blocks_close(blocks);
  }
  if (k == 0) k = r.most + 1;
  if (status == CLV_OK && vertex_count > 0) status = check_parts(allocator, &r, k, error);
  if (status == CLV_OK)
    *membership = (clv__membership){.k = k, .vertex_count = vertex_count, .parts = r.parts};
  else
    clv__release(allocator, r.parts);
  return status;
}

clv_status clv__membership_read_memory(const clv_allocator *allocator, const char *name, const void *data, size_t size_bytes,
                                       uint32_t vertex_count, clv__membership *membership, clv_error *error) {
  const clv__bytes_at bytes = {name, data != NULL ? data : "", size_bytes};
  *membership = (clv__membership){0};
  clv_status status = read_membership(allocator, &bytes, vertex_count, membership, error);
  return status == CLV_OK ? CLV_OK : clv__error_name(error, status, name);
}

clv_status clv__membership_read(const clv_allocator *allocator, const char *path, uint32_t vertex_count,
                                clv__membership *membership, clv_error *error) {
  const clv__bytes_at bytes = {.path = path};
  *membership = (clv__membership){0};
  clv_status status = read_membership(allocator, &bytes, vertex_count, membership, error);
  return status == CLV_OK ? CLV_OK : clv__error_name(error, status, path);
}
