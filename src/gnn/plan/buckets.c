/* Finds the buckets and the pairs worth merging. See buckets.h. */
#include "gnn/plan/buckets.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gnn/plan/pep_cost.h"

enum { MOST_COMPARED = 160 }; /* with fewer buckets, all pairs are compared; otherwise, each bucket with the next two only */

/* A part of a plan, as a member of the bucket that it runs in. */
typedef struct member {
  uint32_t subgraph, block, part, next; /* next: the next member of the bucket, or CLV__NO_ID */
} member;

typedef struct bucket {
  uint32_t device, first, last;
  clv__layer_sizes sizes;
  uint32_t head; /* the first member; CLV__NO_ID: merged into another bucket */
} bucket;

typedef struct offer {
  double added_ns; /* padding time that the merge would add; INFINITY: the pair cannot be merged, or try_merge() rejected it */
  bool is_known;
} offer;

typedef struct merging {
  clv__bucketing *b;
  uint32_t bucket_count, member_count, reach;
  bucket *buckets;
  member *members;
  offer *offers; /* [bucket_count][reach]: for each bucket, its merges with the next `reach` buckets */
  clv__pep_work *works;
  const clv__pep_work **sequence;
  clv__bucket_merge *merges;
} merging;

static clv__pep_block *block_of(const merging *m, const member *at) {
  return &m->b->peps[at->subgraph].blocks[at->block];
}

/* ---- Finding the buckets ---- */

static int compare_buckets(const void *a, const void *b) {
  const bucket *x = a, *y = b;
  const uint64_t of_x[] = {x->device, x->first, x->last, x->sizes.rows, x->sizes.edges};
  const uint64_t of_y[] = {y->device, y->first, y->last, y->sizes.rows, y->sizes.edges};
  for (size_t i = 0; i < sizeof of_x / sizeof *of_x; ++i) {
    if (of_x[i] != of_y[i]) return of_x[i] < of_y[i] ? -1 : 1;
  }
  return (x->head > y->head) - (x->head < y->head);
}

/* Creates one bucket per part, then combines those of equal size. */
static clv_status find_buckets(merging *m, clv_error *error) {
  const clv__bucketing *b = m->b;
  size_t most = (size_t)b->cut->k * CLV__PEP_DEVICES;
  m->members = clv__arena_allocate_zero(b->arena, most, sizeof *m->members);
  m->buckets = clv__arena_allocate_zero(b->arena, most, sizeof *m->buckets);
  if (m->members == NULL || m->buckets == NULL) return clv__error_memory(error, most * sizeof *m->buckets);
  for (uint32_t i = 0; i < b->cut->k; ++i) {
    for (uint32_t k = 0; k < b->peps[i].block_count; ++k) {
      const clv__pep_block *block = &b->peps[i].blocks[k];
      for (uint32_t p = 0; p < block->part_count; ++p) {
        const clv__pep_part *part = &block->parts[p];
        if (!part->is_static || part->sizes.targets == 0) continue;
        m->members[m->member_count] = (member){i, k, p, CLV__NO_ID};
        m->buckets[m->member_count] = (bucket){part->device, block->first, block->last, part->padded, m->member_count};
        ++m->member_count;
      }
    }
  }
  if (m->member_count > 1) qsort(m->buckets, m->member_count, sizeof *m->buckets, compare_buckets);
  for (uint32_t i = 0; i < m->member_count; ++i) {
    bucket *last = m->bucket_count > 0 ? &m->buckets[m->bucket_count - 1] : NULL, *mine = &m->buckets[i];
    if (last != NULL && last->device == mine->device && last->first == mine->first && last->last == mine->last &&
        last->sizes.rows == mine->sizes.rows && last->sizes.edges == mine->sizes.edges) {
      m->members[mine->head].next = last->head;
      last->head = mine->head;
    } else {
      m->buckets[m->bucket_count++] = *mine;
    }
  }
  return CLV_OK;
}

