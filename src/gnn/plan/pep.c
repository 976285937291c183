/* Enumerates all ways to divide the stages into up to three blocks, and all assignments of devices to them. Prices each block
 * once and combines the prices. Discards plans that cannot be part of a better schedule. See pep.h. */
#include "gnn/plan/pep.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Prices of blocks, computed once ---- */

enum { QUESTIONS = CLV__TABLE_STAGES * (CLV__TABLE_STAGES + 1) * 16 * 4, MOST_KEPT = 4096 };

typedef struct making {
  const clv__costs *costs;
  const clv__subgraph_sizes *subgraph;
  const clv__pep_options *options;
  clv__pep_list *list;
  const clv_allocator *allocator;
  clv__block_answers **answers; /* [QUESTIONS]; NULL: not priced yet */
  clv__pep **kept;              /* plans that no other plan dominates so far */
  uint32_t kept_count;
} making;

static const clv__block_answers *ask(making *m, const clv__block_question *q) {
  uint32_t index = q->first * (CLV__TABLE_STAGES + 1) + q->last;
  index = (index * 16 + q->set) * 4 + (q->shared_in ? 2u : 0) + (q->shared_out ? 1u : 0);
  clv__block_answers **place = &m->answers[index];
  if (*place == NULL) {
    *place = clv__allocate(m->allocator, sizeof **place);
    if (*place != NULL) clv__block_price(m->costs, m->subgraph, q, m->options->variants, *place);
  }
  return *place;
}

/* ---- One plan ---- */

static uint64_t mix(uint64_t hash, uint64_t number) {
  hash ^= number + 0x9e3779b97f4a7c15u + (hash << 6) + (hash >> 2);
  hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9u;
  return hash ^ hash >> 27;
}

void clv__pep_finish(clv__pep *pep) {
  double before = 0;
  uint64_t key = pep->block_count;
  pep->time_ns = pep->ideal_ns = 0;
  for (uint32_t d = 0; d < CLV__PEP_DEVICES; ++d) {
    pep->load_ns[d] = pep->head_ns[d] = pep->tail_ns[d] = 0;
    pep->stage_of[d] = CLV__PEP_BLOCKS;
  }
  for (uint32_t b = 0; b < pep->block_count; ++b)
    pep->time_ns += pep->blocks[b].time_ns, pep->ideal_ns += pep->blocks[b].ideal_ns;
  for (uint32_t b = 0; b < pep->block_count; ++b) {
    clv__pep_block *block = &pep->blocks[b];
    key = mix(mix(key, block->first), block->last);
    for (uint32_t i = 0; i < block->part_count; ++i) {
      clv__pep_part *part = &block->parts[i];
      pep->load_ns[part->device] = part->time_ns;
      pep->head_ns[part->device] = before;
      pep->tail_ns[part->device] = fmax(0, pep->time_ns - before - block->time_ns) + block->merge_ns;
      pep->stage_of[part->device] = (uint8_t)b;
      key = mix(mix(mix(key, part->device), part->from), part->to);
      if (part->is_static) key = mix(mix(key, part->padded.rows), part->padded.edges);
    }
    before += block->time_ns;
  }
  pep->key = key;
}

bool clv__pep_same(const clv__pep *a, const clv__pep *b) {
  if (a->key != b->key || a->block_count != b->block_count) return false;
  for (uint32_t k = 0; k < a->block_count; ++k) {
    const clv__pep_block *x = &a->blocks[k], *y = &b->blocks[k];
    if (x->first != y->first || x->last != y->last || x->part_count != y->part_count) return false;
    for (uint32_t i = 0; i < x->part_count; ++i) {
      const clv__pep_part *p = &x->parts[i], *q = &y->parts[i];
      if (p->device != q->device || p->from != q->from || p->to != q->to) return false;
      if (p->is_static != q->is_static) return false;
      if (p->is_static && (p->padded.rows != q->padded.rows || p->padded.edges != q->padded.edges)) return false;
    }
  }
  return true;
}

