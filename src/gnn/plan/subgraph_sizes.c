/* Counts, for all ranges of shares at once, the rows that a range reads but does not own. For each row, a bit set holds the
 * shares whose edges read it. A range reads the row from the first of these shares on, unless it owns the row. See
 * subgraph_sizes.h. */
#include "gnn/plan/subgraph_sizes.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "gnn/plan/portion.h"

enum { CUTS = CLV__PEP_SHARES + 1 };

typedef struct shares {
  uint64_t targets[CUTS], edges[CUTS]; /* [i]: how many are in the first i / CLV__PEP_SHARES of the subgraph's in-edges */
  uint64_t halo[CUTS][CUTS + 1];       /* [from][to]: number of halo vertices of the part between these two cuts */
} shares;

/* Counts row u in each range that starts at `from` and extends beyond u's first reader. If u's owner is at or after `from`,
 * only ranges that end before the owner's share count. Stores the counts as differences along `to`. */
static void count_row(shares *s, uint32_t readers, uint32_t owner) {
  for (uint32_t from = 0; from < CLV__PEP_SHARES && readers >> from != 0; ++from) {
    uint32_t reader = from + (uint32_t)__builtin_ctz(readers >> from);
    uint32_t end = owner != CLV__NO_ID && owner >= from ? owner : CLV__PEP_SHARES;
    if (reader >= end) continue; /* a range that includes the first reader also includes the owner */
    ++s->halo[from][reader + 1];
    --s->halo[from][end + 1];
  }
}

static void count_halos(shares *s, const clv__subgraph *sub, const uint32_t *cuts, uint32_t *readers) {
  for (uint32_t share = 0; share < CLV__PEP_SHARES; ++share) {
    uint64_t end = sub->offsets[cuts[share + 1]];
    for (uint64_t e = sub->offsets[cuts[share]]; e < end; ++e) readers[sub->sources[e]] |= UINT32_C(1) << share;
  }
  for (uint32_t u = 0, owner = 0; u < sub->owned_count + sub->halo_count; ++u) {
    while (owner < CLV__PEP_SHARES && u >= cuts[owner + 1]) ++owner;
    count_row(s, readers[u], u < sub->owned_count ? owner : CLV__NO_ID);
  }
  for (uint32_t from = 0; from < CUTS; ++from) {
    for (uint32_t to = 1; to < CUTS; ++to) s->halo[from][to] += s->halo[from][to - 1];
  }
}

/* Interpolates linearly. */
static double between(double low, double high, double part) {
  return low + (high - low) * part;
}

static void share_of(const void *user, double from, double to, clv__share *share) {
  const shares *s = user;
  double a = fmin(fmax(from, 0), 1) * CLV__PEP_SHARES, b = fmin(fmax(to, 0), 1) * CLV__PEP_SHARES;
  /* 1e-9 absorbs rounding errors just below a multiple of a share. */
  uint32_t i = (uint32_t)(a + 1e-9), k = (uint32_t)(b + 1e-9);
  double x = fmax(0, a - i), y = fmax(0, b - k);
  if (x < 1e-9) x = 0;
  if (y < 1e-9) y = 0;
  uint32_t p = x > 0 ? i + 1 : i, q = y > 0 ? k + 1 : k;
  uint64_t end = (uint64_t)llround(between((double)s->targets[k], (double)s->targets[q], y));
  uint64_t begin = (uint64_t)llround(between((double)s->targets[i], (double)s->targets[p], x));
  share->targets = end > begin ? end - begin : 0;
  end = (uint64_t)llround(between((double)s->edges[k], (double)s->edges[q], y));
  begin = (uint64_t)llround(between((double)s->edges[i], (double)s->edges[p], x));
  share->edges = end > begin ? end - begin : 0;
  double low = between((double)s->halo[i][k], (double)s->halo[i][q], y);
  double high = p <= k ? between((double)s->halo[p][k], (double)s->halo[p][q], y) : (double)s->halo[i][q] * y;
  share->halo = (uint64_t)llround(between(low, high, x));
}

clv_status clv__subgraph_sizes_of(clv__arena *arena, const clv__subgraph *sub, clv__subgraph_sizes *sizes, clv_error *error) {
  uint32_t rows = sub->owned_count + sub->halo_count, cuts[CUTS];
  shares *s = clv__arena_allocate_zero(arena, 1, sizeof *s);
  uint32_t *readers = clv__allocate_zero(arena->allocator, (size_t)rows * sizeof *readers);
  if (s == NULL || readers == NULL) {
    clv__release(arena->allocator, readers);
    return clv__error_memory(error, sizeof *s + (size_t)rows * sizeof *readers);
  }
  for (uint32_t c = 0; c < CUTS; ++c) {
    cuts[c] = clv__subgraph_vertex_at(sub, (double)c / CLV__PEP_SHARES);
    s->targets[c] = cuts[c];
    s->edges[c] = sub->offsets[cuts[c]];
  }
  count_halos(s, sub, cuts, readers);
  clv__release(arena->allocator, readers);
  *sizes = (clv__subgraph_sizes){sub->owned_count, sub->halo_count, sub->edge_count, share_of, s};
  return CLV_OK;
}