/* ---- The cost of a pair ---- */

static clv__layer_sizes join(const bucket *a, const bucket *b) {
  clv__layer_sizes both = {.rows = a->sizes.rows > b->sizes.rows ? a->sizes.rows : b->sizes.rows,
                           .edges = a->sizes.edges > b->sizes.edges ? a->sizes.edges : b->sizes.edges};
  both.targets = both.rows;
  return both;
}

/* Prices the part at another size. Returns false if the part does not fit: padded edges need a padded row, and the size needs a
 * price. */
static bool price_at(const merging *m, const member *at, clv__layer_sizes sizes, clv__pep_part *part) {
  const clv__pep *pep = &m->b->peps[at->subgraph];
  clv__block_question questions[CLV__PEP_BLOCKS];
  uint32_t cuts[CLV__PEP_BLOCKS + 1] = {0}, sets[CLV__PEP_BLOCKS] = {0};
  for (uint32_t k = 0; k < pep->block_count; ++k) {
    cuts[k + 1] = pep->blocks[k].last;
    for (uint32_t p = 0; p < pep->blocks[k].part_count; ++p) sets[k] |= 1u << pep->blocks[k].parts[p].device;
  }
  clv__block_questions(m->b->costs->machine, pep->block_count, cuts, sets, questions);
  *part = pep->blocks[at->block].parts[at->part];
  part->padded = sizes;
  if (sizes.edges != part->sizes.edges && sizes.rows <= part->sizes.rows) return false;
  return clv__pep_part_price(m->b->costs, &m->b->cut->subgraphs[at->subgraph], &questions[at->block], part) == CLV__KNOWN;
}

static double added_by(const merging *m, const bucket *a, const bucket *b) {
  const clv__layer_sizes sizes = join(a, b);
  double added_ns = 0;
  for (int which = 0; which < 2; ++which) {
    for (uint32_t i = (which == 0 ? a : b)->head; i != CLV__NO_ID; i = m->members[i].next) {
      clv__pep_part part;
      if (!price_at(m, &m->members[i], sizes, &part)) return INFINITY;
      added_ns += part.time_ns - block_of(m, &m->members[i])->parts[m->members[i].part].time_ns;
    }
  }
  return added_ns;
}

static double compile_ns(const merging *m, const bucket *a) {
  return m->b->costs->blocks[a->device][a->first][a->last]->compile_ns;
}

static bool is_pair(const bucket *a, const bucket *b) {
  return a->head != CLV__NO_ID && b->head != CLV__NO_ID && a->device == b->device && a->first == b->first && a->last == b->last;
}

/* ---- Merging ---- */

static double simulate(const merging *m) {
  const clv__bucketing *b = m->b;
  for (uint32_t at = 0; at < b->cut->k; ++at) {
    clv__pep_work_of(&b->peps[b->sequence[at]], &m->works[at]);
    m->sequence[at] = &m->works[at];
  }
  return clv__simulate_time(b->costs->machine, m->sequence, b->cut->k);
}

/* Sets the size of all members of a bucket, from `head` on, and reprices their plans. Adds the number of members whose size
 * changes to `counted`. */
static void set_sizes(const merging *m, uint32_t head, clv__layer_sizes sizes, uint32_t *counted) {
  for (uint32_t i = head; i != CLV__NO_ID; i = m->members[i].next) {
    const member *at = &m->members[i];
    clv__pep_block *block = block_of(m, at);
    clv__pep_part *part = &block->parts[at->part];
    *counted += part->padded.rows != sizes.rows || part->padded.edges != sizes.edges;
    (void)price_at(m, at, sizes, part); /* cannot fail: added_by() has priced this size */
    block->time_ns = 0;
    for (uint32_t p = 0; p < block->part_count; ++p) block->time_ns = clv__larger(block->time_ns, block->parts[p].time_ns);
    block->time_ns += block->merge_ns;
    if (block->part_count == 1) block->ideal_ns = block->time_ns;
    clv__pep_finish(&m->b->peps[at->subgraph]);
  }
}