uint32_t clv__pep_single(const clv__pep *pep) {
  uint32_t device = CLV__NO_ID;
  for (uint32_t b = 0; b < pep->block_count; ++b) {
    if (pep->blocks[b].part_count != 1 || (device != CLV__NO_ID && device != pep->blocks[b].parts[0].device)) return CLV__NO_ID;
    device = pep->blocks[b].parts[0].device;
  }
  return device;
}

void clv__pep_describe(const clv__pep *pep, const clv__machine *machine, clv__text *text) {
  for (uint32_t b = 0; b < pep->block_count; ++b) {
    const clv__pep_block *block = &pep->blocks[b];
    if (b > 0) clv__text_append(text, " | ");
    for (uint32_t i = 0; i < block->part_count; ++i) {
      const clv__pep_part *part = &block->parts[i];
      clv__text_append(text, "%s%s %u-%u", i > 0 ? " + " : "", machine->devices[part->device].name, block->first, block->last);
      if (block->part_count > 1) clv__text_append(text, " x%.2f", (double)(part->to - part->from) / CLV__PEP_SHARES);
      if (part->is_static)
        clv__text_append(text, " %llux%llu", (unsigned long long)part->padded.rows, (unsigned long long)part->padded.edges);
    }
  }
}

/* ---- The plans kept ----
 *
 * Plan A dominates plan B if all of these hold:
 * - B uses every device that A uses, for at least as long;
 * - for any two devices that A needs in some order, B needs them in the same order;
 * - on each of these devices, merging takes B at least as long as A.
 * In any schedule, A's tasks can then replace B's, device by device. Each task fits into its place, none starts before the tasks
 * that it waits for have ended, and nothing that follows is later. So no schedule needs B, whatever the other subgraphs do, and
 * the optimum of the assignment (by loads, heads and tails, or by the schedule) is preserved. If two plans dominate each other,
 * one stays. */
static bool makes_superfluous(const clv__pep *a, const clv__pep *b) {
  for (uint32_t d = 0; d < CLV__PEP_DEVICES; ++d) {
    if (a->stage_of[d] == CLV__PEP_BLOCKS) continue;
    if (b->stage_of[d] == CLV__PEP_BLOCKS || b->load_ns[d] < a->load_ns[d]) return false;
    if (b->blocks[b->stage_of[d]].merge_ns < a->blocks[a->stage_of[d]].merge_ns) return false;
    for (uint32_t e = 0; e < CLV__PEP_DEVICES; ++e) {
      if (a->stage_of[e] != CLV__PEP_BLOCKS && a->stage_of[d] < a->stage_of[e] && b->stage_of[d] >= b->stage_of[e]) return false;
    }
  }
  return true;
}

static bool keep(making *m, const clv__pep *pep) {
  for (uint32_t i = 0; i < m->kept_count; ++i) {
    if (makes_superfluous(m->kept[i], pep)) return true;
  }
  clv__pep *place = NULL;
  uint32_t left = 0;
  for (uint32_t i = 0; i < m->kept_count; ++i) {
    if (!makes_superfluous(pep, m->kept[i])) {
      m->kept[left++] = m->kept[i];
    } else {
      if (place != NULL) clv__release(m->allocator, place);
      place = m->kept[i];
    }
  }
  m->kept_count = left;
  if (place == NULL && left < MOST_KEPT) place = clv__allocate(m->allocator, sizeof *place);
  /* If the list is full, drops this plan and returns true; false means out of memory. */
  if (place == NULL) return left >= MOST_KEPT;
  *place = *pep;
  m->kept[m->kept_count++] = place;
  return true;
}

/* ---- All plans ---- */

/* Returns whether all devices of both sets share one memory other than the host's. */
static bool share_space(const clv__machine *machine, uint32_t set, uint32_t other) {
  uint32_t space = CLV__NO_ID;
  for (uint32_t d = 0; d < machine->device_count; ++d) {
    if (((set | other) >> d & 1u) == 0) continue;
    if (machine->devices[d].space == 0 || (space != CLV__NO_ID && machine->devices[d].space != space)) return false;
    space = machine->devices[d].space;
  }
  return set != 0 && other != 0;
}