/* Merges `b` into `a`. Returns false and restores everything if the schedule would grow by more than the merge saves. */
static bool try_merge(merging *m, bucket *a, bucket *b, double added_ns) {
  clv__bucket_merge merge = {a->device, a->first, a->last, 0, {a->sizes, b->sizes}, join(a, b), added_ns, compile_ns(m, a)};
  uint32_t ignored = 0, last = a->head;
  set_sizes(m, a->head, merge.into, &merge.parts);
  set_sizes(m, b->head, merge.into, &merge.parts);
  double makespan_ns = simulate(m);
  if (makespan_ns - m->b->makespan_ns > merge.saved_ns) {
    set_sizes(m, a->head, a->sizes, &ignored);
    set_sizes(m, b->head, b->sizes, &ignored);
    return false;
  }
  while (m->members[last].next != CLV__NO_ID) last = m->members[last].next;
  m->members[last].next = b->head;
  a->sizes = merge.into;
  b->head = CLV__NO_ID;
  m->b->makespan_ns = makespan_ns;
  m->merges[m->b->merge_count++] = merge;
  return true;
}

/* Invalidates all offers that involve the bucket. */
static void forget(merging *m, uint32_t which) {
  for (uint32_t i = 0; i < m->bucket_count; ++i) {
    for (uint32_t r = 0; r < m->reach; ++r) {
      if (i == which || i + 1 + r == which) m->offers[(size_t)i * m->reach + r].is_known = false;
    }
  }
}

/* Finds the pair with the largest gain. Returns false if none gains. */
static bool find_best(merging *m, uint32_t *first, uint32_t *second) {
  double most = 0;
  for (uint32_t i = 0; i < m->bucket_count; ++i) {
    for (uint32_t r = 0; r < m->reach && i + 1 + r < m->bucket_count; ++r) {
      const bucket *a = &m->buckets[i], *b = &m->buckets[i + 1 + r];
      offer *with = &m->offers[(size_t)i * m->reach + r];
      if (!is_pair(a, b)) continue;
      if (!with->is_known) *with = (offer){added_by(m, a, b), true};
      double gain_ns = compile_ns(m, a) - with->added_ns;
      if (gain_ns > most) most = gain_ns, *first = i, *second = i + 1 + r;
    }
  }
  return most > 0;
}

clv_status clv__buckets_merge(clv__bucketing *bucketing, clv_error *error) {
  merging m = {.b = bucketing};
  clv__arena *arena = bucketing->arena;
  uint32_t k = bucketing->cut->k, first = 0, second = 0;
  bucketing->merge_count = 0;
  CLV__TRY(find_buckets(&m, error));
  m.reach = m.bucket_count < MOST_COMPARED ? m.bucket_count : 2;
  size_t room = (size_t)m.bucket_count * m.reach;
  m.offers = clv__arena_allocate_zero(arena, room + 1, sizeof *m.offers);
  m.works = clv__arena_allocate_zero(arena, k, sizeof *m.works);
  m.sequence = clv__arena_allocate_zero(arena, k, sizeof *m.sequence);
  bucketing->merges = m.merges = clv__arena_allocate_zero(arena, m.bucket_count + 1u, sizeof *m.merges);
  if (m.offers == NULL || m.works == NULL || m.sequence == NULL || m.merges == NULL)
    return clv__error_memory(error, room * sizeof *m.offers + k * sizeof *m.works);
  bucketing->makespan_ns = simulate(&m);
  while (find_best(&m, &first, &second)) {
    offer *with = &m.offers[(size_t)first * m.reach + (second - first - 1)];
    if (try_merge(&m, &m.buckets[first], &m.buckets[second], with->added_ns))
      forget(&m, first);
    else
      with->added_ns = INFINITY;
  }
  return CLV_OK;
}