void clv__block_questions(const clv__machine *machine, uint32_t blocks, const uint32_t *cuts, const uint32_t *sets,
                          clv__block_question *questions) {
  /* Values may cross beyond the next block, so they stay in device memory only if there are exactly two blocks. */
  bool stays = blocks == 2 && share_space(machine, sets[0], sets[1]);
  for (uint32_t b = 0; b < blocks; ++b)
    questions[b] = (clv__block_question){cuts[b], cuts[b + 1], sets[b], stays && b == 1, stays && b == 0};
}

/* Makes the plans with blocks between `cuts` on the devices of `sets`: all combinations of the blocks' variants. */
static bool put_together(making *m, uint32_t blocks, const uint32_t *cuts, const uint32_t *sets) {
  const clv__block_answers *answers[CLV__PEP_BLOCKS];
  clv__block_question questions[CLV__PEP_BLOCKS];
  clv__known known = CLV__KNOWN;
  clv__least_memory most = {0, 0};
  clv__block_questions(m->costs->machine, blocks, cuts, sets, questions);
  for (uint32_t b = 0; b < blocks; ++b) {
    if (!clv__block_is_legal(m->costs, &questions[b])) return true;
  }
  ++m->list->structures;
  for (uint32_t b = 0; b < blocks; ++b) {
    answers[b] = ask(m, &questions[b]);
    if (answers[b] == NULL) return false;
    if (known != CLV__INFEASIBLE && answers[b]->known != CLV__KNOWN) known = answers[b]->known;
    if (answers[b]->least.size_bytes > most.size_bytes) most = answers[b]->least;
  }
  bool is_least = m->list->least.size_bytes == 0 || most.size_bytes < m->list->least.size_bytes;
  if (known == CLV__INFEASIBLE && most.size_bytes > 0 && is_least) m->list->least = most;
  m->list->unknown += known == CLV__UNKNOWN;
  m->list->infeasible += known == CLV__INFEASIBLE;
  if (known != CLV__KNOWN) return true;
  uint32_t at[CLV__PEP_BLOCKS] = {0};
  for (bool more = true; more;) {
    clv__pep pep = {.block_count = blocks};
    for (uint32_t b = 0; b < blocks; ++b) pep.blocks[b] = answers[b]->items[at[b]];
    clv__pep_finish(&pep);
    ++m->list->priced;
    if (!keep(m, &pep)) return false;
    more = false;
    for (uint32_t b = 0; b < blocks && !more; ++b) {
      more = ++at[b] < answers[b]->count;
      if (!more) at[b] = 0;
    }
  }
  return true;
}

static bool all_cuts(making *m, uint32_t blocks, const uint32_t *sets) {
  uint32_t stages = m->costs->chain->stage_count;
  for (uint32_t i = 1; i <= (blocks > 1 ? stages - 1 : 1); ++i) {
    for (uint32_t k = i + 1; k <= (blocks > 2 ? stages - 1 : i + 1); ++k) {
      uint32_t cuts[CLV__PEP_BLOCKS + 1] = {0, i, k, stages};
      cuts[blocks] = stages;
      if (!put_together(m, blocks, cuts, sets)) return false;
    }
  }
  return true;
}

/* Tries all assignments of devices to blocks: each device works on one block or on none, and each block has at least one device.
 */
static bool all_sets(making *m) {
  uint32_t devices = m->costs->machine->device_count;
  const clv__pep_options *o = m->options;
  uint32_t most = o->most_blocks > 0 && o->most_blocks < CLV__PEP_BLOCKS ? o->most_blocks : CLV__PEP_BLOCKS;
  for (uint32_t blocks = 1; blocks <= most; ++blocks) {
    uint32_t ways = 1;
    for (uint32_t d = 0; d < devices; ++d) ways *= blocks + 1;
    for (uint32_t way = 0; way < ways; ++way) {
      uint32_t sets[CLV__PEP_BLOCKS + 1] = {0};
      for (uint32_t d = 0, left = way; d < devices; ++d, left /= blocks + 1) sets[left % (blocks + 1)] |= 1u << d;
      bool full = true; /* whether each block has a device, and at most most_parts; sets[blocks] has the unused devices */
      for (uint32_t b = 0; b < blocks; ++b)
        full = full && sets[b] != 0 && (o->most_parts == 0 || (uint32_t)__builtin_popcount(sets[b]) <= o->most_parts);
      if (full && !all_cuts(m, blocks, sets)) return false;
    }
  }
  return true;
}

static int compare_plans(const void *a, const void *b) {
  const clv__pep *x = *(clv__pep *const *)a, *y = *(clv__pep *const *)b;
  if (x->time_ns != y->time_ns) return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
  return (x->key > y->key) - (x->key < y->key);
}

/* Fills the list, sorted by time: the first `top_k` plans, and those on one device, which are always candidates. */
static clv_status fill_list(making *m, clv__arena *arena, clv_error *error) {
  uint32_t wanted = m->options->top_k == 0 ? m->kept_count : m->options->top_k, others = 0;
  if (m->kept_count > 1) qsort(m->kept, m->kept_count, sizeof *m->kept, compare_plans);
  m->list->items = clv__arena_allocate_zero(arena, m->kept_count, sizeof *m->list->items);
  if (m->list->items == NULL) return clv__error_memory(error, m->kept_count * sizeof *m->list->items);
  for (uint32_t i = 0; i < m->kept_count; ++i) {
    bool is_single = clv__pep_single(m->kept[i]) != CLV__NO_ID;
    if (is_single || others < wanted) m->list->items[m->list->count++] = *m->kept[i];
    others += !is_single;
  }
  return CLV_OK;
}

/* Reports that no plan has a price: the least memory if that is why, otherwise the reason for the whole layer on the first device
 * that has a table of it. */
static clv_status refuse(const making *m, clv_error *error) {
  const clv__costs *costs = m->costs;
  uint32_t stages = costs->chain->stage_count;
  char reason[256] = "no combination of devices can run all of its stages, according to the profile";
  if (m->list->least.size_bytes > 0)
    return clv__error_set(error, CLV_TOO_LARGE,
                          "layer %s, %llu vertices, %llu in-edges: at least %llu bytes of the memory of %s are needed",
                          costs->chain->layer, (unsigned long long)m->subgraph->owned, (unsigned long long)m->subgraph->edges,
                          (unsigned long long)m->list->least.size_bytes, costs->machine->devices[m->list->least.device].name);
  for (uint32_t d = 0; d < costs->machine->device_count; ++d) {
    const clv__block_table *table = costs->blocks[d][0][stages];
    if (table == NULL) continue;
    const clv__chain_block *block = &costs->chain->blocks[0][stages];
    char why[224];
    clv__table_reason(table, m->subgraph->owned + (block->reads_rows ? m->subgraph->halo : 0),
                      block->reads_edges ? m->subgraph->edges : 0, why, sizeof why);
    snprintf(reason, sizeof reason, "%s: %s", table->device, why);
    break;
  }
  return clv__error_set(error, CLV_NOT_SUPPORTED, "layer %s, %llu vertices, %llu in-edges: no plan has a known price: %s",
                        costs->chain->layer, (unsigned long long)m->subgraph->owned, (unsigned long long)m->subgraph->edges,
                        reason);
}

clv_status clv__peps_make(clv__arena *arena, const clv__costs *costs, const clv__subgraph_sizes *subgraph,
                          const clv__pep_options *options, clv__pep_list *list, clv_error *error) {
  making m = {.costs = costs, .subgraph = subgraph, .options = options, .list = list, .allocator = arena->allocator};
  *list = (clv__pep_list){0};
  m.answers = clv__allocate_zero(m.allocator, QUESTIONS * sizeof *m.answers);
  m.kept = clv__allocate(m.allocator, MOST_KEPT * sizeof *m.kept);
  clv_status status = CLV_OK;
  if (m.answers == NULL || m.kept == NULL || !all_sets(&m))
    status = clv__error_memory(error, sizeof(clv__block_answers));
  else
    status = m.kept_count == 0 ? refuse(&m, error) : fill_list(&m, arena, error);
  for (uint32_t i = 0; i < m.kept_count; ++i) clv__release(m.allocator, m.kept[i]);
  for (uint32_t q = 0; q < QUESTIONS && m.answers != NULL; ++q) clv__release(m.allocator, m.answers[q]);
  clv__release(m.allocator, m.kept);
  clv__release(m.allocator, m.answers);
  return status;
}
